//! LKC-privacy by local recoding: the figures on Adult, and tables that cannot meet it.

use serde_json::{Value, json};

use pais_core::definition::JobErrorKind;

use super::tests::run;
use crate::test_data::{adult_with, job_of, refusal, schema, unmet};
use crate::{Anonymizer, JobPlan, VerifiedRelease};

/// Adult with 13 quasi-identifiers: L = 4, K = 20, C = 20 %.
fn adult(objective: &str) -> VerifiedRelease {
    let (schema, table) = adult_with(|name| match name {
        "marital-status" => "sensitive",
        "income" => "class",
        _ => "quasi_identifier",
    });
    let job = json!({
        "privacy": {"model": "lkc", "l": 4, "k": 20, "c": 0.2,
                    "sensitive_values": {"marital-status": ["Divorced", "Separated"]}},
        "recoding": "local", "utility": {"objective": objective}});
    let job = job_of(job).unwrap();
    Anonymizer::with_job(job).run(&schema, &table).unwrap()
}

/// The greedy global cut ends with NCP 0.779 under the same model.
#[test]
fn adult_loses_a_fifth_of_its_information() {
    let release = adult("ncp");
    let figure = |name: &str| json!(release.report())["utility"][name].as_f64().unwrap();
    assert!(figure("ncp") < 0.21, "{}", figure("ncp"));
    assert!(figure("dr") < 0.0005, "{}", figure("dr"));
    assert_eq!(json!(release.verification())["holds"], true);
    assert!(
        json!(release.verification())["smallest_group"]
            .as_u64()
            .unwrap()
            >= 20
    );
    assert!(
        json!(release.verification())["greatest_bounded_confidence"]
            .as_f64()
            .unwrap()
            <= 0.2
    );
    assert!(release.cut.is_none() && release.step.is_none() && release.suppressed_rows == 0);
}

#[test]
fn groups_of_adult_are_nearly_as_small_as_they_may_be() {
    let release = adult("discernibility");
    let utility = &json!(release.report())["utility"];
    // No table of groups of 20 has a lower ratio than 20 / 45,222.
    assert!(
        utility["dr"].as_f64().unwrap() < 0.000_51,
        "{}",
        utility["dr"]
    );
}

/// The entropy of the class in bits, given the group.
fn class_entropy(release: &VerifiedRelease) -> (f64, f64) {
    use std::collections::HashMap;
    let table = &release.tables()[0];
    let is_label = |name: &str| name != "marital-status" && name != "income";
    let columns: Vec<_> = table
        .columns
        .iter()
        .filter(|it| is_label(&it.name))
        .collect();
    let class = table
        .columns
        .iter()
        .find(|it| &*it.name == "income")
        .unwrap();
    let mut groups: HashMap<Vec<u32>, HashMap<u32, f64>> = HashMap::new();
    let mut all: HashMap<u32, f64> = HashMap::new();
    for row in 0..table.rows {
        let labels = columns.iter().map(|it| it.column.codes[row]).collect();
        let class = class.column.codes[row];
        *groups.entry(labels).or_default().entry(class).or_default() += 1.0;
        *all.entry(class).or_default() += 1.0;
    }
    let bits = |counts: &HashMap<u32, f64>| {
        let total: f64 = counts.values().sum();
        -counts
            .values()
            .map(|rows| rows * (rows / total).log2())
            .sum::<f64>()
    };
    let rows = table.rows as f64;
    (
        bits(&all) / rows,
        groups.values().map(bits).sum::<f64>() / rows,
    )
}

/// Regions of quasi-identifiers tell the class apart better than those of the least loss.
#[test]
fn groups_keep_the_class_apart_where_the_job_asks_for_it() {
    let (whole, by_class) = class_entropy(&adult("classification"));
    let (_, by_loss) = class_entropy(&adult("ncp"));
    assert!(
        by_class < by_loss && by_loss < whole,
        "{by_class} {by_loss} {whole}"
    );
}

fn columns() -> Value {
    json!([
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "illness", "role": "sensitive"},
    ])
}

#[test]
fn a_value_that_the_whole_table_has_too_often_is_named_by_its_place() {
    let rows = "age,illness\n1,a\n2,a\n3,b\n4,a\n5,c\n";
    let privacy = json!({"model": "lkc", "l": 1, "k": 2, "c": 0.5,
                         "sensitive_values": {"illness": ["b", "a"]}});
    let error = run(
        &columns(),
        rows,
        &json!({"privacy": privacy, "recoding": "local"}),
    );
    let error = error.unwrap_err();
    let fault = unmet(&error);
    assert_eq!(fault.pointer(), Some("/privacy/sensitive_values/illness/1"));
    let fix = fault.suggested_fix.as_deref().unwrap();
    assert!(
        fix.contains("set the greatest confidence to at least 0.6"),
        "{fix}"
    );
    assert!(
        fix.contains("or to 0.72, which leaves room for detail"),
        "{fix}"
    );
    assert!(!error.to_string().contains("`a`"), "{error}");
    let privacy = json!({"model": "alpha_k", "k": 6, "alpha": 0.6});
    let error = run(
        &columns(),
        rows,
        &json!({"privacy": privacy, "recoding": "local"}),
    );
    assert_eq!(unmet(&error.unwrap_err()).pointer(), Some("/privacy/k"));
}

#[test]
fn classification_needs_a_class_column() {
    let job = json!({"privacy": {"model": "lkc", "l": 1, "k": 2, "c": 0.5}, "recoding": "local",
                     "utility": {"objective": "classification"}});
    let job = job_of(job).unwrap();
    let (kind, pointer) = refusal(JobPlan::new(&schema(columns()), &job));
    assert_eq!(
        (kind, pointer.as_str()),
        (JobErrorKind::Unfit, "/utility/objective")
    );
}

/// A missing cell does not count among the rows of which a value is a share, unless the job says so.
#[test]
fn a_missing_cell_protects_nobody() {
    let rows = "age,illness\n1,a\n1,b\n1,\n1,\n";
    let job = |reading: &str| {
        json!({"privacy": {"model": "confidence_bounding", "c": 0.4,
                           "sensitive_values": {"illness": ["a"]}},
               "recoding": "local", "missing_sensitive": reading})
    };
    let error = run(&columns(), rows, &job("excluded")).unwrap_err();
    let pointer = unmet(&error).pointer().unwrap().to_owned();
    assert_eq!(pointer, "/privacy/sensitive_values/illness/0");
    let release = run(&columns(), rows, &job("counted")).unwrap();
    assert_eq!(
        json!(release.verification())["greatest_bounded_confidence"],
        0.25
    );
}
