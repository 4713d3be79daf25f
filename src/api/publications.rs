//! `/v1/publications`: jobs that repeat for new rows are made, listed, changed and deleted.

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use pais_core::definition::{DatasetId, JobDefinition, Sweep, json};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::db::audit::Action;
use crate::db::datasets::StoredDataset;
use crate::db::policies;
use crate::db::publications::{
    self, NewPublication, NewRecipient, Publication, PublicationChange, PublicationPatch,
    ReceivedPublication, Trigger,
};
use crate::engine::publication_job;
use crate::ids::PublicationId;
use crate::problem::{Code, Problem};
use crate::roles::Role;

use super::datasets::find;
use super::error::{ApiError, done};
use super::extract::body::JobBody;
use super::extract::headers::require_json;
use super::extract::{Holder, JsonBody, Parameters, Path, ReleaseReader};
use super::page::{Page, PageQuery};
use super::response::created;
use super::state::CallerApp;
use super::text;

/// Maximum number of recipients of a publication.
const MOST_RECIPIENTS: usize = 100;

/// A publication to be made.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PublicationDefinition)]
pub(crate) struct PublicationDefinition {
    /// Its name, unique in the organization.
    #[schema(min_length = 1, max_length = 200)]
    pub name: String,
    /// The dataset whose rows it publishes.
    pub dataset_id: DatasetId,
    /// The job of each edition: as for `POST /v1/jobs`, without `dataset_id`, `submissions` and
    /// `release`, and with single values.
    #[schema(schema_with = edition_job)]
    pub job: Value,
    /// Who gets the editions.
    #[serde(default)]
    #[schema(max_items = 100)]
    pub recipients: Vec<NewRecipient>,
    /// The event that publishes an edition; `submission` when omitted.
    #[serde(default = "by_submission")]
    pub trigger: Trigger,
}

fn by_submission() -> Trigger {
    Trigger::Submission
}

/// A publication as its holder or a recipient sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum SeenPublication {
    /// Its holder.
    Held(Publication),
    /// A recipient.
    Received(ReceivedPublication),
}

impl SeenPublication {
    fn id(&self) -> PublicationId {
        match self {
            Self::Held(publication) => publication.id,
            Self::Received(publication) => publication.id,
        }
    }
}

/// Create a publication
///
/// Each edition has the rows of the dataset that no edition has yet. Its table fits the earlier ones:
/// its labels are those of the first edition or above them. All editions that a recipient has meet the
/// privacy model together; rows that would break it wait for a later edition. Where the dataset has
/// rows, the first edition of a publication by submission is queued at once.
#[utoipa::path(
    post, path = "/v1/publications", tag = "publications",
    request_body = PublicationDefinition,
    responses(
        (status = 201, description = "Created", body = Publication,
         headers(("Location" = String, description = "The publication"))),
        (status = 404, description = "`not_found`: no such dataset or recipient"),
        (status = 409, description = "`name_taken`"),
        (status = 422, description = "`invalid_privacy`, `invalid_job`, `invalid_value`, `invalid_name`; `below_policy`"),
    ),
)]
pub(super) async fn create(
    Holder(app): Holder,
    headers: HeaderMap,
    JobBody(body): JobBody,
) -> Result<impl IntoResponse, ApiError> {
    require_json(&headers)?;
    body.process(async move |body| {
        let mut new: PublicationDefinition = json::parse(&body)?;
        let dataset = new.dataset_id.0;
        let made = create_publication(&app, &mut new).await;
        let id = app
            .recorded(Action::PublicationCreated, dataset, made)
            .await?;
        app.settle_editions().await;
        let publication = load(&app, id).await?;
        Ok(created(format!("/v1/publications/{id}"), publication))
    })
    .await
}

async fn create_publication(
    app: &CallerApp,
    new: &mut PublicationDefinition,
) -> Result<PublicationId, ApiError> {
    let name = text::name(&new.name)?;
    check_recipients(app, &mut new.recipients)?;
    let dataset = find(app, app.caller.organization, new.dataset_id).await?;
    let dataset = dataset.ok_or_else(|| ApiError::not_found_at("/dataset_id"))?;
    let policy = policies::load(&app.db, app.caller.organization).await?;
    // The dataset is named beside the job.
    let below_job = |problem: Problem| {
        problem.map_pointers(|it| match it {
            "/dataset_id" => it.to_owned(),
            _ => format!("/job{it}"),
        })
    };
    let job = checked_job(&new.job, &dataset).map_err(below_job)?;
    policy.check_job(&job, &dataset.schema).map_err(below_job)?;
    let key = dataset.open_key(&app.keys)?;
    let stored = NewPublication {
        name: &name,
        dataset: dataset.id,
        key: &key,
        job: &new.job,
        recipients: &new.recipients,
        trigger: new.trigger,
        check: &|policy| policy.check_job(&job, &dataset.schema).map_err(below_job),
    };
    stored_id(publications::create(&app.db, app.caller, &stored).await?)
}

/// The schema of a job without the fields that differ by edition.
fn edition_job() -> RefOr<Schema> {
    let mut schema = JobDefinition::schema();
    if let RefOr::T(Schema::Object(job)) = &mut schema {
        let is_own = |name: &str| ["dataset_id", "submissions", "release"].contains(&name);
        job.properties.retain(|name, _| !is_own(name));
        job.required.retain(|name| !is_own(name));
        job.description =
            Some("The job of each edition: as for `POST /v1/jobs`, with single values.".to_owned());
    }
    schema
}

