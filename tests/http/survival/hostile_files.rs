//! Parquet files that would end the process if they were believed.

use serde_json::json;

use crate::hospital::{TABLE, definition};
use crate::process::{ServiceProcess, call};
use crate::submissions::PARQUET;
use pais_test_support::hostile_parquet::{many_row_groups, nested_groups};

#[tokio::test(flavor = "multi_thread")]
async fn hostile_parquet_files_are_refused_and_the_service_goes_on() {
    let data = tempfile::tempdir().unwrap();
    let mut service = ServiceProcess::start(data.path(), &[]).await;
    let token = service.token("hospital", "holder");
    let client = reqwest::Client::new();
    let datasets = format!("{}/v1/datasets", service.base);
    let made = call(client.post(&datasets).json(&definition("patients")), &token).await;
    let submissions = format!("{datasets}/{}/submissions", made["id"].as_str().unwrap());
    for (file, bound) in [
        (nested_groups(), "more than 16 groups in each other"),
        (many_row_groups(), "claims 400000000 row groups"),
    ] {
        for _ in 0..3 {
            let sent = client
                .post(&submissions)
                .header("content-type", PARQUET)
                .bearer_auth(&token)
                .body(file.clone())
                .send();
            let answer = sent.await.unwrap();
            assert_eq!(answer.status(), 400);
            let problem: serde_json::Value = answer.json().await.unwrap();
            assert_eq!(problem["code"], json!("malformed_body"));
            assert!(
                problem["detail"].as_str().unwrap().contains(bound),
                "{problem}"
            );
        }
        assert!(service.is_running());
    }
    let table = client
        .post(&submissions)
        .header("content-type", "text/csv")
        .body(TABLE);
    assert_eq!(call(table, &token).await["rows"], json!(11));
    service.stop();
}
