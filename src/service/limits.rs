//! Limits on what a client sends.

use pais_anonymize::{JobPlan, memory_needed};
use pais_core::schema::Schema;
use pais_core::taxonomy::TreeLimits;

use crate::problem::{Code, Problem};
use crate::store::submissions::SubmissionsSize;

/// Limits on what a client sends, from the sections `limits` and `memory` of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct ServiceLimits {
    /// Size of a decoded upload, in bytes.
    pub upload_bytes: u64,
    /// Size of a cell of a submission, in bytes of text.
    pub cell_bytes: usize,
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
}

impl ServiceLimits {
    /// Checks that a table of these submissions fits into `memory.job_bytes`. `plans` are the
    /// combinations of one job; if there are none, the table is only read.
    ///
    /// # Errors
    /// `limit_exceeded`, with the memory needed and the limit.
    pub(super) fn check_memory(
        &self,
        schema: &Schema,
        plans: &[JobPlan],
        size: SubmissionsSize,
    ) -> Result<(), Problem> {
        let SubmissionsSize {
            rows, text_bytes, ..
        } = size;
        let needed = memory_needed(schema, plans, rows, text_bytes);
        let limit = self.job_bytes;
        if needed <= limit {
            return Ok(());
        }
        let detail = format!(
            "{rows} rows of this dataset, with {} MiB of distinct text, need about {} MiB of \
             memory, more than the {} MiB of memory.job_bytes; choose fewer submissions, or have \
             the limit raised",
            text_bytes.div_ceil(1 << 20),
            needed.div_ceil(1 << 20),
            limit >> 20
        );
        Err(Problem::new(Code::LimitExceeded, detail))
    }
}
