//! Server-sent events of jobs and editions. All watchers of a job or a publication share one poll.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::db::token_validity;
use crate::ids::TokenId;
use crate::jobs::JobKey;

use self::shared_polls::{Polled, SharedPolls};
use self::streams::{StreamLimits, StreamPlace, Streams};
use super::state::CallerApp;

pub(in crate::api) mod editions;
pub(in crate::api) mod jobs;
mod shared_polls;
pub mod streams;

/// Time between two comments, which keep proxies from closing a quiet stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Time between two queries of a job, which another process may run.
const JOB_INTERVAL: Duration = Duration::from_millis(200);

/// Time between two queries of the editions of a publication.
const EDITIONS_INTERVAL: Duration = Duration::from_millis(400);

/// Time between two checks of a token. Without them, a stream would outlast the revocation of its
/// token.
const TOKEN_INTERVAL: Duration = Duration::from_secs(2);

/// The polls of this process. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Watching {
    streams: Streams,
    jobs: Arc<SharedPolls<JobKey, jobs::SeenJob>>,
    editions: Arc<SharedPolls<editions::Watched, Vec<editions::SeenEdition>>>,
    /// Whether tokens are valid.
    tokens: Arc<SharedPolls<TokenId, ()>>,
}

impl Watching {
    /// `attempts` has the job whose attempt in this process ended last.
    pub(crate) fn new(limits: StreamLimits, attempts: watch::Receiver<Option<JobKey>>) -> Self {
        Self {
            streams: Streams::new(limits),
            jobs: SharedPolls::new(JOB_INTERVAL, Some(attempts)),
            editions: SharedPolls::new(EDITIONS_INTERVAL, None),
            tokens: SharedPolls::new(TOKEN_INTERVAL, None),
        }
    }
}

/// The validity of the caller's token. The sender is gone when the token is not valid any more.
fn watched_token(app: &CallerApp) -> watch::Receiver<()> {
    let (store, token) = (app.db.clone(), app.caller.token);
    let poll = move || {
        let store = store.clone();
        async move {
            let is_valid = token_validity::is_valid(&store, token).await?;
            Ok(if is_valid {
                Polled::Now(())
            } else {
                Polled::Gone
            })
        }
    };
    app.watching.tokens.watch(token, (), poll)
}

/// What a stream watches, until the token of its caller is not valid or the service stops.
struct Watch<V> {
    values: watch::Receiver<V>,
    /// Has no sender any more when the token is not valid.
    token: watch::Receiver<()>,
    shutdown: CancellationToken,
    _place: StreamPlace,
}

impl<V: Clone> Watch<V> {
    /// The first value is that which there is already.
    fn new(app: &CallerApp, place: StreamPlace, mut values: watch::Receiver<V>) -> Self {
        values.mark_changed();
        Self {
            values,
            token: watched_token(app),
            shutdown: app.shutdown.clone(),
            _place: place,
        }
    }

    /// The next value. `None` when the service stops, or the caller may no longer see it.
    async fn next(&mut self) -> Option<V> {
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => None,
            // Its value never changes, so this is its end.
            _ = self.token.changed() => None,
            changed = self.values.changed() => {
                changed.ok()?;
                Some(self.values.borrow_and_update().clone())
            }
        }
    }
}
