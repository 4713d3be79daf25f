//! `pais serve` and `pais work`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use pais::api::events::streams::StreamLimits;
use pais::api::limits::TokenLifetime;
use pais::api::rate_limits::RateLimiter;
use pais::api::tls::Tls;
use pais::api::{
    App, AppState, ConnectionLimits, Limits, OperationRoutes, RefusedTokens, RouterSettings,
    Server, UploadPace,
};
use pais::config::{Flags, OrganizationSettings, Settings};
use pais::db::quotas::Quotas;
use pais::db::{Store, deletion, instances};
use pais::executors::ExecutorSet;
use pais::jobs::{WorkerPool, WorkerPoolSettings};
use pais::memory::MemoryBudget;
use pais::oidc::Verifier;
use pais::storage::Storage;
use pais::telemetry::traces::Traces;
use pais::{jobs, telemetry};
use pais_core::taxonomy::TreeLimits;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use super::data_dir::Home;
use super::database::{Database, SettingsArgs, wait_for_directory};
use super::process::{self, Stop, handle_signals};
use super::{block_on, keys};

/// Connections of the listener of probes and metrics.
const OPERATION_CONNECTIONS: usize = 64;

/// Flags of `pais serve`.
#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Serve HTTP only; the jobs are run by `pais work`
    #[arg(long)]
    no_workers: bool,
    #[command(flatten)]
    settings: SettingsArgs,
}

/// The duty of a process. Every process also deletes expired data and extends the audit chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Duty {
    /// Requests and jobs.
    Everything,
    /// Requests only.
    Requests,
    /// Jobs only.
    Jobs,
}

/// Runs the service until SIGTERM, SIGINT or SIGQUIT.
///
/// # Errors
/// If the settings are invalid, the service cannot start, or its database ends unexpectedly.
pub(crate) fn run(args: ServeArgs) -> anyhow::Result<()> {
    let flags = Flags {
        listen: args.listen,
        ..Flags::default()
    };
    let settings = args.settings.load(flags)?;
    let duty = if args.no_workers {
        Duty::Requests
    } else {
        Duty::Everything
    };
    start(&settings, duty)
}

/// Runs jobs until SIGTERM, SIGINT or SIGQUIT: for a service that runs with `--no-workers`, or beside one
/// that runs jobs too. The database is an external one, or the embedded one of a service that runs in the
/// same data directory.
///
/// # Errors
/// If the settings are invalid, or the database cannot be reached.
pub(crate) fn work(args: &SettingsArgs) -> anyhow::Result<()> {
    start(&args.load(Flags::default())?, Duty::Jobs)
}

fn start(settings: &Settings, duty: Duty) -> anyhow::Result<()> {
    telemetry::init(&settings.log)?;
    process::forbid_dumps();
    let endpoint = settings.telemetry.endpoint().map_err(anyhow::Error::msg)?;
    block_on(live(settings, duty, endpoint.map(Traces::start)))
}

async fn live(settings: &Settings, duty: Duty, traces: Option<Traces>) -> anyhow::Result<()> {
    let stop = handle_signals()?;
    // Bind before starting the database, which takes longer: a port in use is reported at once.
    let listeners = Listeners::bind(settings, duty).await?;
    if duty == Duty::Jobs && settings.database.url.is_none() {
        tokio::select! {
            made = wait_for_directory(&settings.server.data_dir) => made?,
            () = stop.shutdown.cancelled() => return Ok(()),
        }
    }
    let home = match duty {
        Duty::Everything | Duty::Requests => Home::of_service(&settings.server.data_dir)?,
        Duty::Jobs => Home::of_worker(&settings.server.data_dir)?,
    };
    let stores = settings.object_stores().map_err(anyhow::Error::msg)?;
    let mut storage = home.storage(&settings.storage)?.with_object_stores(stores);
    if duty == Duty::Jobs {
        storage.spool = storage.spool.of_jobs();
    }
    let storage = Arc::new(storage);
    // The database needs space to start.
    storage.make_room();
    let opened = async {
        match duty {
            Duty::Everything | Duty::Requests => Database::start(settings).await,
            Duty::Jobs => Database::wait_for(settings).await,
        }
    };
    let mut database = tokio::select! {
        database = opened => database?,
        () = stop.shutdown.cancelled() => return Ok(()),
    };
    let store = database.store.clone();
    instances::register(&store, home.id).await?;
    let silence = Duration::from_secs(settings.database.silence_seconds);
    let served = tokio::select! {
        served = serve(settings, duty, &store, storage, listeners, &stop) => served,
        why = database.ended(silence) => Err(why),
    };
    let flushed = async {
        if let Some(traces) = traces {
            traces.flush().await;
        }
    };
    let (closed, ()) = tokio::join!(database.close(), flushed);
    served.and(closed)
}

