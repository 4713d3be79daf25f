//! Where the server's socket is, and the note by which commands find it.
//!
//! The socket belongs in the data directory. The operating system allows its path 107 bytes;
//! where that does not suffice, a short 0700 directory is made below `/run` or `/tmp` and removed
//! again with the server.

use std::env;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::account::Account;
use super::cluster::PORT;
use super::error::PostgresError;
use super::layout::{Layout, remove_if_there, server_dir, write_private};
use super::lock::Purpose;

/// Longest path of a socket, in bytes (`sun_path` less its closing zero).
const LONGEST: usize = 107;
/// Beginning of the name of a directory made elsewhere.
const PREFIX: &str = "pais-pg-";

/// Makes the socket directory, empty. To be called when no server runs on the cluster: what an
/// earlier one left there would keep the next from starting, should the number of its process
/// be in use again, as it soon is after a restart of the machine or container.
pub(super) fn make_dir(layout: &Layout, account: &Account) -> Result<PathBuf, PostgresError> {
    let run = layout.run();
    if fits(&run) {
        server_dir(&run, account)?;
        remove_socket(&run)?;
        return Ok(run);
    }
    for parent in short_parents() {
        if account.barred_at(&parent).is_some() {
            continue;
        }
        let made = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(&parent);
        if let Ok(dir) = made
            && fits(dir.path())
        {
            account.give(dir.path())?;
            return Ok(dir.keep());
        }
    }
    Err(PostgresError::NoSocketDir { limit: LONGEST })
}

/// Removes a directory that [`make_dir`] made outside the data directory. Only what the server
/// leaves in it is removed with it.
pub(super) fn remove_dir(dir: &Path, layout: &Layout) {
    let name = dir.file_name().and_then(|name| name.to_str());
    if dir.starts_with(layout.base()) || !name.is_some_and(|name| name.starts_with(PREFIX)) {
        return;
    }
    let removed = remove_socket(dir)
        .and_then(|()| fs::remove_dir(dir).map_err(PostgresError::io("remove", dir)));
    if let Err(error) = removed {
        tracing::debug!(%error, dir = %dir.display(), "socket directory left behind");
    }
}

/// Removes what a server makes in its socket directory.
fn remove_socket(dir: &Path) -> Result<(), PostgresError> {
    let socket = socket(dir);
    remove_if_there(&socket)?;
    remove_if_there(&socket.with_added_extension("lock"))
}

/// The socket in a directory.
pub(super) fn socket(dir: &Path) -> PathBuf {
    dir.join(format!(".s.PGSQL.{PORT}"))
}

fn fits(dir: &Path) -> bool {
    socket(dir).as_os_str().as_bytes().len() <= LONGEST
}

/// Directories with short paths in which this user may make one of its own.
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

/// The note on the running server: what it runs for, and its socket directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// Whether commands may use the server.
    pub(super) shared: bool,
    /// The socket directory.
    pub(super) socket_dir: PathBuf,
}

impl Note {
    /// Leaves the note, once the server accepts connections.
    pub(super) fn write(
        layout: &Layout,
        purpose: Purpose,
        socket_dir: &Path,
    ) -> Result<(), PostgresError> {
        let text = format!("{}\n{}\n", purpose.word(), socket_dir.display());
        write_private(&layout.connection(), &text)
    }

    /// Reads the note; `None` when there is none.
    pub(super) fn read(layout: &Layout) -> Option<Self> {
        let text = fs::read_to_string(layout.connection()).ok()?;
        let (word, socket_dir) = text.trim_end_matches('\n').split_once('\n')?;
        Some(Self {
            shared: word == Purpose::Service.word(),
            socket_dir: PathBuf::from(socket_dir),
        })
    }

    /// Removes the note.
    pub(super) fn remove(layout: &Layout) -> Result<(), PostgresError> {
        remove_if_there(&layout.connection())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(dir.path()).unwrap();
        assert_eq!(Note::read(&layout), None);
        Note::write(&layout, Purpose::Service, Path::new("/run/a b")).unwrap();
        let note = Note::read(&layout).unwrap();
        assert!(note.shared);
        assert_eq!(note.socket_dir, Path::new("/run/a b"));
        Note::write(&layout, Purpose::Command, Path::new("/run/x")).unwrap();
        assert!(!Note::read(&layout).unwrap().shared);
        Note::remove(&layout).unwrap();
        assert_eq!(Note::read(&layout), None);
    }

    #[test]
    fn a_long_path_moves_the_socket_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(&dir.path().join("d".repeat(120))).unwrap();
        let account = Account::choose(&layout.cluster()).unwrap();
        let made = make_dir(&layout, &account).unwrap();
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
