//! Hierarchies that are made: golden trees, and refused declarations.

use pais_core::definition::{DatasetDefinition, TaxonomyNode};
use pais_core::schema::Schema;
use pais_io::read::csv;
use serde_json::{Value, json};

fn schema(column: Value) -> Result<Schema, String> {
    let mut column = column;
    column["name"] = json!("x");
    let definition = json!({"name": "made", "columns": [column]});
    let definition: DatasetDefinition = serde_json::from_value(definition).unwrap();
    Schema::inline(&definition).map_err(|error| error.to_string())
}

/// The tree over these cells, as nested lists of labels.
fn tree(column: Value, cells: &[&str]) -> String {
    let mut column = column;
    column["role"] = json!("quasi_identifier");
    let schema = schema(column).unwrap();
    let file = format!("x\n{}\n", cells.join("\n"));
    let table = csv::read_table(&schema, file.as_bytes()).unwrap();
    let made = schema.with_made_hierarchies(&table).unwrap();
    shown(&made.columns[0].tree().unwrap().definition())
}

fn shown(node: &TaxonomyNode) -> String {
    let children: Vec<String> = node.children.iter().map(shown).collect();
    if children.is_empty() {
        node.label.clone()
    } else {
        format!("{}({})", node.label, children.join(" "))
    }
}

#[test]
fn prefixes_have_the_declared_lengths() {
    let column = json!({"taxonomy": {"generate": "prefix", "lengths": [3, 1]}});
    let found = tree(column, &["2500", "2511", "2512", "300", "3"]);
    assert_eq!(found, "*(2*(250*(2500) 251*(2511 2512)) 3 3*(300))");
    let column = json!({"taxonomy": {"generate": "prefix"}});
    assert_eq!(tree(column, &["ab", "ac", "b*"]), "*(a**(ab ac) b**(b*))");
}

#[test]
fn masks_hide_one_more_character_at_each_level() {
    let right = json!({"taxonomy": {"generate": "mask_right"}});
    assert_eq!(tree(right, &["123", "124", "2"]), "*(1**(12*(123 124)) 2)");
    let left = json!({"taxonomy": {"generate": "mask_left"}});
    assert_eq!(
        tree(left, &["19", "29", "3*"]),
        "*(##(3*) #9(19 29))".replace("##(3*)", "#*(3*)")
    );
}

#[test]
fn ordered_labels_are_intervals_of_neighbours_and_do_not_depend_on_the_rows() {
    let column = json!({"taxonomy": {"generate": "ordered", "order": ["a", "b", "c", "d", "e"]}});
    // `e` was alone on each level up to `*`: it is a third one beside its neighbours.
    assert_eq!(tree(column, &["c"]), "*(a..b(a b) c..e(c d e))");
    let column = json!({"order": ["low", "medium", "high"]});
    assert_eq!(tree(column, &["low"]), "*(low..medium(low medium) high)");
    let of = |labels: &str, fanout: u32| {
        let order: Vec<String> = labels.chars().map(String::from).collect();
        let taxonomy = json!({"generate": "ordered", "order": order, "fanout": fanout});
        tree(json!({"taxonomy": taxonomy}), &["a"])
    };
    // Four of them are halved: a group of three and one alone, or all in one group, are no better.
    assert_eq!(of("abcd", 3), "*(a..b(a b) c..d(c d))");
    assert_eq!(of("abcdefg", 3), "*(a..c(a b c) d..g(d e f g))");
    let seven = "*(a..d(a..b(a b) c..d(c d)) e..g(e f g))";
    assert_eq!(of("abcdefg", 2), seven);
}

/// The parts of a node have like numbers of rows. By hand, of `ordered`: 8 rows, of which 5 or 3 are
/// before an end; 4 is as near to both, so the first one is taken. Of `ranges`: 9 rows, of which 4 are in
/// `[0,10)`; of the other 5, two are in `[10,20)` and three in `[30,40)`. One more interval is beyond them.
#[test]
fn balanced_hierarchies_are_drawn_from_frequencies() {
    let column = json!({"taxonomy":
        {"generate": "ordered", "order": ["a", "b", "c", "d"], "balance": true}});
    let cells = ["a", "a", "a", "b", "b", "c", "d", "d"];
    let drawn = tree(column.clone(), &cells);
    assert_eq!(drawn, "*(a b..d(b c..d(c d)))");
    // Labels without rows are there too.
    assert_eq!(tree(column, &["a"; 4]), "*(a b..d(b c..d(c d)))");
    let column = json!({"order": ["a", "b", "c", "d"],
        "taxonomy": {"generate": "ordered", "balance": true}});
    assert_eq!(tree(column, &cells), drawn);
    let column = json!({"kind": "numeric",
        "taxonomy": {"generate": "ranges", "widths": [10], "balance": true}});
    let cells = ["1", "1", "2", "3", "12", "13", "31", "32", "33"];
    assert_eq!(
        tree(column, &cells),
        "[0,50)([0,10) [10,50)([10,20) [20,50)([20,30) [30,50)([30,40) [40,50)))))"
    );
}

#[test]
fn ranges_have_round_ends() {
    let column = json!({"kind": "numeric",
        "taxonomy": {"generate": "ranges", "start": 0, "widths": [10, 20]}});
    let found = tree(column, &["12", "38"]);
    assert_eq!(
        found,
        "[0,40)([0,20)([0,10) [10,20)) [20,40)([20,30) [30,40)))"
    );
    let column = json!({"kind": "numeric", "taxonomy": {"generate": "ranges", "widths": [10]}});
    assert_eq!(tree(column, &["12"]), "[10,30)([10,20) [20,30))");
}

