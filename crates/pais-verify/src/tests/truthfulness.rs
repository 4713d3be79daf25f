//! Tests of the checks of truthfulness and cuts: a truthful release, and releases with one error.

use std::sync::Arc;

use super::{names, table, table_2};
use crate::{
    CutError, Original, OriginalColumn, OriginalQuasiIdentifier, TruthError, check_single_cut,
    check_truthful,
};
use pais_core::cancellation::Cancellation;
use pais_core::table::codes::Codes;
use pais_core::table::{Column, Domain, Form, NULL_CODE, ReleasedTable};
use pais_core::taxonomy::{Tree, TreeLimits};

fn job() -> Domain {
    let root = serde_json::from_str(
        r#"{"label": "*", "children": [
            {"label": "Blue", "children": [{"label": "Janitor"}, {"label": "Mover"}]},
            {"label": "White", "children": [{"label": "Doctor"}]},
            {"label": "?"}]}"#,
    )
    .unwrap();
    Domain::Taxonomy(Arc::new(
        Tree::new(
            &root,
            TreeLimits {
                leaves: 10,
                depth: 5,
            },
        )
        .unwrap(),
    ))
}

fn age() -> Domain {
    Domain::Numeric {
        values: vec![24.0, 34.0, 60.0, 99.0],
        lo: 1.0,
        hi: 99.0,
        missing: true,
        scale: pais_core::taxonomy::Scale::Number,
        round: None,
        ends: None,
    }
}

/// Raw rows: (Janitor, 24, flu), (Doctor, 60, ''), (?, missing, cold), (Mover, 99, flu).
struct Raw {
    job: Domain,
    age: Domain,
    illness: Column,
}

impl Raw {
    fn new() -> Self {
        let illness = Column {
            dictionary: names(&["cold", "flu", ""]),
            codes: vec![1, 2, 0, 1],
        };
        Self {
            job: job(),
            age: age(),
            illness,
        }
    }

    fn original(&self) -> Original<'_> {
        Original {
            rows: 4,
            quasi_identifiers: vec![
                OriginalQuasiIdentifier {
                    name: "Job",
                    domain: &self.job,
                    declared_domain: false,
                    codes: Codes::Four((&[0, 2, 3, 1]).into()),
                    minimum_levels: None,
                },
                OriginalQuasiIdentifier {
                    name: "Age",
                    domain: &self.age,
                    declared_domain: true,
                    codes: Codes::Four((&[0, 2, 4, 3]).into()),
                    minimum_levels: None,
                },
            ],
            sets: Vec::new(),
            untouched: vec![OriginalColumn {
                name: "Illness",
                cells: &self.illness,
            }],
        }
    }

    fn check(&self, released: &ReleasedTable, source_rows: &[u32]) -> Result<(), TruthError> {
        check_truthful(
            released,
            &self.original(),
            source_rows,
            4 - source_rows.len() as u64,
            &Cancellation::new(),
        )
    }
}

fn released() -> (ReleasedTable, [u32; 3]) {
    let rows = [
        vec!["Blue", "[60,99]", "flu"],
        vec!["?", "?", "cold"],
        vec!["Doctor", "[60,99]", ""],
    ];
    (table(&["Job", "Age", "Illness"], &rows), [3, 2, 1])
}

#[test]
fn a_truthful_release_passes() {
    let (mut table, rows) = released();
    assert_eq!(Raw::new().check(&table, &rows), Ok(()));
    // A word for missing may be released as null; columns that the service adds are skipped.
    table.columns[2].column.codes[2] = NULL_CODE;
    let mut group = table.columns[2].clone();
    (group.name, group.form) = ("group_id".into(), Form::Integer);
    table.columns.push(group);
    assert_eq!(Raw::new().check(&table, &rows), Ok(()));
}

#[test]
fn only_the_declared_domain_covers_missing_cells() {
    let (mut table, rows) = released();
    table.columns[1].column.dictionary = names(&["[1,99]", "[1,99]"]);
    assert_eq!(Raw::new().check(&table, &rows), Ok(()));
    table.columns[1].column.dictionary[1] = "[1,98]".into();
    assert_eq!(
        Raw::new().check(&table, &rows),
        Err(TruthError::Untrue {
            column: "Age".into(),
            row: 1
        })
    );
}

#[test]
fn a_false_label_is_found() {
    for (column, label, row) in [
        (0, "White", 0),
        (0, "Janitor", 0),
        (0, "Nobody", 0),
        (1, "[60,99)", 0),
        (1, "[1,60)", 0),
    ] {
        let (mut table, rows) = released();
        table.columns[column].column.dictionary[0] = label.into();
        let name = table.columns[column].name.clone();
        let found = Raw::new().check(&table, &rows);
        assert_eq!(
            found,
            Err(TruthError::Untrue { column: name, row }),
            "{label}"
        );
    }
    let (mut table, rows) = released();
    table.columns[0].column.codes[1] = NULL_CODE;
    assert!(matches!(
        Raw::new().check(&table, &rows),
        Err(TruthError::Untrue { row: 1, .. })
    ));
}

