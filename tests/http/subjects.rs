//! A column of the role `subject`: what is stored of it, and what the profile says of the persons.

use std::collections::BTreeSet;
use std::sync::Arc;

use pais::db::submissions::Which;
use pais::db::{datasets, organizations};
use pais::engine::load_rows;
use pais_anonymize::Unobserved;
use pais_core::definition::DatasetId;
use pais_core::table::Table;
use serde_json::{Value, json};

use crate::app::text;
use crate::hospital::{Hospital, id};
use crate::submissions::NDJSON;

const CSV: &str = "patient,age,illness\nzz-anna,34,flu\nzz-bert,41,flu\nzz-anna,35,cold\n";

/// The path of a dataset with a subject column.
async fn dataset(hospital: &Hospital, name: &str) -> String {
    let body = json!({ "name": name, "columns": [
        { "name": "patient", "role": "subject" },
        { "name": "age", "role": "quasi_identifier", "kind": "numeric" },
        { "name": "illness", "role": "sensitive" },
    ] });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    format!("/v1/datasets/{}", text(&made["id"]))
}

/// The rows of a dataset as a job reads them.
async fn stored(hospital: &Hospital, dataset: &str) -> Table {
    let service = hospital.app.state.unscoped();
    let organization = organizations::find(service.db.owner(), "hospital").await;
    let organization = organization.unwrap().unwrap().id;
    let dataset = DatasetId(id(dataset).parse().unwrap());
    let dataset = datasets::load(&service.db, organization, dataset).await;
    let dataset = dataset.unwrap().unwrap();
    let (store, keys) = (&service.db, &service.keys);
    load_rows::load(
        store,
        keys,
        &dataset,
        Which::Current,
        Arc::new(Unobserved::default()),
    )
    .await
    .unwrap()
}

