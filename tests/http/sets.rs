//! Datasets with set-valued quasi-identifiers, and pre-generalization, over HTTP.

use serde_json::{Value, json};

use crate::app::text;
use crate::hospital::{Hospital, id};

const ROWS: &str = "id,gender,diseases,drugs\n1,Male,k|l|m,a|b|z\n2,Male,k|l|n,a|z\n\
    3,Female,n|o,c|x|y\n4,Female,m|o,b|x|y\n";

fn definition() -> Value {
    json!({ "name": "receipts", "columns": [
        { "name": "id", "role": "identifier" },
        { "name": "gender", "role": "quasi_identifier" },
        { "name": "diseases", "role": "quasi_identifier", "kind": "set",
          "taxonomy": { "label": "any", "children": [
            { "label": "K", "children": [{ "label": "k" }, { "label": "l" }] },
            { "label": "M", "children": [{ "label": "m" }, { "label": "n" }, { "label": "o" }] },
          ] } },
        { "name": "drugs", "role": "quasi_identifier", "kind": "set" },
    ] })
}

async fn filled(hospital: &Hospital) -> String {
    let made = hospital.post("/v1/datasets", &definition()).await;
    let dataset = format!("/v1/datasets/{}", text(&made.json(201)["id"]));
    hospital.submit(&dataset, ROWS).await.json(201);
    dataset
}

