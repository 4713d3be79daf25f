//! The limit on the time until a response begins.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use crate::api::error::problem_response;
use crate::problem::{Code, Problem};

/// Ends requests whose response has not begun within `limit`.
pub(crate) async fn limit_time(
    State(limit): State<Duration>,
    request: Request,
    next: Next,
) -> Response {
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => problem_response(&Problem::new(
            Code::RequestTimeout,
            format!(
                "there was no answer within {} s; try again",
                limit.as_secs()
            ),
        )),
    }
}
