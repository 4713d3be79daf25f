//! Extractors whose refusals are problem documents.

use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;

use crate::problem::Code;
use pais_core::definition::json;

use super::{ApiError, AppState};

/// A path parameter, `invalid_parameter` when it is not of its type.
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<AppState> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|axum::extract::Path(value)| Self(value))
            .map_err(|_| ApiError::new(Code::InvalidParameter, "an id in the path is no UUID"))
    }
}

/// Query parameters, `invalid_parameter` when they are not of their types.
pub struct Parameters<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<AppState> for Parameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(value)| Self(value)).map_err(|_| {
            ApiError::new(
                Code::InvalidParameter,
                "a query parameter is not of its type",
            )
        })
    }
}

/// The media type that a request declares for its body, without parameters, in lower case.
pub fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE);
    let text = value.and_then(|value| value.to_str().ok());
    let essence = text.unwrap_or_default().split(';').next();
    essence.unwrap_or_default().trim().to_ascii_lowercase()
}

/// A whole body without `Content-Encoding`, at most `limits.json_bytes`.
pub struct Body(pub Bytes);

impl FromRequest<AppState> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let encoding = request.headers().get(header::CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(ApiError::new(
                Code::UnsupportedMediaType,
                "send this body without `Content-Encoding`; only submissions may be compressed",
            ));
        }
        let limit = state.limits.json_bytes;
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
        if media_type(request.headers()) != "application/json" {
            return Err(ApiError::new(
                Code::UnsupportedMediaType,
                "send the body with `Content-Type: application/json`",
            ));
        }
        let Body(body) = Body::from_request(request, state).await?;
        Ok(Self(json::parse(&body)?))
    }
}
