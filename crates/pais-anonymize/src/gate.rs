//! The gate: the only way from a method's tables to a release.
//!
//! This is the only module that calls the verifier, and the only one that makes a
//! [`VerifiedRelease`]. It decides and does not measure.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use pais_core::cancellation::Cancellation;
use pais_core::definition::ColumnRole;
use pais_core::parallel;
use pais_core::reimport::read_back_error;
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::{Domain, GROUP_COLUMN, QuasiIdentifier, ReleasedTable, UnchangedColumn};
use pais_core::taxonomy::MinimumLevels;
use pais_core::warning::Warning;
use pais_measure::{ReleaseRecoding, Report};
use pais_verify::{
    Classes, CountedTable, ModelColumns, Original, OriginalColumn, OriginalQuasiIdentifier,
    PrivacyFinding, RawSensitive, SubjectGroups, TruthError, VerifyError, subject_groups,
};

use crate::error::RunError;
use crate::method::{Candidate, Claim};
use crate::observer::{Observer, Phase};
use crate::outcome_warnings::release_warnings;
use crate::prepared::PreparedTable;
use crate::redrawn::Redrawn;

/// A release that the verifier accepted.
#[derive(Clone, Debug)]
pub struct VerifiedRelease {
    tables: Vec<ReleasedTable>,
    source_rows: Vec<u32>,
    verification: PrivacyFinding,
    report: Report,
    schema: Arc<Schema>,
    /// The step after which the tables are, where the method has steps.
    pub step: Option<u32>,
    /// Rows released.
    pub rows: u64,
    /// Rows left out.
    pub suppressed_rows: u64,
    /// Column to the labels of its cut, with global recoding.
    pub cut: Option<BTreeMap<String, Vec<String>>>,
    /// What the holder should know about it.
    pub warnings: Vec<Warning>,
}

impl VerifiedRelease {
    /// The released tables: `data`; or `qit` and one `st_<column>` for each sensitive column.
    pub fn tables(&self) -> &[ReleasedTable] {
        &self.tables
    }

    /// What the verifier found.
    pub fn verification(&self) -> &PrivacyFinding {
        &self.verification
    }

    /// The utility that the tables still have, and the risk that remains.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The schema of the release: with the roles of the job, and with the hierarchies that are made
    /// from the values of its rows.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The raw row of each row of the first table, from 0 in the order of the raw table. It leads
    /// back to raw rows, and is as secret as they are.
    pub fn source_rows(&self) -> &[u32] {
        &self.source_rows
    }
}

/// Tables that the verifier accepted; a release once they are measured.
pub struct VerifiedTables {
    candidate: Candidate,
    redrawn: Redrawn,
    finding: PrivacyFinding,
    /// The classes of its quasi-identifiers, if the verifier has found them.
    classes: Option<Classes<'static>>,
    persons: Option<SubjectGroups>,
    step: Option<u32>,
    pub(crate) suppressed_rows: u64,
    warnings: Vec<Warning>,
}

impl VerifiedTables {
    /// See [`VerifiedRelease::tables`].
    pub fn tables(&self) -> &[ReleasedTable] {
        &self.candidate.tables
    }

    /// What the verifier found.
    pub fn verification(&self) -> &PrivacyFinding {
        &self.finding
    }

    /// The raw row of each row of the first table. It leads back to raw rows, and is as secret as they
    /// are.
    pub fn source_rows(&self) -> &[u32] {
        &self.candidate.rows
    }

    /// Column to the labels of its cut, with global recoding.
    pub fn cut(&self) -> Option<&BTreeMap<String, Vec<String>>> {
        self.candidate.cut.as_ref()
    }

    /// The schema of the release; see [`VerifiedRelease::schema`].
    pub fn schema(&self) -> &Schema {
        &self.redrawn.schema
    }

