//! `/v1/audit`.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::TryStreamExt;
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use utoipa::IntoParams;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::api::error::ApiError;
use crate::api::extract::auth::Auditor;
use crate::api::extract::parameters::Parameters;
use crate::api::page::Page;
use crate::api::page::PageRequest;
use crate::api::page::page_request;
use crate::api::state::AppState;
use crate::db::audit::{Action, Event, EventFilter};
use crate::problem::{Code, Problem};

/// Which events are read, and how.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
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

    fn page(&self) -> Result<PageRequest<i64>, Problem> {
        page_request(self.limit, self.cursor.as_deref())
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

/// The routes of this resource.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list))
}

/// List the events of the auditor's organization, newest first
///
/// The events of an organization are a chain: `hash` is the SHA-256 of `previous_hash`, a line feed,
/// and the JSON text of `{action, at, detail, id, organization_id, seq, subject, token_id}` with
/// sorted field names and without white space. `pais audit verify` checks the stored chain.
#[utoipa::path(get, path = "/v1/audit", tag = "audit", params(AuditQuery),
    responses(
        (status = 200, description = "A page, or all events", content((Page<Event> = "application/json"), (String = "application/x-ndjson"))),
        (status = 400, description = "`invalid_parameter`"),
        (status = 422, description = "`invalid_value`: an export with `limit` or `cursor`"),
    ))]
async fn list(
    State(state): State<AppState>,
    Auditor(caller): Auditor,
    Parameters(query): Parameters<AuditQuery>,
) -> Result<Response, ApiError> {
    let filter = query.filter()?;
    if !query.is_export()? {
        let page = query.page()?;
        let events = state.of(caller).list_events(caller, &filter, page).await?;
        return Ok(Json(Page::from(events)).into_response());
    }
    let batches = state.of(caller).export_events(caller, filter).await?;
    let lines = batches
        .map_err(|error| cut_short(&error))
        .and_then(async |events| lines(&events));
    let media_type = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((media_type, Body::from_stream(lines)).into_response())
}

/// The error that ends the connection of an export, so that the client sees that it is not whole.
fn cut_short(error: &ApiError) -> std::io::Error {
    tracing::error!(%error, "an export of the audit log was cut short");
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
