//! The state of the handlers.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::events::Watching;
use crate::db::editions::{self, EditionQueue};
use crate::db::key_ring::KeyRing;
use crate::db::{RowScope, Store};
use crate::engine::rendered_tables::Renderer;
use crate::engine::table_work::TableSlots;
use crate::executors::ExecutorSet;
use crate::jobs::{JobKey, Resources};
use crate::memory::MemoryBudget;
use crate::oidc::Verifier;
use crate::roles::Caller;
use crate::storage::Storage;

use super::large_documents::LargeDocuments;
use super::limits::Limits;
use super::rate_limits::{RateLimiter, RefusedTokens};
use super::upload::slots::UploadSlots;

/// What handlers and workers of this process share. Cheap to clone.
#[derive(Clone)]
pub struct App {
    /// The database.
    pub db: Store,
    /// Wraps and unwraps the datasets' keys.
    pub keys: Arc<KeyRing>,
    /// Limits on what a client sends.
    pub limits: Limits,
    /// The memory of the process for data that clients send.
    pub memory: MemoryBudget,
    /// Wakes the workers of this process when a job is created or cancelled.
    pub wake: Arc<Notify>,
    /// The job whose attempt in this process ended last.
    pub attempts: watch::Sender<Option<JobKey>>,
    /// Cancelled when the service stops; ends streams.
    pub shutdown: CancellationToken,
    /// The disks.
    pub storage: Arc<Storage>,
    /// The executors that count the rows of large tables.
    pub executors: ExecutorSet,
    /// Slots for work on tables.
    pub(crate) tables: TableSlots,
    /// The polls of the event streams.
    pub(crate) watching: Watching,
    /// Slots for uploads.
    pub(crate) uploads: UploadSlots,
    /// Threads and memory for large documents.
    pub(crate) documents: LargeDocuments,
}

impl App {
    /// The state, with slots and memory by these limits.
    pub fn new(
        db: Store,
        keys: Arc<KeyRing>,
        limits: Limits,
        memory: MemoryBudget,
        storage: Arc<Storage>,
        shutdown: CancellationToken,
    ) -> Self {
        let (attempts, ended) = watch::channel(None);
        Self {
            db,
            keys,
            limits,
            documents: LargeDocuments::new(memory.clone()),
            wake: Arc::new(Notify::new()),
            attempts,
            shutdown,
            storage,
            executors: ExecutorSet::default(),
            tables: TableSlots::new(memory.clone()),
            watching: Watching::new(limits.streams, ended),
            uploads: UploadSlots::new(
                limits.concurrent_uploads,
                limits.uploads_per_organization,
                limits.upload_wait,
            ),
            memory,
        }
    }

    /// The same state with these executors.
    pub fn with_executors(self, executors: ExecutorSet) -> Self {
        Self { executors, ..self }
    }

    /// The same state on behalf of a caller.
    pub(crate) fn of(&self, caller: Caller) -> CallerApp {
        let app = Self {
            db: self.db.within(RowScope::of(caller)),
            ..self.clone()
        };
        CallerApp { app, caller }
    }

    /// What it shares with workers.
    pub fn resources(&self) -> Resources {
        Resources {
            store: self.db.clone(),
            keys: self.keys.clone(),
            wake: self.wake.clone(),
            memory: self.memory.clone(),
            storage: self.storage.clone(),
            executors: self.executors.clone(),
            attempts: self.attempts.clone(),
        }
    }

    /// Renders released tables into files.
    pub(crate) fn renderer(&self) -> Renderer<'_> {
        Renderer {
            db: &self.db,
            storage: &self.storage,
            slots: &self.tables,
        }
    }

    /// Stops the work of requests on tables, and refuses further work. Used at the end of the grace period of a
    /// shutdown.
    pub fn interrupt(&self) {
        self.tables.interrupt();
    }

    /// Number of uploads that can begin without waiting.
    pub fn free_uploads(&self) -> usize {
        self.uploads.free()
    }
}

/// The shared state on behalf of a caller: its database has the rows that the caller may access.
#[derive(Clone)]
pub struct CallerApp {
    app: App,
    /// Who makes the request.
    pub(crate) caller: Caller,
}

impl CallerApp {
    /// What queueing editions needs.
    pub(super) fn edition_queue(&self) -> EditionQueue<'_> {
        EditionQueue {
            store: &self.db,
            keys: &self.keys,
            quotas: self.limits.quotas,
        }
    }

    /// Settles the editions of the caller's organization after a request that may affect them.
    /// Workers repeat this periodically, so a failure delays an edition but does not lose it.
    pub(super) async fn settle_editions(&self) {
        match editions::settle(self.edition_queue()).await {
            Ok(queued) if queued > 0 => self.wake.notify_one(),
            Ok(_) => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "editions could not be brought on; workers try again");
            }
        }
    }
}

impl Deref for CallerApp {
    type Target = App;

    fn deref(&self) -> &App {
        &self.app
    }
}

/// The state that every handler can use. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// What handlers share with workers.
    pub app: Unscoped,
    /// Limits the requests of each token; `None` for no limit.
    pub rate_limiter: Option<Arc<RateLimiter>>,
    /// Limits the refused tokens of each address; `None` for no limit.
    pub refused_tokens: Option<Arc<RefusedTokens>>,
    /// Verifies the tokens of people; `None` if no issuer is configured.
    pub oidc: Option<Arc<Verifier>>,
    /// Longest time that a client may take to send a body that is read as a whole.
    pub body_timeout: Duration,
    /// Whether every request comes through a proxy, which names the address of its client.
    pub is_behind_proxy: bool,
    /// The URL at which clients reach the service, without a trailing slash; `None` if it is not configured.
    pub public_url: Option<String>,
    /// The URL of the listener, without a trailing slash: the prefix of links if `public_url` is not
    /// configured. It never depends on a client's `Host`.
    pub own_url: String,
}

impl AppState {
    /// The shared state on behalf of a caller.
    pub(crate) fn of(&self, caller: Caller) -> CallerApp {
        self.app.0.of(caller)
    }

    /// The prefix of links.
    pub(crate) fn link_base(&self) -> &str {
        self.public_url.as_deref().unwrap_or(&self.own_url)
    }

    /// Whether clients reach the service over TLS: its own, or that of a proxy.
    pub(crate) fn is_https(&self) -> bool {
        let is_https = |url: &str| url.starts_with("https://");
        is_https(self.link_base()) || is_https(&self.own_url)
    }

    /// The shared state without a restriction by PostgreSQL to the rows of an organization: for work before the
    /// caller is known, and for work without a caller.
    pub fn unscoped(&self) -> &App {
        &self.app.0
    }
}

/// The shared state with every row of the database. A handler can use it only through `AppState::of` or
/// [`AppState::unscoped`], and so states on whose behalf.
#[derive(Clone)]
pub struct Unscoped(App);

impl From<App> for Unscoped {
    fn from(app: App) -> Self {
        Self(app)
    }
}
