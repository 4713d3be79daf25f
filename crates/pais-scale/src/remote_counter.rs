//! Counts rows with executors: each counts a share of the blocks, and their counts are added here.
//!
//! Executors are not trusted to be available, or to be right. A whole answer is discarded if one of them is
//! lost, fails or takes too long, or if its counts do not add up to the rows of its blocks. Then the search
//! asks again, and the executors that answer a health check get all blocks.

use std::fmt;
use std::hash::BuildHasher;
use std::io;
use std::net::IpAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hashbrown::{DefaultHashBuilder, HashTable};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use pais_anonymize::{ColumnParts, CountError, Observer, PartCounts, RowCounter};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::codes::CodeFile;
use crate::datafusion_counter::PATIENCE;
use crate::engine::locked;
use crate::error::ScaleError;
use crate::keys::{Answer, KeyCounts, Keys};
use crate::share::{Ending, Frame, FrameReader, MOST_REQUEST, Share};
use crate::spool::{ExecutorKey, RunId};
use crate::tls::TlsFiles;

/// Longest time of a health check, and of a connection.
const HEALTH_PATIENCE: Duration = Duration::from_secs(2);

/// How long a statement waits for the first executor that answers a health check.
const START_PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });

/// Time between two rounds of health checks.
const HEALTH_PAUSE: Duration = Duration::from_millis(200);

/// The time that an executor is expected to take for a row.
const TIME_OF_ROW: Duration = Duration::from_micros(1);

/// A statement may take this many times the expected time, which is at least that of the slowest earlier
/// statement.
const DEADLINE_FACTOR: u32 = 10;

/// A statement may always take this time.
const LEAST_DEADLINE: Duration = Duration::from_secs(if cfg!(test) { 8 } else { 20 });

/// Maximum number of bytes of the answer to a health check.
const MOST_HEALTH: usize = 1 << 10;

/// Messages of executors that are not added yet.
const MESSAGES_AHEAD: usize = 8;

/// Where an executor is: `http://` and a loopback address with a port, or `https://` and any address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorUrl {
    host: String,
    port: u16,
    is_tls: bool,
}

impl FromStr for ExecutorUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid =
            || format!("`{text}` is not the address of an executor, such as http://127.0.0.1:5051");
        let url: Uri = text.parse().map_err(|_| invalid())?;
        let is_tls = match url.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(invalid()),
        };
        let (Some(host), Some(port), Some("/")) = (
            url.host(),
            url.port_u16(),
            url.path_and_query().map(|it| it.as_str()),
        ) else {
            return Err(invalid());
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let address: Option<IpAddr> = host.parse().ok();
        let is_loopback = address.map_or(host == "localhost", |address| address.is_loopback());
        if !is_tls && !is_loopback {
            return Err(format!(
                "`{text}` is not on this machine; use https:// for an executor on another machine"
            ));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            is_tls,
        })
    }
}

impl ExecutorUrl {
    /// Whether it is reached by TLS.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }
}

impl fmt::Display for ExecutorUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(out, "{scheme}://{}:{}", self.host, self.port)
    }
}

/// The executors of a run.
#[derive(Clone, Debug)]
pub struct Executors {
    /// Where they are.
    urls: Vec<ExecutorUrl>,
    /// The directory that they share with the run.
    pub(crate) spool: PathBuf,
    /// The key that they share with the run.
    pub(crate) key: ExecutorKey,
    tls: Option<Arc<ClientConfig>>,
}

impl Executors {
    /// Executors that share a spool directory and a key with the run.
    ///
    /// # Errors
    /// When a certificate cannot be used, and for `https://` without one.
    pub fn new(
        urls: Vec<ExecutorUrl>,
        spool: &Path,
        key: ExecutorKey,
        tls: Option<&TlsFiles>,
    ) -> Result<Self, ScaleError> {
        let engine = |error: &dyn fmt::Display| ScaleError::Engine(error.to_string());
        if urls.is_empty() {
            return Err(engine(&"no executor is named"));
        }
        if let Some(url) = urls.iter().find(|url| url.is_tls && tls.is_none()) {
            let reason = "needs a certificate, its key, and the authority of the executor";
            return Err(engine(&format_args!("{url} {reason}")));
        }
        let tls = tls.map(TlsFiles::client).transpose();
        Ok(Self {
            urls,
            spool: spool.to_owned(),
            key,
            tls: tls.map_err(|error| engine(&error))?.map(Arc::new),
        })
    }
}

/// How often a statement was submitted again, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resubmissions {
    /// The counts contradicted the table.
    pub guard: u32,
    /// The deadline passed.
    pub deadline: u32,
    /// An executor, or its connection, was lost.
    pub lost_executor: u32,
    /// An executor refused or failed.
    pub failed: u32,
}

