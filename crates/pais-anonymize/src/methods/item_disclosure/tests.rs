//! Golden tests: Tables 1 to 3 of the 2014 paper.

use serde_json::{Value, json};

use pais_core::cancellation::Cancellation;
use pais_core::definition::JobErrorKind;
use pais_core::table::{EncodedTable, ReleasedTable, SetColumn};
use pais_measure::item_loss;
use pais_verify::OriginalSet;

use crate::pre_generalization::PreGeneralized;
use crate::test_data::{job_of, load, refusal, schema, unmet};
use crate::{AnonymizationRun, JobPlan, RunError, Unobserved, VerifiedRelease};

use super::class::Anonymity;
use super::class::EquivalenceClass;
use super::disclosure::DisclosureRound;
use super::vocabulary::Vocabulary;

const TABLE_1: &str = "id,birthyear,gender,diseases,drugs\n\
    1,1970,Male,k|l|m,a|b|z\n2,1971,Male,k|l|n,a|z\n\
    3,1989,Female,n|o,c|x|y\n4,1982,Female,m|o,b|x|y\n";

fn columns() -> Value {
    let leaves = |labels: &[&str]| -> Vec<Value> {
        let leaf = |label: &&str| json!({ "label": label });
        labels.iter().map(leaf).collect()
    };
    let decade = |decade: u32| {
        let years = (decade..decade + 10).map(|year| json!({"label": year.to_string()}));
        let years: Vec<Value> = years.collect();
        json!({"label": format!("{decade}-{}", decade + 9), "children": years})
    };
    json!([
        {"name": "id", "role": "insensitive"},
        {"name": "birthyear", "role": "quasi_identifier",
         "taxonomy": {"label": "any year", "children": [decade(1970), decade(1980)]}},
        {"name": "gender", "role": "quasi_identifier"},
        {"name": "diseases", "role": "quasi_identifier", "kind": "set",
         "taxonomy": {"label": "any disease", "children": [
            {"label": "K", "children": leaves(&["k", "l"])},
            {"label": "M", "children": leaves(&["m", "n", "o"])}]}},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set"},
    ])
}

fn run(columns: &Value, file: &str, job: Value) -> Result<VerifiedRelease, RunError> {
    let schema = schema(columns.clone());
    let job = job_of(job)?;
    let table = load(&schema, file.as_bytes());
    let prepared = AnonymizationRun::new(schema, job, table, &Unobserved::default())?;
    let found = prepared.search(&Unobserved::default())?;
    assert!(found.steps().is_empty());
    prepared.release(&found, None, &Unobserved::default())
}

