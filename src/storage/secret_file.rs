//! Files with secrets: only their owner can read them, they are never incomplete, and their bytes are overwritten when
//! they are removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use pais_seal::{SealError, SecretKey, random};

use super::directory_of;

/// Begin of the temporary name of a file that is being written; its name follows. One that a killed process has left
/// may have a key.
const NEW_PREFIX: &str = ".new-";

/// End of the name of a key file that is being destroyed.
pub(crate) const DOOMED_SUFFIX: &str = ".destroyed";

/// A file with a secret, or its directory, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The operating system's error.
    #[error("the key file {} cannot be used", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Others than the owner may use it.
    #[error(
        "{} has mode {mode:04o}; only its owner may read it: chmod go= {}",
        .path.display(), .path.display()
    )]
    Mode {
        /// The file or directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It has no key.
    #[error("the key file {} is invalid; expected 32 bytes, raw or as base64", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
    },
}

/// The error of the operating system at a path.
pub(crate) fn failed(path: &Path) -> impl FnOnce(io::Error) -> KeyFileError + use<> {
    let path = path.to_owned();
    |source| KeyFileError::Io { path, source }
}

/// Checks that only the owner of a file or directory with a secret may use it.
///
/// # Errors
/// [`KeyFileError`].
pub fn check_mode(path: &Path) -> Result<(), KeyFileError> {
    let metadata = fs::metadata(path).map_err(failed(path))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let path = path.to_owned();
    Err(KeyFileError::Mode { path, mode })
}

/// Reads a key file: one key, raw or as base64, or a line of base64 for each of several keys; `None` where
/// there is no file.
///
/// # Errors
/// When the file cannot be read, may be read by others, or has no key.
pub fn read_keys(path: &Path) -> Result<Option<Vec<SecretKey>>, KeyFileError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => Zeroizing::new(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path)(error)),
    };
    check_mode(path)?;
    if let Ok(raw) = <[u8; 32]>::try_from(bytes.as_slice()) {
        return Ok(Some(vec![Zeroizing::new(raw)]));
    }
    let lines = bytes.split(|&byte| byte == b'\n');
    let lines = lines
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty());
    let keys: Option<Vec<SecretKey>> = lines.map(key_of_base64).collect();
    match keys {
        Some(keys) if !keys.is_empty() => Ok(Some(keys)),
        _ => Err(KeyFileError::Invalid {
            path: path.to_owned(),
        }),
    }
}

/// Reads a key file of one key.
///
/// # Errors
/// As [`read_keys`], and when there is no file, or it has several keys.
pub fn read_one_key(path: &Path) -> Result<SecretKey, KeyFileError> {
    match read_keys(path)?.as_deref() {
        None => Err(failed(path)(ErrorKind::NotFound.into())),
        Some([key]) => Ok(key.clone()),
        Some(_) => Err(KeyFileError::Invalid {
            path: path.to_owned(),
        }),
    }
}

/// A key of 32 bytes in base64.
pub fn key_of_base64(text: &[u8]) -> Option<SecretKey> {
    let bytes = Zeroizing::new(STANDARD.decode(text).ok()?);
    let key = <[u8; 32]>::try_from(bytes.as_slice()).ok()?;
    Some(Zeroizing::new(key))
}

/// A file of mode 0600 with a temporary name beside the one that it is to become.
fn new_file(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut named = tempfile::Builder::new();
    named
        .prefix(&format!("{NEW_PREFIX}{name}."))
        .tempfile_in(directory_of(path))
}

/// Overwrites and removes what killed processes have left of writing a file with a secret. No process may be writing
/// it: its bytes would be overwritten.
///
/// # Errors
/// [`KeyFileError`].
pub fn remove_unfinished_of(path: &Path) -> Result<(), KeyFileError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    remove_unfinished(directory_of(path), &format!("{name}."), Duration::ZERO)
}

