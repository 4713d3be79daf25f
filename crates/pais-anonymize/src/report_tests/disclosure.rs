//! What a report discloses: two raw tables with the same release have the same recipients' report.

use pais_measure::for_recipient;
use serde_json::{Value, json};

use crate::test_data::{load, schema};
use crate::{AnonymizationRun, Unobserved, VerifiedRelease};

fn run(columns: &Value, rows: &str, job: &Value) -> VerifiedRelease {
    let schema = schema(columns.clone());
    let table = load(&schema, rows.as_bytes());
    let job = crate::test_data::job_of(job.clone()).unwrap();
    let observer = Unobserved::default();
    let run = AnonymizationRun::new(schema, job, table, &observer).unwrap();
    let steps = run.search(&observer).unwrap();
    run.release(&steps, None, &observer).unwrap()
}

/// The rows of each released table, sorted.
fn shown(release: &VerifiedRelease) -> Vec<Vec<String>> {
    let lines = |table: &pais_core::table::ReleasedTable| {
        let mut text = Vec::new();
        pais_io::write::csv(table, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let mut lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    release.tables().iter().map(lines).collect()
}

/// Runs a job on several raw tables that have the same release; the one report that recipients of
/// it see.
#[track_caller]
fn one_report(columns: &Value, worlds: &[String], job: &Value) -> Value {
    let releases: Vec<VerifiedRelease> =
        worlds.iter().map(|rows| run(columns, rows, job)).collect();
    let reports = releases.iter().map(|it| for_recipient(json!(it.report())));
    let reports: Vec<Value> = reports.collect();
    for (release, report) in releases.iter().zip(&reports) {
        assert_eq!(shown(release), shown(&releases[0]), "the same release");
        assert_eq!(report, &reports[0], "the same report");
    }
    reports[0].clone()
}

/// Figure 1 of Gal'08 and every other assignment of its treatments to patients: one group, so all
/// have the same anatomized release. The queries are public, so their exact error would exclude
/// assignments.
#[test]
fn the_query_error_does_not_single_out_a_world() {
    let columns = json!([
        {"name": "Age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "Disease", "role": "sensitive"},
        {"name": "Treatment", "role": "sensitive"},
    ]);
    let treatments = ["Medicine", "Surgery", "IV", "IV"];
    let mut worlds = Vec::new();
    for order in 0..4usize.pow(4) {
        let places: Vec<usize> = (0..4).map(|row| order / 4usize.pow(row) % 4).collect();
        if (0..4).all(|place| places.contains(&place)) {
            let patients = ["42,Heart", "41,Heart", "49,Flu", "43,Stomach"];
            let rows = patients.iter().zip(&places);
            let rows = rows.map(|(patient, &place)| format!("{patient},{}\n", treatments[place]));
            worlds.push("Age,Disease,Treatment\n".to_owned() + &rows.collect::<String>());
        }
    }
    assert_eq!(worlds.len(), 24);
    let job = json!({"privacy": {"model": "l_diversity", "k": 4, "l": 2}});
    let report = one_report(&columns, &worlds, &job);
    assert!(report["utility"].get("query_error").is_none());
    for world in worlds {
        let holder = json!(run(&columns, &world, &job).report());
        for (name, value) in holder["utility"]["query_error"].as_object().unwrap() {
            let figure = value.as_f64().unwrap();
            let two_digits: f64 = format!("{figure:.1e}").parse().unwrap();
            assert_eq!(figure, two_digits, "{name}");
        }
    }
}

/// The trash bin takes the one row with the drug b. Its age would be the end of the raw range.
#[test]
fn ncp_does_not_disclose_a_suppressed_rows_value() {
    let columns = json!([
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set"},
    ]);
    let worlds = [107, 64, 32].map(|age| format!("age,drugs\n20,a\n21,a\n30,a\n31,a\n{age},b\n"));
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}, "suppression_limit": 0.2});
    let report = one_report(&columns, &worlds, &job);
    assert_eq!(report["suppressed_rows"], 1);
    // Two rows in [20,30), two in [30,31], one suppressed: the released range has a width of 11.
    let expected = (2.0 * 10.0 / 11.0 + 2.0 / 11.0 + 1.0) / 5.0;
    let ncp = report["utility"]["ncp_by_column"]["age"].as_f64().unwrap();
    assert!((ncp - expected).abs() < 1e-12, "{ncp}");
}