#[test]
fn days_are_in_periods_of_the_calendar() {
    let column = json!({"kind": "date",
        "taxonomy": {"generate": "calendar", "levels": ["quarter", "year"]}});
    let found = tree(column, &["1987-09-03", "1987-01-31", "1990-02-01"]);
    let expected = "*(1987(1987-Q1(1987-01-31) 1987-Q3(1987-09-03)) 1990(1990-Q1(1990-02-01)))";
    assert_eq!(found, expected);
    let column = json!({"kind": "date", "taxonomy": {"generate": "calendar"}});
    let found = tree(column, &["1987-09-03"]);
    assert_eq!(found, "*(1980s(1987(1987-Q3(1987-09(1987-09-03)))))");
}

/// Ages counted by hand: born on 2 January 1991 is 34 on the first day of 2026, one day before the
/// 35th birthday.
#[test]
fn days_are_in_ranges_of_age_at_the_reference_date() {
    let column = json!({"kind": "date",
        "taxonomy": {"generate": "age", "at": "2026-01-01", "widths": [5, 10]}});
    let found = tree(
        column,
        &["1991-01-02", "1991-01-01", "1985-06-30", "2027-03-01"],
    );
    let expected = "*([-10,0)([-5,0)(2027-03-01)) \
        [30,40)([30,35)(1991-01-02) [35,40)(1991-01-01)) [40,50)([40,45)(1985-06-30)))";
    assert_eq!(found, expected);
    let leap = json!({"kind": "datetime",
        "taxonomy": {"generate": "age", "at": "2025-02-28", "widths": [1]}});
    let found = tree(leap, &["2004-02-29T00:00:00", "2004-02-28T23:59:00"]);
    let expected = "*([20,21)(2004-02-29T00:00:00) [21,22)(2004-02-28T23:59:00))";
    assert_eq!(found, expected);
    let column = json!({"kind": "date", "taxonomy": {"generate": "age", "at": "2026-01-01"}});
    let found = tree(column, &["1991-01-02"]);
    assert_eq!(found, "*([20,40)([30,40)([30,35)(1991-01-02))))");
}

#[test]
fn rare_values_are_under_one_node() {
    let column = json!({"taxonomy": {"generate": "rare", "below": 2}});
    let found = tree(column.clone(), &["flu", "flu", "a", "b", "?"]);
    assert_eq!(found, "*((rare)(a b) flu)");
    let found = tree(column, &["a", "b", "?"]);
    assert_eq!(found, "*((rare)(a b))");
}

#[test]
fn what_does_not_fit_a_column_is_refused() {
    let refused = [
        json!({"kind": "numeric", "taxonomy": {"generate": "prefix"}}),
        json!({"taxonomy": {"generate": "ranges", "widths": [10]}}),
        json!({"taxonomy": {"generate": "calendar"}}),
        json!({"taxonomy": {"generate": "prefix", "lengths": [1, 3]}}),
        json!({"taxonomy": {"generate": "prefix", "lengths": []}}),
        json!({"kind": "numeric", "taxonomy": {"generate": "ranges", "widths": [10, 15]}}),
        json!({"kind": "numeric", "taxonomy": {"generate": "ranges", "widths": [0]}}),
        json!({"kind": "date", "taxonomy": {"generate": "calendar", "levels": ["week", "month"]}}),
        json!({"kind": "date", "taxonomy": {"generate": "calendar", "levels": ["year", "month"]}}),
        json!({"taxonomy": {"generate": "age", "at": "2026-01-01"}}),
        json!({"kind": "date", "taxonomy": {"generate": "age", "at": "01.01.2026"}}),
        json!({"kind": "date", "taxonomy": {"generate": "age", "at": "2026-02-30"}}),
        json!({"kind": "date", "taxonomy": {"generate": "age", "at": "2026-1-1"}}),
        json!({"kind": "date",
            "taxonomy": {"generate": "age", "at": "2026-01-01", "widths": [5, 12]}}),
        json!({"kind": "date", "taxonomy": {"generate": "age", "at": "2026-01-01", "widths": [0]}}),
        json!({"kind": "date", "taxonomy": {"generate": "age", "at": "2026-01-01", "widths": []}}),
        json!({"taxonomy": {"generate": "ordered"}}),
        json!({"taxonomy": {"generate": "ordered", "order": ["a", "a"]}}),
        json!({"taxonomy": {"generate": "ordered", "order": ["a", "b"], "fanout": 1}}),
        json!({"kind": "numeric",
            "taxonomy": {"generate": "ranges", "widths": [10, 20], "balance": true}}),
        json!({"taxonomy": {"generate": "ordered", "balance": true}}),
        json!({"taxonomy": {"generate": "rare", "below": 1}}),
        json!({"taxonomy": {"generate": "prefix"}, "order": ["a", "b"]}),
    ];
    for mut column in refused {
        column["role"] = json!("quasi_identifier");
        assert!(schema(column.clone()).is_err(), "{column}");
    }
}

/// Cells of a column that is not generalized are not trimmed, so that one can be the label above another.
#[test]
fn a_hierarchy_that_nothing_is_generalized_by_need_not_be_possible() {
    let column = json!({"role": "insensitive", "taxonomy": {"generate": "prefix", "lengths": [4]}});
    let schema = schema(column).unwrap();
    let table = csv::read_table(&schema, "x\n8010\n8010 \n8011\n".as_bytes()).unwrap();
    let made = schema.with_made_hierarchies(&table).unwrap();
    assert!(made.columns[0].tree().is_none());
}
