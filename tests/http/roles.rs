//! Permissions: the status of every operation of the OpenAPI document for every kind of caller, as
//! a snapshot. A new operation is included without a change here.

use std::fmt::Write;

use pais::roles::Role;
use reqwest::Method;
use serde_json::Value;

use crate::app::{TestApp, send};

const UNKNOWN: &str = "01900000-0000-7000-8000-000000000000";

fn operations() -> Vec<(String, Method)> {
    let document: Value = serde_json::from_str(&pais::http::document_text().unwrap()).unwrap();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in ["get", "post", "put", "patch", "delete"] {
            if item.get(method).is_some() && path.starts_with("/v1/") {
                let method = method.to_uppercase().parse().unwrap();
                operations.push((path.clone(), method));
            }
        }
    }
    operations
}

/// The path with an id that does not exist.
fn filled(path: &str) -> String {
    let parts = path.split('/').map(|part| match part {
        "{table}" => "data",
        part if part.starts_with('{') => UNKNOWN,
        part => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_operation_admits_its_roles_and_no_other() {
    let app = TestApp::new().await;
    let mut tokens = vec![("none", None), ("bad", Some("pais_0123".to_owned()))];
    for role in Role::ALL {
        tokens.push((role.as_str(), Some(app.token("golden", role).await)));
    }
    let mut table = String::new();
    for (path, method) in operations() {
        write!(table, "{method:6} {path}\n      ").unwrap();
        for (who, token) in &tokens {
            let mut request = app.request(method.clone(), &filled(&path));
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            let status = send(request).await.status.as_u16();
            write!(table, " {who} {status}").unwrap();
        }
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_caller_is_checked_before_method_path_parameters_and_body() {
    let app = TestApp::new().await;
    let auditor = app.token("golden", Role::Auditor).await;
    let put = app.request(Method::PUT, "/v1/datasets");
    send(put.try_clone().unwrap())
        .await
        .problem(401, "unauthenticated");
    let answer = send(put.bearer_auth(&auditor)).await;
    answer.problem(405, "method_not_allowed");
    assert!(answer.header("allow").contains("POST"));
    app.get(&auditor, "/v1/datasets/no-uuid")
        .await
        .problem(403, "forbidden");
    app.post_bytes(&auditor, "/v1/datasets", "text/plain", "{")
        .await
        .problem(403, "forbidden");
    let holder = app.token("golden", Role::Holder).await;
    app.get(&holder, "/v1/datasets/no-uuid")
        .await
        .problem(400, "invalid_parameter");
    app.get(&holder, "/v1/nothing")
        .await
        .problem(404, "not_found");
    app.get(&holder, "/v1/datasets/")
        .await
        .problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_schemes_and_malformed_headers_are_refused() {
    let app = TestApp::new().await;
    let token = app.token("golden", Role::Holder).await;
    for value in [
        token.clone(),
        format!("Basic {token}"),
        format!("Bearer {token}x"),
    ] {
        let request = app.request(Method::GET, "/v1/datasets");
        let answer = send(request.header("authorization", value)).await;
        answer.problem(401, "unauthenticated");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    let request = app.request(Method::GET, "/v1/datasets");
    let answer = send(request.header("authorization", format!("bearer {token}"))).await;
    answer.json(200);
}
