//! Verifies a finished release as a whole: its model, and its truthfulness if the raw table is available. The
//! release may come from this project or from any other tool.

mod anatomized;
mod raw_comparison;
mod streamed;
#[cfg(test)]
mod streamed_tests;
#[cfg(test)]
mod subject_tests;
mod subjects;
#[cfg(test)]
mod tests;

use pais_core::cancellation::Cancellation;
use pais_core::cancellation::Stopped;
use pais_core::definition::{ColumnRole, Job, JobError, JobErrorKind, Output, Recoding};
use pais_core::model::{GroupModel, Lkc, PrivacyModel};
use pais_core::reimport;
use pais_core::schema::Schema;
use pais_core::table::{
    Column, EncodedTable, Persons, ReleasedTable, Subjects, Table, UnchangedColumn, UnchangedRisk,
    minimum_levels, row_warnings,
};
use pais_core::warning::{Warning, by_code};
use thiserror::Error;

use self::subjects::{ReleasedSubjects, SubjectsFinding};
use crate::assignment::assign;
use crate::model_columns::ModelColumns;
use crate::models::verify_model;
use crate::overlap::decide_overlaps;
use crate::{
    AnatomyError, CountedTable, Original, OriginalColumn, PrivacyFinding, TruthError, Verification,
    VerifyError,
};

pub use self::raw_comparison::{RawComparison, RawTexts};
pub use self::streamed::StreamedVerification;
pub use self::subjects::{Undecided, UndecidedReason};

/// The tables of a release, read by [`pais_core::reimport`].
#[derive(Clone, Debug)]
pub enum ReleaseTables {
    /// One table with generalized quasi-identifiers.
    Generalized(ReleasedTable),
    /// An anatomized release.
    Anatomized {
        /// The quasi-identifier table, with the column `group_id`.
        qit: ReleasedTable,
        /// The sensitive tables, in the order of the schema's sensitive columns.
        counts: Vec<ReleasedTable>,
    },
}

/// What was found in a release.
#[derive(Clone, Debug)]
pub struct ReleaseVerification {
    /// The model that was verified, with its parameters in range.
    pub model: PrivacyModel,
    /// Whether the release meets the model; `None` where it cannot be decided, because the rows
    /// of an anatomized release cannot be assigned to raw rows.
    pub privacy: Option<PrivacyFinding>,
    /// The persons of the released rows, where K was asked of persons: the schema has a
    /// subject column, and the raw table was given.
    pub subjects: Option<FoundSubjects>,
    /// A condition that could not be decided.
    pub undecided: Option<Undecided>,
    /// The comparison with the raw table, where it was given.
    pub raw: Option<RawFinding>,
    /// What the columns that are released unchanged say by themselves of the rows, or of the persons if these are in
    /// `subjects`.
    pub unchanged: UnchangedRisk,
    /// Warnings about what is not refused: bounds without effect, and columns that single out rows.
    pub warnings: Vec<Warning>,
}

/// The persons of released rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundSubjects {
    /// Their number.
    pub count: u64,
    /// Whether they are the same for each possible assignment of raw rows. Otherwise released rows fit raw
    /// rows of several persons, because rows are left out or labels overlap, and these are the persons of one
    /// assignment.
    pub are_known: bool,
}

/// The comparison of a release with the raw table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFinding {
    /// Rows of the raw table.
    pub rows: u64,
    /// Released rows that are not the generalization of a raw row of their own.
    pub made_up: u64,
    /// Raw rows without a released row.
    pub lost: u64,
    /// Raw rows that the job allows to be suppressed.
    pub may_be_lost: u64,
    /// How the release recodes its columns.
    pub recoding: FoundRecoding,
}

/// How a release recodes its columns, as found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundRecoding {
    /// The labels of each column are one cut.
    Global,
    /// Labels of a column overlap.
    Local,
    /// Exact quasi-identifiers; whether the sensitive tables count the records of each group.
    Anatomized {
        /// Whether they do.
        counts_match: bool,
    },
}

