//! The embedded PostgreSQL: finds the installed server, creates a database in the data directory,
//! starts the server, lets commands share it, and stops it.
//!
//! The server listens on a socket in a 0700 directory and on no network address. Every client needs
//! a password, which is in a 0600 file. The log of the server contains nothing from statements. A
//! lock, which is taken first, makes sure that only one process at a time starts a server. The
//! module needs `/proc`, so it works on Linux only; on other systems use an external PostgreSQL.

#![forbid(unsafe_code)]

mod account;
mod cluster;
mod error;
mod layout;
mod locate;
mod lock;
mod orphan;
mod server;
mod socket;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection};
use tokio::process::Command;

use account::{Account, PathAccess};
use cluster::Password;
use layout::{Layout, cluster_of};
use locate::Binaries;
use lock::{Lock, Purpose};
use server::ServerProcess;

pub use error::PostgresError;

/// How long a command waits for the server of a service that is starting, or for another command.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(120);
/// Time between two attempts to attach.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How often a server that ends by itself is restarted.
const RESTARTS: u32 = 3;
/// A server that ran for this long is restarted this often again.
const STABLE: Duration = Duration::from_secs(600);

/// Options of the embedded server.
#[derive(Debug, Clone)]
pub struct EmbeddedOptions {
    /// The directory that contains `postgres` and `initdb`. If absent, it is searched for.
    pub bin_dir: Option<PathBuf>,
    /// Maximum number of connections. Three of them are reserved for the superuser.
    pub max_connections: u32,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            bin_dir: None,
            max_connections: 100,
        }
    }
}

/// A server to connect to. This process either started it or shares it.
///
/// If this is dropped without [`EmbeddedServer::stop`], a server that this process started is asked
/// to stop, without waiting for its end. A shared one keeps running.
#[derive(Debug)]
pub struct EmbeddedServer {
    options: PgConnectOptions,
    own: Option<OwnedServer>,
}

/// A server that this process started. The fields are dropped in this order, so that the server is
/// asked to stop before the lock is released.
#[derive(Debug)]
struct OwnedServer {
    process: ServerProcess,
    launch: Launch,
    _lock: Lock,
}

/// The parameters for starting a server.
#[derive(Debug)]
struct Launch {
    layout: Layout,
    account: Account,
    access: PathAccess,
    binaries: Binaries,
    socket_dir: PathBuf,
    password: Password,
    max_connections: u32,
}

/// Starts the server of a service in `data_dir`, which is created if it is missing. Commands can
/// share the server by [`attach_or_start`].
///
/// # Errors
/// [`PostgresError::InUse`] if another service runs in `data_dir`. Other errors if the server
/// cannot be found, prepared or started.
pub async fn start(
    data_dir: &Path,
    options: &EmbeddedOptions,
) -> Result<EmbeddedServer, PostgresError> {
    start_for(Purpose::Service, data_dir, options).await
}

