//! The settings of a command, and the database that they name: an external or the embedded one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use clap::Args;
use pais::clock::SystemClock;
use pais::config::{ConfigError, Flags, Settings};
use pais::db::data_keys::DataKeys;
use pais::db::migration_state::MigrationState;
use pais::db::{Store, instances, sessions};
use pais::telemetry;
use pais_postgres::{EmbeddedOptions, EmbeddedServer};
use secrecy::ExposeSecret;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Postgres};
use tokio::time::timeout;

use super::block_on;
use super::process::handle_signals;

/// The sources of settings other than the environment.
#[derive(Args)]
pub(crate) struct SettingsArgs {
    /// Settings file (TOML); config/example.toml lists what can be set
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of the embedded database and the key file
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl SettingsArgs {
    /// Reads the settings. `flags` contains the values of the command's own flags.
    ///
    /// # Errors
    /// [`ConfigError`], with the key and source of the invalid setting.
    pub(crate) fn load(&self, mut flags: Flags) -> Result<Settings, ConfigError> {
        flags.data_dir = self.data_dir.clone();
        Settings::load(self.config.as_deref(), &flags)
    }

    /// Reads the settings of a command without flags of its own, and begins the log.
    ///
    /// # Errors
    /// As [`Self::load`], and when the log cannot begin.
    pub(crate) fn start(&self) -> anyhow::Result<Settings> {
        let settings = self.load(Flags::default())?;
        telemetry::init(&settings.log)?;
        Ok(settings)
    }
}

/// How long the connections may take to be closed.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// How long a database that does not answer is asked why.
const REASON_WAIT: Duration = Duration::from_secs(2);

/// How long a process that runs jobs only waits for a service of its data directory.
const SERVICE_WAIT: Duration = Duration::from_secs(120);

/// Time between two looks for it.
const SERVICE_POLL: Duration = Duration::from_millis(500);

/// An open database, and its embedded server if it has one.
pub(crate) struct Database {
    /// The database.
    pub store: Store,
    server: Option<EmbeddedServer>,
}

impl Database {
    /// Opens the database of a service, which starts its own embedded server.
    ///
    /// # Errors
    /// When the database cannot be started, reached or migrated.
    pub(crate) async fn start(settings: &Settings) -> anyhow::Result<Self> {
        let server = match settings.database.url {
            Some(_) => None,
            None => {
                let dir = &settings.server.data_dir;
                Some(pais_postgres::start(dir, &embedded(settings)).await?)
            }
        };
        if let Some(directory) = key_directory(settings) {
            DataKeys::directory(&directory)?;
        }
        Self::connect(settings, server)?.migrated().await
    }

    /// Opens the database of a command, which shares the embedded server of a running service.
    ///
    /// # Errors
    /// When the database cannot be started, reached or migrated.
    pub(crate) async fn open(settings: &Settings) -> anyhow::Result<Self> {
        Self::open_unmigrated(settings).await?.migrated().await
    }

    /// As [`Self::open`], but the database stays as it is: migrations may be missing.
    ///
    /// # Errors
    /// When the database cannot be started. One that cannot be reached is met at the first statement.
    pub(crate) async fn open_unmigrated(settings: &Settings) -> anyhow::Result<Self> {
        let server = match settings.database.url {
            Some(_) => None,
            None => {
                let dir = &settings.server.data_dir;
                Some(pais_postgres::attach_or_start(dir, &embedded(settings)).await?)
            }
        };
        Self::connect(settings, server)
    }

    /// Opens the database of a process that runs jobs only. It does not start an embedded server: it
    /// waits for that of a service.
    ///
    /// # Errors
    /// When no service starts one in time, or the database cannot be reached or migrated.
    pub(crate) async fn wait_for(settings: &Settings) -> anyhow::Result<Self> {
        if settings.database.url.is_some() {
            return Self::open(settings).await;
        }
        let dir = &settings.server.data_dir;
        let begun = Instant::now();
        let options = loop {
            if let Some(options) = pais_postgres::attach(dir).await? {
                break options;
            }
            if begun.elapsed() >= SERVICE_WAIT {
                return Err(no_service(dir));
            }
            tokio::time::sleep(SERVICE_POLL).await;
        };
        let store = store(settings, Some(options))?;
        let server = None;
        Self { store, server }.migrated().await
    }

    fn connect(settings: &Settings, server: Option<EmbeddedServer>) -> anyhow::Result<Self> {
        let options = server.as_ref().map(EmbeddedServer::connect_options);
        let store = store(settings, options)?;
        Ok(Self { store, server })
    }

    /// Applies the missing migrations.
    ///
    /// # Errors
    /// When one fails, or a service of another version uses the database. Then the database is closed.
    pub(crate) async fn migrated(self) -> anyhow::Result<Self> {
        match migrate(&self.store).await {
            Ok(()) => Ok(self),
            Err(error) => {
                self.close().await?;
                Err(error)
            }
        }
    }

    /// Waits until the embedded server ends by itself, or the sessions with another one are lost, and
    /// returns why.
    pub(crate) async fn ended(&mut self, silence: Duration) -> anyhow::Error {
        let Some(server) = &mut self.server else {
            sessions::lost(&self.store, silence).await;
            return anyhow!(
                "the database answers to new connections and not to those of this process, which only its \
                 end closes; a supervisor has to start it again"
            );
        };
        server.ended().await.into()
    }

