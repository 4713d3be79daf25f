//! Limits of the process that the operating system sets.

use rustix::process::{Resource, getrlimit, setrlimit};

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

#[cfg(test)]
mod tests {
    use super::raise_open_files;

    #[test]
    fn the_limit_of_open_files_is_raised() {
        let connections = raise_open_files();
        assert!(connections > 0);
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
