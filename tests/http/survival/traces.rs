//! Traces that the service sends to a collector: what belongs together, what they say, and that a
//! collector which is slow or away harms nobody.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AttributeValue;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message;
use reqwest::Client;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use super::keys::{dataset, errors, job, run};
use super::worker_processes::WorkerProcess;
use crate::hospital::{TABLE, definition, job_on};
use crate::process::{ServiceProcess, call};
use pais_test_support::poll::{pace, poll_async};

/// The span that a client says it has, and its trace.
const CLIENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
const CLIENT_TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// A collector that keeps what it receives.
struct Collector {
    url: String,
    bodies: Arc<Mutex<Vec<Bytes>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Collector {
    async fn start() -> Self {
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let received = bodies.clone();
        let take = post(async move |body: Bytes| received.lock().push(body));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", take);
        let serving = async move { axum::serve(listener, router).await.unwrap() };
        Self {
            url,
            bodies,
            _serving: AbortOnDropHandle::new(tokio::spawn(serving)),
        }
    }

    /// The settings of a service that sends to it, with a log of JSON.
    fn settings(&self) -> [(&'static str, &str); 2] {
        [
            ("PAIS__TELEMETRY__OTLP_ENDPOINT", &self.url),
            ("PAIS__LOG__FORMAT", "json"),
        ]
    }

    fn spans(&self) -> Vec<Received> {
        let decode = |body: &Bytes| ExportTraceServiceRequest::decode(&body[..]).unwrap();
        let bodies = self.bodies.lock();
        let resources = bodies.iter().flat_map(|body| decode(body).resource_spans);
        let scopes = resources.flat_map(|resource| resource.scope_spans);
        scopes
            .flat_map(|scope| scope.spans)
            .map(Received::from)
            .collect()
    }
}

/// A span that the collector has received.
#[derive(Clone, Debug)]
struct Received {
    name: String,
    trace: String,
    id: String,
    parent: String,
    links: Vec<(String, String)>,
    attributes: BTreeMap<String, String>,
    from: u64,
    to: u64,
}

impl From<Span> for Received {
    fn from(span: Span) -> Self {
        assert!(span.events.is_empty(), "{span:?}");
        let links = span.links.iter();
        let links = links.map(|link| (hex::encode(&link.trace_id), hex::encode(&link.span_id)));
        let attributes = span.attributes.into_iter().map(|attribute| {
            let value = match attribute.value.unwrap().value.unwrap() {
                AttributeValue::StringValue(text) => text,
                AttributeValue::IntValue(number) => number.to_string(),
                other => panic!("{other:?}"),
            };
            (attribute.key, value)
        });
        Self {
            name: span.name,
            trace: hex::encode(span.trace_id),
            id: hex::encode(span.span_id),
            parent: hex::encode(span.parent_span_id),
            links: links.collect(),
            attributes: attributes.collect(),
            from: span.start_time_unix_nano,
            to: span.end_time_unix_nano,
        }
    }
}

/// The only span of this name.
fn only<'a>(spans: &'a [Received], name: &str) -> &'a Received {
    let mut named = spans.iter().filter(|span| span.name == name);
    match (named.next(), named.next()) {
        (Some(span), None) => span,
        found => panic!("{name}: {found:?} in {spans:#?}"),
    }
}

/// The parts of a span by their names.
fn parts<'a>(spans: &'a [Received], whole: &Received) -> BTreeMap<&'a str, &'a Received> {
    let parts = spans.iter().filter(|span| span.parent == whole.id);
    parts.map(|span| (&*span.name, span)).collect()
}

/// The lines of a log of JSON.
fn lines(log: &str) -> Vec<Value> {
    let lines = log.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect()
}

/// A job when it has ended, which must be with success.
async fn ended(service: &ServiceProcess, token: &str, id: &Value) -> Value {
    let path = format!("{}/v1/jobs/{}", service.base, id.as_str().unwrap());
    let ended = poll_async(Duration::from_secs(60), async || {
        let shown = call(Client::new().get(&path), token).await;
        (!shown["ended_at"].is_null()).then_some(shown)
    });
    let ended = ended.await.expect("the job ends");
    assert_eq!(ended["status"], "succeeded", "{ended}");
    ended
}