impl Resubmissions {
    /// In all.
    pub fn total(&self) -> u32 {
        self.guard + self.deadline + self.lost_executor + self.failed
    }
}

impl fmt::Display for Resubmissions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            guard,
            deadline,
            lost_executor,
            failed,
        } = self;
        write!(
            out,
            "{} (guard {guard}, deadline {deadline}, lost executor {lost_executor}, failed {failed})",
            self.total()
        )
    }
}

/// Why an answer is discarded.
#[derive(Debug)]
enum Void {
    Guard(String),
    Deadline(Duration),
    Lost(String),
    Failed(String),
}

impl Void {
    fn count(&self, resubmissions: &Mutex<Resubmissions>) {
        let mut counts = locked(resubmissions);
        *match self {
            Self::Guard(_) => &mut counts.guard,
            Self::Deadline(_) => &mut counts.deadline,
            Self::Lost(_) => &mut counts.lost_executor,
            Self::Failed(_) => &mut counts.failed,
        } += 1;
    }
}

impl fmt::Display for Void {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guard(reason) | Self::Lost(reason) | Self::Failed(reason) => {
                out.write_str(reason)
            }
            Self::Deadline(time) => {
                let seconds = time.as_secs();
                write!(
                    out,
                    "the executors took more than {seconds} s for a statement"
                )
            }
        }
    }
}

/// Rows of codes in the spool directory, counted by executors.
pub(crate) struct RemoteCounter<'a> {
    executors: Arc<Executors>,
    run: RunId,
    rows: Arc<CodeFile>,
    runtime: Runtime,
    /// The time of the slowest statement.
    slowest: Mutex<Duration>,
    resubmissions: &'a Mutex<Resubmissions>,
}

impl<'a> RemoteCounter<'a> {
    /// Counts the published rows of a run.
    ///
    /// # Errors
    /// Those of the operating system.
    pub(crate) fn new(
        executors: Arc<Executors>,
        run: RunId,
        rows: Arc<CodeFile>,
        resubmissions: &'a Mutex<Resubmissions>,
    ) -> io::Result<Self> {
        Ok(Self {
            executors,
            run,
            rows,
            runtime: tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()?,
            slowest: Mutex::default(),
            resubmissions,
        })
    }

    /// The executors that answer a health check. Waits a while if none does; none once the run must stop.
    async fn healthy(&self, observer: &dyn Observer) -> Result<Vec<ExecutorUrl>, Void> {
        let start = Instant::now();
        loop {
            let mut checks = JoinSet::new();
            for url in self.executors.urls.clone() {
                let executors = Arc::clone(&self.executors);
                checks.spawn(async move {
                    let is_healthy = timeout(HEALTH_PATIENCE, executors.is_healthy(&url)).await;
                    is_healthy.unwrap_or(false).then_some(url)
                });
            }
            let mut found = Vec::new();
            while let Some(checked) = checks.join_next().await {
                found.extend(checked.ok().flatten());
            }
            if !found.is_empty() || observer.must_stop() {
                return Ok(found);
            }
            if start.elapsed() > START_PATIENCE {
                return Err(Void::Lost("no executor answers".to_owned()));
            }
            tokio::time::sleep(HEALTH_PAUSE).await;
        }
    }

    async fn statement(
        &self,
        columns: &[ColumnParts],
        keys: &Keys,
        most: Option<usize>,
        observer: &dyn Observer,
    ) -> Result<Answer, Void> {
        let healthy = self.healthy(observer).await?;
        if healthy.is_empty() {
            return Ok(Answer::Cancelled);
        }
        let (blocks, count) = (self.rows.blocks(), healthy.len());
        let start = Instant::now();
        let rows = u32::try_from(self.rows.rows().div_ceil(count as u64));
        let expected = TIME_OF_ROW * rows.unwrap_or(u32::MAX);
        let slowest = *locked(&self.slowest);
        let deadline = LEAST_DEADLINE.max(DEADLINE_FACTOR * expected.max(slowest));
        let (sender, mut messages) = mpsc::channel(MESSAGES_AHEAD);
        // What still runs is stopped when this is dropped.
        let mut shares = JoinSet::new();
        for (number, url) in healthy.into_iter().enumerate() {
            let blocks = blocks * number / count..blocks * (number + 1) / count;
            if blocks.is_empty() {
                continue;
            }
            let guard = ShareGuard::new(&self.rows, blocks.clone(), most);
            let share = Share {
                run: self.run,
                blocks,
                columns: columns.to_vec(),
                most,
            };
            let request = share.sealed(&self.executors.key);
            let request = request.map_err(|error| Void::Failed(error.to_string()))?;
            if request.len() > MOST_REQUEST {
                let reason = "a statement about so many distinct values is too large for executors";
                return Err(Void::Failed(reason.to_owned()));
            }
            let (executors, sender) = (Arc::clone(&self.executors), sender.clone());
            let reader = FrameReader::new(keys.count());
            shares.spawn(async move {
                let ended = executors.count(&url, request, reader, guard, &sender).await;
                let _ = sender.send(Message::Ended(ended)).await;
            });
        }
        drop(sender);
        let mut sums = KeySums::new(keys.count());
        let mut open = shares.len();
        while open > 0 {
            let message = timeout(PATIENCE, messages.recv()).await;
            if observer.must_stop() {
                return Ok(Answer::Cancelled);
            }
            if start.elapsed() > deadline {
                return Err(Void::Deadline(deadline));
            }
            match message {
                Err(_) => {}
                Ok(None) => return Err(Void::Failed("a share was not counted".to_owned())),
                Ok(Some(Message::Counts(counts))) => {
                    sums.add(&counts);
                    if most.is_some_and(|most| sums.counts.rows.len() > most) {
                        return Ok(Answer::MoreThan);
                    }
                }
                Ok(Some(Message::Ended(ended))) => match ended? {
                    Ending::MoreThan => return Ok(Answer::MoreThan),
                    Ending::Ended | Ending::Failed => open -= 1,
                },
            }
        }
        let mut slowest = locked(&self.slowest);
        *slowest = slowest.max(start.elapsed());
        Ok(Answer::Counts(sums.counts))
    }
}

