//! The audit log, as auditors read it.

use crate::roles::Caller;
use crate::store::audit::{self, Event};

use super::page::{Listing, PageRequest};
use super::{Service, ServiceError};

impl Service {
    /// The events of the caller's organization, newest first. The cursor is the id of an event.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_events(
        &self,
        caller: Caller,
        page: PageRequest,
    ) -> Result<Listing<Event>, ServiceError> {
        let (organization, limit) = (caller.organization, page.rows_to_query());
        let rows = audit::list(&self.store, organization, page.after, limit).await?;
        Ok(Listing::new(rows, page, |event| event.id.0))
    }
}
