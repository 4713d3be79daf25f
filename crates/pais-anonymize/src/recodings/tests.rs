use std::sync::Arc;

use pais_core::cancellation::Cancellation;
use pais_core::definition::{Job, Recoding};
use pais_core::model::Lkc;
use pais_core::risk::Feasible;
use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_core::warning::WarningCode;
use pais_io::read::csv;
use serde_json::json;

use super::{RecodingComparison, SuggestionSample, above, is_worth_it, sample};
use crate::error::RunError;
use crate::observer::Unobserved;
use crate::run::AnonymizationRun;

fn schema(subject: bool) -> Arc<Schema> {
    let mut columns = vec![
        json!({"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 999]}),
        json!({"name": "zip", "role": "quasi_identifier"}),
        json!({"name": "ill", "role": "sensitive"}),
    ];
    if subject {
        columns.push(json!({"name": "who", "role": "subject"}));
    }
    let definition = json!({"name": "t", "columns": columns});
    let definition = serde_json::from_value(definition).unwrap();
    Arc::new(Schema::inline(&definition).unwrap())
}

/// Ages in pairs, one place for each five rows: one cut for all has to give up the place.
fn table(schema: &Schema, rows: usize) -> Table {
    let subject = schema.subject().is_some();
    let mut text = String::from(if subject {
        "age,zip,ill,who\n"
    } else {
        "age,zip,ill\n"
    });
    for row in 0..rows {
        text += &format!(
            "{},z{},{}",
            row / 2 % 1000,
            row / 5 % 40,
            ["a", "b", "c"][row % 3]
        );
        text += &if subject {
            format!(",p{}\n", row / 2)
        } else {
            "\n".to_owned()
        };
    }
    csv::read_table(schema, text.as_bytes()).unwrap()
}

#[test]
fn a_sample_is_spread_over_the_rows_and_has_their_values_alone() {
    let plain = schema(false);
    let all = table(&plain, 1000);
    let some = sample(&plain, &all, 300);
    assert_eq!(some.rows, 250);
    let texts: Vec<Option<&str>> = (0..3).map(|row| some.columns[0].text(row)).collect();
    assert_eq!(texts, [Some("0"), Some("2"), Some("4")]);
    assert_eq!(some.columns[0].dictionary.len(), 250);
    assert_eq!(sample(&plain, &all, 1000), all);

    // Both rows of a person, or none.
    let persons = schema(true);
    let some = sample(&persons, &table(&persons, 1000), 300);
    assert_eq!(some.rows, 250);
    let who = &some.columns[3].codes[..4];
    assert_eq!(*who, [0, 0, 1, 1]);
}

#[test]
fn a_sample_of_persons_is_bounded_whatever_rows_one_has() {
    let schema = schema(true);
    let mut text = String::from("age,zip,ill,who\n");
    // The first person has nine tenths of the rows; each other one has two.
    for row in 0..10_000 {
        let person = if row < 9_000 { 0 } else { row / 2 };
        text += &format!("{},z1,a,p{person}\n", row % 1000);
    }
    let table = csv::read_table(&schema, text.as_bytes()).unwrap();
    for (limit, rows) in [(100, 100), (300, 250), (2_000, 1_000), (9_500, 9_500)] {
        let some = sample(&schema, &table, limit);
        assert_eq!(some.rows, rows);
        let mut rows_of = vec![0; some.columns[3].dictionary.len()];
        for &person in &some.columns[3].codes {
            rows_of[person as usize] += 1;
        }
        assert!(rows_of.iter().all(|rows| [2, 9_000].contains(rows)));
    }
}

/// As [`table`], with each row 20 times and an insensitive number that only these share, so that it is a
/// key of a sample alone.
fn with_cost(rows: usize) -> (Arc<Schema>, Table) {
    let columns = json!([
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 999]},
        {"name": "zip", "role": "quasi_identifier"},
        {"name": "ill", "role": "sensitive"},
        {"name": "cost", "role": "insensitive", "kind": "numeric"},
    ]);
    let definition = serde_json::from_value(json!({"name": "t", "columns": columns})).unwrap();
    let schema = Arc::new(Schema::inline(&definition).unwrap());
    let mut text = String::from("age,zip,ill,cost\n");
    for row in (0..rows).flat_map(|row| [row; 20]) {
        let (age, zip) = (row / 2 % 1000, row / 5 % 40);
        let ill = ["a", "b", "c"][row % 3];
        text += &format!("{age},z{zip},{ill},{row}\n");
    }
    let table = csv::read_table(&schema, text.as_bytes()).unwrap();
    (schema, table)
}