/// Why a release cannot be verified.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReleaseError {
    /// The job is invalid, or does not fit the schema or the form of the release.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The raw table is needed to verify this release.
    #[error("an anatomized release is verified against the raw table; provide it")]
    NeedsRaw,
    /// The tables are malformed, or do not fit the schema.
    #[error("{0}")]
    Malformed(String),
    /// The tables can be read and are no anatomized release.
    #[error("{detail}")]
    NoAnatomy {
        /// Row of its table.
        row: usize,
        /// What is wrong.
        detail: String,
    },
    /// This can only be verified with all rows at once.
    #[error("{0} is verified with all rows in memory")]
    NeedsAllRows(&'static str),
    /// [`VerifyError::TooManyDistinctRows`].
    #[error("{}", VerifyError::TooManyDistinctRows { most: *most })]
    TooManyDistinctRows {
        /// `verification_bytes`.
        most: u64,
    },
    /// It was cancelled.
    #[error("the verification was cancelled")]
    Cancelled,
}

impl ReleaseError {
    fn malformed(error: impl std::error::Error) -> Self {
        Self::Malformed(error.to_string())
    }

    fn of_anatomy(error: AnatomyError) -> Self {
        if let AnatomyError::Truth(error) = error {
            return error.into();
        }
        match error.row() {
            Some(row) => Self::NoAnatomy {
                row,
                detail: error.to_string(),
            },
            None => Self::malformed(error),
        }
    }
}

impl ReleaseVerification {
    fn set_subjects(&mut self, found: SubjectsFinding) {
        self.privacy = Some(found.privacy);
        self.subjects = found.subjects;
        self.undecided = found.undecided;
    }

    /// Whether everything that was checked holds. What could not be decided does not hold.
    pub fn holds(&self) -> bool {
        self.undecided.is_none() && !self.fails()
    }

    /// Whether a decided check failed, or the model could not be checked. A release can neither fail nor hold: see
    /// [`Self::undecided`].
    pub fn fails(&self) -> bool {
        let private = self.privacy.as_ref().is_some_and(PrivacyFinding::holds);
        !private || self.raw.as_ref().is_some_and(|raw| !raw.holds())
    }
}

impl RawFinding {
    /// Whether every released row is true, no more rows are lost than may be, and sensitive
    /// tables count what their groups have.
    pub fn holds(&self) -> bool {
        let counts_match = match self.recoding {
            FoundRecoding::Global | FoundRecoding::Local => true,
            FoundRecoding::Anatomized { counts_match } => counts_match,
        };
        counts_match && self.made_up == 0 && self.lost <= self.may_be_lost
    }
}

/// Verifies a finished release against the privacy model of `job`, and against the raw table
/// where it is given.
///
/// Under a schema with a subject column K is required of persons, and only the raw table names them. Without
/// it, or where released rows fit raw rows of different persons and the model does not hold for those that are
/// assigned, rows are counted: a group of fewer than K rows fails, and if there is none,
/// [`ReleaseVerification::undecided`] says so.
///
/// ```
/// use pais_core::cancellation::Cancellation;
/// use pais_core::definition::{DatasetDefinition, Job, json};
/// use pais_core::model::Lkc;
/// use pais_io::read::csv;
/// use pais_core::reimport;
/// use pais_core::schema::{Schema, SchemaColumn};
/// use pais_verify::{ReleaseTables, verify_release};
///
/// let dataset: DatasetDefinition = json::parse(
///     br#"{"name": "a", "columns": [
///         {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]}]}"#,
/// )?;
/// let schema = Schema::inline(&dataset)?;
/// let job = Job::new(Lkc::k_anonymity(2)?);
///
/// let read_by = reimport::columns(&schema, &["age".to_owned()]);
/// let table = csv::read_table(&read_by, "age\n\"[0,50)\"\n\"[0,50)\"\n".as_bytes())?;
/// let table = reimport::released(&schema, &read_by, table, 2)?;
/// let raw = csv::read_table(&schema, "age\n21\n25\n".as_bytes())?;
///
/// let release = ReleaseTables::Generalized(table);
/// let found = verify_release(&schema, &job, &release, Some(raw), &Cancellation::new())?;
/// assert!(found.holds());
/// assert_eq!(found.raw.unwrap().made_up, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ReleaseError`]: what cannot be verified. A release that does not hold is a result, not an
/// error.
pub fn verify_release(
    schema: &Schema,
    job: &Job,
    release: &ReleaseTables,
    raw: Option<Table>,
    cancellation: &Cancellation,
) -> Result<ReleaseVerification, ReleaseError> {
    let schema = &*schema.with_roles(&job.roles)?;
    let made = raw
        .as_ref()
        .filter(|_| schema.has_made_hierarchies())
        .map(|raw| match release {
            ReleaseTables::Generalized(table) => schema.with_hierarchies_of(raw, table),
            ReleaseTables::Anatomized { .. } => schema.with_made_hierarchies(raw),
        });
    let made = made.transpose().map_err(ReleaseError::Malformed)?;
    let schema = made.as_ref().unwrap_or(schema);
    let raw = raw.map(|raw| raw.as_released(schema));
    match release {
        ReleaseTables::Generalized(table) => {
            let model = schema.privacy_model(job)?;
            let warnings = warnings(schema, &model, Some(table), raw.as_ref());
            let mut found = ReleaseVerification {
                model,
                privacy: None,
                subjects: None,
                undecided: None,
                raw: None,
                unchanged: UnchangedRisk::default(),
                warnings,
            };
            let mut counted = None;
            let model = (&found.model, job.recoding);
            match raw {
                Some(raw) if schema.subject().is_some() => {
                    let k = model.0.k().get();
                    let (raw, subjects) = compare(schema, job, table, raw, k, cancellation)?;
                    let by = |table: CountedTable| decide(schema, model, table, cancellation);
                    let decided = subjects.decide(table, k, by)?;
                    let is_counted = decided.subjects.is_some();
                    counted = is_counted.then_some(subjects);
                    found.set_subjects(decided);
                    found.raw = Some(raw);
                }
                Some(raw) => {
                    found.privacy = Some(decide(schema, model, table.into(), cancellation)?);
                    let k = model.0.k().get();
                    found.raw = Some(compare(schema, job, table, raw, k, cancellation)?.0);
                }
                None => {
                    let privacy = decide(schema, model, table.into(), cancellation)?;
                    found.undecided = Undecided::without_raw(schema, model.0, &privacy);
                    found.privacy = Some(privacy);
                }
            }
            found.unchanged = unchanged(schema, table, counted.as_ref(), cancellation)?;
            Ok(found)
        }
        ReleaseTables::Anatomized { qit, counts } => {
            let model = groups_of(schema, job)?;
            let raw = raw.ok_or(ReleaseError::NeedsRaw)?;
            anatomized::verify(schema, job, model, qit, counts, &raw, cancellation)
        }
    }
}

