//! `/v1/publications/{id}/events`: the editions of a publication as server-sent events.

use std::collections::VecDeque;
use std::time::Duration;

use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

use crate::api::error::ApiError;
use crate::api::extract::{Path, ReleaseReader};
use crate::api::releases::viewer;
use crate::api::state::CallerApp;
use crate::db::editions::{self, Edition, EditionStatus, ReceivedEdition};
use crate::db::{StoreError, publications};
use crate::ids::{OrganizationId, PublicationId};
use crate::roles::Role;

use super::shared_polls::Polled;
use super::{KEEP_ALIVE_INTERVAL, Watch, watched_token};

/// Number of editions that are watched: the newest.
const WATCHED_EDITIONS: u32 = 10_000;

/// The editions of a publication as one organization sees them in one role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Watched {
    organization: OrganizationId,
    role: Role,
    publication: PublicationId,
}

/// An edition as its holder or a recipient sees it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum SeenEdition {
    /// Its holder: every edition.
    Held(Box<Edition>),
    /// A recipient: a published edition that it may read.
    Received(ReceivedEdition),
}

impl SeenEdition {
    /// Its number.
    pub(in crate::api) fn number(&self) -> u32 {
        match self {
            Self::Held(edition) => edition.number,
            Self::Received(edition) => edition.number,
        }
    }

    /// The edition in the states that it has passed through since it was last seen: between two polls, a job
    /// can run and end, and be approved.
    fn passed(&self, before: Option<&Self>) -> impl Iterator<Item = Self> {
        use EditionStatus::{AwaitingApproval, Failed, Published, Queued, Refused, Running};
        let before = before.and_then(Self::status);
        let (status, has_run, was_decided) = match self {
            Self::Held(edition) => (edition.status, edition.has_run, edition.was_decided),
            Self::Received(_) => (Published, false, false),
        };
        let has_ended = match status {
            Queued | Running => false,
            AwaitingApproval | Published => true,
            Failed | Refused => has_run,
        };
        let was_queued = before.is_none() && status != Queued;
        let was_running = has_ended && matches!(before, None | Some(Queued));
        let has_waited = was_decided
            && matches!(status, Published | Refused)
            && before != Some(AwaitingApproval);
        let passed = [
            was_queued.then_some(Queued),
            was_running.then_some(Running),
            has_waited.then_some(AwaitingApproval),
        ];
        passed
            .into_iter()
            .flatten()
            .filter_map(|status| match self {
                Self::Held(edition) => Some(Self::Held(Box::new(Edition {
                    status,
                    release_id: None,
                    rows: None,
                    held_back_rows: None,
                    is_base: None,
                    sha256: None,
                    published_at: None,
                    withdrawn_at: None,
                    error: None,
                    submissions: edition.submissions.clone(),
                    ..**edition
                }))),
                Self::Received(_) => None,
            })
    }

    /// Its state, for its holder.
    fn status(&self) -> Option<EditionStatus> {
        match self {
            Self::Held(edition) => Some(edition.status),
            Self::Received(_) => None,
        }
    }
}

/// Checks that the caller may see a publication.
///
/// # Errors
/// `not_found`.
pub(in crate::api) async fn check_visible(
    app: &CallerApp,
    id: PublicationId,
) -> Result<(), ApiError> {
    let is_visible = publications::is_visible(&app.db, viewer(app.caller), id).await?;
    is_visible.then_some(()).ok_or_else(ApiError::not_found)
}

/// The editions after a number, as the caller sees them.
pub(in crate::api) async fn seen(
    app: &CallerApp,
    id: PublicationId,
    after: u32,
    limit: i64,
) -> Result<Vec<SeenEdition>, StoreError> {
    let (db, caller) = (&app.db, app.caller);
    if caller.role == Role::Recipient {
        let found = editions::readable(db, viewer(caller), id, after, limit).await?;
        return Ok(found.into_iter().map(SeenEdition::Received).collect());
    }
    let found = editions::list(db, caller.organization, id, after, limit).await?;
    let found = found.into_iter().map(Box::new);
    Ok(found.map(SeenEdition::Held).collect())
}

/// One event of the stream.
#[derive(ToSchema)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
#[expect(dead_code, reason = "events are written by axum; this is their schema")]
enum EditionEvent {
    /// An edition is new, or its state has changed.
    Edition(SeenEdition),
}

/// Watch the editions of a publication
///
/// One `edition` event for each of the newest 10,000 editions, then one for each change of its state. A
/// recipient gets the published editions that it may read. The stream ends when the service stops or its token
/// is no longer valid: open it again. A token and an organization have a limited number of open streams;
/// further ones are answered 429.
#[utoipa::path(
    get, path = "/v1/publications/{id}/events", tag = "publications",
    params(("id" = PublicationId, Path, description = "The publication")),
    responses(
        (status = 200, description = "`edition` events; the schema is that of one event, whose `data` is \
         JSON text", body = EditionEvent, content_type = "text/event-stream"),
    ),
)]
pub(in crate::api) async fn watch(
    ReleaseReader(app): ReleaseReader,
    Path(id): Path<PublicationId>,
) -> Result<Sse<impl Stream<Item = Result<Event, axum::Error>>>, ApiError> {
    let place = app.watching.streams.open(app.caller)?;
    check_visible(&app, id).await?;
    let watcher = EditionWatcher {
        watch: Watch::new(&app, place, watched_editions(&app, id).await?),
        sent: None,
        waiting: VecDeque::new(),
    };
    let events = unfold(watcher, EditionWatcher::next);
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE_INTERVAL);
    Ok(Sse::new(events).keep_alive(keep_alive))
}

