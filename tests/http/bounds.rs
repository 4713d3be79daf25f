//! `?intervals=bounds`: the bounds of released numbers and dates as columns.

use serde_json::{Value, json};

use crate::app::text;
use crate::hospital::{Hospital, id};

/// The path of a release of these rows with 2-anonymity.
async fn release(hospital: &Hospital, columns: Value, rows: &str) -> String {
    let name = format!("bounds {}", uuid::Uuid::new_v4());
    let dataset = json!({"name": name, "columns": columns});
    let dataset = hospital.post("/v1/datasets", &dataset).await.json(201);
    let dataset = format!("/v1/datasets/{}", text(&dataset["id"]));
    hospital.submit(&dataset, rows.to_owned()).await.json(201);
    let job = json!({"dataset_id": id(&dataset), "release": true, "seed": 1,
        "privacy": {"model": "k_anonymity", "k": 2}});
    let job = hospital.post("/v1/jobs", &job).await.json(202);
    let workers = hospital.work();
    let ended = hospital
        .ended(&format!("/v1/jobs/{}", text(&job["id"])))
        .await;
    workers.stop().await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    format!("/v1/releases/{}", text(&ended["release_id"]))
}

fn columns() -> Value {
    json!([
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]},
        {"name": "born", "role": "quasi_identifier", "kind": "date",
         "taxonomy": {"generate": "calendar", "levels": ["quarter", "year"]}},
        {"name": "job", "role": "quasi_identifier"},
        {"name": "units", "role": "insensitive", "kind": "numeric"},
    ])
}

const ROWS: &str = "age,born,job,units\n\
    21,1987-08-01,nurse,1\n22,1987-07-30,nurse,2\n61,1987-09-11,nurse,3\n62,1987-09-12,nurse,4\n";

#[tokio::test(flavor = "multi_thread")]
async fn bounds_are_columns_beside_the_labels_in_every_format() {
    let hospital = Hospital::new().await;
    let release = release(&hospital, columns(), ROWS).await;
    let data = format!("{release}/data");
    let plain = hospital.get(&data).await;
    assert_eq!(plain.text.lines().next(), Some("age,born,job,units"));
    let bounds = hospital.get(&format!("{data}?intervals=bounds")).await;
    let header = "age,age_lo,age_hi,born,born_lo,born_hi,job,units";
    assert_eq!(bounds.text.lines().next(), Some(header));
    assert_ne!(bounds.header("etag"), plain.header("etag"));
    let cut = hospital.get(&release).await.json(200)["cut"].clone();
    let ages = cut["age"].as_array().unwrap();
    for line in bounds.text.lines().skip(1) {
        let has_days = line.contains(",1987-Q3,1987-07-01,1987-09-30,");
        assert!(has_days, "a line without the days of its quarter");
    }
    for label in ages {
        let ends = text(label).trim_matches(['[', ')', ']']);
        let expected = format!("\"{}\",{ends},", text(label));
        assert!(
            bounds.text.contains(&expected),
            "{label} has no bounds {ends}"
        );
    }

    let table = format!("{release}/tables/data?intervals=bounds");
    assert_eq!(hospital.get(&table).await.text, bounds.text);
    let ndjson = hospital
        .get(&format!("{data}?intervals=bounds&format=ndjson"))
        .await;
    for line in ndjson.text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        assert!(row["age_lo"].is_number() && row["age_hi"].is_number());
        assert_eq!(row["born_lo"], "1987-07-01");
        assert_eq!(row["born_hi"], "1987-09-30");
        assert!(row.get("job_lo").is_none() && row.get("units_lo").is_none());
    }
    let parquet = hospital
        .get(&format!("{data}?intervals=bounds&format=parquet"))
        .await;
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(
        parquet.bytes.clone(),
    );
    let schema = reader.unwrap().schema().clone();
    let kinds: Vec<String> = schema
        .fields()
        .iter()
        .map(|field| format!("{} {}", field.name(), field.data_type()))
        .collect();
    assert_eq!(
        kinds,
        [
            "age Utf8",
            "age_lo Int64",
            "age_hi Int64",
            "born Utf8",
            "born_lo Date32",
            "born_hi Date32",
            "job Utf8",
            "units Int64",
        ]
    );
    let safe = hospital
        .get(&format!("{data}?intervals=bounds&safe_csv=true"))
        .await;
    assert_eq!(safe.text, bounds.text);
    assert_ne!(safe.header("etag"), bounds.header("etag"));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_word_and_a_name_that_is_taken_are_refused() {
    let hospital = Hospital::new().await;
    let mut columns = columns();
    columns[3]["name"] = json!("age_hi");
    let rows = ROWS.replacen("units", "age_hi", 1);
    let release = release(&hospital, columns, &rows).await;
    let refused = hospital
        .get(&format!("{release}/data?intervals=ends"))
        .await;
    refused.problem(400, "invalid_parameter");
    let taken = hospital
        .get(&format!("{release}/data?intervals=bounds"))
        .await;
    let problem = taken.problem(422, "invalid_value");
    assert!(text(&problem["detail"]).contains("`age_hi`"), "{problem}");
    assert_eq!(hospital.get(&format!("{release}/data")).await.status, 200);
}