/// A leaf that only raw rows show is not part of the domain of a column without a taxonomy.
#[test]
fn ncp_does_not_count_values_that_the_release_generalizes() {
    let columns = json!([{"name": "job", "role": "quasi_identifier"}]);
    let worlds = ["job\na\na\na\n", "job\na\na\nb\n", "job\na\nb\nc\n"].map(str::to_owned);
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2},
        "pre_generalization": {"job": {"level": 1}}});
    let report = one_report(&columns, &worlds, &job);
    assert_eq!(report["utility"]["ncp"], 1.0);
}

#[test]
fn ncp_of_sets_does_not_count_hidden_items() {
    let columns = json!([{"name": "drugs", "role": "quasi_identifier", "kind": "set"}]);
    let worlds = ["drugs\na\na\n", "drugs\na|b\na\n", "drugs\na|b|c\na|d\n"].map(str::to_owned);
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}});
    let report = one_report(&columns, &worlds, &job);
    assert_eq!(report["utility"]["ncp"], 0.0);
    for figure in ["item_loss_by_column", "items_by_column", "item_query_error"] {
        assert!(report["utility"].get(figure).is_none(), "{figure}");
    }
    // The holder learns what was lost: 3 of 5 items.
    let holder = json!(run(&columns, &worlds[2], &job).report());
    assert_eq!(holder["utility"]["item_loss_by_column"]["drugs"], 0.6);
    let items = json!({"raw": 5, "released": 2,
        "raw_cells_without_items": 0, "released_cells_without_items": 0});
    assert_eq!(holder["utility"]["items_by_column"]["drugs"], items);
    // A query over the item that is kept is exact, every other one counts nothing.
    let error = holder["utility"]["item_query_error"]["all"]
        .as_f64()
        .unwrap();
    assert!((0.5..1.0).contains(&error), "{error}");
}

/// Two sensitive columns: in each group one value of the second has a greater share than any of the
/// first. Every method finds the second one.
#[test]
fn the_attribute_risk_names_the_column_that_is_inferred_best() {
    let columns = json!([
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]},
        {"name": "drug", "role": "sensitive"},
        {"name": "illness", "role": "sensitive"},
    ]);
    let rows = "age,drug,illness\n10,a,x\n10,b,x\n10,c,y\n10,d,x\n\
                60,a,y\n60,b,y\n60,c,x\n60,d,y\n";
    for (job, highest) in [
        (
            json!({"privacy": {"model": "lkc", "l": 1, "k": 4, "c": 0.8}}),
            0.75,
        ),
        (
            json!({"privacy": {"model": "k_anonymity", "k": 4}, "recoding": "local"}),
            0.75,
        ),
        (json!({"privacy": {"model": "k_anonymity", "k": 8}}), 0.5),
        (
            json!({"privacy": {"model": "l_diversity", "k": 4, "l": 2}}),
            0.75,
        ),
        (
            json!({"privacy": {"model": "l_diversity", "k": 4, "l": 2}, "output": "generalized"}),
            0.75,
        ),
    ] {
        let report = json!(run(&columns, rows, &job).report());
        let expected = json!({"highest": highest, "column": "illness"});
        assert_eq!(report["risk"]["attribute"], expected, "{job}");
    }
    let none = json!([columns[0]]);
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}});
    let report = json!(run(&none, "age\n10\n60\n", &job).report());
    assert!(report["risk"].get("attribute").is_none());
}