/// The rows as CSV lines, sorted.
fn rows(table: &ReleasedTable) -> Vec<String> {
    let mut out = Vec::new();
    pais_io::write::csv(table, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let mut rows: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
    rows.sort();
    rows
}

/// The loss of the items of each set of Table 1, not rounded.
fn item_losses(release: &VerifiedRelease, job: Value) -> Vec<f64> {
    let schema = schema(columns());
    let job = job_of(job).unwrap();
    let mut raw = EncodedTable::new(&schema, load(&schema, TABLE_1.as_bytes()));
    let levels = PreGeneralized::new(&schema, &job, &mut raw).unwrap();
    let table = &release.tables()[0];
    let column = |name: &str| {
        let mut columns = table.columns.iter();
        columns.find(|column| *column.name == *name).unwrap()
    };
    let id = |row: usize| {
        column("id")
            .column
            .text(row)
            .unwrap()
            .parse::<u32>()
            .unwrap()
    };
    let rows: Vec<u32> = (0..table.rows).map(|row| id(row) - 1).collect();
    let loss = |set: &SetColumn| {
        let raw = OriginalSet {
            column: set,
            minimum_levels: levels.minimum_levels(&set.name),
        };
        item_loss(column(&set.name), raw, &rows, &Cancellation::new()).unwrap()
    };
    raw.sets.iter().map(loss).collect()
}

#[test]
fn table_1_becomes_table_2() {
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2},
        "pre_generalization": {"diseases": {"level": 1, "values": {"0": ["k", "l"]}}}});
    let release = run(&columns(), TABLE_1, job.clone()).unwrap();
    // The paper's NCP of diseases and drugs is over the items of the raw table.
    let expected = [("diseases", 0.36), ("drugs", 3.0 / 11.0)];
    for ((column, expected), found) in expected.into_iter().zip(item_losses(&release, job)) {
        assert!((found - expected).abs() < 1e-12, "{column}: {found}");
    }
    let expected = [
        "1,1970-1979,Male,M|k|l,a|z",
        "2,1970-1979,Male,M|k|l,a|z",
        "3,1980-1989,Female,M,x|y",
        "4,1980-1989,Female,M,x|y",
    ];
    assert_eq!(rows(&release.tables()[0]), expected);
    assert_eq!((release.rows, release.suppressed_rows), (4, 0));
    let ncp = |column: &str| {
        let pointer = format!("/utility/ncp_by_column/{column}");
        json!(release.report())
            .pointer(&pointer)
            .unwrap()
            .as_f64()
            .unwrap()
    };
    for (column, expected) in [
        ("birthyear", 0.5),
        ("gender", 0.0),
        // M is 3 of 5 leaves: twice (0.6 + 0 + 0) / 3 for M, k and l, and twice 0.6.
        ("diseases", 0.4),
        ("drugs", 0.0),
    ] {
        assert!((ncp(column) - expected).abs() < 1e-12, "{column}");
        let remain = format!("/utility/information_remain_by_column/{column}");
        let remain = json!(release.report())
            .pointer(&remain)
            .unwrap()
            .as_f64()
            .unwrap();
        assert!((remain - (1.0 - expected)).abs() < 1e-12, "{column}");
    }
    let reported = &json!(release.report())["utility"]["item_loss_by_column"];
    assert_eq!(reported, &json!({"diseases": 0.36, "drugs": 0.27}));
    let items = &json!(release.report())["utility"]["items_by_column"];
    let counts = |raw: u64, released: u64| {
        json!({"raw": raw, "released": released,
               "raw_cells_without_items": 0, "released_cells_without_items": 0})
    };
    // M replaces one or two items of a row.
    assert_eq!(
        items,
        &json!({"diseases": counts(10, 8), "drugs": counts(11, 8)})
    );
    assert_eq!(
        json!(release.report())["pre_generalization"]["diseases"]["level"],
        1
    );
    assert_eq!(release.step, None);
}

/// The cells of the column `drugs` of Table 3 after each round, with k = 2. `whole` first divides
/// the class of all rows.
fn rounds(
    whole: impl Fn(EquivalenceClass) -> Vec<EquivalenceClass>,
    rounds: usize,
) -> Vec<Vec<String>> {
    let schema = schema(json!([{"name": "drugs", "role": "quasi_identifier", "kind": "set"}]));
    let file = "drugs\na|b|z\na|z\nc|x|y\nb|x|y\n";
    let table = EncodedTable::new(&schema, load(&schema, file.as_bytes()));
    let vocabulary = Vocabulary::new(&table.sets[0], None);
    let round = DisclosureRound {
        set: 0,
        items: vocabulary.len(),
        anonymity: Anonymity::of_rows(2),
        stop: &|| false,
    };
    let mut classes = whole(
        EquivalenceClass::whole((0..4).collect(), std::slice::from_ref(&vocabulary)).unwrap(),
    );
    let mut after = Vec::new();
    for _ in 0..rounds {
        let (parts, suppressed) = round.run(classes, 0);
        assert!(suppressed.is_empty());
        classes = parts;
        let mut cells = vec![String::new(); 4];
        for class in &classes {
            for &row in &class.rows {
                let mut disclosed = class.sets[0].disclosed.clone();
                disclosed.sort_unstable();
                cells[row as usize] = vocabulary.cell(&disclosed);
            }
        }
        after.push(cells);
    }
    after
}

#[test]
fn table_3_from_two_classes() {
    let two = |class: EquivalenceClass| class.divide(2, |index| index / 2);
    let expected = [
        ["a", "a", "x", "x"],
        ["a|z", "a|z", "x|y", "x|y"],
        ["a|z", "a|z", "x|y", "x|y"],
    ];
    assert_eq!(rounds(two, 3), expected);
}

#[test]
fn table_3_from_one_class() {
    let expected = [
        ["a", "a", "", ""],
        ["a|z", "a|z", "x", "x"],
        ["a|z", "a|z", "x|y", "x|y"],
        ["a|z", "a|z", "x|y", "x|y"],
    ];
    assert_eq!(rounds(|class| vec![class], 4), expected);
}

