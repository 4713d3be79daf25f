//! Tests with tables of many attributes in which hardly any two records agree. They are searched
//! with bitmaps.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{names, verified};
use crate::verification::VIOLATION_CAP;
use crate::{LkcRequirement, SensitiveRequirement, SensitiveSet, Verification};
use pais_core::model::{Confidence, MissingSensitive};
use pais_core::table::{Column, Form, NULL_CODE, ReleasedColumn, ReleasedTable};

const ATTRIBUTES: [&str; 10] = ["q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9"];
const SENSITIVE: [&str; 3] = ["s0", "s1", "s2"];
const VALUES: [&str; 4] = ["a", "b", "c", "d"];

/// A number of attributes, and a table of that many attributes and all sensitive columns.
fn tables() -> impl Strategy<Value = (usize, ReleasedTable)> {
    let cardinalities = prop::collection::vec(2u32..=4, ATTRIBUTES.len() + SENSITIVE.len());
    let rows = 15usize..=200;
    // `skew` is the weight of the first value: skewed tables have large groups.
    let shape = (8..=ATTRIBUTES.len(), cardinalities, rows, 0u32..9);
    shape.prop_flat_map(|(attributes, cardinalities, rows, skew)| {
        let cell = move |cardinality: u32| {
            prop_oneof![
                skew => Just(0u32),
                10 => 0..cardinality,
                1 => Just(NULL_CODE),
            ]
        };
        let row: Vec<_> = cardinalities.into_iter().map(cell).collect();
        let rows = prop::collection::vec((row, 1usize..3), rows.div_ceil(2)..=rows);
        (
            Just(attributes),
            rows.prop_map(move |drawn| build(attributes, &drawn)),
        )
    })
}

fn build(attributes: usize, drawn: &[(Vec<u32>, usize)]) -> ReleasedTable {
    let rows: Vec<&Vec<u32>> = drawn
        .iter()
        .flat_map(|(row, times)| std::iter::repeat_n(row, *times))
        .collect();
    let columns = ATTRIBUTES[..attributes].iter().chain(&SENSITIVE);
    let columns = columns.enumerate().map(|(index, name)| ReleasedColumn {
        name: (*name).into(),
        form: Form::Generalized,
        column: Column {
            dictionary: VALUES.map(Into::into).to_vec(),
            codes: rows.iter().map(|row| row[index]).collect(),
        },
        missing: Vec::new(),
    });
    ReleasedTable {
        name: "data".into(),
        rows: rows.len(),
        columns: columns.collect(),
    }
}

fn requirements() -> impl Strategy<Value = LkcRequirement> {
    let set = prop_oneof![
        3 => Just(SensitiveSet::Every),
        2 => Just(SensitiveSet::Listed(names(&["b", "d"]))),
        1 => Just(SensitiveSet::Listed(Vec::new())),
    ];
    let c = prop::sample::select(vec![0.3, 0.5, 0.75, 0.9, 1.0]);
    let sets = prop::collection::vec(set, SENSITIVE.len());
    let reading = prop::sample::select(vec![MissingSensitive::Excluded, MissingSensitive::Counted]);
    let parameters = (2usize..=7, 1u64..12, c, sets, reading);
    parameters.prop_map(|(l, k, c, sets, missing_sensitive)| LkcRequirement {
        missing_sensitive,
        l,
        k,
        c: Confidence::new(c).unwrap(),
        sensitive: SENSITIVE
            .iter()
            .zip(sets)
            .map(|(column, values)| SensitiveRequirement {
                column: (*column).into(),
                values,
            })
            .collect(),
    })
}

