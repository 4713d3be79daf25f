//! Parameters in the path and in the query. Parameters that are not in the OpenAPI document are refused.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::OnceLock;

use axum::extract::{FromRequestParts, MatchedPath, Query};
use axum::http::Method;
use axum::http::request::Parts;
use pais_core::definition::TextFormatDefinition;
use pais_io::read::{TextFormatError, TextParameters};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::IntoParams;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
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
                (None, Some(name)) => {
                    let form = documented(parts).and_then(|forms| forms.get(name));
                    let form = form.map_or("of the type that /openapi.json has", String::as_str);
                    format!("the query parameter `{name}` must be {form}")
                }
                (None, None) => NO_QUERY.to_owned(),
            };
            ApiError::new(Code::InvalidParameter, detail)
        })
    }
}

/// What is wrong with a query that cannot be parsed.
const NO_QUERY: &str = "the query is not of the form `?name=value&…`";

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

/// The query parameters of a route, with what each must be.
type Forms = BTreeMap<String, String>;

/// The query parameters of each method and route.
static DOCUMENTED: OnceLock<HashMap<(Method, String), Forms>> = OnceLock::new();

/// Remembers the query parameters of a document, so that others are refused from then on.
pub(crate) fn remember_parameters(document: &OpenApi) {
    DOCUMENTED.get_or_init(|| {
        let mut documented = HashMap::new();
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
                    documented.insert((method, path.clone()), forms(document, operation));
                }
            }
        }
        documented
    });
}

fn forms(document: &OpenApi, operation: &Operation) -> Forms {
    let parameters = operation.parameters.iter().flatten();
    parameters
        .filter_map(|parameter| match parameter {
            RefOr::T(parameter) => Some(parameter),
            RefOr::Ref(_) => None,
        })
        .filter(|parameter| matches!(parameter.parameter_in, ParameterIn::Query))
        .map(|parameter| (parameter.name.clone(), form(document, parameter)))
        .collect()
}

/// What a parameter must be.
fn form(document: &OpenApi, parameter: &Parameter) -> String {
    let schema = match (&parameter.schema, &document.components) {
        (Some(RefOr::Ref(reference)), Some(components)) => {
            let name = reference.ref_location.rsplit('/').next();
            name.and_then(|name| components.schemas.get(name))
        }
        (schema, _) => schema.as_ref(),
    };
    let schema = serde_json::to_value(schema).unwrap_or_default();
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().filter_map(Value::as_str);
        return format!("one of {}", words.collect::<Vec<_>>().join(", "));
    }
    let (least, most) = (&schema["minimum"], &schema["maximum"]);
    match schema["type"].as_str() {
        Some("integer") if most.is_number() => format!("a whole number from {least} to {most}"),
        Some("integer") if least.is_number() => format!("a whole number from {least} on"),
        Some("integer") => "a whole number".to_owned(),
        Some("number") => "a number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        _ if schema["format"] == "uuid" => "an id (a UUID)".to_owned(),
        _ => "a text".to_owned(),
    }
}

/// The query parameters of the route of a request; `None` for a route that the document does not have.
fn documented(parts: &Parts) -> Option<&'static Forms> {
    let path = parts.extensions.get::<MatchedPath>()?;
    let method = match parts.method {
        Method::HEAD => Method::GET,
        ref method => method.clone(),
    };
    let key = (method, path.as_str().to_owned());
    DOCUMENTED.get()?.get(&key)
}

/// Refuses query parameters that the route does not have, and those that are there twice.
///
/// # Errors
/// `invalid_parameter`.
pub(crate) async fn check_names(parts: &mut Parts) -> Result<(), Problem> {
    if parts.uri.query().is_none_or(str::is_empty) {
        return Ok(());
    }
    let Some(known) = documented(parts) else {
        return Ok(());
    };
    let refused = |detail| Err(Problem::new(Code::InvalidParameter, detail));
    let given = Query::<Vec<(String, String)>>::from_request_parts(parts, &()).await;
    let Ok(Query(given)) = given else {
        return refused(NO_QUERY.to_owned());
    };
    let mut seen = HashSet::new();
    for (name, _) in &given {
        if !known.contains_key(name) {
            return refused(unknown(name, known));
        }
        if !seen.insert(name) {
            return refused(format!(
                "the query parameter `{name}` is there twice; give it once"
            ));
        }
    }
    Ok(())
}

/// The message for a parameter that a route does not have. Other text than a name may be a value.
fn unknown(name: &str, known: &Forms) -> String {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let is_named = (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_of_name);
    let names: Vec<&str> = known.keys().map(String::as_str).collect();
    let names = names.join(", ");
    if known.is_empty() && is_named {
        format!("this path has no query parameters; leave `{name}` out")
    } else if known.is_empty() {
        "this path has no query parameters; leave them out".to_owned()
    } else if is_named {
        format!("there is no query parameter `{name}`; this path has {names}")
    } else {
        format!("there is no such query parameter; this path has {names}")
    }
}

/// Number of characters up to which an unknown parameter is named.
const LONGEST_NAME: usize = 32;

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
