//! A file that a command writes. It is written to a temporary file in the same directory and renamed when complete,
//! so a failed run leaves the earlier file unchanged. A target that cannot be replaced, such as a pipe, is written
//! directly.
//!
//! Nobody but its owner can read an incomplete file, and a signal that ends the process removes it.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, ErrorKind, Seek, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pais::storage::directory_of;
use serde::Serialize;
use tempfile::{NamedTempFile, PersistError};

use super::files::target;
use super::output::{Failure, write_pretty};
use super::process::exit_on_signal;

/// Bytes that are collected before they are written.
const BLOCK: usize = 256 << 10;

/// The mode of a new file, before the umask is applied.
const MODE: u32 = 0o666;

/// The incomplete files of the process, which the next signal removes. `None` before the first one.
static INCOMPLETE: Mutex<Option<BTreeSet<PathBuf>>> = Mutex::new(None);

fn incomplete() -> MutexGuard<'static, Option<BTreeSet<PathBuf>>> {
    INCOMPLETE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the incomplete files. None is made or completed any more while the result is held.
fn remove_incomplete() -> MutexGuard<'static, Option<BTreeSet<PathBuf>>> {
    let incomplete = incomplete();
    for path in incomplete.iter().flatten() {
        // There is no place to report that this fails.
        let _ = std::fs::remove_file(path);
    }
    incomplete
}

/// A file with its whole content, which does not have its name yet. It is removed if it is dropped.
#[must_use = "it has its name once it is completed"]
pub(crate) struct NewFile {
    path: PathBuf,
    /// `None` for a target that is written directly, such as a pipe.
    unfinished: Option<Unfinished>,
}

struct Unfinished {
    file: NamedTempFile,
    /// The permissions of the complete file.
    permissions: Permissions,
    target: PathBuf,
    /// The file that is replaced.
    earlier: Option<File>,
}

impl NewFile {
    /// A file for this path with what `write` writes. Pipes, devices and the open files of the process are
    /// written in their place.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(
        path: &Path,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> Result<Self, Failure> {
        let written = Unfinished::write(path, write);
        Ok(Self {
            path: path.to_owned(),
            unfinished: written.map_err(|error| Failure::file(path, error))?,
        })
    }

    /// A file for this path with a document as indented JSON.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn json(path: &Path, document: &impl Serialize) -> Result<Self, Failure> {
        Self::write(path, |out| write_pretty(out, document))
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// If it cannot have it.
    pub(crate) fn complete(self) -> Result<(), Failure> {
        let completed = self.unfinished.map_or(Ok(()), Unfinished::complete);
        completed.map_err(|error| Failure::file(&self.path, error))
    }
}

impl Unfinished {
    fn write(
        path: &Path,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> io::Result<Option<Self>> {
        let write = |file: &File| {
            let mut out = BufWriter::with_capacity(BLOCK, file);
            write(&mut out)?;
            out.flush()
        };
        let Some(target) = target(path)? else {
            write(&File::create(path)?)?;
            return Ok(None);
        };
        // A file that may not be written is not replaced.
        let earlier = match OpenOptions::new().write(true).open(&target) {
            Ok(earlier) => Some(earlier),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let Some((file, permissions)) = beside(&target, earlier.as_ref())? else {
            let earlier = earlier.ok_or(ErrorKind::NotFound)?;
            earlier.set_len(0)?;
            write(&earlier)?;
            return Ok(None);
        };
        write(file.as_file())?;
        Ok(Some(Self {
            file,
            permissions,
            target,
            earlier,
        }))
    }

    fn complete(self) -> io::Result<()> {
        let mut incomplete = incomplete();
        for paths in incomplete.iter_mut() {
            paths.remove(self.file.path());
        }
        self.file.as_file().set_permissions(self.permissions)?;
        let Err(PersistError { error, file }) = self.file.persist(&self.target) else {
            return Ok(());
        };
        match self.earlier {
            // A mount point, or a file of another owner in `/tmp`, cannot be replaced.
            Some(earlier) if is_refused(&error) || error.kind() == ErrorKind::ResourceBusy => {
                copy(file, earlier)
            }
            _ => Err(error),
        }
    }
}

/// Writes a file in the place of an earlier one. Where that fails, the new one stays beside it.
fn copy(mut file: NamedTempFile, mut earlier: File) -> io::Result<()> {
    file.rewind()?;
    earlier.set_len(0)?;
    let Err(error) = io::copy(&mut file, &mut earlier) else {
        return Ok(());
    };
    let (_, kept) = file.keep()?;
    let detail = format!("{error}; the whole file is {}", kept.display());
    Err(io::Error::new(error.kind(), detail))
}

/// An empty file beside its place, with the owner of the earlier file; and the permissions that it gets, those of the
/// earlier file. `None` where that one has to be written in its place.
fn beside(
    target: &Path,
    earlier: Option<&File>,
) -> io::Result<Option<(NamedTempFile, Permissions)>> {
    let directory = directory_of(target);
    let made = |mode| {
        let permissions = Permissions::from_mode(mode);
        let mut builder = tempfile::Builder::new();
        builder.prefix(".pais-").permissions(permissions);
        let mut incomplete = incomplete();
        if incomplete.is_none() {
            exit_on_signal(remove_incomplete)?;
        }
        let file = builder.tempfile_in(directory)?;
        let paths = incomplete.get_or_insert_default();
        paths.insert(file.path().to_owned());
        Ok::<_, io::Error>(file)
    };
    let Some(earlier) = earlier else {
        let file = made(MODE)?;
        // The umask is applied.
        let permissions = file.as_file().metadata()?.permissions();
        let owner_only = Permissions::from_mode(0o600);
        file.as_file().set_permissions(owner_only)?;
        return Ok(Some((file, permissions)));
    };
    let metadata = earlier.metadata()?;
    // Its other names have the new content, too.
    if metadata.nlink() > 1 {
        return Ok(None);
    }
    let like_it = || {
        let file = made(0o600)?;
        fchown(file.as_file(), Some(metadata.uid()), Some(metadata.gid()))?;
        Ok((file, metadata.permissions()))
    };
    match like_it() {
        // The file may be written, but its directory may not, or it is another user's.
        Err(error) if is_refused(&error) => Ok(None),
        made => made.map(Some),
    }
}

fn is_refused(error: &io::Error) -> bool {
    let kind = error.kind();
    kind == ErrorKind::PermissionDenied || kind == ErrorKind::ReadOnlyFilesystem
}
