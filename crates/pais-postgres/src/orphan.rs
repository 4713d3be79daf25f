//! What to do with a server that an earlier pais left behind.
//!
//! A pais that was killed leaves its server running. It is stopped and a new one started rather
//! than adopted: a fast shutdown rolls back what the dead pais had begun and frees its locks, and
//! the new server is a child of this process with the settings of this version.
//! A server is ours when its process works in our cluster and carries our mark on its command
//! line; no other process is ever signalled.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::error::PostgresError;
use super::layout::{Layout, remove_if_there};

/// The mark on the command line of every server pais starts.
pub(super) const MARK: &str = "cluster_name=pais";
/// How long a fast shutdown may take: it writes a checkpoint.
const FAST: Duration = Duration::from_secs(60);
/// How long an immediate shutdown, or the end of leftover processes, may take.
const IMMEDIATE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// What the process named in `postmaster.pid` is.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    /// There is no such process.
    Gone,
    /// The number is that of another program by now, or of a dead process nobody waited for.
    Stale,
    /// A server that pais started on this cluster.
    Ours,
    /// A server that someone else started on this cluster.
    Foreign,
    /// This user may not look.
    Hidden,
}

/// Makes sure that no server runs on the cluster. To be called with the lock held.
pub(super) async fn settle(layout: &Layout) -> Result<(), PostgresError> {
    let cluster = layout.cluster();
    let pid_file = cluster.join("postmaster.pid");
    let Some(pid) = read_pid(&pid_file)? else {
        return Ok(());
    };
    // Opened before looking: should the process end and its number be taken by another one, the
    // signal still reaches none but the process that was looked at.
    let handle = pidfd_open(pid, PidfdFlags::empty()).ok();
    let raw = pid.as_raw_nonzero().get();
    match (identify(pid, &cluster), handle) {
        (Identity::Ours, Some(handle)) => {
            tracing::warn!(
                pid = raw,
                "stopping the database server an earlier pais left behind"
            );
            stop(&handle, pid, &cluster).await
        }
        // PostgreSQL would take the number's new owner for a running server.
        (Identity::Stale, _) => {
            wait_for_leftovers(&cluster).await?;
            remove_if_there(&pid_file)
        }
        (Identity::Foreign, _) => Err(PostgresError::ForeignServer { cluster, pid: raw }),
        // PostgreSQL itself looks at the file and decides.
        (Identity::Gone | Identity::Hidden | Identity::Ours, _) => Ok(()),
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

fn identify(pid: Pid, cluster: &Path) -> Identity {
    let process = format!("/proc/{}", pid.as_raw_nonzero());
    let process = Path::new(&process);
    if !process.exists() {
        return Identity::Gone;
    }
    if is_dead(process) {
        return Identity::Stale;
    }
    match works_in(process, cluster) {
        Ok(false) => return Identity::Stale,
        Ok(true) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Identity::Gone,
        Err(_) => return Identity::Hidden,
    }
    match fs::read(process.join("cmdline")) {
        Ok(line) if line.split(|b| *b == 0).any(|word| word == MARK.as_bytes()) => Identity::Ours,
        Ok(_) => Identity::Foreign,
        Err(_) => Identity::Hidden,
    }
}

/// Whether a process has ended and only waits for its parent to take notice.
fn is_dead(process: &Path) -> bool {
    // `pid (name) state …`, where the name may hold anything.
    fs::read_to_string(process.join("stat"))
        .ok()
        .and_then(|stat| {
            stat.rsplit_once(") ")
                .map(|(_, rest)| rest.starts_with(['Z', 'X']))
        })
        .unwrap_or(false)
}

/// Whether a process has its working directory in the cluster, as all processes of a server do.
fn works_in(process: &Path, cluster: &Path) -> io::Result<bool> {
    let theirs = fs::metadata(process.join("cwd"))?;
    let ours = fs::metadata(cluster)?;
    Ok((theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()))
}

/// Fast shutdown, then an immediate one.
async fn stop(handle: &OwnedFd, pid: Pid, cluster: &Path) -> Result<(), PostgresError> {
    for (signal, patience) in [(Signal::INT, FAST), (Signal::QUIT, IMMEDIATE)] {
        // A process that has just ended cannot be signalled, which the wait finds out.
        let _ = pidfd_send_signal(handle, signal);
        let begun = Instant::now();
        while begun.elapsed() < patience {
            if matches!(identify(pid, cluster), Identity::Gone | Identity::Stale) {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    Err(PostgresError::NotStopped {
        pid: pid.as_raw_nonzero().get(),
        seconds: (FAST + IMMEDIATE).as_secs(),
    })
}

/// Waits until no process works in the cluster: those of a server whose first process was killed
/// end by themselves, and two generations at once would damage the data.
async fn wait_for_leftovers(cluster: &Path) -> Result<(), PostgresError> {
    let begun = Instant::now();
    while let Some(pid) = leftover(cluster) {
        if begun.elapsed() >= IMMEDIATE {
            return Err(PostgresError::Lingering {
                cluster: cluster.to_path_buf(),
                pid,
            });
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

fn leftover(cluster: &Path) -> Option<i32> {
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        matches!(works_in(&entry.path(), cluster), Ok(true)).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[tokio::test]
    async fn another_program_under_the_number_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(dir.path()).unwrap();
        fs::create_dir(layout.cluster()).unwrap();
        let pid_file = layout.cluster().join("postmaster.pid");
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        fs::write(&pid_file, format!("{}\n", other.id())).unwrap();
        settle(&layout).await.unwrap();
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
        let refused = settle(&layout).await.unwrap_err();
        assert!(matches!(refused, PostgresError::ForeignServer { .. }));
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[tokio::test]
    async fn a_dead_process_is_no_server() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(dir.path()).unwrap();
        fs::create_dir(layout.cluster()).unwrap();
        let pid_file = layout.cluster().join("postmaster.pid");
        let mut dead = Command::new("true").spawn().unwrap();
        fs::write(&pid_file, format!("{}\n", dead.id())).unwrap();
        while !is_dead(Path::new(&format!("/proc/{}", dead.id()))) {
            tokio::time::sleep(PAUSE).await;
        }
        settle(&layout).await.unwrap();
        assert!(!pid_file.exists());
        dead.wait().unwrap();
    }
}
