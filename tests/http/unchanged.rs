//! Columns that are released unchanged: keys are refused unless the job says why, numbers are rounded,
//! and reports say what the columns single out. Figures are recounted from the served rows.

use std::collections::HashMap;

use pais::roles::Role;
use serde_json::{Value, json};

use crate::app::{send, text};
use crate::hospital::{Hospital, id};
use reqwest::Method;

/// 40 rows with a file number that no other row has, costs that are distinct, two illnesses, and
/// five wards.
fn rows(from: usize) -> String {
    let mut csv = "age,illness,file,cost,ward\n".to_owned();
    for row in from..from + 40 {
        let (age, ill) = (20 + row % 5, ["flu", "cold"][row % 2]);
        let cost = 1_000 + 37 * row;
        csv += &format!("{age},{ill},f{row},{cost},w{}\n", row % 5);
    }
    csv
}

async fn dataset(hospital: &Hospital, cost: Value) -> String {
    let mut cost = cost;
    cost["name"] = json!("cost");
    cost["kind"] = json!("numeric");
    let body = json!({ "name": format!("unchanged {}", uuid::Uuid::new_v4()), "columns": [
        { "name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99] },
        { "name": "illness", "role": "sensitive" },
        { "name": "file", "role": "insensitive" },
        cost,
        { "name": "ward", "role": "insensitive" },
    ] });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    format!("/v1/datasets/{}", text(&made["id"]))
}

fn job(dataset: &str, extra: Value) -> Value {
    let mut body = json!({ "dataset_id": id(dataset), "release": true,
        "privacy": { "model": "k_anonymity", "k": 4 } });
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// The columns that refuse a job.
async fn refused(hospital: &Hospital, body: &Value) -> Vec<String> {
    let answer = hospital.post("/v1/jobs", body).await;
    assert!(!answer.text.contains("f1"), "a value is shown");
    let problem = answer.problem(422, "unchanged_key");
    let faults = problem["errors"].as_array().unwrap().iter();
    let named = faults.map(|fault| {
        let pointer = text(&fault["pointer"]);
        let column = pointer.strip_prefix("/acknowledge_unchanged/").unwrap();
        let detail = text(&fault["detail"]);
        assert!(detail.contains(&format!("`{column}`")), "{detail}");
        column.to_owned()
    });
    named.collect()
}

async fn released(hospital: &Hospital, body: &Value) -> (String, Value) {
    let queued = hospital.post("/v1/jobs", body).await.json(202);
    let job = format!("/v1/jobs/{}", text(&queued["id"]));
    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    workers.stop().await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    let release = format!("/v1/releases/{}", text(&ended["release_id"]));
    (release, ended)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_refuses_the_job_until_a_reason_is_given() {
    let hospital = Hospital::new().await;
    let dataset = dataset(&hospital, json!({ "role": "insensitive" })).await;
    hospital.submit(&dataset, rows(0)).await.json(201);
    let other = hospital.submit(&dataset, rows(0)).await.json(201);

    // Each file is in two rows now, and in one of a submission alone.
    let all = job(&dataset, json!({}));
    hospital.post("/v1/jobs", &all).await.json(202);
    let only = json!({ "submissions": [other["id"]] });
    let one = job(&dataset, only.clone());
    assert_eq!(refused(&hospital, &one).await, ["file", "cost"]);

    // As a quasi-identifier the column is generalized.
    let mut roles = one.clone();
    roles["roles"] = json!({ "file": "quasi_identifier" });
    assert_eq!(refused(&hospital, &roles).await, ["cost"]);
    // A sensitive column is released unchanged, too, and so is the class.
    roles["roles"] = json!({ "file": "sensitive", "cost": "class" });
    assert_eq!(refused(&hospital, &roles).await, ["file", "cost"]);

    for (reasons, code) in [
        (json!({ "files": "needed" }), "invalid_job"),
        (json!({ "file": "needed", "cost": " " }), "invalid_value"),
        (json!({ "file": 1 }), "invalid_shape"),
    ] {
        let mut wrong = one.clone();
        wrong["acknowledge_unchanged"] = reasons;
        let status = if code == "invalid_shape" { 400 } else { 422 };
        hospital
            .post("/v1/jobs", &wrong)
            .await
            .problem(status, code);
    }

    let mut known = one;
    known["acknowledge_unchanged"] = json!({ "file": "only the study can read it" });
    assert_eq!(refused(&hospital, &known).await, ["cost"]);
    let reasons = json!({ "file": "only the study can read it", "cost": "the question is cost" });
    known["acknowledge_unchanged"] = reasons.clone();
    // It is generalized: the report does not say that it is released unchanged for a reason.
    known["acknowledge_unchanged"]["age"] = json!("all columns are known");
    let (release, ended) = released(&hospital, &known).await;
    let given = &ended["definition"]["acknowledge_unchanged"];
    assert_eq!(given, &known["acknowledge_unchanged"]);

    let auditor = hospital.app.token("hospital", Role::Auditor).await;
    let log = hospital
        .app
        .get(&auditor, "/v1/audit?action=job.created")
        .await;
    let events = log.json(200)["items"].as_array().unwrap().clone();
    let recorded = |event: &&Value| event["detail"]["acknowledge_unchanged"] == *given;
    assert_eq!(events.iter().filter(recorded).count(), 1, "{events:?}");

    let grant = json!({ "recipient": "bts", "purpose": "a study" });
    let recipient = hospital.app.token("bts", Role::Recipient).await;
    let grants = format!("{release}/grants");
    hospital.post(&grants, &grant).await.json(201);
    let path = format!("{release}/report");
    let report = hospital.get(&path).await.json(200);
    assert_eq!(report["acknowledged_unchanged"], reasons);
    let shown = hospital.app.get(&recipient, &path).await;
    assert!(!shown.text.contains("only the study"), "{}", shown.text);
    for field in ["unchanged", "attribute"] {
        assert_eq!(shown.json(200)["risk"][field], report["risk"][field]);
    }
    assert_eq!(shown.json(200)["verdict"], "holds_but_singles_out");

    let page = hospital.app.request(Method::GET, &path);
    let page = page
        .header("accept", "text/html")
        .bearer_auth(&hospital.token);
    let page = send(page).await.text;
    let verdict = "The released table meets its privacy model, but what is released unchanged \
                   singles out 100 % of its records.";
    assert!(page.contains(verdict), "{page}");
    assert!(page.contains("only the study can read it"), "{page}");
}

/// The rows of a release by the texts of some columns.
fn records(csv: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    let at = |name: &&str| header.iter().position(|column| column == *name).unwrap();
    let places: Vec<usize> = columns.iter().map(at).collect();
    let records = reader.records().map(|record| {
        let record = record.unwrap();
        places
            .iter()
            .map(|&place| record[place].to_owned())
            .collect()
    });
    records.collect()
}

/// The share of the rows that no other row is equal to.
fn unique_share(records: &[Vec<String>]) -> f64 {
    let mut rows: HashMap<&[String], u32> = HashMap::new();
    records
        .iter()
        .for_each(|record| *rows.entry(record).or_default() += 1);
    let alone = records.iter().filter(|record| rows[record.as_slice()] == 1);
    alone.count() as f64 / records.len() as f64
}

#[tokio::test(flavor = "multi_thread")]
async fn rounded_numbers_are_released_in_each_format_and_reports_count_what_is_released() {
    let hospital = Hospital::new().await;
    for role in ["insensitive", "sensitive", "class"] {
        let dataset = dataset(&hospital, json!({ "role": role, "round": 500 })).await;
        hospital.submit(&dataset, rows(0)).await.json(201);
        let before = hospital.get(&format!("{dataset}/risk")).await.json(200);
        let body = job(
            &dataset,
            json!({ "acknowledge_unchanged": { "file": "a study" } }),
        );
        let (release, _) = released(&hospital, &body).await;
        let data = |format: &str| format!("{release}/data?format={format}");
        let csv = hospital.get(&data("csv")).await.text;
        let mut costs: Vec<i64> = records(&csv, &["cost"])
            .iter()
            .map(|record| record[0].parse().unwrap())
            .collect();
        let rounded = (0..40).map(|row| (1_000 + 37 * row + 250) / 500 * 500);
        let mut expected: Vec<i64> = rounded.collect();
        costs.sort_unstable();
        expected.sort_unstable();
        assert_eq!(costs, expected, "{role}");
        let ndjson = hospital.get(&data("ndjson")).await.text;
        let mut numbers: Vec<i64> = ndjson
            .lines()
            .map(|line| {
                serde_json::from_str::<Value>(line).unwrap()["cost"]
                    .as_i64()
                    .unwrap()
            })
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, expected, "{role}");

        let report = hospital.get(&format!("{release}/report")).await.json(200);
        let unchanged = &report["risk"]["unchanged"];
        let columns = ["illness", "file", "cost", "ward"];
        assert_eq!(unchanged["columns"], json!(columns));
        assert_eq!(
            unchanged["singled_out_share"],
            unique_share(&records(&csv, &columns))
        );
        for column in columns {
            let share = unique_share(&records(&csv, &[column]));
            assert_eq!(unchanged["by_column"][column], share, "{column}");
        }
        let telling = unchanged["most_telling"]["columns"].as_array().unwrap();
        let telling: Vec<&str> = telling.iter().map(text).collect();
        assert_eq!((telling.len(), telling[0]), (3, "file"));
        let share = unique_share(&records(&csv, &telling));
        assert_eq!(unchanged["most_telling"]["singled_out_share"], share);
        // No row is suppressed, so the raw rows say the same.
        assert_eq!(&before["unchanged"], unchanged);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_risk_of_an_anatomized_release_is_that_of_its_exact_rows() {
    let hospital = Hospital::new().await;
    let dataset = dataset(&hospital, json!({ "role": "quasi_identifier" })).await;
    hospital.submit(&dataset, rows(0)).await.json(201);
    let body = job(
        &dataset,
        json!({
        "privacy": { "model": "l_diversity", "k": 4, "l": 2 },
        "acknowledge_unchanged": { "file": "a study" } }),
    );
    let (release, _) = released(&hospital, &body).await;
    let qit = hospital.get(&format!("{release}/tables/qit")).await.text;
    let report = hospital.get(&format!("{release}/report")).await.json(200);
    let risk = &report["risk"];
    // The costs are exact and distinct.
    assert_eq!(unique_share(&records(&qit, &["age", "cost"])), 1.0);
    for figure in ["highest", "average", "prosecutor", "journalist", "marketer"] {
        assert_eq!(risk[figure], 1.0, "{figure}");
    }
    assert_eq!(risk["records_at_highest"], 40);
    assert!(
        report["utility"]["smallest_group"].as_u64() >= Some(4),
        "{report}"
    );
    // Sensitive columns are in tables of their own.
    assert_eq!(risk["unchanged"]["columns"], json!(["file", "ward"]));

    // The greatest share of an illness in a group.
    let counts = hospital
        .get(&format!("{release}/tables/st_illness"))
        .await
        .text;
    let mut sizes: HashMap<String, (f64, f64)> = HashMap::new();
    for record in records(&counts, &["group_id", "count"]) {
        let count: f64 = record[1].parse().unwrap();
        let (sum, most) = sizes.entry(record[0].clone()).or_default();
        *sum += count;
        *most = most.max(count);
    }
    let highest = sizes
        .values()
        .map(|(sum, most)| most / sum)
        .fold(0.0, f64::max);
    assert_eq!(
        risk["attribute"],
        json!({ "highest": highest, "column": "illness" })
    );

    let page = hospital
        .app
        .request(Method::GET, &format!("{release}/report"));
    let page = page
        .header("accept", "text/html")
        .bearer_auth(&hospital.token);
    let page = send(page).await.text;
    assert!(
        page.contains("with certainty for the most exposed records"),
        "{page}"
    );
    assert!(
        page.contains("What is protected is the link to sensitive values"),
        "{page}"
    );
}
