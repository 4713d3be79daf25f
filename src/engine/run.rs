//! From a raw table to a verified release: prepared once, run once, released at any step.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::{JobDefinition, Problem};
use crate::table::{ReleasedTable, Schema, Table};

use super::Observer;

/// One specialization of a top-down run, as `GET /v1/jobs/{id}/steps` shows it. Step 0 is the
/// topmost table and has neither attribute nor score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepItem {
    /// 0 for the topmost table.
    pub step: u32,
    /// The column specialized.
    pub attribute: Option<String>,
    /// *v*, the label specialized.
    pub value: Option<String>,
    /// *child(v)*, in the order of the taxonomy.
    pub children: Vec<String>,
    /// *Score(v)* under the job's objective.
    pub score: Option<f64>,
    /// Equivalence classes after the step.
    pub groups: u64,
    /// Rows of the smallest class after the step.
    pub smallest_group: u64,
    /// Discernibility ratio after the step.
    pub dr: f64,
    /// Mean NCP after the step.
    pub ncp: f64,
    /// Rows suppressed up to and including the step.
    pub suppressed_rows: u64,
}

/// A step with what is needed to stand at it again.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRecord {
    /// As shown.
    pub item: StepItem,
    /// Numbers of the rows that this step suppressed, ascending.
    pub suppressed: Vec<u32>,
}

/// A verified release, not yet stored.
#[derive(Clone, Debug)]
pub struct FinishedRelease {
    /// `data`; or `qit` and one `st_<column>` a sensitive column.
    pub tables: Vec<ReleasedTable>,
    /// The step it stands at, where the method has steps.
    pub step: Option<u32>,
    /// Rows released.
    pub rows: u64,
    /// Rows left out.
    pub suppressed_rows: u64,
    /// The privacy model with its parameters.
    pub privacy: serde_json::Value,
    /// Column to the labels of its cut, with global recoding.
    pub cut: Option<BTreeMap<String, Vec<String>>>,
    /// What the verifier found.
    pub verification: serde_json::Value,
    /// The utility and risk report.
    pub report: serde_json::Value,
}

/// A table encoded for a job.
pub struct Prepared {
    schema: Arc<Schema>,
    job: JobDefinition,
    table: Table,
}

impl Prepared {
    /// Whether a job fits a schema, as far as can be told without rows: what `POST /v1/jobs`
    /// refuses at once.
    ///
    /// # Errors
    /// The contract's 400 and 422, with pointers into the job.
    pub fn check(schema: &Schema, job: &JobDefinition) -> Result<(), Problem> {
        let _ = (schema, job);
        Ok(())
    }

    /// Encodes the rows for the job.
    ///
    /// # Errors
    /// As [`Self::check`], and `cancelled`.
    pub fn new(
        schema: Arc<Schema>,
        job: JobDefinition,
        table: Table,
        observer: &dyn Observer,
    ) -> Result<Self, Problem> {
        let _ = observer;
        Ok(Self { schema, job, table })
    }

    /// Searches; the steps of the run, empty for a method without steps.
    ///
    /// # Errors
    /// `not_anonymizable` with what would satisfy the model, `cancelled`.
    pub fn run(&self, observer: &dyn Observer) -> Result<Vec<StepRecord>, Problem> {
        let _ = (observer, &self.schema, &self.job, &self.table);
        Ok(Vec::new())
    }

    /// The verified table as it stood after `step` (the last when `None`), its rows in random
    /// order; drawn from the job's seed where it has one.
    ///
    /// # Errors
    /// `no_such_step`; `verification_failed` when the verifier does not accept the table;
    /// `cancelled`.
    pub fn release(
        &self,
        steps: &[StepRecord],
        step: Option<u32>,
        observer: &dyn Observer,
    ) -> Result<FinishedRelease, Problem> {
        let _ = (steps, step, observer);
        Err(Problem::new(crate::domain::Code::Internal, "not linked"))
    }
}
