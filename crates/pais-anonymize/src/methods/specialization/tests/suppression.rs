//! What rows are suppressed for, and missing sensitive cells.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use pais_core::model::{Confidence, MinimumAnonymity};
use pais_core::table::{EncodedTable, NULL_CODE};

use super::super::requirement::{Requirement, SensitiveBound};
use super::super::sensitive::SensitiveSlots;
use super::super::topmost;
use crate::test_data::{job_of, load, schema, steps, unmet};
use crate::{AnonymizationRun, RunError, StepRecord, Unobserved};

/// Rows of a job and a test result.
fn search(rows: &[(&str, &str)], job: Value) -> Result<Vec<StepRecord>, RunError> {
    let schema = schema(json!([
        {"name": "job", "role": "quasi_identifier"},
        {"name": "test", "role": "sensitive"},
    ]));
    let mut file = "job,test\n".to_owned();
    for (job, test) in rows {
        file += &format!("{job},{test}\n");
    }
    let table = load(&schema, file.as_bytes());
    let job = job_of(job)?;
    let observer = Unobserved::default();
    steps(&AnonymizationRun::new(schema, job, table, &observer)?)
}

fn job(c: f64, more: Value) -> Value {
    let mut job = json!({
        "privacy": {"model": "lkc", "l": 1, "k": 3, "c": c, "sensitive_values": {"test": ["HIV"]}},
        "utility": {"objective": "discernibility"},
    });
    for (name, value) in more.as_object().unwrap() {
        job[name] = value.clone();
    }
    job
}

/// Six lawyers who all have HIV, and twelve others who do not.
fn lawyers() -> Vec<(&'static str, &'static str)> {
    let mut rows = vec![("lawyer", "HIV"); 6];
    rows.extend([("doctor", "none"); 6]);
    rows.extend([("nurse", "none"); 6]);
    rows
}

/// A missing group of at least K rows would disclose that its confidence exceeded C.
#[test]
fn a_group_that_exceeds_c_is_not_suppressed_unless_the_job_says_so() {
    let steps = search(&lawyers(), job(0.5, json!({"suppression_limit": 0.4}))).unwrap();
    assert_eq!(steps.len(), 1, "no specialization is valid");
    assert_eq!(steps[0].item.suppressed_rows, 0);
    let asked = json!({"suppression_limit": 0.4, "suppression_for": "size_and_confidence"});
    let steps = search(&lawyers(), job(0.5, asked)).unwrap();
    assert_eq!(steps[1].suppressed, [0, 1, 2, 3, 4, 5]);
}

/// The two judges are fewer than K, which says nothing about their results.
#[test]
fn a_group_of_fewer_than_k_rows_is_suppressed() {
    let mut rows = lawyers()[6..].to_vec();
    rows.extend([("judge", "HIV"), ("judge", "HIV")]);
    let steps = search(&rows, job(0.5, json!({"suppression_limit": 0.2}))).unwrap();
    assert_eq!(steps[1].suppressed, [12, 13]);
}

/// The groups of `job` and `sex` overlap. Without the two judges, who are fewer than K, three of
/// five men have HIV instead of three of seven.
#[test]
fn a_group_that_exceeds_c_after_others_are_suppressed_makes_the_specialization_invalid() {
    let schema = schema(json!([
        {"name": "sex", "role": "quasi_identifier"},
        {"name": "job", "role": "quasi_identifier"},
        {"name": "test", "role": "sensitive"},
    ]));
    let men = [
        ("lawyer", "HIV"),
        ("lawyer", "HIV"),
        ("lawyer", "none"),
        ("lawyer", "none"),
        ("doctor", "HIV"),
        ("judge", "none"),
        ("judge", "none"),
    ];
    let mut file = "sex,job,test\n".to_owned();
    for (job, test) in men {
        file += &format!("M,{job},{test}\n");
    }
    for _ in 0..3 {
        file += "F,lawyer,none\nF,doctor,none\n";
    }
    let table = load(&schema, file.as_bytes());
    let found = |suppression_for: &str| {
        let job = json!({
            "privacy": {"model": "lkc", "l": 1, "k": 3, "c": 0.5,
                        "sensitive_values": {"test": ["HIV"]}},
            "utility": {"objective": "discernibility"},
            "suppression_limit": 0.9, "suppression_for": suppression_for,
        });
        let job = job_of(job).unwrap();
        let observer = Unobserved::default();
        let run = AnonymizationRun::new(schema.clone(), job, table.clone(), &observer).unwrap();
        let steps = steps(&run).unwrap();
        let steps = steps[1..].iter();
        let performed = |record: &StepRecord| {
            (
                record.item.attribute.clone().unwrap(),
                record.suppressed.len(),
            )
        };
        steps.map(performed).collect::<Vec<_>>()
    };
    // `sex` is valid alone, 3/7 of the men. `job` would suppress two judges.
    assert_eq!(found("size"), [("sex".to_owned(), 0)]);
    let for_both = found("size_and_confidence");
    assert_eq!(for_both[0], ("sex".to_owned(), 0));
    assert!(for_both[1].1 > 2, "{for_both:?}");
}

