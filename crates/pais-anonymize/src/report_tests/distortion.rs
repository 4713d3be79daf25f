//! Distortion and risk by length: on Adult, and what recipients see of them.

use pais_measure::for_recipient;
use serde_json::{Value, json};

use crate::test_data::{adult_with, job_of, load, schema};
use crate::{AnonymizationRun, Unobserved, VerifiedRelease};

fn released(columns: &Value, rows: &str, job: &Value) -> VerifiedRelease {
    let schema = schema(columns.clone());
    let table = load(&schema, rows.as_bytes());
    let job = crate::test_data::job_of(job.clone()).unwrap();
    let observer = Unobserved::default();
    let run = AnonymizationRun::new(schema, job, table, &observer).unwrap();
    let steps = run.search(&observer).unwrap();
    run.release(&steps, None, &observer).unwrap()
}

fn visits(role: &str) -> VerifiedRelease {
    let columns = json!([
        {"name": "person", "role": role},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 100]},
        {"name": "sex", "role": "quasi_identifier"},
        {"name": "note", "role": "insensitive"},
        {"name": "disease", "role": "sensitive"},
    ]);
    let row = |row: usize| {
        let sex = ["f", "m"][row / 2 % 2];
        let disease = ["flu", "cold", "cough"][row % 3];
        format!(
            "{},{},{sex},{},{disease}\n",
            row / 2,
            row * 5 % 100,
            row % 13
        )
    };
    let rows = "person,age,sex,note,disease\n".to_owned() + &(0..40).map(row).collect::<String>();
    let job = json!({"privacy": {"model": "lkc", "l": 1, "k": 4, "c": 1.0}});
    released(&columns, &rows, &job)
}

#[test]
fn recipients_see_the_risk_by_length_but_nothing_of_raw_values() {
    let report = json!(visits("identifier").report());
    assert!(report["utility"]["entropy_loss_by_column"]["age"].is_number());
    assert!(report["utility"]["frequency_survival_by_column"]["sex"].is_number());
    assert!(report["utility"]["association_survival"].is_number());
    let columns = report["distributions"].as_array().unwrap();
    let columns: Vec<_> = columns
        .iter()
        .map(|it| it["column"].as_str().unwrap())
        .collect();
    assert_eq!(columns, ["age", "sex"]);
    let shown = for_recipient(report.clone());
    for pointer in [
        "/utility/entropy_loss_by_column",
        "/utility/frequency_survival_by_column",
        "/utility/association_survival",
        "/distributions",
    ] {
        assert_eq!(shown.pointer(pointer), None, "{pointer}");
    }
    assert_eq!(shown["risk"], report["risk"]);
    let lengths = shown["risk"]["by_length"].as_array().unwrap();
    assert_eq!(lengths.len(), 2, "L + 2 is more than there are columns");
    assert_eq!(
        lengths[0]["smallest"],
        report["utility"]["smallest_known_group"]
    );
    assert_eq!(lengths[0]["share_below_k"], 0.0);
    assert_eq!(lengths[1]["smallest"], report["utility"]["smallest_group"]);
    assert_eq!(shown["risk"]["by_length_exact"], true);
    assert_eq!(shown["risk"].get("insensitive_singled_out"), None);
}

#[test]
fn who_is_one_person_is_not_shown_by_length() {
    let report = json!(visits("subject").report());
    let by_length = &report["risk"]["by_length"];
    assert_eq!(
        by_length[0]["smallest"],
        report["utility"]["smallest_known_group"]
    );
    let shown = for_recipient(report);
    for field in ["by_length", "qid_sizes", "qid_confidences", "share_above"] {
        assert_eq!(shown["risk"].get(field), None, "{field}");
    }
    assert!(shown["risk"]["prosecutor"].is_number());
}

#[test]
fn an_insensitive_column_with_a_value_of_one_row_is_named() {
    let columns = json!([
        {"name": "sex", "role": "quasi_identifier"},
        {"name": "ward", "role": "insensitive"},
        {"name": "note", "role": "insensitive"},
    ]);
    let rows = "sex,ward,note\nf,1,\nf,1,\nm,2,x\nm,2,\n";
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}});
    let risk = json!(released(&columns, rows, &job).report())["risk"].clone();
    assert_eq!(risk["insensitive_singled_out"], json!(["note"]));
}

/// Labels of groups overlap, so that an adversary with raw values may find more records.
#[test]
fn the_risk_by_length_of_local_recoding_is_a_bound() {
    let columns = json!([
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "weight", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "disease", "role": "sensitive"},
    ]);
    let rows = (0..60usize).map(|row| format!("{},{},d{}\n", row * 7 % 60, row * 11 % 50, row % 4));
    let rows = "age,weight,disease\n".to_owned() + &rows.collect::<String>();
    let job = json!({"privacy": {"model": "lkc", "l": 2, "k": 5, "c": 0.8}, "recoding": "local"});
    let report = json!(released(&columns, &rows, &job).report());
    assert_eq!(report["risk"]["by_length_exact"], false);
    let by_length = report["risk"]["by_length"].as_array().unwrap();
    assert_eq!(by_length.len(), 2);
    assert_eq!(
        by_length[1]["smallest"],
        report["utility"]["smallest_group"]
    );
    assert_eq!(by_length[1]["share_below_k"], 0.0);
}

#[test]
fn on_adult_two_values_more_than_assumed_single_persons_out() {
    let (schema, table) = adult_with(|name| match name {
        "workclass" | "education" | "occupation" | "race" | "sex" | "relationship" => {
            "quasi_identifier"
        }
        "marital-status" => "sensitive",
        "income" => "class",
        _ => "identifier",
    });
    let job = json!({"privacy": {"model": "lkc", "l": 2, "k": 20, "c": 1.0}});
    let job = job_of(job).unwrap();
    let observer = Unobserved::default();
    let run = AnonymizationRun::new(schema, job, table, &observer).unwrap();
    let steps = run.search(&observer).unwrap();
    let report = json!(run.release(&steps, None, &observer).unwrap().report());
    let by_length = report["risk"]["by_length"].as_array().unwrap();
    assert_eq!(by_length.len(), 4);
    let smallest: Vec<u64> = by_length
        .iter()
        .map(|it| it["smallest"].as_u64().unwrap())
        .collect();
    assert_eq!(
        json!(smallest[1]),
        report["utility"]["smallest_known_group"]
    );
    assert!(smallest[1] >= 20 && smallest[3] < 20, "{smallest:?}");
    let confidence = &report["utility"]["greatest_confidence"];
    assert_eq!(&by_length[1]["greatest_confidence"], confidence);
    assert_eq!(by_length[1]["share_below_k"], 0.0);
    assert!(by_length[3]["share_below_k"].as_f64().unwrap() > 0.0);
}
