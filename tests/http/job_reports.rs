//! The report that a release would have, and the distributions of the report of one.

use pais::roles::Role;
use serde_json::{Value, json};

use crate::app::text;
use crate::hospital::{Hospital, id};

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_measured_as_its_release_is_and_nothing_is_released() {
    let hospital = Hospital::new().await;
    let job = hospital.done(json!({ "seed": 5 })).await;
    let last = hospital.get(&format!("{job}/report")).await.json(200);
    let earlier = hospital.get(&format!("{job}/report?step=1")).await;
    let earlier = earlier.json(200);
    let releases = hospital.get("/v1/releases").await.json(200);
    assert_eq!(releases["items"], json!([]));
    for (step, measured) in [(Value::Null, &last), (json!(1), &earlier)] {
        let body = json!({ "job_id": id(&job), "step": step });
        let release = hospital.post("/v1/releases", &body).await.json(201);
        let path = format!("/v1/releases/{}/report", text(&release["id"]));
        assert_eq!(&hospital.get(&path).await.json(200), measured);
        // Labels are raw values: they are for the holder alone.
        let columns = measured["distributions"].as_array().unwrap();
        let names: Vec<&str> = columns.iter().map(|one| text(&one["column"])).collect();
        assert_eq!(names, ["Job", "Sex", "Age"]);
        let recipient = hospital.app.token("bts", Role::Recipient).await;
        let grant = json!({ "recipient": "bts", "purpose": "care" });
        let grants = format!("/v1/releases/{}/grants", text(&release["id"]));
        hospital.post(&grants, &grant).await.json(201);
        let shown = hospital.app.get(&recipient, &path).await.json(200);
        assert_eq!(shown.get("distributions"), None);
    }
    assert!(last["utility"]["ncp"].as_f64() < earlier["utility"]["ncp"].as_f64());

    let missing = hospital.get(&format!("{job}/report?step=99")).await;
    missing.problem(422, "no_such_step");
    let other = hospital.app.token("elsewhere", Role::Holder).await;
    let foreign = hospital.app.get(&other, &format!("{job}/report")).await;
    foreign.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_combination_of_a_sweep_is_measured() {
    let hospital = Hospital::new().await;
    let privacy = json!({ "model": "lkc", "l": 2, "k": [2, 3, 12], "c": 0.5,
                          "sensitive_values": { "Surgery": ["Transgender"] } });
    let job = hospital.done(json!({ "privacy": privacy })).await;
    let sweep = hospital.get(&format!("{job}/sweep")).await.json(200);
    for item in sweep["items"].as_array().unwrap() {
        let path = format!("{job}/report?k={}", item["k"]);
        let answer = hospital.get(&path).await;
        if item["status"] == "failed" {
            answer.problem(409, "job_not_succeeded");
        } else {
            assert_eq!(answer.json(200)["utility"]["groups"], item["groups"]);
        }
    }
    let ambiguous = hospital.get(&format!("{job}/report")).await;
    ambiguous.problem(422, "invalid_job");
}

/// The attack: a value that many rows of one patient have was shown as a frequent one.
#[tokio::test(flavor = "multi_thread")]
async fn distributions_name_no_value_of_few_persons() {
    let hospital = Hospital::new().await;
    let leaf = |label: &str| json!({ "label": label });
    let towns = json!({ "label": "*", "children": [leaf("A"), leaf("B"), leaf("Z")] });
    let body = json!({ "name": "patients", "columns": [
        { "name": "patient", "role": "subject" },
        { "name": "town", "role": "quasi_identifier", "taxonomy": towns },
        { "name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 100] },
    ] });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    let dataset = format!("/v1/datasets/{}", text(&made["id"]));
    let patients = (0..20).map(|at| format!("p{at},{},{}\n", ["A", "B"][at % 2], 20 + at % 3));
    let alone = "alone,Z,95\n".repeat(30);
    let rows = format!("patient,town,age\n{}{alone}", patients.collect::<String>());
    hospital.submit(&dataset, rows).await.json(201);
    let job = json!({ "privacy": { "model": "k_anonymity", "k": 2 } });
    let job = hospital.job(&dataset, job).await;
    let workers = hospital.work();
    hospital.ended(&job).await;
    workers.stop().await;
    let report = hospital.get(&format!("{job}/report")).await.json(200);
    let labels = |at: usize| -> Vec<(&str, f64)> {
        let raw = report["distributions"][at]["raw"].as_array().unwrap();
        let raw = raw.iter();
        raw.map(|it| (text(&it["label"]), it["share"].as_f64().unwrap()))
            .collect()
    };
    assert_eq!(labels(0), [("A", 0.2), ("B", 0.2)]);
    let ages = labels(1);
    assert_eq!(ages.len(), 1, "{ages:?}");
    assert_eq!(ages[0].1, 0.4);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_measuring_of_a_table_is_in_the_log() {
    let hospital = Hospital::new().await;
    let job = hospital.done(json!({})).await;
    hospital
        .get(&format!("{job}/report?step=0"))
        .await
        .json(200);
    let auditor = hospital.app.token("hospital", Role::Auditor).await;
    let log = hospital
        .app
        .get(&auditor, "/v1/audit?action=job_report.read")
        .await;
    let log = log.json(200);
    assert_eq!(log["items"][0]["subject"], id(&job), "{log}");
    assert_eq!(log["items"].as_array().unwrap().len(), 1);
}