/// Three lawyers have HIV and seven were not tested: everybody with a result has HIV.
#[test]
fn missing_sensitive_cells_protect_nobody() {
    let mut rows = vec![("lawyer", "HIV"); 3];
    rows.extend([("lawyer", ""); 7]);
    rows.extend([("doctor", "none"); 10]);
    let found = |reading: Value| {
        let steps = search(&rows, job(0.5, reading)).unwrap();
        let last = steps.last().unwrap().item.clone();
        (steps.len() - 1, last.greatest_confidence.unwrap())
    };
    // 3 of the 13 with a result, and 3 of all 10 lawyers.
    assert_eq!(found(json!({})), (0, 3.0 / 13.0));
    assert_eq!(
        found(json!({"missing_sensitive": "excluded"})),
        (0, 3.0 / 13.0)
    );
    assert_eq!(found(json!({"missing_sensitive": "counted"})), (1, 0.3));
}

#[test]
fn a_sensitive_column_without_any_value_bounds_nothing() {
    let rows = [
        ("lawyer", ""),
        ("lawyer", ""),
        ("lawyer", ""),
        ("doctor", ""),
        ("doctor", ""),
        ("doctor", ""),
    ];
    let job = json!({"privacy": {"model": "lkc", "l": 1, "k": 3, "c": 0.5},
                     "utility": {"objective": "discernibility"}});
    let steps = search(&rows, job).unwrap();
    assert_eq!(steps.len(), 2);
}

/// 2 of the 3 rows with a value; of all 8 rows they would be 25 %.
#[test]
fn an_unmet_confidence_is_measured_on_the_rows_with_a_value() {
    let mut rows = vec![("lawyer", ""); 5];
    rows.extend([("doctor", "HIV"), ("doctor", "HIV"), ("doctor", "none")]);
    let error = search(&rows, job(0.5, json!({}))).unwrap_err();
    assert!(error.to_string().contains("66.67 %"), "{error}");
    assert!(error.to_string().contains("that have a value"), "{error}");
    let fix = format!("{:?}", unmet(&error));
    assert!(fix.contains("size_and_confidence"), "{fix}");
    assert!(search(&rows, job(0.5, json!({"missing_sensitive": "counted"}))).is_ok());
}

/// Two of six lawyers must be suppressed; where all rows have HIV, no number is enough.
#[test]
fn a_greater_limit_is_proposed_where_it_helps() {
    let fix = |rows: &[(&str, &str)], limit: f64| {
        let asked = json!({"suppression_limit": limit, "suppression_for": "size_and_confidence"});
        format!("{:?}", unmet(&search(rows, job(0.5, asked)).unwrap_err()))
    };
    assert!(fix(&lawyers()[..10], 0.1).contains("raise `suppression_limit`"));
    assert!(
        search(
            &lawyers()[..10],
            job(
                0.5,
                json!({"suppression_limit": 0.2, "suppression_for": "size_and_confidence"})
            )
        )
        .is_ok()
    );
    for limit in [0.1, 1.0] {
        let fix = fix(&lawyers()[..6], limit);
        assert!(!fix.contains("suppression_limit"), "{fix}");
    }
}