/// Where requests come in, and how many connections may be open.
struct Listeners {
    /// That of the API; `None` for a process that runs jobs only.
    main: Option<TcpListener>,
    tls: Option<Arc<Tls>>,
    /// That of probes and metrics, if they have one.
    operation: Option<TcpListener>,
    limits: ConnectionLimits,
}

impl Listeners {
    async fn bind(settings: &Settings, duty: Duty) -> anyhow::Result<Self> {
        let settings = &settings.server;
        let main = match duty {
            Duty::Everything | Duty::Requests => {
                Some(listen(settings.listen, "server.listen").await?)
            }
            Duty::Jobs => None,
        };
        let operation = match settings.operation_listen {
            Some(address) => Some(listen(address, "server.operation_listen").await?),
            None => None,
        };
        let possible = process::raise_open_files();
        if possible < settings.connections {
            tracing::warn!(
                connections = possible,
                "the limit of open files permits fewer connections than server.connections"
            );
        }
        let tls = match (&settings.tls_certificate, &settings.tls_key) {
            (Some(certificate), Some(key)) => {
                let tls = Tls::open(certificate, key);
                Some(Arc::new(tls.context("server.tls_certificate")?))
            }
            _ => None,
        };
        Ok(Self {
            tls,
            main,
            operation,
            limits: ConnectionLimits {
                connections: settings.connections.min(possible),
                per_address: settings.connections_per_address,
                header_timeout: Duration::from_secs(settings.header_timeout_seconds),
                keep_alive: Duration::from_secs(settings.keep_alive_seconds),
            },
        })
    }

    /// The URL of the API; empty without one.
    fn url(&self) -> anyhow::Result<String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let Some(main) = &self.main else {
            return Ok(String::new());
        };
        let address = main.local_addr()?;
        Ok(if address.ip().is_unspecified() {
            format!("{scheme}://localhost:{}", address.port())
        } else {
            format!("{scheme}://{address}")
        })
    }
}

async fn listen(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("cannot listen on {address} ({setting})"))
}

/// The nice value added to the compute threads. A search may use every idle core, but requests have
/// priority and do not wait for it.
const COMPUTE_NICENESS: i32 = 5;

/// Serves requests and runs jobs until `shutdown`, and then until the running ones have ended or
/// the grace period is over.
async fn serve(
    settings: &Settings,
    duty: Duty,
    store: &Store,
    storage: Arc<Storage>,
    listeners: Listeners,
    stop: &Stop,
) -> anyhow::Result<()> {
    start_compute_pool(settings.workers.threads)?;
    let keys = Arc::new(keys::open(settings, store).await?);
    let executors = ExecutorSet::open(&settings.executors).map_err(anyhow::Error::msg)?;
    deletion::destroy_leftover_keys(store, &keys).await?;
    let app = App::new(
        store.clone(),
        keys,
        limits(settings),
        memory_budget(settings),
        storage,
        stop.shutdown.clone(),
    )
    .with_executors(executors);
    let state = state(settings, app.clone(), listeners.url()?);
    let operation_router = pais::api::operation_router(state.clone());
    let router = pais::api::router(state, &router_settings(settings, &listeners))?;
    let workers = worker_settings(settings, duty);
    let pool = jobs::start(app.resources(), workers, stop.shutdown.clone());
    let pool = pool.context("cannot start the workers")?;
    let Listeners {
        main,
        tls,
        operation,
        limits,
    } = listeners;
    match &main {
        Some(main) => {
            tracing::info!(address = %main.local_addr()?, tls = tls.is_some(), "serving");
        }
        None => tracing::info!(jobs = workers.concurrency, "running jobs"),
    }
    let grace = Duration::from_secs(settings.server.shutdown_grace_seconds);
    let _reloading = AbortOnDropHandle::new(tokio::spawn(reload(stop.reload.clone(), tls.clone())));
    let serving = async {
        let Some(listener) = main else {
            return stop.shutdown.cancelled().await;
        };
        let server = Server {
            listener,
            tls,
            router,
            limits,
        };
        serve_until(server, stop, grace).await;
        stop.shutdown.cancel();
        app.interrupt();
    };
    let serving_operation = async {
        let Some(listener) = operation else { return };
        let server = Server {
            listener,
            tls: None,
            router: operation_router,
            limits: ConnectionLimits {
                connections: OPERATION_CONNECTIONS,
                per_address: OPERATION_CONNECTIONS,
                ..limits
            },
        };
        serve_until(server, stop, grace).await;
    };
    tokio::join!(serving, serving_operation, drain(&pool, stop, grace));
    pool.stop().await;
    // What this process has left, such as the keys of interrupted requests, is free at once.
    if let Err(error) = instances::remove(store).await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "the end of this process could not be written"
        );
    }
    Ok(())
}

fn start_compute_pool(threads: usize) -> anyhow::Result<()> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("compute-{index}"))
        .start_handler(|_| {
            // If this fails, computing and requests have the same priority.
            let _ = rustix::process::nice(COMPUTE_NICENESS);
        })
        .build_global()
        .context("cannot start the computing pool (workers.threads)")
}

