//! The spool directory that a run shares with its executors.
//!
//! A run has a private directory there, `run-` and its id. The file `codes` has its rows, sealed under a key of
//! the run. The file `index` has this key and the place of each block, sealed under the key of the executors
//! for this run: neither can be opened under the name of another run.
//!
//! A running run holds an advisory lock on `codes`. A directory whose lock is free was left by a killed run,
//! and is removed by the next run that starts, and by executors every few seconds.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pais_seal::{Cipher, SecretKey, random, random_key};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::codes::CodeFile;
use crate::sealed::SealedFile;

/// The rows.
const CODES: &str = "codes";

/// Their key, and where their blocks are.
const INDEX: &str = "index";

/// Locked while a run makes its directory, and while directories are removed.
const LOCK: &str = ".lock";

/// Prefix of the name of a run's directory.
const PREFIX: &str = "run-";

/// Maximum number of bytes of an index: enough for 4 million blocks.
const MOST_INDEX: u64 = 64 << 20;

/// What an index is sealed for, before the id of the run.
const PURPOSE: &[u8] = b"pais-scale index 1";

/// The key that runs and executors share. It seals the keys of runs, and the requests to executors.
#[derive(Clone)]
pub struct ExecutorKey(pub(crate) Cipher);

impl ExecutorKey {
    /// A key of 32 bytes.
    pub fn new(key: &SecretKey) -> Self {
        Self(Cipher::new(key))
    }
}

impl fmt::Debug for ExecutorKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ExecutorKey")
    }
}

/// Names a run in its spool directory; drawn at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunId([u8; 16]);

impl RunId {
    fn directory(self, spool: &Path) -> PathBuf {
        spool.join(format!("{PREFIX}{:032x}", u128::from_be_bytes(self.0)))
    }

    fn purpose(self) -> Vec<u8> {
        [PURPOSE, &self.0].concat()
    }
}

/// What an index has in addition to the key.
#[derive(Serialize, Deserialize)]
struct Index {
    block_rows: usize,
    rows: u64,
    greatest: Vec<u32>,
    ends: Vec<u64>,
}

/// The directory of a run. It is removed when this is dropped.
pub(crate) struct RunDirectory {
    /// The name of the run.
    pub(crate) id: RunId,
    path: PathBuf,
    key: SecretKey,
    /// Locked as long as the run lives.
    codes: File,
}

impl RunDirectory {
    /// Makes the directory of a new run, and removes those of runs that were killed.
    ///
    /// # Errors
    /// Those of the file system, and when it has no locks.
    pub(crate) fn new(spool: &Path) -> io::Result<Self> {
        let _lock = locked(spool)?;
        remove_dead(spool)?;
        let mut id = RunId([0; 16]);
        random(&mut id.0).map_err(io::Error::other)?;
        let path = id.directory(spool);
        DirBuilder::new().mode(0o700).create(&path)?;
        let codes = create(&path.join(CODES)).and_then(|codes| {
            codes.lock()?;
            Ok(codes)
        });
        let key = random_key().map_err(io::Error::other);
        match codes.and_then(|codes| Ok((codes, key?))) {
            Ok((codes, key)) => Ok(Self {
                id,
                path,
                key,
                codes,
            }),
            Err(error) => {
                // What stays is removed as that of a killed run.
                let _ = fs::remove_dir_all(&path);
                Err(error)
            }
        }
    }