#[test]
fn fewer_rows_than_k_are_reported() {
    let job = json!({"privacy": {"model": "k_anonymity", "k": 5}});
    let error = run(&columns(), TABLE_1, job).unwrap_err();
    assert_eq!(unmet(&error).pointer(), Some("/privacy/k"));
}

#[test]
fn the_trash_bin_takes_whole_records_and_no_more_than_it_holds() {
    let columns = json!([{"name": "id", "role": "insensitive"},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set"}]);
    let file = "id,drugs\n1,a\n2,a\n3,b\n4,a\n5,a\n";
    let job = |limit: f64| {
        json!({"privacy": {"model": "k_anonymity", "k": 2},
        "suppression_limit": limit})
    };
    let release = run(&columns, file, job(0.2)).unwrap();
    assert_eq!(rows(&release.tables()[0]), ["1,a", "2,a", "4,a", "5,a"]);
    assert_eq!(release.suppressed_rows, 1);
    assert_eq!(
        json!(release.report())["utility"]["ncp_by_column"]["drugs"],
        0.2
    );
    let release = run(&columns, file, job(0.1)).unwrap();
    assert_eq!(rows(&release.tables()[0]), ["1,", "2,", "3,", "4,", "5,"]);
}

#[test]
fn a_weight_changes_the_order_of_columns() {
    let columns = json!([
        {"name": "sex", "role": "quasi_identifier"},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set"}]);
    let file = "sex,drugs\nF,a\nM,a\nF,b\nM,b\n";
    let job = |weights: Value| {
        json!({"privacy": {"model": "k_anonymity", "k": 2},
        "utility": {"weights": weights}})
    };
    let release = run(&columns, file, job(json!({}))).unwrap();
    assert_eq!(rows(&release.tables()[0]), ["F,", "F,", "M,", "M,"]);
    let release = run(&columns, file, job(json!({"drugs": 2}))).unwrap();
    assert_eq!(rows(&release.tables()[0]), ["*,a", "*,a", "*,b", "*,b"]);
}

#[test]
fn missing_and_empty_sets_are_the_empty_set() {
    let columns = json!([{"name": "drugs", "role": "quasi_identifier", "kind": "set",
        "missing": ["NA"]}, {"name": "id", "role": "insensitive"}]);
    let file = "drugs,id\n,1\nNA,2\na|a,3\na,4\n";
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}});
    let release = run(&columns, file, job).unwrap();
    assert_eq!(rows(&release.tables()[0]), [",1", ",2", "a,3", "a,4"]);
    // Two of four rows release no item.
    assert_eq!(
        json!(release.report())["utility"]["ncp_by_column"]["drugs"],
        0.5
    );
    let loss = &json!(release.report())["utility"]["item_loss_by_column"];
    assert_eq!(loss["drugs"], 0.0);
}

#[test]
fn a_word_for_missing_among_other_items_is_ignored() {
    let file = "drugs,id\nNA|a,1\na,2\nb|NA,3\nb,4\n";
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}});
    let tree = json!({"label": "ANY", "children": [{"label": "a"}, {"label": "b"}]});
    for taxonomy in [Value::Null, tree, json!({"generate": "prefix"})] {
        let mut drugs =
            json!({"name": "drugs", "role": "quasi_identifier", "kind": "set", "missing": ["NA"]});
        if !taxonomy.is_null() {
            drugs["taxonomy"] = taxonomy;
        }
        let columns = json!([drugs, {"name": "id", "role": "insensitive"}]);
        let release = run(&columns, file, job.clone()).unwrap();
        assert_eq!(rows(&release.tables()[0]), ["a,1", "a,2", "b,3", "b,4"]);
    }
}

/// A column of sets over two labels of two items each.
fn labelled() -> Value {
    let leaf = |label: &str| json!({"label": label});
    let tree = json!({"label": "ANY", "children": [
        {"label": "A", "children": [leaf("a1"), leaf("a2")]},
        {"label": "B", "children": [leaf("b1"), leaf("b2"), leaf("b3")]}]});
    json!([{"name": "drugs", "role": "quasi_identifier", "kind": "set", "taxonomy": tree}])
}

