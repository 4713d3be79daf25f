//! Packs releases for the store, in chunks and with the SHA-256 of the CSV that will be served, and
//! unpacks stored tables.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rayon::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use crate::db::StoreError;
use crate::db::audit::Actor;
use crate::db::releases::{
    self, ModelOptions, NewRelease, NewTable, StoredColumn, StoredTable, TableContent,
};
use crate::db::seal::{DataKey, SealedItem};
use crate::ids::{JobId, OrganizationId, ReleaseId};
use crate::problem::{Code, Problem};
use crate::storage::Storage;
use crate::telemetry::traces::TraceSpan;
use pais_anonymize::{
    AnonymizationRun, Observer, RunError, SearchOutcome, VerifiedRelease, VerifiedTables,
};
use pais_core::cancellation::Cancellation;
use pais_core::codebook::{Codebook, CodebookOrganization};
use pais_core::definition::{DatasetDefinition, DatasetId, JobDefinition, SubmissionId};
use pais_core::schema::Schema;
use pais_core::table::{Column, ReleasedColumn, ReleasedTable, Table};
use pais_core::warning::{Warning, by_code};
use pais_io::chunk::{self, Assembler, ChunkError};
use pais_io::read::CHUNK_ROWS;
use pais_measure::Report;
use pais_verify::PrivacyFinding;

use super::WorkError;
use super::locations::NewReleaseFolder;
use super::records::to_json;
use super::rendering::{RenderedTables, SpoolWriter};

/// The owner and the source of a release.
#[derive(Clone, Debug)]
pub(crate) struct ReleaseOrigin {
    /// Its id.
    pub(crate) id: ReleaseId,
    /// The folder that its files are written into; `None` for a release without files.
    pub(crate) folder: Option<NewReleaseFolder>,
    /// The organization that owns it.
    pub(crate) organization: OrganizationId,
    /// The name of that organization.
    pub(crate) holder: CodebookOrganization,
    /// The job it comes from.
    pub(crate) job: JobId,
    /// The dataset it comes from.
    pub(crate) dataset: DatasetId,
    /// The submissions whose rows it can have.
    pub(crate) submissions: Vec<SubmissionId>,
    /// What the holder should know about their rows: see [`crate::db::submissions::person_warnings`].
    pub(crate) row_warnings: Vec<Warning>,
    /// The dataset as it is declared.
    pub(crate) definition: DatasetDefinition,
    /// A display name.
    pub(crate) name: Option<String>,
    /// Who requested it; the service itself where the job creates it at its end.
    pub(crate) by: Actor,
    /// When it was created.
    pub(crate) created_at: OffsetDateTime,
    /// The row of the job's submissions of each row of the run; `None` if the run has them all.
    pub(crate) rows: Option<Vec<u32>>,
}

/// The bounds on the packing of a release.
#[derive(Clone, Copy, Debug)]
struct PackBounds<'a> {
    /// See [`PackedRelease::new`].
    csv_bytes: u64,
    /// The request to stop.
    cancellation: &'a Cancellation,
}

impl PackBounds<'_> {
    fn stop_if_asked(&self) -> Result<(), WorkError> {
        if self.cancellation.is_cancelled() {
            Err(RunError::Cancelled.into())
        } else {
            Ok(())
        }
    }
}

/// A verified and measured release with its tables packed.
pub(crate) struct PackedRelease {
    release: VerifiedRelease,
    tables: Vec<NewTable>,
    rendered: RenderedTables,
}

impl PackedRelease {
    /// Verifies the tables after `step`, the last one when `None`; then measures and packs them side
    /// by side. A table has at most `storage.spool_bytes` as CSV, since it is rendered there: a short label
    /// in many rows is long.
    ///
    /// # Errors
    /// Those of the run; `limit_exceeded` for a table that is too large as CSV; when a table cannot
    /// be encoded in chunks.
    pub(crate) fn new(
        run: &AnonymizationRun,
        found: &SearchOutcome,
        step: Option<u32>,
        storage: &Storage,
        observer: &dyn Observer,
    ) -> Result<Self, WorkError> {
        let verified = run.verify(found, step, observer)?;
        Self::of_verified(run, found, verified, storage, observer)
    }

