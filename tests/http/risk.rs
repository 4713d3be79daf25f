//! `GET /v1/datasets/{id}/risk`: what a holder learns about the rows before any run.

use pais::roles::Role;
use serde_json::{Value, json};

use crate::app::text;
use crate::hospital::{Hospital, id};

/// Seven stays of five patients. Each ward and each sex is that of several patients; only one woman
/// was in ward 2.
const CSV: &str = "patient,city,age,illness,ward,sex\n\
    zz-anna,zz-kiel,34,zz-flu,1,F\nzz-anna,zz-kiel,35,zz-flu,1,F\nzz-bert,zz-ulm,34,zz-cold,1,M\n\
    zz-cleo,zz-ulm,34,zz-flu,2,F\nzz-dora,zz-bonn,70,zz-cold,1,F\nzz-emil,zz-bonn,70,,2,M\n\
    zz-emil,zz-bonn,71,zz-flu,2,M\n";

/// The path of a dataset with the columns of [`CSV`].
async fn dataset(hospital: &Hospital, patient: &str) -> String {
    let leaf = |label: &str| json!({ "label": label });
    let illnesses = json!({ "label": "ill",
        "children": [leaf("zz-flu"), leaf("zz-cold"), leaf("zz-hiv")] });
    let body = json!({ "name": format!("stays by {patient}"), "columns": [
        { "name": "patient", "role": patient },
        { "name": "city", "role": "quasi_identifier" },
        { "name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99] },
        { "name": "illness", "role": "sensitive", "taxonomy": illnesses },
        { "name": "ward", "role": "insensitive" },
        { "name": "sex", "role": "insensitive" },
    ] });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    format!("/v1/datasets/{}", text(&made["id"]))
}

async fn risk(hospital: &Hospital, dataset: &str) -> Value {
    let shown = hospital.get(&format!("{dataset}/risk")).await;
    assert!(!shown.text.contains("zz-"), "a value is shown");
    shown.json(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_sees_counts_and_shares_of_persons_before_any_run() {
    let hospital = Hospital::new().await;
    let dataset = dataset(&hospital, "subject").await;
    hospital.submit(&dataset, CSV).await.json(201);
    let shown = risk(&hospital, &dataset).await;
    assert_eq!((&shown["rows"], &shown["subjects"]), (&json!(7), &json!(5)));
    let names = |values: &Value| -> Vec<String> {
        let values = values.as_array().unwrap().iter();
        values
            .map(|column| text(&column["name"]).to_owned())
            .collect()
    };
    let expected = ["city", "age", "illness", "ward", "sex"];
    assert_eq!(names(&shown["columns"]), expected);

    // Only zz-anna is of her city. Of 21 pairs of rows, 1 + 1 + 3 have the same city.
    let city = &shown["columns"][0];
    assert_eq!(city["role"], "quasi_identifier");
    assert_eq!(city["unique_share"], 0.2);
    assert_eq!(city["distinctness"], 3.0 / 7.0);
    assert_eq!(city["separation"], 16.0 / 21.0);
    assert_eq!(city["top_k_max"], 1);
    // Below 35 are three patients, from 35 on zz-anna again and the two others.
    assert_eq!(shown["columns"][1]["top_k_max"], 3);
    assert_eq!(shown["columns"][2]["absent_leaves"], 1);
    assert!(shown["columns"][3].get("top_k_max").is_none(), "{shown}");

    let pair = json!([{ "columns": ["city", "age"], "distinctness": 5.0 / 7.0,
        "unique_share": 0.4 }]);
    assert_eq!(shown["combinations"], pair);
    assert_eq!(shown["combinations_total"], 1);
    assert_eq!(shown["unique_share"], 0.4);
    assert_eq!(shown["singling_out"], json!([]));
    assert_eq!(shown["singling_out_pairs"], json!([["ward", "sex"]]));
    let feasible = json!({ "k_max": 5, "l_max": 1, "c_min": 0.666667 });
    assert_eq!(shown["feasible"], feasible);
    // Only zz-anna has (zz-flu, 1, F), and has it twice; all others are alone. By itself only the missing illness is.
    let unchanged = &shown["unchanged"];
    assert_eq!(unchanged["columns"], json!(["illness", "ward", "sex"]));
    assert_eq!(unchanged["singled_out_share"], 1.0);
    let by_column = json!({ "illness": 1.0 / 5.0, "ward": 0.0, "sex": 0.0 });
    assert_eq!(unchanged["by_column"], by_column);
    // Of the suggested K only 5 is that of no more than all patients.
    let suggested = &shown["suggestions"];
    assert_eq!(suggested["rows"], 7);
    for item in suggested["items"].as_array().unwrap() {
        let privacy = json!({ "model": "lkc", "l": 2, "k": 5, "c": 0.9 });
        assert_eq!(item["privacy"], privacy);
        // One cut for five patients is the topmost one.
        if item["recoding"] == "global" {
            assert_eq!(item["ncp"], 1.0, "{item}");
        }
    }
    assert!(!suggested["items"].as_array().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_counted_where_no_column_names_persons() {
    let hospital = Hospital::new().await;
    let dataset = dataset(&hospital, "identifier").await;
    let empty = risk(&hospital, &dataset).await;
    assert_eq!((&empty["rows"], &empty["subjects"]), (&json!(0), &json!(0)));
    assert_eq!(empty["columns"][0]["unique_share"], 0.0);
    let feasible = json!({ "k_max": 0, "l_max": null, "c_min": null });
    assert_eq!(empty["feasible"], feasible);
    assert_eq!(empty["suggestions"], json!({ "rows": 0, "items": [] }));

    hospital.submit(&dataset, CSV).await.json(201);
    let shown = risk(&hospital, &dataset).await;
    assert_eq!(
        (&shown["subjects"], &shown["feasible"]["k_max"]),
        (&json!(7), &json!(7))
    );
    // The city of both stays of zz-anna is of two rows, so it singles out none.
    assert_eq!(shown["columns"][0]["unique_share"], 0.0);
    assert_eq!(shown["combinations"][0]["unique_share"], 3.0 / 7.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_size_of_combinations_is_chosen_by_l() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    for (l, combinations) in [(1, 0), (2, 3), (3, 4), (6, 4)] {
        let shown = hospital
            .get(&format!("{dataset}/risk?l={l}"))
            .await
            .json(200);
        assert_eq!(
            shown["combinations"].as_array().unwrap().len(),
            combinations
        );
        assert_eq!(shown["combinations_total"], combinations);
        // The share under all three columns does not depend on what is listed.
        assert_eq!(shown["unique_share"], 1.0);
    }
    for query in ["l=0", "l=7", "l=-1", "l=two", "l=1.5", "k=2"] {
        let refused = hospital.get(&format!("{dataset}/risk?{query}")).await;
        refused.problem(400, "invalid_parameter");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_combinations_are_refused_with_a_size_that_is_not() {
    let hospital = Hospital::new().await;
    let columns: Vec<Value> = (0..40)
        .map(|index| json!({ "name": format!("c{index}"), "role": "quasi_identifier" }))
        .collect();
    let body = json!({ "name": "wide", "columns": columns });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    let dataset = format!("/v1/datasets/{}", text(&made["id"]));
    let header: Vec<String> = (0..40).map(|index| format!("c{index}")).collect();
    let row = vec!["x"; 40].join(",");
    let csv = format!("{}\n{row}\n", header.join(","));
    hospital.submit(&dataset, csv).await.json(201);
    let refused = hospital.get(&format!("{dataset}/risk?l=6")).await;
    let problem = refused.problem(422, "limit_exceeded");
    let detail = text(&problem["detail"]);
    assert!(
        detail.contains("500000 combinations") && detail.contains("at most 4"),
        "{detail}"
    );
    let shown = hospital.get(&format!("{dataset}/risk?l=3")).await.json(200);
    assert_eq!(shown["combinations_total"], 780 + 9_880);
    assert_eq!(shown["combinations"].as_array().unwrap().len(), 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_but_its_holder_sees_the_risk_of_a_dataset() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let path = format!("{dataset}/risk");
    let other = hospital.app.token("other", Role::Holder).await;
    let hidden = hospital.app.get(&other, &path).await;
    let unknown = path.replace(id(&dataset), "01900000-0000-7000-8000-000000000000");
    let missing = hospital.app.get(&other, &unknown).await;
    assert_eq!(
        hidden.problem(404, "not_found"),
        missing.problem(404, "not_found")
    );
    for role in [Role::Recipient, Role::Auditor, Role::Admin] {
        let token = hospital.app.token("hospital", role).await;
        hospital
            .app
            .get(&token, &path)
            .await
            .problem(403, "forbidden");
    }
}