#[test]
fn a_column_that_is_a_key_of_a_sample_alone_refuses_nothing() {
    let (schema, table) = with_cost(10_000);
    let job = Job::new(Lkc::new(2, 25, 0.9).unwrap());
    let observer = Unobserved::default();
    let comparison = RecodingComparison::new(&schema, &job, &table).unwrap();
    let sampled = comparison.sample.as_ref().unwrap();
    assert_eq!(sampled.columns[3].dictionary.len(), sampled.rows);
    let feasible = Feasible {
        k_max: 600,
        l_max: Some(3),
        c_min: Some(1.0 / 3.0),
    };
    let suggested = SuggestionSample::new(&schema, &table)
        .suggestions(&feasible, &Cancellation::new())
        .unwrap();
    assert_eq!(suggested.rows, 5_000);
    assert!(!suggested.items.is_empty());

    let run = AnonymizationRun::new(schema, job, table, &observer).unwrap();
    let found = run.search(&observer).unwrap();
    let warning = comparison.warning(&run, &found, &observer).unwrap();
    let warning = warning.expect("local loses less");
    assert!(
        warning.detail.contains("a sample of 10000 rows"),
        "{}",
        warning.detail
    );
}

fn compared(job: Job, rows: usize) -> Option<pais_core::warning::Warning> {
    let schema = schema(false);
    let table = table(&schema, rows);
    let observer = Unobserved::default();
    let comparison = RecodingComparison::new(&schema, &job, &table)?;
    let run = AnonymizationRun::new(schema, job, table, &observer).unwrap();
    let found = run.search(&observer).unwrap();
    comparison.warning(&run, &found, &observer).unwrap()
}

#[test]
fn a_job_that_does_not_say_its_recoding_learns_what_the_other_loses() {
    let job = |k| Job::new(Lkc::new(2, k, 0.9).unwrap());
    let warning = compared(job(5), 400).expect("local loses less");
    assert_eq!(warning.code, WarningCode::LocalLosesLess);
    assert_eq!(warning.pointer.as_deref(), Some("/recoding"));
    assert!(warning.detail.contains("on all rows"), "{}", warning.detail);
    assert_eq!(
        warning.detail.matches(" %").count(),
        2,
        "{}",
        warning.detail
    );
    // Of a large table a part of the rows is compared, and the warning says so.
    let schema = schema(false);
    let large = RecodingComparison::new(&schema, &job(5), &table(&schema, 20_000)).unwrap();
    let compared_rows = large.sample.map(|sample| sample.rows);
    assert_eq!(compared_rows, Some(10_000));
    let sampled = super::warning(0.5, 0.1, compared_rows).detail;
    assert!(sampled.contains("a sample of 10000 rows"), "{sampled}");
    // A job that names its recoding gets no warning.
    for recoding in [Recoding::Global, Recoding::Local] {
        let mut chosen = job(5);
        chosen.recoding = Some(recoding);
        assert_eq!(compared(chosen, 400), None);
    }
}

#[test]
fn only_a_clear_difference_is_worth_a_warning() {
    assert!(is_worth_it(0.5, 0.1));
    assert!(!is_worth_it(0.5, 0.4));
    assert!(!is_worth_it(0.02, 0.005));
}

#[test]
fn a_comparison_stops_when_its_job_is_cancelled() {
    let schema = schema(false);
    let table = table(&schema, 20_000);
    let job = Job::new(Lkc::new(2, 5, 0.9).unwrap());
    let comparison = RecodingComparison::new(&schema, &job, &table).unwrap();
    let observer = Unobserved::default();
    let run = AnonymizationRun::new(schema, job, table, &observer).unwrap();
    let found = run.search(&observer).unwrap();
    crate::observer::Observer::cancellation(&observer).cancel();
    let stopped = comparison.warning(&run, &found, &observer);
    assert_eq!(stopped, Err(RunError::Cancelled));
}

#[test]
fn suggestions_can_be_met_and_come_by_their_loss() {
    let schema = schema(false);
    let table = table(&schema, 600);
    let feasible = Feasible {
        k_max: 600,
        l_max: Some(3),
        c_min: Some(1.0 / 3.0),
    };
    let cancellation = Cancellation::new();
    let found = SuggestionSample::new(&schema, &table)
        .suggestions(&feasible, &cancellation)
        .unwrap();
    assert_eq!(found.rows, 600);
    // Three K, with two quasi-identifiers one L, and both recodings.
    assert_eq!(found.items.len(), 6, "{found:?}");
    assert!(found.items.is_sorted_by(|one, other| one.ncp <= other.ncp));
    for one in &found.items {
        assert_eq!((one.privacy.l, one.privacy.c), (2, 0.4));
        let mut job = Job::new(Lkc::new(2, one.privacy.k, 0.4).unwrap());
        job.recoding = Some(one.recoding);
        let observer = Unobserved::default();
        let run = AnonymizationRun::new(schema.clone(), job, table.clone(), &observer).unwrap();
        let figures = run
            .figures(&run.search(&observer).unwrap(), &observer)
            .unwrap();
        assert_eq!((figures.ncp, figures.groups), (one.ncp, one.groups));
    }
    cancellation.cancel();
    let stopped = SuggestionSample::new(&schema, &table).suggestions(&feasible, &cancellation);
    assert_eq!(stopped, Err(RunError::Cancelled));
}

#[test]
fn a_suggested_bound_leaves_room() {
    assert_eq!(above(0.2), 0.3);
    assert_eq!(above(0.9), 1.0);
}