async fn serve_until(server: Server, stop: &Stop, grace: Duration) {
    tokio::select! {
        () = server.run(stop.shutdown.clone(), grace) => {}
        () = stop.at_once.cancelled() => {}
    }
}

/// Waits for the shutdown, and then for the running jobs, at most for the grace period.
async fn drain(pool: &WorkerPool, stop: &Stop, grace: Duration) {
    stop.shutdown.cancelled().await;
    tokio::select! {
        () = pool.drained() => {}
        () = tokio::time::sleep(grace) => {
            tracing::info!("the grace period is over; returning the running jobs to the queue");
        }
        () = stop.at_once.cancelled() => {}
    }
}

/// Reads the certificate again whenever that is requested.
async fn reload(asked: Arc<Notify>, tls: Option<Arc<Tls>>) {
    loop {
        asked.notified().await;
        match tls.as_ref().map(|tls| tls.reload()) {
            Some(Ok(())) => tracing::info!("the certificate was read again"),
            Some(Err(error)) => tracing::error!(
                error = &*error as &dyn std::error::Error,
                "the certificate could not be read again; the previous certificate stays in use"
            ),
            None => tracing::info!("SIGHUP: there is no certificate to read again"),
        }
    }
}

fn state(settings: &Settings, app: App, own_url: String) -> AppState {
    let (server, limits) = (&settings.server, &settings.limits);
    AppState {
        app: app.into(),
        rate_limiter: RateLimiter::new(limits.requests_per_second).map(Arc::new),
        refused_tokens: RefusedTokens::new(limits.refused_tokens_per_minute).map(Arc::new),
        oidc: settings.oidc.settings().map(Verifier::new).map(Arc::new),
        body_timeout: Duration::from_secs(server.body_timeout_seconds),
        is_behind_proxy: server.behind_proxy,
        public_url: server.public_url.clone(),
        own_url,
    }
}

fn router_settings(settings: &Settings, listeners: &Listeners) -> RouterSettings {
    let server = &settings.server;
    RouterSettings {
        request_timeout: Duration::from_secs(server.request_timeout_seconds),
        cors_origins: server.cors_origins.clone(),
        operation: match &listeners.operation {
            Some(_) => OperationRoutes::Separate,
            None if server.is_local() => OperationRoutes::ProbesAndMetrics,
            None => OperationRoutes::Probes,
        },
        sign_in: settings.oidc.console(),
    }
}

fn worker_settings(settings: &Settings, duty: Duty) -> WorkerPoolSettings {
    let workers = &settings.workers;
    WorkerPoolSettings {
        concurrency: match duty {
            Duty::Everything | Duty::Jobs => workers.jobs,
            Duty::Requests => 0,
        },
        lease: Duration::from_secs(workers.lease_seconds),
        heartbeat: Duration::from_secs(workers.heartbeat_seconds),
        poll: Duration::from_secs(workers.poll_seconds),
        max_attempts: workers.max_attempts,
        max_run: Duration::from_secs(workers.max_run_seconds),
        running_per_organization: settings.organizations.running_jobs,
        job_bytes: settings.memory.job_bytes,
        quotas: quotas(&settings.organizations),
    }
}

fn quotas(settings: &OrganizationSettings) -> Quotas {
    Quotas {
        stored_bytes: settings.stored_bytes,
        stored_rows: settings.stored_rows,
        queued_jobs: settings.queued_jobs,
    }
}

fn memory_budget(settings: &Settings) -> MemoryBudget {
    let settings = &settings.memory;
    let total = process::process_budget(settings.process_bytes);
    MemoryBudget::new(total, Duration::from_secs(settings.wait_seconds))
}

fn limits(settings: &Settings) -> Limits {
    let job_bytes = settings.memory.job_bytes;
    let enrolment = settings.security.enrolment;
    let token_lifetime = TokenLifetime::of_days(settings.security.token_max_days);
    let organizations = &settings.organizations;
    let settings = &settings.limits;
    Limits {
        enrolment,
        job_bytes,
        job_json_bytes: settings.job_json_bytes,
        upload_bytes: settings.upload_bytes,
        cell_bytes: settings.cell_bytes,
        json_bytes: settings.json_bytes,
        columns: settings.columns,
        taxonomy: TreeLimits {
            leaves: settings.taxonomy_leaves,
            depth: settings.taxonomy_depth,
        },
        concurrent_uploads: settings.uploads,
        uploads_per_organization: organizations.uploads,
        upload_wait: Duration::from_secs(settings.upload_wait_seconds),
        upload_pace: UploadPace {
            max_duration: Duration::from_secs(settings.upload_seconds),
            bytes_per_second: settings.upload_bytes_per_second,
            ..UploadPace::default()
        },
        quotas: quotas(organizations),
        streams: StreamLimits {
            per_token: settings.streams_per_token,
            per_organization: organizations.streams,
        },
        token_lifetime,
    }
}
