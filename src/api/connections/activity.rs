//! The state of a connection: whether a request is in progress or how long it has been idle. Also the stream,
//! request and response wrappers that update this state.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use super::ConnectionLimits;

/// Maximum time without progress while a client reads a response. A program that processes a table while
/// downloading it may pause for this long.
const MAX_UNREAD: Duration = Duration::from_secs(120);

/// Time without reading after which a connection may be closed in favour of a new one.
const UNREAD: Duration = Duration::from_secs(10);

/// The first bytes of an HTTP/2 connection.
const HTTP_2: &[u8] = b"PRI";

/// Why a connection is closed by the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The head of a request took too long.
    SlowHead,
    /// There was no request for too long.
    Idle,
    /// The client does not read its answer.
    Unread,
    /// Another client connected when the limit was reached.
    Replaced,
}

impl Reason {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::SlowHead, Self::Idle, Self::Unread, Self::Replaced];

    /// The label in the metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::SlowHead => "slow_head",
            Self::Idle => "idle",
            Self::Unread => "unread",
            Self::Replaced => "replaced",
        }
    }
}

/// What a connection does. Shared by its task, its stream, its requests and the registry.
#[derive(Debug)]
pub(crate) struct Activity {
    pub(super) address: ClientAddress,
    state: Mutex<State>,
    close: Notify,
}

#[derive(Debug)]
struct State {
    /// Requests in progress: from the end of the head to the end of the answer.
    requests: usize,
    /// Since when there is none.
    free_since: Instant,
    /// Since when the service waits for or receives the head of a request.
    head_since: Option<Instant>,
    /// Since when the client has read no bytes of an answer.
    unread_since: Option<Instant>,
    has_received: bool,
    /// An idle HTTP/2 connection exchanges frames that do not begin a request.
    is_http2: bool,
    closing: Option<Reason>,
}

impl Activity {
    /// A connection that was just accepted.
    pub(super) fn new(address: ClientAddress, now: Instant) -> Self {
        let state = State {
            requests: 0,
            free_since: now,
            head_since: Some(now),
            unread_since: None,
            has_received: false,
            is_http2: false,
            closing: None,
        };
        Self {
            address,
            state: Mutex::new(state),
            close: Notify::new(),
        }
    }

    /// Counts a request until the guard is dropped.
    pub(crate) fn begin_request(self: &Arc<Self>) -> RunningRequest {
        let mut state = self.state.lock();
        state.requests += 1;
        state.head_since = None;
        RunningRequest {
            activity: Arc::clone(self),
        }
    }

    /// Bytes have come from the client.
    pub(super) fn received(&self, bytes: &[u8]) {
        let mut state = self.state.lock();
        if !state.has_received {
            state.has_received = true;
            state.is_http2 = bytes.starts_with(HTTP_2);
        }
        if state.requests == 0 && !state.is_http2 && state.head_since.is_none() {
            state.head_since = Some(Instant::now());
        }
    }

    /// Whether the last write had to wait for the client.
    pub(super) fn written(&self, is_blocked: bool) {
        let mut state = self.state.lock();
        match (is_blocked, state.unread_since) {
            (true, None) => state.unread_since = Some(Instant::now()),
            (false, Some(_)) => state.unread_since = None,
            _ => {}
        }
    }

    /// Why the connection may be closed in favour of a new one, and since when: it is idle, or its client
    /// does not read. `None` if it cannot, or is being closed.
    pub(super) fn replaceable(&self, now: Instant) -> Option<(Reason, Instant)> {
        let state = self.state.lock();
        match (state.closing, state.unread_since) {
            (Some(_), _) => None,
            (None, Some(since)) => {
                let is_long = now.saturating_duration_since(since) >= UNREAD;
                is_long.then_some((Reason::Unread, since))
            }
            (None, None) if state.requests == 0 => Some((Reason::Replaced, state.free_since)),
            (None, None) => None,
        }
    }

    /// Whether there is neither a request nor an unread answer.
    pub(crate) fn is_free(&self) -> bool {
        self.state.lock().is_free()
    }

    /// Whether the connection is being closed.
    pub(super) fn is_closing(&self) -> bool {
        self.state.lock().closing.is_some()
    }

    /// Why the connection is to be closed, if it has exceeded a time limit.
    pub(super) fn overdue(&self, limits: &ConnectionLimits, now: Instant) -> Option<Reason> {
        let state = self.state.lock();
        let exceeds = |since: Option<Instant>, limit: Duration| {
            since.is_some_and(|since| now.saturating_duration_since(since) >= limit)
        };
        if exceeds(state.unread_since, MAX_UNREAD) {
            Some(Reason::Unread)
        } else if state.requests > 0 {
            None
        } else if exceeds(state.head_since, limits.header_timeout) {
            Some(Reason::SlowHead)
        } else if exceeds(Some(state.free_since), limits.keep_alive) {
            Some(Reason::Idle)
        } else {
            None
        }
    }

    /// Asks the task of the connection to close it.
    pub(super) fn ask_to_close(&self, reason: Reason) {
        self.state.lock().closing = Some(reason);
        self.close.notify_one();
    }

    /// Waits until the connection is to be closed. A request that has begun meanwhile continues, and so does
    /// its connection.
    pub(crate) async fn closing(&self) -> Reason {
        loop {
            self.close.notified().await;
            let mut state = self.state.lock();
            let stays = match state.closing {
                Some(Reason::Unread) => state.unread_since.is_none(),
                _ => !state.is_free(),
            };
            match state.closing {
                Some(reason) if !stays => return reason,
                _ => state.closing = None,
            }
        }
    }
}

impl State {
    fn is_free(&self) -> bool {
        self.requests == 0 && self.unread_since.is_none()
    }
}

/// Bits of an IPv6 address that identify the network. One client usually has all addresses of it.
const NETWORK_BITS: u32 = 64;

/// An IPv4 address, or the network of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientAddress(IpAddr);

impl From<SocketAddr> for ClientAddress {
    fn from(address: SocketAddr) -> Self {
        Self::from(address.ip())
    }
}

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() >> NETWORK_BITS << NETWORK_BITS;
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
            address => address,
        })
    }
}

/// A request of a connection, which ends when this is dropped.
pub(crate) struct RunningRequest {
    activity: Arc<Activity>,
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let mut state = self.activity.state.lock();
        state.requests -= 1;
        if state.requests == 0 {
            state.free_since = Instant::now();
        }
    }
}

/// A stream that reports to the [`Activity`] of its connection.
pub(crate) struct WatchedStream<S> {
    stream: S,
    activity: Arc<Activity>,
}

impl<S> WatchedStream<S> {
    /// Watches a stream.
    pub(crate) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity }
    }

    fn report<T>(&self, written: Poll<T>) -> Poll<T> {
        self.activity.written(written.is_pending());
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let received = &buffer.filled()[before..];
        if !received.is_empty() {
            self.activity.received(received);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.report(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.report(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::ClientAddress;
    use std::net::SocketAddr;

    #[test]
    fn an_ipv6_network_is_one_client() {
        let client = |text: &str| ClientAddress::from(text.parse::<SocketAddr>().unwrap());
        assert_eq!(client("[2001:db8::1]:1"), client("[2001:db8::ffff:2]:2"));
        assert_ne!(client("[2001:db8::1]:1"), client("[2001:db8:0:1::1]:1"));
        assert_eq!(client("[::ffff:192.0.2.1]:1"), client("192.0.2.1:9"));
        assert_ne!(client("192.0.2.1:9"), client("192.0.2.2:9"));
    }
}
