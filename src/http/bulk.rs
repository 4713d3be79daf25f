//! Requests that hold a whole table in memory: few at a time, on threads that may block.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::domain::Code;

use super::ApiError;

/// Tables held in memory by requests at once; further requests wait.
const TABLES: usize = 2;

static PLACES: Semaphore = Semaphore::const_new(TABLES);

/// Waits for a place, which is free again when the permit is dropped.
///
/// # Errors
/// `unavailable` when the process is ending.
pub async fn place() -> Result<SemaphorePermit<'static>, ApiError> {
    let place = PLACES.acquire().await;
    place.map_err(|_| ApiError::new(Code::Unavailable, "the service is stopping"))
}
