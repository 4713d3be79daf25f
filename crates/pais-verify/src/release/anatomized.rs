//! An anatomized release compared with the raw table.

use pais_core::cancellation::Cancellation;
use pais_core::definition::ColumnRole;
use pais_core::model::GroupModel;
use pais_core::reimport;
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::{Column, GROUP_COLUMN, ReleasedTable, Subjects, Table};

use super::subjects::ReleasedSubjects;
use super::{FoundRecoding, RawFinding, ReleaseError};
use crate::{GroupVerification, RawSensitive, assign_anatomy, join_sensitive, verify_groups};

/// What was found in an anatomized release.
pub(super) struct FoundAnatomy {
    /// `None` where it is not known which raw row is in which group.
    pub(super) verification: Option<GroupVerification>,
    /// Number of persons, where K was asked of them.
    pub(super) subjects: Option<u64>,
    pub(super) raw: RawFinding,
}

/// Finds which raw row is in which group, and decides the model over the groups. Of the raw rows,
/// `allowed` may be left out.
pub(super) fn verify(
    schema: &Schema,
    model: &GroupModel,
    (qit, counts): (&ReleasedTable, &[ReleasedTable]),
    (raw, allowed): (&Table, u64),
    cancellation: &Cancellation,
) -> Result<FoundAnatomy, ReleaseError> {
    let malformed = |error: &dyn std::error::Error| ReleaseError::Malformed(error.to_string());
    let columns: Vec<(&SchemaColumn, Column)> = schema
        .stored()
        .zip(&raw.columns)
        .map(|(spec, column)| (spec, reimport::rewritten(spec, column.clone())))
        .collect();
    let is_in_qit = |name: &str| qit.columns.iter().any(|column| *column.name == *name);
    let is_sensitive = |spec: &SchemaColumn| spec.role() == ColumnRole::Sensitive;
    let exact: Vec<(&str, &Column)> = columns
        .iter()
        .filter(|(spec, _)| !is_sensitive(spec) && is_in_qit(spec.name()))
        .map(|(spec, column)| (spec.name(), column))
        .collect();
    let sensitive: Vec<_> = columns
        .iter()
        .filter(|(spec, _)| is_sensitive(spec))
        .collect();
    let counted: Vec<_> = counts
        .iter()
        .zip(&sensitive)
        .map(|(table, (spec, column))| (table, spec.name(), column))
        .collect();
    let assignment =
        assign_anatomy(qit, &exact, &counted, raw.rows).map_err(|error| malformed(&error))?;
    let mut subjects = None;
    let verification = match &assignment.source_rows {
        None => None,
        Some(source_rows) => {
            let cells: Vec<_> = sensitive
                .iter()
                .map(|(spec, column)| RawSensitive { spec, column })
                .collect();
            let joined =
                join_sensitive(qit, &cells, source_rows).map_err(|error| malformed(&error))?;
            let persons = schema.subject().and_then(|position| columns.get(position));
            let persons = persons.map(|(_, column)| {
                ReleasedSubjects::new(Subjects::new(column.clone()).as_ref(), source_rows)
            });
            subjects = persons.as_ref().map(ReleasedSubjects::len);
            let counted = match &persons {
                Some(persons) => persons.counted(&joined),
                None => (&joined).into(),
            };
            let by = [GROUP_COLUMN.into()];
            let names = schema.names(ColumnRole::Sensitive);
            Some(verify_groups(counted, &by, &names, model, cancellation)?)
        }
    };
    let raw = RawFinding {
        rows: raw.rows as u64,
        made_up: assignment.made_up,
        lost: assignment.lost,
        may_be_lost: allowed,
        recoding: FoundRecoding::Anatomized {
            counts_match: assignment.source_rows.is_some(),
        },
    };
    Ok(FoundAnatomy {
        verification,
        subjects,
        raw,
    })
}
