//! Permits for requests that hold a whole table in memory. They bound the number of such requests.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ServiceError;

/// Number of tables of one kind that requests hold in memory at once; further requests wait.
const TABLES_AT_ONCE: usize = 2;

/// The kind of table that a request holds in memory.
#[derive(Clone, Copy, Debug)]
pub enum TableKind {
    /// A raw table. A computation on it may take minutes.
    Raw,
    /// A released table to be rendered. It does not wait for raw ones.
    Released,
}

/// The permits of this process. Clones share them.
#[derive(Clone, Debug)]
pub struct TablePermits {
    raw: Arc<Semaphore>,
    released: Arc<Semaphore>,
}

/// A permit, which is returned when it is dropped.
#[derive(Debug)]
#[must_use]
pub struct TablePermit {
    _permit: OwnedSemaphorePermit,
}

impl Default for TablePermits {
    fn default() -> Self {
        let permits = || Arc::new(Semaphore::new(TABLES_AT_ONCE));
        Self {
            raw: permits(),
            released: permits(),
        }
    }
}

impl TablePermits {
    /// Waits for a permit.
    ///
    /// # Errors
    /// `unavailable` when the service stops.
    pub async fn acquire(&self, kind: TableKind) -> Result<TablePermit, ServiceError> {
        let permits = match kind {
            TableKind::Raw => &self.raw,
            TableKind::Released => &self.released,
        };
        let permit = permits.clone().acquire_owned().await;
        let _permit = permit.map_err(|_| ServiceError::stopping())?;
        Ok(TablePermit { _permit })
    }
}
