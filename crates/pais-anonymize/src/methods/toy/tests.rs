//! The toy method on Table 1 of the KDD'09 paper, through the gate.

use serde_json::json;

use super::plan;
use crate::methods::plan_among;
use crate::test_data::{DATA_FOLDER, job_of, load, schema};
use crate::{AnonymizationRun, RunError, Unobserved, VerifiedRelease};

/// Table 1 under k-anonymity: 11 patients.
fn release(k: u32) -> Result<VerifiedRelease, RunError> {
    let schema = schema(json!([
        {"name": "ID", "role": "identifier"},
        {"name": "Job", "role": "quasi_identifier"},
        {"name": "Sex", "role": "quasi_identifier", "taxonomy":
            {"label": "ANY_Sex", "children": [{"label": "M"}, {"label": "F"}]}},
        {"name": "Age", "role": "quasi_identifier", "kind": "numeric", "domain": [1, 99]},
        {"name": "Transfuse", "role": "class"},
        {"name": "Surgery", "role": "sensitive"},
    ]));
    let file = std::fs::read(format!("{DATA_FOLDER}/kdd09/table1.csv")).unwrap();
    let table = load(&schema, &file);
    let job = json!({"privacy": {"model": "k_anonymity", "k": k}});
    let job = job_of(job)?;
    let observer = Unobserved::default();

    let method = plan_among(&[plan], &schema, &job, &schema.privacy_model(&job)?)?;
    let run = AnonymizationRun::with_method(method, schema, job, table, &observer)?;
    run.release(&run.search(&observer)?, None, &observer)
}

#[test]
fn the_topmost_table_is_one_group_of_all_rows() {
    let release = release(11).unwrap();
    assert_eq!(json!(release.verification())["holds"], true);
    assert_eq!(json!(release.verification())["smallest_group"], 11);
    assert_eq!(json!(release.report())["utility"]["groups"], 1);
    assert_eq!(release.rows, 11);
    let cut = release.cut.unwrap();
    assert_eq!(cut["Job"], ["*"]);
    assert_eq!(cut["Sex"], ["ANY_Sex"]);
    assert_eq!(cut["Age"], ["[1,99]"]);
}

#[test]
fn the_gate_refuses_a_claim_that_does_not_hold() {
    let error = release(12).unwrap_err();
    assert!(matches!(error, RunError::NotVerified { .. }), "{error}");
}
