//! From a raw table to a verified release: prepared once, run once, released at any step.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::{Code, ColumnRole, JobDefinition, Output, Problem};
use crate::table::{Column, EncodedTable, ReleasedTable, Schema, Table};
use crate::utility;

use super::groups::{self, GroupPlan, Grouped, Partition};
use super::plan::{Plan, SpecializationPlan};
use super::{Observer, Phase, pais, release, requirement};

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
    plan: Plan,
    table: EncodedTable,
    /// Quasi-identifiers as they came, where they are released so.
    exact: Vec<(usize, Column)>,
    /// The groups once they are found, for a plan that has groups.
    partition: OnceLock<Partition>,
}

impl Prepared {
    /// Whether a job fits a schema, as far as can be told without rows: what `POST /v1/jobs`
    /// refuses at once.
    ///
    /// # Errors
    /// The contract's 400 and 422, with pointers into the job.
    pub fn check(schema: &Schema, job: &JobDefinition) -> Result<(), Problem> {
        Plan::new(schema, job).map(drop)
    }

    /// Bytes of memory that a run over so many rows takes at most, beside the text of distinct
    /// values: the codes as read, those of the released table beside them, and per row the
    /// search's order and the shuffled one.
    pub fn bytes_needed(schema: &Schema, rows: u64) -> u64 {
        let codes = 4 * schema.stored().count() as u64;
        rows.saturating_mul(2 * codes + 16)
    }

    /// As [`Self::bytes_needed`] for a job of its own: one with groups has the exact columns, the
    /// sensitive values row by row, the verifier's and the queries' view of the groups too.
    pub fn bytes_needed_by(schema: &Schema, job: &JobDefinition, rows: u64) -> u64 {
        match Plan::new(schema, job) {
            Ok(Plan::Groups(_)) => {
                let codes = 4 * schema.stored().count() as u64;
                rows.saturating_mul(5 * codes + 64)
            }
            Ok(Plan::Specialization(_)) | Err(_) => Self::bytes_needed(schema, rows),
        }
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
        let plan = Plan::new(&schema, &job)?;
        observer.progress(Phase::Reading, 1.0);
        let exact = match &plan {
            Plan::Groups(plan) if plan.output == Output::Anatomized => schema
                .stored_with(ColumnRole::QuasiIdentifier)
                .into_iter()
                .map(|position| (position, table.columns[position].clone()))
                .collect(),
            Plan::Groups(_) | Plan::Specialization(_) => Vec::new(),
        };
        let table = EncodedTable::new(&schema, table);
        if let Plan::Specialization(_) = plan {
            check_classes(&table)?;
        }
        stop_if_asked(observer)?;
        Ok(Self {
            schema,
            job,
            plan,
            table,
            exact,
            partition: OnceLock::new(),
        })
    }

    /// Searches; the steps of the run, empty for a method without steps.
    ///
    /// # Errors
    /// `not_anonymizable` with what would satisfy the model, `cancelled`.
    pub fn run(&self, observer: &dyn Observer) -> Result<Vec<StepRecord>, Problem> {
        observer.progress(Phase::Searching, 0.0);
        match &self.plan {
            Plan::Specialization(plan) => {
                let (requirement, named) = requirement::resolve(plan, &self.table);
                pais::search(&self.table, &requirement, plan.settings, observer)
                    .map_err(|error| requirement::problem(&error, &named))
            }
            Plan::Groups(plan) => {
                self.partition(plan, observer)?;
                Ok(Vec::new())
            }
        }
    }

    /// The groups, found once.
    fn partition(&self, plan: &GroupPlan, observer: &dyn Observer) -> Result<&Partition, Problem> {
        if let Some(found) = self.partition.get() {
            return Ok(found);
        }
        let found = groups::partition(&self.table, plan, observer)
            .map_err(|error| groups::problem(&error))?;
        Ok(self.partition.get_or_init(|| found))
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
        match &self.plan {
            Plan::Specialization(plan) => self.release_cut(plan, steps, step, observer),
            Plan::Groups(plan) => {
                if let Some(step) = step {
                    let detail = format!("the job has no step {step}; leave `step` out");
                    return Err(Problem::at(Code::NoSuchStep, "/step", detail));
                }
                let grouped = Grouped {
                    schema: &self.schema,
                    table: &self.table,
                    exact: &self.exact,
                    plan,
                    partition: self.partition(plan, observer)?,
                    seed: self.job.seed,
                    privacy: json(&self.job.privacy)?,
                };
                groups::release(&grouped, observer)
            }
        }
    }

    fn release_cut(
        &self,
        plan: &SpecializationPlan,
        steps: &[StepRecord],
        step: Option<u32>,
        observer: &dyn Observer,
    ) -> Result<FinishedRelease, Problem> {
        let last = steps.last().map_or(0, |record| record.item.step);
        let step = step.unwrap_or(last);
        if step > last {
            let detail = format!("the job has no step {step}; its steps are 0 to {last}");
            return Err(Problem::at(Code::NoSuchStep, "/step", detail));
        }
        let cuts = pais::cuts_at(&self.table, steps, step)
            .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        let rows = release::source_rows(self.table.rows, steps, step, self.job.seed)?;
        let suppressed = (self.table.rows - rows.len()) as u64;
        let (cuts, told) = release::told_cuts(&self.schema, &self.table, cuts, &rows);
        let table = release::table(&self.schema, &self.table, &cuts, &rows);
        stop_if_asked(observer)?;
        observer.progress(Phase::Verifying, 0.0);
        let verification = release::verify(self, plan, &table, &rows, suppressed, observer)?;
        let domains: Vec<_> = self
            .table
            .quasi_identifiers
            .iter()
            .map(|column| (column.name.clone(), &column.domain))
            .collect();
        let report = utility::report(&table, &domains, suppressed, &verification)
            .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        observer.progress(Phase::Verifying, 1.0);
        Ok(FinishedRelease {
            rows: table.rows as u64,
            tables: vec![table],
            step: Some(step),
            suppressed_rows: suppressed,
            privacy: json(&self.job.privacy)?,
            cut: Some(told),
            verification: json(&verification)?,
            report: json(&report)?,
        })
    }

    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(super) fn table(&self) -> &EncodedTable {
        &self.table
    }
}

/// Counters of a column's values by class that a run keeps at most, 8 bytes each.
const CLASS_COUNTERS: usize = 1 << 25;

fn check_classes(table: &EncodedTable) -> Result<(), Problem> {
    let Some((classes, _)) = table.class else {
        return Ok(());
    };
    let widest = table
        .quasi_identifiers
        .iter()
        .map(|column| column.domain.code_count())
        .max();
    if widest.unwrap_or(0).saturating_mul(classes) <= CLASS_COUNTERS {
        return Ok(());
    }
    let detail = format!(
        "the class column has about {classes} values, too many to count beside the {} of a \
         quasi-identifier; give it fewer, or give it the role `insensitive`",
        widest.unwrap_or(0)
    );
    Err(Problem::new(Code::LimitExceeded, detail))
}

/// A result as JSON.
pub(super) fn json(value: &impl Serialize) -> Result<serde_json::Value, Problem> {
    serde_json::to_value(value)
        .map_err(|_| Problem::new(Code::Internal, "a result could not be written as JSON"))
}

fn stop_if_asked(observer: &dyn Observer) -> Result<(), Problem> {
    if observer.must_stop() {
        return Err(Problem::new(Code::Cancelled, "the job was cancelled"));
    }
    Ok(())
}
