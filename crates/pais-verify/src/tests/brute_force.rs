//! Random tables, compared with Definition 3.1 computed row by row.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{columns, names, verify_lkc};
use crate::verification::VIOLATION_CAP;
use crate::{CountedTable, LkcRequirement, SensitiveRequirement, SensitiveSet, Verification};
use pais_core::cancellation::Cancellation;
use pais_core::model::{Confidence, MissingSensitive};
use pais_core::table::{Column, Form, NULL_CODE, ReleasedColumn, ReleasedTable};

const QIDS: usize = 5;
const NAMES: [&str; QIDS + 2] = ["q0", "q1", "q2", "q3", "q4", "s0", "s1"];
const VALUES: [&str; 5] = ["a", "b", "?", "", "e"];

/// The result of Definition 3.1, computed row by row for every subset of every size up to L and
/// every sensitive value.
struct Expected {
    holds: bool,
    smallest: u64,
    smallest_class: u64,
    /// Over all declared sensitive columns.
    greatest: f64,
    /// Over those that the requirement names.
    greatest_named: f64,
    violations: u64,
}

/// The rows among which a confidence in a value of a column is a share.
fn denominator(
    table: &ReleasedTable,
    column: usize,
    rows: &[usize],
    reading: MissingSensitive,
) -> u64 {
    let text = |row: usize| table.columns[column].column.text(row);
    let has_value = |row: &&usize| text(**row).is_some_and(|text| !text.is_empty());
    match reading {
        MissingSensitive::Excluded => rows.iter().filter(has_value).count() as u64,
        MissingSensitive::Counted => rows.len() as u64,
    }
}

/// Number of some rows, or of their distinct subjects.
pub(super) fn size_of(rows: &[usize], subjects: Option<&[u32]>) -> u64 {
    match subjects {
        None => rows.len() as u64,
        Some(subjects) => {
            let distinct: BTreeSet<u32> = rows.iter().map(|&row| subjects[row]).collect();
            distinct.len() as u64
        }
    }
}

fn expect(counted: CountedTable, requirement: &LkcRequirement) -> Expected {
    let CountedTable { table, subjects } = counted;
    let text = |column: usize, row: usize| table.columns[column].column.text(row);
    let varying: Vec<usize> = (0..QIDS)
        .filter(|&column| (0..table.rows).any(|row| text(column, row) != text(column, 0)))
        .collect();
    let mut expected = Expected {
        holds: true,
        smallest: u64::MAX,
        smallest_class: u64::MAX,
        greatest: 0.0,
        greatest_named: 0.0,
        violations: 0,
    };
    let full = requirement.l.min(varying.len());
    for subset in 0u32..1 << QIDS {
        let columns: Vec<usize> = (0..QIDS)
            .filter(|&column| subset >> column & 1 == 1)
            .collect();
        let counted =
            columns.len() == full && columns.iter().all(|column| varying.contains(column));
        let mut groups: BTreeMap<Vec<Option<&str>>, Vec<usize>> = BTreeMap::new();
        for row in 0..table.rows {
            let qid = columns.iter().map(|&column| text(column, row)).collect();
            groups.entry(qid).or_default().push(row);
        }
        if columns.len() == QIDS {
            let sizes = groups.values().map(|rows| size_of(rows, subjects));
            expected.smallest_class = sizes.min().unwrap_or(0);
        }
        if columns.len() > requirement.l {
            continue;
        }
        for rows in groups.values() {
            let size = size_of(rows, subjects);
            let mut violates = size < requirement.k;
            expected.smallest = expected.smallest.min(size);
            for (column, name) in NAMES.iter().enumerate().skip(QIDS) {
                let mut named = requirement.sensitive.iter();
                let named = named.find(|named| *named.column == **name);
                let values: BTreeSet<_> =
                    rows.iter().filter_map(|&row| text(column, row)).collect();
                for value in values.into_iter().filter(|value| !value.is_empty()) {
                    if let Some(SensitiveSet::Listed(listed)) = named.map(|named| &named.values)
                        && !listed.iter().any(|listed| &**listed == value)
                    {
                        continue;
                    }
                    let holding = rows.iter().filter(|&&row| text(column, row) == Some(value));
                    let holding = holding.count() as u64;
                    let of = denominator(table, column, rows, requirement.missing_sensitive);
                    let confidence = holding as f64 / of as f64;
                    expected.greatest = expected.greatest.max(confidence);
                    if named.is_some() {
                        violates |= requirement.c.is_exceeded_by(holding, of);
                        expected.greatest_named = expected.greatest_named.max(confidence);
                    }
                }
            }
            expected.holds &= !violates;
            expected.violations += u64::from(violates && counted);
        }
    }
    if table.rows == 0 {
        expected.smallest = 0;
        expected.smallest_class = 0;
    }
    expected.violations = expected.violations.min(VIOLATION_CAP);
    expected
}

