//! Renders released tables into files of the spool directory.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use pais_core::cancellation::Cancellation;
use pais_core::table::{BoundedColumn, ReleasedTable};
use pais_io::FileFormat;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::db::StoreError;
use crate::ids::ReleaseId;
use crate::problem::{Code, Problem};
use crate::storage::Storage;
use crate::storage::spool::{Spool, UNFINISHED};

use super::{WorkError, on_thread};

/// How a released table is rendered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rendering {
    /// The format.
    pub(crate) format: FileFormat,
    /// Whether no text is a formula for a spreadsheet; for CSV only.
    pub(crate) is_safe: bool,
    /// The columns whose bounds are columns too; `None` for the table as it was released.
    pub(crate) bounds: Option<Arc<[BoundedColumn]>>,
}

impl Rendering {
    /// The released table in a format.
    pub(crate) fn exact(format: FileFormat) -> Self {
        Self {
            format,
            is_safe: false,
            bounds: None,
        }
    }

    /// Whether it is the CSV whose SHA-256 the release has.
    pub(crate) fn is_exact_csv(&self) -> bool {
        *self == Self::exact(FileFormat::CSV)
    }

    /// The name of the file of a table in the spool directory.
    pub(super) fn file_name(&self, release: ReleaseId, position: u32) -> String {
        // The version is part of the entity tag of a table, because another version of the program
        // may write other bytes. So it is part of the file name, too.
        let (version, ending) = (env!("CARGO_PKG_VERSION"), self.file_ending());
        format!("{release}-{position}-{version}.{ending}")
    }

    /// The suffix of a file name: the format and the options that change the content.
    pub(crate) fn file_ending(&self) -> String {
        let bounds = if self.bounds.is_some() { "bounds." } else { "" };
        let safe = if self.is_safe { "safe." } else { "" };
        format!("{bounds}{safe}{}", self.format.as_str())
    }
}

/// Renders a table. `sha256` is that of its exact CSV, hexadecimal, if it is known.
pub(super) fn render(
    table: &ReleasedTable,
    rendering: &Rendering,
    sha256: Option<&str>,
    mut out: SpoolWriter,
) -> Result<SpoolWriter, WorkError> {
    let sha256 = sha256.filter(|_| rendering.is_exact_csv());
    out.hasher = sha256.map(|_| Sha256::new());
    let written = if rendering.is_safe {
        pais_io::write::safe_csv(table, &mut out)
    } else {
        rendering.format.write(table, &mut out)
    };
    if out.cancellation.is_cancelled() {
        return Err(Problem::new(Code::Cancelled, "the rendering was stopped").into());
    }
    written.map_err(|error| unwritable(&error))?;
    if let Some(hasher) = out.hasher.take()
        && Some(hex::encode(hasher.finalize()).as_str()) != sha256
    {
        return Err(StoreError::Damaged("a released table").into());
    }
    Ok(out)
}

/// The CSV of the tables of a release that is not stored yet, as far as they could be written. The files are removed
/// when this is dropped.
#[derive(Default)]
pub(crate) struct RenderedTables {
    /// By position of the table.
    pub(super) files: Vec<Option<SpoolWriter>>,
}

impl RenderedTables {
    /// Keeps the files for the downloads of the release, which is stored now. What fails is logged: the tables can be
    /// rendered again.
    pub(crate) async fn keep(self, release: ReleaseId, storage: &Arc<Storage>) {
        let storage = storage.clone();
        let kept = on_thread(move || {
            for (position, file) in (0..).zip(self.files) {
                let Some(file) = file else { continue };
                let name = Rendering::exact(FileFormat::CSV).file_name(release, position);
                file.keep(&storage.spool, &name)?;
            }
            Ok(())
        });
        if let Err(error) = kept.await {
            tracing::warn!(%error, "a rendered table could not be kept");
        }
    }
}

/// A temporary file in the spool directory, which can be written until the work is stopped, and up to
/// the size of all files there.
pub(crate) struct SpoolWriter {
    file: BufWriter<NamedTempFile>,
    /// Hashes the written bytes, if the digest is wanted.
    hasher: Option<Sha256>,
    cancellation: Cancellation,
    /// Bytes that can still be written.
    left: u64,
}

impl SpoolWriter {
    /// A new file in the directory, which is created if it is missing.
    pub(crate) fn new(spool: &Spool, cancellation: Cancellation) -> Result<Self, WorkError> {
        let directory = spool.directory();
        let file = std::fs::create_dir_all(directory).and_then(|()| {
            let mut unfinished = tempfile::Builder::new();
            unfinished.prefix(UNFINISHED).tempfile_in(directory)
        });
        // Tables are rendered in blocks larger than this buffer, which they bypass.
        let file = BufWriter::with_capacity(64 << 10, file.map_err(|error| unwritable(&error))?);
        Ok(Self {
            file,
            hasher: None,
            cancellation,
            left: spool.limit(),
        })
    }

    /// A new file for a table that will be downloaded from this process; `None` where that cannot be, or the disk is
    /// nearly full.
    pub(super) fn of_release(storage: &Storage, cancellation: &Cancellation) -> Option<Self> {
        let is_possible = storage.spool.is_served() && storage.check().is_ok();
        is_possible
            .then(|| Self::new(&storage.spool, cancellation.clone()).ok())
            .flatten()
    }

    /// Stops the work.
    pub(crate) fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    /// Gives the file its name, so that an incomplete one is never served, and makes room for it. Returns its path.
    pub(super) fn keep(self, spool: &Spool, name: &str) -> Result<PathBuf, WorkError> {
        let target = spool.directory().join(name);
        let file = self.file.into_inner();
        let file = file.map_err(|error| unwritable(error.error()))?;
        let named = file.persist(&target);
        named.map_err(|error| unwritable(&error.error))?;
        let removed = spool.remove_oldest(&target);
        removed.map_err(|error| unwritable(&error))?;
        Ok(target)
    }
}

impl Write for SpoolWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.cancellation.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        if bytes.len() as u64 > self.left {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let written = self.file.write(bytes)?;
        self.left -= written as u64;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&bytes[..written]);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The error of a file that could not be written into the spool directory.
pub(crate) fn unwritable(error: &io::Error) -> WorkError {
    let (code, detail) = match error.kind() {
        io::ErrorKind::FileTooLarge => (
            Code::LimitExceeded,
            "the file would have more bytes than storage.spool_bytes; take another format or single tables, or have the \
             limit raised",
        ),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (
            Code::StorageFull,
            "the disk of the spool directory (storage.spool_dir) is full",
        ),
        _ => (
            Code::Unavailable,
            "the table could not be rendered; the service's log has the reason",
        ),
    };
    if code != Code::LimitExceeded {
        tracing::error!(%error, "a table could not be rendered into the spool directory");
    }
    Problem::new(code, detail).into()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use pais_core::cancellation::Cancellation;

    use super::{SpoolWriter, unwritable};
    use crate::engine::WorkError;
    use crate::problem::Code;
    use crate::storage::spool::Spool;

    #[test]
    fn a_rendered_file_is_no_larger_than_the_spool_directory_may_be() {
        let directory = tempfile::tempdir().unwrap();
        let spool = Spool::new(directory.path(), 8);
        let mut file = SpoolWriter::new(&spool, Cancellation::new()).unwrap();
        file.write_all(b"12345678").unwrap();
        let error = file.write_all(b"9").unwrap_err();
        let WorkError::Problem(problem) = unwritable(&error) else {
            panic!("{error}");
        };
        assert_eq!(problem.code, Code::LimitExceeded);
    }
}
