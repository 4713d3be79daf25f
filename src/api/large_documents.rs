//! Large JSON documents: their memory, and the threads that process them.
//!
//! Parsing a body of 32 MB and building its trees takes seconds. On a thread of the runtime this
//! would hold up other requests, so it is done on threads that may block, a few at a time.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http_body_util::BodyExt;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::memory::{MemoryBudget, MemoryError, MemoryReservation, MemoryUse};
use crate::telemetry;

use super::error::ApiError;

/// Size above which a body is large, in bytes. Smaller ones are parsed in about a millisecond.
pub(crate) const LARGE_BYTES: usize = 256 << 10;

/// Size up to which a body reserves no memory: less than what a connection buffers anyway.
pub(crate) const TINY_BYTES: usize = 16 << 10;

/// Memory for a byte of a large document: its parsed form, the trees built from it, and the texts for the
/// database and for the answer. Measured with the service: a taxonomy of 32 MB with long labels took 8 bytes
/// for each.
const BYTES_PER_BYTE: u64 = 8;

/// Memory for a node of a tree in addition to its text. Measured with the service: a taxonomy of
/// 1,074,775 nodes in 33 MB, most of them with one child, took 723 MB.
const BYTES_PER_NODE: u64 = 400;

/// Memory for a byte of a document that is not large, whatever it contains: a node takes at least 28
/// bytes of text, or 18 if it is a leaf, which needs less memory.
const BYTES_PER_SMALL_BYTE: u64 = 24;

/// The memory of requests is divided by this for bodies while they are received. The rest is for those that are
/// complete, so that they never wait for incomplete ones.
const RECEIVING: u64 = 2;

/// Bytes of a large answer that are sent at a time.
const SENT_BYTES: usize = 64 << 10;

/// Bytes of one permit of `receiving`.
const UNIT: u64 = 4 << 10;

/// The size of a document.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DocumentSize {
    /// Of its text.
    pub(crate) bytes: usize,
    /// Maximum number of nodes of its trees.
    pub(crate) nodes: usize,
}

impl DocumentSize {
    /// Memory that is needed to process the document, in bytes.
    fn memory(self) -> u64 {
        self.bytes as u64 * BYTES_PER_BYTE + self.nodes as u64 * BYTES_PER_NODE
    }
}

/// The memory and the threads for large documents. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct LargeDocuments {
    memory: MemoryBudget,
    /// Memory of bodies that are received, in [`UNIT`]s.
    receiving: Arc<Semaphore>,
    receiving_units: u32,
    /// Slots for bodies that are processed.
    processing: Arc<Semaphore>,
    /// Slots for stored documents that are read.
    loading: Arc<Semaphore>,
}

/// The memory of a body that is received.
#[derive(Debug)]
#[must_use]
pub(crate) struct BodyMemory {
    _memory: MemoryReservation,
    _receiving: Option<OwnedSemaphorePermit>,
}

impl LargeDocuments {
    /// Slots for the documents of requests, which take their memory from `memory`.
    pub(crate) fn new(memory: MemoryBudget) -> Self {
        let units = memory.limit(MemoryUse::Requests) / RECEIVING / UNIT;
        let units = u32::try_from(units).unwrap_or(u32::MAX).max(1);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let permits = |number: usize| Arc::new(Semaphore::new(number));
        Self {
            memory,
            receiving: permits(units as usize),
            receiving_units: units,
            processing: permits((cores / 2).max(1)),
            loading: permits(cores.max(2)),
        }
    }