#[test]
fn a_label_of_the_taxonomy_replaces_items_that_would_be_hidden() {
    let file = "drugs\na1\na2\nb1\nb1\nb2|b3\nb2|b3\n";
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}});
    let release = run(&labelled(), file, job).unwrap();
    // b1, b2 and b3 are in two rows each and stay.
    let expected = ["A", "A", "b1", "b1", "b2|b3", "b2|b3"];
    assert_eq!(rows(&release.tables()[0]), expected);
    // A is 2 of 5 leaves, in two of eight items.
    let loss = json!(release.report())["utility"]["item_loss_by_column"]["drugs"].as_f64();
    assert_eq!(loss, Some(0.1));
    // A level in the job is what the analyst asks for; no other label is chosen then.
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2},
        "pre_generalization": {"drugs": {"level": 0}}});
    let release = run(&labelled(), file, job).unwrap();
    assert_eq!(
        rows(&release.tables()[0]),
        ["\"\"", "\"\"", "b1", "b1", "b2|b3", "b2|b3"]
    );
}

proptest::proptest! {
    #[test]
    fn labels_never_lose_more_than_hiding(
        cells in proptest::collection::vec(0u8..32, 4..40),
        k in 2u64..5,
    ) {
        let items = ["a1", "a2", "b1", "b2", "b3"];
        let cell = |set: &u8| {
            let held = items.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
            held.map(|(_, item)| *item).collect::<Vec<_>>().join("|") + "\n"
        };
        let file = "drugs\n".to_owned() + &cells.iter().map(cell).collect::<String>();
        let loss = |pre_generalization: Value| {
            let job = json!({"privacy": {"model": "k_anonymity", "k": k},
                "pre_generalization": pre_generalization});
            let release = run(&labelled(), &file, job).ok()?;
            json!(release.report())["utility"]["item_loss_by_column"]["drugs"].as_f64()
        };
        let (labels, hiding) = (loss(json!({})), loss(json!({"drugs": {"level": 0}})));
        proptest::prop_assert_eq!(labels.is_some(), hiding.is_some());
        // Both figures are rounded to two digits.
        proptest::prop_assert!(labels <= hiding);
    }
}

#[test]
fn invalid_jobs_are_rejected_with_a_pointer() {
    let schema = schema(columns());
    let rejected = |change: Value| {
        let mut job = json!({"privacy": {"model": "k_anonymity", "k": 2}});
        for (name, value) in change.as_object().unwrap() {
            job[name] = value.clone();
        }
        refusal(job_of(job).and_then(|job| JobPlan::new(&schema, &job)))
    };
    for (change, code, pointer) in [
        (
            json!({"privacy": {"model": "lkc", "l": 1, "k": 2, "c": 1.0}, "suppression_limit": 0.5}),
            JobErrorKind::Unfit,
            "/suppression_limit",
        ),
        (
            json!({"privacy": {"model": "alpha_k", "k": 2, "alpha": 1.0}}),
            JobErrorKind::Unfit,
            "/privacy/model",
        ),
        (
            json!({"recoding": "local"}),
            JobErrorKind::Unfit,
            "/recoding",
        ),
        (
            json!({"output": "anatomized"}),
            JobErrorKind::Unfit,
            "/output",
        ),
        (
            json!({"utility": {"objective": "discernibility"}}),
            JobErrorKind::Unfit,
            "/utility/objective",
        ),
        (
            json!({"utility": {"weights": {"id": 1.0}}}),
            JobErrorKind::Unfit,
            "/utility/weights/id",
        ),
        (
            json!({"utility": {"weights": {"drugs": 0.0}}}),
            JobErrorKind::InvalidValue,
            "/utility/weights/drugs",
        ),
        (
            json!({"suppression_for": "size_and_confidence", "suppression_limit": 0.5}),
            JobErrorKind::Unfit,
            "/suppression_for",
        ),
        (
            json!({"missing_sensitive": "counted"}),
            JobErrorKind::Unfit,
            "/missing_sensitive",
        ),
        (
            json!({"pre_generalization": {"id": {"level": 1}}}),
            JobErrorKind::Unfit,
            "/pre_generalization/id",
        ),
        (
            json!({"pre_generalization": {"x": {"level": 1}}}),
            JobErrorKind::Unfit,
            "/pre_generalization/x",
        ),
        (
            json!({"pre_generalization": {"drugs": {"level": 2}}}),
            JobErrorKind::Unfit,
            "/pre_generalization/drugs/level",
        ),
        (
            json!({"pre_generalization": {"diseases": {"values": {"3": []}}}}),
            JobErrorKind::Unfit,
            "/pre_generalization/diseases/values/3",
        ),
        (
            json!({"pre_generalization": {"diseases": {"values": {"x": []}}}}),
            JobErrorKind::Shape,
            "/pre_generalization/diseases/values/x",
        ),
        (
            json!({"pre_generalization": {"diseases": {"values": {"0": ["k", "q"]}}}}),
            JobErrorKind::Unfit,
            "/pre_generalization/diseases/values/0/1",
        ),
        (
            json!({"pre_generalization": {"diseases": {"values": {"0": ["k"], "1": ["k"]}}}}),
            JobErrorKind::Unfit,
            "/pre_generalization/diseases/values/1/0",
        ),
    ] {
        assert_eq!(
            rejected(change.clone()),
            (code, pointer.to_owned()),
            "{change}"
        );
    }
}

