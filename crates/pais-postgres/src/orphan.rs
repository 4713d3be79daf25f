//! Stops a server that an earlier pais left running.
//!
//! If pais is killed, its server keeps running. The next pais stops it and starts a new one instead
//! of using it: a fast shutdown rolls back the transactions of the killed pais and releases its
//! locks, and the new server is a child of this process with the settings of this version.
//! A server is ours if its working directory is our cluster and its command line contains our mark.
//! No other process is ever signalled.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::error::PostgresError;
use super::layout::{Layout, remove_if_exists};

/// The mark on the command line of every server that pais starts.
pub(super) const MARK: &str = "cluster_name=pais";
/// How long a fast shutdown may take, which writes a checkpoint.
const FAST_BUDGET: Duration = Duration::from_secs(60);
/// How long an immediate shutdown, or the end of leftover processes, may take.
const IMMEDIATE_BUDGET: Duration = Duration::from_secs(10);
/// The shutdowns that are tried, the fast one first.
pub(super) const SHUTDOWNS: [(Signal, Duration); 2] =
    [(Signal::INT, FAST_BUDGET), (Signal::QUIT, IMMEDIATE_BUDGET)];
/// Time between two checks.
const POLL_PAUSE: Duration = Duration::from_millis(50);

/// What kind of process the id in `postmaster.pid` belongs to.
#[derive(Debug, PartialEq, Eq)]
enum ProcessIdentity {
    /// There is no such process.
    Gone,
    /// The id now belongs to another program, or to a process that has ended.
    Stale,
    /// A process that is about to be one of the others: it has no command line for a moment after
    /// it starts, and before it ends.
    Unsettled,
    /// A server that pais started on this cluster.
    Ours,
    /// A server that someone else started on this cluster.
    Foreign,
    /// This user may not inspect the process.
    Hidden,
}

/// Makes sure that no server runs on the cluster. The caller must hold the lock.
///
/// # Errors
/// If a server that pais did not start runs there, or the server does not stop.
pub(super) async fn stop_leftover_server(layout: &Layout) -> Result<(), PostgresError> {
    let cluster = layout.cluster();
    let pid_file = cluster.join("postmaster.pid");
    let Some(pid) = read_pid(&pid_file)? else {
        return Ok(());
    };
    // Open the handle before identifying the process. If the process ends and its id is reused, the
    // signal still goes only to the process that was identified.
    let handle = pidfd_open(pid, PidfdFlags::empty()).ok();
    let raw = pid.as_raw_nonzero().get();
    match (settled_identity(pid, &cluster).await, handle) {
        (ProcessIdentity::Ours, Some(handle)) => {
            tracing::warn!(
                pid = raw,
                "stopping the database server that an earlier pais left running"
            );
            stop(&handle, pid, &cluster).await
        }
        // Otherwise PostgreSQL would take the new process with this id for a running server.
        (ProcessIdentity::Stale, _) => {
            wait_for_leftovers(&cluster).await?;
            remove_if_exists(&pid_file)
        }
        // The processes that it has started may be about to end.
        (ProcessIdentity::Gone, _) => wait_for_leftovers(&cluster).await,
        (ProcessIdentity::Foreign, _) => Err(PostgresError::ForeignServer { cluster, pid: raw }),
        // PostgreSQL checks the file itself and decides.
        (ProcessIdentity::Hidden | ProcessIdentity::Unsettled | ProcessIdentity::Ours, _) => Ok(()),
    }
}

fn read_pid(pid_file: &Path) -> Result<Option<Pid>, PostgresError> {
    match fs::read_to_string(pid_file) {
        Ok(text) => Ok(text
            .lines()
            .next()
            .and_then(|line| line.trim().parse::<i32>().ok())
            .filter(|pid| *pid > 0)
            .and_then(Pid::from_raw)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PostgresError::io("read", pid_file)(error)),
    }
}

/// Identifies a process, and waits while it is starting or ending.
async fn settled_identity(pid: Pid, cluster: &Path) -> ProcessIdentity {
    let begun = Instant::now();
    loop {
        let identity = identify(pid, cluster);
        if identity != ProcessIdentity::Unsettled || begun.elapsed() >= IMMEDIATE_BUDGET {
            return identity;
        }
        tokio::time::sleep(POLL_PAUSE).await;
    }
}

fn identify(pid: Pid, cluster: &Path) -> ProcessIdentity {
    let process = format!("/proc/{}", pid.as_raw_nonzero());
    let process = Path::new(&process);
    if !process.exists() {
        return ProcessIdentity::Gone;
    }
    if is_zombie(process) {
        return ProcessIdentity::Stale;
    }
    match runs_in(process, cluster) {
        Ok(false) => return ProcessIdentity::Stale,
        Ok(true) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return ProcessIdentity::Gone,
        Err(_) => return ProcessIdentity::Hidden,
    }
    match fs::read(process.join("cmdline")) {
        Ok(line) => of_command_line(&line),
        Err(_) => ProcessIdentity::Hidden,
    }
}

