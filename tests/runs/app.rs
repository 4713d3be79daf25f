//! The service as a test has it: a schema of its own, a clock that can be moved, clients.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pais::clock::Clock;
use pais::domain::Role;
use pais::http::{AppState, HttpLimits, RouterSettings, router};
use pais::jobs::{self, WorkerPool, WorkerSettings};
use pais::store::seal::KeyRing;
use pais::store::tokens::{self, NewToken};
use pais::store::{Store, organizations};
use pais::taxonomy::TreeLimits;
use reqwest::{Method, RequestBuilder, Response};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;

use crate::server::Server;

/// The bytes an upload may have in these tests.
pub const UPLOAD_BYTES: u64 = 1 << 20;

/// Table 1 of the KDD'09 paper.
pub const TABLE: &str = include_str!("../data/kdd09/table1.csv");

#[derive(Default)]
pub struct FakeClock {
    ahead: Mutex<time::Duration>,
}

impl FakeClock {
    pub fn advance(&self, by: time::Duration) {
        *self.ahead.lock().unwrap() += by;
    }
}

impl Clock for FakeClock {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc() + *self.ahead.lock().unwrap()
    }
}

pub struct App {
    pub store: Store,
    pub state: AppState,
    pub clock: Arc<FakeClock>,
    /// The token of a holder of the organization `hospital`.
    pub holder: String,
    base: String,
    client: reqwest::Client,
    _spool: tempfile::TempDir,
    _server: Arc<Server>,
}