    /// The empty file of the rows. It is used once.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn codes(&self) -> io::Result<SealedFile> {
        let file = self.codes.try_clone()?;
        Ok(SealedFile::under_own_key(file, &self.key, Vec::new()))
    }

    /// Lets executors that have the key read the finished rows.
    ///
    /// # Errors
    /// Those of the file system, and for too many rows.
    pub(crate) fn publish(&self, codes: &CodeFile, key: &ExecutorKey) -> io::Result<()> {
        let index = Index {
            block_rows: codes.block_rows,
            rows: codes.rows,
            greatest: codes.greatest.clone(),
            ends: codes.file.ends().to_vec(),
        };
        let index = serde_json::to_vec(&index)?;
        let message = Zeroizing::new([&self.key[..], &index].concat());
        let sealed = key.0.seal(&message, &self.id.purpose());
        let sealed = sealed.map_err(io::Error::other)?;
        if sealed.len() as u64 > MOST_INDEX {
            return Err(io::Error::other("the table has too many blocks of rows"));
        }
        // Other machines see only what is on the disk.
        self.codes.sync_data()?;
        let mut file = create(&self.path.join(INDEX))?;
        file.write_all(&sealed)?;
        file.sync_data()
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // What stays is removed as that of a killed run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The rows of a run, for an executor.
///
/// # Errors
/// [`ErrorKind::NotFound`] if the directory has no such run, [`ErrorKind::PermissionDenied`] if it was
/// sealed under another key or changed, and others of the file system.
pub(crate) fn open_run(spool: &Path, id: RunId, key: &ExecutorKey) -> io::Result<CodeFile> {
    let directory = id.directory(spool);
    let [index, codes] = [INDEX, CODES].map(|name| directory.join(name));
    // A link could lead out of the spool directory.
    let is_plain = |path: &Path| fs::symlink_metadata(path).map(|it| !it.is_symlink());
    if !(is_plain(&directory)? && is_plain(&index)? && is_plain(&codes)?) {
        return Err(ErrorKind::NotFound.into());
    }
    let mut sealed = Vec::new();
    File::open(index)?
        .take(MOST_INDEX)
        .read_to_end(&mut sealed)?;
    let denied = || io::Error::from(ErrorKind::PermissionDenied);
    let message = key.0.open(&sealed, &id.purpose());
    let message = Zeroizing::new(message.map_err(|_| denied())?);
    let (data_key, index) = message.split_first_chunk::<32>().ok_or_else(denied)?;
    let index: Index = serde_json::from_slice(index)?;
    let blocks = index.rows.checked_div(index.block_rows as u64);
    let blocks = blocks.map(|full| full + u64::from(full * index.block_rows as u64 != index.rows));
    let codes = File::open(codes)?;
    let is_whole = blocks == Some(index.ends.len() as u64)
        && index.ends.is_sorted()
        && index.ends.last().copied().unwrap_or(0) <= codes.metadata()?.len();
    if !is_whole {
        return Err(denied());
    }
    Ok(CodeFile {
        file: SealedFile::under_own_key(codes, &SecretKey::new(*data_key), index.ends),
        block_rows: index.block_rows,
        rows: index.rows,
        greatest: index.greatest,
    })
}

/// Removes the directories of killed runs.
///
/// # Errors
/// Those of the file system, and when it has no locks.
pub(crate) fn sweep(spool: &Path) -> io::Result<()> {
    let _lock = locked(spool)?;
    remove_dead(spool)
}

/// Waits until no other process makes or removes directories.
fn locked(spool: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.mode(0o600).open(spool.join(LOCK))?;
    file.lock()?;
    Ok(file)
}

fn remove_dead(spool: &Path) -> io::Result<()> {
    for entry in fs::read_dir(spool)? {
        let entry = entry?;
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let is_id = |id: &str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !id.is_some_and(is_id) || !entry.file_type()?.is_dir() {
            continue;
        }
        let path = entry.path();
        let codes = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path.join(CODES));
        let is_dead = match &codes {
            Ok(codes) => codes.try_lock().is_ok(),
            // A run makes it before others may look.
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        if is_dead {
            match fs::remove_dir_all(&path) {
                // The run has just removed it.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
    }
    Ok(())
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    options.mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::{FileExt, PermissionsExt};

    use super::{ExecutorKey, RunDirectory, open_run, sweep};
    use crate::codes::{CodeFile, CodeWriter};
    use pais_seal::random_key;

    fn key() -> ExecutorKey {
        ExecutorKey::new(&random_key().unwrap())
    }

    /// Writes 25 rows of two columns.
    fn published(run: &RunDirectory, key: &ExecutorKey) -> CodeFile {
        let mut writer = CodeWriter::new(run.codes().unwrap(), 2, 10);
        (0..25u32).for_each(|row| writer.push([row, 1_000 * row].into_iter()).unwrap());
        let codes = writer.finish(&mut |_| ()).unwrap();
        run.publish(&codes, key).unwrap();
        codes
    }

    #[test]
    fn an_executor_reads_what_a_run_has_written() {
        let spool = tempfile::tempdir().unwrap();
        let (run, key) = (RunDirectory::new(spool.path()).unwrap(), key());
        assert_eq!(
            open_run(spool.path(), run.id, &key).err().unwrap().kind(),
            ErrorKind::NotFound
        );
        let written = published(&run, &key);
        let read = open_run(spool.path(), run.id, &key).unwrap();
        assert_eq!((read.rows, &read.greatest), (25, &vec![24, 24_000]));
        for block in 0..3 {
            let [read, written] = [&read, &written].map(|it| it.block(block).unwrap().columns());
            assert_eq!(read, written);
        }
        for entry in fs::read_dir(&run.path).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn another_key_another_run_and_changed_bytes_do_not_open() {
        let spool = tempfile::tempdir().unwrap();
        let (one, other) = (
            RunDirectory::new(spool.path()).unwrap(),
            RunDirectory::new(spool.path()).unwrap(),
        );
        let (key, another) = (key(), key());
        published(&one, &key);
        published(&other, &key);
        let denied = |id, key| {
            let refused = open_run(spool.path(), id, key).err();
            refused.map(|error| error.kind()) == Some(ErrorKind::PermissionDenied)
        };
        assert!(denied(one.id, &another));
        // A block that was changed does not open, the others do.
        let read = open_run(spool.path(), one.id, &key).unwrap();
        let mut byte = [0];
        one.codes.read_exact_at(&mut byte, 3).unwrap();
        one.codes.write_all_at(&[byte[0] ^ 1], 3).unwrap();
        assert!(read.block(0).is_err() && read.block(1).is_ok());
        // Rows of another run.
        fs::copy(other.path.join("codes"), one.path.join("codes")).unwrap();
        let read = open_run(spool.path(), one.id, &key).unwrap();
        assert!((0..3).all(|block| read.block(block).is_err()));
        // The index of another run.
        fs::copy(other.path.join("index"), one.path.join("index")).unwrap();
        assert!(denied(one.id, &key));
        // Fewer rows than the index says.
        other.codes.set_len(100).unwrap();
        assert!(denied(other.id, &key));
        let mut index = fs::read(other.path.join("index")).unwrap();
        index[20] ^= 1;
        fs::write(other.path.join("index"), index).unwrap();
        assert!(denied(other.id, &key));
    }

    #[test]
    fn a_link_out_of_the_spool_directory_is_not_followed() {
        let (spool, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (run, key) = (RunDirectory::new(outside.path()).unwrap(), key());
        published(&run, &key);
        assert!(open_run(outside.path(), run.id, &key).is_ok());
        let link = spool.path().join(run.path.file_name().unwrap());
        std::os::unix::fs::symlink(&run.path, link).unwrap();
        assert!(open_run(spool.path(), run.id, &key).is_err());
    }

    #[test]
    fn only_what_a_dead_run_left_is_removed() {
        let spool = tempfile::tempdir().unwrap();
        let (living, dead) = (
            RunDirectory::new(spool.path()).unwrap(),
            RunDirectory::new(spool.path()).unwrap(),
        );
        let key = key();
        published(&living, &key);
        published(&dead, &key);
        // As a kill does: its files are closed, and nothing is removed.
        let path = dead.path.clone();
        dead.codes.unlock().unwrap();
        for kept in ["run-1", "other"] {
            fs::create_dir(spool.path().join(kept)).unwrap();
        }
        sweep(spool.path()).unwrap();
        assert!(!path.exists());
        assert!(open_run(spool.path(), living.id, &key).is_ok());
        let path = living.path.clone();
        drop(living);
        assert!(!path.exists());
        let left = fs::read_dir(spool.path()).unwrap().count();
        assert_eq!(left, [".lock", "run-1", "other"].len());
    }
}
