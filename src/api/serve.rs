//! Listening, and a graceful stop.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::problem::{Code, Problem};

use super::connections::{
    Admission, ClientAddress, ConnectionLimits, Connections, OpenConnection, WatchedStream,
};
use super::tls::Tls;

/// How often the samples of the metrics are put into their buckets if nobody scrapes them.
const METRICS_UPKEEP_INTERVAL: Duration = Duration::from_secs(30);

/// How often connections are searched for those that have exceeded a time.
const OVERDUE_INTERVAL: Duration = Duration::from_millis(250);

/// Pause after a connection could not be accepted because the system has no files or memory left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of bytes of one HTTP/1 connection that are read ahead or wait to be sent. The head of a
/// request must fit.
const HTTP_1_BUFFER: usize = 128 << 10;

/// Requests of one HTTP/2 connection at the same time, and the bytes of each that are read ahead.
const HTTP_2_STREAMS: u32 = 64;
const HTTP_2_STREAM_BUFFER: u32 = 64 << 10;

/// Size of the head of an HTTP/2 request.
const HTTP_2_HEAD: u32 = 64 << 10;

/// Time between two pings of an HTTP/2 client, and the time within which it must answer.
const HTTP_2_PING_INTERVAL: Duration = Duration::from_secs(20);
const HTTP_2_PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections that are answered with a refusal at the same time; further ones are closed without
/// an answer.
const REFUSALS: usize = 32;

/// Longest time for a refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// What is served, and where.
pub struct Server {
    /// Where connections come in.
    pub listener: TcpListener,
    /// `None` for HTTP without TLS.
    pub tls: Option<Arc<Tls>>,
    /// What answers requests.
    pub router: Router,
    /// How many connections may be open, and for how long.
    pub limits: ConnectionLimits,
}

impl Server {
    /// Serves until `shutdown` is cancelled. Then it accepts no more connections, closes those without a request,
    /// and waits up to `grace` for the running requests to end. Requests that are still running are dropped. A
    /// connection that cannot be accepted is logged, and listening continues.
    pub async fn run(self, shutdown: CancellationToken, grace: Duration) {
        let connections = Connections::new(self.limits);
        let mut tasks = JoinSet::new();
        let mut refusals = JoinSet::new();
        let mut overdue = tokio::time::interval(OVERDUE_INTERVAL);
        let mut upkeep = tokio::time::interval(METRICS_UPKEEP_INTERVAL);
        loop {
            let (stream, address) = tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        not_accepted(&error, &connections).await;
                        continue;
                    }
                },
                _ = overdue.tick() => {
                    connections.close_overdue();
                    continue;
                }
                _ = upkeep.tick() => {
                    super::metrics::install().run_upkeep();
                    continue;
                }
                Some(_) = tasks.join_next() => continue,
                Some(_) = refusals.join_next() => continue,
                () = shutdown.cancelled() => break,
            };
            let admission = tokio::select! {
                admission = admit(&connections, address, &mut overdue) => admission,
                () = shutdown.cancelled() => break,
            };
            match admission {
                Admission::Open(open) => {
                    let client = Client { address, open };
                    let (tls, router) = (self.tls.clone(), self.router.clone());
                    tasks.spawn(client.talk(stream, tls, router, shutdown.clone()));
                }
                // Without a handshake, a TLS client cannot read anything.
                Admission::Refused(limit) if refusals.len() < REFUSALS && self.tls.is_none() => {
                    refusals.spawn(tokio::time::timeout(REFUSAL_TIMEOUT, refuse(stream, limit)));
                }
                Admission::Refused(_) => {}
            }
        }
        drop(self.listener);
        let ended = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, ended).await.is_err() {
            tracing::warn!("some requests were still running at the end of the grace period");
        }
    }
}