pub(super) fn tables(rows: usize, values: u32) -> impl Strategy<Value = ReleasedTable> {
    let cell = prop_oneof![9 => 0..values, 1 => Just(NULL_CODE)];
    let row = prop::collection::vec(cell, NAMES.len());
    // Each row is repeated, because otherwise hardly any table would satisfy the requirement.
    prop::collection::vec((row, 1usize..5), 0..rows).prop_map(|drawn| {
        let rows: Vec<Vec<u32>> = drawn
            .into_iter()
            .flat_map(|(row, times)| std::iter::repeat_n(row, times))
            .collect();
        let columns = NAMES
            .iter()
            .enumerate()
            .map(|(index, name)| ReleasedColumn {
                name: (*name).into(),
                form: Form::Generalized,
                column: Column {
                    dictionary: VALUES.map(Into::into).to_vec(),
                    codes: rows.iter().map(|row| row[index]).collect(),
                },
                missing: vec!["".into()],
            });
        ReleasedTable {
            name: "data".into(),
            rows: rows.len(),
            columns: columns.collect(),
        }
    })
}

/// A subject for each of many rows: few or many, with numbers that have gaps or not.
pub(super) fn subjects() -> impl Strategy<Value = Vec<u32>> {
    let of = prop::sample::select(vec![1u32, 3, 12, 60]);
    let gap = prop::sample::select(vec![1u32, 1_000_003]);
    (of, gap).prop_flat_map(|(of, gap)| {
        prop::collection::vec((0..of).prop_map(move |subject| subject * gap), 200)
    })
}

fn requirements() -> impl Strategy<Value = LkcRequirement> {
    let set = prop_oneof![
        Just(SensitiveSet::Every),
        Just(SensitiveSet::Listed(names(&["a", "e", ""]))),
        Just(SensitiveSet::Listed(Vec::new())),
    ];
    let bound = prop::sample::select(vec![0.2, 0.25, 0.5, 0.6, 0.75, 1.0]);
    let reading = prop::sample::select(vec![MissingSensitive::Excluded, MissingSensitive::Counted]);
    // A column without a set is declared, and the requirement does not name it.
    let sets = prop::collection::vec(prop::option::weighted(0.8, set), 2);
    let parameters = (0..=QIDS + 1, 1u64..7, bound, sets, reading);
    parameters.prop_map(|(l, k, c, sets, missing_sensitive)| {
        let columns = sets.into_iter().zip(["s0", "s1"]);
        let sensitive = columns.filter_map(|(values, column)| {
            Some(SensitiveRequirement {
                column: column.into(),
                values: values?,
            })
        });
        let c = Confidence::new(c).unwrap();
        LkcRequirement {
            l,
            k,
            c,
            sensitive: sensitive.collect(),
            missing_sensitive,
        }
    })
}

