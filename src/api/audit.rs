//! `/v1/audit`.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream, TryStreamExt};
use serde::Deserialize;
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use utoipa::IntoParams;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use uuid::Uuid;

use crate::db::audit::{self, Action, Event, EventFilter, EventOrder, NewEvent, Outcome};
use crate::db::{StoreError, audit_chain, token_validity};
use crate::problem::{Code, Problem};

use super::error::ApiError;
use super::extract::{LogReader, Parameters};
use super::page::{Page, page_request};
use super::response::permitted_body::while_permitted;
use super::state::CallerApp;

/// The problems that are recorded.
const REFUSALS: [Code; 4] = [
    Code::BelowPolicy,
    Code::OfficerRequired,
    Code::ApprovalRequired,
    Code::CompositionRisk,
];

/// Number of events that an export reads at once.
const EXPORT_BATCH: i64 = 1_000;

/// Which events are read, and how.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Items on a page, 1 to 1000; 100 when omitted.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    #[param(pattern = "^[0-9]{1,18}$")]
    pub cursor: Option<String>,
    /// Events at this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    pub from: Option<String>,
    /// Events before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    pub to: Option<String>,
    /// Events of this action, such as `release.fetched`.
    #[param(schema_with = action_schema)]
    pub action: Option<String>,
    /// Events with this token, given by its id, or of this person, given as the OIDC issuer names
    /// them.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\x00]+$")]
    pub actor: Option<String>,
    /// `json`, a page, when omitted; `ndjson` exports all events that pass the filter, oldest
    /// first, one a line, and takes neither `limit` nor `cursor`.
    #[param(pattern = "^(json|ndjson)$")]
    pub format: Option<String>,
}

/// The words of the actions, so that a client knows them without an event.
fn action_schema() -> Object {
    let words = Action::ALL.iter().map(|action| action.as_str());
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words))
        .build()
}

impl AuditQuery {
    fn filter(&self) -> Result<EventFilter, Problem> {
        let action = self.action.as_deref().map(|name| {
            let mut actions = Action::ALL.iter().map(|action| action.as_str());
            actions.find(|known| *known == name).ok_or_else(|| {
                invalid("`action` is none of the log's; an event has it, such as `release.fetched`")
            })
        });
        let actor = self.actor.as_deref().map(|actor| {
            let is_name = !actor.is_empty() && actor.len() <= 255 && !actor.contains('\0');
            match Uuid::parse_str(actor) {
                Ok(id) => Ok(id.to_string()),
                Err(_) if is_name => Ok(actor.to_owned()),
                Err(_) => Err(invalid(
                    "`actor` must be the id of a token, or an OIDC subject",
                )),
            }
        });
        Ok(EventFilter {
            from: instant("from", self.from.as_deref())?,
            to: instant("to", self.to.as_deref())?,
            action: action.transpose()?.map(str::to_owned),
            actor: actor.transpose()?,
        })
    }

    /// Whether all events are exported.
    fn is_export(&self) -> Result<bool, Problem> {
        match self.format.as_deref() {
            None | Some("json") => Ok(false),
            Some("ndjson") if self.limit.is_some() || self.cursor.is_some() => Err(Problem::new(
                Code::InvalidValue,
                "an export has all events; leave `limit` and `cursor` out, or use `from` and `to`",
            )),
            Some("ndjson") => Ok(true),
            Some(_) => Err(invalid("`format` must be `json` or `ndjson`")),
        }
    }
}

fn instant(name: &str, text: Option<&str>) -> Result<Option<OffsetDateTime>, Problem> {
    let parse = |text| OffsetDateTime::parse(text, &Rfc3339);
    text.map(parse).transpose().map_err(|_| {
        invalid(format!(
            "`{name}` must be a time of RFC 3339, such as 2026-11-23T00:00:00Z"
        ))
    })
}

fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidParameter, detail)
}

/// List the events of the caller's organization, newest first
///
/// The events of an organization are a chain: `hash` is the SHA-256 of `previous_hash`, a line feed,
/// and the JSON text of `{action, address, at, detail, id, organization_id, outcome, seq, subject,
/// token_id}` with sorted field names and without white space. `pais audit verify` checks the stored chain.
#[utoipa::path(get, path = "/v1/audit", tag = "audit", params(AuditQuery),
    responses(
        (status = 200, description = "A page, or all events", content((Page<Event> = "application/json"), (String = "application/x-ndjson"))),
        (status = 400, description = "`invalid_parameter`"),
        (status = 422, description = "`invalid_value`: an export with `limit` or `cursor`"),
    ))]
