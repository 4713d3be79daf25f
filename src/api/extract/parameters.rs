//! Parameters in the path and in the query.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::api::error::ApiError;
use crate::api::state::AppState;
use crate::problem::Code;

/// Path parameters; `invalid_parameter` if one has the wrong type.
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<AppState> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|axum::extract::Path(value)| Self(value))
            .map_err(|_| {
                ApiError::new(
                    Code::InvalidParameter,
                    "an id in the path is not a UUID; check the path",
                )
            })
    }
}

/// Query parameters; `invalid_parameter` if one has the wrong type.
pub struct Parameters<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<AppState> for Parameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(value)| Self(value)).map_err(|_| {
            ApiError::new(
                Code::InvalidParameter,
                "a query parameter has the wrong type; /openapi.json has the types",
            )
        })
    }
}