fn verified(counted: CountedTable, requirement: &LkcRequirement) -> Verification {
    let (known, sensitive) = NAMES.split_at(QIDS);
    let cancellation = Cancellation::new();
    verify_lkc(
        counted,
        columns(&names(known), &names(sensitive)),
        requirement,
        &cancellation,
    )
    .unwrap()
}

fn agree<'t>(counted: impl Into<CountedTable<'t>>, requirement: &LkcRequirement) {
    let counted = counted.into();
    let found = verified(counted, requirement);
    let expected = expect(counted, requirement);
    let CountedTable { table, subjects } = counted;
    let bounds_some = !requirement.c.is_unbounded() && !requirement.sensitive.is_empty();
    assert_eq!(
        found.greatest_bounded_confidence,
        bounds_some.then_some(expected.greatest_named)
    );
    assert_eq!(found.smallest_equivalence_class, expected.smallest_class);
    assert_eq!(found.holds, expected.holds);
    assert_eq!(found.smallest_group, expected.smallest);
    assert_eq!(found.greatest_confidence, expected.greatest);
    assert_eq!(found.violations, expected.violations);
    assert_eq!(found.worst.is_empty(), found.holds);
    for group in &found.worst {
        assert!(group.quasi_identifiers.len() <= requirement.l);
        let has = |row: usize, known: &crate::ColumnValue| {
            let column = table
                .columns
                .iter()
                .find(|column| *column.name == *known.column);
            column.unwrap().column.text(row) == known.value.as_deref()
        };
        let rows: Vec<usize> = (0..table.rows)
            .filter(|&row| group.quasi_identifiers.iter().all(|known| has(row, known)))
            .collect();
        assert_eq!(size_of(&rows, subjects), group.size);
        let holding = group.sensitive.as_ref().map_or(0, |value| {
            rows.iter().filter(|&&row| has(row, value)).count()
        });
        let column = group.sensitive.as_ref().map_or(QIDS, |value| {
            NAMES
                .iter()
                .position(|name| **name == *value.column)
                .unwrap()
        });
        let of = denominator(table, column, &rows, requirement.missing_sensitive);
        assert_eq!(holding as f64 / of.max(1) as f64, group.confidence);
        let small = group.size < requirement.k;
        assert!(small || requirement.c.is_exceeded_by(holding as u64, of));
    }
    let first = found
        .worst
        .first()
        .filter(|group| group.size < requirement.k);
    if let Some(first) = first {
        assert_eq!(first.size, expected.smallest);
    } else if let Some(first) = found.worst.first() {
        assert_eq!(first.confidence, expected.greatest_named);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn agrees_with_brute_force(table in tables(24, 5), requirement in requirements()) {
        agree(&table, &requirement);
    }

    #[test]
    fn agrees_with_brute_force_on_tables_that_satisfy_it(
        table in tables(40, 2),
        requirement in requirements(),
    ) {
        agree(&table, &requirement);
    }

    #[test]
    fn agrees_with_brute_force_on_subjects(
        table in tables(24, 5),
        subjects in subjects(),
        requirement in requirements(),
    ) {
        let subjects = Some(&subjects[..table.rows]);
        agree(CountedTable { table: &table, subjects }, &requirement);
    }

    #[test]
    fn agrees_with_brute_force_on_subjects_of_tables_that_satisfy_it(
        table in tables(40, 2),
        subjects in subjects(),
        requirement in requirements(),
    ) {
        let subjects = Some(&subjects[..table.rows]);
        agree(CountedTable { table: &table, subjects }, &requirement);
    }

    #[test]
    fn agrees_with_brute_force_on_larger_tables(
        table in tables(100, 3),
        subjects in prop::collection::vec(0u32..60, 400),
        has_subjects: bool,
        requirement in requirements(),
    ) {
        let subjects = has_subjects.then(|| &subjects[..table.rows]);
        agree(CountedTable { table: &table, subjects }, &requirement);
    }
}