impl App {
    pub async fn start() -> Self {
        let server = tokio::task::spawn_blocking(Server::shared).await.unwrap();
        let schema = format!("test_{}", uuid::Uuid::new_v4().simple());
        let options = server.options.clone();
        let clock = Arc::new(FakeClock::default());
        let setup = Store::new(options.clone(), 1, clock.clone());
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!("CREATE SCHEMA {schema}")))
            .execute(setup.pool())
            .await
            .unwrap();
        setup.close().await;
        let options = options.options([("search_path", schema.as_str())]);
        let store = Store::new(options, 8, clock.clone());
        store.migrate().await.unwrap();

        let spool = tempfile::tempdir().unwrap();
        let state = AppState {
            store: store.clone(),
            keys: Arc::new(KeyRing::new(&[7; 32])),
            limits: HttpLimits {
                upload_bytes: UPLOAD_BYTES,
                json_bytes: 1 << 20,
                columns: 100,
                taxonomy: TreeLimits {
                    leaves: 1000,
                    depth: 20,
                },
                concurrent_uploads: 2,
            },
            rate: None,
            spool: Arc::new(spool.path().to_owned()),
            shutdown: CancellationToken::new(),
            uploads: Arc::new(tokio::sync::Semaphore::new(2)),
            wake: Arc::default(),
        };
        let settings = RouterSettings {
            request_timeout: Duration::from_secs(30),
            cors_origins: Vec::new(),
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let service = router(state.clone(), &settings);
        tokio::spawn(axum::serve(listener, service).into_future());

        let mut app = Self {
            store,
            state,
            clock,
            holder: String::new(),
            base,
            client: reqwest::Client::new(),
            _spool: spool,
            _server: server,
        };
        app.holder = app.token("hospital", Role::Holder).await;
        app
    }

    /// A token of an organization, which is made where it is missing.
    pub async fn token(&self, organization: &str, role: Role) -> String {
        organizations::find_or_create(&self.store, organization)
            .await
            .unwrap();
        let new = NewToken {
            role,
            label: None,
            expires_at: None,
        };
        let issued = tokens::create_token(&self.store, None, organization, new).await;
        let issued = issued.unwrap().unwrap();
        issued.secret.expose_secret().to_owned()
    }

    /// Starts workers of their own; every heartbeat and poll is short.
    pub fn work(&self) -> WorkerPool {
        jobs::start(
            self.store.clone(),
            self.state.keys.clone(),
            settings(),
            self.state.wake.clone(),
            self.state.shutdown.clone(),
        )
    }

    /// Host and port.
    pub fn address(&self) -> String {
        self.base.trim_start_matches("http://").to_owned()
    }

    pub fn request(&self, method: Method, token: &str, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.base);
        self.client.request(method, url).bearer_auth(token)
    }

    pub async fn get(&self, token: &str, path: &str) -> Response {
        let request = self.request(Method::GET, token, path);
        request.send().await.unwrap()
    }

    pub async fn delete(&self, token: &str, path: &str) -> Response {
        let request = self.request(Method::DELETE, token, path);
        request.send().await.unwrap()
    }

    pub async fn post(&self, token: &str, path: &str, body: &Value) -> Response {
        let request = self.request(Method::POST, token, path).json(body);
        request.send().await.unwrap()
    }

    /// The document of the holder's `GET`.
    pub async fn read(&self, path: &str) -> Value {
        let response = self.get(&self.holder, path).await;
        assert_eq!(response.status(), 200, "{path}");
        response.json().await.unwrap()
    }

    /// The document that the holder's `POST` made.
    pub async fn make(&self, path: &str, body: &Value) -> Value {
        let response = self.post(&self.holder, path, body).await;
        let status = response.status();
        let document: Value = response.json().await.unwrap();
        assert!(status.is_success(), "{path}: {document}");
        document
    }

    /// The path of a new dataset with the columns of [`TABLE`].
    pub async fn dataset(&self) -> String {
        let name = format!("patients {}", uuid::Uuid::new_v4());
        let document = self.make("/v1/datasets", &definition(&name)).await;
        format!("/v1/datasets/{}", document["id"].as_str().unwrap())
    }

    pub async fn submit(&self, dataset: &str, body: impl Into<reqwest::Body>) -> Response {
        let path = format!("{dataset}/submissions");
        let request = self.request(Method::POST, &self.holder, &path);
        let request = request.header("content-type", "text/csv").body(body);
        request.send().await.unwrap()
    }

    /// The path of a dataset that holds [`TABLE`].
    pub async fn filled_dataset(&self) -> String {
        let dataset = self.dataset().await;
        assert_eq!(self.submit(&dataset, TABLE).await.status(), 201);
        dataset
    }

    /// The path of a queued job on a dataset.
    pub async fn job(&self, dataset: &str, extra: Value) -> String {
        let mut body = job_on(dataset);
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        let document = self.make("/v1/jobs", &body).await;
        format!("/v1/jobs/{}", document["id"].as_str().unwrap())
    }

    /// Waits until a job has ended.
    pub async fn ended(&self, job: &str) -> Value {
        for _ in 0..300 {
            let document = self.read(job).await;
            if !document["ended_at"].is_null() {
                return document;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{job} has not ended");
    }
}

/// Workers that beat and look often.
pub fn settings() -> WorkerSettings {
    WorkerSettings {
        concurrency: 1,
        lease: Duration::from_secs(2),
        heartbeat: Duration::from_millis(100),
        poll: Duration::from_millis(100),
        max_attempts: 3,
    }
}

/// The columns of [`TABLE`].
pub fn definition(name: &str) -> Value {
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

/// A job that the rows of [`TABLE`] can meet.
pub fn job_on(dataset: &str) -> Value {
    let id = dataset.rsplit('/').next().unwrap();
    json!({ "dataset_id": id, "privacy": {
        "model": "lkc", "l": 2, "k": 2, "c": 0.5, "sensitive_values": { "Surgery": ["Transgender"] },
    } })
}

/// The stable word of a refusal, which must be a problem document of this status.
pub async fn code(response: Response, status: u16) -> String {
    let found = response.status();
    let media = response.headers().get("content-type").cloned();
    let text = response.text().await.unwrap();
    assert_eq!(found, status, "{text}");
    assert_eq!(media.unwrap(), "application/problem+json", "{text}");
    let problem: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(problem["status"], status, "{text}");
    problem["code"].as_str().unwrap().to_owned()
}