    /// The tables with what their method claims.
    pub(crate) fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    /// Their made hierarchies.
    pub(crate) fn redrawn(&self) -> &Redrawn {
        &self.redrawn
    }

    /// The classes of its quasi-identifiers, where the verifier has found them.
    pub(crate) fn classes(&self) -> Option<&Classes<'static>> {
        self.classes.as_ref()
    }

    /// The persons of the groups, where the dataset has a subject column.
    pub(crate) fn persons(&self) -> Option<&SubjectGroups> {
        self.persons.as_ref()
    }

    /// The release, with the report that [`crate::AnonymizationRun::measure`] has made of it.
    pub fn with_report(self, report: Report) -> VerifiedRelease {
        let candidate = self.candidate;
        VerifiedRelease {
            step: self.step,
            rows: candidate.rows.len() as u64,
            suppressed_rows: self.suppressed_rows,
            warnings: self.warnings,
            schema: self.redrawn.schema,
            tables: candidate.tables,
            source_rows: candidate.rows,
            cut: candidate.cut,
            verification: self.finding,
            report,
        }
    }
}

/// Readers get the tables as they are, the tables meet the model, every row is a raw row of its
/// own, labels cover their raw values, and the recoding is the claimed one. The persons of the
/// groups are returned too if the dataset has a subject column.
///
/// # Errors
/// [`RunError::NotVerified`] for tables that the verifier refuses, [`RunError::Cancelled`].
pub(crate) fn admit(
    input: &PreparedTable,
    candidate: Candidate,
    redrawn: Redrawn,
    step: Option<u32>,
    observer: &dyn Observer,
) -> Result<VerifiedTables, RunError> {
    observer.check()?;
    observer.progress(Phase::Verifying, 0.3);
    let (table, counts) = candidate
        .tables
        .split_first()
        .ok_or_else(|| RunError::not_verified("there is no table"))?;
    for table in &candidate.tables {
        observer.check()?;
        if let Some(error) = read_back_error(&redrawn.schema, table) {
            return Err(RunError::not_verified(error));
        }
    }
    let rows = candidate.rows.as_slice();
    let subjects = released_subjects(input, rows)?;
    let recoding = candidate.claim.recoding;
    let (joined, names) = if recoding == ReleaseRecoding::Anatomized {
        let sensitive: Vec<_> = raw_sensitive(input).collect();
        let joined =
            pais_verify::join_sensitive(table, &sensitive, rows).map_err(RunError::not_verified)?;
        (Some(joined), vec![GROUP_COLUMN.into()])
    } else {
        (None, input.names(ColumnRole::QuasiIdentifier))
    };
    let counted = CountedTable {
        table: joined.as_ref().unwrap_or(table),
        subjects: subjects.as_deref(),
    };
    let sensitive = input.names(ColumnRole::Sensitive);
    let columns = ModelColumns {
        quasi_identifiers: &names,
        sensitive: &sensitive,
    };
    let claim = &candidate.claim;
    let (finding, classes) = decide(counted, columns, claim, observer.cancellation())?;
    let persons = match input.schema.subject() {
        Some(_) => {
            let cancellation = observer.cancellation();
            let found = subject_groups(counted, &names, &sensitive, cancellation);
            Some(found.map_err(refused)?)
        }
        None => None,
    };
    observer.progress(Phase::Verifying, 0.6);
    match recoding {
        ReleaseRecoding::Global => {
            check_truthful(input, &redrawn, table, rows)?;
            check_cuts(input, &redrawn, table, rows)?;
        }
        ReleaseRecoding::Local => check_truthful(input, &redrawn, table, rows)?,
        ReleaseRecoding::Anatomized => check_anatomy(input, table, counts, rows)?,
    }
    observer.check()?;
    observer.progress(Phase::Verifying, 0.7);
    let suppressed_rows = (input.table.rows - rows.len()) as u64;
    Ok(VerifiedTables {
        warnings: release_warnings(input, &redrawn.schema, &candidate.tables, rows),
        candidate,
        redrawn,
        finding,
        classes,
        persons,
        step,
        suppressed_rows,
    })
}

