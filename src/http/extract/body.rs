//! Bodies that are read as a whole.

use axum::extract::{FromRequest, Request};
use axum::http::header;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use pais_core::definition::json;
use serde::de::DeserializeOwned;

use crate::http::response::error::ApiError;
use crate::http::state::AppState;
use crate::problem::Code;

use super::content_type::require_json;

/// A whole body without `Content-Encoding`, of at most `limits.json_bytes`.
pub struct WholeBody(pub Bytes);

impl FromRequest<AppState> for WholeBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let encoding = request.headers().get(header::CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(ApiError::new(
                Code::UnsupportedMediaType,
                "send this body without `Content-Encoding`; only submissions may be compressed",
            ));
        }
        let limit = state.service.limits.json_bytes;
        let mut stream = request.into_body().into_data_stream();
        let mut body = BytesMut::new();
        while let Some(frame) = stream.next().await {
            let frame = frame.map_err(|_| {
                ApiError::new(Code::MalformedBody, "the body could not be read to its end")
            })?;
            if body.len() + frame.len() > limit {
                let detail = format!("the body has more than {limit} bytes (limits.json_bytes)");
                return Err(ApiError::new(Code::TooLarge, detail));
            }
            body.extend_from_slice(&frame);
        }
        Ok(Self(body.freeze()))
    }
}

/// A JSON body of the documented shape.
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned> FromRequest<AppState> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        require_json(request.headers())?;
        let WholeBody(body) = WholeBody::from_request(request, state).await?;
        Ok(Self(json::parse(&body)?))
    }
}
