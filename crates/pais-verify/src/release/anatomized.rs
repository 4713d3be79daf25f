//! An anatomized release compared with the raw table.

use pais_core::cancellation::Cancellation;
use pais_core::definition::{ColumnRole, Job};
use pais_core::model::{GroupModel, PrivacyModel};
use pais_core::reimport;
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::{Column, GROUP_COLUMN, ReleasedTable, Subjects, Table, UnchangedRisk};

use super::subjects::ReleasedSubjects;
use super::{FoundRecoding, RawFinding, ReleaseError, ReleaseVerification, unchanged, warnings};
use crate::anatomy_assignment::{SensitiveTable, assign_anatomy};
use crate::partition::verify_groups;
use crate::{
    CountedTable, ModelColumns, OriginalColumn, PrivacyFinding, RawSensitive, join_sensitive,
};

/// Finds which raw row is in which group, and decides the model over the groups.
pub(super) fn verify(
    schema: &Schema,
    job: &Job,
    model: GroupModel,
    qit: &ReleasedTable,
    counts: &[ReleasedTable],
    raw: &Table,
    cancellation: &Cancellation,
) -> Result<ReleaseVerification, ReleaseError> {
    let columns: Vec<(&SchemaColumn, Column)> = schema
        .stored()
        .zip(&raw.columns)
        .map(|(spec, column)| (spec, reimport::rewritten(spec, column.clone())))
        .collect();
    let (sensitive, others): (Vec<_>, Vec<_>) = columns
        .iter()
        .map(|(spec, column)| (*spec, column))
        .partition(|(spec, _)| spec.role() == ColumnRole::Sensitive);
    let exact: Vec<OriginalColumn> = others
        .iter()
        .map(|(spec, cells)| OriginalColumn {
            name: spec.name(),
            cells,
        })
        .filter(|it| qit.column(it.name).is_some())
        .collect();
    let tables = counts.iter().zip(&sensitive);
    let tables: Vec<SensitiveTable> = tables
        .map(|(counts, (spec, raw))| SensitiveTable {
            counts,
            name: spec.name(),
            raw,
        })
        .collect();
    let assignment = assign_anatomy(qit, &exact, &tables, raw.rows, cancellation)
        .map_err(ReleaseError::of_anatomy)?;
    let recoding = FoundRecoding::Anatomized {
        counts_match: assignment.source_rows.is_some(),
    };
    let model_of_job = PrivacyModel::Groups(model.clone());
    let mut found = ReleaseVerification {
        warnings: warnings(schema, &model_of_job, None, Some(raw)),
        model: model_of_job,
        privacy: None,
        subjects: None,
        undecided: None,
        unchanged: UnchangedRisk::default(),
        raw: Some(RawFinding {
            rows: raw.rows as u64,
            made_up: assignment.made_up,
            lost: assignment.lost,
            may_be_lost: job.suppression_limit.floor_of(raw.rows as u64),
            recoding,
        }),
    };
    let mut counted = None;
    if let Some(source_rows) = &assignment.source_rows {
        let cells = sensitive.iter();
        let cells: Vec<_> = cells
            .map(|&(spec, column)| RawSensitive { spec, column })
            .collect();
        let joined = join_sensitive(qit, &cells, source_rows).map_err(ReleaseError::malformed)?;
        let by = [GROUP_COLUMN.into()];
        let names = schema.names(ColumnRole::Sensitive);
        let columns_of_model = ModelColumns {
            quasi_identifiers: &by,
            sensitive: &names,
        };
        let decide = |counted: CountedTable| {
            let found = verify_groups(counted, columns_of_model, &model, cancellation)?;
            Ok::<_, ReleaseError>(PrivacyFinding::Groups(found))
        };
        let persons = schema.subject().and_then(|position| columns.get(position));
        match persons {
            Some((_, column)) => {
                let subjects = Subjects::new(column.clone());
                let alike = &assignment.interchangeable;
                let k = model.k.get();
                let persons = ReleasedSubjects::new(subjects.as_ref(), source_rows, alike, k);
                let decided = persons.decide(&joined, k, decide)?;
                counted = decided.subjects.is_some().then_some(persons);
                found.set_subjects(decided);
            }
            None => found.privacy = Some(decide((&joined).into())?),
        }
    }
    found.unchanged = unchanged(schema, qit, counted.as_ref(), cancellation)?;
    Ok(found)
}
