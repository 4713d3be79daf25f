//! The second pass: labels in place of values, in a random order, as several Parquet files.
//!
//! The order is that of Rao and Sandelius: each row goes into one of several buckets at random, and each
//! bucket is put into a random order in memory. Each order of all rows is equally probable.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use pais_anonymize::{Observer, Phase, RecodedValues, RowDraw};
use pais_core::table::ReleasedTable;
use pais_io::read::parquet::ChunkReader;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::codes::{BLOCK_ROWS, CodeFile, CodeWriter};
use crate::error::ScaleError;
use crate::sealed::Sealer;

/// Rows of each file of a release except the last one.
pub const FILE_ROWS: usize = 1 << 20;

/// Rows of a bucket, on average.
const BUCKET_ROWS: u64 = if cfg!(test) { 16 } else { 1 << 18 };

/// Maximum number of buckets; with more rows they are larger.
const MOST_BUCKETS: u64 = 1 << 10;

/// Bytes of the rows of all buckets that are not sealed yet.
const OPEN_BYTES: usize = 32 << 20;

/// Name of the document that lists the files.
pub const MANIFEST: &str = "manifest.json";

/// The files of a release.
#[derive(Clone, Debug, Serialize)]
pub struct Manifest {
    /// Number of rows.
    pub rows: u64,
    /// In the order of their rows.
    pub files: Vec<ManifestFile>,
}

/// A file of a release.
#[derive(Clone, Debug, Serialize)]
pub struct ManifestFile {
    /// Its name in the directory.
    pub name: String,
    /// Its rows.
    pub rows: u64,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal digits.
    pub sha256: String,
}

/// Where the files of a release are written, and read back to be verified.
pub trait ReleaseTarget {
    /// Why a file cannot be written or read.
    type Error: From<ScaleError>;
    /// A written file.
    type File: ChunkReader + 'static;

    /// Writes rows as the Parquet file of this name.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn write(&mut self, name: String, rows: &ReleasedTable) -> Result<ManifestFile, Self::Error>;

    /// Opens a file that was written.
    ///
    /// # Errors
    /// When the file is not there, or cannot be read.
    fn open(&mut self, file: &ManifestFile) -> Result<Self::File, Self::Error>;
}

/// The data from which the rows of a release are written.
pub(crate) struct ReleaseRows<'a> {
    /// The rows as numbers of values.
    pub(crate) codes: &'a CodeFile,
    /// The released form of each value.
    pub(crate) recoded: &'a RecodedValues,
    /// By column of the release, its stored column.
    pub(crate) columns: &'a [usize],
}

impl ReleaseRows<'_> {
    /// Calls `found` with the rows in a random order, some at a time: by released column, the code of
    /// each row's label.
    ///
    /// # Errors
    /// Those of the temporary files and of `found`, and on cancellation.
    pub(crate) fn in_random_order<E: From<ScaleError>>(
        &self,
        draw: &mut RowDraw,
        sealer: &Sealer,
        observer: &dyn Observer,
        mut found: impl FnMut(&[Vec<u32>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let buckets = self
            .codes
            .rows()
            .div_ceil(BUCKET_ROWS)
            .clamp(1, MOST_BUCKETS);
        let width = self.columns.len();
        let open_rows = OPEN_BYTES / (4 * width.max(1)) / buckets as usize;
        let mut writers = Vec::new();
        for _ in 0..buckets {
            let file = sealer.file().map_err(ScaleError::Spool)?;
            writers.push(CodeWriter::new(file, width, open_rows.clamp(1, BLOCK_ROWS)));
        }
        for block in 0..self.codes.blocks() {
            observer.check().map_err(ScaleError::from)?;
            let block = self.codes.block(block).map_err(ScaleError::Spool)?;
            let values = block.columns();
            let labels = self.recoded.table.columns.iter().zip(self.columns);
            let labels: Vec<Vec<u32>> = labels
                .map(|(released, &column)| {
                    let label = |&value: &u32| released.column.codes[value as usize];
                    values[column].iter().map(label).collect()
                })
                .collect();
            for row in 0..block.rows() {
                let bucket = draw.below(buckets) as usize;
                let cells = labels.iter().map(|labels| labels[row]);
                writers[bucket].push(cells).map_err(ScaleError::Spool)?;
            }
        }
        for writer in writers {
            observer.check().map_err(ScaleError::from)?;
            let bucket = writer.finish(&mut |_| ()).map_err(ScaleError::Spool)?;
            let mut columns: Vec<Vec<u32>> = vec![Vec::new(); width];
            for block in 0..bucket.blocks() {
                let block = bucket.block(block).map_err(ScaleError::Spool)?;
                for (column, codes) in columns.iter_mut().zip(block.columns()) {
                    column.extend(codes);
                }
            }
            let mut order: Vec<u32> = (0..bucket.rows() as u32).collect();
            draw.shuffle(&mut order);
            for column in &mut columns {
                *column = order.iter().map(|&row| column[row as usize]).collect();
            }
            found(&columns)?;
        }
        Ok(())
    }

    /// Writes the rows as Parquet files in a random order.
    ///
    /// # Errors
    /// As [`Self::in_random_order`], and those of the target.
    pub(crate) fn write<T: ReleaseTarget>(
        &self,
        target: &mut T,
        draw: &mut RowDraw,
        sealer: &Sealer,
        observer: &dyn Observer,
    ) -> Result<Manifest, T::Error> {
        observer.progress(Phase::Writing, 0.0);
        let rows = self.codes.rows();
        let mut files = ReleaseFiles::new(target, &self.recoded.table);
        self.in_random_order(draw, sealer, observer, |columns| -> Result<(), T::Error> {
            files.push(columns)?;
            observer.progress(Phase::Writing, files.rows() as f64 / rows.max(1) as f64);
            Ok(observer.check().map_err(ScaleError::from)?)
        })?;
        files.finish()
    }
}

/// Writes rows into files of [`FILE_ROWS`] rows.
struct ReleaseFiles<'a, T> {
    target: &'a mut T,
    /// All labels, and the rows of the next file. Because each file has all labels, the files have equal types
    /// of columns.
    table: ReleasedTable,
    manifest: Manifest,
}