    /// Measures and packs verified tables, as [`Self::new`].
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn of_verified(
        run: &AnonymizationRun,
        found: &SearchOutcome,
        verified: VerifiedTables,
        storage: &Storage,
        observer: &dyn Observer,
    ) -> Result<Self, WorkError> {
        let _trace = TraceSpan::part("packing release");
        let bounds = PackBounds {
            csv_bytes: storage.spool.limit(),
            cancellation: observer.cancellation(),
        };
        let (report, tables) = rayon::join(
            || run.measure(found, &verified, observer),
            || {
                let tables = verified.tables().iter();
                let tables = tables.map(|table| {
                    let file = SpoolWriter::of_release(storage, bounds.cancellation);
                    pack_table(table, bounds, file)
                });
                tables.collect::<Result<Vec<_>, _>>()
            },
        );
        let tables = tables?.into_iter().map(|it| (it.table, it.rendered));
        let (tables, files) = tables.unzip();
        Ok(Self {
            release: verified.with_report(report?),
            tables,
            rendered: RenderedTables { files },
        })
    }

    /// Takes the rendered tables.
    pub(crate) fn take_rendered(&mut self) -> RenderedTables {
        std::mem::take(&mut self.rendered)
    }

    /// What the holder should know about the release.
    pub(crate) fn warnings(&self) -> &[Warning] {
        &self.release.warnings
    }

    /// The verified tables.
    pub(crate) fn tables(&self) -> &[ReleasedTable] {
        self.release.tables()
    }
}

/// Completes a packed release of a job for the store. `key` is that of its dataset.
///
/// # Errors
/// When a part of it cannot be encoded.
pub(crate) fn pack(
    packed: PackedRelease,
    origin: ReleaseOrigin,
    job: &JobDefinition,
    key: &DataKey,
) -> Result<NewRelease, WorkError> {
    let PackedRelease {
        release, tables, ..
    } = packed;
    let id = origin.id;
    let rows = release.source_rows();
    let source_rows = match &origin.rows {
        Some(of_job) => {
            let rows: Vec<u32> = rows.iter().map(|&row| of_job[row as usize]).collect();
            releases::seal_source_rows(key, id, &rows)?
        }
        None => releases::seal_source_rows(key, id, rows)?,
    };
    let facts = ReleaseFacts {
        step: release.step,
        rows: release.rows,
        suppressed_rows: release.suppressed_rows,
        cut: release.cut.as_ref(),
        verification: release.verification(),
        report: release.report(),
        schema: release.schema(),
        tables: release.tables(),
        warnings: &release.warnings,
    };
    Ok(NewRelease {
        source_rows,
        tables,
        ..facts.pack(origin, job, key)?
    })
}

/// The stored data of a verified release in addition to its rows.
pub(super) struct ReleaseFacts<'a> {
    pub(super) step: Option<u32>,
    pub(super) rows: u64,
    pub(super) suppressed_rows: u64,
    pub(super) cut: Option<&'a BTreeMap<String, Vec<String>>>,
    pub(super) verification: &'a PrivacyFinding,
    pub(super) report: &'a Report,
    /// Under the roles of the job, with made hierarchies over the released values.
    pub(super) schema: &'a Schema,
    /// Tables with all labels that are released.
    pub(super) tables: &'a [ReleasedTable],
    pub(super) warnings: &'a [Warning],
}