    /// Closes the connections, and stops the embedded server if this process started it.
    ///
    /// # Errors
    /// When the embedded server does not stop.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        // Work that was not waited for may still have a connection.
        let _ = timeout(CLOSE_WAIT, self.store.close()).await;
        if let Some(server) = self.server {
            server.stop().await?;
        }
        Ok(())
    }
}

fn no_service(dir: &Path) -> anyhow::Error {
    anyhow!(
        "no service runs in the data directory {}; start `pais serve --no-workers` there, \
         or set database.url",
        dir.display()
    )
}

/// Waits until a service has made its data directory: a mistyped name is no new directory.
///
/// # Errors
/// When no service makes it in time.
pub(super) async fn wait_for_directory(dir: &Path) -> anyhow::Result<()> {
    if dir.exists() {
        return Ok(());
    }
    tracing::warn!(directory = %dir.display(), "the data directory does not exist; waiting for its service");
    let begun = Instant::now();
    while !dir.exists() {
        if begun.elapsed() >= SERVICE_WAIT {
            return Err(no_service(dir));
        }
        tokio::time::sleep(SERVICE_POLL).await;
    }
    Ok(())
}

/// Refuses a data directory without a database: a mistyped name is no new database.
///
/// # Errors
/// When there is none.
pub(super) fn require_database(settings: &Settings) -> anyhow::Result<()> {
    let data_dir = &settings.server.data_dir;
    if settings.database.url.is_none() && !pais_postgres::has_cluster(data_dir) {
        anyhow::bail!(
            "there is no database in {}; name the data directory of the service with --data-dir",
            data_dir.display()
        );
    }
    Ok(())
}

/// Does the work of a command on the database of the settings, which has all migrations then. A signal ends the
/// work; an embedded server that was started for it is stopped first.
///
/// # Errors
/// When the database cannot be opened or closed, and after a signal; that of the work.
pub(crate) fn with_database<T>(
    settings: &Settings,
    work: impl AsyncFnOnce(&Store) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    block_on(async {
        let stop = handle_signals()?;
        let stopped = || anyhow!("stopped by a signal");
        // The start of an embedded server is waited for: it could not be stopped in between.
        let is_external = settings.database.url.is_some();
        let database = tokio::select! {
            database = Database::open(settings) => database?,
            () = stop.shutdown.cancelled(), if is_external => return Err(stopped()),
        };
        let result = tokio::select! {
            biased;
            () = stop.shutdown.cancelled() => Err(stopped()),
            result = work(&database.store) => result,
        };
        database.close().await?;
        result
    })
}

/// Applies the missing migrations, unless a service of another version uses the database.
async fn migrate(store: &Store) -> anyhow::Result<()> {
    let mut connection = connect_owner(store).await?;
    let state = MigrationState::of(&mut connection).await?;
    drop(connection);
    match state {
        MigrationState::Applied => return Ok(store.prepare_role().await?),
        MigrationState::Missing => {}
        MigrationState::Unfit(reason) => return Err(reason.into()),
    }
    let others = instances::others(store).await?;
    let this = env!("CARGO_PKG_VERSION");
    if let Some(other) = others.iter().find(|other| other.version != this) {
        anyhow::bail!(
            "a service of version {} is using the database, and the migrations of version {this} would \
             change it under that service; stop it first",
            other.version
        );
    }
    Ok(store.migrate().await?)
}

/// A connection of the owner of the tables.
///
/// # Errors
/// Why the database cannot be reached.
pub(super) async fn connect_owner(store: &Store) -> anyhow::Result<PoolConnection<Postgres>> {
    match store.owner().acquire().await {
        Err(sqlx::Error::PoolTimedOut) => Err(unreachable(store).await),
        connection => Ok(connection?),
    }
}

/// Why a database cannot be reached, which the pool of its connections does not say.
async fn unreachable(store: &Store) -> anyhow::Error {
    let options = store.owner().connect_options();
    let place = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    let error = match timeout(REASON_WAIT, options.connect()).await {
        Ok(Err(error)) => error.into(),
        Ok(Ok(_)) | Err(_) => anyhow!("it does not answer"),
    };
    error.context(format!("the database at {place} cannot be reached"))
}

/// The database that an embedded server has, or that the settings name.
fn store(settings: &Settings, embedded: Option<PgConnectOptions>) -> anyhow::Result<Store> {
    let connections = settings.database.connections;
    let clock = Arc::new(SystemClock);
    let store = match (embedded, &settings.database.url) {
        (Some(options), _) => Store::new(options, connections, clock),
        (None, Some(url)) => Store::from_url(url.expose_secret(), connections, clock)
            .context("database.url is invalid; expected postgres://user:password@host/database")?,
        (None, None) => anyhow::bail!("there is no database; set database.url"),
    };
    let keys = match key_directory(settings) {
        Some(directory) => DataKeys::in_directory(&directory)?,
        None => DataKeys::Table,
    };
    Ok(store.with_data_keys(keys))
}

/// Where the data keys are: in `encryption.data_key_dir`; or in the data directory, where the embedded
/// database is, too. `None` where they are in an external database.
pub(super) fn key_directory(settings: &Settings) -> Option<PathBuf> {
    match (&settings.encryption.data_key_dir, &settings.database.url) {
        (Some(directory), _) => Some(directory.clone()),
        (None, None) => Some(settings.server.data_dir.join("dataset-keys")),
        (None, Some(_)) => None,
    }
}

/// The options of the embedded server.
pub(super) fn embedded(settings: &Settings) -> EmbeddedOptions {
    EmbeddedOptions {
        bin_dir: settings.postgres.bin_dir.clone(),
        max_connections: settings.postgres.max_connections,
    }
}
