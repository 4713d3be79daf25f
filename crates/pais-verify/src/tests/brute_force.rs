//! Random tables, compared with Definition 3.1 computed row by row.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{names, verified};
use crate::{LkcRequirement, SensitiveRequirement, SensitiveSet, VIOLATION_CAP};
use pais_core::model::Confidence;
use pais_core::table::{Column, Form, NULL_CODE, ReleasedColumn, ReleasedTable};

const QIDS: usize = 5;
const NAMES: [&str; QIDS + 2] = ["q0", "q1", "q2", "q3", "q4", "s0", "s1"];
const VALUES: [&str; 5] = ["a", "b", "?", "", "e"];

/// The result of Definition 3.1, computed row by row for every subset of every size up to L and
/// every sensitive value.
struct Expected {
    holds: bool,
    smallest: u64,
    greatest: f64,
    violations: u64,
}

fn expect(table: &ReleasedTable, requirement: &LkcRequirement) -> Expected {
    let text = |column: usize, row: usize| table.columns[column].column.text(row);
    let varying: Vec<usize> = (0..QIDS)
        .filter(|&column| (0..table.rows).any(|row| text(column, row) != text(column, 0)))
        .collect();
    let mut expected = Expected {
        holds: true,
        smallest: u64::MAX,
        greatest: 0.0,
        violations: 0,
    };
    let full = requirement.l.min(varying.len());
    for subset in 0u32..1 << QIDS {
        let columns: Vec<usize> = (0..QIDS)
            .filter(|&column| subset >> column & 1 == 1)
            .collect();
        if columns.len() > requirement.l {
            continue;
        }
        let counted =
            columns.len() == full && columns.iter().all(|column| varying.contains(column));
        let mut groups: BTreeMap<Vec<Option<&str>>, Vec<usize>> = BTreeMap::new();
        for row in 0..table.rows {
            let qid = columns.iter().map(|&column| text(column, row)).collect();
            groups.entry(qid).or_default().push(row);
        }
        for rows in groups.values() {
            let size = rows.len() as u64;
            let mut violates = size < requirement.k;
            expected.smallest = expected.smallest.min(size);
            for (column, sensitive) in requirement.sensitive.iter().enumerate() {
                let values: BTreeSet<_> = rows
                    .iter()
                    .filter_map(|&row| text(QIDS + column, row))
                    .collect();
                for value in values.into_iter().filter(|value| !value.is_empty()) {
                    if let SensitiveSet::Listed(listed) = &sensitive.values
                        && !listed.iter().any(|listed| &**listed == value)
                    {
                        continue;
                    }
                    let with_value = rows
                        .iter()
                        .filter(|&&row| text(QIDS + column, row) == Some(value));
                    let holding = with_value.count() as u64;
                    violates |= requirement.c.is_exceeded_by(holding, size);
                    expected.greatest = expected.greatest.max(holding as f64 / size as f64);
                }
            }
            expected.holds &= !violates;
            expected.violations += u64::from(violates && counted);
        }
    }
    if table.rows == 0 {
        expected.smallest = 0;
    }
    expected.violations = expected.violations.min(VIOLATION_CAP);
    expected
}

fn tables(rows: usize, values: u32) -> impl Strategy<Value = ReleasedTable> {
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

fn requirements() -> impl Strategy<Value = LkcRequirement> {
    let set = prop_oneof![
        Just(SensitiveSet::Every),
        Just(SensitiveSet::Listed(names(&["a", "e", ""]))),
        Just(SensitiveSet::Listed(Vec::new())),
    ];
    let bound = prop::sample::select(vec![0.2, 0.25, 0.5, 0.6, 0.75, 1.0]);
    (0..=QIDS + 1, 1u64..7, bound, prop::collection::vec(set, 2)).prop_map(|(l, k, c, sets)| {
        let sensitive =
            sets.into_iter()
                .zip(["s0", "s1"])
                .map(|(values, column)| SensitiveRequirement {
                    column: column.into(),
                    values,
                });
        let c = Confidence::new(c).unwrap();
        LkcRequirement {
            l,
            k,
            c,
            sensitive: sensitive.collect(),
        }
    })
}

fn agree(table: &ReleasedTable, requirement: &LkcRequirement) {
    let found = verified(table, &names(&NAMES[..QIDS]), requirement).unwrap();
    let expected = expect(table, requirement);
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
        assert_eq!(rows.len() as u64, group.size);
        let holding = group.sensitive.as_ref().map_or(0, |value| {
            rows.iter().filter(|&&row| has(row, value)).count()
        });
        assert_eq!(holding as f64 / group.size as f64, group.confidence);
        let small = group.size < requirement.k;
        assert!(small || requirement.c.is_exceeded_by(holding as u64, group.size));
    }
    let first = found
        .worst
        .first()
        .filter(|group| group.size < requirement.k);
    if let Some(first) = first {
        assert_eq!(first.size, expected.smallest);
    } else if let Some(first) = found.worst.first() {
        assert_eq!(first.confidence, expected.greatest);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

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
}
