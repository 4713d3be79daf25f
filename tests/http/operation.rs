//! Probes, metrics, request ids, compression and CORS.

use std::time::Duration;

use pais::roles::Role;
use pais_test_support::poll::poll_async;
use reqwest::Method;
use serde_json::json;
use sqlx::ConnectOptions;

use crate::app::{TestApp, send};
use crate::database;

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

/// A request that has its effect is not answered with 406 afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_forbids_uncompressed_answers_gets_one_where_none_is_compressed() {
    let app = TestApp::new().await;
    for (accepted, encoding) in [
        ("identity;q=0", None),
        ("*;q=0", None),
        ("IDENTITY; q=0.000, deflate;q=0", None),
        ("identity;q=0, gzip", Some("gzip")),
        ("gzip;q=0.5, *;q=0", Some("gzip")),
        ("identity;q=0.1, gzip;q=0", None),
    ] {
        let request = app.request(Method::GET, "/openapi.json");
        let response = request.header("accept-encoding", accepted).send().await;
        let response = response.unwrap();
        assert_eq!(response.status(), 200, "{accepted}");
        let sent = response.headers().get("content-encoding");
        let sent = sent.map(|value| value.to_str().unwrap());
        assert_eq!(sent, encoding, "{accepted}");
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

/// PostgreSQL ends a session, or refuses to begin one, with an error of severity FATAL.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_the_database_ends_or_refuses_makes_the_service_unavailable() {
    let app = TestApp::builder().without_workers().start().await;
    let holder = app.token("hospital", Role::Holder).await;
    let list = async || app.get(&holder, "/v1/datasets").await;
    list().await.json(200);
    let options = app.state.unscoped().db.owner().connect_options();
    let name = options.get_database().unwrap();
    let superuser = (*options).clone().username("postgres");

    // A statement waits for a lock when its session ends.
    let mut locking = superuser.connect().await.unwrap();
    let locked = "BEGIN; LOCK TABLE datasets IN ACCESS EXCLUSIVE MODE";
    sqlx::raw_sql(locked).execute(&mut locking).await.unwrap();
    let end = async || {
        // A transaction sees the sessions of its first look until then.
        sqlx::raw_sql("SELECT pg_stat_clear_snapshot()")
            .execute(&mut locking)
            .await
            .unwrap();
        let ended: i64 = sqlx::query_scalar(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'",
        )
        .fetch_one(&mut locking)
        .await
        .unwrap();
        (ended > 0).then_some(())
    };
    let ended = poll_async(Duration::from_secs(60), end);
    let (answer, ended) = tokio::join!(list(), ended);
    ended.expect("a statement waits for the lock");
    answer.problem(503, "unavailable");
    drop(locking);

    let refuse = format!(
        "ALTER DATABASE {name} ALLOW_CONNECTIONS false;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    );
    database::execute(&refuse).await;
    list().await.problem(503, "unavailable");
    let accept = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true");
    database::execute(&accept).await;
    list().await.json(200);
}
