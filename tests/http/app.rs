//! The service in the test process, on its own port and database, and requests to it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pais::api::events::streams::StreamLimits;
use pais::api::limits::TokenLifetime;
use pais::api::rate_limits::RateLimiter;
use pais::api::{App, Limits};
use pais::api::{
    AppState, ConnectionLimits, OperationRoutes, RefusedTokens, RouterSettings, Server, UploadPace,
};
use pais::clock::{Clock, SystemClock};
use pais::db::key_ring::KeyRing;
use pais::db::quotas::Quotas;
use pais::db::tokens::{NewToken, create_token};
use pais::db::{Store, audit_chain, instances, organizations};
use pais::executors::ExecutorSet;
use pais::ids::TokenId;
use pais::jobs::{self, WorkerPool, WorkerPoolSettings};
use pais::memory::MemoryBudget;
use pais::oidc::{OidcSettings, SignIn, Verifier};
use pais::roles::Role;
use pais::storage::object_stores::ObjectStores;
use pais::storage::{Storage, StorageLimits};
use pais_core::taxonomy::TreeLimits;
use reqwest::{Method, RequestBuilder, StatusCode, header};
use secrecy::ExposeSecret;
use serde_json::Value;
use time::OffsetDateTime;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use crate::{database, documented};

/// The limits of a test app's disk.
const STORAGE: StorageLimits = StorageLimits {
    min_free: 0,
    reserve: 0,
    spool: 1 << 30,
};

/// Limits of the connections to a test app.
const CONNECTIONS: ConnectionLimits = ConnectionLimits {
    connections: 1000,
    per_address: 1000,
    header_timeout: Duration::from_secs(10),
    keep_alive: Duration::from_secs(60),
};

/// Settings of a test app that differ from the defaults.
pub(crate) struct Builder {
    requests_per_second: u32,
    refused_tokens_per_minute: u32,
    body_timeout: Duration,
    request_timeout: Duration,
    is_behind_proxy: bool,
    public_url: Option<String>,
    cors_origins: Vec<String>,
    storage: StorageLimits,
    object_stores: ObjectStores,
    executors: ExecutorSet,
    limits: Limits,
    memory_bytes: u64,
    memory_wait: Duration,
    with_workers: bool,
    oidc: Option<OidcSettings>,
    sign_in: Option<SignIn>,
}

impl Builder {
    /// Accepts the tokens of an issuer.
    pub(crate) fn oidc(mut self, settings: OidcSettings) -> Self {
        self.oidc = Some(settings);
        self
    }

    /// Says where people sign in to the console.
    pub(crate) fn sign_in(mut self, sign_in: SignIn) -> Self {
        self.sign_in = Some(sign_in);
        self
    }

    /// Starts no workers: jobs stay queued until the test starts some.
    pub(crate) fn without_workers(mut self) -> Self {
        self.with_workers = false;
        self
    }

    pub(crate) fn requests_per_second(mut self, requests: u32) -> Self {
        self.requests_per_second = requests;
        self
    }

    pub(crate) fn refused_tokens_per_minute(mut self, tokens: u32) -> Self {
        self.refused_tokens_per_minute = tokens;
        self
    }

    pub(crate) fn body_timeout(mut self, timeout: Duration) -> Self {
        self.body_timeout = timeout;
        self
    }

    pub(crate) fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    pub(crate) fn behind_proxy(mut self) -> Self {
        self.is_behind_proxy = true;
        self
    }

    pub(crate) fn public_url(mut self, url: &str) -> Self {
        self.public_url = Some(url.to_owned());
        self
    }

    pub(crate) fn cors_origin(mut self, origin: &str) -> Self {
        self.cors_origins.push(origin.to_owned());
        self
    }

    /// Memory of the process for what clients send, and how long requests wait for it.
    pub(crate) fn memory(mut self, bytes: u64, wait: Duration) -> Self {
        (self.memory_bytes, self.memory_wait) = (bytes, wait);
        self
    }

    pub(crate) fn storage(mut self, change: impl FnOnce(&mut StorageLimits)) -> Self {
        change(&mut self.storage);
        self
    }

