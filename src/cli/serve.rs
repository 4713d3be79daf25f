//! `pais serve`.

use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use pais::config::{Flags, Settings, WorkerSettings};
use pais::http::rate_limiter::RateLimiter;
use pais::http::{AppState, RouterSettings};
use pais::service::{Service, ServiceLimits, TokenLifetime};
use pais::storage::{Storage, StorageLimits};
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
use super::{block_on, keys};

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
    let storage = Arc::new(storage(settings));
    // The database server cannot start on a full disk.
    storage.use_reserve_if_full();
    let mut database = Database::open_for_service(settings).await?;
    let store = database.store.clone();
    let served = tokio::select! {
        served = work(settings, &store, storage, listener, &shutdown) => served,
        why = database.ended() => Err(why.into()),
    };
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
    instances::register(store, uuid::Uuid::new_v4()).await?;
    create_empty_spool(&settings.server.data_dir, storage.spool().dir())?;
    let limits = limits(settings);
    let service = Service::new(
        store.clone(),
        keys.clone(),
        limits,
        storage,
        shutdown.clone(),
    );
    tokio::spawn(service.clone().keep_storage());
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
    let pool = worker::start(store.clone(), keys, workers, wake, shutdown.clone());
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

/// Name of the spool directory: in the data directory, or in `storage.spool_dir`, where a directory
/// that is emptied at every start must have a name of its own.
const SPOOL: [&str; 2] = ["spool", "pais-spool"];

fn storage(settings: &Settings) -> Storage {
    let (data_dir, settings) = (settings.server.data_dir.clone(), &settings.storage);
    let [beside_data, elsewhere] = SPOOL;
    let spool = match &settings.spool_dir {
        Some(dir) => dir.join(elsewhere),
        None => data_dir.join(beside_data),
    };
    let limits = StorageLimits {
        min_free_bytes: settings.min_free_bytes,
        reserve_bytes: settings.reserve_bytes,
        spool_bytes: settings.spool_bytes,
    };
    Storage::new(data_dir, spool, limits)
}

/// Creates the directory of rendered tables and temporary files. Deletes first what a crash has left
/// there.
fn create_empty_spool(data_dir: &Path, spool: &Path) -> anyhow::Result<()> {
    let created = match std::fs::remove_dir_all(spool) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => std::fs::create_dir_all(data_dir)
            .and_then(|()| spool.parent().map_or(Ok(()), std::fs::create_dir_all))
            .and_then(|()| std::fs::DirBuilder::new().mode(0o700).create(spool)),
    };
    created.with_context(|| {
        let setting = "server.data_dir, storage.spool_dir";
        format!("cannot create {} ({setting})", spool.display())
    })
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

fn limits(settings: &Settings) -> ServiceLimits {
    let job_bytes = settings.memory.job_bytes;
    let token_lifetime = TokenLifetime {
        max_days: settings.security.token_max_days,
    };
    let settings = &settings.limits;
    ServiceLimits {
        job_bytes,
        token_lifetime,
        upload_bytes: settings.upload_bytes,
        json_bytes: settings.json_bytes,
        columns: settings.columns,
        taxonomy: TreeLimits {
            leaves: settings.taxonomy_leaves,
            depth: settings.taxonomy_depth,
        },
        concurrent_uploads: CONCURRENT_UPLOADS,
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
