//! Bodies that are read as a whole.

use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{FromRequest, OptionalFromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use pais_core::definition::json;
use serde::de::DeserializeOwned;

use crate::api::error::ApiError;
use crate::api::large_documents::{
    BodyMemory, DocumentSize, LARGE_BYTES, LargeDocuments, TINY_BYTES,
};
use crate::api::state::AppState;
use crate::api::upload::pace::ClientTime;
use crate::problem::Code;

use super::headers::{media_type, require_json};

/// A whole body without `Content-Encoding`, of at most `limits.json_bytes`, with its memory.
pub struct WholeBody {
    bytes: Bytes,
    nodes: usize,
    memory: Option<BodyMemory>,
    documents: LargeDocuments,
}

/// Like [`WholeBody`], of at most `limits.job_json_bytes`.
pub(crate) struct JobBody(pub WholeBody);

/// The maximum size of a body, and the setting that limits it.
#[derive(Clone, Copy)]
struct Limit {
    bytes: usize,
    setting: &'static str,
}

impl FromRequest<AppState> for WholeBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let limit = Limit {
            bytes: state.unscoped().limits.json_bytes,
            setting: "limits.json_bytes",
        };
        Self::read(request, state, limit).await
    }
}

impl FromRequest<AppState> for JobBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let limit = Limit {
            bytes: state.unscoped().limits.job_json_bytes,
            setting: "limits.job_json_bytes",
        };
        WholeBody::read(request, state, limit).await.map(Self)
    }
}

impl WholeBody {
    async fn read(request: Request, state: &AppState, limit: Limit) -> Result<Self, ApiError> {
        let encoding = request.headers().get(header::CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(ApiError::new(
                Code::UnsupportedMediaType,
                "send this body without `Content-Encoding`; only submissions may be compressed",
            ));
        }
        let documents = &state.unscoped().documents;
        let separators: &[u8] = match media_type(request.headers()).as_str() {
            "application/json" => b"{",
            // Each cell of a hierarchy in CSV can be a node.
            _ => b";,\t\n",
        };
        let nodes_in = |frame: &[u8]| -> usize {
            let separators = separators.iter();
            let counts = separators.map(|byte| memchr::memchr_iter(*byte, frame).count());
            counts.sum()
        };
        let mut nodes = 0;
        let expected = expected_bytes(request.headers(), limit)?;
        let mut stream = request.into_body().into_data_stream();
        let (mut body, mut memory, mut reserved) = (BytesMut::new(), None, TINY_BYTES);
        let mut time = ClientTime::default();
        loop {
            let frame = time.wait(
                state.body_timeout.saturating_sub(time.spent()),
                stream.next(),
            );
            let Some(frame) = frame.await else {
                return Err(too_slow(state.body_timeout));
            };
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|_| {
                ApiError::new(Code::MalformedBody, "the body could not be read to its end")
            })?;
            let length = body.len() + frame.len();
            if length > limit.bytes {
                return Err(too_large(limit));
            }
            if length > reserved {
                // An announced size reserves no memory until the client sends the first part.
                reserved = if length > LARGE_BYTES {
                    expected
                } else {
                    expected.min(LARGE_BYTES)
                };
                // A body does not hold memory while it waits for another.
                drop(memory.take());
                memory = Some(documents.receive(reserved).await?);
                if reserved > LARGE_BYTES {
                    body.reserve(reserved - body.len());
                }
            }
            nodes += nodes_in(&frame);
            body.extend_from_slice(&frame);
        }
        Ok(Self {
            bytes: body.freeze(),
            nodes,
            memory,
            documents: documents.clone(),
        })
    }

    /// Processes the body: parses it, and executes the request. A large body is processed on a thread that may
    /// block, with its answer.
    ///
    /// # Errors
    /// Those of `work`; `busy` or `limit_exceeded` if there is no memory for the body.
    pub(crate) async fn process<R, F>(
        self,
        work: impl FnOnce(Bytes) -> F + Send + 'static,
    ) -> Result<R, ApiError>
    where
        R: Send + 'static,
        F: Future<Output = Result<R, ApiError>>,
    {
        let Self {
            bytes,
            nodes,
            memory,
            documents,
        } = self;
        let size = DocumentSize {
            bytes: bytes.len(),
            nodes,
        };
        let work = async move || {
            let result = work(bytes).await;
            drop(memory);
            result
        };
        documents.process(size, work).await?
    }
}

/// The size that the client announces, or else the maximum.
fn expected_bytes(headers: &HeaderMap, limit: Limit) -> Result<usize, ApiError> {
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    match length {
        Some(length) if length > limit.bytes => Err(too_large(limit)),
        Some(length) => Ok(length),
        None => Ok(limit.bytes),
    }
}

fn too_large(limit: Limit) -> ApiError {
    let Limit { bytes, setting } = limit;
    let detail = format!("the body has more than {bytes} bytes ({setting})");
    ApiError::new(Code::TooLarge, detail)
}

fn too_slow(limit: Duration) -> ApiError {
    let detail = format!(
        "the body was not complete within {} s (server.body_timeout_seconds)",
        limit.as_secs()
    );
    ApiError::new(Code::RequestTimeout, detail)
}

/// A JSON body of the documented shape, with its memory.
pub struct JsonBody<T>(pub T, pub(crate) Option<BodyMemory>);

impl<T: DeserializeOwned + Send + 'static> FromRequest<AppState> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        require_json(request.headers())?;
        let mut body = WholeBody::from_request(request, state).await?;
        let memory = body.memory.take();
        let value = body.process(async move |body| Ok(json::parse(&body)?));
        Ok(Self(value.await?, memory))
    }
}

/// `None` for a request without a body.
impl<T: DeserializeOwned + Send + 'static> OptionalFromRequest<AppState> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Option<Self>, ApiError> {
        let has_type = request.headers().contains_key(header::CONTENT_TYPE);
        if !has_type && request.body().is_end_stream() {
            return Ok(None);
        }
        let found = <Self as FromRequest<AppState>>::from_request(request, state);
        found.await.map(Some)
    }
}