/// Waits until the caller sees an edition after a number, at most for `longest`, and no longer than its
/// token is valid. It takes the place of a stream.
///
/// # Errors
/// `quota_exceeded`; when the database fails.
pub(in crate::api) async fn wait_for_edition(
    app: &CallerApp,
    id: PublicationId,
    after: u32,
    longest: Duration,
) -> Result<(), ApiError> {
    let _place = app.watching.streams.open(app.caller)?;
    let (mut editions, mut token) = (watched_editions(app, id).await?, watched_token(app));
    let is_there = |seen: &Vec<SeenEdition>| seen.last().is_some_and(|it| it.number() > after);
    tokio::select! {
        _ = tokio::time::timeout(longest, editions.wait_for(is_there)) => Ok(()),
        // Its value never changes, so this is its end.
        _ = token.changed() => Err(ApiError::unauthenticated()),
        () = app.shutdown.cancelled() => Ok(()),
    }
}

/// The editions as the caller sees them, polled for all watchers of its organization and kind.
async fn watched_editions(
    app: &CallerApp,
    id: PublicationId,
) -> Result<watch::Receiver<Vec<SeenEdition>>, ApiError> {
    let key = Watched {
        organization: app.caller.organization,
        role: app.caller.role,
        publication: id,
    };
    if let Some(watched) = app.watching.editions.join(key) {
        return Ok(watched);
    }
    let now = newest(app, id).await?;
    let polled = app.clone();
    let poll = move || {
        let app = polled.clone();
        async move { Ok(Polled::Now(newest(&app, id).await?)) }
    };
    Ok(app.watching.editions.watch(key, now, poll))
}

/// The newest editions, as the caller sees them.
async fn newest(app: &CallerApp, id: PublicationId) -> Result<Vec<SeenEdition>, StoreError> {
    let before = editions::before_newest(&app.db, id, WATCHED_EDITIONS).await?;
    seen(app, id, before, WATCHED_EDITIONS.into()).await
}

struct EditionWatcher {
    watch: Watch<Vec<SeenEdition>>,
    /// `None` before the first events.
    sent: Option<Vec<SeenEdition>>,
    waiting: VecDeque<SeenEdition>,
}

impl EditionWatcher {
    /// The next event. `None` when the service stops or the token is not valid.
    async fn next(mut self) -> Option<(Result<Event, axum::Error>, Self)> {
        loop {
            if let Some(edition) = self.waiting.pop_front() {
                let event = Event::default().event("edition").json_data(&edition);
                return Some((event, self));
            }
            let now = self.watch.next().await?;
            match &self.sent {
                None => self.waiting.extend(now.iter().cloned()),
                Some(sent) => {
                    for edition in &now {
                        let number = edition.number();
                        let place = sent.binary_search_by_key(&number, SeenEdition::number);
                        let before = place.ok().map(|place| &sent[place]);
                        if before != Some(edition) {
                            self.waiting.extend(edition.passed(before));
                            self.waiting.push_back(edition.clone());
                        }
                    }
                }
            }
            self.sent = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;

    use super::SeenEdition;
    use crate::db::editions::{Edition, EditionStatus};
    use crate::ids::JobId;

    fn edition(status: EditionStatus) -> SeenEdition {
        SeenEdition::Held(Box::new(Edition {
            number: 1,
            status,
            submissions: Vec::new(),
            job_id: JobId::new(),
            release_id: None,
            rows: Some(7),
            held_back_rows: Some(0),
            is_base: Some(true),
            sha256: Some("00".to_owned()),
            created_at: OffsetDateTime::UNIX_EPOCH,
            published_at: Some(OffsetDateTime::UNIX_EPOCH),
            withdrawn_at: None,
            error: None,
            has_run: true,
            was_decided: false,
        }))
    }

    #[test]
    fn states_between_two_polls_are_seen_without_what_was_decided_later() {
        use EditionStatus::{AwaitingApproval, Failed, Published, Queued, Refused, Running};
        let passed_by = |now: SeenEdition, before: Option<EditionStatus>| -> Vec<EditionStatus> {
            let before = before.map(edition);
            let passed = now.passed(before.as_ref()).collect::<Vec<_>>();
            for seen in &passed {
                let SeenEdition::Held(seen) = seen else {
                    panic!("a holder sees what is held")
                };
                assert_eq!((seen.rows, seen.published_at), (None, None));
            }
            passed.iter().filter_map(SeenEdition::status).collect()
        };
        let passed = |now, before| passed_by(edition(now), before);
        assert_eq!(passed(Queued, None), []);
        assert_eq!(passed(Running, None), [Queued]);
        assert_eq!(passed(Published, None), [Queued, Running]);
        assert_eq!(passed(Published, Some(Queued)), [Running]);
        assert_eq!(passed(Published, Some(Running)), []);
        assert_eq!(passed(Failed, None), [Queued, Running]);
        assert_eq!(passed(Failed, Some(Queued)), [Running]);
        let with = |status, has_run, was_decided| match edition(status) {
            SeenEdition::Held(held) => SeenEdition::Held(Box::new(Edition {
                has_run,
                was_decided,
                ..*held
            })),
            seen => seen,
        };
        // A job that is cancelled while it waits fails without having run.
        let cancelled = || with(Failed, false, false);
        assert_eq!(passed_by(cancelled(), None), [Queued]);
        assert_eq!(passed_by(cancelled(), Some(Queued)), []);
        // An officer can decide at once.
        for decided in [Published, Refused] {
            let decided = || with(decided, true, true);
            let waited = [Running, AwaitingApproval];
            assert_eq!(passed_by(decided(), Some(Queued)), waited);
            assert_eq!(passed_by(decided(), Some(Running)), [AwaitingApproval]);
            assert_eq!(passed_by(decided(), Some(AwaitingApproval)), []);
        }
    }
}
