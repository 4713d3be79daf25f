//! The audit log, as auditors read it.

use futures_util::stream::{self, Stream};
use serde_json::json;
use uuid::Uuid;

use crate::db::audit::{self, Action, Event, EventFilter, EventOrder, NewEvent, Outcome};
use crate::db::audit_chain;
use crate::problem::Code;
use crate::roles::Caller;

use super::{ApiError, App};
use crate::api::page::{Page, PageRequest};

/// The problems that are recorded.
const REFUSALS: [Code; 3] = [
    Code::BelowPolicy,
    Code::ApprovalRequired,
    Code::CompositionRisk,
];

/// Number of events that an export reads at once.
const EXPORT_BATCH: i64 = 1_000;

impl App {
    /// The events of the caller's organization, newest first. The cursor is the place of an event in
    /// the log. Events that are committed but not chained yet are chained first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_events(
        &self,
        caller: Caller,
        filter: &EventFilter,
        page: PageRequest<i64>,
    ) -> Result<Page<Event>, ApiError> {
        audit_chain::extend(&self.db, &self.keys).await?;
        let order = EventOrder::NewestFirst(page.after);
        let (organization, limit) = (caller.organization, page.rows_to_query());
        let rows = audit::list(&self.db, organization, filter, order, limit).await?;
        // Further pages belong to the read that began with the first.
        if page.after.is_none() {
            self.record_reading(caller, "page").await?;
        }
        Ok(Page::new(rows, page, |event| event.seq))
    }

    /// The events of the caller's organization, oldest first, in batches of an export.
    ///
    /// # Errors
    /// When the database fails; that of a later batch is an item of the stream.
    pub async fn export_events(
        &self,
        caller: Caller,
        filter: EventFilter,
    ) -> Result<impl Stream<Item = Result<Vec<Event>, ApiError>> + use<>, ApiError> {
        self.record_reading(caller, "export").await?;
        audit_chain::extend(&self.db, &self.keys).await?;
        let store = self.db.clone();
        Ok(stream::try_unfold(Some(0), move |after| {
            let (store, filter) = (store.clone(), filter.clone());
            async move {
                let Some(after) = after else { return Ok(None) };
                let order = EventOrder::OldestFirst(after);
                let organization = caller.organization;
                let events = audit::list(&store, organization, &filter, order, EXPORT_BATCH);
                let events = events.await?;
                let last = events.last().map(|event| event.seq);
                Ok(last.map(|last| (events, Some(last))))
            }
        }))
    }

    /// The result of an action. Where the holder's policy or the decision on several releases together
    /// refuses it, that is recorded.
    ///
    /// # Errors
    /// That of the result; when the database fails.
    pub(super) async fn recorded<T>(
        &self,
        caller: Caller,
        (action, subject): (Action, Uuid),
        result: Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        if let Err(ApiError::Problem(problem)) = &result
            && REFUSALS.contains(&problem.code)
        {
            let detail = json!({ "code": problem.code.as_str() });
            let event = NewEvent {
                outcome: Outcome::Refused,
                ..NewEvent::by(caller, action, subject, detail)
            };
            audit::record_alone(&self.db, event).await?;
        }
        result
    }

    async fn record_reading(&self, caller: Caller, part: &str) -> Result<(), ApiError> {
        let log = caller.organization.0;
        let event = NewEvent::by(caller, Action::AuditRead, log, json!({ "part": part }));
        Ok(audit::record_alone(&self.db, event).await?)
    }
}