/// The model of a job as one of groups, which an anatomized release can meet.
fn groups_of(schema: &Schema, job: &Job) -> Result<GroupModel, JobError> {
    let anatomized = Job {
        output: Some(Output::Anatomized),
        ..job.clone()
    };
    match schema.privacy_model(&anatomized)? {
        PrivacyModel::Groups(model) => Ok(model),
        PrivacyModel::Lkc(_) | PrivacyModel::KmAnonymity(_) => Err(JobError::at(
            JobErrorKind::Unfit,
            "/privacy/model",
            "an anatomized release has groups and no cut: models of diversity can be verified on \
             it",
        )),
    }
}

fn decide(
    schema: &Schema,
    (model, recoding): (&PrivacyModel, Option<Recoding>),
    table: CountedTable,
    cancellation: &Cancellation,
) -> Result<PrivacyFinding, ReleaseError> {
    let names = schema.names(ColumnRole::QuasiIdentifier);
    let sensitive = schema.names(ColumnRole::Sensitive);
    let columns = ModelColumns {
        quasi_identifiers: &names,
        sensitive: &sensitive,
    };
    let (found, _) = verify_model(table, columns, model, cancellation)?;
    let is_local = recoding == Some(Recoding::Local) && table.subjects.is_none();
    match (model, found) {
        (PrivacyModel::Lkc(model), PrivacyFinding::Subsets(found)) if is_local && !found.holds => {
            let found = decide_overlapping(schema, model, table.table, found, cancellation)?;
            Ok(PrivacyFinding::Subsets(found))
        }
        (_, found) => Ok(found),
    }
}

/// The finding on a table with a group of equal labels that violates the model, decided by what raw qids match:
/// other labels may cover them too. `found` itself if that cannot be decided.
fn decide_overlapping(
    schema: &Schema,
    model: &Lkc,
    table: &ReleasedTable,
    found: Verification,
    cancellation: &Cancellation,
) -> Result<Verification, VerifyError> {
    let decided = match decide_overlaps(table, schema, model, cancellation) {
        Err(VerifyError::Stopped) => return Err(VerifyError::Stopped),
        Err(_) => return Ok(found),
        Ok(decided) => decided,
    };
    let bounds_some = found.greatest_bounded_confidence.is_some();
    let greatest = decided.found.greatest_bounded_confidence;
    Ok(Verification {
        holds: decided.found.holds,
        smallest_group: decided.found.smallest_group,
        greatest_bounded_confidence: bounds_some.then_some(greatest),
        violations: decided.violations.count,
        worst: decided.violations.worst,
        ..found
    })
}

