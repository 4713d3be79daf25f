//! Sends the request examples of the OpenAPI document, in the order in which a client would.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use pais::roles::Role;
use reqwest::Method;
use serde_json::Value;

use crate::app::{Answer, TestApp, text};

/// A request example of the document.
pub(crate) struct Example {
    pub method: Method,
    pub path: String,
    pub media_type: String,
    pub body: Value,
}

/// All request examples. The document is made once: a test build takes a tenth of a second for it.
pub(crate) fn examples() -> &'static [Example] {
    static EXAMPLES: LazyLock<Vec<Example>> = LazyLock::new(examples_of_document);
    &EXAMPLES
}

fn examples_of_document() -> Vec<Example> {
    let document: Value = serde_json::from_str(&pais::api::document_text().unwrap()).unwrap();
    let mut examples = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let content = operation["requestBody"]["content"].as_object();
            for (media_type, content) in content.into_iter().flatten() {
                if let Some(body) = content.get("example") {
                    examples.push(Example {
                        method: method.to_uppercase().parse().unwrap(),
                        path: path.clone(),
                        media_type: media_type.clone(),
                        body: body.clone(),
                    });
                }
            }
        }
    }
    examples
}

/// Sends the example of a path; `id` replaces `{id}` in the path, `put` replaces ids in the body.
async fn send(
    app: &TestApp,
    token: &str,
    (path, media_type): (&str, &str),
    id: &str,
    put: &[(&str, &Value)],
) -> Answer {
    let examples = examples();
    let mut found = examples
        .iter()
        .filter(|example| example.path == path && example.media_type == media_type);
    let example = found.next().expect("an example");
    let mut body = example.body.clone();
    for (pointer, value) in put {
        *body.pointer_mut(pointer).expect("a field of the example") = (*value).clone();
    }
    let path = path.replace("{id}", id);
    if media_type == "application/json" {
        let request = app.request(example.method.clone(), &path);
        return crate::app::send(request.bearer_auth(token).json(&body)).await;
    }
    let path = match path.as_str() {
        "/v1/taxonomies" => "/v1/taxonomies?name=jobs%20from%20a%20file".to_owned(),
        _ => path,
    };
    let body = text(&body).to_owned();
    app.post_bytes(token, &path, media_type, body).await
}

const JSON: &str = "application/json";

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_lead_from_an_organization_to_a_grant() {
    let app = TestApp::new().await;
    let admin = app.token("operator", Role::Admin).await;
    let holder = app.token("hospital", Role::Holder).await;
    let mut sent = BTreeSet::new();
    let mut send = async |token: &str, at, id: &str, put: &[(&str, &Value)], status| {
        sent.insert(at);
        send(&app, token, at, id, put).await.json(status)
    };
    let organization = send(&admin, ("/v1/organizations", JSON), "", &[], 201).await;
    let token = send(&admin, ("/v1/tokens", JSON), "", &[], 201).await;
    let analysts = text(&token["token"]).to_owned();
    send(&holder, ("/v1/taxonomies", "text/csv"), "", &[], 201).await;
    let taxonomy = send(&holder, ("/v1/taxonomies", JSON), "", &[], 201).await;
    let preview = send(&holder, ("/v1/taxonomies/preview", JSON), "", &[], 200).await;
    assert_eq!(preview["root"]["children"][0]["label"], "123*");
    let put = [("/columns/1/taxonomy", &taxonomy["id"])];
    let dataset = send(&holder, ("/v1/datasets", JSON), "", &put, 201).await;
    let id = text(&dataset["id"]);
    for media_type in [
        "text/csv",
        "text/tab-separated-values",
        "application/x-ndjson",
    ] {
        let drafted = send(&holder, ("/v1/datasets/draft", media_type), "", &[], 200).await;
        assert!(drafted["dataset"]["columns"].is_array(), "{drafted}");
    }
    let path = "/v1/datasets/{id}/submissions";
    send(&holder, (path, "text/csv"), id, &[], 201).await;
    send(&holder, (path, "application/x-ndjson"), id, &[], 201).await;
    send(&holder, (path, "text/tab-separated-values"), id, &[], 201).await;
    send(&holder, ("/v1/datasets/{id}", JSON), id, &[], 200).await;
    let hold = send(
        &holder,
        ("/v1/datasets/{id}/legal-hold", JSON),
        id,
        &[],
        200,
    )
    .await;
    assert!(hold["since"].is_string());
    send(&holder, ("/v1/policy", JSON), "", &[], 200).await;
    let put = [("/dataset_id", &dataset["id"])];
    let job = send(&holder, ("/v1/jobs", JSON), "", &put, 202).await;
    let path = format!("/v1/jobs/{}", text(&job["id"]));
    let stream = app.get(&holder, &format!("{path}/events")).await;
    assert!(stream.text.contains("event: end"), "{}", stream.text);
    let put = [("/job_id", &job["id"])];
    let release = send(&holder, ("/v1/releases", JSON), "", &put, 201).await;
    let put = [("/dataset_id", &dataset["id"])];
    let publication = send(&holder, ("/v1/publications", JSON), "", &put, 201).await;
    let id = text(&publication["id"]);
    send(&holder, ("/v1/publications/{id}", JSON), id, &[], 200).await;
    let id = text(&release["id"]);
    let second = app.token("hospital", Role::Holder).await;
    send(&second, ("/v1/releases/{id}/approval", JSON), id, &[], 201).await;
    send(&holder, ("/v1/releases/{id}/grants", JSON), id, &[], 201).await;
    let table = app.get(&analysts, &format!("/v1/releases/{id}/data")).await;
    assert_eq!(table.status, 200);
    assert_eq!(table.text.lines().count(), 7);
    send(
        &holder,
        ("/v1/releases/{id}/withdrawal", JSON),
        id,
        &[],
        201,
    )
    .await;

    send(&admin, ("/v1/enrolments", JSON), "", &[], 404).await;
    let id = text(&organization["id"]);
    let disabled = send(&admin, ("/v1/organizations/{id}", JSON), id, &[], 200).await;
    assert!(disabled["disabled_at"].is_string());

    for example in examples() {
        let at = (example.path.as_str(), example.media_type.as_str());
        assert!(
            sent.contains(&at),
            "the test does not send the example {at:?}"
        );
    }
}

/// Every request body has an example, except Parquet, which is not text.
#[test]
fn every_text_body_has_an_example() {
    let document: Value = serde_json::from_str(&pais::api::document_text().unwrap()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values() {
            let content = operation["requestBody"]["content"].as_object();
            for (media_type, content) in content.into_iter().flatten() {
                let has_example = content.get("example").is_some();
                let binary = media_type == "application/vnd.apache.parquet";
                assert!(has_example != binary, "{path} {media_type}");
            }
        }
    }
}
