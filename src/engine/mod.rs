//! Work on tables for workers and requests: what both need between the database and the library
//! crates, without HTTP. Functions fail with [`WorkError`], also when the database fails.
//!
//! - `table_memory`, `fair_slots`, `table_work`: the memory and the slots that work waits for.
//! - `load_rows`, `ingest`: raw rows out of the database and into it.
//! - `locations`: files of raw rows and of releases, which are not in the database.
//! - `attempt`, `edition_attempt`, `records`: the search of a job, or the decision of an edition, and its
//!   results as they are stored.
//! - `scaled_attempt`: the same over rows that an executor counts.
//! - `release_packing`, `rendering`, `rendered_tables`, `stacked_editions`: released tables in the database and in
//!   files.
//! - `publication_job`: which jobs can be repeated.
//! - `composition_tables`: what releases disclose together. `data_package`: the description of a package.

pub(crate) mod attempt;
pub(crate) mod composition_tables;
pub(crate) mod data_package;
pub(crate) mod edition_attempt;
pub(crate) mod fair_slots;
pub(crate) mod ingest;
pub mod load_rows;
pub mod locations;
pub(crate) mod publication_job;
pub mod records;
pub(crate) mod release_packing;
pub(crate) mod rendered_tables;
pub(crate) mod rendering;
#[cfg(feature = "scale")]
pub(crate) mod scaled_attempt;
pub(crate) mod stacked_editions;
pub(crate) mod table_memory;
pub(crate) mod table_work;

use pais_seal::SealError;
use thiserror::Error;

use crate::db::StoreError;
use crate::problem::{Code, Problem};
use crate::telemetry;

/// Why work on a table ended without a result.
#[derive(Debug, Error)]
pub enum WorkError {
    /// It is not possible, or it was cancelled.
    #[error(transparent)]
    Problem(Problem),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The thread that did the work panicked.
    #[error("the thread that did the work panicked")]
    Panicked,
}

impl From<SealError> for WorkError {
    fn from(error: SealError) -> Self {
        Self::Store(error.into())
    }
}

impl<E: Into<Problem>> From<E> for WorkError {
    fn from(error: E) -> Self {
        Self::Problem(error.into())
    }
}

/// Runs `work` on a thread that may block. Returns its result.
///
/// # Errors
/// Those of `work`; [`WorkError::Panicked`] if it panicked.
pub(crate) async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkError> + Send + 'static,
) -> Result<T, WorkError> {
    match tokio::task::spawn_blocking(telemetry::carry(work)).await {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => Err(WorkError::Panicked),
        Err(_) => Err(Problem::new(Code::Cancelled, "the service is stopping").into()),
    }
}