/// Compares a generalized table with the raw one. Columns that the table leaves out are skipped. The
/// persons of its rows are known if the schema has a subject column.
fn compare(
    schema: &Schema,
    job: &Job,
    table: &ReleasedTable,
    raw: Table,
    k: u64,
    cancellation: &Cancellation,
) -> Result<(RawFinding, ReleasedSubjects), ReleaseError> {
    let raw = EncodedTable::new(schema, raw);
    let minimum_levels = minimum_levels(job, schema, &raw)?;
    let stored: Vec<_> = schema.stored().collect();
    let untouched: Vec<(&str, Column)> = raw
        .untouched
        .iter()
        .map(|it| (stored[it.position], &it.column))
        .filter(|(spec, _)| table.column(spec.name()).is_some())
        .map(|(spec, column)| (spec.name(), reimport::rewritten(spec, column.clone())))
        .collect();
    let mut original = Original::from_table(&raw, &stored)
        .ok_or_else(|| ReleaseError::Malformed("a raw column is not declared".into()))?;
    original.untouched = untouched
        .iter()
        .map(|(name, cells)| OriginalColumn { name, cells })
        .collect();
    for column in &mut original.quasi_identifiers {
        column.minimum_levels = minimum_levels.get(column.name);
    }
    for set in &mut original.sets {
        set.minimum_levels = minimum_levels.get(&set.column.name);
    }
    let found = assign(table, &original, cancellation)?;
    let finding = RawFinding {
        rows: raw.rows as u64,
        made_up: found.made_up,
        lost: found.lost,
        may_be_lost: job.suppression_limit.floor_of(raw.rows as u64),
        recoding: if found.one_cut {
            FoundRecoding::Global
        } else {
            FoundRecoding::Local
        },
    };
    let subjects = ReleasedSubjects::new(
        raw.subjects.as_deref(),
        &found.source_rows,
        &found.interchangeable,
        k,
    );
    Ok((finding, subjects))
}

/// What the unchanged columns of a release single out. Without the persons of its rows, which it does not name, rows
/// are counted.
fn unchanged(
    schema: &Schema,
    table: &ReleasedTable,
    subjects: Option<&ReleasedSubjects>,
    cancellation: &Cancellation,
) -> Result<UnchangedRisk, Stopped> {
    let persons = subjects.map_or(Persons::Rows(table.rows), ReleasedSubjects::persons);
    UnchangedRisk::of_released(schema, table, persons, cancellation)
}

/// What is worth knowing about the model and about the rows: those of the raw table, or else the
/// released ones.
fn warnings(
    schema: &Schema,
    model: &PrivacyModel,
    released: Option<&ReleasedTable>,
    raw: Option<&Table>,
) -> Vec<Warning> {
    let mut warnings = schema.model_warnings(model);
    let rows = raw.map(|raw| raw.rows).or(released.map(|it| it.rows));
    let subject = schema
        .subject()
        .zip(raw)
        .and_then(|(at, raw)| raw.columns.get(at));
    let subjects = subject.and_then(|column| Subjects::new(column.clone()));
    let persons = Persons::new(subjects.as_ref(), rows.unwrap_or(0));
    let stored = schema.stored().enumerate();
    let unchanged = stored.filter(|(_, spec)| spec.is_unchanged());
    let columns = unchanged.filter_map(|(position, spec)| {
        let column = match raw {
            Some(raw) => raw.columns.get(position)?,
            None => &released?.column(spec.name())?.column,
        };
        Some(UnchangedColumn::new(spec, column, persons))
    });
    warnings.extend(row_warnings(model, columns));
    by_code(warnings)
}

impl From<Stopped> for ReleaseError {
    fn from(_: Stopped) -> Self {
        Self::Cancelled
    }
}

impl From<TruthError> for ReleaseError {
    fn from(error: TruthError) -> Self {
        match error {
            TruthError::Stopped => Self::Cancelled,
            error => Self::malformed(error),
        }
    }
}

impl From<VerifyError> for ReleaseError {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Stopped => Self::Cancelled,
            VerifyError::TooManyDistinctRows { most } => Self::TooManyDistinctRows { most },
            error => Self::malformed(error),
        }
    }
}
