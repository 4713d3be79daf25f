//! Shared polls: a resource is queried once per interval, whatever the number of watchers. The poll
//! ends with its last watcher.

use std::collections::HashMap;
use std::fmt::Debug;
use std::future::pending;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::db::StoreError;

/// The result of a poll.
pub(super) enum Polled<V> {
    /// The present value.
    Now(V),
    /// The last value: the poll ends.
    Last(V),
    /// There is no value any more: the poll ends.
    Gone,
}

/// Polled resources by their keys.
#[derive(Debug)]
pub(super) struct SharedPolls<K, V> {
    polls: Mutex<HashMap<K, watch::Sender<V>>>,
    every: Duration,
    /// The resource that changed last.
    changes: Option<watch::Receiver<Option<K>>>,
}

impl<K, V> SharedPolls<K, V>
where
    K: Copy + Debug + Eq + Hash + Send + Sync + 'static,
    V: PartialEq + Send + Sync + 'static,
{
    /// Starts without polls. Resources are queried once per `every`, and at once if `changes` names them. Some
    /// of several simultaneous changes may be missed.
    pub(super) fn new(every: Duration, changes: Option<watch::Receiver<Option<K>>>) -> Arc<Self> {
        Arc::new(Self {
            polls: Mutex::default(),
            every,
            changes,
        })
    }

    /// Watches a resource that others already watch; `None` if nobody does.
    pub(super) fn join(&self, key: K) -> Option<watch::Receiver<V>> {
        self.polls.lock().get(&key).map(watch::Sender::subscribe)
    }

    /// Watches a resource. For the first watcher its value is `now`, and `poll` queries it from then on; a
    /// failure is logged and the query is repeated. When the poll ends, the receiver reports that its
    /// sender is gone.
    pub(super) fn watch<F>(
        self: &Arc<Self>,
        key: K,
        now: V,
        poll: impl Fn() -> F + Send + 'static,
    ) -> watch::Receiver<V>
    where
        F: Future<Output = Result<Polled<V>, StoreError>> + Send + 'static,
    {
        let mut polls = self.polls.lock();
        if let Some(sender) = polls.get(&key) {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(now);
        polls.insert(key, sender);
        drop(polls);
        tokio::spawn(self.clone().keep_polling(key, poll));
        receiver
    }

    async fn keep_polling<F>(self: Arc<Self>, key: K, poll: impl Fn() -> F)
    where
        F: Future<Output = Result<Polled<V>, StoreError>>,
    {
        let mut ticks = interval_at(Instant::now() + self.every, self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut changes = self.changes.clone();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = has_changed(&mut changes, key) => ticks.reset(),
            }
            if self.is_unwatched(key) {
                return;
            }
            let polled = poll().await;
            let mut polls = self.polls.lock();
            let (value, is_last) = match polled {
                Ok(Polled::Now(value)) => (value, false),
                Ok(Polled::Last(value)) => (value, true),
                Err(error) => {
                    tracing::warn!(
                        ?key,
                        error = &error as &dyn std::error::Error,
                        "what is watched could not be loaded"
                    );
                    continue;
                }
                Ok(Polled::Gone) => {
                    polls.remove(&key);
                    return;
                }
            };
            if let Some(sender) = polls.get(&key) {
                sender.send_if_modified(|now| {
                    let is_new = *now != value;
                    *now = value;
                    is_new
                });
            }
            if is_last {
                polls.remove(&key);
                return;
            }
        }
    }

    /// Whether nobody watches. Then the poll is removed, so that the next watcher starts another one.
    fn is_unwatched(&self, key: K) -> bool {
        let mut polls = self.polls.lock();
        let watched = polls
            .get(&key)
            .is_some_and(|sender| sender.receiver_count() > 0);
        if !watched {
            polls.remove(&key);
        }
        !watched
    }
}

/// Waits until `changes` names this resource; forever without `changes`.
async fn has_changed<K: PartialEq>(changes: &mut Option<watch::Receiver<Option<K>>>, key: K) {
    let key = Some(key);
    while let Some(changes) = changes
        && changes.changed().await.is_ok()
    {
        if *changes.borrow_and_update() == key {
            return;
        }
    }
    pending().await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use tokio::sync::watch;

    use super::{Polled, SharedPolls};

    const EVERY: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn fifty_watchers_ask_as_often_as_one() {
        let polls = SharedPolls::<u8, u32>::new(EVERY, None);
        let asked = Arc::new(AtomicU32::new(0));
        let watch = || {
            let asked = asked.clone();
            polls.watch(1, 0, move || {
                let asked = asked.clone();
                async move {
                    match asked.fetch_add(1, Ordering::Relaxed) + 1 {
                        10 => Ok(Polled::Last(10)),
                        number => Ok(Polled::Now(number)),
                    }
                }
            })
        };
        let mut watchers: Vec<_> = (0..50).map(|_| watch()).collect();
        for watcher in &mut watchers {
            assert!(watcher.wait_for(|value| *value == 10).await.is_ok());
            assert!(watcher.changed().await.is_err());
        }
        assert_eq!(asked.load(Ordering::Relaxed), 10);
        assert!(polls.join(1).is_none());
    }

    #[tokio::test]
    async fn what_has_changed_is_asked_for_at_once() {
        let (sender, changes) = watch::channel(None);
        let polls = SharedPolls::<u8, u32>::new(Duration::from_secs(3_600), Some(changes));
        let mut watched = polls.watch(1, 0, || async { Ok(Polled::Last(1)) });
        sender.send_replace(Some(2));
        sender.send_replace(Some(1));
        let seen = watched.wait_for(|value| *value == 1);
        let seen = tokio::time::timeout(Duration::from_secs(60), seen).await;
        assert!(seen.is_ok_and(|seen| seen.is_ok()));
    }

    #[tokio::test]
    async fn a_poll_ends_with_its_last_watcher() {
        let polls = SharedPolls::<u8, u32>::new(EVERY, None);
        drop(polls.watch(1, 0, || async { Ok(Polled::Now(1)) }));
        for _ in 0..100 {
            if polls.polls.lock().is_empty() {
                return;
            }
            tokio::time::sleep(EVERY).await;
        }
        panic!("the poll goes on");
    }
}
