//! Releases as a whole, on small tables.

use pais_core::cancellation::Cancellation;
use pais_core::definition::{
    ColumnRole, DatasetDefinition, Job, JobDefinition, JobErrorKind, Recoding, json,
};
use pais_core::model::PrivacyModel;
use pais_core::reimport;
use pais_core::schema::Schema;
use pais_core::table::{ReleasedTable, Table};
use pais_core::warning::WarningCode;
use pais_io::read::csv;

use super::{
    FoundRecoding, PrivacyFinding, ReleaseError, ReleaseTables, ReleaseVerification, VerifyError,
    decide_overlapping, verify_model, verify_release,
};
use crate::tests::columns;

const SCHEMA: &[u8] = br#"{"name": "visits", "columns": [
    {"name": "id", "role": "identifier"},
    {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]},
    {"name": "diagnosis", "role": "sensitive"}]}"#;

const RAW: &str = "id,age,diagnosis\n1,21,flu\n2,25,cold\n3,71,flu\n4,78,cold\n";

fn schema() -> Schema {
    let dataset: DatasetDefinition = json::parse(SCHEMA).unwrap();
    Schema::inline(&dataset).unwrap()
}

fn raw() -> Table {
    csv::read_table(&schema(), RAW.as_bytes()).unwrap()
}

fn job(privacy: &str) -> Job {
    let job: JobDefinition = json::parse(format!("{{\"privacy\": {privacy}}}").as_bytes()).unwrap();
    job.parse().unwrap()
}

fn generalized(file: &str) -> ReleaseTables {
    let schema = schema();
    let names: Vec<String> = csv::names(file.as_bytes(), pais_io::read::TextFormat::CSV).unwrap();
    let read_by = reimport::columns(&schema, &names);
    let table = csv::read_table(&read_by, file.as_bytes()).unwrap();
    ReleaseTables::Generalized(reimport::released(&schema, &read_by, table, 2).unwrap())
}

fn verify(privacy: &str, file: &str) -> Result<ReleaseVerification, ReleaseError> {
    let release = generalized(file);
    verify_release(
        &schema(),
        &job(privacy),
        &release,
        Some(raw()),
        &Cancellation::new(),
    )
}

const HALVES: &str =
    "age,diagnosis\n\"[0,50)\",flu\n\"[0,50)\",cold\n\"[50,99]\",cold\n\"[50,99]\",flu\n";

