//! What every method of anonymization provides.

use std::any::Any;
use std::collections::BTreeMap;

use pais_core::definition::{Job, JobError};
use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::table::ReleasedTable;
use pais_measure::{MethodFacts, ReleaseRecoding};

use crate::error::RunError;
use crate::observer::Observer;
use crate::prepared::PreparedTable;
use crate::row_counter::{CountedRows, needs_rows};
use crate::step::StepRecord;

/// The method of a job with the job's parameters, or `None` for a job of another method; an error for
/// a job of this method that does not fit the schema, with a pointer into the job.
pub(crate) type Planned = Result<Option<Box<dyn AnyMethod>>, JobError>;

/// Decides whether a job is for a method, and checks it before a row is read.
pub(crate) type PlanMethod = fn(&Schema, &Job, &PrivacyModel) -> Planned;

/// A method of anonymization with the parameters of one job.
///
/// It searches and builds tables; it never decides whether a table may be released, which is the
/// work of the gate ([`crate::gate`]). It is registered in [`crate::methods`].
pub(crate) trait Method: Send + Sync + 'static {
    /// What a search finds: a `Vec<StepRecord>` where each step can be released, and is recorded to
    /// be released later; otherwise what one table is built from.
    type Outcome: Send + Sync + 'static;

    /// Bytes of memory that a run over this many rows takes at most, beside the text of distinct
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
    ) -> Result<Self::Outcome, RunError>;

    /// Searches for an anonymous table by counts alone; `input` has a row for each distinct value.
    ///
    /// # Errors
    /// As [`Self::search`]; a method that needs rows refuses.
    fn search_counts(
        &self,
        _input: &PreparedTable,
        _counts: CountedRows<'_>,
        _observer: &dyn Observer,
    ) -> Result<Self::Outcome, RunError> {
        Err(needs_rows("/executor", "this method", "choose another model").into())
    }

    /// Builds the tables after `step`, which the outcome has; 0 where it has no steps.
    ///
    /// # Errors
    /// [`RunError::Internal`] for an outcome that does not fit the table.
    fn build(
        &self,
        input: &PreparedTable,
        outcome: &Self::Outcome,
        step: u32,
    ) -> Result<Candidate, RunError>;

    /// What only the method knows of its release, for the measures of a release that was accepted.
    fn facts<'a>(&self, _input: &'a PreparedTable, _outcome: &'a Self::Outcome) -> MethodFacts<'a> {
        MethodFacts::default()
    }
}

/// What a search found, by whatever method.
pub struct SearchOutcome(Box<dyn Any + Send + Sync>);

impl SearchOutcome {
    /// The outcome of an earlier search, by its steps.
    pub(crate) fn recorded(steps: Vec<StepRecord>) -> Self {
        Self(Box::new(steps))
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

    fn of<T: 'static>(&self) -> Result<&T, RunError> {
        let outcome = self.0.downcast_ref();
        outcome.ok_or_else(|| RunError::internal("the recorded steps are of another method"))
    }
}

/// A [`Method`] whose type of outcome is erased, so that one run is for jobs of every method.
pub(crate) trait AnyMethod: Send + Sync {
    /// See [`Method::bytes_needed`].
    fn bytes_needed(&self, schema: &Schema, rows: u64, searches: u64) -> Result<u64, JobError>;

    /// See [`Method::search`].
    fn search(
        &self,
        input: &PreparedTable,
        observer: &dyn Observer,
    ) -> Result<SearchOutcome, RunError>;

    /// See [`Method::search_counts`].
    fn search_counts(
        &self,
        input: &PreparedTable,
        counts: CountedRows<'_>,
        observer: &dyn Observer,
    ) -> Result<SearchOutcome, RunError>;

    /// See [`Method::build`].
    fn build(
        &self,
        input: &PreparedTable,
        outcome: &SearchOutcome,
        step: u32,
    ) -> Result<Candidate, RunError>;

    /// See [`Method::facts`].
    fn facts<'a>(
        &self,
        input: &'a PreparedTable,
        outcome: &'a SearchOutcome,
    ) -> Result<MethodFacts<'a>, RunError>;
}

impl<M: Method> AnyMethod for M {
    fn bytes_needed(&self, schema: &Schema, rows: u64, searches: u64) -> Result<u64, JobError> {
        Method::bytes_needed(self, schema, rows, searches)
    }

    fn search(
        &self,
        input: &PreparedTable,
        observer: &dyn Observer,
    ) -> Result<SearchOutcome, RunError> {
        let outcome = Method::search(self, input, observer)?;
        Ok(SearchOutcome(Box::new(outcome)))
    }

    fn search_counts(
        &self,
        input: &PreparedTable,
        counts: CountedRows<'_>,
        observer: &dyn Observer,
    ) -> Result<SearchOutcome, RunError> {
        let outcome = Method::search_counts(self, input, counts, observer)?;
        Ok(SearchOutcome(Box::new(outcome)))
    }

    fn build(
        &self,
        input: &PreparedTable,
        outcome: &SearchOutcome,
        step: u32,
    ) -> Result<Candidate, RunError> {
        Method::build(self, input, outcome.of()?, step)
    }

    fn facts<'a>(
        &self,
        input: &'a PreparedTable,
        outcome: &'a SearchOutcome,
    ) -> Result<MethodFacts<'a>, RunError> {
        Ok(Method::facts(self, input, outcome.of()?))
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

/// What a method claims of its tables, in terms of the job alone.
pub(crate) struct Claim {
    /// The model that holds: in the whole table with global recoding, otherwise in every group.
    pub(crate) model: PrivacyModel,
    /// How the tables are recoded.
    pub(crate) recoding: ReleaseRecoding,
}
