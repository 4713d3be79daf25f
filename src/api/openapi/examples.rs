//! Examples of request bodies. In order, they lead from an organization to a grant. A test sends
//! each of them, with the ids replaced by those of earlier answers.

use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::path::Operation;

/// Adds its examples to an operation that takes a body.
pub(super) fn complete(path: &str, operation: &mut Operation) {
    let Some(RefOr::T(body)) = &mut operation.request_body else {
        return;
    };
    for (media_type, content) in &mut body.content {
        if let RefOr::T(content) = content {
            content.example = example(path, media_type);
        }
    }
}

fn example(path: &str, media_type: &str) -> Option<Value> {
    let example = match (path, media_type) {
        ("/v1/organizations", _) => {
            json!({ "name": "bts", "display_name": "Blood Transfusion Service" })
        }
        ("/v1/enrolments", _) => json!({ "code": format!("paisenrol_{}", "0".repeat(64)) }),
        ("/v1/organizations/{id}", _) => json!({ "disabled": true }),
        ("/v1/tokens", _) => {
            json!({ "organization": "bts", "role": "recipient", "label": "analysts" })
        }
        ("/v1/taxonomies", "application/json") => {
            let leaf = |label: &str| json!({ "label": label });
            json!({ "name": "jobs", "root": { "label": "ANY", "children": [
                { "label": "Blue-collar", "children": [leaf("Janitor"), leaf("Mover")] },
                { "label": "White-collar", "children": [leaf("Doctor"), leaf("Lawyer")] },
            ] } })
        }
        ("/v1/taxonomies", "text/csv") => json!(
            "Janitor;Blue-collar;ANY\nMover;Blue-collar;ANY\n\
             Doctor;White-collar;ANY\nLawyer;White-collar;ANY\n"
        ),
        ("/v1/taxonomies/preview", _) => json!({
            "column": { "name": "ZIP", "role": "quasi_identifier",
                        "taxonomy": { "generate": "prefix", "lengths": [3] } },
            "values": [{ "value": "12345", "rows": 7 }, { "value": "12399" }],
        }),
        ("/v1/datasets", _) => json!({ "name": "patients", "columns": [
            { "name": "ID", "role": "identifier" },
            { "name": "Job", "role": "quasi_identifier",
              "taxonomy": "0192f0c1-7a52-7c3e-9d3b-4c8f5e6a7b01" },
            { "name": "Age", "role": "quasi_identifier", "kind": "numeric", "domain": [1, 99] },
            { "name": "Transfuse", "role": "class" },
            { "name": "Surgery", "role": "sensitive" },
        ] }),
        ("/v1/datasets/{id}", "application/json") => {
            json!({ "description": "Surgeries of 2026", "columns": [
                { "name": "Age", "domain": [0, 120] },
            ] })
        }
        ("/v1/datasets/draft" | "/v1/datasets/{id}/submissions", "text/csv") => json!(
            "ID,Job,Age,Transfuse,Surgery\n1,Janitor,34,Y,Transgender\n2,Doctor,58,N,Plastic\n\
             3,Mover,34,Y,Vascular\n4,Lawyer,24,N,Vascular\n"
        ),
        ("/v1/datasets/draft" | "/v1/datasets/{id}/submissions", "text/tab-separated-values") => {
            json!("ID\tJob\tAge\tTransfuse\tSurgery\n6\tDoctor\t44\tN\tPlastic\n")
        }
        ("/v1/datasets/draft" | "/v1/datasets/{id}/submissions", "application/x-ndjson") => json!(
            "{\"ID\":\"5\",\"Job\":\"Mover\",\"Age\":58,\"Transfuse\":\"N\",\"Surgery\":\"Urology\"}\n"
        ),
        ("/v1/jobs", _) => json!({
            "dataset_id": "0192f0c1-7a52-7c3e-9d3b-4c8f5e6a7b02",
            "privacy": { "model": "lkc", "l": 2, "k": 2, "c": 0.5,
                         "sensitive_values": { "Surgery": ["Transgender"] } },
            "utility": { "objective": "classification" },
            "release": true,
        }),
        ("/v1/releases", _) => json!({
            "job_id": "0192f0c1-7a52-7c3e-9d3b-4c8f5e6a7b03", "step": 1, "name": "after one step",
        }),
        ("/v1/releases/{id}/grants", _) => {
            json!({ "recipient": "bts", "purpose": "Modelling the demand for blood" })
        }
        ("/v1/publications", _) => json!({
            "name": "blood-usage-monthly", "dataset_id": "0192f0c1-7a52-7c3e-9d3b-4c8f5e6a7b02",
            "job": { "privacy": { "model": "lkc", "l": 2, "k": 2, "c": 0.5,
                                  "sensitive_values": { "Surgery": ["Transgender"] } } },
            "recipients": [
                { "recipient": "bts", "purpose": "Modelling the demand for blood" },
            ],
            "trigger": "manual",
        }),
        ("/v1/publications/{id}", _) => json!({ "paused": true }),
        ("/v1/policy", _) => json!({
            "models": ["lkc"], "k_min": 2, "l_min": 2, "c_max": 0.5, "suppression_max": 0.05,
            "sensitive_values": { "Surgery": ["Transgender"] }, "recipients": ["bts"],
        }),
        ("/v1/releases/{id}/approval", _) => {
            json!({ "decision": "approved", "reason": "The board has seen the report" })
        }
        ("/v1/datasets/{id}/legal-hold", _) => {
            json!({ "reason": "The court asked for the records of March" })
        }
        ("/v1/releases/{id}/withdrawal", _) => {
            json!({ "reason": "The file had patients of another hospital" })
        }
        _ => return None,
    };
    Some(example)
}
