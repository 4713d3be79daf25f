//! What the operating system gives the process: open files, memory, signals, and no core dumps.

use std::path::Path;
use std::sync::Arc;

pub(crate) use pais::memory::forbid_dumps;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Open files that are kept free for the database, files and programs.
const RESERVED_FILES: u64 = 200;

/// Raises the limit of open files to the greatest permitted value. Returns the number of connections
/// that may be open.
pub(super) fn raise_open_files() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum;
    if limit.current != hard {
        limit.current = hard;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "the limit of open files could not be raised");
        }
    }
    // `None` means no limit.
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let connections = files.saturating_sub(RESERVED_FILES).max(files / 4);
    usize::try_from(connections).unwrap_or(usize::MAX)
}

/// Where version 2 of control groups is mounted.
const CGROUP_2: &str = "/sys/fs/cgroup";

/// The limit of version 1 of control groups, as a container sees its own.
const CGROUP_1_LIMIT: &str = "/sys/fs/cgroup/memory/memory.limit_in_bytes";

/// The memory that is assumed if the system does not report it: 4 GiB.
const ASSUMED_BYTES: u64 = 4 << 30;

/// The value of `memory.process_bytes`, in bytes. For 0, three quarters of the memory of the machine,
/// or of the control group of the process if that has less.
pub(super) fn process_budget(configured: u64) -> u64 {
    match configured {
        0 => available() / 4 * 3,
        bytes => bytes,
    }
}

fn available() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let limits = [
        total_in_meminfo(&meminfo),
        cgroup_2_limit(),
        bytes_in(Path::new(CGROUP_1_LIMIT)),
    ];
    limits.into_iter().flatten().min().unwrap_or(ASSUMED_BYTES)
}

/// The lowest limit of the control group of this process and of those above it.
fn cgroup_2_limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let root = Path::new(CGROUP_2);
    let own = root.join(own.trim_start_matches('/'));
    let groups = own.ancestors().take_while(|group| group.starts_with(root));
    groups
        .filter_map(|group| bytes_in(&group.join("memory.max")))
        .min()
}

/// The number in a file. `None` without a number, such as `max`.
fn bytes_in(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn total_in_meminfo(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// What the signals ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop {
    /// Cancelled by SIGTERM, SIGINT and SIGQUIT: no new work begins.
    pub(super) shutdown: CancellationToken,
    /// Cancelled by SIGQUIT, and by a second SIGTERM or SIGINT: running work is not waited for. Jobs
    /// return to the queue.
    pub(super) at_once: CancellationToken,
    /// Notified by SIGHUP: certificates are read again.
    pub(super) reload: Arc<Notify>,
}

/// Handles the signals from now on.
///
/// # Errors
/// When a signal cannot be handled.
pub(super) fn handle_signals() -> std::io::Result<Stop> {
    let stop = Stop::default();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let asked = stop.clone();
    tokio::spawn(async move {
        loop {
            let is_at_once = tokio::select! {
                _ = terminate.recv() => asked.shutdown.is_cancelled(),
                _ = interrupt.recv() => asked.shutdown.is_cancelled(),
                _ = quit.recv() => true,
                _ = hangup.recv() => {
                    asked.reload.notify_one();
                    continue;
                }
            };
            asked.shutdown.cancel();
            if is_at_once {
                tracing::info!("stopping at once");
                asked.at_once.cancel();
            } else {
                tracing::info!("stopping; a second signal stops without waiting");
            }
        }
    });
    Ok(stop)
}

/// Ends the process at the next SIGINT, SIGTERM or SIGHUP after `prepare`, whose result is dropped with the process.
/// A signal that the process was started to ignore, as by `nohup`, stays ignored.
///
/// # Errors
/// When a signal cannot be handled.
pub(super) fn exit_on_signal<T: 'static>(prepare: fn() -> T) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let ignored = ignored_signals();
    for kind in [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ] {
        let number = kind.as_raw_value();
        if ignored & (1 << (number - 1)) != 0 {
            continue;
        }
        let _context = runtime.enter();
        let mut signals = signal(kind)?;
        runtime.spawn(async move {
            signals.recv().await;
            let _held = prepare();
            // As a shell shows the end by a signal.
            std::process::exit(128 + number);
        });
    }
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    Ok(())
}

/// The signals that the process ignores, as a bit for each; none where the system does not say.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{process_budget, raise_open_files, total_in_meminfo};

    #[test]
    fn the_limit_of_open_files_is_raised() {
        let connections = raise_open_files();
        assert!(connections > 0);
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }

    #[test]
    fn zero_means_three_quarters_of_the_memory() {
        let meminfo = "MemTotal:       16384 kB\nMemFree:  1 kB\n";
        assert_eq!(total_in_meminfo(meminfo), Some(16 << 20));
        assert_eq!(total_in_meminfo("MemFree: 1 kB"), None);
        assert_eq!(process_budget(7), 7);
        assert!(process_budget(0) > 0);
    }
}
