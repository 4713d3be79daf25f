//! A job checked against a schema: everything that can be refused before a row is read.

use std::borrow::Cow;

use pais_core::definition::json::escape;
use pais_core::definition::{Job, JobError, JobErrorKind, Output};
use pais_core::schema::Schema;
use pais_measure::classification_bytes;

use crate::job_checks::first_set;
use crate::memory::{ANATOMIZED_TEXT_COPIES, TEXT_COPIES, table_codes};
use crate::method::Method;
use crate::methods;

/// Searches of a sweep that run at a time: while one has no work to share among the threads, the other has. A
/// sweep makes no release; the second search uses the memory that a release would need.
pub(crate) const PARALLEL_SEARCHES: usize = 2;

/// Number of copies of the distinct text in memory if a table is only read and profiled: its text, and the same
/// text in lower case. Measured: 2.0 copies.
const READ_TEXT_COPIES: u64 = 2;

/// A job that fits a schema, with the method that runs it.
///
/// ```
/// use pais_anonymize::JobPlan;
/// use pais_core::definition::{ColumnDefinition, Job, JobErrorKind, Output};
/// use pais_core::model::Lkc;
/// use pais_core::schema::Schema;
///
/// let job = Job::new(Lkc::k_anonymity(5)?);
/// let schema = Schema::builder().column(ColumnDefinition::insensitive("age")).build()?;
/// let error = JobPlan::new(&schema, &job).err().unwrap();
/// assert_eq!(error.kind, JobErrorKind::Unfit);
/// assert_eq!(error.faults[0].pointer(), Some("/dataset_id"));
///
/// let schema = Schema::builder().column(ColumnDefinition::quasi_identifier("age")).build()?;
/// let plan = JobPlan::new(&schema, &job)?;
/// assert_eq!((plan.output(), plan.takes_sweeps()), (Output::Generalized, true));
/// assert!(plan.bytes_needed(&schema, 1_000, 5_000, 1)? > 6_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct JobPlan {
    pub(crate) method: Box<dyn Method>,
    output: Output,
    /// The schema under the job's roles, where it has any.
    schema: Option<Schema>,
    has_sets: bool,
}

impl JobPlan {
    /// Checks a job, whose parameters are single values, against a schema.
    ///
    /// # Errors
    /// Parameters that are missing or out of range, and a job that does not fit the columns; with
    /// a pointer into the job.
    pub fn new(schema: &Schema, job: &Job) -> Result<Self, JobError> {
        let schema = schema.with_roles(&job.roles)?;
        let model = schema.privacy_model(job)?;
        check_acknowledged(&schema, job)?;
        Ok(Self {
            method: methods::plan(&schema, job, &model)?,
            output: job.output(),
            has_sets: first_set(&schema).is_some(),
            schema: match schema {
                Cow::Owned(schema) => Some(schema),
                Cow::Borrowed(_) => None,
            },
        })
    }

    /// The schema under the job's roles; `declared` is that of the dataset.
    pub fn schema<'s>(&'s self, declared: &'s Schema) -> &'s Schema {
        self.schema.as_ref().unwrap_or(declared)
    }

    /// What the released tables contain.
    pub fn output(&self) -> Output {
        self.output
    }

    /// Whether the job may be one combination of a sweep.
    pub fn takes_sweeps(&self) -> bool {
        self.output == Output::Generalized && !self.has_sets
    }

    /// Bytes of memory that a run over this many rows of the schema needs at most, with up to
    /// `searches` searches at a time. `text_bytes` is the size of the distinct values of the
    /// chunks, as counted by [`pais_core::table::Table::text_bytes`].
    ///
    /// # Errors
    /// [`pais_core::definition::JobErrorKind::LimitExceeded`] where the run cannot be expected to
    /// end, with what would make it feasible.
    pub fn bytes_needed(
        &self,
        schema: &Schema,
        rows: u64,
        text_bytes: u64,
        searches: u64,
    ) -> Result<u64, JobError> {
        let schema = self.schema(schema);
        let codes = self.method.bytes_needed(schema, rows, searches)?;
        let text = text_bytes.saturating_mul(match self.output {
            Output::Generalized => TEXT_COPIES,
            Output::Anatomized => ANATOMIZED_TEXT_COPIES,
        });
        let classifiers = classification_bytes(schema, rows);
        Ok(codes.saturating_add(text).saturating_add(classifiers))
    }
}

/// Refuses a reason for a column that does not exist.
fn check_acknowledged(schema: &Schema, job: &Job) -> Result<(), JobError> {
    let is_column = |name: &str| schema.columns.iter().any(|column| column.name() == name);
    let mut named = job.acknowledged.keys();
    let Some(unknown) = named.find(|name| !is_column(name)) else {
        return Ok(());
    };
    let pointer = format!("/acknowledge_unchanged/{}", escape(unknown));
    let detail = "the dataset has no column with this name";
    Err(JobError::at(JobErrorKind::Unfit, pointer, detail))
}

/// Bytes that the plans of one job need at most for a table of this many rows, of whose distinct
/// values the chunks hold `text_bytes`. Without a plan the table is only read and profiled.
///
/// # Errors
/// As [`JobPlan::bytes_needed`].
pub fn memory_needed(
    schema: &Schema,
    plans: &[JobPlan],
    rows: u64,
    text_bytes: u64,
) -> Result<u64, JobError> {
    if plans.is_empty() {
        let text = text_bytes.saturating_mul(READ_TEXT_COPIES);
        return Ok(table_codes(schema, rows).saturating_add(text));
    }
    let searches = plans.len().min(PARALLEL_SEARCHES) as u64;
    let mut needed = 0;
    for plan in plans {
        needed = needed.max(plan.bytes_needed(schema, rows, text_bytes, searches)?);
    }
    Ok(needed)
}