impl ReleaseFacts<'_> {
    /// The release without tables, files and the raw rows that its rows come from. `key` is that of its
    /// dataset.
    ///
    /// # Errors
    /// When a part of it cannot be encoded.
    pub(super) fn pack(
        self,
        origin: ReleaseOrigin,
        job: &JobDefinition,
        key: &DataKey,
    ) -> Result<NewRelease, WorkError> {
        let id = origin.id;
        let codebook =
            Codebook::of_release(origin.holder, &origin.definition, self.schema, self.tables);
        let mut report = to_json(self.report)?;
        // They have raw values as labels, and reports are stored unencrypted.
        let distributions = report.as_object_mut();
        let distributions = distributions.and_then(|report| report.remove("distributions"));
        let seal = |distributions: Value| {
            let text = distributions.to_string();
            key.seal(SealedItem::Distributions(id), text.as_bytes())
        };
        Ok(NewRelease {
            id,
            source_rows: Vec::new(),
            sealed_distributions: distributions.map(seal).transpose()?,
            organization: origin.organization,
            job: origin.job,
            dataset: origin.dataset,
            submissions: origin.submissions,
            name: origin.name,
            step: self.step,
            by: origin.by,
            rows: self.rows,
            suppressed_rows: self.suppressed_rows,
            privacy: to_json(&job.privacy)?,
            cut: self.cut.map(to_json).transpose()?,
            verification: to_json(self.verification)?,
            report,
            codebook: to_json(&codebook)?,
            model_options: ModelOptions::of(job),
            warnings: by_code([origin.row_warnings, self.warnings.to_vec()].concat()),
            created_at: origin.created_at,
            tables: Vec::new(),
            files: Vec::new(),
        })
    }
}

/// The columns of a table as they are stored.
pub(super) fn stored_columns(table: &ReleasedTable) -> Vec<StoredColumn> {
    let columns = table.columns.iter();
    let columns = columns.map(|column| StoredColumn {
        name: column.name.clone(),
        form: column.form,
        missing: column.missing.clone(),
    });
    columns.collect()
}

/// A table for the store, and its CSV where it could be written.
struct PackedTable {
    table: NewTable,
    rendered: Option<SpoolWriter>,
}

/// Packs a table. Its CSV is written to `file`; without one, or when that fails, it is only hashed.
fn pack_table(
    table: &ReleasedTable,
    bounds: PackBounds,
    file: Option<SpoolWriter>,
) -> Result<PackedTable, WorkError> {
    let mut digest = DigestWriter::new(bounds, file);
    let damaged = || StoreError::Damaged("a finished table");
    // The digest is computed by one thread. Meanwhile the other threads render the CSV for it and
    // encode the chunks.
    let (digested, chunks) = rayon::join(
        || pais_io::write::csv(table, &mut digest),
        || {
            let numbers = (0..table.rows.div_ceil(CHUNK_ROWS)).into_par_iter();
            let chunks = numbers.map(|number| {
                bounds.stop_if_asked()?;
                pack_chunk(table, number * CHUNK_ROWS).map_err(|_| damaged().into())
            });
            chunks.collect::<Result<Vec<_>, WorkError>>()
        },
    );
    bounds.stop_if_asked()?;
    if digest.is_full {
        let detail = format!(
            "the released table `{}` would have more than {} bytes as CSV (storage.spool_bytes); \
             choose fewer submissions or columns, or shorter labels",
            table.name, bounds.csv_bytes
        );
        return Err(Problem::new(Code::LimitExceeded, detail).into());
    }
    digested.map_err(|_| damaged())?;
    let chunks = chunks?;
    let content = TableContent {
        sha256: digest.hasher.finalize().into(),
        csv_bytes: digest.bytes,
        chunks,
    };
    Ok(PackedTable {
        table: NewTable {
            name: table.name.to_string(),
            rows: table.rows as u64,
            columns: stored_columns(table),
            content: Some(content),
        },
        rendered: digest.file,
    })
}

/// Encodes the chunk that begins at row `start`.
fn pack_chunk(table: &ReleasedTable, start: usize) -> Result<Vec<u8>, ChunkError> {
    let end = table.rows.min(start + CHUNK_ROWS);
    let columns = table.columns.iter().map(|ReleasedColumn { column, .. }| {
        let cells = column.codes[start..end].iter().copied();
        Column::of_cells(&column.dictionary, cells)
    });
    let part = Table {
        rows: end - start,
        columns: columns.collect(),
    };
    chunk::encode(&part)
}