#[test]
fn a_changed_value_is_found() {
    let (table, rows) = released();
    for (row, code) in [(0, 1), (1, NULL_CODE), (2, 0), (2, 99)] {
        let mut changed = table.clone();
        changed.columns[2].column.codes[row] = code;
        let found = Raw::new().check(&changed, &rows);
        assert_eq!(
            found,
            Err(TruthError::Changed {
                column: "Illness".into(),
                row
            })
        );
    }
}

#[test]
fn lost_repeated_and_made_up_rows_are_found() {
    let (table, rows) = released();
    let raw = Raw::new();
    assert_eq!(
        check_truthful(&table, &raw.original(), &rows, 0, &Cancellation::new()),
        Err(TruthError::RowsLost {
            raw: 4,
            suppressed: 0,
            released: 3
        })
    );
    for rows in [[3, 2, 3], [3, 2, 4]] {
        assert_eq!(
            raw.check(&table, &rows),
            Err(TruthError::RepeatedRow { row: 2 })
        );
    }
    let found = check_truthful(&table, &raw.original(), &rows[..2], 2, &Cancellation::new());
    assert!(matches!(
        found,
        Err(TruthError::Uneven {
            found: 2,
            rows: 3,
            ..
        })
    ));
}

#[test]
fn columns_are_those_of_the_raw_table() {
    let (table, rows) = released();
    let mut extra = table.clone();
    extra.columns[2].name = "Name".into();
    let found = Raw::new().check(&extra, &rows);
    assert_eq!(
        found,
        Err(TruthError::ExtraColumn {
            column: "Name".into()
        })
    );
    let mut lacking = table;
    lacking.columns.pop();
    let found = Raw::new().check(&lacking, &rows);
    assert_eq!(
        found,
        Err(TruthError::NotOneColumn {
            column: "Illness".into()
        })
    );
}

fn cut(domain: &Domain, labels: &[&str]) -> Result<(), CutError> {
    let rows: Vec<Vec<&str>> = labels.iter().map(|&label| vec![label]).collect();
    check_single_cut(&table(&["Job"], &rows).columns[0], &declared(domain), &[])
}

/// A column with a declared domain and without rows: cuts of it depend on labels alone.
fn declared(domain: &Domain) -> OriginalQuasiIdentifier<'_> {
    OriginalQuasiIdentifier {
        name: "Job",
        domain,
        declared_domain: true,
        codes: Codes::Zero(0),
        minimum_levels: None,
    }
}

#[test]
fn labels_of_a_cut_do_not_overlap() {
    let (job, age) = (job(), age());
    for labels in [
        &["*"][..],
        &["Blue", "White"],
        &["Mover", "Doctor", "?", "Janitor"],
        &[],
    ] {
        assert_eq!(cut(&job, labels), Ok(()), "{labels:?}");
    }
    for labels in [
        &["[1,99]"][..],
        &["[60,99]", "?", "[1,34)", "[34,60)"],
        &["[1,34)", "34"],
        // Rows decide whether the interval covers missing cells.
        &["[1,99]", "?"],
    ] {
        assert_eq!(cut(&age, labels), Ok(()), "{labels:?}");
    }
    for labels in [
        &["Blue", "Doctor", "Mover"][..],
        &["*", "?"],
        &["White", "Doctor"],
    ] {
        assert!(
            matches!(cut(&job, labels), Err(CutError::Overlap { .. })),
            "{labels:?}"
        );
    }
    for labels in [
        &["[1,34]", "[34,99]"][..],
        &["[1,99]", "[34,60)"],
        &["34", "[34,34]"],
    ] {
        assert!(
            matches!(cut(&age, labels), Err(CutError::Overlap { .. })),
            "{labels:?}"
        );
    }
    for (domain, label) in [(&job, "Nobody"), (&age, "[0,99]"), (&age, "old")] {
        assert!(
            matches!(cut(domain, &[label]), Err(CutError::UnknownLabel { .. })),
            "{label}"
        );
    }
}

#[test]
fn labels_that_do_not_occur_in_the_column_are_ignored() {
    let mut column = table(&["Job"], &[vec!["Blue"]]).columns.remove(0);
    column.column.dictionary.push("Mover".into());
    assert_eq!(check_single_cut(&column, &declared(&job()), &[]), Ok(()));
    column.column.codes.push(NULL_CODE);
    assert!(matches!(
        check_single_cut(&column, &declared(&job()), &[]),
        Err(CutError::NoLabel { .. })
    ));
    let intervals = table_2().columns.remove(2);
    assert_eq!(check_single_cut(&intervals, &declared(&age()), &[]), Ok(()));
}