/// Admits a connection, while those are closed that have exceeded a time.
async fn admit(
    connections: &Arc<Connections>,
    address: SocketAddr,
    overdue: &mut Interval,
) -> Admission {
    let mut admitting = pin!(connections.admit(ClientAddress::from(address)));
    loop {
        tokio::select! {
            admission = &mut admitting => return admission,
            _ = overdue.tick() => connections.close_overdue(),
        }
    }
}

/// Reports why a connection could not be accepted. If the process has too many open files, a
/// connection is closed.
async fn not_accepted(error: &io::Error, connections: &Connections) {
    let is_of_client = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    );
    if !is_of_client {
        tracing::warn!(%error, "a connection could not be accepted");
        connections.close_oldest();
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

/// A client whose connection is open.
struct Client {
    address: SocketAddr,
    open: OpenConnection,
}

impl Client {
    /// Serves the requests of a connection, over TLS if it is given, until it is closed.
    async fn talk(
        self,
        stream: TcpStream,
        tls: Option<Arc<Tls>>,
        router: Router,
        shutdown: CancellationToken,
    ) {
        // Without this, small answers may wait for the acknowledgement of the previous one.
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else {
            return self.converse(stream, router, shutdown).await;
        };
        let accepted = tokio::select! {
            accepted = tls.accept(stream) => accepted,
            _ = self.open.activity.closing() => return,
            () = shutdown.cancelled() => return,
        };
        match accepted {
            Ok(stream) => self.converse(stream, router, shutdown).await,
            Err(error) => tracing::trace!(error = %error, "a handshake failed"),
        }
    }

    /// Serves the requests of a connection until it is closed.
    async fn converse(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        router: Router,
        shutdown: CancellationToken,
    ) {
        let Self { address, open } = self;
        let activity = &open.activity;
        let service = service_fn(|request: Request<Incoming>| {
            let running = activity.begin_request();
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(address));
            let router = router.clone();
            async move {
                let Ok(response) = router.oneshot(request).await;
                // The request is in progress until its answer, and with it this closure, is sent or dropped.
                let counted = move |error: axum::Error| {
                    let _ = &running;
                    error
                };
                Ok::<_, Infallible>(response.map(|body| body.map_err(counted)))
            }
        });
        let io = TokioIo::new(WatchedStream::new(stream, activity.clone()));
        let builder = builder();
        let mut connection = pin!(builder.serve_connection(io, service));
        let mut is_stopping = false;
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::trace!(error, "a connection ended with an error");
                    }
                    return;
                }
                reason = activity.closing() => {
                    let reason = reason.as_str();
                    metrics::counter!("http_connections_closed_total", "reason" => reason).increment(1);
                    return;
                }
                () = shutdown.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    if activity.is_free() {
                        return;
                    }
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // The time for a head is limited by `Connections`, which also knows about silent connections.
    builder
        .http1()
        .header_read_timeout(None)
        .max_buf_size(HTTP_1_BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HTTP_2_PING_INTERVAL)
        .keep_alive_timeout(HTTP_2_PING_TIMEOUT)
        .max_concurrent_streams(HTTP_2_STREAMS)
        .initial_stream_window_size(HTTP_2_STREAM_BUFFER)
        // So that requests whose bodies wait do not delay the others.
        .initial_connection_window_size(HTTP_2_STREAMS * HTTP_2_STREAM_BUFFER)
        .max_send_buf_size(HTTP_2_STREAM_BUFFER as usize)
        .max_header_list_size(HTTP_2_HEAD);
    builder
}

/// Answers a connection that is not served. Reads what the client has sent, because closing a
/// connection with unread bytes would discard the answer.
async fn refuse(mut stream: TcpStream, limit: &'static str) -> io::Result<()> {
    let detail = format!("all connections of the service are in use ({limit}); try again");
    let problem = Problem::new(Code::Busy, detail).document();
    let body = serde_json::to_string(&problem)?;
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         retry-after: 5\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    let mut scratch = [0; 4096];
    while stream.read(&mut scratch).await? > 0 {}
    Ok(())
}
