//! Group-based methods over HTTP: anatomized releases of several tables, and local recoding.

use pais::roles::Role;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::app::{send, text};
use crate::hospital::{Hospital, TABLE, id};
use pais_test_support::hex::hex;

/// Two sensitive columns; the name of one must be percent-encoded in a path.
fn definition() -> Value {
    json!({"name": "two sensitive columns", "columns": [
        {"name": "ID", "role": "identifier"},
        {"name": "Job", "role": "quasi_identifier"},
        {"name": "Sex", "role": "quasi_identifier"},
        {"name": "Age", "role": "quasi_identifier", "kind": "numeric", "domain": [1, 99]},
        {"name": "Trans/fuse", "role": "sensitive"},
        {"name": "Surgery", "role": "sensitive"},
    ]})
}

async fn dataset(hospital: &Hospital) -> String {
    let made = hospital.post("/v1/datasets", &definition()).await;
    let dataset = format!("/v1/datasets/{}", text(&made.json(201)["id"]));
    let rows = TABLE.replacen("Transfuse", "Trans/fuse", 1);
    hospital.submit(&dataset, rows).await.json(201);
    dataset
}

async fn release(hospital: &Hospital, job: Value) -> String {
    let dataset = dataset(hospital).await;
    let mut body = job;
    body["dataset_id"] = id(&dataset).into();
    let queued = hospital.post("/v1/jobs", &body).await;
    let job = format!("/v1/jobs/{}", text(&queued.json(202)["id"]));
    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    workers.stop().await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    let steps = hospital.get(&format!("{job}/steps")).await.json(200);
    assert_eq!(steps["items"], json!([]));
    format!("/v1/releases/{}", text(&ended["release_id"]))
}

