//! The open connections of a listener, and which of them is closed in favour of a new one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::activity::Reason;
use super::{Activity, ClientAddress, ConnectionLimits};

/// Longest wait for a connection that is being closed.
const CLOSING: Duration = Duration::from_millis(100);

/// How often a new connection waits for that before it is refused.
const MAX_WAITS: u32 = 20;

/// The open connections of a listener.
#[derive(Debug)]
pub(crate) struct Connections {
    limits: ConnectionLimits,
    open: Mutex<Open>,
    closed: Notify,
}

#[derive(Debug, Default)]
struct Open {
    by_number: HashMap<u64, Arc<Activity>>,
    by_address: HashMap<ClientAddress, usize>,
    next_number: u64,
}

/// Whether a new connection is served.
pub(crate) enum Admission {
    /// It is, and counts until this is dropped.
    Open(OpenConnection),
    /// It is not: each open connection has a request in progress. Names the setting of the limit.
    Refused(&'static str),
}

/// A connection that counts as open until this is dropped.
pub(crate) struct OpenConnection {
    connections: Arc<Connections>,
    number: u64,
    /// What the connection does.
    pub(crate) activity: Arc<Activity>,
}

impl Connections {
    /// No connections yet.
    pub(crate) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            open: Mutex::default(),
            closed: Notify::new(),
        })
    }

    /// Admits a connection. When a limit is reached, the connection that has been idle for the longest time is
    /// closed in its favour.
    pub(crate) async fn admit(self: &Arc<Self>, address: ClientAddress) -> Admission {
        for _ in 0..MAX_WAITS {
            let closed = self.closed.notified();
            match self.decide(address, Instant::now()) {
                Some(Admission::Refused(limit)) => return refused(limit),
                Some(open) => return open,
                // If it is not closed in time, another one is chosen.
                None => _ = tokio::time::timeout(CLOSING, closed).await,
            }
        }
        refused("server.connections")
    }

    /// `None` while a connection is being closed for this one.
    fn decide(self: &Arc<Self>, address: ClientAddress, now: Instant) -> Option<Admission> {
        let mut open = self.open.lock();
        let of_address = open.by_address.get(&address).copied().unwrap_or(0);
        let is_address_full = of_address >= self.limits.per_address;
        if !is_address_full && open.by_number.len() < self.limits.connections {
            return Some(Admission::Open(self.insert(&mut open, address, now)));
        }
        let candidates = || {
            let activities = open.by_number.values();
            activities.filter(|activity| !is_address_full || activity.address == address)
        };
        if candidates().any(|activity| activity.is_closing()) || close_one(candidates(), now) {
            None
        } else if is_address_full {
            Some(Admission::Refused("server.connections_per_address"))
        } else {
            Some(Admission::Refused("server.connections"))
        }
    }

    fn insert(
        self: &Arc<Self>,
        open: &mut Open,
        address: ClientAddress,
        now: Instant,
    ) -> OpenConnection {
        let number = open.next_number;
        open.next_number += 1;
        let activity = Arc::new(Activity::new(address, now));
        open.by_number.insert(number, Arc::clone(&activity));
        *open.by_address.entry(address).or_default() += 1;
        metrics::gauge!("http_connections_open").increment(1);
        OpenConnection {
            connections: Arc::clone(self),
            number,
            activity,
        }
    }

    fn remove(&self, number: u64) {
        let mut open = self.open.lock();
        let Some(activity) = open.by_number.remove(&number) else {
            return;
        };
        if let Some(count) = open.by_address.get_mut(&activity.address) {
            *count -= 1;
            if *count == 0 {
                open.by_address.remove(&activity.address);
            }
        }
        metrics::gauge!("http_connections_open").decrement(1);
        self.closed.notify_waiters();
    }

    /// Closes the connections that have exceeded a time limit.
    pub(crate) fn close_overdue(&self) {
        let now = Instant::now();
        for activity in self.open.lock().by_number.values() {
            if let Some(reason) = activity.overdue(&self.limits, now) {
                activity.ask_to_close(reason);
            }
        }
    }

    /// Closes the connection that has been idle for the longest time, if there is one.
    pub(crate) fn close_oldest(&self) {
        close_one(self.open.lock().by_number.values(), Instant::now());
    }
}

fn refused(limit: &'static str) -> Admission {
    metrics::counter!("http_connections_refused_total").increment(1);
    Admission::Refused(limit)
}