    /// Grants prefixes to organizations.
    pub(crate) fn object_stores(mut self, object_stores: ObjectStores) -> Self {
        self.object_stores = object_stores;
        self
    }

    /// Names executors.
    #[cfg(feature = "scale")]
    pub(crate) fn executors(mut self, executors: ExecutorSet) -> Self {
        self.executors = executors;
        self
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub(crate) async fn start(self) -> TestApp {
        let clock = Arc::new(FixedClock {
            now: Mutex::new(SystemClock.now()),
        });
        // Each connection is a process of the database.
        let store = Store::new(database::create().await, 3, clock.clone());
        instances::register(&store, Uuid::new_v4()).await.unwrap();
        let keys = Arc::new(KeyRing::new(&[7; 32]));
        audit_chain::write_root(&mut store.connection().await.unwrap(), &keys)
            .await
            .unwrap();
        let shutdown = CancellationToken::new();
        let spool = tempfile::tempdir().unwrap();
        let state = AppState {
            app: App::new(
                store,
                keys,
                self.limits,
                MemoryBudget::new(self.memory_bytes, self.memory_wait),
                Arc::new(
                    Storage::new(spool.path(), spool.path(), self.storage)
                        .with_object_stores(self.object_stores),
                ),
                shutdown.clone(),
            )
            .with_executors(self.executors)
            .into(),
            rate_limiter: RateLimiter::new(self.requests_per_second).map(Arc::new),
            refused_tokens: RefusedTokens::new(self.refused_tokens_per_minute).map(Arc::new),
            oidc: self.oidc.map(Verifier::new).map(Arc::new),
            body_timeout: self.body_timeout,
            is_behind_proxy: self.is_behind_proxy,
            public_url: self.public_url,
            own_url: "http://127.0.0.1".to_owned(),
        };
        let pool = self
            .with_workers
            .then(|| start_workers(state.unscoped(), worker_settings()));
        let settings = RouterSettings {
            request_timeout: self.request_timeout,
            cors_origins: self.cors_origins,
            operation: OperationRoutes::ProbesAndMetrics,
            sign_in: self.sign_in,
        };
        let router = pais::api::router(state.clone(), &settings).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let server = Server {
            listener,
            tls: None,
            router,
            limits: CONNECTIONS,
        };
        tokio::spawn(server.run(shutdown.clone(), Duration::from_secs(1)));
        TestApp {
            state,
            clock,
            base,
            client: reqwest::Client::new(),
            spool,
            _pool: pool,
            _stop: shutdown.drop_guard(),
        }
    }
}

/// A clock that changes only when a test advances it.
pub(crate) struct FixedClock {
    now: Mutex<OffsetDateTime>,
}

impl FixedClock {
    /// By a step that may be negative.
    pub(crate) fn advance(&self, step: time::Duration) {
        *self.now.lock().unwrap() += step;
    }
}

impl Clock for FixedClock {
    fn now(&self) -> OffsetDateTime {
        *self.now.lock().unwrap()
    }
}

/// One worker with short intervals.
pub(crate) fn worker_settings() -> WorkerPoolSettings {
    WorkerPoolSettings {
        concurrency: 1,
        lease: Duration::from_secs(8),
        heartbeat: Duration::from_secs(2),
        poll: Duration::from_secs(1),
        max_attempts: 3,
        max_run: Duration::from_secs(60 * 60),
        running_per_organization: 0,
        job_bytes: 4 << 30,
        quotas: Quotas::default(),
    }
}

/// Starts workers of a service.
pub(crate) fn start_workers(service: &App, settings: WorkerPoolSettings) -> WorkerPool {
    let pool = jobs::start(service.resources(), settings, service.shutdown.clone());
    pool.unwrap()
}

/// The service, on its own database; stopped when dropped.
pub(crate) struct TestApp {
    pub state: AppState,
    pub clock: Arc<FixedClock>,
    base: String,
    client: reqwest::Client,
    pub spool: tempfile::TempDir,
    _pool: Option<WorkerPool>,
    _stop: DropGuard,
}

impl TestApp {
    pub(crate) async fn new() -> Self {
        Self::builder().start().await
    }

