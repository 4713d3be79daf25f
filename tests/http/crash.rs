//! The program is killed in the middle of a job and started again on the same data directory.

use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{ServiceProcess, call};
use pais_test_support::adult;
use pais_test_support::poll::poll_async;

/// The body of `POST /v1/datasets` for Adult, without taxonomies.
fn adult_without_taxonomies() -> Value {
    let mut dataset = adult::dataset("adult").unwrap();
    for column in dataset["columns"].as_array_mut().unwrap() {
        column.as_object_mut().unwrap().remove("taxonomy");
    }
    dataset
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_interrupted_by_a_crash_is_finished_once() {
    const COPIES: u64 = 8;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = ServiceProcess::start(&data, &[]).await;
    let token = service.token("hospital", "holder");
    let client = reqwest::Client::new();

    let definition = adult_without_taxonomies();
    let dataset = call(
        client
            .post(format!("{}/v1/datasets", service.base))
            .json(&definition),
        &token,
    );
    let dataset = dataset.await["id"].as_str().unwrap().to_owned();
    let rows = adult::csv().unwrap();
    for _ in 0..COPIES {
        let request = client
            .post(format!(
                "{}/v1/datasets/{dataset}/submissions?allow_duplicate=true",
                service.base
            ))
            .header("content-type", "text/csv")
            .body(rows.clone());
        call(request, &token).await;
    }
    let job = json!({
        "dataset_id": dataset,
        "privacy": {"model": "lkc", "l": 4, "k": 20, "c": 1.0},
        "utility": {"objective": "discernibility"},
        "release": true,
    });
    let job = call(
        client.post(format!("{}/v1/jobs", service.base)).json(&job),
        &token,
    )
    .await;
    let job = job["id"].as_str().unwrap().to_owned();
    let seen = |base: &str| call(client.get(format!("{base}/v1/jobs/{job}")), &token);
    let running = poll_async(Duration::from_secs(60), async || {
        let seen = seen(&service.base).await;
        let ended = "the job ended before the crash";
        assert!(seen["ended_at"].is_null(), "{ended}: {seen}");
        (seen["status"] == "running").then_some(())
    });
    running.await.expect("no worker took the job");
    // A drop kills with SIGKILL; the database server keeps running.
    drop(service);

    let service = ServiceProcess::start(&data, &[]).await;
    let ended = poll_async(Duration::from_secs(300), async || {
        let seen = seen(&service.base).await;
        (!seen["ended_at"].is_null()).then_some(seen)
    });
    let ended = ended.await.expect("the job was not continued");
    assert_eq!(ended["status"], "succeeded", "{ended}");
    assert_eq!(ended["attempt"], 2);
    let releases = call(client.get(format!("{}/v1/releases", service.base)), &token).await;
    assert_eq!(releases["items"].as_array().unwrap().len(), 1);
    assert_eq!(releases["items"][0]["id"], ended["release_id"]);
    assert_eq!(releases["items"][0]["rows"], json!(COPIES * 45_222));
    service.stop();
}
