//! Files of Amnesia: the trees that they describe, and faults.

use pais_core::definition::TaxonomyNode;
use pais_core::schema::Schema;
use pais_core::taxonomy::TreeLimits;
use serde_json::json;

use super::super::{HierarchyErrorKind, parse};

const HEADER: &str = "distinct\nname jobs\ntype string\nheight 3\n\n";

fn show(node: &TaxonomyNode) -> String {
    let children: Vec<String> = node.children.iter().map(show).collect();
    if children.is_empty() {
        node.label.clone()
    } else {
        format!("{}({})", node.label, children.join(" "))
    }
}

fn read(lines: &str) -> Result<String, Vec<u64>> {
    let parsed = parse(format!("{HEADER}{lines}").as_bytes(), TreeLimits::default());
    parsed.map(|root| show(&root)).map_err(|error| {
        assert_eq!(error.kind, HierarchyErrorKind::Tree);
        let lines = error.faults.iter().filter_map(|fault| fault.line());
        lines.collect()
    })
}

#[test]
fn lines_of_parents_form_a_tree() {
    let lines = "Blue has Janitor Mover \nWhite has Doctor \n\nAny has Blue White \n\n";
    let expected = "Any(Blue(Janitor Mover) White(Doctor))";
    assert_eq!(read(lines).unwrap(), expected);
    assert_eq!(read(&lines.replace('\n', "\r\n")).unwrap(), expected);
    let again = format!("{lines}White has Doctor\n");
    assert_eq!(read(&again).unwrap(), expected);
    let top_first = "Any has Blue White\nBlue has Janitor Mover\nWhite has Doctor\n";
    assert_eq!(read(top_first).unwrap(), expected);
}

#[test]
fn lines_that_are_no_tree_are_refused() {
    for (lines, expected) in [
        ("a has b\nc has b\n", &[7u64][..]),
        ("a has b\na b\n", &[7]),
        ("a has b\nc has d\n", &[]),
        ("a has b\nb has a\n", &[]),
        ("a has b\nc has d\nd has c\n", &[]),
        ("", &[]),
    ] {
        assert_eq!(read(lines).unwrap_err(), expected, "{lines:?}");
    }
}

#[test]
fn limits_are_enforced() {
    let limits = TreeLimits {
        leaves: 2,
        depth: 3,
    };
    let read = |lines: &str| parse(format!("{HEADER}{lines}").as_bytes(), limits);
    assert!(read("a has b c\n").is_ok());
    assert!(read("a has b c d\n").is_err());
    assert!(read("a has b\nb has c\nc has d\n").is_err());
}

const RANGES: &str = "range\nname age\ntype double\nheight 3\n\n";

fn read_ranges(lines: &str) -> Result<String, String> {
    let parsed = parse(format!("{RANGES}{lines}").as_bytes(), TreeLimits::default());
    parsed.map_err(|error| error.detail).map(|root| {
        let column = json!({"name": "x", "role": "quasi_identifier", "kind": "numeric",
            "taxonomy": root});
        let definition = json!({"name": "t", "columns": [column]});
        Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
        show(&root)
    })
}

#[test]
fn ranges_divide_the_range_above_them() {
    let expected = "[0,40]([0,20)([0,10) [10,20)) [20,40]([20,30) [30,40]))";
    let joined = "20.0,40.0 has 30.0,40.0 20.0,30.0 \n0.0,20.0 has 0.0,10.0 10.0,20.0 \n\n\
        0.0,40.0 has 0.0,20.0 20.0,40.0 \n\n";
    assert_eq!(read_ranges(joined).unwrap(), expected);
    let whole = "0,19 has 0,9 10,19\n20,40 has 20,29 30,40\n0,40 has 0,19 20,40\n";
    assert_eq!(read_ranges(whole).unwrap(), expected);
}

#[test]
fn ranges_that_do_not_divide_the_range_above_them_are_refused() {
    for lines in [
        "0,40 has 0,20 25,40\n",
        "0,40 has 0,20 15,40\n",
        "0,40 has 0,20 20,39\n",
        "0,40 has 1,20 20,40\n",
        "0,40 has 0.0,9.5 10.5,40\n",
        "0,40 has 0,20\n",
        "0,40 has a,b\n",
        "0,40 has 20,0 20,40\n",
        "0,40 has 01.01.2001,02.02.2002\n",
        "0,40 has 0,40\n",
    ] {
        assert!(read_ranges(lines).is_err(), "{lines:?}");
    }
}
