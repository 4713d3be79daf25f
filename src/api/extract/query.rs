//! Parameters in the path and in the query. Parameters that are not in the OpenAPI document are refused.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use axum::extract::{FromRequestParts, MatchedPath, Query};
use axum::http::Method;
use axum::http::request::Parts;
use pais_core::definition::TextFormatDefinition;
use pais_io::read::{TextFormatError, TextParameters};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::{OpenApi, RefOr};

use crate::api::error::ApiError;
use crate::api::state::AppState;
use crate::problem::{Code, Problem};

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
        query.map(|Query(value)| Self(value)).map_err(|rejection| {
            let reason = rejection.body_text();
            let detail = match (missing_in(&reason), name_in(&reason)) {
                (Some(name), _) => format!("the query parameter `{name}` is missing"),
                (None, Some(name)) => wrong(&format!("the query parameter `{name}`")),
                (None, None) => wrong("a query parameter"),
            };
            ApiError::new(Code::InvalidParameter, detail)
        })
    }
}

fn wrong(which: &str) -> String {
    format!("{which} has the wrong type or is there twice; /openapi.json has the types")
}

/// The parameter that is missing according to the reason of a rejection.
fn missing_in(reason: &str) -> Option<&str> {
    let (_, named) = reason.split_once(": missing field `")?;
    named.strip_suffix('`').filter(|name| is_name(name))
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty() && bytes.all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// The parameter that the reason of a rejection names; never its value.
fn name_in(reason: &str) -> Option<&str> {
    let (_, named) = reason.split_once(": ")?;
    let (name, _) = named.split_once(": ")?;
    is_name(name).then_some(name)
}

type Names = HashMap<(Method, String), HashSet<String>>;

/// The query parameters of each method and route.
static NAMES: OnceLock<Names> = OnceLock::new();

/// Remembers the query parameters of a document, so that others are refused from then on.
pub(crate) fn remember_names(document: &OpenApi) {
    NAMES.get_or_init(|| {
        let mut names = Names::new();
        for (path, item) in &document.paths.paths {
            let operations = [
                (Method::GET, &item.get),
                (Method::POST, &item.post),
                (Method::PUT, &item.put),
                (Method::DELETE, &item.delete),
                (Method::PATCH, &item.patch),
            ];
            for (method, operation) in operations {
                if let Some(operation) = operation {
                    names.insert((method, path.clone()), query_names(operation));
                }
            }
        }
        names
    });
}

fn query_names(operation: &Operation) -> HashSet<String> {
    let parameters = operation.parameters.iter().flatten();
    parameters
        .filter_map(|parameter| match parameter {
            RefOr::T(parameter) => Some(parameter),
            RefOr::Ref(_) => None,
        })
        .filter(|parameter| matches!(parameter.parameter_in, ParameterIn::Query))
        .map(|parameter| parameter.name.clone())
        .collect()
}

/// Refuses query parameters that the route does not have.
///
/// # Errors
/// `invalid_parameter`.
pub(crate) async fn check_names(parts: &mut Parts) -> Result<(), Problem> {
    let Some(path) = parts.extensions.get::<MatchedPath>() else {
        return Ok(());
    };
    if parts.uri.query().is_none_or(str::is_empty) {
        return Ok(());
    }
    let method = match parts.method {
        Method::HEAD => Method::GET,
        ref method => method.clone(),
    };
    let key = (method, path.as_str().to_owned());
    let Some(known) = NAMES.get().and_then(|names| names.get(&key)) else {
        return Ok(());
    };
    let given = Query::<Vec<(String, String)>>::from_request_parts(parts, &()).await;
    let Query(given) = given.map_err(|_| {
        Problem::new(
            Code::InvalidParameter,
            "the query is not of the form `?name=value&…`",
        )
    })?;
    let is_known = |(name, _): &(String, String)| known.contains(name);
    if given.iter().all(is_known) {
        return Ok(());
    }
    let mut names: Vec<&str> = known.iter().map(String::as_str).collect();
    names.sort_unstable();
    let detail = match names.as_slice() {
        [] => "this path has no query parameters; leave them out".to_owned(),
        names => format!(
            "there is no such query parameter; this path has {}",
            names.join(", ")
        ),
    };
    Err(Problem::new(Code::InvalidParameter, detail))
}

/// How a table in text is written.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TextQuery {
    /// The character between two cells: one ASCII character, or the word `tab`. Default: a comma; a tab
    /// for `text/tab-separated-values`.
    #[param(pattern = "^([!#-/:-@\\[-`{-~ \\t]|tab)$")]
    pub delimiter: Option<String>,
    /// Before the fraction of a number: `.` (when omitted) or `,`.
    #[param(pattern = "^[.,]$")]
    pub decimal: Option<String>,
    /// The thousands separator: one character that is not a letter, digit, sign, quote
    /// or control character. Default: none.
    #[param(pattern = "^[.,'_ \u{a0}\u{2019}\u{202f}]$")]
    pub thousands: Option<String>,
    /// `utf-8` (when omitted), `iso-8859-1`, `windows-1252` or `utf-16`. A byte order mark wins.
    #[param(pattern = "^(utf-8|iso-8859-1|windows-1252|utf-16)$")]
    pub encoding: Option<String>,
}

impl TextQuery {
    /// Checks each parameter.
    ///
    /// # Errors
    /// `invalid_parameter`.
    pub(crate) fn parse(self) -> Result<TextParameters, Problem> {
        let Self {
            delimiter,
            decimal,
            thousands,
            encoding,
        } = self;
        let given = TextFormatDefinition {
            delimiter,
            decimal,
            thousands,
            encoding,
        };
        TextParameters::try_from(&given).map_err(refused)
    }
}

/// A parameter of another form, or two of them that exclude each other.
pub(super) fn refused(error: TextFormatError) -> Problem {
    let code = match error.parameter() {
        Some(_) => Code::InvalidParameter,
        None => Code::InvalidValue,
    };
    Problem::new(code, error.to_string())
}
