//! One organization with many jobs and many watchers beside another one.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::two_hospitals::{Hub, Tenant, has_ended, quick};
use pais_test_support::adult;
use pais_test_support::poll::poll_async;

/// A counter of the metrics.
async fn metric(hub: &Hub, name: &str) -> u64 {
    let text = hub.client.get(hub.url("/metrics")).send().await.unwrap();
    let text = text.text().await.unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, |value| value.trim().parse().unwrap())
}

async fn events(hub: &Hub, tenant: &Tenant, job: &str) -> reqwest::Response {
    let request = hub.client.get(hub.url(&format!("/v1/jobs/{job}/events")));
    request.bearer_auth(&tenant.token).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_jobs_of_one_organization_do_not_hold_up_another() {
    const JOBS: usize = 300;
    const ROWS: usize = 5_000;
    let folder = tempfile::tempdir().unwrap();
    let settings = [
        ("PAIS__ORGANIZATIONS__QUEUED_JOBS", "300"),
        ("PAIS__LIMITS__STREAMS_PER_TOKEN", "60"),
        ("PAIS__ORGANIZATIONS__STREAMS", "50"),
    ];
    let hub = Hub::start(&folder.path().join("data"), &settings).await;
    // A request counts the rows, and a job searches them once for each model: few rows and many models make
    // a job take several times as long as the request that makes it.
    let all = adult::csv().unwrap();
    let lines = all.split_inclusive(|&byte| byte == b'\n').take(ROWS + 1);
    let many = hub
        .tenant_with("many", &[lines.collect::<Vec<_>>().concat()])
        .await;
    let one = hub.tenant("one", 1).await;
    let k: Vec<u64> = (10..34).collect();
    let longer = json!({ "model": "lkc", "l": [3, 4], "k": k, "c": 1.0 });
    let mut jobs = Vec::new();
    for _ in 0..JOBS {
        jobs.push(hub.job(&many, &longer).await);
    }
    let queued = Instant::now();
    let theirs = hub.job(&one, &quick()).await;
    let started = |job: &Value| !job["started_at"].is_null();
    hub.wait(&one, &theirs, Duration::from_secs(5), started)
        .await;
    let waited = queued.elapsed();
    let last = jobs.last().unwrap();
    let waiting = hub.see(&many, last).await;
    assert_eq!(waiting["status"], "queued", "the test queues too few jobs");
    hub.wait(&one, &theirs, Duration::from_secs(15), has_ended)
        .await;
    eprintln!("the job of the other organization started within {waited:?}");

    // Fifty watchers of a job ask for it as often as one; further ones are refused.
    let mut streams = Vec::new();
    for _ in 0..50 {
        let stream = events(&hub, &many, last).await;
        assert_eq!(stream.status(), StatusCode::OK);
        streams.push(stream);
    }
    let refused = events(&hub, &many, last).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["code"], "quota_exceeded");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("organizations.streams"), "{detail}");
    let before = metric(&hub, "pais_job_polls_total").await;
    // Five times a second for all of them together; each by itself would take 50 ms for as many.
    let began = Instant::now();
    let polled = poll_async(Duration::from_secs(60), async || {
        (metric(&hub, "pais_job_polls_total").await >= before + 10).then_some(())
    });
    polled.await.expect("the job is polled");
    assert!(
        began.elapsed() > Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    drop(streams);
    hub.service.signal(rustix::process::Signal::QUIT);
}
