//! The names of query parameters: those that the OpenAPI document does not have are refused.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use axum::extract::{FromRequestParts, MatchedPath, Query};
use axum::http::Method;
use axum::http::request::Parts;
use utoipa::openapi::RefOr;
use utoipa::openapi::path::{Operation, ParameterIn};

use crate::api::router::api_document;
use crate::problem::{Code, Problem};

type Names = HashMap<(Method, String), HashSet<String>>;

/// The query parameters of each method and route.
static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let mut names = Names::new();
    for (path, item) in api_document().paths.paths {
        let operations = [
            (Method::GET, item.get),
            (Method::POST, item.post),
            (Method::PUT, item.put),
            (Method::DELETE, item.delete),
            (Method::PATCH, item.patch),
        ];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                names.insert((method, path.clone()), query_names(&operation));
            }
        }
    }
    names
});

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
pub(crate) async fn check(parts: &mut Parts) -> Result<(), Problem> {
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
    let Some(known) = NAMES.get(&(method, path.as_str().to_owned())) else {
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
