//! The tables that a composition is decided on: those of its releases and, for sensitive values and
//! persons, the raw one.

use std::collections::BTreeMap;

use pais_anonymize::Observer;
use pais_core::codebook::Codebook;
use pais_core::definition::{ColumnRole, PrivacyDefinition, SubmissionId};
use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::table::{Column, Form, ReleasedColumn, ReleasedTable, Subjects, Table};
use pais_verify::{ComposedRelease, Composition, NOWHERE, RawRows, Recoded, VerifyError, compose};

use crate::db::StoreError;
use crate::db::releases::{SourceRows, StoredRelease, StoredTable};
use crate::db::submissions::SubmissionRows;
use crate::engine::{WorkError, release_packing};

use super::table_work::TableWork;

/// The first table of an anatomized release.
pub(crate) const ANATOMIZED_TABLE: &str = "qit";

/// A release as it is stored.
pub(crate) struct StoredParts {
    pub(crate) release: StoredRelease,
    pub(crate) table: StoredTable,
    pub(crate) chunks: Vec<Vec<u8>>,
    pub(crate) sources: SourceRows,
}

/// A release that is ready to be decided with others.
struct ReadyRelease {
    table: ReleasedTable,
    source_rows: Vec<u32>,
    quasi_identifiers: Vec<Box<str>>,
    sensitive: Vec<Box<str>>,
    model: PrivacyModel,
    recoded: Recoded,
}

/// Decides releases over the rows of `submissions`, which are those of `raw`, in its order.
///
/// # Errors
/// What is stored is damaged; the work was stopped. `Ok(Err(_))` where it cannot be decided.
pub(crate) fn decide(
    parts: Vec<StoredParts>,
    schema: &Schema,
    raw: Table,
    submissions: &[SubmissionRows],
    work: &TableWork,
) -> Result<Result<Composition, VerifyError>, WorkError> {
    let starts = starts(submissions);
    let ready = parts.into_iter().map(|part| ready(part, schema, &starts));
    let ready: Vec<ReadyRelease> = ready.collect::<Result<_, _>>()?;
    let rows = raw.rows;
    let raw = raw.canonical(schema);
    let subjects = schema.subject().and_then(|column| raw.columns.get(column));
    let subjects = subjects.cloned().and_then(Subjects::new);
    let sensitive = sensitive_columns(schema, raw.columns, &ready);
    let composed: Vec<ComposedRelease> = ready
        .iter()
        .map(|release| ComposedRelease {
            table: &release.table,
            source_rows: &release.source_rows,
            quasi_identifiers: &release.quasi_identifiers,
            sensitive: &release.sensitive,
            model: &release.model,
            recoded: release.recoded,
        })
        .collect();
    let raw = RawRows {
        rows,
        sensitive: &sensitive,
        subjects: subjects.as_ref().map(Subjects::of_row),
    };
    match compose(&composed, raw, work.cancellation()) {
        Err(VerifyError::UnknownSource) => Err(damaged().into()),
        found => Ok(found),
    }
}

fn damaged() -> StoreError {
    StoreError::Damaged("a release")
}

/// The first row of each submission.
fn starts(submissions: &[SubmissionRows]) -> BTreeMap<SubmissionId, u64> {
    let mut start = 0;
    let starts = submissions.iter().map(|submission| {
        let first = start;
        start += submission.rows;
        (submission.id, first)
    });
    starts.collect()
}

fn ready(
    part: StoredParts,
    schema: &Schema,
    starts: &BTreeMap<SubmissionId, u64>,
) -> Result<ReadyRelease, StoreError> {
    let StoredParts {
        release,
        table,
        chunks,
        sources,
    } = part;
    let table = release_packing::unpack(&table, chunks)?;
    let codebook = release.codebook.ok_or_else(damaged)?;
    let codebook: Codebook = serde_json::from_value(codebook).map_err(|_| damaged())?;
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
    Ok(ReadyRelease {
        source_rows: source_rows(&sources, starts),
        quasi_identifiers: names(ColumnRole::QuasiIdentifier),
        sensitive: names(ColumnRole::Sensitive),
        model: canonical(model, schema),
        recoded,
        table,
    })
}

/// The raw rows of a release, numbered over other submissions than those of its job.
fn source_rows(sources: &SourceRows, starts: &BTreeMap<SubmissionId, u64>) -> Vec<u32> {
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

/// The model with its listed values in the form of the cells.
fn canonical(mut model: PrivacyModel, schema: &Schema) -> PrivacyModel {
    if let PrivacyModel::Lkc(lkc) = &mut model {
        for (name, values) in lkc.sensitive_values.iter_mut().flatten() {
            let spec = schema.stored().find(|spec| *spec.name() == **name);
            for (value, spec) in values.iter_mut().zip(std::iter::repeat(spec)) {
                if let Some(spec) = spec {
                    *value = spec.rounded(&spec.canonical(value)).into_owned();
                }
            }
        }
    }
    model
}

/// The raw columns that are sensitive in a release.
fn sensitive_columns(
    schema: &Schema,
    columns: Vec<Column>,
    releases: &[ReadyRelease],
) -> Vec<ReleasedColumn> {
    let is_sensitive = |name: &str| {
        let mut named = releases.iter().flat_map(|release| &release.sensitive);
        named.any(|sensitive| **sensitive == *name)
    };
    let stored = schema.stored().zip(columns);
    stored
        .filter(|(spec, _)| is_sensitive(spec.name()))
        .map(|(spec, mut column)| {
            // What a release shows, and so what an adversary infers.
            column.round(spec);
            ReleasedColumn {
                name: spec.name().into(),
                form: Form::untouched(spec),
                column,
                missing: spec.missing().to_vec(),
            }
        })
        .collect()
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