impl<'a, T: ReleaseTarget> ReleaseFiles<'a, T> {
    fn new(target: &'a mut T, labels: &ReleasedTable) -> Self {
        let mut table = labels.clone();
        table.rows = 0;
        for column in &mut table.columns {
            column.column.codes.clear();
        }
        Self {
            target,
            table,
            manifest: Manifest {
                rows: 0,
                files: Vec::new(),
            },
        }
    }

    /// Number of rows so far.
    fn rows(&self) -> u64 {
        self.manifest.rows + self.table.rows as u64
    }

    fn push(&mut self, columns: &[Vec<u32>]) -> Result<(), T::Error> {
        let rows = columns.first().map_or(0, Vec::len);
        let mut start = 0;
        while start < rows {
            let end = rows.min(start + FILE_ROWS - self.table.rows);
            for (released, codes) in self.table.columns.iter_mut().zip(columns) {
                released.column.codes.extend_from_slice(&codes[start..end]);
            }
            self.table.rows += end - start;
            if self.table.rows == FILE_ROWS {
                self.end_file()?;
            }
            start = end;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Manifest, T::Error> {
        if self.table.rows > 0 || self.manifest.files.is_empty() {
            self.end_file()?;
        }
        Ok(self.manifest)
    }

    fn end_file(&mut self) -> Result<(), T::Error> {
        let name = format!("data-{:05}.parquet", self.manifest.files.len());
        let file = self.target.write(name, &self.table)?;
        self.manifest.rows += file.rows;
        self.manifest.files.push(file);
        self.table.rows = 0;
        for column in &mut self.table.columns {
            column.column.codes.clear();
        }
        Ok(())
    }
}

/// A directory for the files of a release.
pub(crate) struct ReleaseDirectory<'a>(pub(crate) &'a Path);

impl ReleaseTarget for ReleaseDirectory<'_> {
    type Error = ScaleError;
    type File = File;

    fn write(&mut self, name: String, rows: &ReleasedTable) -> Result<ManifestFile, ScaleError> {
        let path = self.0.join(&name);
        let written = File::create_new(&path).and_then(|file| {
            let mut out = Digesting {
                out: BufWriter::new(file),
                digest: Sha256::new(),
                bytes: 0,
            };
            pais_io::write::parquet(rows, &mut out)?;
            out.flush()?;
            out.out.get_ref().sync_all()?;
            let digest = out.digest.finalize();
            let hex = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            Ok((out.bytes, hex))
        });
        let (bytes, sha256) = written.map_err(|error| ScaleError::file(&path, error))?;
        Ok(ManifestFile {
            name,
            rows: rows.rows as u64,
            bytes,
            sha256,
        })
    }

    fn open(&mut self, file: &ManifestFile) -> Result<File, ScaleError> {
        let path = self.0.join(&file.name);
        File::open(&path).map_err(|error| ScaleError::file(&path, error))
    }
}

impl ReleaseDirectory<'_> {
    /// Writes the document that lists the files.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn list(&self, manifest: &Manifest) -> Result<(), ScaleError> {
        let path = self.0.join(MANIFEST);
        let written = File::create(&path).and_then(|file| {
            let mut out = BufWriter::new(file);
            serde_json::to_writer_pretty(&mut out, manifest)?;
            writeln!(out)?;
            out.flush()
        });
        written.map_err(|error: io::Error| ScaleError::file(&path, error))
    }
}

/// Digests what is written.
struct Digesting<W> {
    out: W,
    digest: Sha256,
    bytes: u64,
}

impl<W: Write> Write for Digesting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.digest.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// By released column of a table, its stored column.
pub(crate) fn stored_columns(
    schema: &pais_core::schema::Schema,
    table: &ReleasedTable,
) -> Option<Vec<usize>> {
    let columns = table.columns.iter().map(|released| {
        let mut stored = schema.stored();
        stored.position(|spec| *spec.name() == *released.name)
    });
    columns.collect()
}
