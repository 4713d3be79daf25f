//! From a raw table to a verified release: prepared once, run once, released at any step.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::problem::{Code, Problem};
use pais_core::definition::{ColumnKind, ColumnRole, JobDefinition, Output, SplitRule};
use pais_core::table::{Column, EncodedTable, ReleasedTable, Table};
use pais_core::schema::{Schema, SchemaColumn};
use crate::utility;

use super::groups::{self, GroupPlan, Grouped, Partition};
use super::plan::{DisclosurePlan, Plan, SetModel, SpecializationPlan};
use super::pre_generalization::{self, Applied};
use super::release::Checked;
use super::{Observer, Phase, items, pais, release, requirement};

/// One specialization of a top-down run, as `GET /v1/jobs/{id}/steps` shows it. Step 0 is the
/// topmost table and has neither attribute nor score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    /// Greatest share of a class's rows that have one bounded sensitive value, after the step;
    /// null where none is bounded.
    #[serde(default)]
    pub greatest_confidence: Option<f64>,
    /// Discernibility ratio after the step.
    pub dr: f64,
    /// Mean NCP after the step.
    pub ncp: f64,
    /// NCP of each quasi-identifier after the step.
    #[serde(default)]
    pub ncp_by_column: BTreeMap<String, f64>,
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
    table: Arc<EncodedTable>,
    pre_generalization: Arc<Applied>,
    /// What a run of concurrent item disclosure ended with, once it has.
    disclosed: OnceLock<items::Outcome>,
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

    /// Whether a job may be swept over lists of privacy parameters: whether its method has steps
    /// whose figures can be set beside one another.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn takes_sweeps(schema: &Schema, job: &JobDefinition) -> Result<bool, Problem> {
        Ok(matches!(Plan::new(schema, job)?, Plan::Specialization(_)))
    }

    /// Whether a run over so many rows can be expected to end.
    ///
    /// # Errors
    /// As [`Self::check`], and `limit_exceeded` with what would make it feasible.
    pub fn check_work(schema: &Schema, job: &JobDefinition, rows: u64) -> Result<(), Problem> {
        Plan::new(schema, job)?.check_work(rows)
    }

    /// Bytes of memory that a run over so many rows takes at most, beside the text of distinct
    /// values: the codes as read, those of the released table and narrowed ones beside them, and per
    /// row the search's order and the shuffled one. The items of a set-valued quasi-identifier are not
    /// known beforehand and taken to be so many on average as prescriptions have at most times.
    pub fn bytes_needed(schema: &Schema, rows: u64) -> u64 {
        let codes = 4 * schema.stored().count() as u64;
        let is_set = |column: &&SchemaColumn| {
            column.role == ColumnRole::QuasiIdentifier && column.kind == ColumnKind::Set
        };
        let sets = schema.stored().filter(is_set).count() as u64;
        let narrowed = codes / 2;
        rows.saturating_mul(2 * codes + narrowed + 16 + sets * SET_BYTES)
    }

    /// As [`Self::bytes_needed`] for a job of its own: one with groups has the exact columns, the
    /// sensitive values row by row, the verifier's and the queries' view of the groups too; one by
    /// specialization has its partitions, of `searches` at a time.
    pub fn bytes_needed_by(schema: &Schema, job: &JobDefinition, rows: u64, searches: u64) -> u64 {
        let codes = 4 * schema.stored().count() as u64;
        match Plan::new(schema, job) {
            Ok(Plan::Groups(_)) => rows.saturating_mul(5 * codes + 64),
            Ok(Plan::Specialization(plan)) => {
                let attributes = plan.quasi_identifiers.len() as u64;
                // Where the adversary knows all attributes, a partition has K rows.
                let knows_all = (plan.model.l).is_none_or(|known| known.get() as u64 >= attributes);
                let least = if knows_all { plan.model.k.get() } else { 1 };
                let partitions = (rows / least).saturating_mul(attributes * 12 + 96);
                // The rows of an interval by partition and number, as they are counted and as
                // they are gathered.
                let points = match plan.settings.split {
                    SplitRule::BestValid => 80,
                    SplitRule::Fixed => 0,
                };
                // A row's place in the order and while it is moved there, its narrowed codes, that
                // of its sensitive values, and what is known of each of those.
                let sensitive = 16 * (plan.sensitive.len() as u64).max(1);
                let row = 8 + 2 * attributes + sensitive + points;
                let search = rows.saturating_mul(row).saturating_add(partitions);
                let searched = rows.saturating_mul(codes + 8);
                searched
                    .saturating_add(search.saturating_mul(searches))
                    .max(Self::bytes_needed(schema, rows))
            }
            Ok(Plan::Disclosure(_)) | Err(_) => Self::bytes_needed(schema, rows),
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
        plan.check_work(table.rows as u64)?;
        let exact = match &plan {
            Plan::Groups(plan) if plan.output == Output::Anatomized => schema
                .stored_with(ColumnRole::QuasiIdentifier)
                .into_iter()
                .map(|position| (position, table.columns[position].clone()))
                .collect(),
            Plan::Groups(_) | Plan::Specialization(_) | Plan::Disclosure(_) => Vec::new(),
        };
        let mut table = EncodedTable::new(&schema, table);
        if let Plan::Specialization(_) = plan {
            check_classes(&table)?;
        }
        let one_cut = !matches!(plan, Plan::Disclosure(_));
        let pre_generalization = Applied::new(&job, &mut table, one_cut)?;
        stop_if_asked(observer)?;
        observer.progress(Phase::Reading, 1.0);
        Ok(Self {
            schema,
            job,
            plan,
            table: Arc::new(table),
            pre_generalization: Arc::new(pre_generalization),
            disclosed: OnceLock::new(),
            exact,
            partition: OnceLock::new(),
        })
    }

    /// The same rows under another combination of the job's privacy parameters, for a method that
    /// [takes sweeps](Self::takes_sweeps); nothing is encoded again.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn under(&self, job: JobDefinition) -> Result<Self, Problem> {
        Ok(Self {
            schema: Arc::clone(&self.schema),
            plan: Plan::new(&self.schema, &job)?,
            job,
            table: Arc::clone(&self.table),
            pre_generalization: Arc::clone(&self.pre_generalization),
            disclosed: OnceLock::new(),
            exact: self.exact.clone(),
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
            Plan::Disclosure(plan) => {
                self.disclosed(plan, observer)?;
                Ok(Vec::new())
            }
            Plan::Groups(plan) => {
                self.partition(plan, observer)?;
                Ok(Vec::new())
            }
        }
    }

    /// Searches, unless that was done already.
    fn disclosed(
        &self,
        plan: &DisclosurePlan,
        observer: &dyn Observer,
    ) -> Result<&items::Outcome, Problem> {
        if let Some(outcome) = self.disclosed.get() {
            return Ok(outcome);
        }
        let floors = |name: &str| self.pre_generalization.floors(name);
        let outcome = match &plan.model {
            SetModel::KAnonymity(_) => items::search(&self.table, floors, &plan.settings, observer),
            SetModel::KmAnonymity(model) => {
                items::search_km(&self.table, floors, (*model, &plan.settings), observer)
            }
        };
        let outcome = outcome.map_err(|error| requirement::disclosure_problem(&error))?;
        Ok(self.disclosed.get_or_init(|| outcome))
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
        observer.progress(Phase::Verifying, 0.0);
        match &self.plan {
            Plan::Specialization(plan) => self.release_cut(plan, steps, step, observer),
            Plan::Disclosure(plan) => self.release_disclosed(plan, step, observer),
            Plan::Groups(plan) => {
                if let Some(step) = step {
                    let detail = format!("the job has no step {step}; leave `step` out");
                    return Err(Problem::at(Code::NoSuchStep, "/step", detail));
                }
                let grouped = Grouped {
                    schema: &self.schema,
                    table: &self.table,
                    exact: &self.exact,
                    pre_generalization: &self.pre_generalization,
                    plan,
                    partition: self.partition(plan, observer)?,
                    job: &self.job,
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
        let rows = release::source_rows(self.table.rows, steps, step, &self.job)?;
        let suppressed = (self.table.rows - rows.len()) as u64;
        let (cuts, told) = release::told_cuts(&self.schema, &self.table, cuts, &rows);
        let table = release::table(&self.schema, &self.table, &cuts, Vec::new(), &rows);
        let names = &plan.quasi_identifiers;
        let checked = Checked::Lkc(&plan.model, names, &plan.sensitive);
        let release = self.finish(checked, table, (&rows, suppressed), Some(told), observer)?;
        Ok(FinishedRelease {
            step: Some(step),
            ..release
        })
    }

    fn release_disclosed(
        &self,
        plan: &DisclosurePlan,
        step: Option<u32>,
        observer: &dyn Observer,
    ) -> Result<FinishedRelease, Problem> {
        if step.is_some() {
            let detail = "a run with a set-valued quasi-identifier has no steps; leave `step` out";
            return Err(Problem::at(Code::NoSuchStep, "/step", detail));
        }
        let outcome = self.disclosed(plan, observer)?;
        let rows = 0..self.table.rows as u32;
        let rows = rows.filter(|&row| outcome.released[row as usize]).collect();
        let rows = release::shuffled(rows, &self.job, 0)?;
        let suppressed = (self.table.rows - rows.len()) as u64;
        let cuts = outcome.cuts.clone();
        let (cuts, told) = release::told_cuts(&self.schema, &self.table, cuts, &rows);
        let sets = release::sets(&self.table, &outcome.sets, &rows);
        let table = release::table(&self.schema, &self.table, &cuts, sets, &rows);
        let names = &plan.quasi_identifiers;
        let (rows, told) = ((rows.as_slice(), suppressed), Some(told));
        match &plan.model {
            SetModel::KAnonymity(model) => {
                self.finish(Checked::Lkc(model, names, &[]), table, rows, told, observer)
            }
            SetModel::KmAnonymity(model) => {
                self.finish(Checked::Km(model, names), table, rows, told, observer)
            }
        }
    }

    /// Verifies a table and measures it.
    fn finish(
        &self,
        checked: Checked,
        table: ReleasedTable,
        (rows, suppressed): (&[u32], u64),
        cut: Option<BTreeMap<String, Vec<String>>>,
        observer: &dyn Observer,
    ) -> Result<FinishedRelease, Problem> {
        stop_if_asked(observer)?;
        observer.progress(Phase::Verifying, 0.3);
        let verification = release::verify(self, checked, &table, rows, suppressed, observer)?;
        let domains: Vec<_> = self
            .table
            .quasi_identifiers
            .iter()
            .map(|column| {
                (
                    column.name.clone(),
                    &self.pre_generalization.raw(column).domain,
                )
            })
            .collect();
        let sets: Vec<_> = self
            .table
            .sets
            .iter()
            .map(|column| utility::RawSets {
                column,
                floors: self.pre_generalization.floors(&column.name),
                rows,
            })
            .collect();
        let mut report =
            utility::report_with_sets(&table, &domains, &sets, suppressed, &verification)
                .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        report.pre_generalization = pre_generalization::told(&self.schema, &self.job, &table);
        observer.progress(Phase::Verifying, 1.0);
        Ok(FinishedRelease {
            rows: table.rows as u64,
            tables: vec![table],
            step: None,
            suppressed_rows: suppressed,
            privacy: json(&self.job.privacy)?,
            cut,
            verification: json(&verification)?,
            report: json(&report)?,
        })
    }

    pub(super) fn pre_generalization(&self) -> &Applied {
        &self.pre_generalization
    }

    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(super) fn table(&self) -> &EncodedTable {
        &self.table
    }
}

/// Bytes a row that a set-valued quasi-identifier takes beside its released cells: its number,
/// where its items begin, and 16 items of 4 bytes as read, as they are disclosed, and once more
/// while a class is divided.
const SET_BYTES: u64 = 8 + 3 * 16 * 4;

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