impl RowCounter for RemoteCounter<'_> {
    fn expected_combinations(
        &self,
        columns: &[ColumnParts],
        observer: &dyn Observer,
    ) -> Result<u64, CountError> {
        Keys::new(columns).expected_combinations(&self.rows, observer)
    }

    fn count(
        &self,
        columns: &[ColumnParts],
        most: Option<usize>,
        observer: &dyn Observer,
    ) -> Result<PartCounts, CountError> {
        let keys = Keys::new(columns);
        let statement = self.statement(columns, &keys, most, observer);
        match self.runtime.block_on(statement) {
            Ok(Answer::Counts(counts)) => Ok(keys.part_counts(counts, columns.len())),
            Ok(Answer::MoreThan) => Err(CountError::MoreThan),
            Ok(Answer::Cancelled) => Err(CountError::Cancelled),
            Err(_) if observer.must_stop() => Err(CountError::Cancelled),
            Err(void) => {
                void.count(self.resubmissions);
                Err(CountError::Failed(void.to_string()))
            }
        }
    }
}

/// A message from an executor.
enum Message {
    Counts(KeyCounts),
    Ended(Result<Ending, Void>),
}

/// What the counts of a share must add up to.
#[derive(Clone, Copy, Debug)]
struct ShareGuard {
    rows: u128,
    number_sum: u128,
    /// Whether the executor may answer that there are too many records.
    is_limited: bool,
}

impl ShareGuard {
    fn new(codes: &CodeFile, blocks: Range<usize>, most: Option<usize>) -> Self {
        let below = |block: usize| u128::from(codes.rows().min(codes.first_row(block)));
        let (first, end) = (below(blocks.start), below(blocks.end));
        let sum = |rows: u128| rows * rows.saturating_sub(1) / 2;
        Self {
            rows: end - first,
            number_sum: sum(end) - sum(first),
            is_limited: most.is_some(),
        }
    }

    /// Subtracts received counts; `None` if they exceed what was left.
    fn take(&mut self, counts: &KeyCounts) -> Option<()> {
        let sum = |numbers: &[u64]| numbers.iter().map(|&it| u128::from(it)).sum::<u128>();
        if counts.rows.contains(&0) {
            return None;
        }
        self.rows = self.rows.checked_sub(sum(&counts.rows))?;
        self.number_sum = self.number_sum.checked_sub(sum(&counts.number_sums))?;
        Some(())
    }

    fn is_met(&self) -> bool {
        self.rows == 0 && self.number_sum == 0
    }
}

/// Sums of counts by key.
struct KeySums {
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    counts: KeyCounts,
}

impl KeySums {
    fn new(keys: usize) -> Self {
        Self {
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            counts: KeyCounts::new(keys),
        }
    }

