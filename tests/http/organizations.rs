//! Organizations and pages of lists.

use pais::roles::Role;
use serde_json::{Value, json};

use crate::app::{TestApp, text};

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_is_created_found_and_listed() {
    let app = TestApp::new().await;
    let admin = app.token("ops", Role::Admin).await;
    let body = json!({"name": "st-mary-1", "display_name": "St. Mary's"});
    let answer = app.post(&admin, "/v1/organizations", &body).await;
    let made = answer.json(201);
    assert_eq!(made["name"], "st-mary-1");
    let found = app.get(&admin, answer.header("location")).await.json(200);
    assert_eq!(found, made);
    let listed = app.get(&admin, "/v1/organizations").await.json(200);
    assert_eq!(listed["items"][1], made);
    assert_eq!(listed["next_cursor"], Value::Null);
    app.post(&admin, "/v1/organizations", &body)
        .await
        .problem(409, "name_taken");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_a_slug() {
    let app = TestApp::new().await;
    let admin = app.token("ops", Role::Admin).await;
    let long = "a".repeat(64);
    let id = "01900000-0000-7000-8000-000000000000";
    for name in ["", "A", "a b", "ä", "a_b", &long, id] {
        let answer = app
            .post(&admin, "/v1/organizations", &json!({ "name": name }))
            .await;
        let document = answer.problem(422, "invalid_name");
        assert_eq!(document["errors"][0]["pointer"], "/name");
    }
    let longest = json!({ "name": &long[1..] });
    app.post(&admin, "/v1/organizations", &longest)
        .await
        .json(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_have_no_gap_and_no_overlap() {
    let app = TestApp::new().await;
    let admin = app.token("ops", Role::Admin).await;
    for number in 0..6 {
        let body = json!({ "name": format!("org-{number}") });
        app.post(&admin, "/v1/organizations", &body).await.json(201);
    }
    let mut names = Vec::new();
    let mut path = "/v1/organizations?limit=3".to_owned();
    loop {
        let page = app.get(&admin, &path).await.json(200);
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 3);
        names.extend(items.iter().map(|item| text(&item["name"]).to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/v1/organizations?limit=3&cursor={cursor}");
    }
    let expected = ["ops", "org-0", "org-1", "org-2", "org-3", "org-4", "org-5"];
    assert_eq!(names, expected);
    for query in ["limit=0", "limit=1001", "limit=x", "cursor=x"] {
        let path = format!("/v1/organizations?{query}");
        app.get(&admin, &path)
            .await
            .problem(400, "invalid_parameter");
    }
    app.get(&admin, "/v1/organizations?limit=1000")
        .await
        .json(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_acts_for_a_disabled_organization() {
    let app = TestApp::new().await;
    let admin = app.token("ops", Role::Admin).await;
    let holder = app.token("hospital", Role::Holder).await;
    assert_eq!(app.get(&holder, "/v1/datasets").await.status, 200);
    let listed = app.get(&admin, "/v1/organizations").await.json(200);
    let id_of = |name: &str| {
        let items = listed["items"].as_array().unwrap();
        let found = items.iter().find(|item| item["name"] == name).unwrap();
        format!("/v1/organizations/{}", found["id"].as_str().unwrap())
    };
    let change = async |path: &str, disabled: bool| {
        let request = app
            .request(reqwest::Method::PATCH, path)
            .bearer_auth(&admin);
        crate::app::send(request.json(&json!({ "disabled": disabled }))).await
    };
    let hospital = id_of("hospital");
    let disabled = change(&hospital, true).await.json(200);
    assert!(disabled["disabled_at"].is_string());
    let refused = app.get(&holder, "/v1/datasets").await;
    refused.problem(401, "unauthenticated");
    // A second time changes nothing.
    assert_eq!(change(&hospital, true).await.json(200), disabled);
    let enabled = change(&hospital, false).await.json(200);
    assert!(enabled["disabled_at"].is_null());
    assert_eq!(app.get(&holder, "/v1/datasets").await.status, 200);

    change(&id_of("ops"), true).await.problem(409, "conflict");
    let absent = "/v1/organizations/00000000-0000-0000-0000-000000000000";
    change(absent, true).await.problem(404, "not_found");
    let auditor = app.token("hospital", Role::Auditor).await;
    for action in ["organization.disabled", "organization.enabled"] {
        let path = format!("/v1/audit?action={action}");
        let events = app.get(&auditor, &path).await.json(200);
        assert_eq!(events["items"].as_array().unwrap().len(), 1, "{action}");
    }
}
