//! Permissions: the status of every operation of the OpenAPI document for every kind of caller, as
//! a snapshot. A new operation is included without a change here.

use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;

use pais::roles::Role;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::{TestApp, send, text};
use crate::examples::{Example, examples};
use crate::hospital;
use pais_test_support::poll::poll_async;

const UNKNOWN: &str = "01900000-0000-7000-8000-000000000000";

fn operations() -> Vec<(String, Method)> {
    let document: Value = serde_json::from_str(&pais::api::document_text().unwrap()).unwrap();
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

/// An organization with one of everything, and a token of each of its roles.
struct Tenant {
    tokens: Vec<(&'static str, String)>,
    /// The id of each kind of thing, by the part of a path before it.
    ids: HashMap<&'static str, String>,
}

impl Tenant {
    async fn new(app: &TestApp, name: &str) -> Self {
        let mut tokens = Vec::new();
        let mut spare = None;
        for role in Role::ALL {
            tokens.push((role.as_str(), app.token(name, role).await));
            spare = Some(app.token_with_id(name, role).await.0);
        }
        let holder = &tokens[1].1;
        let made = async |path: &str, body: &Value, status: u16| {
            let answer = app.post(holder, path, body).await.json(status);
            text(&answer["id"]).to_owned()
        };
        let tree = json!({ "name": "t", "root": { "label": "*", "children": [{ "label": "a" }] } });
        let taxonomy = made("/v1/taxonomies", &tree, 201).await;
        let dataset = made("/v1/datasets", &hospital::definition("d"), 201).await;
        let path = format!("/v1/datasets/{dataset}/submissions");
        let rows = app
            .post_bytes(holder, &path, "text/csv", hospital::TABLE)
            .await;
        let submission = text(&rows.json(201)["id"]).to_owned();
        let mut body = hospital::job_on(&format!("/v1/datasets/{dataset}"));
        body["release"] = json!(true);
        let job = made("/v1/jobs", &body, 202).await;
        let path = format!("/v1/jobs/{job}");
        let ended = poll_async(Duration::from_secs(60), async || {
            let job = app.get(holder, &path).await.json(200);
            job["release_id"].as_str().map(str::to_owned)
        });
        let release = ended.await.expect("the job has made its release");
        let grant = json!({ "recipient": name, "purpose": "blood usage" });
        let grant = made(&format!("/v1/releases/{release}/grants"), &grant, 201).await;
        let organization =
            sqlx::query_scalar::<_, Uuid>("SELECT id FROM organizations WHERE name = $1");
        let organization = organization
            .bind(name)
            .fetch_one(app.state.unscoped().db.owner())
            .await
            .unwrap();
        let ids = HashMap::from([
            ("organizations", organization.to_string()),
            ("tokens", spare.unwrap().to_string()),
            ("taxonomies", taxonomy),
            ("datasets", dataset),
            ("submissions", submission),
            ("jobs", job),
            ("releases", release),
            ("grants", grant),
        ]);
        Self { tokens, ids }
    }

    /// The path with ids of this organization.
    fn filled(&self, path: &str) -> String {
        let mut before = "";
        let mut parts = Vec::new();
        for part in path.split('/') {
            parts.push(match part {
                "{table}" => "data",
                part if part.starts_with('{') => &self.ids[before],
                part => part,
            });
            before = part;
        }
        parts.join("/")
    }
}

/// What a request without a body is answered, and one with the body of the example.
async fn outcomes(
    app: &TestApp,
    method: &Method,
    (template, path): (&str, &str),
    token: &str,
) -> Vec<(u16, String)> {
    let path = match path.ends_with("/composition") {
        true => format!("{path}?recipient=golden"),
        false => path.to_owned(),
    };
    let mut answers = Vec::new();
    let request = || app.request(method.clone(), &path).bearer_auth(token);
    answers.push(send(request()).await);
    let mut examples = examples().into_iter();
    let example = examples.find(|example| example.method == *method && example.path == template);
    if let Some(Example {
        media_type, body, ..
    }) = example
    {
        let body = match body.as_str() {
            Some(text) => text.to_owned(),
            None => body.to_string(),
        };
        let request = request().header("content-type", media_type);
        answers.push(send(request.body(body)).await);
    }
    let answers = answers.into_iter();
    answers
        .map(|answer| (answer.status.as_u16(), answer.text))
        .collect()
}

/// What belongs to another organization is answered like what does not exist, with every role and for
/// every operation. With ids of the caller's own organization the statuses are a snapshot; what deletes
/// comes last, the longest paths first.
#[tokio::test(flavor = "multi_thread")]
async fn each_operation_treats_ids_of_others_like_absent_ones() {
    let app = TestApp::new().await;
    let own = Tenant::new(&app, "golden").await;
    let other = Tenant::new(&app, "elsewhere").await;
    let with_ids = operations()
        .into_iter()
        .filter(|(path, _)| path.contains('{'));
    let mut with_ids: Vec<(String, Method)> = with_ids.collect();
    with_ids.sort_by_key(|(path, method)| {
        let is_last = *method == Method::DELETE;
        (
            is_last,
            if is_last { usize::MAX - path.len() } else { 0 },
            path.clone(),
        )
    });
    let mut table = String::new();
    for (path, method) in with_ids {
        write!(table, "{method:6} {path}\n      ").unwrap();
        for (role, token) in &own.tokens {
            // An administrator administers all organizations.
            let is_administered = *role == "admin";
            let absent = outcomes(&app, &method, (&path, &filled(&path)), token).await;
            if !is_administered {
                let foreign = outcomes(&app, &method, (&path, &other.filled(&path)), token).await;
                assert_eq!(foreign, absent, "{role} {method} {path}");
            }
            // Without a body, so that what is looked at later is as it was.
            let request = app.request(method.clone(), &own.filled(&path));
            let status = send(request.bearer_auth(token)).await.status.as_u16();
            write!(
                table,
                " {role} own {status} absent {}",
                absent.last().unwrap().0
            )
            .unwrap();
        }
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}
