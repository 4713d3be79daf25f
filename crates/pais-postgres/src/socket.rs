//! The socket of the server, and the connection file by which commands find it.
//!
//! The socket is in the data directory. The operating system limits its path to 107 bytes. If the
//! path is longer, a 0700 directory with a short path is created below `/run` or `/tmp`, and
//! removed when the server stops.

use std::env;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::account::Account;
use super::cluster::PORT;
use super::error::PostgresError;
use super::layout::{Layout, remove_if_exists, server_dir, write_private};

/// Maximum length of the path of a socket, in bytes (`sun_path` without its terminating zero).
const MAX_PATH_BYTES: usize = 107;
/// Prefix of the name of a socket directory outside the data directory.
const PREFIX: &str = "pais-pg-";

/// Creates an empty socket directory and returns its path. No server may run on the cluster.
/// Removes the files of an earlier server: they would prevent a start if its process id is in use
/// again, as it often is after a restart of the machine or container.
///
/// # Errors
/// If no directory with a path short enough can be created.
pub(super) fn create_dir(layout: &Layout, account: &Account) -> Result<PathBuf, PostgresError> {
    let run = layout.run();
    if fits(&run) {
        server_dir(&run, account)?;
        remove_socket(&run)?;
        return Ok(run);
    }
    for parent in short_parents() {
        if account.first_forbidden(&parent).is_some() {
            continue;
        }
        let created = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(&parent);
        if let Ok(dir) = created
            && fits(dir.path())
        {
            account.make_owner_of(dir.path())?;
            return Ok(dir.keep());
        }
    }
    Err(PostgresError::Unusable(format!(
        "no directory for the database socket: a socket's path may have {MAX_PATH_BYTES} bytes at most; \
         choose a data directory with a shorter path, or make /run or /tmp writable"
    )))
}

/// Removes a directory that [`create_dir`] created outside the data directory, with the socket
/// files in it but no other files.
pub(super) fn remove_dir(dir: &Path, layout: &Layout) {
    let name = dir.file_name().and_then(|name| name.to_str());
    if dir.starts_with(layout.base()) || !name.is_some_and(|name| name.starts_with(PREFIX)) {
        return;
    }
    let removed = remove_socket(dir)
        .and_then(|()| fs::remove_dir(dir).map_err(PostgresError::io("remove", dir)));
    if let Err(error) = removed {
        tracing::debug!(%error, dir = %dir.display(), "cannot remove the socket directory");
    }
}

/// Removes the files that a server creates in its socket directory.
fn remove_socket(dir: &Path) -> Result<(), PostgresError> {
    let socket = socket(dir);
    remove_if_exists(&socket)?;
    remove_if_exists(&socket.with_added_extension("lock"))
}

/// The path of the socket in a directory.
pub(super) fn socket(dir: &Path) -> PathBuf {
    dir.join(format!(".s.PGSQL.{PORT}"))
}

fn fits(dir: &Path) -> bool {
    socket(dir).as_os_str().as_bytes().len() <= MAX_PATH_BYTES
}

/// Directories with short paths in which this user can create a directory.
fn short_parents() -> Vec<PathBuf> {
    let mut parents = Vec::new();
    if geteuid().is_root() {
        parents.push(PathBuf::from("/run"));
    } else if let Some(runtime) = env::var_os("XDG_RUNTIME_DIR") {
        parents.push(PathBuf::from(runtime));
    }
    parents.push(PathBuf::from("/tmp"));
    parents.push(env::temp_dir());
    parents
}

/// The socket directory in the connection file; `None` if there is no such file.
pub(super) fn connection(layout: &Layout) -> Option<PathBuf> {
    let text = fs::read_to_string(layout.connection()).ok()?;
    Some(PathBuf::from(text.strip_suffix('\n')?))
}

/// Writes the connection file. To be called when the server accepts connections.
pub(super) fn write_connection(layout: &Layout, dir: &Path) -> Result<(), PostgresError> {
    write_private(&layout.connection(), &format!("{}\n", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_file_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(dir.path()).unwrap();
        assert_eq!(connection(&layout), None);
        write_connection(&layout, Path::new("/run/a b")).unwrap();
        assert_eq!(connection(&layout), Some(PathBuf::from("/run/a b")));
        remove_if_exists(&layout.connection()).unwrap();
        assert_eq!(connection(&layout), None);
    }

    #[test]
    fn a_long_path_moves_the_socket_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(&dir.path().join("d".repeat(120))).unwrap();
        let account = Account::choose(&layout.cluster()).unwrap();
        let made = create_dir(&layout, &account).unwrap();
        assert!(fits(&made) && !made.starts_with(dir.path()));
        fs::write(socket(&made), "").unwrap();
        remove_dir(&made, &layout);
        assert!(!made.exists());
    }

    #[test]
    fn no_other_directory_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(&dir.path().join("data")).unwrap();
        let other = dir.path().join("other");
        fs::create_dir(&other).unwrap();
        remove_dir(&other, &layout);
        assert!(other.exists());
    }
}
