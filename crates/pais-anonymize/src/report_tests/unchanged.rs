//! What is released unchanged, where a person has several rows: equal rows of one person hide nobody.

use pais_core::definition::JobErrorKind;
use pais_core::table::Verdict;
use pais_core::warning::WarningCode;
use pais_measure::for_recipient;
use serde_json::{Value, json};

use crate::test_data::{job_of, load, schema};
use crate::{AnonymizationRun, RunError, Unobserved, VerifiedRelease};

/// 40 patients with two equal rows each. Every insurance number is of one patient; every ward is of all.
fn run(role: &str, acknowledged: &Value) -> Result<VerifiedRelease, RunError> {
    let schema = schema(json!([
        {"name": "patient", "role": "subject"},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "insurance", "role": role},
        {"name": "ward", "role": "insensitive"},
    ]));
    let row = |row: usize| {
        let patient = row / 2;
        format!("p{patient},{},i{patient},w{}\n", patient % 4, row % 2)
    };
    let rows: String = (0..80).map(row).collect();
    let table = load(
        &schema,
        format!("patient,age,insurance,ward\n{rows}").as_bytes(),
    );
    let job =
        json!({"privacy": {"model": "k_anonymity", "k": 5}, "acknowledge_unchanged": acknowledged});
    let observer = Unobserved::default();
    let run = AnonymizationRun::new(schema, job_of(job).unwrap(), table, &observer)?;
    let steps = run.search(&observer)?;
    run.release(&steps, None, &observer)
}

#[test]
fn a_column_with_a_value_of_its_own_for_each_person_is_a_key() {
    for role in ["insensitive", "sensitive", "class"] {
        let Err(RunError::Job(error)) = run(role, &json!({})) else {
            panic!("a key of the persons is released as {role}");
        };
        assert_eq!(error.kind, JobErrorKind::UnchangedKey);
        let [fault] = error.faults.as_slice() else {
            panic!("{:?}", error.faults);
        };
        assert_eq!(fault.pointer(), Some("/acknowledge_unchanged/insurance"));
        let detail = "has values of their own for nearly all persons, so that each finds a person";
        assert!(fault.detail.ends_with(detail), "{}", fault.detail);
    }
}

#[test]
fn persons_are_singled_out_by_values_that_only_their_rows_have() {
    let release = run("insensitive", &json!({"insurance": "a study of insurers"})).unwrap();
    let report = release.report();
    let found = &report.risk.unchanged;
    assert_eq!(found.singled_out_share, 1.0);
    assert_eq!(found.by_column["insurance"], 1.0);
    assert_eq!(found.by_column["ward"], 0.0);
    assert_eq!(report.risk.insensitive_singled_out, ["insurance"]);
    assert_eq!(report.verdict, Verdict::HoldsButSinglesOut);
    let guidelines = report.guidelines.as_ref().unwrap();
    assert_eq!(guidelines.opinion_05_2014.singling_out.unique_share, 1.0);
    let warned = release.warnings.iter().map(|warning| warning.code);
    let warned: Vec<WarningCode> = warned.collect();
    assert!(
        warned.contains(&WarningCode::NearlyUniqueColumn),
        "{warned:?}"
    );
}

/// The rows of the release do not say which of them are of one person.
#[test]
fn shares_of_persons_are_for_the_holder() {
    let release = run("insensitive", &json!({"insurance": "a study of insurers"})).unwrap();
    let shown = for_recipient(json!(release.report()));
    let risk = &shown["risk"];
    assert!(
        risk["unchanged"].is_null() && risk["insensitive_singled_out"].is_null(),
        "{risk}"
    );
    let singling_out = &shown["guidelines"]["opinion_05_2014"]["singling_out"];
    assert!(singling_out["unique_share"].is_null(), "{singling_out}");
}
