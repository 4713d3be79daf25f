//! Problem documents, and request bodies that cannot be read.

use pais::roles::Role;
use reqwest::{Method, header};
use serde_json::json;

use crate::app::{TestApp, send};

#[tokio::test(flavor = "multi_thread")]
async fn problem_documents() {
    let app = TestApp::new().await;
    let admin = app.token("ops", Role::Admin).await;
    let holder = app.token("ops", Role::Holder).await;
    let unknown = "/v1/datasets/01900000-0000-7000-8000-000000000000";
    let mut documents = vec![
        send(app.request(Method::GET, "/v1/datasets")).await,
        app.get(&admin, "/v1/datasets").await,
        app.get(&holder, unknown).await,
        app.get(&holder, "/v1/nothing").await,
        app.delete(&holder, "/v1/datasets").await,
        app.get(&holder, "/v1/datasets?limit=0").await,
    ];
    let invalid = [
        json!({"name": "d"}),
        json!({"name": "d", "columns": [{"name": "x", "role": "Jane Doe"}]}),
        json!({"name": "d", "columns": [], "owner": "Jane Doe"}),
        json!({"name": "d", "columns": [{"name": "x", "role": "class", "domain": [0, 1]}]}),
    ];
    for body in invalid {
        documents.push(app.post(&holder, "/v1/datasets", &body).await);
    }
    let documents: Vec<_> = documents
        .iter()
        .map(|answer| answer.json(answer.status.as_u16()))
        .collect();
    assert!(!json!(documents).to_string().contains("Jane"));
    insta::assert_json_snapshot!(documents);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_must_be_valid_and_of_the_right_media_type() {
    let app = TestApp::builder()
        .limits(|limits| limits.json_bytes = 1000)
        .start()
        .await;
    let holder = app.token("hospital", Role::Holder).await;
    let deep = "[".repeat(1000);
    let long = format!("{{\"name\": \"{}\"}}", "x".repeat(1000));
    let json = "application/json";
    let cases: [(&str, &[u8], u16, &str); 11] = [
        (json, b"{", 400, "malformed_json"),
        (json, b"", 400, "malformed_json"),
        (json, b"{\"name\": \"\xff\"}", 400, "malformed_json"),
        (json, b"{\"name\": \"a\\u0000\"}", 400, "malformed_body"),
        (json, b"{\"name\": 1} x", 400, "invalid_shape"),
        (json, b"[]", 400, "invalid_shape"),
        (json, deep.as_bytes(), 400, "malformed_json"),
        (json, long.as_bytes(), 413, "too_large"),
        ("text/plain", b"{}", 415, "unsupported_media_type"),
        (
            "application/json; charset=utf-8",
            b"{}",
            400,
            "invalid_shape",
        ),
        ("Application/JSON", b"{}", 400, "invalid_shape"),
    ];
    for (media_type, body, status, code) in cases {
        app.post_bytes(&holder, "/v1/datasets", media_type, body.to_vec())
            .await
            .problem(status, code);
    }
    let request = app
        .request(Method::POST, "/v1/datasets")
        .bearer_auth(&holder);
    send(request.body("{}"))
        .await
        .problem(415, "unsupported_media_type");
    let request = app
        .request(Method::POST, "/v1/datasets")
        .bearer_auth(&holder);
    let request = request.header(header::CONTENT_ENCODING, "gzip");
    send(request.json(&json!({})))
        .await
        .problem(415, "unsupported_media_type");
}