#[test]
fn a_value_that_no_row_has_is_unknown_in_a_column_without_a_taxonomy() {
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2},
        "pre_generalization": {"drugs": {"level": 1, "values": {"0": ["a", "q"]}}}});
    let RunError::Job(error) = run(&columns(), TABLE_1, job).unwrap_err() else {
        panic!("the job is refused");
    };
    assert!(!error.detail.contains('q'), "{error}");
    let pointer = "/pre_generalization/drugs/values/0/1".to_owned();
    assert_eq!(refusal(Err::<(), _>(error)), (JobErrorKind::Unfit, pointer));
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2},
        "pre_generalization": {"drugs": {"level": 1, "values": {"0": ["a", "x"]}}}});
    let release = run(&columns(), TABLE_1, job).unwrap();
    let cells: Vec<String> = rows(&release.tables()[0])
        .iter()
        .map(|row| row.rsplit(',').next().unwrap().to_owned())
        .collect();
    assert_eq!(cells, ["*|a", "*|a", "*|x", "*|x"]);
    // The report does not repeat values of the job that the release does not contain.
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2},
        "pre_generalization": {"drugs": {"level": 1, "values": {"0": ["a", "c"]}}}});
    let release = run(&columns(), TABLE_1, job).unwrap();
    let reported = &json!(release.report())["pre_generalization"]["drugs"];
    assert_eq!(reported, &json!({"level": 1, "values": {"0": ["a"]}}));
}

#[test]
fn itemsets_are_held_by_none_or_by_k() {
    let columns = json!([
        {"name": "sex", "role": "quasi_identifier"},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set"}]);
    let file = "sex,drugs\nF,a|b\nF,a|b\nM,a|c\nM,b|c\nM,c\nM,a\n";
    let job = |m: u32| json!({"privacy": {"model": "k_m_anonymity", "k": 2, "m": m}});
    let release = run(&columns, file, job(1)).unwrap();
    let found = rows(&release.tables()[0]);
    assert_eq!(found, ["F,a|b", "F,a|b", "M,a", "M,a|c", "M,c", "M,c"]);
    assert_eq!(json!(release.verification())["holds"], true);
    // Only one man has both a and c.
    let release = run(&columns, file, job(2)).unwrap();
    let found = rows(&release.tables()[0]);
    assert_eq!(found, ["F,a|b", "F,a|b", "M,", "M,c", "M,c", "M,c"]);
    let release = run(
        &columns,
        file,
        json!({"privacy": {"model": "k_m_anonymity", "k": 6, "m": 2}}),
    );
    assert_eq!(rows(&release.unwrap().tables()[0]), ["*,"; 6]);
}

#[test]
fn k_m_anonymity_needs_sets_and_its_parameters() {
    let rejected = |columns: Value, privacy: Value| {
        let schema = schema(columns);
        let job = job_of(json!({ "privacy": privacy }));
        refusal(job.and_then(|job| JobPlan::new(&schema, &job))).0
    };
    let plain = json!([{"name": "sex", "role": "quasi_identifier"}]);
    let model = |m: i64| json!({"model": "k_m_anonymity", "k": 2, "m": m});
    assert_eq!(rejected(plain, model(2)), JobErrorKind::Unfit);
    assert_eq!(rejected(columns(), model(0)), JobErrorKind::OutOfRange);
    let without = json!({"model": "k_m_anonymity", "k": 2});
    assert_eq!(rejected(columns(), without), JobErrorKind::Shape);
}