/// The job of the editions, which must permit editions that fit each other.
fn checked_job(sent: &Value, dataset: &StoredDataset) -> Result<JobDefinition, Problem> {
    let body = serde_json::to_vec(sent)
        .map_err(|_| Problem::new(Code::MalformedJson, "`job` is not a JSON document"))?;
    let job: JobDefinition = json::parse(&body)?;
    let sweep = Sweep::new(&job)?;
    publication_job::check(&job, &sweep, &dataset.schema)?;
    Ok(job)
}

fn check_recipients(app: &CallerApp, recipients: &mut [NewRecipient]) -> Result<(), Problem> {
    if recipients.len() > MOST_RECIPIENTS {
        let detail = format!("a publication has at most {MOST_RECIPIENTS} recipients");
        return Err(Problem::at(Code::InvalidValue, "/recipients", detail));
    }
    for (place, new) in recipients.iter_mut().enumerate() {
        let at = |field: &str| format!("/recipients/{place}/{field}");
        new.purpose = text::purpose(&new.purpose, &at("purpose"))?;
        text::check_end(new.expires_at, &at("expires_at"), app.db.now())?;
    }
    Ok(())
}

fn stored_id(change: PublicationChange) -> Result<PublicationId, ApiError> {
    let at = |place: usize| format!("/recipients/{place}/recipient");
    Err(match change {
        PublicationChange::Stored(id) => return Ok(id),
        PublicationChange::NotFound => ApiError::not_found(),
        PublicationChange::NameTaken => text::name_taken("a publication").into(),
        PublicationChange::NoRecipient(place) => Problem::at(
            Code::NotFound,
            at(place),
            "there is no organization with this name or id",
        )
        .into(),
        PublicationChange::RepeatedRecipient(place) => Problem::at(
            Code::InvalidValue,
            at(place),
            "this organization is there twice; name it once",
        )
        .into(),
        PublicationChange::NotInPolicy(place) => Problem::at(
            Code::BelowPolicy,
            at(place),
            "the policy's `recipients` does not name this organization",
        )
        .into(),
    })
}

/// List publications, oldest first
///
/// Without their jobs. A recipient gets those that it gets or has editions of, without their other
/// recipients; one that is deleted stays with its editions.
#[utoipa::path(
    get, path = "/v1/publications", tag = "publications", params(PageQuery),
    responses((status = 200, description = "A page", body = Page<SeenPublication>)),
)]
pub(super) async fn list(
    ReleaseReader(app): ReleaseReader,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Json<Page<SeenPublication>>, ApiError> {
    let page = query.parse()?;
    let (organization, limit) = (app.caller.organization, page.rows_to_query());
    let found: Vec<SeenPublication> = if app.caller.role == Role::Recipient {
        let found = publications::received(&app.db, organization, None, page.after, limit).await?;
        found.into_iter().map(SeenPublication::Received).collect()
    } else {
        let found = publications::list(&app.db, &app.keys, organization, page.after, limit).await?;
        found.into_iter().map(SeenPublication::Held).collect()
    };
    Ok(Json(Page::new(found, page, |publication| {
        publication.id().0
    })))
}

/// Look up a publication.
#[utoipa::path(
    get, path = "/v1/publications/{id}", tag = "publications",
    params(("id" = PublicationId, Path, description = "The publication")),
    responses((status = 200, description = "The publication", body = SeenPublication)),
)]
pub(super) async fn show(
    ReleaseReader(app): ReleaseReader,
    Path(id): Path<PublicationId>,
) -> Result<Json<SeenPublication>, ApiError> {
    if app.caller.role != Role::Recipient {
        return Ok(Json(SeenPublication::Held(load(&app, id).await?)));
    }
    let organization = app.caller.organization;
    let mut found = publications::received(&app.db, organization, Some(id), None, 1).await?;
    let found = found.pop().ok_or_else(ApiError::not_found)?;
    Ok(Json(SeenPublication::Received(found)))
}

/// Change a publication: pause or resume it, and replace its recipients
///
/// A recipient that is left out gets no further editions and keeps the earlier ones; one that is added
/// gets the editions from now on.
#[utoipa::path(
    patch, path = "/v1/publications/{id}", tag = "publications",
    params(("id" = PublicationId, Path, description = "The publication")),
    request_body = PublicationPatch,
    responses(
        (status = 200, description = "The publication from now on", body = Publication),
        (status = 422, description = "`invalid_value`; `below_policy`"),
    ),
)]
pub(super) async fn change(
    Holder(app): Holder,
    Path(id): Path<PublicationId>,
    JsonBody(mut patch, _memory): JsonBody<PublicationPatch>,
) -> Result<Response, ApiError> {
    check_recipients(&app, patch.recipients.as_deref_mut().unwrap_or_default())?;
    let changed = publications::change(&app.db, app.caller, id, &patch).await?;
    app.recorded(Action::PublicationChanged, id.0, stored_id(changed))
        .await?;
    app.settle_editions().await;
    Ok(Json(load(&app, id).await?).into_response())
}

/// Delete a publication
///
/// Its editions stay released. An edition that is not published yet is cancelled.
#[utoipa::path(
    delete, path = "/v1/publications/{id}", tag = "publications",
    params(("id" = PublicationId, Path, description = "The publication")),
    responses((status = 204, description = "Deleted")),
)]
pub(super) async fn delete(
    Holder(app): Holder,
    Path(id): Path<PublicationId>,
) -> Result<StatusCode, ApiError> {
    let status = done(publications::delete(&app.db, app.caller, id).await?)?;
    app.wake.notify_waiters();
    app.settle_editions().await;
    Ok(status)
}

/// A publication of the caller's organization.
///
/// # Errors
/// `not_found`.
async fn load(app: &CallerApp, id: PublicationId) -> Result<Publication, ApiError> {
    let found = publications::load(&app.db, &app.keys, app.caller.organization, id).await?;
    found.ok_or_else(ApiError::not_found)
}
