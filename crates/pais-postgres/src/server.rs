//! One run of the server: its settings, its start, and its end.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::{ConnectOptions, Connection};
use tokio::process::Child;
use tokio::time::{sleep, timeout};

use super::account::{Account, Reach};
use super::cluster::{PORT, Password, bare, last_lines};
use super::error::PostgresError;
use super::layout::Layout;
use super::locate::Binaries;
use super::orphan::MARK;

/// How long a start may take; after a crash the server first replays its log.
const START: Duration = Duration::from_secs(300);
/// How long a fast shutdown may take: it writes a checkpoint.
const FAST: Duration = Duration::from_secs(60);
/// How long an immediate shutdown may take.
const IMMEDIATE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(40);

/// Settings that keep data safe, the server private, and table values out of its log.
const SAFETY: [&str; 20] = [
    "listen_addresses=",
    "unix_socket_permissions=0700",
    "password_encryption=scram-sha-256",
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
    "logging_collector=off",
    "log_destination=stderr",
    // Of what clients cause, nothing: the text of an error may quote a value. The client, which
    // is the service, gets every error anyway.
    "log_min_messages=log",
    "log_min_error_statement=panic",
    "log_error_verbosity=terse",
    "log_statement=none",
    "log_duration=off",
    "log_min_duration_statement=-1",
    "log_min_duration_sample=-1",
    "log_transaction_sample_rate=0",
    "log_parameter_max_length=0",
    "log_parameter_max_length_on_error=0",
    "log_checkpoints=off",
    "log_timezone=UTC",
];

/// Settings that keep the server small: it shares some hundred megabytes with the service, whose
/// queries are simple and whose rows are few and large.
const SIZE: [&str; 10] = [
    "shared_buffers=64MB",
    "work_mem=4MB",
    "maintenance_work_mem=32MB",
    "max_wal_size=1GB",
    "wal_compression=on",
    "autovacuum_max_workers=2",
    "max_parallel_workers_per_gather=0",
    "max_parallel_maintenance_workers=0",
    "jit=off",
    "timezone=UTC",
];

/// A running server, a child of this process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    log: PathBuf,
    /// Length of the log before this run, in bytes.
    log_before: u64,
}

impl Process {
    /// Starts the server on a complete cluster.
    pub(super) fn spawn(
        layout: &Layout,
        account: &Account,
        reach: &Reach,
        binaries: &Binaries,
        socket_dir: &Path,
        max_connections: u32,
    ) -> Result<Self, PostgresError> {
        let log = layout.open_log()?;
        let log_before = log.metadata().map(|meta| meta.len()).unwrap_or(0);
        let program = binaries.postgres();
        let mut command = bare(&program);
        command.arg("-D").arg(reach.path(&layout.cluster()));
        for setting in [MARK].into_iter().chain(SAFETY).chain(SIZE) {
            command.args(["-c", setting]);
        }
        command
            .args(["-c", &format!("port={PORT}")])
            .args(["-c", &format!("max_connections={max_connections}")])
            .arg("-c")
            .arg(socket_setting(&reach.path(socket_dir)))
            .stdout(Stdio::null())
            .stderr(Stdio::from(log));
        account.run(&mut command);
        let child = command
            .spawn()
            .map_err(PostgresError::io("run", &program))?;
        Ok(Self {
            child,
            log: layout.log(),
            log_before,
        })
    }

    /// Waits until the server accepts connections.
    pub(super) async fn ready(
        &mut self,
        password: &Password,
        socket_dir: &Path,
    ) -> Result<(), PostgresError> {
        let options = password.superuser_options(socket_dir);
        let begun = Instant::now();
        loop {
            if let Some(status) = self.ended()? {
                return Err(PostgresError::NotStarted {
                    status: status.to_string(),
                    log: self.log.clone(),
                    tail: self.log_tail(),
                });
            }
            let failure = match options.connect().await {
                Ok(connection) => {
                    // Only whether it opened matters.
                    let _ = connection.close().await;
                    return Ok(());
                }
                Err(error) => error,
            };
            if begun.elapsed() >= START || is_final(&failure) {
                return Err(PostgresError::NotReady {
                    seconds: begun.elapsed().as_secs(),
                    log: self.log.clone(),
                    tail: self.log_tail(),
                    source: Some(Box::new(failure)),
                });
            }
            sleep(PAUSE).await;
        }
    }

    /// Waits until the server ends.
    pub(super) async fn wait(&mut self) -> PostgresError {
        match self.child.wait().await {
            Ok(status) => PostgresError::Ended {
                status: status.to_string(),
                log: self.log.clone(),
            },
            Err(source) => PostgresError::io("wait for", "postgres")(source),
        }
    }

    /// Stops the server: connections are ended, their transactions rolled back, a checkpoint is
    /// written. Without an answer to that, it stops at once and recovers at the next start.
    pub(super) async fn stop(&mut self) -> Result<(), PostgresError> {
        for (signal, patience) in [(Signal::INT, FAST), (Signal::QUIT, IMMEDIATE)] {
            self.signal(signal);
            if let Ok(ended) = timeout(patience, self.child.wait()).await {
                ended.map_err(PostgresError::io("wait for", "postgres"))?;
                return Ok(());
            }
        }
        Err(PostgresError::NotStopped {
            pid: self.pid().map_or(0, |pid| pid.as_raw_nonzero().get()),
            seconds: (FAST + IMMEDIATE).as_secs(),
        })
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, PostgresError> {
        self.child
            .try_wait()
            .map_err(PostgresError::io("wait for", "postgres"))
    }

    /// The process id, while nobody has taken notice of its end, so that it is no other's.
    fn pid(&self) -> Option<Pid> {
        let raw = i32::try_from(self.child.id()?).ok()?;
        Pid::from_raw(raw)
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            // It may have ended by itself, which is what is wanted.
            let _ = kill_process(pid, signal);
        }
    }

    /// The last lines this run of the server wrote to its log.
    fn log_tail(&self) -> String {
        let mut text = Vec::new();
        let read = fs::File::open(&self.log).and_then(|mut file| {
            let end = file.metadata()?.len();
            let from = self.log_before.max(end.saturating_sub(8192));
            file.seek(SeekFrom::Start(from))?;
            file.read_to_end(&mut text)
        });
        match read {
            Ok(_) => last_lines(&String::from_utf8_lossy(&text), 15),
            Err(error) => format!("(cannot be read: {error})"),
        }
    }
}

impl Drop for Process {
    /// Asks the server this process started to stop, without waiting, where an error or a panic
    /// kept it from being stopped properly.
    fn drop(&mut self) {
        self.signal(Signal::INT);
    }
}

/// Whether trying to connect again cannot help: the server is up and says no.
fn is_final(error: &sqlx::Error) -> bool {
    // 57P03: still starting, or recovering. 53300: too many connections.
    match error {
        sqlx::Error::Database(said) => !matches!(said.code().as_deref(), Some("57P03" | "53300")),
        _ => false,
    }
}

/// The setting is a list; a quoted entry may hold commas and spaces.
fn socket_setting(dir: &Path) -> OsString {
    let quoted = dir.to_string_lossy().replace('"', "\"\"");
    OsString::from(format!("unix_socket_directories=\"{quoted}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_directory_is_one_entry() {
        let setting = socket_setting(Path::new("/a, \"b\"/c"));
        assert_eq!(setting, "unix_socket_directories=\"/a, \"\"b\"\"/c\"");
    }

    #[test]
    fn every_setting_is_named_once() {
        let mut names: Vec<&str> = SAFETY
            .iter()
            .chain(&SIZE)
            .map(|setting| setting.split('=').next().unwrap())
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