/// Joins the chunks of a stored table.
///
/// # Errors
/// When the stored table is damaged.
pub(crate) fn unpack(
    table: &StoredTable,
    chunks: impl IntoIterator<Item = Vec<u8>>,
) -> Result<ReleasedTable, StoreError> {
    let damaged = || StoreError::Damaged("a released table");
    let shapes = &table.columns;
    let mut rows = Assembler::default();
    for bytes in chunks {
        let part = chunk::decode(&bytes).map_err(|_| damaged())?;
        rows.push(part).map_err(|_| damaged())?;
    }
    let mut rows = rows.finish();
    if rows.rows == 0 {
        rows.columns = vec![Column::default(); shapes.len()];
    }
    if rows.rows as u64 != table.rows || rows.columns.len() != shapes.len() {
        return Err(damaged());
    }
    Ok(ReleasedTable {
        name: table.name.as_str().into(),
        rows: rows.rows,
        columns: shapes
            .iter()
            .zip(rows.columns)
            .map(|(shape, column)| ReleasedColumn {
                name: shape.name.clone(),
                form: shape.form,
                column,
                missing: shape.missing.clone(),
            })
            .collect(),
    })
}

/// A writer that computes the SHA-256 and the number of bytes within bounds, and writes to a file as long as that
/// is possible.
struct DigestWriter<'a> {
    hasher: Sha256,
    bytes: u64,
    bounds: PackBounds<'a>,
    /// Whether there were more bytes than permitted.
    is_full: bool,
    file: Option<SpoolWriter>,
}

impl<'a> DigestWriter<'a> {
    fn new(bounds: PackBounds<'a>, file: Option<SpoolWriter>) -> Self {
        Self {
            hasher: Sha256::new(),
            bytes: 0,
            bounds,
            is_full: false,
            file,
        }
    }
}

impl Write for DigestWriter<'_> {
    /// # Errors
    /// After a request to stop, and beyond the bound of bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_full |= self.bytes + bytes.len() as u64 > self.bounds.csv_bytes;
        if self.is_full || self.bounds.cancellation.is_cancelled() {
            return Err(io::Error::other("the packing was stopped"));
        }
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        // The table can be rendered again.
        if self
            .file
            .as_mut()
            .is_some_and(|file| file.write_all(bytes).is_err())
        {
            self.file = None;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{DigestWriter, PackBounds, pack_table};
    use crate::engine::WorkError;
    use crate::problem::Code;
    use pais_core::cancellation::Cancellation;
    use pais_core::table::{Column, Form, ReleasedColumn, ReleasedTable};

    /// A label of a mebibyte in 200,000 rows: 200 GB of text.
    fn long_label() -> ReleasedTable {
        let rows = 200_000;
        ReleasedTable {
            name: "data".into(),
            rows,
            columns: vec![ReleasedColumn {
                name: "a".into(),
                form: Form::Generalized,
                column: Column {
                    dictionary: vec!["x".repeat(1 << 20).into()],
                    codes: vec![0; rows],
                },
                missing: Vec::new(),
            }],
        }
    }

    fn code(packed: Result<super::PackedTable, WorkError>) -> Code {
        match packed {
            Err(WorkError::Problem(problem)) => problem.code,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("200 GB were packed"),
        }
    }

    #[test]
    fn a_release_has_a_bounded_size() {
        let cancellation = Cancellation::new();
        let bounds = PackBounds {
            csv_bytes: 50 << 20,
            cancellation: &cancellation,
        };
        let packed = pack_table(&long_label(), bounds, None);
        assert_eq!(code(packed), Code::LimitExceeded);
    }

    #[test]
    fn packing_ends_at_the_next_block_when_it_is_asked_to() {
        let cancellation = Cancellation::new();
        let bounds = PackBounds {
            csv_bytes: u64::MAX,
            cancellation: &cancellation,
        };
        let mut digest = DigestWriter::new(bounds, None);
        digest.write_all(b"a block").unwrap();
        cancellation.cancel();
        assert!(digest.write_all(b"the next").is_err());
        assert_eq!(digest.bytes, 7);
        let packed = pack_table(&long_label(), bounds, None);
        assert_eq!(code(packed), Code::Cancelled);
    }
}
