//! Limits on what a client sends.

use std::time::Duration;

use pais_anonymize::JobPlan;
use pais_core::schema::Schema;
use pais_core::taxonomy::TreeLimits;

use crate::db::quotas::Quotas;
use crate::db::submissions::SubmissionsSize;
use crate::jobs::table_memory::TableLimits;
use crate::memory::MemoryBudget;
use crate::problem::Problem;
use crate::service::streams::StreamLimits;

use super::tokens::TokenLifetime;

/// Limits on what a client sends, from the sections `limits` and `memory` of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Size of a decoded upload, in bytes.
    pub upload_bytes: u64,
    /// Size of a cell of a submission, in bytes of text.
    pub cell_bytes: usize,
    /// Size of a JSON body, in bytes.
    pub json_bytes: usize,
    /// Size of the JSON body of a job, in bytes.
    pub job_json_bytes: usize,
    /// Memory for the tables of one job, in bytes.
    pub job_bytes: u64,
    /// Number of columns of a dataset.
    pub columns: usize,
    /// Size of a taxonomy.
    pub taxonomy: TreeLimits,
    /// Number of uploads read at once; further ones wait.
    pub concurrent_uploads: usize,
    /// How long tokens may live.
    pub token_lifetime: TokenLifetime,
    /// Whether organizations get the secrets of their tokens by enrolment codes.
    pub enrolment: bool,
    /// Number of uploads of one organization read at once; 0 for no limit.
    pub uploads_per_organization: usize,
    /// Longest wait of an upload.
    pub upload_wait: Duration,
    /// Shares of each organization.
    pub quotas: Quotas,
    /// Event streams that may be open.
    pub streams: StreamLimits,
}

impl Limits {
    /// The bytes that a table of these submissions needs. `plans` are the combinations of one job; if
    /// there are none, the table is only read.
    ///
    /// # Errors
    /// `limit_exceeded` if it never fits, with the memory needed and the limit.
    pub(crate) fn table_bytes(
        &self,
        memory: &MemoryBudget,
        schema: &Schema,
        plans: &[JobPlan],
        size: SubmissionsSize,
    ) -> Result<u64, Problem> {
        TableLimits::new(self.job_bytes, memory).needed(schema, plans, size)
    }
}
