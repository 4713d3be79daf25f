//! `/v1/releases/{id}/composition`: what a release discloses together with all that a recipient knows about its
//! dataset.

use axum::Json;
use pais_core::codebook::views;
use pais_core::definition::SubmissionId;
use pais_verify::Composition;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use utoipa::{IntoParams, ToSchema};

use crate::db::audit::{self, Action, NewEvent};
use crate::db::datasets::StoredDataset;
use crate::db::organizations;
use crate::db::releases::{self, StoredRelease};
use crate::db::submissions::{self, SubmissionRows, Which};
use crate::engine::composition_tables::{
    self, CompositionResult, PartsError, StoredParts, UnknownRows,
};
use crate::ids::ReleaseId;
use crate::problem::{Code, Problem};

use super::datasets::find;
use super::error::ApiError;
use super::extract::{Parameters, Path, Staff};
use super::raw_rows::RawRows;
use super::releases::load_release;
use super::state::CallerApp;

/// Whose releases are considered.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CompositionQuery {
    /// Name or id of an organization.
    #[param(min_length = 1)]
    pub recipient: String,
}

/// What a release says together with all releases of its dataset that a recipient may read or has
/// fetched.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct CompositionDocument {
    /// Whether the privacy models of the releases hold for an adversary who has all of them and can
    /// match their rows.
    pub holds: bool,
    /// The releases that were considered, this one first.
    pub releases: Vec<ReleaseId>,
    /// Records, or persons, of the smallest group that such an adversary finds; null where it could
    /// not be decided.
    pub smallest_group: Option<u64>,
    /// The greatest confidence in a sensitive value, from 0 to 1; null where it could not be decided.
    pub greatest_confidence: Option<f64>,
    /// Whether the decision is exact; otherwise it is on the safe side.
    pub exact: bool,
    /// Why it does not hold, or cannot be decided; null where it holds.
    pub reason: Option<String>,
    /// Releases of other datasets that the recipient may read or has fetched and that share the names of at
    /// least two columns with this one. They may be about the same persons; `holds` says nothing about them.
    pub not_compared: Vec<ReleaseId>,
}

/// Look up what a release and a recipient's other releases say together
///
/// The same decision as before a grant of the release to the recipient, which changes nothing.
#[utoipa::path(
    get, path = "/v1/releases/{id}/composition", tag = "releases",
    params(("id" = ReleaseId, Path, description = "The release"), CompositionQuery),
    responses(
        (status = 200, description = "The decision", body = CompositionDocument),
        (status = 404, description = "`not_found`: no such release or recipient"),
        (status = 410, description = "`withdrawn`"),
        (status = 422, description = "`limit_exceeded`"),
    ),
)]
pub(super) async fn show(
    Staff(app): Staff,
    Path(release): Path<ReleaseId>,
    Parameters(query): Parameters<CompositionQuery>,
) -> Result<Json<CompositionDocument>, ApiError> {
    let release = load_release(&app, release).await?;
    if release.withdrawn.is_some() {
        return Err(ApiError::withdrawn());
    }
    let mut connection = app.db.connection().await?;
    let recipient = organizations::find(&mut *connection, &query.recipient).await?;
    let recipient = recipient.ok_or_else(ApiError::not_found)?;
    let known = releases::known_releases(
        &mut *connection,
        recipient.id,
        release.dataset,
        Some(release.id),
        app.db.now(),
    )
    .await?;
    let similar =
        releases::similar_known_releases(&mut *connection, recipient.id, &release, app.db.now());
    let not_compared = similar.await?;
    drop(connection);
    let id = release.id;
    let found = CompositionDocument {
        not_compared,
        ..compose(&app, release, &known).await?
    };
    let detail = json!({ "recipient": recipient.name, "holds": found.holds });
    let event = NewEvent::by(app.caller, Action::CompositionRead, id.0, detail);
    audit::record_alone(&app.db, event).await?;
    Ok(Json(found))
}

impl CompositionDocument {
    /// If it cannot be decided, nothing is known to hold.
    fn undecided(releases: Vec<ReleaseId>, reason: impl Into<String>) -> Self {
        Self {
            holds: false,
            releases,
            smallest_group: None,
            greatest_confidence: None,
            exact: false,
            reason: Some(reason.into()),
            not_compared: Vec::new(),
        }
    }

    /// The problem of a grant that it forbids.
    pub(super) fn problem(&self) -> Problem {
        let others = self.releases.iter().skip(1);
        let others: Vec<String> = others.map(ReleaseId::to_string).collect();
        let detail = format!(
            "together with what the recipient has or may read of the dataset ({}), {}; give another \
             release, end the other grants before they are used, or say in \
             `acknowledge_composition_risk` why the risk is taken",
            others.join(", "),
            self.reason
                .as_deref()
                .unwrap_or("the release is no longer private")
        );
        Problem::new(Code::CompositionRisk, detail)
    }
}

