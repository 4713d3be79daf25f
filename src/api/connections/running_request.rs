//! A request under way, and the answer that ends it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::Activity;

/// A request of a connection, which ends when this is dropped.
pub(crate) struct RunningRequest {
    activity: Arc<Activity>,
}

impl RunningRequest {
    pub(super) fn new(activity: Arc<Activity>) -> Self {
        Self { activity }
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.activity.end_request();
    }
}

/// The body of an answer. The request is under way until it is sent or dropped.
pub(crate) struct CountedBody {
    body: Body,
    _request: RunningRequest,
}

impl CountedBody {
    /// The body of the answer to a request.
    pub(crate) fn new(body: Body, request: RunningRequest) -> Self {
        Self {
            body,
            _request: request,
        }
    }
}

impl hyper::body::Body for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
