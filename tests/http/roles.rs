//! Permissions: the status of every operation of the OpenAPI document for every kind of caller, as
//! a snapshot. A new operation is included without a change here.

use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;

use pais::roles::Role;
use pais_test_support::poll::poll_async;
use reqwest::Method;
use reqwest::header;
use serde_json::Value;
use serde_json::json;
use uuid::Uuid;

use crate::app::Answer;
use crate::app::TestApp;
use crate::app::send;
use crate::app::text;
use crate::examples::Example;
use crate::examples::examples;
use crate::hospital;
use crate::hospital::Hospital;
use crate::hospital::id;
use crate::hospital::job_on;

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
        "{name}" => "data-00000.parquet",
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
        let publication = json!({
            "name": "p", "dataset_id": dataset, "trigger": "manual",
            "job": { "privacy": body["privacy"] },
            "recipients": [{ "recipient": name, "purpose": "blood usage" }],
        });
        let publication = made("/v1/publications", &publication, 201).await;
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
            ("publications", publication),
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
                "{name}" => "data-00000.parquet",
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
    let mut examples = examples().iter();
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
        .filter(|(path, _)| path.contains('{'))
        // Its stream does not end; a test of publications asks for it.
        .filter(|(path, _)| path != "/v1/publications/{id}/events");
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

/// Every `/v1` call needs `Authorization: Bearer <token>`. A missing or invalid token is 401, before
/// the path, the method, the parameters and the body are checked.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_valid_token_is_401_whatever_else_is_wrong() {
    let app = TestApp::new().await;
    let calls = [
        (Method::GET, "/v1/datasets/no-uuid"),
        (Method::GET, "/v1/nothing"),
        (Method::GET, "/v1/releases?limit=0"),
        (Method::PUT, "/v1/datasets"),
        (Method::POST, "/v1/jobs"),
        (Method::POST, "/v1/taxonomies"),
        (Method::POST, "/v1/datasets/x/submissions"),
    ];
    for (method, path) in calls {
        for value in [None, Some("Bearer pais_bad"), Some("Basic eDp5"), Some("")] {
            let mut request = app.request(method.clone(), path).body("{");
            if let Some(value) = value {
                request = request.header(header::AUTHORIZATION, value);
            }
            let answer = send(request).await;
            answer.problem(401, "unauthenticated");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
    for open in [
        "/healthz",
        "/readyz",
        "/metrics",
        "/.well-known/pais-signing-key.json",
        "/openapi.json",
        "/docs/",
        "/docs/errors",
    ] {
        let answer = send(app.request(Method::GET, open)).await;
        assert_eq!(answer.status, 200, "{open}");
    }
}

/// A role that may not use an endpoint gets 403, before parameters and body are read.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_without_permission_is_403_whatever_the_request_says() {
    let app = TestApp::new().await;
    let admin = app.token("ops", Role::Admin).await;
    let recipient = app.token("ops", Role::Recipient).await;
    let auditor = app.token("ops", Role::Auditor).await;
    let holder = app.token("ops", Role::Holder).await;
    let bodies = [
        "/v1/taxonomies",
        "/v1/datasets",
        "/v1/jobs",
        "/v1/releases",
        "/v1/datasets/no-uuid/submissions",
        "/v1/releases/no-uuid/grants",
    ];
    for token in [&admin, &recipient, &auditor] {
        for path in bodies {
            for path in [path, &format!("{path}?unknown=1")] {
                let answer = app.post_bytes(token, path, "image/png", "{").await;
                answer.problem(403, "forbidden");
            }
        }
    }
    for path in ["/v1/organizations", "/v1/tokens"] {
        let answer = app.post_bytes(&holder, path, "image/png", "{").await;
        answer.problem(403, "forbidden");
        app.get(&holder, path).await.problem(403, "forbidden");
    }
    // An administrator sees no rows, raw or released. A recipient sees releases only.
    for path in ["/v1/releases", "/v1/releases/no-uuid/data", "/v1/datasets"] {
        app.get(&admin, path).await.problem(403, "forbidden");
    }
    for path in [
        "/v1/jobs",
        "/v1/audit",
        "/v1/tokens",
        "/v1/datasets/no-uuid/profile",
    ] {
        app.get(&recipient, path).await.problem(403, "forbidden");
    }
    for token in [&admin, &holder, &recipient] {
        app.get(token, "/v1/audit").await.problem(403, "forbidden");
    }
}

