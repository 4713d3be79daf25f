//! Probes, metrics, request ids, compression and CORS.

use pais::roles::Role;
use reqwest::Method;
use serde_json::json;

use crate::app::{TestApp, send};

#[tokio::test(flavor = "multi_thread")]
async fn healthz_is_ok_while_readyz_fails() {
    let app = TestApp::new().await;
    let get = async |path| send(app.request(Method::GET, path)).await;
    assert_eq!(get("/healthz").await.json(200), json!({"status": "ok"}));
    assert_eq!(get("/readyz").await.json(200), json!({"status": "ok"}));
    sqlx::raw_sql("DELETE FROM _sqlx_migrations WHERE version = 1")
        .execute(app.state.unscoped().db.owner())
        .await
        .unwrap();
    let answer = get("/readyz").await;
    assert_eq!(answer.header("retry-after"), "5");
    answer.problem(503, "unavailable");
    app.state.unscoped().db.close().await;
    get("/readyz").await.problem(503, "unavailable");
    assert_eq!(get("/healthz").await.json(200), json!({"status": "ok"}));
    let request = app
        .request(Method::GET, "/v1/datasets")
        .bearer_auth(format!("pais_{}", "0".repeat(64)));
    send(request).await.problem(503, "unavailable");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_routes_and_no_ids() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let id = "01900000-0000-7000-8000-0000000c0ffe";
    app.get(&holder, &format!("/v1/datasets/{id}"))
        .await
        .json(404);
    app.get(&holder, "/v1/invented-by-a-client").await.json(404);
    let metrics = send(app.request(Method::GET, "/metrics")).await;
    assert!(metrics.header("content-type").starts_with("text/plain"));
    let line = r#"http_requests_total{method="GET",route="/v1/datasets/{id}",status="404"}"#;
    assert!(metrics.text.contains(line), "{}", metrics.text);
    let bucket = "http_request_duration_seconds_bucket{";
    assert!(metrics.text.contains(bucket), "{}", metrics.text);
    for secret in ["c0ffe", "invented", &holder] {
        assert!(!metrics.text.contains(secret));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_the_id_of_its_request() {
    let app = TestApp::new().await;
    let made = send(app.request(Method::GET, "/healthz")).await;
    assert!(made.header("x-request-id").len() >= 32);
    for (sent, is_kept) in [("trace-1", true), ("no spaces", false)] {
        let request = app
            .request(Method::GET, "/nowhere")
            .header("x-request-id", sent);
        let answer = send(request).await;
        assert_eq!(answer.header("x-request-id") == sent, is_kept);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_compressed_if_accepted_and_without_a_range() {
    let app = TestApp::new().await;
    for (range, encoding) in [(None, Some("gzip")), (Some("bytes=0-9"), None)] {
        let mut request = app.request(Method::GET, "/openapi.json");
        request = request.header("accept-encoding", "gzip");
        if let Some(range) = range {
            request = request.header("range", range);
        }
        let response = request.send().await.unwrap();
        let sent = response.headers().get("content-encoding");
        assert_eq!(sent.map(|value| value.to_str().unwrap()), encoding);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_configured_origins_may_call_from_a_browser() {
    let origin = "https://app.example.org";
    let app = TestApp::builder().cors_origin(origin).start().await;
    let allowed = async |app: &TestApp, origin: &str| {
        let request = app.request(Method::OPTIONS, "/v1/datasets");
        let request = request.header("access-control-request-method", "POST");
        let answer = send(request.header("origin", origin)).await;
        answer.headers.get("access-control-allow-origin").cloned()
    };
    assert_eq!(allowed(&app, origin).await.unwrap(), origin);
    assert_eq!(allowed(&app, "https://elsewhere.example").await, None);
    let closed = TestApp::new().await;
    assert_eq!(allowed(&closed, origin).await, None);
}
