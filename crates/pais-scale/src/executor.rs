//! An executor: a process that counts blocks of rows for runs on other machines.
//!
//! It speaks HTTP/1.1. `GET /health` says how many statements it has; `POST /count` takes a sealed
//! [`Share`] and answers with frames. It keeps no state of a run:
//! each request opens the rows anew, and ends with its connection.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame as BodyFrame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use pais_core::cancellation::Cancellation;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};
use tokio_rustls::TlsAcceptor;

use crate::codes::CodeFile;
use crate::engine::RowEngine;
use crate::keys::Keys;
use crate::sealed::Sealer;
use crate::share::{Ending, MOST_REQUEST, Share, frames};
use crate::spool::{ExecutorKey, open_run, sweep};
use crate::tls::{TlsError, TlsFiles};

/// Connections at a time; others wait.
const MOST_CONNECTIONS: usize = 64;

/// Statements at a time; others wait.
const MOST_STATEMENTS: usize = 4;

/// Longest time that a statement waits for its turn.
const TURN_PATIENCE: Duration = Duration::from_secs(10);

/// Longest time of a handshake, and of the head of a request.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);

/// Longest time of the body of a request.
const BODY_PATIENCE: Duration = Duration::from_secs(30);

/// Longest time without reading by a client that receives an answer.
const TAKE_PATIENCE: Duration = Duration::from_secs(60);

/// Time between two searches for the remains of killed runs.
const SWEEP: Duration = Duration::from_secs(20);

/// Frames that are counted before the client has taken them.
const FRAMES_AHEAD: usize = 2;

/// How an executor runs.
#[derive(Clone, Debug)]
pub struct ExecutorSettings {
    /// Where it listens: a loopback address, unless there is TLS. Port 0 takes any free one.
    pub listen: SocketAddr,
    /// The directory that runs share with it.
    pub spool: PathBuf,
    /// The key that runs share with it.
    pub key: ExecutorKey,
    /// Bytes of memory of the engine, for all statements. What does not fit is spilled into sealed files in
    /// the spool directory.
    pub memory: u64,
    /// Its certificate, and the authority of those of its clients.
    pub tls: Option<TlsFiles>,
    /// The threads of the engine. They are not those that answer requests: a busy executor answers health
    /// checks, and notices that a client has gone.
    pub threads: Handle,
}

/// Why an executor does not run.
#[derive(Debug, Error)]
pub enum ExecutorError {
    /// Others could read what is sent.
    #[error(
        "{0} is not a loopback address; an executor listens on a network only with a certificate, its \
         key, and the authority of the certificates of its clients"
    )]
    NoTls(IpAddr),
    /// A certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address cannot be listened on.
    #[error("{0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The spool directory cannot be used.
    #[error("the spool directory {}: {error}", path.display())]
    Spool {
        /// The directory.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The engine could not be started.
    #[error("the engine: {0}")]
    Engine(String),
}

/// A listening executor.
pub struct Executor {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    state: Arc<ExecutorState>,
}

/// What requests share.
struct ExecutorState {
    spool: PathBuf,
    key: ExecutorKey,
    engine: RowEngine,
    threads: Handle,
    /// One permit for each further statement.
    statements: Arc<Semaphore>,
}

type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;