/// The connection options of the server that a running service has in `data_dir`; `None` if no
/// service runs there. Waits up to 120 s for a service that is starting, or for another command to
/// end.
///
/// # Errors
/// If the data directory cannot be read, or the server does not answer.
pub async fn attach(data_dir: &Path) -> Result<Option<PgConnectOptions>, PostgresError> {
    if !data_dir.exists() {
        return Ok(None);
    }
    let layout = Layout::find(data_dir)?;
    let begun = Instant::now();
    let mut last_error = String::new();
    while let Some(holder) = Lock::holder(&layout)? {
        let socket_dir = socket::connection(&layout);
        if let Some(socket_dir) = socket_dir.filter(|_| holder == Purpose::Service) {
            let options = Password::read(&layout)?.service_options(&socket_dir);
            match options.connect().await {
                Ok(connection) => {
                    // Only whether it opened matters.
                    let _ = connection.close().await;
                    return Ok(Some(options));
                }
                Err(error) => last_error = format!(" ({error})"),
            }
        }
        if begun.elapsed() >= ATTACH_TIMEOUT {
            return Err(PostgresError::Unusable(format!(
                "the PostgreSQL of another pais did not accept connections within {} seconds{last_error}; \
                 its log is {}",
                ATTACH_TIMEOUT.as_secs(),
                layout.log().display()
            )));
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
    Ok(None)
}

/// The server of the service that runs in `data_dir`. If no service runs there, starts a server.
/// For commands, which work with and without a running service.
///
/// # Errors
/// As [`attach`] and [`start`].
pub async fn attach_or_start(
    data_dir: &Path,
    options: &EmbeddedOptions,
) -> Result<EmbeddedServer, PostgresError> {
    let mut attempts_left = 3;
    loop {
        if let Some(options) = attach(data_dir).await? {
            return Ok(EmbeddedServer { options, own: None });
        }
        attempts_left -= 1;
        match start_for(Purpose::Command, data_dir, options).await {
            // A service has started since the check.
            Err(PostgresError::InUse { .. }) if attempts_left > 0 => {}
            result => return result,
        }
    }
}

/// A program of PostgreSQL, such as `pg_dump`: from the installation that the embedded server of `data_dir`
/// uses or would use; without one, the newest installed program. It does not get the environment of this
/// process, and is killed when it is dropped.
///
/// # Errors
/// If there is none.
pub async fn client(
    name: &str,
    data_dir: Option<&Path>,
    options: &EmbeddedOptions,
) -> Result<Command, PostgresError> {
    let bin_dir = options.bin_dir.as_deref();
    let program = match data_dir {
        Some(data_dir) => {
            let cluster = cluster_of(data_dir);
            locate::locate(bin_dir, &cluster).await?.program(name)
        }
        None => locate::newest(name, bin_dir).await?,
    };
    let mut command = cluster::isolated_command(&program);
    command.kill_on_drop(true);
    Ok(command)
}

/// Whether `data_dir` has a database.
pub fn has_cluster(data_dir: &Path) -> bool {
    cluster_of(data_dir).exists()
}

async fn start_for(
    purpose: Purpose,
    data_dir: &Path,
    options: &EmbeddedOptions,
) -> Result<EmbeddedServer, PostgresError> {
    let layout = Layout::create(data_dir)?;
    let lock = Lock::take(&layout, purpose).await?;
    let earlier = socket::connection(&layout);
    layout::remove_if_exists(&layout.connection())?;
    orphan::stop_leftover_server(&layout).await?;
    if let Some(earlier) = earlier {
        socket::remove_dir(&earlier, &layout);
    }

    let binaries = locate::locate(options.bin_dir.as_deref(), &layout.cluster()).await?;
    let account = Account::choose(&layout.cluster())?;
    layout.allow_entry(&account)?;
    let access = PathAccess::open(layout.base(), &account)?;
    let password = cluster::prepare(&layout, &account, &access, &binaries).await?;

    let socket_dir = socket::create_dir(&layout, &account)?;
    let launch = Launch {
        layout,
        account,
        access,
        binaries,
        socket_dir,
        password,
        max_connections: options.max_connections,
    };
    let mut own = OwnedServer {
        process: ServerProcess::spawn(&launch)?,
        launch,
        _lock: lock,
    };
    match own.open().await {
        Ok(()) => Ok(EmbeddedServer {
            options: own.launch.password.service_options(&own.launch.socket_dir),
            own: Some(own),
        }),
        Err(error) => {
            if let Err(also) = own.stop().await {
                tracing::warn!(error = %also, "the database server that failed was not stopped");
            }
            Err(error)
        }
    }
}

impl OwnedServer {
    /// Waits for the server, creates the role and database, and writes the connection file for
    /// commands.
    async fn open(&mut self) -> Result<(), PostgresError> {
        let Launch {
            layout,
            socket_dir,
            password,
            ..
        } = &self.launch;
        self.process.ready(password, socket_dir).await?;
        cluster::create_role_and_database(password, socket_dir).await?;
        socket::write_connection(layout, socket_dir)
    }

    /// Starts the server again whenever it ends by itself. Returns why that does not help.
    async fn keep(&mut self) -> PostgresError {
        let mut restarts = 0;
        loop {
            let began = Instant::now();
            let mut why = self.process.wait().await;
            if began.elapsed() >= STABLE {
                restarts = 0;
            }
            loop {
                if restarts == RESTARTS {
                    return PostgresError::Unusable(format!(
                        "{why}; it was started again {RESTARTS} times, which did not help. Find out \
                         what ends it, and let a supervisor restart this process (`Restart=on-failure` \
                         of systemd, the restart policy of a container)"
                    ));
                }
                restarts += 1;
                tracing::error!(%why, restarts, "the database server is started again");
                match self.restart().await {
                    Ok(()) => break,
                    Err(error) => why = error,
                }
            }
            tracing::info!("the database server runs again");
        }
    }

    /// Starts the server on the same socket, after the end of the previous one.
    async fn restart(&mut self) -> Result<(), PostgresError> {
        let launch = &self.launch;
        orphan::stop_leftover_server(&launch.layout).await?;
        self.process = ServerProcess::spawn(launch)?;
        self.process
            .ready(&launch.password, &launch.socket_dir)
            .await
    }

    async fn stop(mut self) -> Result<(), PostgresError> {
        let Launch {
            layout, socket_dir, ..
        } = &self.launch;
        layout::remove_if_exists(&layout.connection())?;
        self.process.stop().await?;
        socket::remove_dir(socket_dir, layout);
        Ok(())
    }
}

impl EmbeddedServer {
    /// The connection options: over the socket, as role `pais`, to database `pais`.
    pub fn connect_options(&self) -> PgConnectOptions {
        self.options.clone()
    }

    /// Whether this process started the server and must stop it.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Keeps a server that this process started running: starts it again when it ends by itself, with the same
    /// connection options. Returns why it ended once it has ended more than three times, each within ten
    /// minutes. For a shared one it never returns. Race it against the work of the service, which cannot
    /// continue without its database.
    pub async fn ended(&mut self) -> PostgresError {
        match &mut self.own {
            Some(own) => own.keep().await,
            None => std::future::pending().await,
        }
    }

    /// Stops a server that this process started and waits for its end. A shared one keeps running.
    /// Open transactions are rolled back and their connections closed.
    ///
    /// # Errors
    /// If the server does not stop.
    pub async fn stop(self) -> Result<(), PostgresError> {
        match self.own {
            Some(own) => own.stop().await,
            None => Ok(()),
        }
    }
}
