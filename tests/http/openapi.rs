//! The OpenAPI document: the committed file is up to date, and the service serves it.

use reqwest::Method;
use serde_json::Value;

use crate::app::{TestApp, send};

#[test]
fn the_committed_document_is_up_to_date() {
    let committed = include_str!("../../openapi/openapi.json");
    assert!(
        committed == pais::api::document_text().unwrap(),
        "openapi/openapi.json is not up to date; run `make bless` and review the difference"
    );
}

#[test]
fn every_operation_id_is_unique() {
    let document: Value = serde_json::from_str(&pais::api::document_text().unwrap()).unwrap();
    let items = document["paths"].as_object().unwrap().values();
    let operations = items.flat_map(|item| item.as_object().unwrap().values());
    let mut names: Vec<_> = operations
        .map(|one| one["operationId"].to_string())
        .collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all, "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_and_its_browser_are_served_without_a_token() {
    let app = TestApp::new().await;
    let served = send(app.request(Method::GET, "/openapi.json")).await;
    assert_eq!(served.header("content-type"), "application/json");
    let served = served.json(200);
    assert_eq!(served["openapi"], "3.1.0");
    let references = references(&served);
    assert!(!references.is_empty());
    for reference in references {
        let target = served.pointer(reference.trim_start_matches('#'));
        assert!(target.is_some(), "{reference} has no target");
    }
    let page = send(app.request(Method::GET, "/")).await;
    assert!(
        page.text.contains("swagger-ui"),
        "`/` does not lead to the documents"
    );
    let page = send(app.request(Method::GET, "/docs")).await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("swagger-ui"));
    assert!(
        !page.text.contains("https://"),
        "the page loads something from another server"
    );
}

fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| match value.as_str() {
                Some(target) if key == "$ref" => vec![target.to_owned()],
                _ => references(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}
