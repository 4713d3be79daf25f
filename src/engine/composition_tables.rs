//! The tables that a composition is decided on: those of its releases and, for sensitive values and
//! persons, the raw one.

use std::collections::BTreeMap;

use pais_anonymize::Observer;
use pais_core::codebook::Codebook;
use pais_core::definition::{ColumnRole, PrivacyDefinition, SubmissionId};
use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_editions::{KnownRelease, RawTable};
use pais_verify::{Composition, NOWHERE, Recoded, VerifyError};

use crate::db::releases::{self, SourceRows, StoredRelease, StoredTable, Viewer};
use crate::db::seal::DataKey;
use crate::db::submissions::{SubmissionRows, SubmissionsSize};
use crate::db::{Store, StoreError};
use crate::engine::{WorkError, release_packing};
use crate::ids::{OrganizationId, ReleaseId};

use super::table_work::TableWork;

/// The first table of an anatomized release.
pub(crate) const ANATOMIZED_TABLE: &str = "qit";

/// A release as it is stored.
pub(crate) struct StoredParts {
    pub(crate) release: StoredRelease,
    pub(crate) codebook: Codebook,
    pub(crate) table: StoredTable,
    pub(crate) chunks: Vec<Vec<u8>>,
    pub(crate) sources: SourceRows,
}

/// Why what releases disclose together cannot be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnknownRows {
    /// Rows were deleted.
    #[error("rows of a release were deleted")]
    Deleted,
    /// The rows of a release are only in its files, so it is not stored which raw rows they are.
    #[error(
        "the rows of release {0} are in its files alone, so that it is not known which raw rows they \
         come from"
    )]
    InFiles(ReleaseId),
}

