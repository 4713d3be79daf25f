//! Rules of the HTTP interface: authentication, roles, and what another organization may see.

use pais::roles::Role;
use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::app::{Answer, TestApp, send, text};
use crate::hospital::{Hospital, id, job_on};

const UNKNOWN: &str = "01900000-0000-7000-8000-000000000000";

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

/// A role that may not use an endpoint gets 403, before the body is read.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_without_permission_is_403_whatever_the_body_is() {
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
            let answer = app.post_bytes(token, path, "image/png", "{").await;
            answer.problem(403, "forbidden");
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
