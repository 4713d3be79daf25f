//! What an organization may have at most, and what does not fit into memory.

use std::time::Duration;

use pais::memory::MemoryUse;
use reqwest::Method;
use serde_json::json;

use crate::app::{TestApp, send};
use crate::fair_queue::detail;
use crate::hospital::{Hospital, TABLE, job_on};

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_has_a_limited_number_of_waiting_jobs() {
    let app = TestApp::builder()
        .without_workers()
        .limits(|limits| limits.quotas.queued_jobs = 2);
    let hospital = Hospital::with_app(app.start().await).await;
    let dataset = hospital.filled_dataset().await;
    let first = hospital.job(&dataset, json!({})).await;
    hospital.job(&dataset, json!({})).await;
    let refused = hospital.post("/v1/jobs", &job_on(&dataset)).await;
    let problem = refused.problem(429, "quota_exceeded");
    assert!(
        detail(&problem).contains("organizations.queued_jobs"),
        "{problem}"
    );
    hospital.app.delete(&hospital.token, &first).await;
    hospital.job(&dataset, json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_has_limited_space_for_rows() {
    let rows = TABLE.lines().count() as u64 - 1;
    let app = TestApp::builder()
        .without_workers()
        .limits(|limits| limits.quotas.stored_rows = rows * 2 - 1);
    let hospital = Hospital::with_app(app.start().await).await;
    let dataset = hospital.filled_dataset().await;
    // Found when the rows are counted.
    let refused = hospital.submit(&dataset, TABLE).await;
    let problem = refused.problem(429, "quota_exceeded");
    assert!(
        detail(&problem).contains("organizations.stored_rows"),
        "{problem}"
    );
    // Nothing of it is stored.
    let listed = hospital.get(&format!("{dataset}/profile")).await.json(200);
    assert_eq!(listed["rows"], rows);
    let most: String = TABLE.split_inclusive('\n').take(rows as usize).collect();
    hospital.submit(&dataset, most).await.json(201);
    // The space is used up: a body is refused before it is read.
    let refused = hospital.submit(&dataset, "no,such,columns\n").await;
    refused.problem(429, "quota_exceeded");
    hospital.app.delete(&hospital.token, &dataset).await;
    hospital.filled_dataset().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_has_limited_space_for_bytes() {
    let app = TestApp::builder()
        .without_workers()
        .limits(|limits| limits.quotas.stored_bytes = TABLE.len() as u64 - 1);
    let hospital = Hospital::with_app(app.start().await).await;
    let dataset = hospital.dataset().await;
    let refused = hospital.submit(&dataset, TABLE).await;
    let problem = refused.problem(429, "quota_exceeded");
    assert!(
        detail(&problem).contains("organizations.stored_bytes"),
        "{problem}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_never_fits_into_the_memory_of_the_process_is_refused() {
    let app = TestApp::builder()
        .without_workers()
        .memory(1 << 20, Duration::from_millis(100))
        .limits(|limits| limits.job_bytes = 1 << 30);
    let hospital = Hospital::with_app(app.start().await).await;
    let dataset = hospital.dataset().await;
    let rows: String = TABLE
        .lines()
        .skip(1)
        .flat_map(|line| [line, "\n"])
        .collect();
    let header = TABLE.lines().next().unwrap();
    let table = format!("{header}\n{}", rows.repeat(3000));
    hospital.submit(&dataset, table).await.json(201);
    let refused = hospital.post("/v1/jobs", &job_on(&dataset)).await;
    let problem = refused.problem(422, "limit_exceeded");
    assert!(
        detail(&problem).contains("memory.process_bytes"),
        "{problem}"
    );
    let refused = hospital.get(&format!("{dataset}/profile")).await;
    refused.problem(422, "limit_exceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_on_tables_are_refused_while_the_memory_is_in_use() {
    let app = TestApp::builder()
        .without_workers()
        .memory(1 << 30, Duration::from_millis(200));
    let hospital = Hospital::with_app(app.start().await).await;
    let release = hospital.release().await;
    let document = hospital.get(&release).await.json(200);
    let dataset = hospital.filled_dataset().await;
    let memory = &hospital.app.state.unscoped().memory;
    let all = memory.limit(MemoryUse::Tables);
    let used = memory.reserve(MemoryUse::Tables, all).await.unwrap();
    let profile = format!("{dataset}/profile");
    let table = format!("{release}/tables/data?format=parquet");
    let body = json!({ "job_id": document["job_id"], "step": 0 });
    for refused in [
        hospital.get(&profile).await,
        hospital.get(&table).await,
        hospital.post("/v1/releases", &body).await,
    ] {
        let problem = refused.problem(503, "busy");
        assert!(
            detail(&problem).contains("memory.process_bytes"),
            "{problem}"
        );
        assert!(refused.headers.contains_key("retry-after"));
    }
    drop(used);
    hospital.get(&profile).await.json(200);
    assert_eq!(hospital.get(&table).await.status, 200);
    hospital.post("/v1/releases", &body).await.json(201);
    assert_eq!(memory.used(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_has_a_limited_number_of_event_streams() {
    let app = TestApp::builder()
        .without_workers()
        .limits(|limits| limits.streams.per_token = 2);
    let hospital = Hospital::with_app(app.start().await).await;
    let dataset = hospital.filled_dataset().await;
    let job = hospital.job(&dataset, json!({})).await;
    let open = async || {
        let request = hospital.app.request(Method::GET, &format!("{job}/events"));
        request.bearer_auth(&hospital.token).send().await.unwrap()
    };
    let (first, _second) = (open().await, open().await);
    assert_eq!(first.status(), 200);
    let request = hospital.app.request(Method::GET, &format!("{job}/events"));
    let refused = send(request.bearer_auth(&hospital.token)).await;
    let problem = refused.problem(429, "quota_exceeded");
    assert!(
        detail(&problem).contains("limits.streams_per_token"),
        "{problem}"
    );
    drop(first);
    // The service notices a closed connection when it writes or reads; here at once.
    let opened = pais_test_support::poll::poll_async(Duration::from_secs(5), async || {
        (open().await.status() == 200).then_some(())
    });
    opened
        .await
        .expect("the place of a closed stream stays taken");
}