/// Why releases are not loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PartsError {
    /// The raw rows of one of them are not known.
    #[error(transparent)]
    Unknown(#[from] UnknownRows),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Loads releases of an organization as they are stored, without their rows.
pub(crate) async fn load(
    store: &Store,
    key: &DataKey,
    organization: OrganizationId,
    ids: impl IntoIterator<Item = ReleaseId>,
) -> Result<Vec<StoredParts>, PartsError> {
    let viewer = Viewer::Holder(organization);
    let mut parts = Vec::new();
    for id in ids {
        let release = releases::load(store, viewer, id).await?;
        let release = release.ok_or_else(damaged)?;
        let place = releases::table_place(store, viewer, id, "data").await?;
        if place.is_some_and(|place| place.is_in_files) {
            return Err(UnknownRows::InFiles(id).into());
        }
        let sources = releases::source_rows(store, key, id).await?;
        let sources = sources.ok_or(UnknownRows::Deleted)?;
        let table = match releases::table(store, viewer, id, "data").await? {
            Some(table) => table,
            None => {
                let table = releases::table(store, viewer, id, ANATOMIZED_TABLE).await?;
                table.ok_or_else(damaged)?
            }
        };
        parts.push(StoredParts {
            codebook: release.codebook()?,
            release,
            table,
            chunks: Vec::new(),
            sources,
        });
    }
    Ok(parts)
}

impl StoredParts {
    /// Loads its rows.
    pub(crate) async fn load_chunks(&mut self, store: &Store) -> Result<(), StoreError> {
        self.chunks = releases::chunks(store, &self.table).await?;
        Ok(())
    }

    /// Bytes that it needs in addition to the raw rows: its cells as stored and joined, its texts, and a number
    /// for each of its rows and each raw row.
    pub(crate) fn bytes(&self, raw_rows: u64) -> u64 {
        let columns = self.table.columns.len() as u64;
        let cells = self.table.rows.saturating_mul(columns).saturating_mul(12);
        let numbers = self.table.rows.saturating_add(raw_rows).saturating_mul(8);
        cells
            .saturating_add(numbers)
            .saturating_add(self.table.csv_bytes)
    }
}

/// Bytes of one more view of the raw table.
pub(crate) fn view_bytes(schema: &Schema, size: SubmissionsSize) -> u64 {
    let codes = 4 * schema.stored().count() as u64;
    size.rows
        .saturating_mul(codes)
        .saturating_add(size.text_bytes)
}

/// Bytes of the combinations of the rows of persons that are decided together; 0 if each row is a person.
pub(crate) fn combination_bytes(schema: &Schema, size: SubmissionsSize) -> u64 {
    match schema.subject() {
        Some(_) => pais_verify::combination_bytes(size.rows),
        None => 0,
    }
}

/// What releases disclose together.
pub(crate) enum CompositionResult {
    Decided(Composition),
    /// It cannot be decided.
    Undecided(VerifyError),
}

/// Decides releases over the rows of `submissions`, which are those of `raw`, in its order, in each of the views. The finding is that of a view in which a model does not hold, or else the worst of all.
///
/// # Errors
/// If stored data is damaged or the work was stopped.
pub(crate) fn decide(
    parts: Vec<StoredParts>,
    views: &[Schema],
    mut raw: Table,
    submissions: &[SubmissionRows],
    work: &TableWork,
) -> Result<CompositionResult, WorkError> {
    let known = known(parts, &starts(submissions))?;
    let releases: Vec<&KnownRelease> = known.iter().collect();
    let mut worst: Option<Composition> = None;
    for (place, view) in views.iter().enumerate() {
        let rows = if place + 1 < views.len() {
            raw.clone()
        } else {
            std::mem::take(&mut raw)
        };
        let shown = RawTable::new(view, rows);
        let found = match shown.compose(&releases, work.cancellation()) {
            Err(VerifyError::UnknownSource) => return Err(damaged().into()),
            Err(error) => return Ok(CompositionResult::Undecided(error)),
            Ok(found) => found,
        };
        let found = match worst {
            Some(worst) => worst.or_worse(found),
            None => found,
        };
        if !found.holds {
            return Ok(CompositionResult::Decided(found));
        }
        worst = Some(found);
    }
    let worst = worst.ok_or_else(damaged)?;
    Ok(CompositionResult::Decided(worst))
}

fn damaged() -> StoreError {
    StoreError::Damaged("a release")
}

/// The first row of each submission.
pub(crate) fn starts(submissions: &[SubmissionRows]) -> BTreeMap<SubmissionId, u64> {
    let mut start = 0;
    let starts = submissions.iter().map(|submission| {
        let first = start;
        start += submission.rows;
        (submission.id, first)
    });
    starts.collect()
}

/// Releases that are ready to be decided together, over raw rows that begin at `starts`.
pub(crate) fn known(
    parts: Vec<StoredParts>,
    starts: &BTreeMap<SubmissionId, u64>,
) -> Result<Vec<KnownRelease>, StoreError> {
    let known = parts.into_iter().map(|part| known_release(part, starts));
    known.collect()
}

fn known_release(
    part: StoredParts,
    starts: &BTreeMap<SubmissionId, u64>,
) -> Result<KnownRelease, StoreError> {
    let StoredParts {
        release,
        codebook,
        table,
        chunks,
        sources,
    } = part;
    let table = release_packing::unpack(&table, chunks)?;
    let names = |role: ColumnRole| {
        let columns = codebook.columns.iter();
        let columns = columns.filter(move |column| column.role == role);
        columns.map(|column| column.name.as_str().into()).collect()
    };
    let privacy: PrivacyDefinition =
        serde_json::from_value(release.privacy).map_err(|_| damaged())?;
    let missing = release.missing_sensitive;
    let model = privacy.parse(missing).map_err(|_| damaged())?;
    let recoded = match (&*table.name, release.cut) {
        (ANATOMIZED_TABLE, _) => Recoded::Anatomized,
        (_, Some(_)) => Recoded::OneCut,
        (_, None) => Recoded::Overlapping,
    };
    Ok(KnownRelease {
        source_rows: source_rows(&sources, starts),
        quasi_identifiers: names(ColumnRole::QuasiIdentifier),
        sensitive: names(ColumnRole::Sensitive),
        model,
        recoded,
        table,
    })
}

/// The raw rows of a release, numbered over other submissions than those of its job.
pub(crate) fn source_rows(sources: &SourceRows, starts: &BTreeMap<SubmissionId, u64>) -> Vec<u32> {
    // Where the rows of each submission of the job end, and by how much their numbers change.
    let mut end = 0;
    let moves: Vec<(u64, Option<i64>)> = sources
        .submissions
        .iter()
        .map(|submission| {
            let first = end;
            end += submission.rows;
            let start = starts.get(&submission.id);
            (end, start.map(|&start| start as i64 - first as i64))
        })
        .collect();
    let renumbered = sources.rows.iter().map(|&row| {
        let submission = moves.partition_point(|&(end, _)| end <= u64::from(row));
        let by = moves.get(submission).and_then(|&(_, by)| by);
        let moved = by.and_then(|by| u32::try_from(i64::from(row) + by).ok());
        moved.unwrap_or(NOWHERE)
    });
    renumbered.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pais_core::definition::SubmissionId;
    use pais_verify::NOWHERE;
    use uuid::Uuid;

    use super::{SourceRows, SubmissionRows, source_rows};

    #[test]
    fn rows_are_numbered_over_the_submissions_of_all_releases() {
        let id = |number| SubmissionId(Uuid::from_u128(number));
        let rows = |number, rows| SubmissionRows {
            id: id(number),
            rows,
        };
        let sources = SourceRows {
            submissions: vec![rows(2, 3), rows(4, 2)],
            rows: vec![4, 0, 2, 3],
        };
        let starts = BTreeMap::from([(id(1), 0), (id(2), 10), (id(4), 20)]);
        assert_eq!(source_rows(&sources, &starts), [21, 10, 12, 20]);
        let starts = BTreeMap::from([(id(2), 0)]);
        assert_eq!(source_rows(&sources, &starts), [NOWHERE, 0, 2, NOWHERE]);
    }
}
