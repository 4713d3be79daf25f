//! Datasets with dates, over HTTP: German birth dates and moments of ISO 8601.

use serde_json::{Value, json};

use crate::app::text;
use crate::hospital::{Hospital, id};

const ROWS: &str = "born,seen,discharged\n\
    03.09.1987,2020-05-01T10:00:00Z,2020-05-03\n\
    24.12.1987,2020-05-01 14:30+02:00,2020-05-04\n\
    29.02.1988,2020-06-01T08:00,\n\
    1.1.1990,2020-06-02T08:00:00.500,2020-06-05\n";

fn definition(name: &str) -> Value {
    json!({ "name": name, "columns": [
        { "name": "born", "role": "quasi_identifier", "kind": "date", "format": "%d.%m.%Y" },
        { "name": "seen", "role": "quasi_identifier", "kind": "datetime",
          "domain": ["2020-01-01", "2020-12-31T23:59:59"] },
        { "name": "discharged", "role": "insensitive", "kind": "date" },
    ] })
}

async fn made(hospital: &Hospital, name: &str) -> String {
    let made = hospital.post("/v1/datasets", &definition(name)).await;
    let made = made.json(201);
    assert_eq!(made["columns"][1]["domain"][0], "2020-01-01", "{made}");
    format!("/v1/datasets/{}", text(&made["id"]))
}

/// The lines of a release in the order of their text.
fn sorted(csv: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = csv.lines().collect();
    lines.sort_unstable();
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn dates_are_released_as_intervals_in_every_format() {
    let hospital = Hospital::new().await;
    let dataset = made(&hospital, "visits").await;
    hospital.submit(&dataset, ROWS).await.json(201);
    let profile = hospital.get(&format!("{dataset}/profile")).await.json(200);
    assert_eq!(profile["columns"][0]["earliest"], "1987-09-03", "{profile}");
    assert_eq!(profile["columns"][1]["latest"], "2020-06-02T08:00:00.5");
    assert_eq!(profile["columns"][2]["missing"], 1);

    let workers = hospital.work();
    for (recoding, born, seen) in [
        (
            "global",
            ["\"[1987-09-03,1988-02-29)\"", "\"[1988-02-29,1990-01-01]\""],
            None,
        ),
        (
            "local",
            ["\"[1987-09-03,1987-12-24]\"", "\"[1988-02-29,1990-01-01]\""],
            Some([
                "\"[2020-05-01T10:00:00,2020-05-01T12:30:00]\"",
                "\"[2020-06-01T08:00:00,2020-06-02T08:00:00.5]\"",
            ]),
        ),
    ] {
        let body = json!({ "dataset_id": id(&dataset), "release": true, "recoding": recoding,
            "privacy": { "model": "k_anonymity", "k": 2 } });
        let queued = hospital.post("/v1/jobs", &body).await.json(202);
        let job = format!("/v1/jobs/{}", text(&queued["id"]));
        let ended = hospital.ended(&job).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        let release = format!("/v1/releases/{}", text(&ended["release_id"]));
        let csv = hospital.get(&format!("{release}/data")).await.text;
        let lines = sorted(&csv);
        for (line, exact) in [
            (0, "2020-05-03"),
            (1, "2020-05-04"),
            (2, ""),
            (3, "2020-06-05"),
        ] {
            let found = lines.iter().find(|found| {
                found.starts_with(born[line / 2]) && found.ends_with(&format!(",{exact}"))
            });
            let found = found.unwrap_or_else(|| panic!("{recoding} {line}: {csv}"));
            let seen = seen.map(|seen| seen[line / 2]);
            assert!(seen.is_none_or(|seen| found.contains(seen)), "{csv}");
        }
        let lines = hospital.get(&format!("{release}/data?format=ndjson")).await;
        assert!(
            lines.text.contains(r#""discharged":null"#),
            "{}",
            lines.text
        );
        assert!(
            lines.text.contains(r#""born":"[1987-09-03,"#),
            "{}",
            lines.text
        );
        let parquet = hospital
            .get(&format!("{release}/data?format=parquet"))
            .await;
        assert!(parquet.bytes.starts_with(b"PAR1"));
        let report = hospital.get(&format!("{release}/report")).await.json(200);
        let ncp = report["utility"]["ncp_by_column"]["born"].as_f64().unwrap();
        assert!(ncp > 0.0 && ncp < 1.0, "{report}");
    }
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cell_that_is_no_date_is_refused_and_not_quoted() {
    let hospital = Hospital::new().await;
    let dataset = made(&hospital, "wrong").await;
    let file = "born,seen,discharged\n03.09.1987,2020-05-01T10:00,2020-05-03\n\
                30.02.1987,2020-05-01T10:00,03.05.2020\n";
    let refused = hospital.submit(&dataset, file).await;
    assert!(!refused.text.contains("30.02") && !refused.text.contains("03.05"));
    let problem = refused.problem(422, "invalid_cells");
    let errors = problem["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 2, "{problem}");
    assert_eq!(
        (&errors[0]["line"], &errors[0]["column"]),
        (&json!(3), &json!("born"))
    );
    assert!(
        text(&errors[1]["suggested_fix"]).contains("`format`"),
        "{problem}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_format_that_determines_no_date_is_refused_with_its_pointer() {
    let hospital = Hospital::new().await;
    for (format, pointer) in [
        ("%d.%m.", "/columns/0/format"),
        ("%Y-%d-%m", "/columns/0/format"),
    ] {
        let mut body = definition("refused");
        body["columns"][0]["format"] = json!(format);
        let refused = hospital.post("/v1/datasets", &body).await;
        assert!(refused.text.contains(pointer), "{}", refused.text);
        assert_eq!(refused.status.as_u16(), 422);
    }
}
