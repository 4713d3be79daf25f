//! `pais serve`.

use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use pais::config::{Flags, Settings, WorkerSettings};
use pais::http::rate_limiter::RateLimiter;
use pais::http::{AppState, ConnectionLimits, RefusedTokens, RouterSettings, UploadPace};
use pais::memory::MemoryBudget;
use pais::service::{Service, ServiceLimits};
use pais::store::sealing_of_old_rows::seal_old_rows;
use pais::store::{Store, instances};
use pais::telemetry;
use pais::worker;
use pais_core::taxonomy::TreeLimits;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::database::Database;
use super::settings::SettingsArgs;
use super::{block_on, keys, machine_memory, process};

/// Connections of the listener of probes and metrics.
const OPERATION_CONNECTIONS: usize = 64;

/// Flags of `pais serve`.
#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    settings: SettingsArgs,
}

/// Runs the service until SIGTERM or SIGINT.
///
/// # Errors
/// If the settings are invalid, the service cannot start, or its database ends unexpectedly.
pub(crate) fn run(args: ServeArgs) -> anyhow::Result<()> {
    let flags = Flags {
        listen: args.listen,
        ..Flags::default()
    };
    let settings = args.settings.load(flags)?;
    telemetry::init(&settings.log)?;
    block_on(serve(&settings))
}

async fn serve(settings: &Settings) -> anyhow::Result<()> {
    let shutdown = CancellationToken::new();
    stop_on_signal(shutdown.clone())?;
    // Bind before starting the database, which takes longer: a port in use is reported at once.
    let listeners = Listeners::bind(settings).await?;
    let mut database = Database::open_for_service(settings).await?;
    let store = database.store.clone();
    let served = tokio::select! {
        served = work(settings, &store, listeners, &shutdown) => served,
        why = database.ended() => Err(why.into()),
    };
    let closed = database.close().await;
    served.and(closed)
}

/// Where requests come in, and how many connections may be open.
struct Listeners {
    main: TcpListener,
    /// That of probes and metrics, if they have one.
    operation: Option<TcpListener>,
    limits: ConnectionLimits,
}

impl Listeners {
    async fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let settings = &settings.server;
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
        Ok(Self {
            main: listen(settings.listen, "server.listen").await?,
            operation,
            limits: ConnectionLimits {
                connections: settings.connections.min(possible),
                per_address: settings.connections_per_address,
                header_timeout: settings.header_timeout(),
                keep_alive: settings.keep_alive(),
            },
        })
    }
}

async fn listen(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("cannot listen on {address} ({setting})"))
}

/// The niceness added to the computing threads. A search may use every idle core, but requests have
/// priority and do not wait for it.
const COMPUTE_NICENESS: i32 = 5;

/// Serves requests and runs jobs until `shutdown`, and then until the running ones have ended or
/// the grace period is over.
async fn work(
    settings: &Settings,
    store: &Store,
    listeners: Listeners,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(settings.workers.threads)
        .thread_name(|index| format!("compute-{index}"))
        .start_handler(|_| {
            // If this fails, computing and requests have the same priority.
            let _ = rustix::process::nice(COMPUTE_NICENESS);
        })
        .build_global()
        .context("cannot start the computing pool (workers.threads)")?;
    let keys = Arc::new(keys::open(settings, store).await?);
    seal_old_rows(store, &keys).await?;
    instances::register(store, uuid::Uuid::new_v4()).await?;
    let spool = create_empty_spool(&settings.server.data_dir)?;
    let limits = limits(settings);
    let memory = memory_budget(settings);
    let service = Service::new(
        store.clone(),
        keys.clone(),
        limits,
        memory,
        spool,
        shutdown.clone(),
    );
    let wake = service.wake.clone();
    let state = AppState {
        service,
        rate_limiter: RateLimiter::new(settings.limits.requests_per_second).map(Arc::new),
        refused_tokens: RefusedTokens::new(settings.limits.refused_tokens_per_minute).map(Arc::new),
        body_timeout: settings.server.body_timeout(),
        upload_pace: UploadPace {
            max_duration: settings.limits.upload_duration(),
            bytes_per_second: settings.limits.upload_bytes_per_second,
            ..UploadPace::default()
        },
    };
    let router_settings = RouterSettings {
        request_timeout: settings.server.request_timeout(),
        cors_origins: settings.server.cors_origins.clone(),
        is_operation_separate: listeners.operation.is_some(),
        public_url: settings.server.public_url.clone(),
    };
    let operation_router = pais::http::operation_router(state.clone());
    let router = pais::http::router(state, &router_settings)?;
    let workers = worker_settings(&settings.workers);
    let pool = worker::start(store.clone(), keys, workers, wake, shutdown.clone());
    let Listeners {
        main,
        operation,
        limits,
    } = listeners;
    tracing::info!(address = %main.local_addr()?, "serving");
    let grace = settings.server.shutdown_grace();
    let serving = async {
        let served = pais::http::serve(main, router, limits, shutdown.clone(), grace).await;
        shutdown.cancel();
        served
    };
    let serving_operation = async {
        let Some(listener) = operation else {
            return Ok(());
        };
        let limits = ConnectionLimits {
            connections: OPERATION_CONNECTIONS,
            per_address: OPERATION_CONNECTIONS,
            ..limits
        };
        pais::http::serve(listener, operation_router, limits, shutdown.clone(), grace).await
    };
    let draining = async {
        shutdown.cancelled().await;
        if tokio::time::timeout(grace, pool.drained()).await.is_err() {
            tracing::info!("the grace period is over; returning the running jobs to the queue");
        }
    };
    let (served, operation_served, ()) = tokio::join!(serving, serving_operation, draining);
    pool.stop().await;
    Ok(served.and(operation_served)?)
}

/// Creates the directory of rendered tables in the data directory. Deletes first what a crash has
/// left there.
fn create_empty_spool(data_dir: &Path) -> anyhow::Result<PathBuf> {
    let spool = data_dir.join("spool");
    let created = match std::fs::remove_dir_all(&spool) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => std::fs::create_dir_all(data_dir)
            .and_then(|()| std::fs::DirBuilder::new().mode(0o700).create(&spool)),
    };
    created.with_context(|| format!("cannot create {} (server.data_dir)", spool.display()))?;
    Ok(spool)
}

fn worker_settings(settings: &WorkerSettings) -> worker::WorkerPoolSettings {
    worker::WorkerPoolSettings {
        concurrency: settings.jobs,
        lease: settings.lease(),
        heartbeat: settings.heartbeat(),
        poll: settings.poll(),
        max_attempts: settings.max_attempts,
    }
}

fn memory_budget(settings: &Settings) -> MemoryBudget {
    let settings = &settings.memory;
    let total = machine_memory::process_budget(settings.process_bytes);
    MemoryBudget::new(total, settings.wait())
}

fn limits(settings: &Settings) -> ServiceLimits {
    let job_bytes = settings.memory.job_bytes;
    let uploads_per_organization = settings.organizations.uploads;
    let settings = &settings.limits;
    ServiceLimits {
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
        uploads_per_organization,
        upload_wait: settings.upload_wait(),
    }
}

fn stop_on_signal(shutdown: CancellationToken) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        shutdown.cancel();
    });
    Ok(())
}
