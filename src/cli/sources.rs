//! Documents that a command reads: from files, or from a running service with a token of their holder.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;
use pais::problem::{Code, Problem, ProblemDocument};
use pais_core::codebook::{Codebook, ReleaseTerms};
use pais_core::definition::json::{self, DocumentError};
use pais_core::definition::{DatasetDefinition, JobDefinition, TaxonomyId, TaxonomyNode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::output::{Failure, in_file};

/// A file, or a resource of a service.
#[derive(Clone, Debug)]
pub(crate) enum DocumentSource {
    /// A file.
    File(PathBuf),
    /// An `http` or `https` address.
    Service(ServiceAddress),
}

impl FromStr for DocumentSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("http://") || text.starts_with("https://") {
            text.parse().map(Self::Service)
        } else if text == "-" {
            Err("a document is not read from standard input by `-`; name a file".to_owned())
        } else {
            Ok(Self::File(PathBuf::from(text)))
        }
    }
}

impl fmt::Display for DocumentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Service(address) => address.fmt(f),
        }
    }
}

impl DocumentSource {
    /// The bytes of the document.
    ///
    /// # Errors
    /// If the file cannot be read, or the service does not answer with a document.
    pub(crate) fn read(&self) -> Result<Vec<u8>, Failure> {
        match self {
            Self::File(path) => std::fs::read(path).map_err(|error| Failure::file(path, error)),
            Self::Service(address) => address.fetch(Some(&address.token()?)),
        }
    }

    /// The bytes of a document that needs no token.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn read_public(&self) -> Result<Vec<u8>, Failure> {
        match self {
            Self::File(_) => self.read(),
            Self::Service(address) => address.fetch(None),
        }
    }
}

/// The variable with the token.
pub(crate) const TOKEN: &str = "PAIS_TOKEN";

/// Longest time that a service may take to answer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Size of the largest document that is read, in bytes.
const LIMIT: u64 = 1 << 30;

/// The address of a service, or of a resource of it.
#[derive(Clone, Debug)]
pub(crate) struct ServiceAddress {
    text: String,
    /// Whether it is on this machine.
    is_local: bool,
}

impl FromStr for ServiceAddress {
    type Err = String;

    /// An `http` or `https` address. A token goes over `http` to this machine only.
    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Option<Uri> = text.parse().ok();
        let is_url = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https"));
        let uri = uri.filter(is_url).ok_or(
            "this is no URL; expected one such as https://pais.example or http://127.0.0.1:8080",
        )?;
        let host = uri.host().unwrap_or_default();
        let ip = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = |ip: std::net::IpAddr| ip.is_loopback();
        let is_local = host == "localhost" || ip.parse().is_ok_and(is_loopback);
        if !is_local && uri.scheme_str() != Some("https") {
            return Err("a token is sent to another machine by https only".to_owned());
        }
        Ok(Self {
            text: text.trim_end_matches('/').to_owned(),
            is_local,
        })
    }
}

impl fmt::Display for ServiceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl ServiceAddress {
    /// The taxonomy with this id, of the service that this is an address of or in.
    pub(crate) fn taxonomy(&self, id: impl fmt::Display) -> Self {
        let service = self.text.split("/v1").next().unwrap_or_default();
        Self {
            text: format!("{service}/v1/taxonomies/{id}"),
            is_local: self.is_local,
        }
    }

    /// A client of the service. Redirects are not followed: a token is for this address.
    pub(super) fn agent(
        &self,
        config: ureq::config::ConfigBuilder<ureq::typestate::AgentScope>,
    ) -> ureq::Agent {
        let config = config.http_status_as_error(false).max_redirects(0);
        let config = if self.is_local {
            config.proxy(None)
        } else {
            config
        };
        config.build().into()
    }

    fn token(&self) -> Result<String, Failure> {
        std::env::var(TOKEN).map_err(|_| {
            Failure::Usage(format!("{self}: put a token that may read it into {TOKEN}"))
        })
    }

