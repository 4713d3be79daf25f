//! The report of a table with more rows than are read one by one.

use std::fmt::Write;

use pais_measure::for_recipient;
use serde_json::{Value, json};

use crate::test_data::{job_of, load, schema};
use crate::{AnonymizationRun, Unobserved};

const ROWS: usize = 120_000;

/// Half of the rows have `a`, a quarter `b`, an eighth each `c` and `d`.
fn report(job: Value) -> Value {
    let schema = schema(json!([
        {"name": "code", "role": "quasi_identifier", "taxonomy": {"label": "any", "children": [
            {"label": "a"}, {"label": "b"},
            {"label": "y", "children": [{"label": "c"}, {"label": "d"}]}]}},
        {"name": "illness", "role": "sensitive"},
        {"name": "outcome", "role": "class"},
    ]));
    let mut file = "code,illness,outcome\n".to_owned();
    for row in 0..ROWS {
        let code = ["a", "b", "a", "c", "a", "b", "a", "d"][row % 8];
        writeln!(file, "{code},{},{}", row % 8 % 5, row / 3 % 2).unwrap();
    }
    let table = load(&schema, file.as_bytes());
    let observer = Unobserved::default();
    let run = AnonymizationRun::new(schema, job_of(job).unwrap(), table, &observer).unwrap();
    let found = run.search(&observer).unwrap();
    json!(run.release(&found, None, &observer).unwrap().report())
}

#[test]
fn measures_of_single_rows_read_a_sample_and_counts_read_all() {
    let report = report(json!({"privacy": {"model": "lkc", "l": 1, "k": 20_000, "c": 1.0}}));
    let utility = &report["utility"];
    assert_eq!(
        (&report["rows"], &utility["sampled_rows"]),
        (&json!(ROWS), &json!(100_000))
    );
    // Exact: c and d, 15,000 rows each, are released as y.
    assert_eq!(utility["smallest_group"], 30_000);
    assert_eq!(report["risk"]["by_length"][0]["smallest"], 30_000);
    // A bit of a quarter of the rows is lost, of 1.75 bits a row.
    assert_eq!(utility["entropy_loss_by_column"]["code"], 0.14);
    assert_eq!(utility["query_error"]["queries"], 1_000);
    let class = &utility["classification_error"];
    let rows = ["trained_rows", "tested_rows"].map(|name| class[name].as_u64().unwrap());
    assert_eq!(rows.iter().sum::<u64>(), 100_000);
    assert_eq!(class["repeats"], 3);
    // Recipients have the error on the release.
    let shown = for_recipient(report.clone());
    assert_eq!(shown["utility"]["sampled_rows"], 100_000);
}

/// Also where one group has more rows than are read.
#[test]
fn queries_on_groups_read_whole_groups() {
    for k in [20_000, 120_000] {
        let report = report(
            json!({"privacy": {"model": "distinct_l_diversity", "k": k, "l": 2},
            "output": "anatomized"}),
        );
        let error = &report["utility"]["query_error"];
        assert_eq!(error["queries"], 1_000, "K = {k}");
        assert!(error["all"].as_f64().unwrap() > 0.0, "K = {k}: {error}");
    }
}