/// What a process in the cluster's directory is, by its command line.
fn of_command_line(line: &[u8]) -> ProcessIdentity {
    if line.is_empty() {
        ProcessIdentity::Unsettled
    } else if line.split(|b| *b == 0).any(|word| word == MARK.as_bytes()) {
        ProcessIdentity::Ours
    } else {
        ProcessIdentity::Foreign
    }
}

/// Whether a process has ended and is a zombie.
fn is_zombie(process: &Path) -> bool {
    // `pid (name) state …`, where the name may contain any character.
    fs::read_to_string(process.join("stat"))
        .ok()
        .and_then(|stat| {
            stat.rsplit_once(") ")
                .map(|(_, rest)| rest.starts_with(['Z', 'X']))
        })
        .unwrap_or(false)
}

/// Whether the working directory of a process is the cluster, as for all processes of a server.
fn runs_in(process: &Path, cluster: &Path) -> io::Result<bool> {
    let theirs = fs::metadata(process.join("cwd"))?;
    let ours = fs::metadata(cluster)?;
    Ok((theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()))
}

/// Tries a fast shutdown, then an immediate one.
async fn stop(handle: &OwnedFd, pid: Pid, cluster: &Path) -> Result<(), PostgresError> {
    for (signal, budget) in SHUTDOWNS {
        // This fails if the process has just ended, which the loop below detects.
        let _ = pidfd_send_signal(handle, signal);
        let begun = Instant::now();
        while begun.elapsed() < budget {
            if matches!(
                identify(pid, cluster),
                ProcessIdentity::Gone | ProcessIdentity::Stale
            ) {
                return Ok(());
            }
            tokio::time::sleep(POLL_PAUSE).await;
        }
    }
    Err(not_stopped(pid.as_raw_nonzero().get()))
}

/// The error of a server that did not stop when asked to.
pub(super) fn not_stopped(pid: i32) -> PostgresError {
    let seconds = (FAST_BUDGET + IMMEDIATE_BUDGET).as_secs();
    PostgresError::Unusable(format!(
        "PostgreSQL (process {pid}) did not stop within {seconds} seconds; end the process"
    ))
}

/// Waits until no process uses the cluster. If the main process of a server was killed, its child processes end
/// by themselves. A new server must not run at the same time: that would damage the data.
async fn wait_for_leftovers(cluster: &Path) -> Result<(), PostgresError> {
    let begun = Instant::now();
    while let Some(pid) = leftover(cluster) {
        if begun.elapsed() >= IMMEDIATE_BUDGET {
            return Err(PostgresError::Unusable(format!(
                "processes of an earlier PostgreSQL server still use {} (process {pid}); wait for \
                 them to end, or end them",
                cluster.display()
            )));
        }
        tokio::time::sleep(POLL_PAUSE).await;
    }
    Ok(())
}

fn leftover(cluster: &Path) -> Option<i32> {
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        matches!(runs_in(&entry.path(), cluster), Ok(true)).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[tokio::test]
    async fn another_program_with_the_same_pid_is_not_signalled() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(dir.path()).unwrap();
        fs::create_dir(layout.cluster()).unwrap();
        let pid_file = layout.cluster().join("postmaster.pid");
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        fs::write(&pid_file, format!("{}\n", other.id())).unwrap();
        stop_leftover_server(&layout).await.unwrap();
        assert!(!pid_file.exists());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[tokio::test]
    async fn a_server_someone_else_started_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(dir.path()).unwrap();
        fs::create_dir(layout.cluster()).unwrap();
        let mut other = Command::new("sleep")
            .arg("60")
            .current_dir(layout.cluster())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let pid_file = layout.cluster().join("postmaster.pid");
        fs::write(&pid_file, format!("{}\n", other.id())).unwrap();
        let refused = stop_leftover_server(&layout).await.unwrap_err();
        assert!(matches!(refused, PostgresError::ForeignServer { .. }));
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    /// A killed server was taken for somebody else's server, and the start failed. Then a server of somebody
    /// else that was just starting was taken for one that had ended.
    #[test]
    fn a_process_that_starts_or_ends_is_not_identified_yet() {
        assert_eq!(of_command_line(b""), ProcessIdentity::Unsettled);
        assert_eq!(of_command_line(b"postgres\0"), ProcessIdentity::Foreign);
        let ours = format!("postgres\0-c\0{MARK}\0");
        assert_eq!(of_command_line(ours.as_bytes()), ProcessIdentity::Ours);
    }

    #[tokio::test]
    async fn a_zombie_process_is_not_a_server() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(dir.path()).unwrap();
        fs::create_dir(layout.cluster()).unwrap();
        let pid_file = layout.cluster().join("postmaster.pid");
        let mut dead = Command::new("true").spawn().unwrap();
        fs::write(&pid_file, format!("{}\n", dead.id())).unwrap();
        while !is_zombie(Path::new(&format!("/proc/{}", dead.id()))) {
            tokio::time::sleep(POLL_PAUSE).await;
        }
        stop_leftover_server(&layout).await.unwrap();
        assert!(!pid_file.exists());
        dead.wait().unwrap();
    }
}
