//! One run of the server: its settings, its start, and its end.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::{ConnectOptions, Connection};
use tokio::process::Child;
use tokio::time::{sleep, timeout};

use super::Launch;
use super::cluster::{PORT, Password, isolated_command, last_lines};
use super::error::PostgresError;
use super::orphan::{self, MARK, SHUTDOWNS};

/// How long a start may take. After a crash the server first replays its write-ahead log.
const START_BUDGET: Duration = Duration::from_secs(300);
/// Time between two attempts to connect.
const RETRY_PAUSE: Duration = Duration::from_millis(40);

/// Settings for durability, for access over the socket only, and for a log without table values.
const SAFETY_SETTINGS: [&str; 20] = [
    "listen_addresses=",
    "unix_socket_permissions=0700",
    "password_encryption=scram-sha-256",
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
    "logging_collector=off",
    "log_destination=stderr",
    // Log nothing that a client causes, because the text of an error may quote a value. The client,
    // which is the service, receives every error anyway.
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

/// Settings for low memory use: the server and the service together use a few hundred megabytes.
/// The queries of the service are simple, and its rows are few and large.
const MEMORY_SETTINGS: [&str; 9] = [
    "shared_buffers=64MB",
    "work_mem=4MB",
    "maintenance_work_mem=32MB",
    "wal_compression=on",
    "autovacuum_max_workers=2",
    "max_parallel_workers_per_gather=0",
    "max_parallel_maintenance_workers=0",
    "jit=off",
    "timezone=UTC",
];

/// A running server, which is a child of this process.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    log: PathBuf,
    /// Length of the log before this run, in bytes.
    log_before: u64,
}

impl ServerProcess {
    /// Starts the server on a complete cluster. Does not wait until it accepts connections.
    pub(super) fn spawn(launch: &Launch) -> Result<Self, PostgresError> {
        let Launch {
            layout,
            account,
            access,
            binaries,
            socket_dir,
            max_connections,
            ..
        } = launch;
        let log = layout.open_log()?;
        let log_before = log.metadata().map(|meta| meta.len()).unwrap_or(0);
        let program = binaries.postgres();
        let mut command = isolated_command(&program);
        command.arg("-D").arg(access.path(&layout.cluster()));
        for setting in [MARK]
            .into_iter()
            .chain(SAFETY_SETTINGS)
            .chain(MEMORY_SETTINGS)
        {
            command.args(["-c", setting]);
        }
        for setting in log_settings(layout.base()) {
            command.args(["-c", &setting]);
        }
        command
            .args(["-c", &format!("port={PORT}")])
            .args(["-c", &format!("max_connections={max_connections}")])
            .arg("-c")
            .arg(socket_setting(&access.path(socket_dir)))
            .stdout(Stdio::null())
            .stderr(Stdio::from(log));
        account.apply_to(&mut command);
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
    ///
    /// # Errors
    /// If the server ends, or does not accept connections within 300 s.
    pub(super) async fn ready(
        &mut self,
        password: &Password,
        socket_dir: &Path,
    ) -> Result<(), PostgresError> {
        let options = password.superuser_options(socket_dir);
        let begun = Instant::now();
        loop {
            let ended = self.child.try_wait();
            let ended = ended.map_err(PostgresError::io("wait for", "postgres"))?;
            if let Some(status) = ended {
                return Err(PostgresError::Unusable(format!(
                    "PostgreSQL did not start ({status}); its log {} ends with:\n{}",
                    self.log.display(),
                    self.log_tail()
                )));
            }
            let failure = match options.connect().await {
                Ok(connection) => {
                    // Only whether it opened matters.
                    let _ = connection.close().await;
                    return Ok(());
                }
                Err(error) => error,
            };
            let problem = if is_final(&failure) {
                "refuses connections".to_owned()
            } else if begun.elapsed() >= START_BUDGET {
                let seconds = START_BUDGET.as_secs();
                format!("did not accept connections within {seconds} seconds")
            } else {
                sleep(RETRY_PAUSE).await;
                continue;
            };
            return Err(PostgresError::Unusable(format!(
                "PostgreSQL {problem} ({failure}); its log {} ends with:\n{}",
                self.log.display(),
                self.log_tail()
            )));
        }
    }

    /// Waits until the server ends, and returns how it ended.
    pub(super) async fn wait(&mut self) -> PostgresError {
        match self.child.wait().await {
            Ok(status) => PostgresError::Unusable(format!(
                "PostgreSQL ended unexpectedly ({status}); its log is {}",
                self.log.display()
            )),
            Err(source) => PostgresError::io("wait for", "postgres")(source),
        }
    }

    /// Stops the server: closes the connections, rolls back their transactions and writes a
    /// checkpoint. If that takes too long, the server stops at once and recovers at the next start.
    ///
    /// # Errors
    /// If the server does not stop within 70 s.
    pub(super) async fn stop(&mut self) -> Result<(), PostgresError> {
        for (signal, budget) in SHUTDOWNS {
            self.signal(signal);
            if let Ok(ended) = timeout(budget, self.child.wait()).await {
                ended.map_err(PostgresError::io("wait for", "postgres"))?;
                return Ok(());
            }
        }
        let pid = self.pid().map_or(0, |pid| pid.as_raw_nonzero().get());
        Err(orphan::not_stopped(pid))
    }

    /// The process id; `None` once the end of the process is known, because the id may be reused
    /// then.
    fn pid(&self) -> Option<Pid> {
        let raw = i32::try_from(self.child.id()?).ok()?;
        Pid::from_raw(raw)
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            // This fails if the server has already ended, which is what is wanted.
            let _ = kill_process(pid, signal);
        }
    }

    /// The last lines that this run of the server wrote to its log.
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

impl Drop for ServerProcess {
    /// Asks the server to stop, without waiting. This matters when an error or a panic skipped
    /// [`Self::stop`].
    fn drop(&mut self) {
        self.signal(Signal::INT);
    }
}

/// Settings that keep the write-ahead log below an eighth of the disk, and at 1 GB at most.
fn log_settings(dir: &Path) -> [String; 2] {
    let disk = rustix::fs::statvfs(dir)
        .map_or(u64::MAX, |stat| stat.f_blocks.saturating_mul(stat.f_frsize));
    let megabytes = disk >> 20;
    [
        format!("max_wal_size={}MB", (megabytes / 8).clamp(48, 1024)),
        format!("min_wal_size={}MB", (megabytes / 16).clamp(32, 80)),
    ]
}

/// Whether connecting again cannot help, because the server runs and rejects the connection.
fn is_final(error: &sqlx::Error) -> bool {
    // 57P03: still starting, or recovering. 53300: too many connections.
    match error {
        sqlx::Error::Database(said) => !matches!(said.code().as_deref(), Some("57P03" | "53300")),
        _ => false,
    }
}

/// The setting of the socket directory. It is a list, so the entry is quoted: it may contain commas
/// and spaces.
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
        let mut names: Vec<&str> = SAFETY_SETTINGS
            .iter()
            .chain(&MEMORY_SETTINGS)
            .map(|setting| setting.split('=').next().unwrap())
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
