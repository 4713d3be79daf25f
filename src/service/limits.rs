//! Limits on what a client sends.

use pais_anonymize::{JobPlan, PARALLEL_SEARCHES, release_bytes};
use pais_core::schema::Schema;
use pais_core::taxonomy::TreeLimits;

use crate::problem::{Code, Problem};

use super::token_lifetime::TokenLifetime;

/// Limits on what a client sends, from the sections `limits` and `memory` of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct ServiceLimits {
    /// Size of a decoded upload, in bytes.
    pub upload_bytes: u64,
    /// Size of a JSON body, in bytes.
    pub json_bytes: usize,
    /// Memory for the tables of one job, in bytes.
    pub job_bytes: u64,
    /// Number of columns of a dataset.
    pub columns: usize,
    /// Size of a taxonomy.
    pub taxonomy: TreeLimits,
    /// Number of uploads read at once; further ones wait.
    pub concurrent_uploads: usize,
    /// Lifetime of a token.
    pub token_lifetime: TokenLifetime,
}

impl ServiceLimits {
    /// Checks that a table with this number of rows fits into `memory.job_bytes`. `plans` are the
    /// combinations of one job; if there are none, the table is only read.
    ///
    /// # Errors
    /// `limit_exceeded`, with the memory needed and the limit.
    pub(super) fn check_memory(
        &self,
        schema: &Schema,
        plans: &[JobPlan],
        rows: u64,
    ) -> Result<(), Problem> {
        let searches = plans.len().min(PARALLEL_SEARCHES) as u64;
        let needed = plans
            .iter()
            .map(|plan| plan.bytes_needed(schema, rows, searches));
        let needed = needed.max().unwrap_or_else(|| release_bytes(schema, rows));
        let limit = self.job_bytes;
        if needed <= limit {
            return Ok(());
        }
        let detail = format!(
            "{rows} rows of this dataset need about {} MiB of memory, more than the {} MiB of \
             memory.job_bytes; choose fewer submissions, or have the limit raised",
            needed >> 20,
            limit >> 20
        );
        Err(Problem::new(Code::LimitExceeded, detail))
    }
}