/// An id of another organization in a path is answered like an id that does not exist: with 404 and
/// the same document.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_another_organization_in_a_path_is_404() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let document = hospital.get(&release).await.json(200);
    let dataset = format!("/v1/datasets/{}", text(&document["dataset_id"]));
    let job = format!("/v1/jobs/{}", text(&document["job_id"]));
    let root = json!({"label": "*", "children": [{"label": "a"}]});
    let tree = json!({"name": "t", "root": root});
    let tree = hospital.post("/v1/taxonomies", &tree).await;
    let tree = tree.header("location").to_owned();
    let other = hospital.app.token("clinic", Role::Holder).await;
    let paths = [
        tree,
        dataset.clone(),
        format!("{dataset}/profile"),
        job.clone(),
        format!("{job}/events"),
        format!("{job}/steps"),
        release.clone(),
        format!("{release}/data"),
        format!("{release}/tables/data"),
        format!("{release}/report"),
        format!("{release}/grants"),
    ];
    for path in paths {
        let own = path.split('/').nth(3).unwrap();
        let missing = path.replace(own, UNKNOWN);
        let theirs = hospital.app.get(&other, &path).await;
        let missing = hospital.app.get(&other, &missing).await;
        theirs.problem(404, "not_found");
        assert_eq!(theirs.text, missing.text, "{path}");
    }
    for path in [&dataset, &job] {
        let theirs = hospital.app.delete(&other, path).await;
        theirs.problem(404, "not_found");
    }
    let grant = json!({"recipient": "clinic", "purpose": "x"});
    let grants = format!("{release}/grants");
    let theirs = hospital.app.post(&other, &grants, &grant).await;
    theirs.problem(404, "not_found");
    let rows = "ID,Job,Sex,Age,Transfuse,Surgery\n1,Mover,M,1,Y,x\n";
    let path = format!("{dataset}/submissions");
    let theirs = hospital.app.post_bytes(&other, &path, "text/csv", rows);
    theirs.await.problem(404, "not_found");
    assert_eq!(hospital.get(&dataset).await.json(200)["rows"], 11);
}

/// The same holds for an id in a body: its existence is not disclosed.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_another_organization_in_a_body_is_404() {
    let hospital = Hospital::new().await;
    let job = hospital.done(json!({})).await;
    let document = hospital.get(&job).await.json(200);
    let dataset = format!("/v1/datasets/{}", text(&document["dataset_id"]));
    let submissions = hospital.get(&dataset).await.json(200);
    let submission = submissions["submissions"][0]["id"].clone();
    let root = json!({"label": "*", "children": [{"label": "a"}]});
    let tree = json!({"name": "t", "root": root});
    let tree = hospital.post("/v1/taxonomies", &tree).await.json(201)["id"].clone();

    let clinic = Hospital {
        token: hospital.app.token("clinic", Role::Holder).await,
        app: hospital.app,
    };
    let own = clinic.filled_dataset().await;
    let both = async |path: &str, body: &dyn Fn(Value) -> Value, foreign: Value| {
        let theirs = clinic.post(path, &body(foreign)).await;
        let missing = clinic.post(path, &body(json!(UNKNOWN))).await;
        theirs.problem(404, "not_found");
        assert_eq!(theirs.text, missing.text, "{path}");
    };
    let declared = |tree: Value| {
        json!({"name": "d", "columns": [
            {"name": "x", "role": "quasi_identifier", "taxonomy": tree}]})
    };
    both("/v1/datasets", &declared, tree).await;
    let on = |dataset: Value| {
        let mut body = job_on(&own);
        body["dataset_id"] = dataset;
        body
    };
    both("/v1/jobs", &on, json!(id(&dataset))).await;
    let of = |submission: Value| {
        let mut body = job_on(&own);
        body["submissions"] = json!([submission]);
        body
    };
    both("/v1/jobs", &of, submission).await;
    let from = |job: Value| json!({ "job_id": job });
    both("/v1/releases", &from, json!(id(&job))).await;
}

/// `null` in an optional field means that the field is absent.
#[tokio::test(flavor = "multi_thread")]
async fn null_in_an_optional_field_is_as_if_it_were_absent() {
    let hospital = Hospital::new().await;
    let app = &hospital.app;
    let admin = app.token("ops", Role::Admin).await;
    let ok = |answer: &Answer| assert!(answer.status.is_success(), "{}", answer.text);
    let body = json!({"name": "bts", "display_name": null});
    ok(&app.post(&admin, "/v1/organizations", &body).await);
    let body = json!({"organization": "bts", "role": "recipient", "label": null,
        "expires_at": null});
    ok(&app.post(&admin, "/v1/tokens", &body).await);
    let root = json!({"label": "*", "children": [{"label": "a", "children": null}]});
    ok(&hospital
        .post("/v1/taxonomies", &json!({"name": "t", "root": root}))
        .await);
    let body = json!({"name": "n", "description": null, "retention_days": null, "columns": [
        {"name": "x", "role": "quasi_identifier", "kind": null, "taxonomy": null, "domain": null,
         "separator": null, "missing": null}]});
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    assert_eq!(made["columns"][0]["kind"], "categorical");

    let dataset = hospital.filled_dataset().await;
    let nothing = json!({"utility": null, "suppression_limit": null, "recoding": null,
        "output": null, "pre_generalization": null, "submissions": null, "release": null,
        "privacy": {"model": "k_anonymity", "k": 2, "l": null, "c": null, "alpha": null,
            "sensitive_values": null, "column_limits": null}});
    let job = hospital.job(&dataset, nothing).await;
    let parts = json!({"utility": {"objective": null, "split": null}});
    hospital.job(&dataset, parts).await;
    let workers = hospital.work();
    assert_eq!(hospital.ended(&job).await["status"], "succeeded");
    workers.stop().await;
    let body = json!({"job_id": id(&job), "step": null, "name": null});
    let made = hospital.post("/v1/releases", &body).await;
    let grants = format!("{}/grants", made.header("location"));
    let body = json!({"recipient": "bts", "purpose": "x", "expires_at": null});
    ok(&hospital.post(&grants, &body).await);
}
