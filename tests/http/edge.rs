//! What applies to every request and answer: protective headers, query parameters, bodies in time.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use pais::roles::Role;
use reqwest::{Body, Method};
use serde_json::{Value, json};

use crate::app::{TestApp, send};
use crate::hospital::{Hospital, id};

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_protects_browsers_and_caches() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let report = format!("{release}/report");
    let data = format!("{release}/data");
    let package = format!("{release}/package");
    for (path, cache, scripts) in [
        (report.as_str(), Some("no-store"), false),
        ("/v1/datasets", Some("no-store"), false),
        ("/v1/nowhere", Some("no-store"), false),
        (data.as_str(), Some("private, no-cache"), false),
        (package.as_str(), Some("private, no-cache"), false),
        ("/healthz", None, false),
        ("/openapi.json", None, false),
        ("/docs/errors", None, false),
        ("/docs/", None, true),
        ("/docs/swagger-ui.css", None, true),
    ] {
        for accept in ["*/*", "text/html"] {
            if accept == "text/html" && (path == data || path == package) {
                continue;
            }
            let request = hospital.app.request(Method::GET, path);
            let request = request.header("accept", accept);
            let answer = request.bearer_auth(&hospital.token).send().await.unwrap();
            let header = |name: &str| {
                let value = answer.headers().get(name);
                value.map(|value| value.to_str().unwrap().to_owned())
            };
            assert_eq!(
                header("x-content-type-options").unwrap(),
                "nosniff",
                "{path}"
            );
            assert_eq!(header("referrer-policy").unwrap(), "no-referrer", "{path}");
            assert_eq!(header("cache-control").as_deref(), cache, "{path} {accept}");
            let policy = header("content-security-policy").unwrap();
            assert!(policy.contains("default-src 'none'"), "{path}: {policy}");
            assert!(
                policy.contains("frame-ancestors 'none'"),
                "{path}: {policy}"
            );
            assert_eq!(
                policy.contains("script-src 'self'"),
                scripts,
                "{path}: {policy}"
            );
            assert!(!policy.contains("unsafe-eval"), "{path}: {policy}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_query_parameter_is_refused_everywhere() {
    let app = TestApp::new().await;
    let document: Value = serde_json::from_str(&pais::api::document_text().unwrap()).unwrap();
    let tokens = [
        app.token("hospital", Role::Holder).await,
        app.token("ops", Role::Admin).await,
        app.token("hospital", Role::Auditor).await,
    ];
    let mut checked = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        if !path.starts_with("/v1/") {
            continue;
        }
        let path = path.replace("{table}", "data");
        let some = "01900000-0000-7000-8000-000000000000";
        let path = path.replace("{id}", some).replace("{grant_id}", some);
        for method in item.as_object().unwrap().keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let mut codes = Vec::new();
            for token in &tokens {
                let request = app.request(method.clone(), &format!("{path}?limt=5"));
                let refused = send(request.bearer_auth(token)).await;
                // The role is checked before the parameters.
                codes.push(match refused.status.as_u16() {
                    403 => refused.problem(403, "forbidden"),
                    _ => refused.problem(400, "invalid_parameter"),
                });
            }
            let known = codes.iter().filter(|it| it["status"] == 400).count();
            assert!(known > 0, "{method} {path}");
            checked += known;
        }
    }
    assert!(checked > 60, "{checked}");
    // Without a token nothing is said about parameters.
    let request = app.request(Method::GET, "/v1/datasets?limt=5");
    send(request).await.problem(401, "unauthenticated");
    let known = app.get(&tokens[0], "/v1/datasets?limit=5&cursor=").await;
    known.problem(400, "invalid_parameter");
    app.get(&tokens[0], "/v1/datasets?%6Cimit=5")
        .await
        .json(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_names_the_public_url() {
    let url = "https://pais.example.org/hub";
    let app = TestApp::builder().public_url(url).start().await;
    let document = send(app.request(Method::GET, "/openapi.json")).await;
    assert_eq!(document.json(200)["servers"], json!([{ "url": url }]));
    let app = TestApp::new().await;
    let document = send(app.request(Method::GET, "/openapi.json")).await;
    assert!(document.json(200).get("servers").is_none());
}

/// A release is made while its request waits, in no more time than any other request has.
#[tokio::test(flavor = "multi_thread")]
async fn making_a_release_is_limited_in_time() {
    let app = TestApp::builder().request_timeout(Duration::ZERO);
    let app = app.start().await;
    let holder = app.token("hospital", Role::Holder).await;
    // The job cannot be read before the time is over.
    let mut held = app.state.unscoped().db.owner().begin().await.unwrap();
    sqlx::query("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *held)
        .await
        .unwrap();
    let body = json!({ "job_id": uuid::Uuid::nil() });
    let late = app.post(&holder, "/v1/releases", &body).await;
    late.problem(408, "request_timeout");
    held.rollback().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_end_in_time_is_refused() {
    let app = TestApp::builder().body_timeout(Duration::from_millis(300));
    let app = app.start().await;
    let holder = app.token("hospital", Role::Holder).await;
    let admin = app.token("ops", Role::Admin).await;
    for (token, path) in [
        (&holder, "/v1/taxonomies"),
        (&holder, "/v1/datasets"),
        (&holder, "/v1/jobs"),
        (&holder, "/v1/releases"),
        (&admin, "/v1/organizations"),
        (&admin, "/v1/tokens"),
    ] {
        let slow = stream::repeat(()).then(async |()| {
            pais_test_support::poll::pace(Duration::from_millis(50)).await;
            Ok::<_, std::io::Error>(" ")
        });
        let request = app.request(Method::POST, path).bearer_auth(token);
        let request = request.header("content-type", "application/json");
        let refused = send(request.body(Body::wrap_stream(slow.boxed()))).await;
        let problem = refused.problem(408, "request_timeout");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains("server.body_timeout_seconds"),
            "{path}: {detail}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_a_smaller_limit_than_other_bodies() {
    let app = TestApp::builder().limits(|limits| limits.job_json_bytes = 1000);
    let hospital = Hospital::with_app(app.without_workers().start().await).await;
    let dataset = hospital.filled_dataset().await;
    let mut job = crate::hospital::job_on(&dataset);
    hospital.post("/v1/jobs", &job).await.json(202);
    job["dataset_id"] = json!(format!("{}{}", id(&dataset), " ".repeat(1000)));
    let refused = hospital.post("/v1/jobs", &job).await;
    let problem = refused.problem(413, "too_large");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("limits.job_json_bytes"), "{detail}");
}
