//! Memory of the service and of its database server, from `/proc`.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// How often the memory of the database server is read. Reading it slows the server down.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);

/// Peak memory in bytes.
#[derive(Clone, Copy, Debug)]
pub struct PeakMemory {
    /// `VmHWM` of the service's process.
    pub service: u64,
    /// Greatest sampled sum over the processes of the database server, with shared memory counted
    /// once.
    pub database: u64,
}

/// Samples the memory of a service until dropped.
pub struct MemorySampler {
    service: u32,
    database: Arc<AtomicU64>,
    _running: Sender<()>,
}

impl MemorySampler {
    pub fn start(service: u32) -> Self {
        let (running, ended) = channel();
        let database = Arc::<AtomicU64>::default();
        let greatest = database.clone();
        thread::spawn(move || {
            // The sender is dropped with the sampler.
            while ended.recv_timeout(SAMPLE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                greatest.fetch_max(proportional(service), Ordering::Relaxed);
            }
        });
        Self {
            service,
            database,
            _running: running,
        }
    }

    pub fn peak(&self) -> PeakMemory {
        PeakMemory {
            service: peak_of(self.service),
            database: self.database.load(Ordering::Relaxed),
        }
    }
}

/// The peak memory of a process so far in bytes; 0 if it has ended.
pub fn peak_of(process: u32) -> u64 {
    bytes_of(&format!("/proc/{process}/status"), "VmHWM:")
}

/// Proportional set size in bytes of all descendants of the service.
fn proportional(service: u32) -> u64 {
    let mut pending = vec![service];
    let mut sum = 0;
    while let Some(parent) = pending.pop() {
        for child in children(parent) {
            sum += bytes_of(&format!("/proc/{child}/smaps_rollup"), "Pss:");
            pending.push(child);
        }
    }
    sum
}

fn children(parent: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{parent}/task")) else {
        return Vec::new();
    };
    let lists = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// A field of a file of `/proc`, which is in kB, in bytes; 0 if it cannot be read.
fn bytes_of(file: &str, field: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}