#[test]
fn a_leaf_range_loses_information() {
    let columns = json!([{"name": "age", "role": "quasi_identifier", "kind": "numeric",
        "taxonomy": {"label": "[0,100]", "children": [{"label": "[0,20)"}, {"label": "[20,100]"}]}}]);
    for recoding in ["local", "global"] {
        let job = json!({"privacy": {"model": "k_anonymity", "k": 2}, "recoding": recoding,
            "utility": {"objective": "ncp"}});
        let release = run(&columns, "age\n10\n15\n50\n60\n", &job);
        let labels = ["\"[0,20)\"", "\"[0,20)\"", "\"[20,100]\"", "\"[20,100]\""];
        assert_eq!(shown(&release)[0], labels, "{recoding}");
        // Two rows lose 0.2 and two lose 0.8.
        assert_eq!(json!(release.report())["utility"]["ncp"], 0.5, "{recoding}");
    }
}

/// Of the values that the job names, the report repeats those that a released label covers.
#[test]
fn the_echo_names_no_value_that_no_row_shows() {
    let leaves = |labels: [&str; 2]| labels.map(|label| json!({ "label": label }));
    let taxonomy = json!({"label": "any", "children": [
        {"label": "X", "children": leaves(["a", "b"])},
        {"label": "Y", "children": leaves(["c", "d"])}]});
    let levels = json!({"q": {"level": 0, "values": {"1": ["a", "c"]}}});
    let anonymous = json!({"model": "k_anonymity", "k": 2});
    // Only a and b occur; a is released as X.
    let relational = json!([{"name": "q", "role": "quasi_identifier", "taxonomy": taxonomy}]);
    for recoding in ["local", "global"] {
        let job = json!({"privacy": anonymous, "recoding": recoding,
            "pre_generalization": levels});
        let release = run(&relational, "q\na\na\nb\nb\n", &job);
        assert_eq!(shown(&release)[0], ["X", "X", "b", "b"], "{recoding}");
        let echo = &json!(release.report())["pre_generalization"]["q"];
        assert_eq!(echo, &json!({"level": 0, "values": {"1": ["a"]}}));
    }
    // The items b and d are hidden, each held by one row.
    let sets = json!([{"name": "q", "role": "quasi_identifier", "kind": "set",
        "taxonomy": taxonomy}]);
    let job = json!({"privacy": anonymous,
        "pre_generalization": {"q": {"level": 1, "values": {"0": ["a", "b", "d"]}}}});
    let release = run(&sets, "q\na|b\na|d\n", &job);
    assert_eq!(shown(&release)[0], ["a", "a"]);
    let echo = &json!(release.report())["pre_generalization"]["q"];
    assert_eq!(echo, &json!({"level": 1, "values": {"0": ["a"]}}));
}

/// The report repeats the verification under every model.
#[test]
fn confidence_and_known_groups_are_those_of_the_verification() {
    let columns = json!([
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "job", "role": "quasi_identifier"},
        {"name": "disease", "role": "sensitive"},
    ]);
    let rows = "age,job,disease\n1,a,hiv\n2,a,hiv\n3,b,flu\n4,b,flu\n5,a,hiv\n6,b,cold\n";
    for job in [
        json!({"privacy": {"model": "k_anonymity", "k": 2}}),
        json!({"privacy": {"model": "k_anonymity", "k": 2}, "recoding": "local"}),
        json!({"privacy": {"model": "lkc", "l": 1, "k": 2, "c": 0.9}}),
        json!({"privacy": {"model": "l_diversity", "k": 2, "l": 2}}),
        json!({"privacy": {"model": "t_closeness", "k": 2, "t": 0.5}}),
    ] {
        let release = run(&columns, rows, &job);
        let (utility, found) = (
            &json!(release.report())["utility"],
            &json!(release.verification()),
        );
        let confidence = &utility["greatest_confidence"];
        assert_eq!(confidence, &found["greatest_confidence"], "{job}");
        let smallest = &utility["smallest_known_group"];
        assert_eq!(smallest, &found["smallest_group"], "{job}");
    }
}