    pub(crate) fn builder() -> Builder {
        Builder {
            oidc: None,
            sign_in: None,
            with_workers: true,
            memory_bytes: 4 << 30,
            memory_wait: Duration::from_secs(5),
            requests_per_second: 0,
            refused_tokens_per_minute: 0,
            body_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            is_behind_proxy: false,
            public_url: None,
            cors_origins: Vec::new(),
            storage: STORAGE,
            object_stores: ObjectStores::default(),
            executors: ExecutorSet::default(),
            limits: Limits {
                enrolment: false,
                upload_bytes: 1 << 26,
                cell_bytes: 1 << 12,
                json_bytes: 1 << 20,
                job_json_bytes: 1 << 20,
                job_bytes: 1 << 30,
                columns: 64,
                taxonomy: TreeLimits {
                    leaves: 1000,
                    depth: 20,
                },
                concurrent_uploads: 2,
                uploads_per_organization: 0,
                upload_wait: Duration::from_secs(5),
                upload_pace: UploadPace::default(),
                quotas: Quotas::default(),
                streams: StreamLimits::default(),
                token_lifetime: TokenLifetime::of_days(0),
            },
        }
    }

    /// A new token of an organization, which is created if it does not exist.
    pub(crate) async fn token(&self, organization: &str, role: Role) -> String {
        self.token_with_id(organization, role).await.1
    }

    pub(crate) async fn token_with_id(&self, organization: &str, role: Role) -> (TokenId, String) {
        self.token_until(organization, role, None).await
    }

    pub(crate) async fn token_until(
        &self,
        organization: &str,
        role: Role,
        expires_at: Option<OffsetDateTime>,
    ) -> (TokenId, String) {
        let store = &self.state.unscoped().db;
        organizations::find_or_create(store, organization)
            .await
            .unwrap();
        let new = NewToken {
            role,
            label: None,
            expires_at,
            is_enrolled: false,
        };
        let issued = create_token(store, None, organization, new)
            .await
            .unwrap()
            .unwrap();
        (issued.token.id, issued.secret.expose_secret().to_owned())
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base))
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> Answer {
        send(self.request(Method::GET, path).bearer_auth(token)).await
    }

    pub(crate) async fn delete(&self, token: &str, path: &str) -> Answer {
        send(self.request(Method::DELETE, path).bearer_auth(token)).await
    }

    pub(crate) async fn post(&self, token: &str, path: &str, body: &Value) -> Answer {
        send(
            self.request(Method::POST, path)
                .bearer_auth(token)
                .json(body),
        )
        .await
    }

    /// Posts a body as it is.
    pub(crate) async fn post_bytes(
        &self,
        token: &str,
        path: &str,
        media_type: &str,
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let request = self.request(Method::POST, path).bearer_auth(token);
        send(request.header(header::CONTENT_TYPE, media_type).body(body)).await
    }
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: StatusCode,
    pub headers: header::HeaderMap,
    /// The body as text; invalid UTF-8 is replaced.
    pub text: String,
    pub bytes: bytes::Bytes,
}

/// Sends a request, and checks that the answer is as the OpenAPI document says.
pub(crate) async fn send(request: RequestBuilder) -> Answer {
    let (client, request) = request.build_split();
    let request = request.unwrap();
    let (method, path) = (request.method().clone(), request.url().path().to_owned());
    let sent: Option<Value> = match request.body() {
        Some(body) => body
            .as_bytes()
            .and_then(|body| serde_json::from_slice(body).ok()),
        // No pointer is into a query.
        None => Some(Value::Null),
    };
    let response = client.execute(request).await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = response.bytes().await.unwrap();
    let answer = Answer {
        status,
        headers,
        text: String::from_utf8_lossy(&bytes).into_owned(),
        bytes,
    };
    documented::check(&method, &path, &answer);
    documented::check_problem(sent.as_ref(), &answer);
    answer
}

impl Answer {
    /// The JSON body; panics if the status is another one.
    #[track_caller]
    pub(crate) fn json(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        serde_json::from_str(&self.text).unwrap()
    }

    /// The problem document; panics if the status or the code is another one.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        let document = self.json(status);
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(document["code"], code, "{document}");
        assert_eq!(document["status"], status);
        document
    }

    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

/// The text of a JSON string; panics on another type.
#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