/// Readers get the labels of distinct values as they are, the labels cover the values, and each column
/// is one cut. `table` has a row for each row of the values.
///
/// # Errors
/// As [`admit`].
pub(crate) fn check_labels(
    input: &PreparedTable,
    table: &ReleasedTable,
    observer: &dyn Observer,
) -> Result<(), RunError> {
    if let Some(error) = read_back_error(&input.schema, table) {
        return Err(RunError::not_verified(error));
    }
    let redrawn = Redrawn::as_searched(input);
    let rows: Vec<u32> = (0..input.table.rows as u32).collect();
    check_truthful(input, &redrawn, table, &rows)?;
    check_cuts(input, &redrawn, table, &rows)?;
    Ok(observer.check()?)
}

/// The person of each released row; `None` where each row is a person of its own.
fn released_subjects(input: &PreparedTable, rows: &[u32]) -> Result<Option<Vec<u32>>, RunError> {
    let Some(subjects) = &input.table.subjects else {
        return Ok(None);
    };
    let known = |&row: &u32| (row as usize) < subjects.of_row().len();
    if rows.iter().all(known) {
        Ok(Some(subjects.select(rows)))
    } else {
        Err(RunError::not_verified("a row comes from no raw row"))
    }
}

/// Decides the model over the named columns; with their classes, where it was decided on them.
fn decide(
    table: CountedTable,
    columns: ModelColumns,
    claim: &Claim,
    cancellation: &Cancellation,
) -> Result<(PrivacyFinding, Option<Classes<'static>>), RunError> {
    let model = match claim.recoding {
        ReleaseRecoding::Global => Cow::Borrowed(&claim.model),
        ReleaseRecoding::Local | ReleaseRecoding::Anatomized => {
            Cow::Owned(pais_verify::by_groups(&claim.model))
        }
    };
    let found = pais_verify::verify_model(table, columns, &model, cancellation);
    let (found, classes) = found.map_err(refused)?;
    if found.holds() {
        Ok((found, classes))
    } else {
        Err(RunError::not_verified("it does not meet the privacy model"))
    }
}

fn refused(error: VerifyError) -> RunError {
    match error {
        VerifyError::Stopped => RunError::Cancelled,
        error => RunError::not_verified(error),
    }
}

fn check_truthful(
    input: &PreparedTable,
    redrawn: &Redrawn,
    table: &ReleasedTable,
    rows: &[u32],
) -> Result<(), RunError> {
    let columns: Vec<_> = input.schema.stored().collect();
    let original = original(input, redrawn, &columns)
        .ok_or_else(|| RunError::not_verified("a column has no name"))?;
    let suppressed = (input.table.rows - rows.len()) as u64;
    let checked =
        pais_verify::check_truthful(table, &original, rows, suppressed, &input.cancellation);
    checked.map_err(untrue)
}

fn untrue(error: TruthError) -> RunError {
    match error {
        TruthError::Stopped => RunError::Cancelled,
        error => RunError::not_verified(error),
    }
}

/// The raw table, with the levels that the job requires of its values.
fn original<'a>(
    input: &'a PreparedTable,
    redrawn: &'a Redrawn,
    stored: &'a [&SchemaColumn],
) -> Option<Original<'a>> {
    let mut original = Original::from_table(&input.table, stored)?;
    let columns = &input.table.quasi_identifiers;
    for (column, original) in columns.iter().zip(&mut original.quasi_identifiers) {
        let raw = redrawn.raw(input, column);
        original.domain = &raw.domain;
        original.codes = raw.codes.borrowed();
        original.minimum_levels = redrawn.minimum_levels(input, &raw.name);
    }
    for set in &mut original.sets {
        set.column = redrawn.raw_set(set.column);
        set.minimum_levels = redrawn.minimum_levels(input, &set.column.name);
    }
    Some(original)
}

