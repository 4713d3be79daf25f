//! The memory that work on a whole table reserves before its rows are loaded.

use pais_anonymize::{JobPlan, memory_needed};
use pais_core::definition::{JobDefinition, Sweep};
use pais_core::schema::Schema;

use crate::db::submissions::SubmissionsSize;
use crate::memory::{MemoryBudget, MemoryUse};
use crate::problem::{Code, Problem};

/// The limits of one table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableLimits {
    /// `memory.job_bytes`.
    pub(crate) job_bytes: u64,
    /// The part of the process's memory budget for tables, in bytes.
    pub(crate) process_bytes: u64,
}

impl TableLimits {
    /// The limits of a process with this budget.
    pub(crate) fn new(job_bytes: u64, memory: &MemoryBudget) -> Self {
        Self {
            job_bytes,
            process_bytes: memory.limit(MemoryUse::Tables),
        }
    }

    /// The bytes that a table of these submissions needs; `beside` is added for other data of the decision. `plans`
    /// are the combinations of one job; if there are none, the table is only read.
    ///
    /// # Errors
    /// `limit_exceeded` if it never fits, with the memory needed and the limit.
    pub(crate) fn needed(
        &self,
        schema: &Schema,
        plans: &[JobPlan],
        size: SubmissionsSize,
        beside: u64,
    ) -> Result<u64, Problem> {
        let SubmissionsSize {
            rows, text_bytes, ..
        } = size;
        let needed = memory_needed(schema, plans, rows, text_bytes)?.saturating_add(beside);
        let (limit, name) = self.least();
        if needed <= limit {
            return Ok(needed);
        }
        let detail = format!(
            "{rows} rows of this dataset, with {} MiB of distinct text, need about {} MiB of \
             memory, more than the {} MiB of {name}; choose fewer submissions, or have the limit \
             raised",
            text_bytes.div_ceil(1 << 20),
            needed.div_ceil(1 << 20),
            limit >> 20
        );
        Err(Problem::new(Code::LimitExceeded, detail))
    }

    /// The bytes of a job whose rows an executor counts, regardless of what its table needs.
    ///
    /// # Errors
    /// `limit_exceeded` if it never fits.
    pub(crate) fn of_executor(&self, bytes: u64) -> Result<u64, Problem> {
        let (limit, name) = self.least();
        if bytes <= limit {
            return Ok(bytes);
        }
        let detail = format!(
            "a job of the executor takes {} MiB of memory, more than the {} MiB of {name}; have the limit \
             raised, or the `memory` of the executor lowered",
            bytes.div_ceil(1 << 20),
            limit >> 20
        );
        Err(Problem::new(Code::LimitExceeded, detail))
    }

    /// The lower limit, and its name.
    fn least(&self) -> (u64, &'static str) {
        if self.job_bytes <= self.process_bytes {
            (self.job_bytes, "memory.job_bytes")
        } else {
            (
                self.process_bytes,
                "memory.process_bytes that tables may use (three quarters of it)",
            )
        }
    }
}

/// The plans of all combinations of a job.
///
/// # Errors
/// When the job does not fit the schema.
pub(crate) fn plans(
    schema: &Schema,
    job: &JobDefinition,
    sweep: &Sweep,
) -> Result<Vec<JobPlan>, Problem> {
    let combinations = sweep.combinations.iter();
    let plan = |job: JobDefinition| JobPlan::new(schema, &job.parse()?);
    let plans = combinations.map(|combination| plan(combination.apply(job)));
    Ok(plans.collect::<Result<_, _>>()?)
}
