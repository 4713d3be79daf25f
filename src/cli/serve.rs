//! `pais serve`.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use pais::config::{Flags, Settings, WorkerSettings};
use pais::http::rate_limiter::RateLimiter;
use pais::http::{AppState, RouterSettings};
use pais::memory::MemoryBudget;
use pais::service::token_lifetime::TokenLifetime;
use pais::service::{Service, ServiceLimits};
use pais::storage::Storage;
use pais::store::moving_of_old_keys::move_old_keys;
use pais::store::sealing_of_old_rows::seal_old_rows;
use pais::store::{Store, instances};
use pais::telemetry;
use pais::worker;
use pais_core::taxonomy::TreeLimits;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::database::Database;
use super::home::Home;
use super::settings::SettingsArgs;
use super::{block_on, hardening, keys, machine_memory, storage};

/// Number of uploads read at the same time. Each uses one thread while its rows are encoded.
const CONCURRENT_UPLOADS: usize = 8;

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
    hardening::forbid_dumps();
    block_on(serve(&settings))
}

async fn serve(settings: &Settings) -> anyhow::Result<()> {
    let shutdown = CancellationToken::new();
    stop_on_signal(shutdown.clone())?;
    let address = settings.server.listen;
    // Bind before starting the database, which takes longer: a port in use is reported at once.
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} (server.listen)"))?;
    let storage = Arc::new(storage::open(settings)?);
    let home = Home::lock(&settings.server.data_dir)?;
    // The database needs space to start.
    storage.make_room();
    let mut database = Database::open_for_service(settings).await?;
    let store = database.store.clone();
    instances::register(&store, home.id).await?;
    let served = tokio::select! {
        served = work(settings, &store, storage, listener, &shutdown) => served,
        why = database.ended() => Err(why.into()),
    };
    if let Err(error) = instances::remove(&store).await {
        tracing::debug!(%error, "this process could not be signed off; its successor does so");
    }
    let closed = database.close().await;
    served.and(closed)
}

/// The niceness added to the computing threads. A search may use every idle core, but requests have
/// priority and do not wait for it.
const COMPUTE_NICENESS: i32 = 5;

/// Serves requests and runs jobs until `shutdown`, and then until the running ones have ended or
/// the grace period is over.
async fn work(
    settings: &Settings,
    store: &Store,
    storage: Arc<Storage>,
    listener: TcpListener,
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
    move_old_keys(store).await?;
    let limits = limits(settings);
    let memory = memory_budget(settings);
    let service = Service::new(
        store.clone(),
        keys.clone(),
        limits,
        memory,
        storage.clone(),
        shutdown.clone(),
    );
    let wake = service.wake.clone();
    let state = AppState {
        service,
        rate_limiter: RateLimiter::new(settings.limits.requests_per_second).map(Arc::new),
    };
    let router_settings = RouterSettings {
        request_timeout: settings.server.request_timeout(),
        cors_origins: settings.server.cors_origins.clone(),
    };
    let router = pais::http::router(state, &router_settings)?;
    let workers = worker_settings(&settings.workers);
    let pool = worker::start(
        store.clone(),
        keys,
        storage,
        workers,
        wake,
        shutdown.clone(),
    );
    tracing::info!(address = %listener.local_addr()?, "serving");
    let grace = settings.server.shutdown_grace();
    let serving = async {
        let served = pais::http::serve(listener, router, shutdown.clone(), grace).await;
        shutdown.cancel();
        served
    };
    let draining = async {
        shutdown.cancelled().await;
        if tokio::time::timeout(grace, pool.drained()).await.is_err() {
            tracing::info!("the grace period is over; returning the running jobs to the queue");
        }
    };
    let (served, ()) = tokio::join!(serving, draining);
    pool.stop().await;
    Ok(served?)
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
    let token_lifetime = TokenLifetime::of_days(settings.security.token_max_days);
    let settings = &settings.limits;
    ServiceLimits {
        job_bytes,
        upload_bytes: settings.upload_bytes,
        json_bytes: settings.json_bytes,
        columns: settings.columns,
        taxonomy: TreeLimits {
            leaves: settings.taxonomy_leaves,
            depth: settings.taxonomy_depth,
        },
        concurrent_uploads: CONCURRENT_UPLOADS,
        token_lifetime,
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
