use pais_core::taxonomy::Tree;

use super::{HierarchyErrorKind, TaxonomyNode, TreeLimits, parse};

const LIMITS: TreeLimits = TreeLimits {
    leaves: 100_000,
    depth: 20,
};

fn tree(text: &str) -> String {
    fn show(node: &TaxonomyNode) -> String {
        let children: Vec<_> = node.children.iter().map(show).collect();
        let below = if children.is_empty() {
            String::new()
        } else {
            children.join(" ")
        };
        if below.is_empty() {
            node.label.clone()
        } else {
            format!("{}({below})", node.label)
        }
    }
    let root = parse(text.as_bytes(), LIMITS).unwrap();
    Tree::new(&root, LIMITS).unwrap();
    show(&root)
}

fn fault(text: &str) -> (HierarchyErrorKind, u64, String) {
    let error = parse(text.as_bytes(), LIMITS).unwrap_err();
    let first = error.faults.first().unwrap();
    (error.kind, first.line().unwrap(), first.detail.clone())
}

#[test]
fn rows_form_a_tree() {
    let rows = "Janitor;Blue;*\nDoctor;White;*\nMover;Blue;*\n";
    assert_eq!(tree(rows), "*(Blue(Janitor Mover) White(Doctor))");
    for other in [
        rows.replace(';', ","),
        rows.replace('\n', "\r\n"),
        rows.replace('\n', "\n\n"),
        rows.trim_end().to_owned(),
        format!("\u{feff}{rows}"),
        rows.replace("Blue", "\"Blue\""),
    ] {
        assert_eq!(tree(&other), tree(rows), "{other:?}");
    }
}

#[test]
fn a_label_repeated_from_level_to_level_is_one_node() {
    let rows = "Janitor;Blue;Work;*\nRetired;Retired;Retired;*\n?;?;*;*\nMover;Blue;Work;*";
    assert_eq!(tree(rows), "*(Work(Blue(Janitor Mover)) Retired ?)");
}

#[test]
fn a_shorter_row_is_a_leaf_nearer_to_the_top() {
    let padded = "Janitor;Blue;Work;*\nRetired;Retired;Retired;*\nMover;Blue;Work;*\n";
    let expected = "*(Work(Blue(Janitor Mover)) Retired)";
    assert_eq!(tree(padded), expected);
    for ragged in [
        "Janitor;Blue;Work;*\nRetired;*\nMover;Blue;Work;*\n",
        "Janitor;Blue;Work;*\nRetired;*;;\nMover;Blue;Work;*;\n",
        "Janitor;Blue;Work;*;\nRetired;Retired;*\nMover;Blue;Work;*\n",
    ] {
        assert_eq!(tree(ragged), expected, "{ragged:?}");
    }
}

#[test]
fn ragged_rows_without_a_common_top_get_one() {
    for rows in [
        "Cambodia;Asia;*\nLaos;Asia\nFrance;Europe\n",
        "Cambodia;Asia\nLaos;Asia;*\nFrance;Europe;*;\n",
    ] {
        assert_eq!(
            tree(rows),
            "*(Asia(Cambodia Laos) Europe(France))",
            "{rows:?}"
        );
    }
    assert_eq!(tree("a;X\n?\n"), "*(X(a) ?)");
}

/// The shapes of the hierarchies that belong to ARX's example tables.
#[test]
fn files_of_arx_are_read_as_they_are() {
    let masks = "8166;816*;81**;8***;****\n8167;816*;81**;8***;****\n8170;817*;81**;8***;****\n";
    assert_eq!(tree(masks), "****(8***(81**(816*(8166 8167) 817*(8170))))");
    let ages = "\u{feff}17;15-19;10-19;*\r\n18;15-19;10-19;*\r\n20;20-24;20-29;*\r\n";
    assert_eq!(tree(ages), "*(10-19(15-19(17 18)) 20-29(20-24(20)))");
    let intervals = "1;\"[0, 5[\";\"[0, 10[\";*\n7;\"[5, 10[\";\"[0, 10[\";*\n";
    assert_eq!(tree(intervals), "*([0, 10[([0, 5[(1) [5, 10[(7)))");
    let same_on_two_levels = "Married;married;*\nWidowed;Widowed;*\nDivorced;married;*\n";
    assert_eq!(
        tree(same_on_two_levels),
        "*(married(Married Divorced) Widowed)"
    );
    let dates = "01.02.2001;02.2001;2001;*\n02.02.2001;02.2001;2001;*\n03.01.2002;01.2002;2002;*\n";
    assert_eq!(
        tree(dates),
        "*(2001(02.2001(01.02.2001 02.02.2001)) 2002(01.2002(03.01.2002)))"
    );
    let quoted = "\"Craft; repair\";\"Non \"\"T\"\"\";*\nSales;\"Non \"\"T\"\"\";*;;\n";
    assert_eq!(tree(quoted), "*(Non \"T\"(Craft; repair Sales))");
}

