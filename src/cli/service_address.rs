//! Documents of a running service, fetched with a token of their holder.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use axum::http::Uri;
use pais::problem::ProblemDocument;

use super::failure::Failure;

/// The variable with the token.
const TOKEN: &str = "PAIS_TOKEN";

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
        let uri: Uri = text.parse().map_err(|_| "this is not an address")?;
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

    /// Fetches the document.
    ///
    /// # Errors
    /// Without a token, and if the service does not answer with a document.
    pub(crate) fn get(&self) -> Result<Vec<u8>, Failure> {
        let Ok(token) = std::env::var(TOKEN) else {
            let detail = format!("put a token of its holder into {TOKEN}");
            return Err(Failure::Usage(format!("{self}: {detail}")));
        };
        self.fetch(Some(token.trim()))
    }

    /// Fetches a document that needs no token.
    ///
    /// # Errors
    /// If the service does not answer with a document.
    pub(crate) fn get_public(&self) -> Result<Vec<u8>, Failure> {
        self.fetch(None)
    }

    fn fetch(&self, token: Option<&str>) -> Result<Vec<u8>, Failure> {
        let failed = |detail: String| Failure::Usage(format!("{self}: {detail}"));
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(TIMEOUT));
        if self.is_local {
            config = config.proxy(None);
        }
        let request = ureq::Agent::from(config.build()).get(&self.text);
        let request = match token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
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
