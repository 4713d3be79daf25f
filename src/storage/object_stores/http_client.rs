//! The HTTP client of object stores: that of hyper, with the TLS of the rest of the service.

use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::TokioExecutor;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use tokio_rustls::rustls::crypto::ring;

/// Longest time until a connection is made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time until the head of a response has come, after the whole request was sent.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Makes clients that trust the certificates of the operating system.
#[derive(Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let unusable = |error| object_store::Error::Generic {
            store: "S3",
            source: Box::new(error),
        };
        let builder = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(ring::default_provider())
            .map_err(unusable)?;
        // The machine's own credentials server is queried without TLS.
        let allow_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        let builder = if allow_http.as_deref() == Some("true") {
            builder.https_or_http()
        } else {
            builder.https_only()
        };
        let client =
            Client::builder(TokioExecutor::new()).build(builder.enable_http1().wrap_connector(tcp));
        Ok(HttpClient::new(HyperClient(client)))
    }
}

#[derive(Debug)]
struct HyperClient(Client<HttpsConnector<TcpConnector>, HttpRequestBody>);

#[async_trait]
impl HttpService for HyperClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answered = tokio::time::timeout(RESPONSE_TIMEOUT, self.0.request(request)).await;
        let answered = answered.map_err(|late| HttpError::new(HttpErrorKind::Timeout, late))?;
        let response = answered.map_err(|error| {
            let kind = if error.is_connect() {
                HttpErrorKind::Connect
            } else {
                HttpErrorKind::Interrupted
            };
            HttpError::new(kind, error)
        })?;
        let interrupted = |error| HttpError::new(HttpErrorKind::Interrupted, error);
        Ok(response.map(|body| HttpResponseBody::new(body.map_err(interrupted))))
    }
}