impl Executor {
    /// Starts to listen.
    ///
    /// # Errors
    /// [`ExecutorError`].
    pub async fn bind(settings: ExecutorSettings) -> Result<Self, ExecutorError> {
        let ExecutorSettings {
            listen,
            spool,
            key,
            memory,
            tls,
            threads,
        } = settings;
        if tls.is_none() && !listen.ip().is_loopback() {
            return Err(ExecutorError::NoTls(listen.ip()));
        }
        let tls = tls.map(|files| files.server()).transpose()?;
        let sealer = Sealer::new(spool.clone());
        let swept = sealer.and_then(|sealer| sweep(&spool).map(|()| sealer));
        let sealer = swept.map_err(|error| ExecutorError::Spool {
            path: spool.clone(),
            error,
        })?;
        let memory = usize::try_from(memory).unwrap_or(usize::MAX);
        let engine = RowEngine::new(memory, sealer);
        let listener = TcpListener::bind(listen).await;
        Ok(Self {
            listener: listener.map_err(|error| ExecutorError::Listen(listen, error))?,
            tls: tls.map(|config| TlsAcceptor::from(Arc::new(config))),
            state: Arc::new(ExecutorState {
                spool,
                key,
                engine: engine.map_err(|error| ExecutorError::Engine(error.to_string()))?,
                threads,
                statements: Arc::new(Semaphore::new(MOST_STATEMENTS)),
            }),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop` is done. Statements that run then end with their connections.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let mut tasks = JoinSet::new();
        let mut sweeps = interval(SWEEP);
        let mut stop = std::pin::pin!(stop);
        loop {
            // The semaphore is never closed.
            let accepted = async {
                let permit = Arc::clone(&connections).acquire_owned().await.ok();
                (permit, self.listener.accept().await)
            };
            tokio::select! {
                () = &mut stop => return,
                _ = sweeps.tick() => {
                    let spool = self.state.spool.clone();
                    tasks.spawn_blocking(move || {
                        if let Err(error) = sweep(&spool) {
                            tracing::warn!(%error, "the spool directory cannot be cleaned");
                        }
                    });
                }
                Some(_) = tasks.join_next() => {}
                (permit, accepted) = accepted => match accepted {
                    Ok((stream, _)) => {
                        let (tls, state) = (self.tls.clone(), Arc::clone(&self.state));
                        tasks.spawn(async move {
                            connection(stream, tls, state).await;
                            drop(permit);
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
            }
        }
    }
}

/// Answers the one request of a connection.
async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, state: Arc<ExecutorState>) {
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(state.answer(request).await) }
    });
    let mut http = http1::Builder::new();
    http.keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE);
    // A client that has gone needs no answer.
    let _ = match tls {
        None => http.serve_connection(TokioIo::new(stream), service).await,
        Some(tls) => match timeout(HEAD_PATIENCE, tls.accept(stream)).await {
            Ok(Ok(stream)) => http.serve_connection(TokioIo::new(stream), service).await,
            Ok(Err(error)) => {
                tracing::info!(%error, "a client was refused");
                return;
            }
            Err(_) => return,
        },
    };
}

fn text(status: StatusCode, text: String) -> Reply {
    let mut answer = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    *answer.status_mut() = status;
    answer
}

fn refuse(status: StatusCode, reason: &str) -> Reply {
    tracing::warn!(reason, "a request was refused");
    text(status, format!("{reason}\n"))
}

impl ExecutorState {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Reply {
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/health") => {
                let running = MOST_STATEMENTS - self.statements.available_permits();
                text(StatusCode::OK, format!("{{\"statements\":{running}}}\n"))
            }
            (&Method::POST, "/count") => self.count(request.into_body()).await,
            _ => text(StatusCode::NOT_FOUND, "not found\n".to_owned()),
        }
    }

    async fn count(self: Arc<Self>, body: Incoming) -> Reply {
        let permit = Arc::clone(&self.statements).acquire_owned();
        let Ok(Ok(permit)) = timeout(TURN_PATIENCE, permit).await else {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many statements");
        };
        let read = timeout(BODY_PATIENCE, Limited::new(body, MOST_REQUEST).collect()).await;
        let Ok(Ok(body)) = read else {
            return refuse(
                StatusCode::PAYLOAD_TOO_LARGE,
                "it is too large, or not whole",
            );
        };
        let state = Arc::clone(&self);
        let opened = tokio::task::spawn_blocking(move || state.open(&body.to_bytes())).await;
        let counting = match opened {
            Ok(Ok(counting)) => counting,
            Ok(Err((status, reason))) => return refuse(status, reason),
            Err(_) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, "the request failed"),
        };
        let (frames, taken) = mpsc::channel(FRAMES_AHEAD);
        let threads = self.threads.clone();
        threads.spawn(async move {
            tokio::select! {
                biased;
                // The client has gone.
                () = frames.closed() => {}
                () = self.send(&counting, &frames) => {}
            }
            drop((counting, permit));
        });
        let frames = stream::unfold(taken, async |mut taken| {
            let frame = taken.recv().await?;
            Some((Ok(BodyFrame::data(frame)), taken))
        });
        Response::new(StreamBody::new(frames).boxed_unsync())
    }

    /// Opens a request and the rows that it is about.
    fn open(&self, body: &[u8]) -> Result<Counting, (StatusCode, &'static str)> {
        let share = Share::open(body, &self.key);
        let share = share.ok_or((StatusCode::FORBIDDEN, "it is not sealed under this key"))?;
        let rows = open_run(&self.spool, share.run, &self.key);
        let rows = rows.map_err(|error| match error.kind() {
            ErrorKind::NotFound => (
                StatusCode::NOT_FOUND,
                "the run is not in the spool directory",
            ),
            ErrorKind::PermissionDenied => (StatusCode::FORBIDDEN, "the rows do not open"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "the rows cannot be read"),
        })?;
        if !share.fits(&rows) {
            return Err((StatusCode::UNPROCESSABLE_ENTITY, "it does not fit the rows"));
        }
        Ok(Counting {
            keys: Arc::new(Keys::new(&share.columns)),
            rows: Arc::new(rows),
            share,
            cancellation: Cancellation::new(),
        })
    }

    /// Counts, and sends the frames.
    async fn send(&self, counting: &Counting, frames: &mpsc::Sender<Bytes>) {
        let ending = match self.send_counts(counting, frames).await {
            Ok(ending) => ending,
            Err(error) => {
                // It names operators and sizes, and no key.
                tracing::warn!(%error, "a statement failed");
                Ending::Failed
            }
        };
        // If this fails, nobody waits for it.
        let _ = frames.send(ending.bytes()).await;
    }

    async fn send_counts(
        &self,
        counting: &Counting,
        sender: &mpsc::Sender<Bytes>,
    ) -> datafusion::error::Result<Ending> {
        let Counting {
            share,
            rows,
            keys,
            cancellation,
        } = counting;
        let blocks = share.blocks.clone();
        let mut batches = self.engine.count(rows, keys, blocks, cancellation).await?;
        let mut records = 0;
        while let Some(batch) = batches.next().await.transpose()? {
            records += batch.num_rows();
            if share.most.is_some_and(|most| records > most) {
                return Ok(Ending::MoreThan);
            }
            let frames = frames(&batch, keys.count())?;
            if !matches!(
                timeout(TAKE_PATIENCE, sender.send(frames)).await,
                Ok(Ok(()))
            ) {
                return Ok(Ending::Failed);
            }
        }
        Ok(Ending::Ended)
    }
}

/// A statement. It is cancelled when this is dropped.
struct Counting {
    share: Share,
    rows: Arc<CodeFile>,
    keys: Arc<Keys>,
    cancellation: Cancellation,
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.cancellation.cancel();
    }
}
