//! What the service and its database take, read off `/proc`.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How often the database's processes are looked at; rarely, since a look costs them time.
const LOOK: Duration = Duration::from_millis(500);

/// Greatest memory, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Peak {
    /// `VmHWM` of the service's process.
    pub service: u64,
    /// Sum over the database's processes, shared memory counted once; as often as was looked.
    pub database: u64,
}

/// Watches a service until dropped.
pub struct Watch {
    service: u32,
    database: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Watch {
    pub fn start(service: u32) -> Self {
        let watch = Self {
            service,
            database: Arc::default(),
            over: Arc::default(),
        };
        let (greatest, over) = (watch.database.clone(), watch.over.clone());
        thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                greatest.fetch_max(proportional(service), Ordering::Relaxed);
                thread::sleep(LOOK);
            }
        });
        watch
    }

    pub fn peak(&self) -> Peak {
        Peak {
            service: peak_of(self.service),
            database: self.database.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// The most memory that a process has taken so far, in bytes; 0 where there is none any more.
pub fn peak_of(process: u32) -> u64 {
    kilobytes(&format!("/proc/{process}/status"), "VmHWM:")
}

/// Proportional set size of all processes below the service's.
fn proportional(service: u32) -> u64 {
    let mut family = vec![service];
    let mut sum = 0;
    while let Some(parent) = family.pop() {
        for child in children(parent) {
            sum += kilobytes(&format!("/proc/{child}/smaps_rollup"), "Pss:");
            family.push(child);
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

/// A field in kB of a file of `/proc`, in bytes; 0 where it cannot be read.
fn kilobytes(file: &str, field: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}