#[tokio::test(flavor = "multi_thread")]
async fn one_trace_leads_from_a_request_to_its_job_and_the_release() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start().await;
    let data = folder.path().join("data");
    let mut service = ServiceProcess::start(&data, &collector.settings()).await;
    let token = service.token("hospital", "holder");
    let dataset = dataset(&service, &token, "planted-name").await;
    let client = Client::new();
    // Values of clients where spans could have them.
    let planted = TABLE.replace("58", "planted-cell");
    let refused = client.post(format!("{dataset}/submissions")).body(planted);
    let refused = refused.header("content-type", "text/csv");
    for request in [
        refused,
        client.get(format!("{dataset}?planted-query=1")),
        client.get(format!("{}/v1/jobs/planted-path", service.base)),
    ] {
        let answer = request.bearer_auth(&token).send().await.unwrap();
        assert!(answer.status().is_client_error());
    }

    let mut body = job_on(&dataset);
    body["release"] = json!(true);
    let request = client.post(format!("{}/v1/jobs", service.base)).json(&body);
    let request = request.header("traceparent", CLIENT);
    let made = call(request.header("x-request-id", "request-1"), &token).await;
    let ended = ended(&service, &token, &made["id"]).await;
    let log = service.log();
    service.signal(Signal::TERM);
    service.ended(Duration::from_secs(30)).await;

    let spans = collector.spans();
    let request = only(&spans, "POST /v1/jobs");
    assert_eq!(request.parent, "", "a client chooses no trace");
    assert_ne!(request.trace, CLIENT_TRACE);
    let (trace, span) = (CLIENT_TRACE.to_owned(), "b7ad6b7169203331".to_owned());
    assert_eq!(request.links, [(trace, span)]);
    let job = only(&spans, "job");
    assert_eq!((&job.trace, &job.parent), (&request.trace, &request.id));
    let id = made["id"].as_str().unwrap();
    let attributes = |span: &Received| -> Vec<(String, String)> {
        let sorted = span.attributes.clone();
        sorted.into_iter().collect()
    };
    let expected = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    assert_eq!(
        attributes(request),
        expected(&[
            ("http.request.method", "POST"),
            ("http.response.status_code", "202"),
            ("http.route", "/v1/jobs"),
            ("pais.job_id", id),
            ("pais.request_id", "request-1"),
        ])
    );
    assert_eq!(
        attributes(job),
        expected(&[
            ("pais.attempt", "1"),
            ("pais.job_id", id),
            ("pais.outcome", "succeeded"),
        ])
    );
    let parts = parts(&spans, job);
    let names: Vec<&str> = parts.keys().copied().collect();
    assert_eq!(
        names,
        [
            "packing release",
            "reading",
            "searching",
            "storing release",
            "verifying",
            "writing",
        ]
    );
    for part in parts.values() {
        assert_eq!(part.trace, request.trace);
        let is_within = job.from <= part.from && part.from <= part.to && part.to <= job.to;
        assert!(is_within, "{part:?} {job:?}");
    }
    let release = ended["release_id"].as_str().unwrap();
    let stored = parts["storing release"];
    assert_eq!(stored.attributes["pais.release_id"], release);

    // What is sent is what the documentation lists, and nothing of clients.
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/traces.md");
    let page = std::fs::read_to_string(page).unwrap();
    for span in &spans {
        for key in span.attributes.keys() {
            assert!(page.contains(&format!("`{key}`")), "{key}");
        }
    }
    let routes = ["GET /v1/datasets/{id}", "GET /v1/jobs/{id}"];
    for route in routes {
        assert!(spans.iter().any(|span| span.name == route), "{route}");
    }
    let header = TABLE.lines().next().unwrap().split(',');
    let cells = TABLE.lines().skip(1).flat_map(|row| row.split(','));
    let words = header.chain(cells).filter(|word| word.len() > 2);
    let of_clients = ["planted", &*token, dataset.rsplit('/').next().unwrap()];
    let bodies = collector.bodies.lock();
    for word in words.chain(of_clients) {
        let has = |body: &Bytes| body.windows(word.len()).any(|it| it == word.as_bytes());
        assert!(!bodies.iter().any(has), "{word}");
    }

    // The log says to which request, job and trace a line belongs.
    let lines = lines(&log);
    let line = |message: &str, key: &str, value: &str| -> Value {
        let found = lines.iter().find(|line| {
            line["message"] == message && (line[key] == value || line["span"][key] == value)
        });
        found.unwrap_or_else(|| panic!("{message}: {log}")).clone()
    };
    let answered = line("answered", "id", "request-1");
    assert_eq!(answered["span"]["trace_id"], *request.trace);
    let queued = line("a job is queued", "job", id);
    assert_eq!(queued["span"]["id"], "request-1");
    let end = line("an attempt has ended", "job", id);
    assert_eq!(end["span"]["trace_id"], *request.trace);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_goes_on_in_the_process_that_runs_the_job() {
    let folder = tempfile::tempdir().unwrap();
    let (of_service, of_worker) = (Collector::start().await, Collector::start().await);
    let data = folder.path().join("data");
    let mut service = ServiceProcess::start_without_workers(&data, &of_service.settings()).await;
    let token = service.token("hospital", "holder");
    let dataset = dataset(&service, &token, "patients").await;
    let mut body = job_on(&dataset);
    body["release"] = json!(true);
    let request = Client::new().post(format!("{}/v1/jobs", service.base));
    let made = call(request.json(&body), &token).await;
    let worker = WorkerProcess::start(&data, &of_worker.settings());
    let ended = ended(&service, &token, &made["id"]).await;
    worker.terminate();
    service.signal(Signal::TERM);
    service.ended(Duration::from_secs(30)).await;

    let (requests, runs) = (of_service.spans(), of_worker.spans());
    assert!(
        requests.iter().all(|span| span.name != "job"),
        "{requests:#?}"
    );
    let (request, job) = (only(&requests, "POST /v1/jobs"), only(&runs, "job"));
    assert_eq!((&job.trace, &job.parent), (&request.trace, &request.id));
    let stored = parts(&runs, job)["storing release"];
    assert_eq!(stored.trace, request.trace);
    let release = ended["release_id"].as_str().unwrap();
    assert_eq!(stored.attributes["pais.release_id"], release);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edition_belongs_to_its_newest_submission_and_a_later_release_is_linked_to_its_job() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start().await;
    let data = folder.path().join("data");
    let mut service = ServiceProcess::start(&data, &collector.settings()).await;
    let token = service.token("hospital", "holder");
    service.token("bts", "recipient");
    let client = Client::new();
    let post = async |path: &str, body: &Value| {
        let request = client.post(format!("{}{path}", service.base));
        call(request.json(body), &token).await
    };
    let made = post("/v1/datasets", &definition("patients")).await;
    let publication = json!({
        "name": "monthly", "dataset_id": made["id"], "trigger": "submission",
        "job": { "privacy": { "model": "lkc", "l": 2, "k": 2, "c": 1.0 } },
        "recipients": [{ "recipient": "bts", "purpose": "blood usage" }],
    });
    let publication = post("/v1/publications", &publication).await;
    let publication = publication["id"].as_str().unwrap();
    let publication = format!("{}/v1/publications/{publication}", service.base);
    let pause = async |paused: bool| {
        let change = client
            .patch(&publication)
            .json(&json!({ "paused": paused }));
        call(change, &token).await
    };
    // Another request than that of the rows queues the edition.
    pause(true).await;
    let path = format!("/v1/datasets/{}", made["id"].as_str().unwrap());
    let (fewer_rows, _) = TABLE.trim_end().rsplit_once('\n').unwrap();
    for body in [fewer_rows, TABLE] {
        let rows = client.post(format!("{}{path}/submissions", service.base));
        call(rows.header("content-type", "text/csv").body(body), &token).await;
    }
    pause(false).await;
    let editions = format!("{publication}/editions");
    let published = poll_async(Duration::from_secs(60), async || {
        let found = call(client.get(&editions), &token).await;
        (found["items"][0]["status"] == "published").then_some(())
    });
    published.await.expect("the edition is published");

    let made = post("/v1/jobs", &job_on(&path)).await;
    ended(&service, &token, &made["id"]).await;
    post("/v1/releases", &json!({ "job_id": made["id"] })).await;
    service.signal(Signal::TERM);
    service.ended(Duration::from_secs(30)).await;

    let spans = collector.spans();
    let submissions = spans.iter();
    let submissions = submissions.filter(|it| it.name == "POST /v1/datasets/{id}/submissions");
    let mut submissions: Vec<&Received> = submissions.collect();
    submissions.sort_by_key(|it| it.from);
    let [older, submission] = submissions[..] else {
        panic!("{submissions:#?}");
    };
    assert!(!parts(&spans, older).contains_key("job"));
    let edition = parts(&spans, submission)["job"];
    assert_eq!(edition.trace, submission.trace);
    assert!(parts(&spans, edition).contains_key("storing release"));
    let (request, release) = (
        only(&spans, "POST /v1/jobs"),
        only(&spans, "POST /v1/releases"),
    );
    assert!(parts(&spans, request).contains_key("job"));
    assert_eq!(release.links, [(request.trace.clone(), request.id.clone())]);
    let parts = parts(&spans, release);
    for name in ["packing release", "storing release"] {
        assert_eq!(parts[name].trace, release.trace, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_or_silent_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    // It takes connections and answers nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().map(|at| (at.to_string(), silent));
    let (silent, _listener) = silent.unwrap();
    for (name, address) in [("away", ServiceProcess::free_address()), ("silent", silent)] {
        let data = folder.path().join(name);
        let endpoint = format!("http://{address}");
        let settings = [("PAIS__TELEMETRY__OTLP_ENDPOINT", endpoint.as_str())];
        let mut service = ServiceProcess::start(&data, &settings).await;
        let token = service.token("hospital", "holder");
        let dataset = dataset(&service, &token, "patients").await;
        assert_eq!(job(&service, &token, &dataset).await, "succeeded");
        // Longer than the service takes to send the spans, and those of the next request.
        pace(Duration::from_secs(2)).await;
        call(Client::new().get(&dataset), &token).await;
        pace(Duration::from_secs(2)).await;
        service.signal(Signal::TERM);
        let took = service.ended(Duration::from_secs(30)).await;
        assert!(took < Duration::from_secs(8), "{name}: {took:?}");
        let log = service.log();
        let said = log.matches("traces could not be sent").count();
        let expected = if name == "away" { 1..=1 } else { 0..=1 };
        assert!(expected.contains(&said), "{name}: {said} in {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_nothing_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start().await;
    let data = folder.path().join("data");
    // The usual variables of OpenTelemetry are no settings of the service.
    let settings = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("PAIS__LOG__FORMAT", "json"),
    ];
    let mut service = ServiceProcess::start(&data, &settings).await;
    let token = service.token("hospital", "holder");
    let dataset = dataset(&service, &token, "patients").await;
    assert_eq!(job(&service, &token, &dataset).await, "succeeded");
    let log = service.log();
    service.signal(Signal::TERM);
    service.ended(Duration::from_secs(30)).await;
    assert!(collector.bodies.lock().is_empty());
    let lines = lines(&log);
    let ended = lines
        .iter()
        .find(|it| it["message"] == "an attempt has ended");
    let ended = ended.unwrap_or_else(|| panic!("{log}"));
    assert!(ended["span"]["job"].is_string(), "{ended}");
    assert!(!log.contains("trace_id"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_url_of_a_collector_is_named_at_the_start_and_by_the_doctor() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let wrong = [("PAIS__TELEMETRY__OTLP_ENDPOINT", "collector:4317")];
    let refused = run(&data, &["serve", "--listen", "127.0.0.1:0"], &wrong).await;
    assert!(!refused.status.success());
    let text = errors(&refused);
    assert!(
        text.contains("telemetry.otlp_endpoint must be a URL"),
        "{text}"
    );

    let free = ServiceProcess::free_address();
    let away = format!("http://{}", ServiceProcess::free_address());
    let collector = Collector::start().await;
    for (url, status, expected) in [
        ("collector:4317", 1, "telemetry.otlp_endpoint must be a URL"),
        (&away, 0, "the collector does not take them"),
        (&collector.url, 0, "the collector takes them"),
    ] {
        let settings = [
            ("PAIS__SERVER__LISTEN", free.as_str()),
            ("PAIS__TELEMETRY__OTLP_ENDPOINT", url),
        ];
        let found = run(&data, &["doctor"], &settings).await;
        let text = String::from_utf8_lossy(&found.stdout).into_owned();
        assert_eq!(found.status.code(), Some(status), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}
