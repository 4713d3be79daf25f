//! What every method of anonymization provides.

use std::collections::BTreeMap;

use pais_core::definition::{JobDefinition, JobError, Output};
use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::table::{EncodedTable, ReleasedTable};

use crate::error::RunError;
use crate::memory;
use crate::observer::Observer;
use crate::prepared::PreparedTable;
use crate::step::StepRecord;
use crate::table_figures::TableFigures;
use crate::utility::Report;
use crate::verdict::Verdict;

/// Decides whether a job is for a method: the method with the job's parameters, or `None` for a
/// job of another method.
///
/// # Errors
/// A job for this method that does not fit the schema, with a pointer into the job.
pub(crate) type PlanMethod = fn(
    schema: &Schema,
    job: &JobDefinition,
    model: &PrivacyModel,
) -> Result<Option<Box<dyn Method>>, JobError>;

/// A method of anonymization with the parameters of one job.
///
/// It searches and builds tables; it never decides whether a table may be released, which is the
/// work of the gate ([`crate::gate`]). It is registered in [`crate::methods`].
pub(crate) trait Method: Send + Sync {
    /// What the released tables contain.
    fn output(&self) -> Output {
        Output::Generalized
    }

    /// Whether a run has steps, each of which can be released.
    fn has_steps(&self) -> bool {
        false
    }

    /// Whether a job may be one combination of a sweep: it has steps, or [`Self::figures`].
    fn takes_sweeps(&self) -> bool {
        self.has_steps()
    }

    /// Whether each relational column is generalized along one cut of its taxonomy, so that
    /// pre-generalized values are encoded beforehand.
    fn needs_pre_generalized_codes(&self) -> bool {
        true
    }

    /// Whether a run over this many rows can be expected to end.
    ///
    /// # Errors
    /// [`pais_core::definition::JobErrorKind::LimitExceeded`] with what would make it feasible.
    fn check_work(&self, rows: u64) -> Result<(), JobError> {
        let _ = rows;
        Ok(())
    }

    /// Bytes of memory that a run over this many rows takes at most, beside the text of distinct
    /// values, with up to `searches` searches at a time.
    fn bytes_needed(&self, schema: &Schema, rows: u64, searches: u64) -> u64;

    /// Number of copies of the text of distinct values that a run has in memory at most.
    fn text_copies(&self) -> u64 {
        memory::TEXT_COPIES
    }

    /// Whether the encoded table is within the limits of the method.
    ///
    /// # Errors
    /// [`pais_core::definition::JobErrorKind::LimitExceeded`] with what to change.
    fn check_table(&self, table: &EncodedTable) -> Result<(), RunError> {
        let _ = table;
        Ok(())
    }

    /// Searches for an anonymous table; the steps of the search, empty for a method without
    /// steps. Such a method keeps what it found until [`Self::build`].
    ///
    /// # Errors
    /// [`RunError::NotAnonymizable`] and [`RunError::Cancelled`].
    fn search(
        &self,
        input: &PreparedTable,
        observer: &dyn Observer,
    ) -> Result<Vec<StepRecord>, RunError>;

    /// The figures of the table that [`Self::search`] found, for a method without steps that takes
    /// sweeps.
    ///
    /// # Errors
    /// Those of [`Self::search`], which is done first unless it was; [`RunError::Internal`] for a
    /// method that takes no sweeps.
    fn figures(
        &self,
        input: &PreparedTable,
        observer: &dyn Observer,
    ) -> Result<TableFigures, RunError> {
        let _ = (input, observer);
        Err(RunError::internal("this method takes no sweeps"))
    }

    /// Builds the tables after `step`, the last one when `None`; from recorded steps, without a
    /// new search. A method without steps searches first unless it has done so.
    ///
    /// # Errors
    /// [`RunError::NoSuchStep`], and those of [`Self::search`].
    fn build(
        &self,
        input: &PreparedTable,
        steps: &[StepRecord],
        step: Option<u32>,
        observer: &dyn Observer,
    ) -> Result<Candidate, RunError>;

    /// Measures tables that the verifier accepted.
    ///
    /// # Errors
    /// [`RunError::Cancelled`], and [`RunError::Internal`] for tables that cannot be measured.
    fn measure(
        &self,
        input: &PreparedTable,
        candidate: &Candidate,
        verdict: &Verdict,
        observer: &dyn Observer,
    ) -> Result<Report, RunError>;
}

/// Finished tables that the verifier has not seen yet.
pub(crate) struct Candidate {
    /// `data`; or `qit` and one `st_<column>` for each sensitive column.
    pub(crate) tables: Vec<ReleasedTable>,
    /// The raw row of each released row.
    pub(crate) rows: Vec<u32>,
    /// The step after which the tables are, where the method has steps.
    pub(crate) step: Option<u32>,
    /// Column to the labels of its published cut, with global recoding.
    pub(crate) cut: Option<BTreeMap<String, Vec<String>>>,
    /// What the verifier has to decide.
    pub(crate) claim: Claim,
}

/// What a method claims of its tables, in terms of the job alone.
pub(crate) enum Claim {
    /// The model holds, and each column is one cut.
    Global(PrivacyModel),
    /// The model holds in every group of rows with equal labels.
    Local(PrivacyModel),
    /// The model holds in every group of an anatomized release.
    Anatomized(PrivacyModel),
}
