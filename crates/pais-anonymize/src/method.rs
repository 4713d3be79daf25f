//! What every method of anonymization provides.

use std::any::Any;
use std::collections::BTreeMap;

use pais_core::definition::{Job, JobError};
use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::table::{Positioned, ReleasedColumn, ReleasedTable};
use pais_measure::{MethodFacts, ReleaseRecoding};

use crate::error::RunError;
use crate::observer::Observer;
use crate::prepared::PreparedTable;
use crate::published_cut::{self, Cut};
use crate::released_table;
use crate::row_counter::{CountedRows, needs_rows};
use crate::step::StepRecord;

/// The method of a job with the job's parameters, or `None` for a job of another method; an error for
/// a job of this method that does not fit the schema, with a pointer into the job.
pub(crate) type Planned = Result<Option<Box<dyn Method>>, JobError>;

/// Decides whether a job is for a method, and checks it before a row is read.
pub(crate) type PlanMethod = fn(&Schema, &Job, &PrivacyModel) -> Planned;

/// A method of anonymization with the parameters of one job.
///
/// It searches and builds tables; it never decides whether a table may be released, which is the
/// work of the gate ([`crate::gate`]). It is registered in [`crate::methods`].
pub(crate) trait Method: Send + Sync {
    /// Bytes of memory that a run over this many rows takes at most, in addition to the text of distinct
    /// values, with up to `searches` searches at a time.
    ///
    /// # Errors
    /// [`pais_core::definition::JobErrorKind::LimitExceeded`] where the run cannot be expected to
    /// end, with what would make it feasible.
    fn bytes_needed(&self, schema: &Schema, rows: u64, searches: u64) -> Result<u64, JobError>;

    /// Searches for an anonymous table.
    ///
    /// # Errors
    /// [`RunError::NotAnonymizable`] and [`RunError::Cancelled`];
    /// [`pais_core::definition::JobErrorKind::LimitExceeded`] for a table beyond a limit.
    fn search(
        &self,
        input: &PreparedTable,
        observer: &dyn Observer,
    ) -> Result<SearchOutcome, RunError>;

    /// Searches for an anonymous table by counts alone; `input` has a row for each distinct value.
    ///
    /// # Errors
    /// As [`Self::search`]; a method that needs rows refuses.
    fn search_counts(
        &self,
        _input: &PreparedTable,
        _counts: CountedRows<'_>,
        _observer: &dyn Observer,
    ) -> Result<SearchOutcome, RunError> {
        Err(needs_rows("/executor", "this method", "choose another model").into())
    }

    /// Builds the tables after `step`, a step of the outcome; 0 if it has no steps.
    ///
    /// # Errors
    /// [`RunError::Internal`] for an outcome that does not fit the table.
    fn build(
        &self,
        input: &PreparedTable,
        outcome: &SearchOutcome,
        step: u32,
    ) -> Result<Candidate, RunError>;

    /// What only the method knows about its release, for the measures of a release that was accepted.
    ///
    /// # Errors
    /// As [`Self::build`].
    fn facts<'a>(
        &self,
        _input: &'a PreparedTable,
        _outcome: &'a SearchOutcome,
    ) -> Result<MethodFacts<'a>, RunError> {
        Ok(MethodFacts::default())
    }
}

/// What a search found, by whatever method: a `Vec<StepRecord>` where each step can be released, and is
/// recorded to be released later; otherwise what one table is built from.
pub struct SearchOutcome(Box<dyn Any + Send + Sync>);

impl SearchOutcome {
    /// What a method found, or the steps of an earlier search.
    pub(crate) fn new<T: Send + Sync + 'static>(found: T) -> Self {
        Self(Box::new(found))
    }

    /// The steps from the topmost table on; empty for a method without steps.
    pub fn steps(&self) -> &[StepRecord] {
        let steps = self.0.downcast_ref::<Vec<StepRecord>>();
        steps.map_or(&[], Vec::as_slice)
    }

    /// As [`Self::steps`], to be recorded.
    pub fn into_steps(self) -> Vec<StepRecord> {
        let steps = self.0.downcast();
        steps.map_or_else(|_| Vec::new(), |steps| *steps)
    }

    /// What the method found.
    ///
    /// # Errors
    /// [`RunError::Internal`] for the outcome of another method.
    pub(crate) fn of<T: 'static>(&self) -> Result<&T, RunError> {
        let outcome = self.0.downcast_ref();
        outcome.ok_or_else(|| RunError::internal("the recorded steps are of another method"))
    }
}

/// Finished tables that the verifier has not seen yet.
pub(crate) struct Candidate {
    /// `data`; or `qit` and one `st_<column>` for each sensitive column.
    pub(crate) tables: Vec<ReleasedTable>,
    /// The raw row of each released row.
    pub(crate) rows: Vec<u32>,
    /// Column to the labels of its published cut, with global recoding.
    pub(crate) cut: Option<BTreeMap<String, Vec<String>>>,
    /// What the verifier has to decide.
    pub(crate) claim: Claim,
}

impl Candidate {
    /// The table of these rows with global recoding by one cut per column, for the model of the job. `sets` are
    /// its released sets.
    pub(crate) fn of_cuts(
        input: &PreparedTable,
        cuts: Vec<Cut>,
        sets: Vec<Positioned<ReleasedColumn>>,
        rows: Vec<u32>,
    ) -> Self {
        let (schema, table, stop) = (&input.schema, &input.table, &input.cancellation);
        let (cuts, published) = published_cut::publish(schema, table, cuts, &rows);
        let released = released_table::assemble(schema, table, &cuts, sets, &rows, stop);
        Self {
            tables: vec![released],
            rows,
            cut: Some(published),
            claim: Claim {
                model: input.model.clone(),
                recoding: ReleaseRecoding::Global,
            },
        }
    }
}

/// What a method claims about its tables, in terms of the job alone.
pub(crate) struct Claim {
    /// The model that holds: in the whole table with global recoding, otherwise in every group.
    pub(crate) model: PrivacyModel,
    /// How the tables are recoded.
    pub(crate) recoding: ReleaseRecoding,
}