    /// Reserves the memory of a body of up to `bytes` bytes that is to be received. If it is not
    /// large, this includes the memory of its parsed form.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub(crate) async fn receive(&self, bytes: usize) -> Result<BodyMemory, MemoryError> {
        let is_large = bytes > LARGE_BYTES;
        let bytes = bytes as u64;
        let (_receiving, needed) = if is_large {
            let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
            let units = units.min(self.receiving_units);
            let permit = Arc::clone(&self.receiving).acquire_many_owned(units);
            (Some(in_time(self.memory.wait(), permit).await?), bytes)
        } else {
            (None, bytes * BYTES_PER_SMALL_BYTE)
        };
        Ok(BodyMemory {
            _memory: self.memory.reserve(MemoryUse::Requests, needed).await?,
            _receiving,
        })
    }

    /// Does the work on a complete body of this size. If it is large, this is done on a thread
    /// that may block, and the memory of its parsed form is reserved first.
    ///
    /// # Errors
    /// [`MemoryError`]; `internal` if the work panics.
    pub(crate) async fn process<R, F>(
        &self,
        size: DocumentSize,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Result<R, ApiError>
    where
        R: Send + 'static,
        F: Future<Output = R>,
    {
        if size.bytes <= LARGE_BYTES {
            return Ok(work().await);
        }
        let place = Arc::clone(&self.processing).acquire_owned();
        let place = in_time(self.memory.wait(), place).await?;
        let memory = self.memory.reserve(MemoryUse::Requests, size.memory());
        let memory = memory.await?;
        on_blocking_thread(async move || {
            let result = work().await;
            drop((place, memory));
            result
        })
        .await
    }

    /// Makes an answer from stored documents that have approximately `bytes` bytes of text. If they are large,
    /// their memory is reserved until the answer is sent, which may take long with a slow client.
    ///
    /// # Errors
    /// [`MemoryError`], and those of `make`.
    pub(crate) async fn answer<R: IntoResponse>(
        &self,
        bytes: u64,
        make: impl AsyncFnOnce() -> Result<R, ApiError>,
    ) -> Result<Response, ApiError> {
        if bytes <= LARGE_BYTES as u64 {
            return Ok(make().await?.into_response());
        }
        let needed = bytes.saturating_mul(BYTES_PER_BYTE);
        let memory = self.memory.reserve(MemoryUse::Requests, needed).await?;
        let (mut head, body) = make().await?.into_response().into_parts();
        let body = body.collect().await;
        let body = body.map_err(|_| ApiError::stopping())?.to_bytes();
        let length = HeaderValue::from(body.len());
        head.headers.insert(header::CONTENT_LENGTH, length);
        let parts = stream::unfold((body, memory), async |(mut rest, memory)| {
            let part = rest.split_to(rest.len().min(SENT_BYTES));
            (!part.is_empty()).then_some((Ok::<_, Infallible>(part), (rest, memory)))
        });
        Ok(Response::from_parts(head, Body::from_stream(parts)))
    }

    /// Reads a stored document that may be large, on a thread that may block.
    ///
    /// # Errors
    /// `internal` if the work panics.
    pub(crate) async fn load<R, F>(
        &self,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Result<R, ApiError>
    where
        R: Send + 'static,
        F: Future<Output = R>,
    {
        let place = Arc::clone(&self.loading).acquire_owned().await;
        let place = place.map_err(|_| ApiError::stopping())?;
        on_blocking_thread(async move || {
            let result = work().await;
            drop(place);
            result
        })
        .await
    }
}

/// A permit, if it is free within `wait`.
async fn in_time<T, E>(
    wait: Duration,
    permit: impl Future<Output = Result<T, E>>,
) -> Result<T, MemoryError> {
    match tokio::time::timeout(wait, permit).await {
        Ok(Ok(permit)) => Ok(permit),
        _ => Err(MemoryError::Busy),
    }
}

/// Runs a future to its end on a thread that may block.
async fn on_blocking_thread<R, F>(work: impl FnOnce() -> F + Send + 'static) -> Result<R, ApiError>
where
    R: Send + 'static,
    F: Future<Output = R>,
{
    let runtime = Handle::current();
    let work = telemetry::carry(move || runtime.block_on(work()));
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => Ok(result),
        Err(error) if error.is_panic() => Err(ApiError::panicked()),
        Err(_) => Err(ApiError::stopping()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{DocumentSize, LARGE_BYTES, LargeDocuments};
    use crate::api::error::ApiError;
    use crate::memory::{MemoryBudget, MemoryUse};
    use crate::problem::Code;

    fn size(bytes: usize, nodes: usize) -> DocumentSize {
        DocumentSize { bytes, nodes }
    }

    #[tokio::test]
    async fn bodies_that_are_received_leave_memory_for_complete_ones() {
        let memory = MemoryBudget::new(256 << 20, Duration::from_millis(20));
        let requests = memory.limit(MemoryUse::Requests);
        let documents = LargeDocuments::new(memory.clone());
        let received = documents.receive(24 << 20).await.unwrap();
        assert!(documents.receive(24 << 20).await.is_err());
        assert!(requests - memory.used() >= 32 << 20);
        let process = documents.process(size(2 << 20, 0), async || ());
        process.await.unwrap();
        drop(received);
        let _second = documents.receive(24 << 20).await.unwrap();
    }

    #[tokio::test]
    async fn a_document_that_never_fits_is_refused_by_the_name_of_the_limit() {
        let memory = MemoryBudget::new(16 << 20, Duration::from_millis(20));
        let documents = LargeDocuments::new(memory);
        let refused = documents
            .process(size(LARGE_BYTES * 4, 9000), async || ())
            .await;
        let Err(ApiError::Problem(problem)) = refused else {
            panic!("expected a problem");
        };
        assert_eq!(problem.code, Code::LimitExceeded);
        assert!(problem.detail.contains("memory.process_bytes"));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_large_document_does_not_hold_up_the_runtime() {
        let documents = LargeDocuments::new(MemoryBudget::new(1 << 30, Duration::from_secs(1)));
        let (started, working) = tokio::sync::oneshot::channel();
        let (finish, finished) = std::sync::mpsc::channel::<()>();
        let process = documents.process(size(LARGE_BYTES + 1, 0), async move || {
            let _ = started.send(());
            // Blocks its thread; this test has only one other.
            finished.recv().unwrap();
        });
        let other = async {
            working.await.unwrap();
            finish.send(()).unwrap();
        };
        tokio::join!(process, other).0.unwrap();
    }
}
