//! Hierarchies over values that are not stored.

use pais::roles::Role;
use serde_json::{Value, json};

use crate::app::{TestApp, text};

const PATH: &str = "/v1/taxonomies/preview";

fn values(values: &[&str]) -> Value {
    values
        .iter()
        .map(|value| json!({ "value": value }))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generated_hierarchy_is_shown_over_the_values_of_a_file_and_nothing_is_stored() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    // Numbers as a German file has them.
    let body = json!({
        "column": { "name": "Kosten", "role": "quasi_identifier", "kind": "numeric",
                    "missing": ["k. A."], "taxonomy": { "generate": "ranges", "widths": [1000] } },
        "format": { "decimal": ",", "thousands": "." , "delimiter": ";" },
        "values": values(&["1.250,50", "999", "k. A.", "1.5"]),
    });
    let seen = app.post(&holder, PATH, &body).await.json(200);
    assert_eq!(
        seen["root"],
        json!({ "label": "[0,2000)", "children": [{ "label": "[0,1000)" }, { "label": "[1000,2000)" }] })
    );
    assert_eq!(seen["unfit_total"], 1);
    assert_eq!(seen["unfit"][0]["value"], "1.5");
    let stored = app.get(&holder, "/v1/taxonomies").await.json(200);
    assert_eq!(stored["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_hierarchy_is_checked_against_values() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let rows = "Janitor;Blue-collar;ANY\nMover;Blue-collar;ANY\nLawyer;White-collar;ANY\n";
    let made = app.post_bytes(&holder, "/v1/taxonomies?name=jobs", "text/csv", rows);
    let made = made.await.json(201);
    let body = json!({
        "column": { "name": "Job", "role": "quasi_identifier", "taxonomy": made["id"] },
        "values": values(&["Mover", "Lawyer", "Doctor"]),
    });
    let seen = app.post(&holder, PATH, &body).await.json(200);
    assert_eq!(seen["unfit"][0]["value"], "Doctor");
    assert_eq!(seen["unused"], json!(["Janitor"]));
    assert_eq!(seen["root"], made["root"]);
    let other = app.token("elsewhere", Role::Holder).await;
    app.post(&other, PATH, &body)
        .await
        .problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_preview_is_refused_where_it_is_wrong() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let column =
        |taxonomy: Value| json!({ "name": "x", "role": "quasi_identifier", "taxonomy": taxonomy });
    let mask = || column(json!({ "generate": "mask_right" }));
    let long = "x".repeat(4096);
    let many: Vec<String> = (0..20_001).map(|value| value.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let all_masks = "*#\u{2022}\u{d7}\u{2588}";
    for (body, status, code, pointer) in [
        (
            json!({ "column": column(json!({ "generate": "calendar" })), "values": [] }),
            422,
            "invalid_schema",
            "/column/taxonomy",
        ),
        (
            json!({ "column": column(json!({ "generate": "ordered" })), "values": [] }),
            422,
            "invalid_schema",
            "/column/taxonomy",
        ),
        (
            json!({ "column": column(json!({ "generate": "prefix", "lengths": [1, 3] })), "values": [] }),
            422,
            "invalid_schema",
            "/column/taxonomy/lengths",
        ),
        (
            json!({ "column": mask(), "values": values(&[&long]) }),
            422,
            "limit_exceeded",
            "/values",
        ),
        (
            json!({ "column": mask(), "values": values(&many) }),
            422,
            "limit_exceeded",
            "/values",
        ),
        (
            json!({ "column": mask(), "values": values(&[all_masks]) }),
            422,
            "invalid_taxonomy",
            "/column/taxonomy",
        ),
        (
            json!({ "column": mask(), "values": [{ "value": "secret", "rows": -1 }] }),
            422,
            "invalid_value",
            "/values/0/rows",
        ),
        (
            json!({ "column": mask(), "format": { "decimal": "x" }, "values": [] }),
            400,
            "invalid_shape",
            "/format/decimal",
        ),
    ] {
        let problem = app.post(&holder, PATH, &body).await.problem(status, code);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        assert!(!text(&problem["detail"]).contains("secret"), "{problem}");
    }
}