pub(super) async fn list(
    LogReader(app): LogReader,
    Parameters(query): Parameters<AuditQuery>,
) -> Result<Response, ApiError> {
    let (filter, is_export) = (query.filter()?, query.is_export()?);
    if is_export {
        record_reading(&app, "export").await?;
        // Events that are committed but not chained yet.
        audit_chain::extend(&app.db, &app.keys).await?;
        // Later events, such as those after the end of the token, are no part of the export.
        let newest = EventOrder::NewestFirst(None);
        let newest = audit::list(&app.db, app.caller.organization, &filter, newest, 1).await?;
        let last = newest.first().map_or(0, |event| event.seq);
        let lines = batches(app.clone(), filter, last)
            .map_err(|error| cut_short(&error))
            .and_then(async |events| lines(&events));
        let body = while_permitted(Body::from_stream(lines), move || {
            let app = app.clone();
            async move {
                token_validity::is_valid(&app.db, app.caller.token)
                    .await
                    .unwrap_or(false)
            }
        });
        let media_type = [(header::CONTENT_TYPE, "application/x-ndjson")];
        return Ok((media_type, body).into_response());
    }
    let page = page_request(query.limit, query.cursor.as_deref())?;
    audit_chain::extend(&app.db, &app.keys).await?;
    let order = EventOrder::NewestFirst(page.after);
    let (organization, limit) = (app.caller.organization, page.rows_to_query());
    let rows = audit::list(&app.db, organization, &filter, order, limit).await?;
    // Further pages belong to the read that began with the first.
    if page.after.is_none() {
        record_reading(&app, "page").await?;
    }
    Ok(Json(Page::new(rows, page, |event| event.seq)).into_response())
}

async fn record_reading(app: &CallerApp, part: &str) -> Result<(), StoreError> {
    let log = app.caller.organization.0;
    let event = NewEvent::by(app.caller, Action::AuditRead, log, json!({ "part": part }));
    audit::record_alone(&app.db, event).await
}

/// The events of the caller's organization up to place `last`, oldest first.
fn batches(
    app: CallerApp,
    filter: EventFilter,
    last: i64,
) -> impl Stream<Item = Result<Vec<Event>, StoreError>> {
    stream::try_unfold(0, move |after| {
        let (app, filter) = (app.clone(), filter.clone());
        async move {
            let order = EventOrder::OldestFirst(after);
            let organization = app.caller.organization;
            let mut events =
                audit::list(&app.db, organization, &filter, order, EXPORT_BATCH).await?;
            events.retain(|event| event.seq <= last);
            let end = events.last().map(|event| event.seq);
            Ok(end.map(|end| (events, end)))
        }
    })
}

/// The error that ends the connection of an export, so that the client sees that it is incomplete.
fn cut_short(error: &StoreError) -> std::io::Error {
    tracing::error!(
        error = error as &dyn std::error::Error,
        "an export of the audit log was cut short"
    );
    std::io::Error::other("the export was cut short")
}

fn lines(events: &[Event]) -> Result<Bytes, std::io::Error> {
    let mut text = Vec::new();
    for event in events {
        serde_json::to_writer(&mut text, event)?;
        text.push(b'\n');
    }
    Ok(text.into())
}

impl CallerApp {
    /// The result of an action. If the holder's policy or the decision on several releases together refuses it,
    /// the refusal is recorded.
    ///
    /// # Errors
    /// That of the result; when the database fails.
    pub(crate) async fn recorded<T>(
        &self,
        action: Action,
        subject: Uuid,
        result: Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        if let Err(ApiError::Problem(problem)) = &result
            && REFUSALS.contains(&problem.code)
        {
            let detail = json!({ "code": problem.code.as_str() });
            let event = NewEvent {
                outcome: Outcome::Refused,
                ..NewEvent::by(self.caller, action, subject, detail)
            };
            audit::record_alone(&self.db, event).await?;
        }
        result
    }
}