/// What a release discloses together with others of its dataset, without those that are not compared.
///
/// # Errors
/// `limit_exceeded` if the tables do not fit into memory; `busy`.
pub(super) async fn compose(
    app: &CallerApp,
    release: StoredRelease,
    others: &[ReleaseId],
) -> Result<CompositionDocument, ApiError> {
    let ids: Vec<ReleaseId> = std::iter::once(release.id)
        .chain(others.iter().copied())
        .collect();
    if others.is_empty() {
        return Ok(alone(&[release], ids));
    }
    let Some(dataset) = find(app, release.organization, release.dataset).await? else {
        return Ok(CompositionDocument::undecided(
            ids,
            "it cannot be decided whether the privacy model holds, because the dataset was \
             deleted with its rows",
        ));
    };
    let stored = match load_parts(app, &dataset, &ids).await {
        Ok(stored) => stored,
        Err(PartsError::Store(error)) => return Err(error.into()),
        Err(PartsError::Unknown(unknown)) => {
            let reason =
                format!("it cannot be decided whether the privacy model holds, because {unknown}");
            return Ok(CompositionDocument::undecided(ids, reason));
        }
    };
    let parts = stored.parts.iter();
    let releases: Vec<StoredRelease> = parts.map(|part| part.release.clone()).collect();
    Ok(match decide(app, dataset, stored).await? {
        CompositionResult::Decided(found) if found.joined.is_empty() => alone(&releases, ids),
        CompositionResult::Decided(found) => joined(&found, &releases, ids),
        CompositionResult::Undecided(error) => CompositionDocument::undecided(
            ids,
            format!("it cannot be decided whether the privacy model holds: {error}"),
        ),
    })
}

/// Releases as they are stored.
struct StoredReleases {
    parts: Vec<StoredParts>,
    /// The submissions of their jobs, in the order in which rows are loaded.
    submissions: Vec<SubmissionRows>,
}

async fn load_parts(
    app: &CallerApp,
    dataset: &StoredDataset,
    ids: &[ReleaseId],
) -> Result<StoredReleases, PartsError> {
    let store = &app.db;
    let key = dataset.open_key(&app.keys)?;
    let parts = composition_tables::load(store, &key, app.caller.organization, ids.to_vec());
    let parts = parts.await?;
    let present = submissions::rows_by_submission(store, dataset.id, Which::Stored).await?;
    let present: HashSet<SubmissionRows> = present.into_iter().collect();
    let read = parts.iter().flat_map(|part| &part.sources.submissions);
    let read: BTreeMap<SubmissionId, SubmissionRows> = read.map(|it| (it.id, *it)).collect();
    if !read.values().all(|it| present.contains(it)) {
        return Err(UnknownRows::Deleted.into());
    }
    Ok(StoredReleases {
        parts,
        submissions: read.into_values().collect(),
    })
}

async fn decide(
    app: &CallerApp,
    dataset: StoredDataset,
    stored: StoredReleases,
) -> Result<CompositionResult, ApiError> {
    let StoredReleases {
        mut parts,
        submissions,
    } = stored;
    let ids: Vec<SubmissionId> = submissions.iter().map(|it| it.id).collect();
    let which = Which::Listed(&ids);
    let size = submissions::size(&app.db, dataset.id, which).await?;
    let released = parts.iter().map(|part| part.bytes(size.rows));
    let schema = &dataset.schema;
    let views = views(schema, None, parts.iter().map(|part| &part.codebook));
    // The views are decided one after the other, the last one without a copy.
    let copies = match views.len() {
        0 | 1 => 0,
        _ => composition_tables::view_bytes(schema, size),
    };
    let rows = RawRows {
        which,
        size,
        plans: &[],
        extra_bytes: released
            .chain([composition_tables::combination_bytes(schema, size)])
            .fold(copies, u64::saturating_add),
    };
    let loaded = rows.load(app, dataset).await?;
    for part in &mut parts {
        part.load_chunks(&app.db).await?;
    }
    let decided = loaded.work(move |_, table, work| {
        composition_tables::decide(parts, &views, table, &submissions, work)
    });
    decided.await
}

/// The finding if no two releases had to be joined: the verification of each holds.
fn alone(releases: &[StoredRelease], ids: Vec<ReleaseId>) -> CompositionDocument {
    let found = || {
        releases
            .iter()
            .filter_map(|release| release.verification.as_ref())
    };
    let smallest = found().filter_map(|found| found["smallest_group"].as_u64());
    let greatest = found().filter_map(|found| {
        let bounded = found["greatest_bounded_confidence"].as_f64();
        bounded.or_else(|| found["greatest_confidence"].as_f64())
    });
    CompositionDocument {
        holds: true,
        releases: ids,
        smallest_group: smallest.min(),
        greatest_confidence: greatest.reduce(f64::max),
        exact: true,
        reason: None,
        not_compared: Vec::new(),
    }
}

/// The note on a conservative finding.
const BOUND: &str =
    " (a bound: the labels of some releases overlap, or persons have rows in several)";

fn joined(
    found: &Composition,
    releases: &[StoredRelease],
    ids: Vec<ReleaseId>,
) -> CompositionDocument {
    let broken = found.broken.and_then(|position| releases.get(position));
    let reason = broken.map(|release| {
        let model = release.privacy["model"].as_str();
        format!(
            "the model `{}` of release {} does not hold: an adversary who can match their rows finds \
             a group of {}, and a confidence of {:.3} in a sensitive value{}",
            model.unwrap_or("of the release"),
            release.id,
            found.smallest_group.unwrap_or(0),
            found.greatest_confidence.unwrap_or(0.0),
            if found.exact { "" } else { BOUND },
        )
    });
    CompositionDocument {
        holds: found.holds,
        releases: ids,
        smallest_group: found.smallest_group,
        greatest_confidence: found.greatest_confidence,
        exact: found.exact,
        reason,
        not_compared: Vec::new(),
    }
}