/// Without the rows suppressed for `x` of the one column, `a` of the other is more frequent than *C*, which it is not in
/// the whole table.
#[test]
fn a_failure_names_what_exceeds_the_confidence_in_the_whole_table() {
    let schema = schema(json!([
        {"name": "job", "role": "quasi_identifier"},
        {"name": "test", "role": "sensitive"},
        {"name": "drug", "role": "sensitive"},
    ]));
    let rows = ["x,a", "x,b", "x,", "x,b", "y,a", "z,", "y,"];
    let file: String = rows.iter().map(|row| format!("nurse,{row}\n")).collect();
    let table = load(&schema, format!("job,test,drug\n{file}").as_bytes());
    for (c, is_met) in [(0.3, false), (0.5715, true)] {
        let asked = json!({
            "privacy": {"model": "lkc", "l": 1, "k": 1, "c": c},
            "suppression_limit": 0.9, "suppression_for": "size_and_confidence",
        });
        let observer = Unobserved::default();
        let run = AnonymizationRun::new(
            schema.clone(),
            job_of(asked).unwrap(),
            table.clone(),
            &observer,
        );
        let found = steps(&run.unwrap());
        assert_eq!(found.is_ok(), is_met, "{found:?}");
        if let Err(error) = found {
            let shares = error.to_string();
            assert!(
                shares.contains("57.14 %") && !shares.contains("14.29 %"),
                "{shares}"
            );
        }
    }
}

/// Two of four rows with the value must be suppressed. With each draw equally likely, so is each
/// pair.
#[test]
fn the_rows_suppressed_in_the_topmost_table_are_drawn_at_random() {
    let codes = [0, 1, 0, NULL_CODE, 0, 0, 1];
    let bound = SensitiveBound {
        codes: &codes,
        numbers: vec![0, 1],
        missing: Some(2),
    };
    let (k, c) = (MinimumAnonymity::new(2), Confidence::new(0.5));
    let requirement = Requirement::new(1, k.unwrap(), c.unwrap(), vec![bound]);
    let table = EncodedTable {
        rows: codes.len(),
        quasi_identifiers: Vec::new(),
        sets: Vec::new(),
        sensitive: Vec::new(),
        class: None,
        subjects: None,
        untouched: Vec::new(),
    };
    let sensitive = SensitiveSlots::new(&requirement, codes.len());
    let mut found: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    for draws in (0..4).flat_map(|first| (0..3).map(move |second| [first, second])) {
        let mut left = draws.into_iter();
        let mut draw = |below: u64| left.next().filter(|drawn| *drawn < below).unwrap();
        let observer = Unobserved::default();
        let rows = topmost::suppress(&table, &requirement, &sensitive, 3, &mut draw, &observer);
        *found.entry(rows.unwrap()).or_default() += 1;
    }
    let pairs = [[0, 2], [0, 4], [0, 5], [2, 4], [2, 5], [4, 5]];
    let each_twice = pairs.iter().map(|pair| (pair.to_vec(), 2)).collect();
    assert_eq!(found, each_twice);
}

#[test]
fn equal_seeds_suppress_equal_rows() {
    let mut rows = lawyers();
    rows.truncate(10);
    let suppressed = |seed: u64| {
        let asked = json!({"seed": seed, "suppression_limit": 0.5,
                           "suppression_for": "size_and_confidence"});
        let steps = search(&rows, job(0.5, asked)).unwrap();
        steps[0].suppressed.clone()
    };
    // 6 - 2 of 10 - 2 rows.
    assert_eq!(suppressed(1).len(), 2);
    assert_eq!(suppressed(1), suppressed(1));
    let all: std::collections::BTreeSet<_> = (0..20).map(suppressed).collect();
    assert!(all.len() > 1, "the rows do not depend on the seed");
}

/// No row is below `Technical`, so its specialization would change nothing.
#[test]
fn a_value_that_no_row_has_is_not_specialized() {
    let schema = schema(json!([
        {"name": "job", "role": "quasi_identifier", "taxonomy":
            {"label": "any", "children": [
                {"label": "Medical", "children": [{"label": "doctor"}, {"label": "nurse"}]},
                {"label": "Technical", "children": [{"label": "mover"}, {"label": "driver"}]}]}},
    ]));
    let table = load(&schema, b"job\ndoctor\ndoctor\nnurse\nnurse\n");
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}, "utility": {"objective": "ncp"}});
    let job = job_of(job).unwrap();
    let observer = Unobserved::default();
    let run = AnonymizationRun::new(schema, job, table, &observer).unwrap();
    let steps = steps(&run).unwrap();
    let values: Vec<_> = steps[1..]
        .iter()
        .map(|record| record.item.value.clone())
        .collect();
    assert_eq!(values, [Some("any".to_owned()), Some("Medical".to_owned())]);
    // A child without rows is still a child.
    assert_eq!(steps[1].item.children, ["Medical", "Technical"]);
}