    /// Adds counts, whose sums are within those of a table.
    fn add(&mut self, counts: &KeyCounts) {
        let (hasher, sums) = (&self.hasher, &mut self.counts);
        let key_of = |keys: &[Vec<u64>], record: usize| {
            let mut key = keys.iter().map(|keys| keys[record]);
            let first = key.next().unwrap_or(0);
            // Several keys are rarely needed.
            key.fold(hasher.hash_one(first), |mixed, key| {
                hasher.hash_one((mixed, key))
            })
        };
        for (record, (rows, number_sum)) in counts.rows.iter().zip(&counts.number_sums).enumerate()
        {
            let hash = key_of(&counts.keys, record);
            let is_key = |&known: &u32| {
                let mut pairs = sums.keys.iter().zip(&counts.keys);
                pairs.all(|(sums, keys)| sums[known as usize] == keys[record])
            };
            if let Some(&known) = self.index.find(hash, is_key) {
                sums.rows[known as usize] += rows;
                sums.number_sums[known as usize] += number_sum;
                continue;
            }
            let new = sums.rows.len() as u32;
            for (sums, keys) in sums.keys.iter_mut().zip(&counts.keys) {
                sums.push(keys[record]);
            }
            sums.rows.push(*rows);
            sums.number_sums.push(*number_sum);
            let keys = &sums.keys;
            let hash_of = |&known: &u32| key_of(keys, known as usize);
            self.index.insert_unique(hash, new, hash_of);
        }
    }
}

/// A connection to an executor.
trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// An answer whose body comes as long as this lives.
pub(crate) struct LiveAnswer {
    /// The answer.
    pub(crate) answer: Response<Incoming>,
    _connection: JoinSet<()>,
}

impl Executors {
    async fn connect(&self, url: &ExecutorUrl) -> io::Result<Box<dyn Connection>> {
        let stream = TcpStream::connect((url.host.as_str(), url.port)).await?;
        stream.set_nodelay(true)?;
        Ok(match &self.tls {
            Some(config) if url.is_tls => {
                let name = ServerName::try_from(url.host.clone()).map_err(io::Error::other)?;
                let connector = TlsConnector::from(Arc::clone(config));
                Box::new(connector.connect(name, stream).await?)
            }
            _ => Box::new(stream),
        })
    }

    /// Sends a request on a connection of its own.
    ///
    /// # Errors
    /// When the executor cannot be reached, or does not answer.
    pub(crate) async fn send(
        &self,
        url: &ExecutorUrl,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> io::Result<LiveAnswer> {
        let stream = timeout(HEALTH_PATIENCE, self.connect(url)).await??;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(io::Error::other)?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // A failure is that of the answer too.
            let _ = connection.await;
        });
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, format!("{}:{}", url.host, url.port))
            .body(Full::new(body))
            .map_err(io::Error::other)?;
        let answer = sender.send_request(request).await;
        Ok(LiveAnswer {
            answer: answer.map_err(io::Error::other)?,
            _connection: driver,
        })
    }

    async fn is_healthy(&self, url: &ExecutorUrl) -> bool {
        let Ok(live) = self.send(url, Method::GET, "/health", Bytes::new()).await else {
            return false;
        };
        let is_ok = live.answer.status() == StatusCode::OK;
        let body = Limited::new(live.answer.into_body(), MOST_HEALTH);
        is_ok && body.collect().await.is_ok()
    }

    /// Lets an executor count a share, and passes the counts on.
    async fn count(
        &self,
        url: &ExecutorUrl,
        request: Bytes,
        mut reader: FrameReader,
        mut guard: ShareGuard,
        sender: &mpsc::Sender<Message>,
    ) -> Result<Ending, Void> {
        let lost = |error: &dyn fmt::Display| Void::Lost(format!("{url} was lost: {error}"));
        let wrong = |reason| Void::Guard(format!("the counts of {url} are wrong: {reason}"));
        let live = self.send(url, Method::POST, "/count", request).await;
        let live = live.map_err(|error| lost(&error))?;
        let status = live.answer.status();
        if status != StatusCode::OK {
            let reason = match status {
                StatusCode::FORBIDDEN => "has another key, or the rows were changed",
                StatusCode::NOT_FOUND => "does not see the spool directory of the run",
                StatusCode::SERVICE_UNAVAILABLE => "has too many statements",
                _ => "refuses the statement",
            };
            return Err(Void::Failed(format!("the executor {url} {reason}")));
        }
        let mut body = live.answer.into_body();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| lost(&error))?;
            let Some(bytes) = frame.data_ref() else {
                continue;
            };
            reader.push(bytes);
            while let Some(frame) = reader.frame().map_err(wrong)? {
                match frame {
                    Frame::Counts(counts) => {
                        let taken = guard.take(&counts);
                        taken.ok_or_else(|| wrong("they are of more rows than its share"))?;
                        // If this fails, nobody waits for them.
                        let _ = sender.send(Message::Counts(counts)).await;
                    }
                    Frame::Last(Ending::MoreThan) if !guard.is_limited => {
                        return Err(wrong("they are of fewer records than asked for"));
                    }
                    Frame::Last(Ending::Ended) if !guard.is_met() => {
                        return Err(wrong("they are of fewer or other rows than its share"));
                    }
                    Frame::Last(Ending::Failed) => {
                        return Err(Void::Failed(format!("the executor {url} failed")));
                    }
                    Frame::Last(ending) => return Ok(ending),
                }
            }
        }
        Err(lost(&"its answer has no end"))
    }
}