#[test]
fn a_repeated_row_counts_once() {
    let rows = "\u{feff}Janitor;Blue;*\r\n\"Janitor\";Blue;*\r\nMover;Blue;*\r\n";
    assert_eq!(tree(rows), "*(Blue(Janitor Mover))");
    assert_eq!(fault("Janitor;Blue;*\nJanitor;White;*\n").1, 2);
}

#[test]
fn labels_that_differ_in_spaces_and_unicode_form_are_one_node() {
    let rows = "Re\u{301}tire\u{301};R\u{e9}tir\u{e9} ;*\nMover; Blue;* \nJanitor;Blue\t;*\n";
    assert_eq!(tree(rows), "*(R\u{e9}tir\u{e9} Blue(Mover Janitor))");
    assert_eq!(tree("a;*\na ;*\n"), "*(a)");
    assert_eq!(fault("a;*\n ;*\n").1, 2);
}

#[test]
fn quotes_hide_separators() {
    assert_eq!(tree("34,\"[30,60)\",\"[1,99]\"\n"), "[1,99]([30,60)(34))");
    assert_eq!(tree("34;[30,60);[1,99]\n"), "[1,99]([30,60)(34))");
    assert_eq!(
        tree("\"a \"\"b\"\"; c\",*\nd\"\"e,*"),
        "*(a \"b\"; c d\"\"e)"
    );
    assert_eq!(tree("\"two\nlines\";*"), "*(two\nlines)");
}

#[test]
fn undecodable_bytes_are_malformed() {
    for (bytes, line) in [
        (&b"a;*\nb\xff;*"[..], 2),
        (b"a;*\nb\0;*\n", 2),
        (b"a;*\n\"b;*\nc;*\n", 2),
        (b"a;*\nb;\"*\"\"", 2),
    ] {
        let error = parse(bytes, LIMITS).unwrap_err();
        assert_eq!(error.kind, HierarchyErrorKind::Malformed, "{bytes:?}");
        assert_eq!(error.faults[0].line(), Some(line));
    }
}

#[test]
fn faults_report_their_line() {
    for (rows, line) in [
        ("a;b;*\na;*\n", 2),
        ("a;b;*\na;b;c;*\n", 2),
        ("a;b\nc;d\na;d\n", 2),
        ("*;b\nc;d\n", 2),
        ("Laos;Asia\nFrance;Europe\n", 2),
        ("a;b;*\r\n\r\nc;;*\r\n", 3),
        ("a;b;*\nc;b;d\n", 2),
        ("a;b;*\nc;d;*\ne;b;d\n", 3),
        ("a;b;*\nb;b;*\n", 2),
        ("b;b;*\na;b;*\n", 2),
        ("a;b;a\n", 1),
        ("\"a\n\";*\n?;b\n", 3),
        ("a;b;*\n?;b;*\n", 2),
        ("a\n", 1),
        ("*;*\n", 1),
        (";", 1),
    ] {
        let (code, found, detail) = fault(rows);
        assert_eq!(
            (code, found),
            (HierarchyErrorKind::Tree, line),
            "{rows:?}: {detail}"
        );
    }
    assert_eq!(
        parse(b"\n", LIMITS).unwrap_err().kind,
        HierarchyErrorKind::Tree
    );
}

#[test]
fn at_most_twenty_faults_are_reported() {
    let rows = format!("a;*\n{}", "a;b\n".repeat(50));
    assert_eq!(parse(rows.as_bytes(), LIMITS).unwrap_err().faults.len(), 20);
}

#[test]
fn limits_are_enforced() {
    let limits = TreeLimits {
        leaves: 2,
        depth: 3,
    };
    assert!(parse(b"a;b;*\nc;b;*", limits).is_ok());
    assert!(parse(b"a;b;*\nc;b;*\nd;b;*", limits).is_err());
    assert!(parse(b"a;b;c;*", limits).is_err());
    let deep: Vec<String> = (0..100_000).map(|level| level.to_string()).collect();
    assert!(parse(deep.join(";").as_bytes(), LIMITS).is_err());
}

#[test]
fn a_hundred_thousand_leaves_are_read() {
    let row = |leaf: usize| format!("l{leaf};m{};t{};*\n", leaf / 10, leaf / 1_000);
    let rows: String = (0..100_000).map(row).collect();
    let root = parse(rows.as_bytes(), LIMITS).unwrap();
    assert_eq!(
        (root.children.len(), root.children[99].children.len()),
        (100, 100)
    );
    assert_eq!(root.children[99].children[99].children[9].label, "l99999");
}
