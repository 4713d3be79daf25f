//! The service's own documents, as its endpoints answer them, where a command takes a definition.

use std::collections::HashMap;
use std::sync::Arc;

use pais_core::definition::json::{self, DocumentError};
use pais_core::definition::{DatasetDefinition, JobDefinition, TaxonomyId, TaxonomyNode};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};

/// The fields of a dataset that the service adds to its definition.
const OF_DATASET: [&str; 7] = [
    "id",
    "created_at",
    "rows",
    "submissions",
    "submissions_total",
    "legal_hold",
    "warnings",
];

/// Tells a document of the service from a definition.
#[derive(Deserialize)]
struct Probe {
    id: Option<IgnoredAny>,
    created_at: Option<IgnoredAny>,
    definition: Option<IgnoredAny>,
}

/// A definition of a dataset: the body of `POST /v1/datasets`, or an answer of
/// `GET /v1/datasets/{id}`.
///
/// # Errors
/// As [`json::parse`].
pub(crate) fn dataset(body: &[u8]) -> Result<DatasetDefinition, DocumentError> {
    let Some(mut document) = of_service(body) else {
        return json::parse(body);
    };
    document.retain(|field, _| !OF_DATASET.contains(&field.as_str()));
    of_value(&Value::Object(document))
}

/// A definition of a job: the body of `POST /v1/jobs`, or an answer of `GET /v1/jobs/{id}`; and
/// whether it is such an answer.
///
/// # Errors
/// As [`json::parse`].
pub(crate) fn job(body: &[u8]) -> Result<(JobDefinition, bool), DocumentError> {
    match of_service(body).and_then(|mut document| document.remove("definition")) {
        Some(definition) => Ok((of_value(&definition)?, true)),
        None => Ok((json::parse(body)?, false)),
    }
}

/// A document of the service; `None` for a definition, and for what is no JSON object.
fn of_service(body: &[u8]) -> Option<Map<String, Value>> {
    let probe: Probe = serde_json::from_slice(body).ok()?;
    let is_of_service = probe.id.is_some() && (probe.created_at.or(probe.definition)).is_some();
    is_of_service.then(|| serde_json::from_slice(body).ok())?
}

fn of_value<T: DeserializeOwned>(value: &Value) -> Result<T, DocumentError> {
    json::parse(value.to_string().as_bytes())
}

/// Taxonomies of the service by their ids.
pub(crate) type Taxonomies = HashMap<TaxonomyId, Arc<TaxonomyNode>>;

/// An answer of `GET /v1/taxonomies/{id}`; what else it has is not needed.
#[derive(Deserialize)]
struct TaxonomyDocument {
    id: TaxonomyId,
    root: TaxonomyNode,
}

/// One answer of `GET /v1/taxonomies/{id}`, or a list of several.
///
/// # Errors
/// As [`json::parse`].
pub(crate) fn taxonomies(body: &[u8]) -> Result<Taxonomies, DocumentError> {
    let is_list = body.trim_ascii_start().first() == Some(&b'[');
    let documents: Vec<TaxonomyDocument> = match is_list {
        true => json::parse_any(body)?,
        false => vec![json::parse(body)?],
    };
    let pairs = documents.into_iter();
    let pairs = pairs.map(|document| (document.id, Arc::new(document.root)));
    Ok(pairs.collect())
}