/// An anatomized release has the tables `qit` and `st_<column>`, and no `/data`. `sha256` is at the
/// top level only for a release of one table, `cut` only with global recoding.
#[tokio::test(flavor = "multi_thread")]
async fn an_anatomized_release_has_several_tables() {
    let hospital = Hospital::new().await;
    let job = json!({"privacy": {"model": "l_diversity", "k": 3, "l": 2,
        "column_limits": {"Trans/fuse": 1}}, "release": true, "seed": 5});
    let release = release(&hospital, job).await;
    let document = hospital.get(&release).await.json(200);
    assert!(document.get("sha256").is_none() && document.get("cut").is_none());
    assert_eq!(document["verification"]["holds"], true);
    assert_eq!(document["rows"], 11);
    let tables = document["tables"].as_array().unwrap();
    let names: Vec<&str> = tables.iter().map(|table| text(&table["name"])).collect();
    assert_eq!(names, ["qit", "st_Trans/fuse", "st_Surgery"]);
    for (table, path) in tables.iter().zip(["qit", "st_Trans%2Ffuse", "st_Surgery"]) {
        let path = format!("{release}/tables/{path}");
        let csv = hospital.get(&path).await;
        assert_eq!(csv.status, 200, "{path}: {}", csv.text);
        assert_eq!(table["sha256"], hex(&Sha256::digest(&csv.bytes)));
        assert_eq!(
            csv.text.lines().count() as u64 - 1,
            table["rows"].as_u64().unwrap()
        );
        for format in ["ndjson", "parquet"] {
            let other = hospital.get(&format!("{path}?format={format}")).await;
            assert_eq!(other.status, 200);
        }
    }
    let qit = hospital.get(&format!("{release}/tables/qit")).await;
    assert!(
        qit.text.starts_with("Job,Sex,Age,group_id\n"),
        "{}",
        qit.text
    );
    let counted = hospital
        .get(&format!("{release}/tables/st_Surgery?format=ndjson"))
        .await;
    let first: Value = serde_json::from_str(counted.text.lines().next().unwrap()).unwrap();
    assert!(
        first["group_id"].is_u64() && first["count"].is_u64(),
        "{first}"
    );
    for path in ["data", "tables/data", "tables/st_Age"] {
        hospital
            .get(&format!("{release}/{path}"))
            .await
            .problem(404, "not_found");
    }
    let missing = hospital.get(&format!("{release}/data")).await;
    let missing = missing.problem(404, "not_found");
    assert!(
        text(&missing["detail"]).contains("/tables/qit"),
        "{missing}"
    );
    // Who may not see the release does not learn that it is anatomized.
    let other = hospital.app.token("other", pais::roles::Role::Holder).await;
    let foreign = hospital.app.get(&other, &format!("{release}/data")).await;
    let foreign = foreign.problem(404, "not_found");
    assert!(!text(&foreign["detail"]).contains("qit"), "{foreign}");
    let report = hospital.get(&format!("{release}/report")).await.json(200);
    assert_eq!(
        report["utility"]["groups"],
        document["verification"]["groups"]
    );
    assert!(report["utility"]["query_error"].is_object(), "{report}");
    let page = hospital
        .app
        .request(Method::GET, &format!("{release}/report"));
    let page = send(
        page.header("accept", "text/html")
            .bearer_auth(&hospital.token),
    )
    .await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("st_Trans/fuse"), "{}", page.text);
    // A later release of the same job has the same seed, and so the same tables.
    let again = json!({"job_id": document["job_id"]});
    let again = hospital.post("/v1/releases", &again).await.json(201);
    assert_eq!(again["tables"], document["tables"]);
    let step = json!({"job_id": document["job_id"], "step": 0});
    hospital
        .post("/v1/releases", &step)
        .await
        .problem(422, "no_such_step");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_covers_every_table_of_a_release() {
    let hospital = Hospital::new().await;
    let recipient = hospital.app.token("bts", Role::Recipient).await;
    let job = json!({"privacy": {"model": "l_diversity", "k": 4, "l": 2}, "release": true});
    let release = release(&hospital, job).await;
    let path = format!("{release}/tables/st_Surgery");
    hospital
        .app
        .get(&recipient, &path)
        .await
        .problem(404, "not_found");
    let grant = json!({"recipient": "bts", "purpose": "a study"});
    hospital
        .post(&format!("{release}/grants"), &grant)
        .await
        .json(201);
    assert_eq!(hospital.app.get(&recipient, &path).await.status, 200);

    // The report of a recipient has nothing that is computed from raw rows.
    let path = format!("{release}/report");
    let own = hospital.get(&path).await.json(200);
    let shown = hospital.app.get(&recipient, &path).await.json(200);
    assert!(own["utility"]["query_error"].is_object(), "{own}");
    let mut expected = own;
    let utility = expected["utility"].as_object_mut().unwrap();
    for field in [
        "query_error",
        "entropy_loss_by_column",
        "frequency_survival_by_column",
    ] {
        utility.remove(field);
    }
    let classification = utility.get_mut("classification_error");
    if let Some(errors) = classification.and_then(Value::as_object_mut) {
        for field in ["be", "ue", "ce_minus_be", "ue_minus_ce"] {
            errors.remove(field);
        }
    }
    assert_eq!(shown, expected);
    for (token, is_shown) in [(&hospital.token, true), (&recipient, false)] {
        let page = hospital.app.request(Method::GET, &path);
        let page = send(page.header("accept", "text/html").bearer_auth(token)).await;
        let text = "For the holder alone";
        assert_eq!(page.text.contains(text), is_shown, "{}", page.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn local_recoding_generalizes_each_group_separately() {
    let hospital = Hospital::new().await;
    let job = json!({"privacy": {"model": "k_anonymity", "k": 3}, "recoding": "local",
        "release": true});
    let release = release(&hospital, job).await;
    let document = hospital.get(&release).await.json(200);
    assert!(document["sha256"].is_string() && document.get("cut").is_none());
    assert!(document["step"].is_null());
    let table = hospital.get(&format!("{release}/data")).await;
    assert_eq!(table.text.lines().count(), 12);
    assert!(table.text.contains("\"["), "{}", table.text);
}

/// A job on a table that cannot meet its model fails with the condition and a parameter that the
/// table can meet. Nothing is released.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_with_too_little_diversity_fails_with_a_suggested_l() {
    let hospital = Hospital::new().await;
    let dataset = dataset(&hospital).await;
    let job = json!({"dataset_id": id(&dataset), "release": true,
        "privacy": {"model": "l_diversity", "k": 2, "l": 9}});
    let queued = hospital.post("/v1/jobs", &job).await;
    let job = format!("/v1/jobs/{}", text(&queued.json(202)["id"]));
    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    workers.stop().await;
    assert_eq!(ended["status"], "failed");
    assert_eq!(ended["error"]["code"], "not_anonymizable");
    assert_eq!(ended["error"]["errors"][0]["pointer"], "/privacy/l");
    let fix = text(&ended["error"]["errors"][0]["suggested_fix"]);
    // Deleting the records of both values of `Trans/fuse` deletes every record, so L is at most 2.
    assert!(fix.contains("lower `l` to at most 2"), "{fix}");
    assert!(ended["release_id"].is_null());
}