    fn fetch(&self, token: Option<&str>) -> Result<Vec<u8>, Failure> {
        let failed = |detail: String| Failure::Usage(format!("{self}: {detail}"));
        let config = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT));
        let request = self.agent(config).get(&self.text);
        let request = match token {
            Some(token) => request.header("authorization", format!("Bearer {}", token.trim())),
            None => request,
        };
        let mut answer = request.call().map_err(|error| failed(error.to_string()))?;
        let body = answer.body_mut().with_config().limit(LIMIT).read_to_vec();
        let body = body.map_err(|error| failed(error.to_string()))?;
        if answer.status().is_success() {
            return Ok(body);
        }
        let status = answer.status();
        Err(failed(match serde_json::from_slice(&body) {
            Ok(ProblemDocument { detail, .. }) => format!("{status}: {detail}"),
            Err(_) => status.to_string(),
        }))
    }
}

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

/// A definition of a dataset: the body of `POST /v1/datasets`, or an answer of
/// `GET /v1/datasets/{id}`.
///
/// # Errors
/// As [`json::parse`].
pub(crate) fn parse_dataset(body: &[u8]) -> Result<DatasetDefinition, DocumentError> {
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
pub(crate) fn parse_job(body: &[u8]) -> Result<(JobDefinition, bool), DocumentError> {
    match of_service(body).and_then(|mut document| document.remove("definition")) {
        Some(definition) => Ok((of_value(&definition)?, true)),
        None => Ok((json::parse(body)?, false)),
    }
}

/// A document of the service; `None` for a definition, and for what is no JSON object.
fn of_service(body: &[u8]) -> Option<Map<String, Value>> {
    let document: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let has = |field| document.get(field).is_some_and(|value| !value.is_null());
    let is_of_service = has("id") && (has("created_at") || has("definition"));
    is_of_service.then_some(document)
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
pub(crate) fn parse_taxonomies(body: &[u8]) -> Result<Taxonomies, DocumentError> {
    let is_list = body.trim_ascii_start().first() == Some(&b'[');
    let documents: Vec<TaxonomyDocument> = if is_list {
        json::parse(body)?
    } else {
        vec![json::parse(body)?]
    };
    let pairs = documents.into_iter();
    let pairs = pairs.map(|document| (document.id, Arc::new(document.root)));
    Ok(pairs.collect())
}

/// A release as its document describes it.
pub(crate) struct DescribedRelease {
    /// The terms of the release.
    pub(crate) terms: ReleaseTerms,
    /// What resolves its labels.
    pub(crate) codebook: Codebook,
}

/// Reads the answer of `GET /v1/releases/{id}`.
///
/// # Errors
/// If the document cannot be read, is not that of a release, or has no codebook.
pub(crate) fn load_release(source: &DocumentSource) -> Result<DescribedRelease, Failure> {
    let terms = ReleaseTerms::parse(&source.read()?);
    let mut terms = terms.map_err(|error| in_file(source, error))?;
    match terms.codebook.take() {
        Some(codebook) => Ok(DescribedRelease { terms, codebook }),
        None => {
            let detail =
                "the release has no codebook: it is an item of a list; fetch /v1/releases/{id}";
            let problem = Problem::at(Code::InvalidShape, "/codebook", detail);
            Err(in_file(source, problem).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ServiceAddress;

    #[test]
    fn a_token_leaves_the_machine_encrypted_only() {
        for address in [
            "https://a.example",
            "http://127.0.0.1:8080",
            "http://[::1]:1",
        ] {
            assert!(address.parse::<ServiceAddress>().is_ok(), "{address}");
        }
        for address in [
            "http://a.example",
            "http://10.0.0.1",
            "http://localhost.example",
            "notaurl",
            "localhost:8080",
        ] {
            assert!(address.parse::<ServiceAddress>().is_err(), "{address}");
        }
    }

    #[test]
    fn taxonomies_are_those_of_the_same_service() {
        for address in ["https://a.example", "https://a.example/v1/datasets/7"] {
            let address: ServiceAddress = address.parse().unwrap();
            let taxonomy = address.taxonomy(3).to_string();
            assert_eq!(taxonomy, "https://a.example/v1/taxonomies/3");
        }
    }
}
