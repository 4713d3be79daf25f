//! Sends spans to a collector by OTLP over HTTP, as protobuf.

use std::time::{Duration, Instant};

use anyhow::ensure;
use axum::http::Uri;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use parking_lot::Mutex;
use prost::Message;

/// Longest time of a request to the collector.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Shortest time between two lines of the log about a collector that does not take spans.
const LOG_PAUSE: Duration = Duration::from_secs(60);

/// Largest answer that is read, so that its connection can be used again.
const ANSWER_BYTES: u64 = 64 << 10;

/// The path of traces below the URL of a collector.
const PATH: &str = "/v1/traces";

/// Where a collector takes traces.
#[derive(Clone, Debug)]
pub struct OtlpEndpoint {
    url: String,
    agent: ureq::Agent,
}

impl OtlpEndpoint {
    /// The endpoint of a collector by its URL, such as `http://127.0.0.1:4318`.
    ///
    /// # Errors
    /// What is expected of the URL, as the rest of a sentence about it.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        let base = url.trim_end_matches('/');
        let parsed = base.parse::<Uri>().ok();
        let parsed = parsed.filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
        let Some(authority) = parsed.as_ref().and_then(Uri::authority) else {
            return Err("must be a URL like http://127.0.0.1:4318");
        };
        if authority.as_str().contains('@') || base.contains(['?', '#']) {
            return Err("must be a URL without user, query and fragment");
        }
        if base.ends_with(PATH) {
            return Err("must be a URL without /v1/traces, which the service adds");
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .max_redirects(0)
            .build();
        Ok(Self {
            url: format!("{base}{PATH}"),
            agent: config.into(),
        })
    }

    /// Sends no spans, to see whether the collector answers. Blocks for a few seconds at most.
    ///
    /// # Errors
    /// When it does not answer, or refuses.
    pub fn probe(&self) -> anyhow::Result<()> {
        self.send(&ExportTraceServiceRequest::default())
    }

    fn send(&self, spans: &ExportTraceServiceRequest) -> anyhow::Result<()> {
        let request = self.agent.post(&self.url);
        let request = request.content_type("application/x-protobuf");
        let mut answer = request.send(spans.encode_to_vec())?;
        let status = answer.status();
        ensure!(status.is_success(), "the answer has status {status}");
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES);
        body.read_to_vec()?;
        Ok(())
    }
}

/// Sends batches of spans; it is called by a thread of its own. Spans that the collector does not take are
/// lost.
#[derive(Debug)]
pub(super) struct OtlpExporter {
    endpoint: OtlpEndpoint,
    resource: ResourceAttributesWithSchema,
    lost: Mutex<Lost>,
}

/// The spans that were lost since the last line of the log about them.
#[derive(Debug, Default)]
struct Lost {
    spans: usize,
    logged: Option<Instant>,
}

impl OtlpExporter {
    pub(super) fn new(endpoint: OtlpEndpoint) -> Self {
        Self {
            endpoint,
            resource: ResourceAttributesWithSchema::default(),
            lost: Mutex::default(),
        }
    }

    fn log(&self, spans: usize, error: &anyhow::Error) {
        let mut lost = self.lost.lock();
        lost.spans += spans;
        if lost.logged.is_some_and(|at| at.elapsed() < LOG_PAUSE) {
            return;
        }
        let (spans, pause) = (lost.spans, LOG_PAUSE.as_secs());
        *lost = Lost {
            spans: 0,
            logged: Some(Instant::now()),
        };
        tracing::warn!(
            error = &**error as &dyn std::error::Error,
            spans,
            "traces could not be sent to telemetry.otlp_endpoint and are lost; the next line about it \
             follows after {pause} s"
        );
    }
}

impl SpanExporter for OtlpExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
        let request = ExportTraceServiceRequest { resource_spans };
        self.endpoint.send(&request).map_err(|error| {
            self.log(spans, &error);
            OTelSdkError::InternalFailure("the collector did not take the spans".to_owned())
        })
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.resource = resource.into();
    }
}

#[cfg(test)]
mod tests {
    use super::OtlpEndpoint;

    #[test]
    fn an_endpoint_is_the_url_of_a_collector() {
        for (url, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            (
                "https://otel.example/pais/",
                "https://otel.example/pais/v1/traces",
            ),
        ] {
            assert_eq!(OtlpEndpoint::parse(url).unwrap().url, expected);
        }
        for (url, reason) in [
            ("127.0.0.1:4318", "like http"),
            ("grpc://otel.example:4317", "like http"),
            ("http://", "like http"),
            ("", "like http"),
            ("https://pais:secret@otel.example", "without user"),
            ("https://otel.example?key=secret", "query"),
            ("https://otel.example/v1/traces", "/v1/traces"),
        ] {
            let refused = OtlpEndpoint::parse(url).unwrap_err();
            assert!(refused.contains(reason), "{url}: {refused}");
        }
    }
}
