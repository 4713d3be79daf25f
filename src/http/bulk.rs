//! Requests that hold a whole table in memory: few at a time, on threads that may block.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::problem::Code;
use pais_anonymize::{JobPlan, PARALLEL_SEARCHES, release_bytes};
use pais_core::schema::Schema;

use super::{ApiError, AppState};

/// Tables of one kind that requests hold in memory at once; further requests wait.
const TABLES: usize = 2;

static RAW: Semaphore = Semaphore::const_new(TABLES);
static RELEASED: Semaphore = Semaphore::const_new(TABLES);

/// What a request holds in memory.
#[derive(Clone, Copy, Debug)]
pub enum Held {
    /// A raw table, perhaps computed with for minutes.
    Raw,
    /// A released one, to be rendered; it does not wait for those.
    Released,
}

/// Refuses a table of so many rows that a run of the jobs, the combinations of one that was sent,
/// or reading the table where there is none, would exceed `memory.job_bytes`.
///
/// # Errors
/// `limit_exceeded` with both figures.
pub fn check_fits(
    state: &AppState,
    schema: &Schema,
    plans: &[JobPlan],
    rows: u64,
) -> Result<(), ApiError> {
    let searches = plans.len().min(PARALLEL_SEARCHES) as u64;
    let needed = plans
        .iter()
        .map(|plan| plan.bytes_needed(schema, rows, searches));
    let needed = needed.max().unwrap_or_else(|| release_bytes(schema, rows));
    let limit = state.limits.job_bytes;
    if needed <= limit {
        return Ok(());
    }
    let detail = format!(
        "{rows} rows of this dataset need about {} MiB of memory, more than the {} MiB of \
         memory.job_bytes; choose fewer submissions, or have the limit raised",
        needed >> 20,
        limit >> 20
    );
    Err(ApiError::new(Code::LimitExceeded, detail))
}

/// Waits for a place, which is free again when the permit is dropped.
///
/// # Errors
/// `unavailable` when the process is ending.
pub async fn place(held: Held) -> Result<SemaphorePermit<'static>, ApiError> {
    let places = match held {
        Held::Raw => &RAW,
        Held::Released => &RELEASED,
    };
    let place = places.acquire().await;
    place.map_err(|_| ApiError::new(Code::Unavailable, "the service is stopping"))
}