/// Closes the connection that has been idle for the longest time. If none is idle, it closes the one
/// whose client has not read its response for the longest time. Returns whether a connection was closed.
fn close_one<'a>(activities: impl Iterator<Item = &'a Arc<Activity>>, now: Instant) -> bool {
    let candidates = activities.filter_map(|activity| Some((activity.replaceable(now)?, activity)));
    let chosen = candidates.min_by_key(|((reason, since), _)| (*reason == Reason::Unread, *since));
    if let Some(((reason, _), activity)) = chosen {
        activity.ask_to_close(reason);
    }
    chosen.is_some()
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::{Admission, ConnectionLimits, Connections, OpenConnection, Reason};
    use crate::api::connections::ClientAddress;

    fn connections(connections: usize, per_address: usize) -> Arc<Connections> {
        Connections::new(ConnectionLimits {
            connections,
            per_address,
            header_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(60),
        })
    }

    fn address(last: u8) -> ClientAddress {
        ClientAddress::from(std::net::SocketAddr::from(([192, 0, 2, last], 1)))
    }

    async fn opened(connections: &Arc<Connections>, last: u8) -> Option<OpenConnection> {
        match connections.admit(address(last)).await {
            Admission::Open(connection) => Some(connection),
            Admission::Refused(_) => None,
        }
    }

    /// Holds a connection as its task does, until it is to be closed.
    fn hold(connection: OpenConnection) -> tokio::task::JoinHandle<Reason> {
        tokio::spawn(async move { connection.activity.closing().await })
    }

    #[tokio::test]
    async fn the_connection_longest_without_a_request_makes_way() {
        let connections = connections(2, 2);
        let busy = opened(&connections, 1).await.unwrap();
        let request = busy.activity.begin_request();
        let idle = hold(opened(&connections, 2).await.unwrap());
        let _new = opened(&connections, 3).await.unwrap();
        assert_eq!(idle.await.unwrap(), Reason::Replaced);
        // Its request has ended later than the newest connection was opened.
        drop(request);
        assert!(busy.activity.is_free());
    }

    #[tokio::test]
    async fn a_connection_is_refused_while_all_others_have_requests() {
        let connections = connections(1, 1);
        let busy = opened(&connections, 1).await.unwrap();
        let request = busy.activity.begin_request();
        assert!(opened(&connections, 2).await.is_none());
        drop(request);
        let busy = hold(busy);
        assert!(opened(&connections, 2).await.is_some());
        busy.await.unwrap();
    }

    #[tokio::test]
    async fn one_address_has_a_limit_of_its_own() {
        let connections = connections(10, 2);
        let other = opened(&connections, 9).await.unwrap();
        let first = hold(opened(&connections, 1).await.unwrap());
        let _second = opened(&connections, 1).await.unwrap();
        let _third = opened(&connections, 1).await.unwrap();
        assert_eq!(first.await.unwrap(), Reason::Replaced);
        assert!(!other.activity.is_closing());
    }

    #[tokio::test]
    async fn a_request_that_begins_keeps_its_connection() {
        let connections = connections(1, 1);
        let connection = opened(&connections, 1).await.unwrap();
        connection.activity.ask_to_close(Reason::Replaced);
        let _request = connection.activity.begin_request();
        let closing = connection.activity.closing();
        let closing = tokio::time::timeout(Duration::from_millis(20), closing).await;
        assert!(closing.is_err() && !connection.activity.is_closing());
    }

    #[tokio::test]
    async fn a_slow_head_and_a_long_pause_are_overdue() {
        let connections = connections(2, 2);
        let limits = connections.limits;
        let connection = opened(&connections, 1).await.unwrap();
        let activity = &connection.activity;
        let overdue =
            |seconds| activity.overdue(&limits, Instant::now() + Duration::from_secs(seconds));
        assert_eq!((overdue(9), overdue(10)), (None, Some(Reason::SlowHead)));
        let request = activity.begin_request();
        assert_eq!(overdue(1000), None);
        drop(request);
        assert_eq!((overdue(59), overdue(61)), (None, Some(Reason::Idle)));
        activity.received(b"G");
        assert_eq!((overdue(9), overdue(11)), (None, Some(Reason::SlowHead)));
        let _request = activity.begin_request();
        activity.written(true);
        assert_eq!((overdue(119), overdue(121)), (None, Some(Reason::Unread)));
        let replaceable = |seconds| {
            let replaceable = activity.replaceable(Instant::now() + Duration::from_secs(seconds));
            replaceable.map(|(reason, _)| reason)
        };
        assert_eq!(
            (replaceable(9), replaceable(11)),
            (None, Some(Reason::Unread))
        );
        activity.written(false);
        assert_eq!((overdue(121), replaceable(121)), (None, None));
    }
}