async fn profile(hospital: &Hospital, dataset: &str) -> Value {
    hospital
        .get(&format!("{dataset}/profile"))
        .await
        .json(200)
        .clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_stored_as_a_keyed_hash_that_is_the_same_in_all_submissions() {
    let hospital = Hospital::new().await;
    let dataset = dataset(&hospital, "stays").await;
    hospital.submit(&dataset, CSV).await.json(201);
    // The same persons, in another spelling and another format, and a third one.
    let ndjson = "{\"illness\":\"flu\",\"patient\":\" zz-bert\",\"age\":60}\n\
                  {\"illness\":\"flu\",\"patient\":\"zz-cleo\",\"age\":61}\n";
    let headers = [("content-type", NDJSON)];
    let sent = hospital.submit_with(&dataset, &headers, ndjson).await;
    sent.json(201);

    let patients = &stored(&hospital, &dataset).await.columns[0];
    let hashes: BTreeSet<&str> = patients.dictionary.iter().map(AsRef::as_ref).collect();
    assert_eq!(hashes.len(), 3);
    let is_hash = |text: &&str| text.len() == 32 && text.bytes().all(|it| it.is_ascii_hexdigit());
    assert!(hashes.iter().all(is_hash), "{hashes:?}");
    let of = |row: usize| patients.text(row).unwrap();
    let mut by_age: Vec<&str> = (0..5).map(of).collect();
    by_age.sort_unstable();
    by_age.dedup_by(|one, other| one == other);
    assert_eq!(by_age.len(), 3);

    // Another dataset has another key, so its persons cannot be linked with these.
    let other = self::dataset(&hospital, "other stays").await;
    hospital.submit(&other, CSV).await.json(201);
    let others = &stored(&hospital, &other).await.columns[0];
    assert_eq!(others.dictionary.len(), 2);
    assert!(others.dictionary.iter().all(|it| !hashes.contains(&**it)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_profile_counts_persons_and_names_none() {
    let hospital = Hospital::new().await;
    let dataset = dataset(&hospital, "stays").await;
    let empty = profile(&hospital, &dataset).await;
    let counts = |profile: &Value| {
        ["subjects", "rows_per_subject_max", "shared_subjects"].map(|name| profile[name].clone())
    };
    assert_eq!(counts(&empty), [json!(0), json!(0), json!(0)]);
    hospital.submit(&dataset, CSV).await.json(201);
    let first = profile(&hospital, &dataset).await;
    assert_eq!(counts(&first), [json!(2), json!(2), json!(0)]);
    let second = "patient,age,illness\nzz-anna,36,flu\nzz-cleo,20,flu\nzz-anna,37,cold\n";
    hospital.submit(&dataset, second).await.json(201);
    let both = profile(&hospital, &dataset).await;
    assert_eq!(counts(&both), [json!(3), json!(4), json!(1)]);
    let column = &both["columns"][0];
    assert_eq!(
        (&column["role"], &column["distinct"]),
        (&json!("subject"), &json!(3))
    );
    assert!(both.get("identifier_repeats").is_none());
    let shown = both.to_string();
    let hashes = stored(&hospital, &dataset).await.columns[0]
        .dictionary
        .clone();
    for private in hashes
        .iter()
        .map(AsRef::as_ref)
        .chain(["zz-anna", "zz-bert"])
    {
        assert!(!shown.contains(private), "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_whose_id_is_a_number_is_one_person_however_it_is_written() {
    let hospital = Hospital::new().await;
    let dataset = dataset(&hospital, "stays").await;
    let csv = "patient,age,illness\n1,34,flu\n2.0,41,flu\n1.0,35,cold\n";
    hospital.submit(&dataset, csv).await.json(201);
    let ndjson = "{\"patient\":1.0,\"age\":60,\"illness\":\"flu\"}\n\
                  {\"patient\":\"1\",\"age\":61,\"illness\":\"flu\"}\n";
    let headers = [("content-type", NDJSON)];
    let sent = hospital.submit_with(&dataset, &headers, ndjson).await;
    sent.json(201);
    let profile = profile(&hospital, &dataset).await;
    assert_eq!(profile["subjects"], 2);
    assert_eq!(profile["rows_per_subject_max"], 4);
    assert_eq!(profile["warnings"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_profile_warns_of_persons_that_differ_only_in_case_or_leading_zeros() {
    let hospital = Hospital::new().await;
    for [one, other] in [["zz-anna", "ZZ-Anna"], ["7", "007"]] {
        let dataset = dataset(&hospital, one).await;
        let rows = |ids: [&str; 2]| {
            format!(
                "patient,age,illness\n{},34,flu\n{},41,flu\n",
                ids[0], ids[1]
            )
        };
        hospital.submit(&dataset, rows([one, "x"])).await.json(201);
        let before = profile(&hospital, &dataset).await;
        assert_eq!(before["warnings"], json!([]));
        hospital
            .submit(&dataset, rows([one, other]))
            .await
            .json(201);
        let profile = profile(&hospital, &dataset).await;
        assert_eq!(profile["subjects"], 3);
        assert_eq!(profile["warnings"][0]["code"], "similar_subjects");
        let detail = text(&profile["warnings"][0]["detail"]);
        assert!(detail.contains("`patient`"), "{detail}");
        assert!(!detail.contains(one) && !detail.contains(other), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_without_a_subject_is_refused_and_no_person_is_named() {
    let hospital = Hospital::new().await;
    let dataset = dataset(&hospital, "stays").await;
    let rows = "patient,age,illness\nzz-anna,34,flu\n ,41,flu\n";
    let null = "{\"patient\":\"zz-anna\",\"age\":34,\"illness\":\"flu\"}\n\
                {\"patient\":null,\"age\":41,\"illness\":\"flu\"}\n";
    for (media, body, line) in [("text/csv", rows, 3), (NDJSON, null, 2)] {
        let headers = [("content-type", media)];
        let refused = hospital.submit_with(&dataset, &headers, body).await;
        let problem = refused.problem(422, "invalid_cells");
        let fault = &problem["errors"][0];
        assert_eq!(
            (&fault["line"], &fault["column"]),
            (&json!(line), &json!("patient"))
        );
        assert!(!refused.text.contains("zz-anna"), "{}", refused.text);
    }
    assert_eq!(hospital.get(&dataset).await.json(200)["rows"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identifier_that_repeats_is_counted_and_a_subject_is_suggested() {
    let hospital = Hospital::new().await;
    let body = json!({ "name": "stays", "columns": [
        { "name": "record", "role": "identifier" },
        { "name": "patient", "role": "identifier" },
        { "name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99] },
    ] });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    let dataset = format!("/v1/datasets/{}", text(&made["id"]));
    assert!(
        profile(&hospital, &dataset)
            .await
            .get("identifier_repeats")
            .is_none()
    );

    let once = "record,patient,age\n1,zz-anna,34\n2,zz-bert,35\n3,,36\n4,,37\n";
    hospital.submit(&dataset, once).await.json(201);
    let shown = profile(&hospital, &dataset).await;
    assert_eq!(
        shown["identifier_repeats"],
        json!({ "record": 0, "patient": 0 })
    );
    assert_eq!(shown["warnings"], json!([]));

    let twice = "patient,age,record\nzz-anna,34,1\nzz-bert,35,2\nzz-anna,36,3\nzz-anna,37,4\n";
    hospital.submit(&dataset, twice).await.json(201);
    let shown = profile(&hospital, &dataset).await;
    assert_eq!(
        shown["identifier_repeats"],
        json!({ "record": 0, "patient": 2 })
    );
    let warnings = shown["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{shown}");
    assert_eq!(warnings[0]["code"], "repeated_identifier");
    let detail = text(&warnings[0]["detail"]);
    assert!(
        detail.contains("`patient`") && detail.contains("2 of 4 rows"),
        "{detail}"
    );
    assert!(detail.contains("`subject`"), "{detail}");
    assert!(!shown.to_string().contains("zz-anna"), "{shown}");
    let listed = hospital.get(&dataset).await.json(200);
    assert_eq!(listed["warnings"][0], warnings[0]);
    // A third submission adds its own rows, and identifiers are compared within a submission only.
    hospital.submit(&dataset, twice).await.json(201);
    let shown = profile(&hospital, &dataset).await;
    assert_eq!(
        shown["identifier_repeats"],
        json!({ "record": 0, "patient": 4 })
    );
}