#[test]
fn a_true_and_private_table_holds() {
    let found = verify(r#"{"model": "lkc", "l": 1, "k": 2, "c": 0.5}"#, HALVES).unwrap();
    assert!(found.holds());
    let raw = found.raw.unwrap();
    assert_eq!((raw.rows, raw.made_up, raw.lost), (4, 0, 0));
    assert_eq!(raw.recoding, FoundRecoding::Global);
}

#[test]
fn a_group_that_is_too_small_does_not_hold() {
    let found = verify(r#"{"model": "k_anonymity", "k": 3}"#, HALVES).unwrap();
    assert!(!found.privacy.as_ref().unwrap().holds());
    assert!(!found.holds());
}

#[test]
fn a_changed_cell_is_found() {
    let changed = HALVES.replacen("flu", "cold", 1);
    let found = verify(r#"{"model": "k_anonymity", "k": 2}"#, &changed).unwrap();
    assert!(found.privacy.as_ref().unwrap().holds());
    assert_eq!(found.raw.as_ref().unwrap().made_up, 1);
    assert!(!found.holds());
}

#[test]
fn a_lost_row_is_found() {
    let lost = HALVES.replacen("\"[0,50)\",flu\n", "", 1);
    let found = verify(r#"{"model": "lkc", "l": 1, "k": 1, "c": 0.9}"#, &lost).unwrap();
    let raw = found.raw.as_ref().unwrap();
    assert_eq!((raw.lost, raw.may_be_lost), (1, 0));
    assert!(!found.holds());
}

#[test]
fn a_job_about_unknown_columns_is_refused() {
    let privacy =
        r#"{"model": "lkc", "l": 1, "k": 2, "c": 0.5, "sensitive_values": {"drug": ["a"]}}"#;
    let Err(ReleaseError::Job(error)) = verify(privacy, HALVES) else {
        panic!("the job was accepted");
    };
    assert_eq!(error.kind, JobErrorKind::Unfit);
    assert_eq!(
        error.faults[0].pointer(),
        Some("/privacy/sensitive_values/drug")
    );
}

fn anatomized() -> ReleaseTables {
    let ReleaseTables::Generalized(qit) = generalized(HALVES) else {
        unreachable!("the table is generalized");
    };
    ReleaseTables::Anatomized {
        qit,
        counts: Vec::new(),
    }
}

#[test]
fn an_anatomized_release_needs_the_raw_table() {
    let job = job(r#"{"model": "l_diversity", "k": 2, "l": 2}"#);
    let found = verify_release(&schema(), &job, &anatomized(), None, &Cancellation::new());
    assert_eq!(found.unwrap_err(), ReleaseError::NeedsRaw);
}

/// The fault for which a job is refused.
fn refusal(found: Result<ReleaseVerification, ReleaseError>) -> Option<String> {
    let Err(ReleaseError::Job(error)) = found else {
        panic!("the job was accepted");
    };
    assert_eq!(error.kind, JobErrorKind::Unfit);
    error.faults[0].pointer().map(str::to_owned)
}

#[test]
fn anatomy_without_diversity_is_refused() {
    let unbound = r#"{"model": "l_diversity", "k": 2, "l": 2, "column_limits": {"diagnosis": 0}}"#;
    for (privacy, pointer) in [
        (r#"{"model": "k_anonymity", "k": 2}"#, "/output"),
        (r#"{"model": "l_diversity", "k": 2, "l": 1}"#, "/output"),
        (unbound, "/privacy/column_limits"),
    ] {
        let (release, job) = (anatomized(), job(privacy));
        let found = verify_release(&schema(), &job, &release, Some(raw()), &Cancellation::new());
        assert_eq!(refusal(found).as_deref(), Some(pointer), "{privacy}");
    }
}

#[test]
fn jobs_that_ask_for_nothing_are_refused() {
    for privacy in [
        r#"{"model": "k_anonymity", "k": 1}"#,
        r#"{"model": "lkc", "l": 1, "k": 1, "c": 1}"#,
        r#"{"model": "confidence_bounding", "c": 1}"#,
        r#"{"model": "k_m_anonymity", "k": 1, "m": 2}"#,
        r#"{"model": "l_diversity", "k": 1, "l": 1}"#,
    ] {
        let found = verify(privacy, HALVES);
        assert_eq!(refusal(found).as_deref(), Some("/privacy"), "{privacy}");
    }
}

#[test]
fn a_bound_without_effect_is_a_warning() {
    let privacy = r#"{"model": "lkc", "l": 1, "k": 2, "c": 0.5,
        "sensitive_values": {"diagnosis": ["Flu"]}}"#;
    let with_raw = verify(privacy, HALVES).unwrap();
    let (release, job) = (generalized(HALVES), job(privacy));
    let alone = verify_release(&schema(), &job, &release, None, &Cancellation::new()).unwrap();
    for found in [with_raw, alone] {
        let codes: Vec<WarningCode> = found.warnings.iter().map(|found| found.code).collect();
        // The rows have `flu`.
        let expected = [
            WarningCode::ListedValueAbsent,
            WarningCode::ListedValueHasVariants,
        ];
        assert_eq!(codes, expected);
        assert!(found.holds());
    }
}

/// Without a declared domain no end of an interval shows the age of the row that is left out.
#[test]
fn a_narrowed_outermost_interval_covers_missing_cells() {
    let schema = String::from_utf8(SCHEMA.to_vec()).unwrap();
    let dataset: DatasetDefinition =
        json::parse(schema.replace(r#", "domain": [0, 99]"#, "").as_bytes()).unwrap();
    let schema = Schema::inline(&dataset).unwrap();
    let raw = "id,age,diagnosis\n1,21,flu\n2,25,cold\n3,,flu\n4,98,cold\n";
    let raw = csv::read_table(&schema, raw.as_bytes()).unwrap();
    let file = "age,diagnosis\n\"[21,25]\",flu\n\"[21,25]\",flu\n\"[21,25]\",cold\n";
    let names: Vec<String> = csv::names(file.as_bytes(), pais_io::read::TextFormat::CSV).unwrap();
    let read_by = reimport::columns(&schema, &names);
    let table = csv::read_table(&read_by, file.as_bytes()).unwrap();
    let release =
        ReleaseTables::Generalized(reimport::released(&schema, &read_by, table, 2).unwrap());
    let mut job = job(r#"{"model": "k_anonymity", "k": 3}"#);
    job.suppression_limit = pais_core::model::Decimal::fraction(0.25).unwrap();
    let found = verify_release(&schema, &job, &release, Some(raw), &Cancellation::new()).unwrap();
    assert!(found.holds(), "{:?}", found.raw);
    let raw = found.raw.unwrap();
    assert_eq!((raw.lost, raw.recoding), (1, FoundRecoding::Global));
}

/// Two rows [25,30] and five [20,40], and a job of L = 2, K = 3 and C = 80 %.
fn overlapping() -> (Schema, ReleasedTable, Job) {
    let schema = br#"{"name": "a", "columns": [
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 100]},
        {"name": "w", "role": "quasi_identifier"},
        {"name": "s", "role": "sensitive"}]}"#;
    let dataset: DatasetDefinition = json::parse(schema).unwrap();
    let schema = Schema::inline(&dataset).unwrap();
    let rows = ["\"[25,30]\",a,x\n".repeat(2), "\"[20,40]\",a,y\n".repeat(5)];
    let file = format!("age,w,s\n{}", rows.concat());
    let names: Vec<String> = csv::names(file.as_bytes(), pais_io::read::TextFormat::CSV).unwrap();
    let read_by = reimport::columns(&schema, &names);
    let table = csv::read_table(&read_by, file.as_bytes()).unwrap();
    let table = reimport::released(&schema, &read_by, table, 2).unwrap();
    let mut job = job(r#"{"model": "lkc", "l": 2, "k": 3, "c": 0.8}"#);
    job.recoding = Some(Recoding::Local);
    (schema, table, job)
}

/// An age of [25,30] matches all seven rows with a confidence of 5/7, so that only [20,40] has ages
/// that violate ("The verification" in `docs/methods/verification.md`).
#[test]
fn a_failing_table_of_overlapping_labels_has_the_figures_of_raw_qids() {
    let (schema, table, job) = overlapping();
    let release = ReleaseTables::Generalized(table);
    let found = verify_release(&schema, &job, &release, None, &Cancellation::new()).unwrap();
    let Some(PrivacyFinding::Subsets(found)) = found.privacy else {
        panic!("LKC-privacy is decided by subsets");
    };
    assert!(!found.holds);
    assert_eq!((found.violations, found.smallest_group), (1, 5));
    assert_eq!(found.greatest_bounded_confidence, Some(1.0));
    let [worst] = &found.worst[..] else {
        panic!("one qid violates: {:?}", found.worst);
    };
    let known = worst.quasi_identifiers.iter();
    let known: Vec<_> = known.map(|it| it.value.as_deref()).collect();
    assert_eq!((known, worst.size), (vec![Some("[20,40]")], 5));
    let sensitive = worst.sensitive.as_ref().and_then(|it| it.value.as_deref());
    assert_eq!((sensitive, worst.confidence), (Some("y"), 1.0));
}

/// A verification that is stopped has no result.
#[test]
fn a_stopped_decision_on_overlapping_labels_is_no_finding() {
    let (schema, table, job) = overlapping();
    let model = schema.privacy_model(&job).unwrap();
    let names = schema.names(ColumnRole::QuasiIdentifier);
    let sensitive = schema.names(ColumnRole::Sensitive);
    let going = Cancellation::new();
    let found = verify_model((&table).into(), columns(&names, &sensitive), &model, &going).unwrap();
    let PrivacyFinding::Subsets(found) = found.0 else {
        panic!("LKC-privacy is decided by subsets");
    };
    let PrivacyModel::Lkc(model) = model else {
        panic!("the job is of LKC-privacy");
    };
    let stopped = Cancellation::new();
    stopped.cancel();
    let decided = decide_overlapping(&schema, &model, &table, found, &stopped);
    assert_eq!(decided, Err(VerifyError::Stopped));
}