fn job(dataset: &str, extra: Value) -> Value {
    let mut body = json!({ "dataset_id": id(dataset), "release": true,
        "privacy": { "model": "k_anonymity", "k": 2 } });
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_are_released_in_every_format_and_repeatedly() {
    let hospital = Hospital::new().await;
    let dataset = filled(&hospital).await;
    let profile = hospital.get(&format!("{dataset}/profile")).await.json(200);
    assert_eq!(profile["columns"][2]["set_sizes"]["max"], 3, "{profile}");
    let levels = json!({ "diseases": { "level": 1, "values": { "0": ["k", "l"] } } });
    let body = job(&dataset, json!({ "pre_generalization": levels }));
    let queued = hospital.post("/v1/jobs", &body).await.json(202);
    let job = format!("/v1/jobs/{}", text(&queued["id"]));
    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    workers.stop().await;
    assert_eq!(ended["status"], "succeeded", "{ended}");

    let steps = hospital.get(&format!("{job}/steps")).await.json(200);
    assert_eq!(steps["items"], json!([]), "a job without steps");

    let release = format!("/v1/releases/{}", text(&ended["release_id"]));
    let document = hospital.get(&release).await.json(200);
    assert_eq!(
        (&document["rows"], &document["suppressed_rows"]),
        (&json!(4), &json!(0))
    );
    let csv = hospital.get(&format!("{release}/data")).await.text;
    assert_eq!(csv.matches("Male,M|k|l,a|z\n").count(), 2, "{csv}");
    assert_eq!(csv.matches("Female,M,x|y\n").count(), 2, "{csv}");
    let lines = hospital
        .get(&format!("{release}/data?format=ndjson"))
        .await
        .text;
    assert!(
        lines.contains(r#""diseases":["M","k","l"],"drugs":["a","z"]"#),
        "{lines}"
    );
    let parquet = hospital
        .get(&format!("{release}/data?format=parquet"))
        .await;
    assert!(parquet.bytes.starts_with(b"PAR1"));
    let report = hospital.get(&format!("{release}/report")).await.json(200);
    let remain = &report["utility"]["information_remain_by_column"];
    // Two rows release M, k and l with a mean NCP of 0.2, and two release M with 0.6.
    assert!(
        (remain["diseases"].as_f64().unwrap() - 0.6).abs() < 1e-12,
        "{report}"
    );
    // The paper's figure, of all raw items, is for the holder.
    let loss = &report["utility"]["item_loss_by_column"];
    assert_eq!(loss["diseases"], 0.36, "{report}");
    assert_eq!(report["pre_generalization"], levels);

    // A second release of the job has the same rows. The job has no steps to release.
    let again = json!({ "job_id": id(&job) });
    let again = hospital.post("/v1/releases", &again).await.json(201);
    let path = format!("/v1/releases/{}/data", text(&again["id"]));
    let sorted = |csv: &str| {
        let mut lines: Vec<String> = csv.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&hospital.get(&path).await.text), sorted(&csv));
    let stepped = json!({ "job_id": id(&job), "step": 0 });
    hospital
        .post("/v1/releases", &stepped)
        .await
        .problem(422, "no_such_step");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_job_on_sets_is_refused() {
    let hospital = Hospital::new().await;
    let dataset = filled(&hospital).await;
    let lkc = json!({ "model": "lkc", "l": 2, "k": 2, "c": 1.0 });
    let generalized = |rule: Value| json!({ "pre_generalization": { "diseases": rule } });
    for (extra, status, code, pointer) in [
        (
            json!({ "privacy": lkc, "suppression_limit": 0.1 }),
            422,
            "invalid_job",
            "/suppression_limit",
        ),
        (
            json!({ "recoding": "local" }),
            422,
            "invalid_job",
            "/recoding",
        ),
        (
            json!({ "utility": { "objective": "discernibility" } }),
            422,
            "invalid_job",
            "/utility/objective",
        ),
        (
            json!({ "utility": { "weights": { "id": 1 } } }),
            422,
            "invalid_job",
            "/utility/weights/id",
        ),
        (
            json!({ "utility": { "weights": { "drugs": -1 } } }),
            422,
            "invalid_value",
            "/utility/weights/drugs",
        ),
        (
            generalized(json!({ "level": 3 })),
            422,
            "invalid_job",
            "/pre_generalization/diseases/level",
        ),
        (
            generalized(json!({ "values": { "0": ["p"] } })),
            422,
            "invalid_job",
            "/pre_generalization/diseases/values/0/0",
        ),
        (
            generalized(json!({ "values": { "0": ["k"], "1": ["k"] } })),
            422,
            "invalid_job",
            "/pre_generalization/diseases/values/1/0",
        ),
        (
            generalized(json!({ "level": -1 })),
            422,
            "invalid_value",
            "/pre_generalization/diseases/level",
        ),
        (
            json!({ "pre_generalization": { "nothing": { "level": 1 } } }),
            422,
            "invalid_job",
            "/pre_generalization/nothing",
        ),
    ] {
        let answer = hospital
            .post("/v1/jobs", &job(&dataset, extra.clone()))
            .await;
        let problem = answer.problem(status, code);
        assert_eq!(
            problem["errors"][0]["pointer"], pointer,
            "{extra}: {problem}"
        );
    }
    let refused = hospital
        .submit(&dataset, ROWS.replace("n|o", "n|secret"))
        .await;
    let problem = refused.problem(422, "invalid_cells");
    assert_eq!(problem["errors"][0]["line"], 4);
    assert_eq!(problem["errors"][0]["column"], "diseases");
    assert!(!refused.text.contains("secret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn lkc_bounds_what_items_and_values_reveal_together() {
    let hospital = Hospital::new().await;
    let dataset = filled(&hospital).await;
    let lkc = json!({ "model": "lkc", "l": 2, "k": 2, "c": 1.0 });
    let queued = hospital
        .post("/v1/jobs", &job(&dataset, json!({ "privacy": lkc })))
        .await
        .json(202);
    let job = format!("/v1/jobs/{}", text(&queued["id"]));
    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    workers.stop().await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    let release = format!("/v1/releases/{}", text(&ended["release_id"]));
    let document = hospital.get(&release).await.json(200);
    assert_eq!(document["rows"], 4, "{document}");
    let csv = hospital.get(&format!("{release}/data")).await.text;
    // Items that one patient has are hidden. Of the others, each pair of facts has two rows.
    assert_eq!(csv.matches("Male,k|l,a|z\n").count(), 2, "{csv}");
    assert_eq!(csv.matches("Female,o,x|y\n").count(), 2, "{csv}");
}
