//! The embedded PostgreSQL: finds the installed server, makes a database in the data directory,
//! starts the server, lets commands share it, and stops it.
//!
//! It listens on a socket in a 0700 directory and on no network address, asks every client for
//! a password that is kept in a 0600 file, and writes nothing of what statements contain to its
//! log. One process at a time has it, by a lock that is taken before anything else. It relies on
//! `/proc`, so it runs on Linux only; elsewhere an outside PostgreSQL serves.

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

use account::{Account, Reach};
use cluster::Password;
use layout::Layout;
use lock::{Lock, Purpose};
use server::Process;
use socket::Note;

pub use error::PostgresError;

/// How long a command waits for the server of a service that is starting, or for another command.
const ATTACH: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(100);

/// How the embedded server is to run.
#[derive(Debug, Clone)]
pub struct EmbeddedOptions {
    /// The directory that holds `postgres` and `initdb`; searched for when absent.
    pub bin_dir: Option<PathBuf>,
    /// Most connections at a time, three of which are kept for the superuser.
    pub max_connections: u32,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            bin_dir: None,
            max_connections: 40,
        }
    }
}

/// A server to connect to: one that this process started, or one that it shares.
///
/// Dropped without [`EmbeddedServer::stop`], a server this process started is asked to stop and
/// not waited for; a shared one is left alone.
#[derive(Debug)]
pub struct EmbeddedServer {
    options: PgConnectOptions,
    own: Option<Own>,
}

/// What this process has of a server it started. Fields are dropped in this order: the server is
/// told to stop before the lock is released.
#[derive(Debug)]
struct Own {
    process: Process,
    layout: Layout,
    socket_dir: PathBuf,
    _lock: Lock,
}

/// Starts the server of a service in `data_dir`, which is made where it is missing. Commands may
/// share it by [`attach_or_start`].
///
/// # Errors
/// [`PostgresError::InUse`] when another service runs in `data_dir`, else what kept the server
/// from being found, prepared or started.
pub async fn start(
    data_dir: &Path,
    options: &EmbeddedOptions,
) -> Result<EmbeddedServer, PostgresError> {
    start_for(Purpose::Service, data_dir, options).await
}

/// The server that a running service has in `data_dir`; `None` when no service runs there.
/// Waits for a service that is just starting, and for another command to end.
///
/// # Errors
/// When the data directory may not be read, or the service's server does not answer.
pub async fn attach(data_dir: &Path) -> Result<Option<PgConnectOptions>, PostgresError> {
    if !data_dir.exists() {
        return Ok(None);
    }
    let layout = Layout::find(data_dir)?;
    let begun = Instant::now();
    let mut refusal = None;
    while Lock::is_held(&layout)? {
        if let Some(note) = Note::read(&layout).filter(|note| note.shared) {
            let options = Password::read(&layout)?.service_options(&note.socket_dir);
            match options.connect().await {
                Ok(connection) => {
                    // Only whether it opened matters.
                    let _ = connection.close().await;
                    return Ok(Some(options));
                }
                Err(error) => refusal = Some(Box::new(error)),
            }
        }
        if begun.elapsed() >= ATTACH {
            return Err(PostgresError::NotReady {
                seconds: ATTACH.as_secs(),
                log: layout.log(),
                tail: "(started by another process)".to_owned(),
                source: refusal,
            });
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(None)
}

/// The server of the service that runs in `data_dir`, or one of this process's own where none
/// runs. For commands that work beside a service and without one.
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
            // A service has started since the look.
            Err(PostgresError::InUse { .. }) if attempts_left > 0 => {}
            result => return result,
        }
    }
}

async fn start_for(
    purpose: Purpose,
    data_dir: &Path,
    options: &EmbeddedOptions,
) -> Result<EmbeddedServer, PostgresError> {
    let layout = Layout::create(data_dir)?;
    let lock = Lock::take(&layout, purpose).await?;
    let before = Note::read(&layout);
    Note::remove(&layout)?;
    orphan::settle(&layout).await?;
    if let Some(before) = before {
        socket::remove_dir(&before.socket_dir, &layout);
    }

    let binaries = locate::locate(options.bin_dir.as_deref(), &layout.cluster()).await?;
    let account = Account::choose(&layout.cluster())?;
    layout.admit(&account)?;
    let reach = Reach::open(layout.base(), &account)?;
    let password = cluster::prepare(&layout, &account, &reach, &binaries).await?;

    let socket_dir = socket::make_dir(&layout, &account)?;
    let process = Process::spawn(
        &layout,
        &account,
        &reach,
        &binaries,
        &socket_dir,
        options.max_connections,
    )?;
    let mut own = Own {
        process,
        layout,
        socket_dir,
        _lock: lock,
    };
    match own.open(&password, purpose).await {
        Ok(()) => Ok(EmbeddedServer {
            options: password.service_options(&own.socket_dir),
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

impl Own {
    /// Waits for the server, furnishes it, and lets others know.
    async fn open(&mut self, password: &Password, purpose: Purpose) -> Result<(), PostgresError> {
        self.process.ready(password, &self.socket_dir).await?;
        cluster::furnish(password, &self.socket_dir).await?;
        Note::write(&self.layout, purpose, &self.socket_dir)
    }

    async fn stop(mut self) -> Result<(), PostgresError> {
        Note::remove(&self.layout)?;
        self.process.stop().await?;
        socket::remove_dir(&self.socket_dir, &self.layout);
        Ok(())
    }
}

impl EmbeddedServer {
    /// How to connect: over the socket, as role `pais`, to database `pais`.
    pub fn connect_options(&self) -> PgConnectOptions {
        self.options.clone()
    }

    /// Whether this process started the server and is to stop it.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Waits until a server this process started ends by itself, and answers why; for a shared
    /// one, for ever. To be raced against the service's work, whose data is unreachable then.
    pub async fn ended(&mut self) -> PostgresError {
        match &mut self.own {
            Some(own) => own.process.wait().await,
            None => std::future::pending().await,
        }
    }

    /// Stops a server this process started and waits for its end; a shared one is left alone.
    /// Open transactions are rolled back and their connections closed.
    ///
    /// # Errors
    /// When it does not stop.
    pub async fn stop(self) -> Result<(), PostgresError> {
        match self.own {
            Some(own) => own.stop().await,
            None => Ok(()),
        }
    }
}