/// Each relational column is one cut.
fn check_cuts(
    input: &PreparedTable,
    redrawn: &Redrawn,
    table: &ReleasedTable,
    rows: &[u32],
) -> Result<(), RunError> {
    let stored: Vec<_> = input.schema.stored().collect();
    let is_cut = |column: &QuasiIdentifier| {
        input.cancellation.check()?;
        let released = table
            .column(&column.name)
            .ok_or_else(|| RunError::not_verified("a column is missing"))?;
        let raw = redrawn.raw(input, column);
        let Some(domain) = cut_domain(raw, redrawn.minimum_levels(input, &column.name)) else {
            return Ok(());
        };
        let spec = stored.get(column.position);
        let raw = OriginalQuasiIdentifier {
            name: &column.name,
            domain: &domain,
            declared_domain: spec.is_some_and(|spec| spec.domain().is_some()),
            codes: raw.codes.borrowed(),
            minimum_levels: None,
        };
        pais_verify::check_single_cut(released, &raw, rows).map_err(RunError::not_verified)
    };
    let checked = parallel::map(&input.table.quasi_identifiers, is_cut);
    checked.into_iter().collect()
}

/// The domain in which a column's labels are one cut: that of its pre-generalized values. `None` if values are
/// required to be the root: a cut with the root has no other label.
fn cut_domain<'a>(
    raw: &'a QuasiIdentifier,
    minimum_levels: Option<&MinimumLevels>,
) -> Option<Cow<'a, Domain>> {
    match (minimum_levels, &raw.domain) {
        (Some(minimum_levels), Domain::Taxonomy(tree)) => {
            let (pruned, _) = minimum_levels.pruned(tree)?;
            Some(Cow::Owned(Domain::Taxonomy(pruned.into())))
        }
        (_, domain) => Some(Cow::Borrowed(domain)),
    }
}

/// The quasi-identifier table has each raw row once, and each sensitive table counts the values
/// of its groups.
fn check_anatomy(
    input: &PreparedTable,
    qit: &ReleasedTable,
    counts: &[ReleasedTable],
    rows: &[u32],
) -> Result<(), RunError> {
    let stored: Vec<_> = input.schema.stored().collect();
    let columns = input.exact.iter().chain(&input.table.untouched);
    let open = columns.filter_map(|it| {
        let spec = stored.get(it.position)?;
        (spec.role() != ColumnRole::Sensitive).then_some(OriginalColumn {
            name: spec.name(),
            cells: &it.column,
        })
    });
    let original = Original {
        rows: input.table.rows,
        quasi_identifiers: Vec::new(),
        sets: Vec::new(),
        untouched: open.collect(),
    };
    let checked = pais_verify::check_truthful(qit, &original, rows, 0, &input.cancellation);
    checked.map_err(untrue)?;
    let groups = pais_verify::group_ids(qit).map_err(RunError::not_verified)?;
    for RawSensitive { spec, column } in raw_sensitive(input) {
        input.cancellation.check()?;
        let table = format!("st_{}", spec.name());
        let table = counts
            .iter()
            .find(|counts| *counts.name == *table)
            .ok_or_else(|| RunError::not_verified("a sensitive table is missing"))?;
        pais_verify::check_counts(table, spec.name(), column, &groups, rows)
            .map_err(RunError::not_verified)?;
    }
    Ok(())
}

/// The raw sensitive columns.
fn raw_sensitive(input: &PreparedTable) -> impl Iterator<Item = RawSensitive<'_>> {
    let columns = UnchangedColumn::pairs(&input.schema, &input.table);
    let sensitive = columns.filter(|(spec, _)| spec.role() == ColumnRole::Sensitive);
    sensitive.map(|(spec, column)| RawSensitive { spec, column })
}

#[cfg(test)]
mod tests;
