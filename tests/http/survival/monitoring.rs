//! The dashboard and the alert rules name metrics that the service has.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::keys::{dataset, job};
use crate::process::ServiceProcess;
use pais_test_support::poll::poll_async;

/// The expressions of the dashboard and of the alert rules.
fn expressions() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docker/monitoring");
    let read = |name| std::fs::read_to_string(folder.join(name)).unwrap();
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let drawn = targets.map(|target| target["expr"].as_str().unwrap().to_owned());
    let rules = read("alerts.yaml");
    let rules = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "));
    drawn.chain(rules.map(str::to_owned)).collect()
}

/// The names of the service's metrics in an expression.
fn names(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    words.filter(|word| word.starts_with("pais_") || word.starts_with("http_"))
}

#[tokio::test(flavor = "multi_thread")]
async fn dashboard_and_alerts_name_metrics_of_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let service = ServiceProcess::start(&folder.path().join("data"), &[]).await;
    let token = service.token("hospital", "holder");
    let patients = dataset(&service, &token, "patients").await;
    assert_eq!(job(&service, &token, &patients).await, "succeeded");
    let client = reqwest::Client::new();
    let unknown = client.get(format!("{}/v1/datasets", service.base));
    assert_eq!(
        unknown
            .bearer_auth("pais_wrong")
            .send()
            .await
            .unwrap()
            .status(),
        401
    );

    let expressions = expressions();
    let named: BTreeSet<&str> = expressions.iter().flat_map(|it| names(it)).collect();
    assert!(named.len() > 15, "{named:?}");
    let metrics = async || {
        let answer = client.get(format!("{}/metrics", service.base)).send();
        answer.await.unwrap().text().await.unwrap()
    };
    let missing = async || -> Vec<String> {
        let text = metrics().await;
        let has = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
            lines.any(|rest| rest.starts_with('{') || rest.starts_with(' '))
        };
        let missing = named.iter().filter(|name| !has(name));
        missing.map(|name| (*name).to_owned()).collect()
    };
    // What is measured from time to time is there soon.
    let found = poll_async(Duration::from_secs(30), async || {
        missing().await.is_empty().then_some(())
    });
    assert!(found.await.is_some(), "{:?}", missing().await);

    let text = metrics().await;
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let line = line.unwrap_or_else(|| panic!("{name}: {text}"));
        line.trim().parse().unwrap()
    };
    assert_eq!(value("pais_jobs_queued "), 0.0);
    assert_eq!(value("pais_queue_age_seconds "), 0.0);
    assert!(value("pais_memory_limit_bytes ") > value("pais_memory_reserved_bytes "));
    for phase in ["reading", "searching"] {
        let count = format!("pais_job_phase_seconds_count{{phase=\"{phase}\"}} ");
        assert_eq!(value(&count), 1.0, "{phase}");
    }
    assert!(value("pais_problems_total{code=\"unauthenticated\"} ") >= 1.0);
    service.stop();
}