/// Overwrites and removes the files with a temporary name of a directory whose own names begin with `name`, if they are
/// at least as old as `age`.
///
/// # Errors
/// [`KeyFileError`].
pub(crate) fn remove_unfinished(
    directory: &Path,
    name: &str,
    age: Duration,
) -> Result<(), KeyFileError> {
    let prefix = format!("{NEW_PREFIX}{name}");
    for entry in fs::read_dir(directory).map_err(failed(directory))? {
        let entry = entry.map_err(failed(directory))?;
        let path = entry.path();
        let written = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old = written.is_ok_and(|at| at.elapsed().is_ok_and(|elapsed| elapsed >= age));
        let is_unfinished = entry.file_name().to_string_lossy().starts_with(&prefix);
        if is_unfinished && is_old {
            let file = OpenOptions::new().write(true).open(&path);
            file.and_then(overwrite).map_err(failed(&path))?;
            fs::remove_file(&path).map_err(failed(&path))?;
        }
    }
    Ok(())
}

/// Writes a file that did not exist, of mode 0600. It gets its name once it is complete, and is on the disk under this
/// name when this returns.
///
/// # Errors
/// [`KeyFileError`]; if the file exists, with [`ErrorKind::AlreadyExists`].
pub fn create_file(path: &Path, content: &[u8]) -> Result<(), KeyFileError> {
    let written = new_file(path).and_then(|mut file| {
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path)?;
        sync_directory(directory_of(path))
    });
    written.map_err(failed(path))
}

/// Replaces a file with a secret, of mode 0600: the new one is complete before it gets the name, and the old bytes are
/// overwritten.
///
/// # Errors
/// [`KeyFileError`].
pub fn replace_secret(path: &Path, content: &[u8]) -> Result<(), KeyFileError> {
    let earlier = OpenOptions::new().write(true).open(path).ok();
    let written = new_file(path).and_then(|mut new| {
        new.write_all(content)?;
        new.as_file().sync_all()?;
        new.persist(path)?;
        sync_directory(directory_of(path))?;
        earlier.map_or(Ok(()), overwrite)
    });
    written.map_err(failed(path))
}

/// Overwrites and removes a file, if it exists. It is renamed first, so that nobody reads the overwritten
/// content; a crash after that leaves it under the other name, where the next call finds it.
///
/// # Errors
/// [`KeyFileError`].
pub(crate) fn destroy_file(path: &Path) -> Result<(), KeyFileError> {
    let doomed = path.with_extension(&DOOMED_SUFFIX[1..]);
    match fs::rename(path, &doomed) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(path)(error)),
        _ => {}
    }
    let file = match OpenOptions::new().write(true).open(&doomed) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(&doomed)(error)),
    };
    overwrite(file).map_err(failed(&doomed))?;
    match fs::remove_file(&doomed) {
        // Another task has overwritten it too.
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(&doomed)(error)),
        _ => {}
    }
    sync_directory(directory_of(path)).map_err(failed(path))
}

/// Overwrites a file in place with random bytes, so that its blocks do not keep the key.
fn overwrite(mut file: File) -> io::Result<()> {
    let length = usize::try_from(file.metadata()?.len()).unwrap_or_default();
    let mut noise = vec![0; length];
    random(&mut noise).map_err(|error: SealError| io::Error::other(error))?;
    file.write_all(&noise)?;
    file.sync_all()
}

/// Brings the names in a directory to the disk.
///
/// # Errors
/// When the directory cannot be synced.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Seek, SeekFrom};
    use std::os::unix::fs::PermissionsExt;

    use super::{create_file, destroy_file, replace_secret};

    #[test]
    fn a_destroyed_file_leaves_no_bytes_even_to_who_has_it_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.key");
        create_file(&path, b"secret secret secret").unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        assert!(create_file(&path, b"other").is_err());
        let mut open = fs::File::open(&path).unwrap();
        replace_secret(&path, b"another secret").unwrap();
        let mut kept = Vec::new();
        open.read_to_end(&mut kept).unwrap();
        assert!(!kept.windows(6).any(|window| window == b"secret"));
        let mut open = fs::File::open(&path).unwrap();
        destroy_file(&path).unwrap();
        destroy_file(&path).unwrap();
        open.seek(SeekFrom::Start(0)).unwrap();
        let mut kept = Vec::new();
        open.read_to_end(&mut kept).unwrap();
        assert!(!kept.windows(6).any(|window| window == b"secret"));
    }
}
