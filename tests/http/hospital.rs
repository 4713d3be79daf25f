//! A hospital with the table of the KDD'09 paper, and helpers from its rows to a release.

use std::time::Duration;

use pais::jobs::{WorkerPool, WorkerPoolSettings};
use pais::roles::Role;
use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Answer, TestApp, send, start_workers, text, worker_settings};
use pais_test_support::poll::poll_async;

/// Table 1 of the paper.
pub(crate) const TABLE: &str = include_str!("../data/kdd09/table1.csv");

/// The service without workers, and the token of a holder.
pub(crate) struct Hospital {
    pub app: TestApp,
    pub token: String,
}

impl Hospital {
    pub(crate) async fn new() -> Self {
        Self::with_app(TestApp::builder().without_workers().start().await).await
    }

    pub(crate) async fn with_app(app: TestApp) -> Self {
        let token = app.token("hospital", Role::Holder).await;
        Self { app, token }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.app.get(&self.token, path).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.app.post(&self.token, path, body).await
    }

    /// The path of a new dataset with the columns of [`TABLE`].
    pub(crate) async fn dataset(&self) -> String {
        let name = format!("patients {}", uuid::Uuid::new_v4());
        let made = self.post("/v1/datasets", &definition(&name)).await;
        format!("/v1/datasets/{}", text(&made.json(201)["id"]))
    }

    /// Submits CSV, also rows that the dataset has already.
    pub(crate) async fn submit(&self, dataset: &str, body: impl Into<reqwest::Body>) -> Answer {
        let path = format!("{dataset}/submissions?allow_duplicate=true");
        self.app
            .post_bytes(&self.token, &path, "text/csv", body)
            .await
    }

    /// Submits with further headers, also rows that the dataset has already.
    pub(crate) async fn submit_with(
        &self,
        dataset: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let path = format!("{dataset}/submissions?allow_duplicate=true");
        let mut request = self.app.request(Method::POST, &path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        send(request.bearer_auth(&self.token).body(body)).await
    }

    /// The path of a dataset that holds [`TABLE`].
    pub(crate) async fn filled_dataset(&self) -> String {
        let dataset = self.dataset().await;
        self.submit(&dataset, TABLE).await.json(201);
        dataset
    }

    /// The path of a queued job; `extra` fields replace those of [`job_on`].
    pub(crate) async fn job(&self, dataset: &str, extra: Value) -> String {
        let mut body = job_on(dataset);
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        let queued = self.post("/v1/jobs", &body).await;
        format!("/v1/jobs/{}", text(&queued.json(202)["id"]))
    }

    /// Starts a worker with a short heartbeat and a short polling interval.
    pub(crate) fn work(&self) -> WorkerPool {
        start_workers(self.app.state.unscoped(), settings())
    }

    /// The job, when it has ended; panics after 60 s.
    pub(crate) async fn ended(&self, job: &str) -> Value {
        let ended = poll_async(Duration::from_secs(60), async || {
            let document = self.get(job).await.json(200);
            (!document["ended_at"].is_null()).then_some(document)
        });
        let ended = ended.await;
        ended.unwrap_or_else(|| panic!("{job} has not ended after 60 s"))
    }

    /// The path of a job that has succeeded.
    pub(crate) async fn done(&self, extra: Value) -> String {
        let dataset = self.filled_dataset().await;
        let job = self.job(&dataset, extra).await;
        let workers = self.work();
        let ended = self.ended(&job).await;
        workers.stop().await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        job
    }

    /// The path of a release that its job made.
    pub(crate) async fn release(&self) -> String {
        let job = self.done(json!({ "release": true })).await;
        let document = self.get(&job).await.json(200);
        format!("/v1/releases/{}", text(&document["release_id"]))
    }
}

/// One worker with a short heartbeat and a short polling interval.
pub(crate) fn settings() -> WorkerPoolSettings {
    WorkerPoolSettings {
        lease: Duration::from_secs(5),
        heartbeat: Duration::from_millis(100),
        poll: Duration::from_millis(100),
        ..worker_settings()
    }
}

/// The id at the end of a path.
pub(crate) fn id(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// The columns of [`TABLE`].
pub(crate) fn definition(name: &str) -> Value {
    let leaf = |label: &str| json!({ "label": label });
    let jobs = json!({ "label": "ANY_Job", "children": [
        { "label": "Blue-collar", "children": [
            { "label": "Non-Technical", "children": [leaf("Janitor"), leaf("Mover")] },
            { "label": "Technical", "children": [leaf("Carpenter"), leaf("Technician")] },
        ] },
        { "label": "White-collar", "children": [
            { "label": "Professional", "children": [leaf("Doctor"), leaf("Lawyer")] },
        ] },
    ] });
    json!({ "name": name, "columns": [
        { "name": "ID", "role": "identifier" },
        { "name": "Job", "role": "quasi_identifier", "taxonomy": jobs },
        { "name": "Sex", "role": "quasi_identifier" },
        { "name": "Age", "role": "quasi_identifier", "kind": "numeric", "domain": [1, 99] },
        { "name": "Transfuse", "role": "class" },
        { "name": "Surgery", "role": "sensitive" },
    ] })
}

/// The body of a job whose model the rows of [`TABLE`] can meet.
pub(crate) fn job_on(dataset: &str) -> Value {
    json!({ "dataset_id": id(dataset), "privacy": {
        "model": "lkc", "l": 2, "k": 2, "c": 0.5, "sensitive_values": { "Surgery": ["Transgender"] },
    } })
}