/// The smallest group, the greatest confidence and the number of violating qids over the subsets
/// of the greatest size, counted row by row.
fn expect(
    attributes: usize,
    table: &ReleasedTable,
    requirement: &LkcRequirement,
) -> (u64, f64, u64) {
    let codes = |column: usize| &table.columns[column].column.codes;
    let varying: Vec<usize> = (0..attributes)
        .filter(|&column| codes(column).iter().any(|&code| code != codes(column)[0]))
        .collect();
    let size = requirement.l.min(varying.len());
    let (mut smallest, mut greatest, mut violations) = (u64::MAX, 0f64, 0);
    for subset in (0u32..1 << varying.len()).filter(|subset| subset.count_ones() as usize == size) {
        let mut groups: BTreeMap<Vec<u32>, Vec<usize>> = BTreeMap::new();
        for row in 0..table.rows {
            let chosen = varying.iter().enumerate();
            let chosen = chosen.filter(|(index, _)| subset >> index & 1 == 1);
            let qid = chosen.map(|(_, &column)| codes(column)[row]).collect();
            groups.entry(qid).or_default().push(row);
        }
        for rows in groups.values() {
            let records = rows.len() as u64;
            let mut violates = records < requirement.k;
            for (index, sensitive) in requirement.sensitive.iter().enumerate() {
                let column = codes(attributes + index);
                let has_value = |row: &&usize| column[**row] != NULL_CODE;
                let of = match requirement.missing_sensitive {
                    MissingSensitive::Excluded => rows.iter().filter(has_value).count() as u64,
                    MissingSensitive::Counted => records,
                };
                for (value, text) in VALUES.iter().enumerate() {
                    let bounded = match &sensitive.values {
                        SensitiveSet::Every => true,
                        SensitiveSet::Listed(listed) => listed.iter().any(|name| **name == **text),
                    };
                    let holding = rows.iter().filter(|&&row| column[row] == value as u32);
                    let holding = holding.count() as u64;
                    if bounded && holding > 0 {
                        greatest = greatest.max(holding as f64 / of as f64);
                        violates |= requirement.c.is_exceeded_by(holding, of);
                    }
                }
            }
            smallest = smallest.min(records);
            violations += u64::from(violates);
        }
    }
    (smallest, greatest, violations)
}

fn verify(attributes: usize, table: &ReleasedTable, requirement: &LkcRequirement) -> Verification {
    verified(table, &names(&ATTRIBUTES[..attributes]), requirement).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn agrees_with_brute_force(
        (attributes, table) in tables(),
        requirement in requirements(),
    ) {
        let found = verify(attributes, &table, &requirement);
        let (smallest, greatest, violations) = expect(attributes, &table, &requirement);
        prop_assert_eq!(found.smallest_group, smallest);
        prop_assert_eq!(found.greatest_confidence, greatest);
        prop_assert_eq!(found.violations, violations.min(VIOLATION_CAP));
        prop_assert_eq!(found.holds, violations == 0);
    }

    #[test]
    fn does_not_depend_on_the_number_of_threads(
        (attributes, table) in tables(),
        requirement in requirements(),
    ) {
        let [one, four] = [1, 4].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| verify(attributes, &table, &requirement))
        });
        prop_assert_eq!(one, four);
    }
}

/// With 2,000 records, bitmaps are packed during the search.
#[test]
fn agrees_with_brute_force_on_groups_of_several_words() {
    let mut state = 7u32;
    let mut draw = |values: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % values
    };
    for attributes in [8, 10] {
        let drawn: Vec<(Vec<u32>, usize)> = (0..2000)
            .map(|_| {
                let mut row: Vec<u32> = (0..attributes).map(|index| draw(2 + index % 2)).collect();
                row.extend([draw(4), draw(4).max(draw(4)), draw(3)]);
                (row, 1)
            })
            .collect();
        let table = build(attributes as usize, &drawn);
        let every = |column: &&str| SensitiveRequirement {
            column: (**column).into(),
            values: SensitiveSet::Every,
        };
        for (l, k, c) in [(2, 1, 1.0), (4, 30, 0.9), (5, 8, 1.0), (6, 1, 0.95)] {
            let requirement = LkcRequirement {
                l,
                k,
                c: Confidence::new(c).unwrap(),
                sensitive: SENSITIVE.iter().map(every).collect(),
                missing_sensitive: MissingSensitive::Excluded,
            };
            let found = verify(attributes as usize, &table, &requirement);
            let expected = expect(attributes as usize, &table, &requirement);
            assert_eq!(
                (found.smallest_group, found.greatest_confidence),
                (expected.0, expected.1)
            );
            assert_eq!(found.violations, expected.2.min(VIOLATION_CAP));
        }
    }
}
