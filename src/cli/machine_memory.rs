//! The memory of the machine, or of the container that the program runs in.

use std::path::Path;

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

#[cfg(test)]
mod tests {
    use super::{process_budget, total_in_meminfo};

    #[test]
    fn zero_means_three_quarters_of_the_memory() {
        let meminfo = "MemTotal:       16384 kB\nMemFree:  1 kB\n";
        assert_eq!(total_in_meminfo(meminfo), Some(16 << 20));
        assert_eq!(total_in_meminfo("MemFree: 1 kB"), None);
        assert_eq!(process_budget(7), 7);
        assert!(process_budget(0) > 0);
    }
}
