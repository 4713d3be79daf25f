//! Persons as the unit: each count of persons compared with brute force, and tables in which rows
//! are many and persons few.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use pais_core::cancellation::Cancellation;
use pais_core::model::{Confidence, Diversity, GroupModel, MissingSensitive};
use pais_core::table::ReleasedTable;
use proptest::prelude::*;

use super::brute_force::{size_of, subjects, tables};
use super::{columns, names, table, table_2, verify_lkc};
use crate::partition::verify_groups;
use crate::{
    CountedTable, GroupVerification, LkcRequirement, SensitiveRequirement, SensitiveSet,
    Verification, VerifyError, group_sizes, subject_groups,
};

fn lkc(counted: CountedTable, known: &[&str], (l, k): (usize, u64)) -> Verification {
    let requirement = LkcRequirement {
        l,
        k,
        c: Confidence::UNBOUNDED,
        sensitive: Vec::new(),
        missing_sensitive: MissingSensitive::Excluded,
    };
    let cancellation = Cancellation::new();
    verify_lkc(
        counted,
        columns(&names(known), &[]),
        &requirement,
        &cancellation,
    )
    .unwrap()
}

fn groups(counted: CountedTable, known: &[&str], (k, l): (u64, u32)) -> GroupVerification {
    let model = GroupModel {
        k: NonZeroU64::new(k).unwrap(),
        diversity: Diversity::Distinct {
            l: l.try_into().unwrap(),
        },
        min_range: Default::default(),
    };
    let (known, sensitive) = (names(known), names(&["s0"]));
    verify_groups(
        counted,
        columns(&known, &sensitive),
        &model,
        &Cancellation::new(),
    )
    .unwrap()
}

/// The rows of each group of equal values.
fn rows_by_group(table: &ReleasedTable, known: &[&str]) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<Vec<Option<&str>>, Vec<usize>> = BTreeMap::new();
    for row in 0..table.rows {
        let columns = table.columns.iter();
        let columns = columns.filter(|column| known.contains(&&*column.name));
        let values = columns.map(|column| column.column.text(row)).collect();
        groups.entry(values).or_default().push(row);
    }
    groups.into_values().collect()
}

/// Patients with one visit each, except one with two: rows 0 and 1 of Table 2 are of one person.
#[test]
fn two_rows_of_one_person_are_one_person() {
    let table = table_2();
    let known = ["Job", "Sex"];
    let alone = lkc((&table).into(), &known, (2, 4));
    assert_eq!((alone.smallest_group, alone.holds), (2, false));
    // Technical, F: two rows. Those of one person leave one.
    let mut subjects: Vec<u32> = (0..11).collect();
    subjects[10] = 9;
    let counted = CountedTable {
        table: &table,
        subjects: Some(&subjects),
    };
    let found = lkc(counted, &known, (2, 2));
    assert_eq!((found.smallest_group, found.holds), (1, false));
    assert_eq!((found.smallest_equivalence_class, found.rows), (1, 11));
    assert_eq!(found.worst[0].size, 1);
    let shown = found.worst[0].quasi_identifiers[0].value.as_deref();
    assert_eq!((found.worst.len(), shown), (1, Some("Technical")));
    // Professional: of its five rows, two of one person leave four persons.
    subjects[10] = 10;
    subjects[1] = 3;
    let counted = CountedTable {
        table: &table,
        subjects: Some(&subjects),
    };
    assert_eq!(lkc(counted, &["Job"], (1, 2)).smallest_group, 2);
    let mut sizes = group_sizes(counted, &["Job"], &Cancellation::new()).unwrap();
    sizes.sort_unstable();
    assert_eq!(sizes, [2, 4, 4]);
}

#[test]
fn k_rows_of_one_person_do_not_hold() {
    let rows = vec![vec!["a", "x"]; 10];
    let table = table(&["q0", "s0"], &rows);
    for persons in 1..=10 {
        let subjects: Vec<u32> = (0..10).map(|row| row % persons).collect();
        let counted = CountedTable {
            table: &table,
            subjects: Some(&subjects),
        };
        let holds = persons == 10;
        assert_eq!(lkc(counted, &["q0"], (1, 10)).holds, holds);
        let found = groups(counted, &["q0"], (10, 1));
        assert_eq!((found.holds, found.violations), (holds, u64::from(!holds)));
        assert_eq!(found.smallest_group, u64::from(persons));
    }
}

/// A file that is submitted twice doubles its rows, not its persons.
#[test]
fn the_same_file_twice_is_no_larger() {
    let once = [["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"]].map(|row| row.to_vec());
    let twice = [once.clone(), once].concat();
    let table = table(&["q0", "s0"], &twice);
    let subjects = [0, 1, 2, 3, 0, 1, 2, 3];
    let counted = CountedTable {
        table: &table,
        subjects: Some(&subjects),
    };
    assert!(lkc((&table).into(), &["q0"], (1, 4)).holds);
    let found = lkc(counted, &["q0"], (1, 4));
    assert_eq!((found.holds, found.smallest_group), (false, 2));
    assert!(lkc(counted, &["q0"], (1, 2)).holds);
}

#[test]
fn confidence_per_subject_is_a_share_of_persons() {
    // One of ten rows has hiv, but one of the two persons.
    let mut rows = vec![vec!["a", "flu"]; 9];
    rows.push(vec!["a", "hiv"]);
    let hidden = table(&["q0", "s0"], &rows);
    let mut subjects = [0; 10];
    subjects[9] = 1;
    let counted = CountedTable {
        table: &hidden,
        subjects: Some(&subjects),
    };
    let found = subject_groups(counted, &["q0"], &names(&["s0"]), &Cancellation::new()).unwrap();
    assert_eq!((found.subjects, &found.sizes[..]), (2, &[2][..]));
    assert_eq!(found.greatest_confidence(), 0.5);
    // A person with several values counts for each; one without a value does not count.
    let rows = ["flu", "hiv", "hiv", "cold", ""].map(|ill| vec!["a", ill]);
    let several = table(&["q0", "s0"], &rows);
    let counted = CountedTable {
        table: &several,
        subjects: Some(&[0, 0, 1, 2, 3]),
    };
    let found = subject_groups(counted, &["q0"], &names(&["s0"]), &Cancellation::new()).unwrap();
    assert_eq!(found.greatest_confidence(), 2.0 / 3.0);
    // Each row is a person where none are given.
    let found = subject_groups(&several, &["q0"], &names(&["s0"]), &Cancellation::new()).unwrap();
    assert_eq!((found.subjects, found.greatest_confidence()), (5, 0.5));
}

#[test]
fn as_many_subjects_as_rows_are_required() {
    let table = table(&["q0", "s0"], &[vec!["a", "x"], vec!["b", "x"]]);
    for subjects in [&[][..], &[7, 7, 7]] {
        let counted = CountedTable {
            table: &table,
            subjects: Some(subjects),
        };
        let uneven = VerifyError::UnevenSubjects {
            found: subjects.len(),
            rows: 2,
        };
        assert_eq!(
            group_sizes(counted, &["q0"], &Cancellation::new()),
            Err(uneven)
        );
    }
}

/// 40 persons with up to 30 rows each are in many groups at once.
#[test]
fn persons_with_many_rows_are_counted_once_in_each_group() {
    let mut state = 7u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005);
        state = state.wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let known = ["q0", "q1", "q2", "q3"];
    let mut rows: Vec<Vec<&str>> = Vec::new();
    let mut subjects = Vec::new();
    for person in 0..40 {
        for _ in 0..1 + next(30) {
            let row = (0..4).map(|_| VALUES[next(3) as usize]).collect();
            rows.push(row);
            subjects.push(person);
        }
    }
    let table = table(&known, &rows);
    let counted = CountedTable {
        table: &table,
        subjects: Some(&subjects),
    };
    for l in 0..=4usize {
        let subsets = (0u32..16).filter(|subset| subset.count_ones() as usize <= l);
        let sizes = subsets.flat_map(|subset| {
            let known: Vec<&str> = (0..4)
                .filter(|column| subset >> column & 1 == 1)
                .map(|column| known[column])
                .collect();
            let groups = rows_by_group(&table, &known);
            groups
                .into_iter()
                .map(|rows| size_of(&rows, Some(&subjects)))
        });
        let smallest = sizes.min().unwrap();
        let found = lkc(counted, &known, (l, smallest));
        assert_eq!((found.smallest_group, found.holds), (smallest, true));
        let found = lkc(counted, &known, (l, smallest + 1));
        assert_eq!((found.smallest_group, found.holds), (smallest, false));
        assert_eq!(found.worst[0].size, smallest);
    }
}

const VALUES: [&str; 3] = ["a", "b", "c"];

proptest! {
    #[test]
    fn groups_agree_with_brute_force(
        table in tables(24, 3),
        subjects in subjects(),
        k in 1..5u64,
        l in 1..4u32,
    ) {
        let counted = CountedTable { table: &table, subjects: Some(&subjects[..table.rows]) };
        let known = ["q0", "q1"];
        let expected = rows_by_group(&table, &known);
        let mut sizes: Vec<u64> =
            expected.iter().map(|rows| size_of(rows, counted.subjects)).collect();
        let column = table.columns.iter().find(|column| &*column.name == "s0").unwrap();
        let diverse = |rows: &[usize]| {
            let values = rows.iter().filter_map(|&row| column.column.text(row));
            let distinct: BTreeSet<&str> = values.filter(|value| !value.is_empty()).collect();
            distinct.len() as u32 >= l
        };
        let failing = expected
            .iter()
            .filter(|rows| size_of(rows, counted.subjects) < k || !diverse(rows))
            .count() as u64;
        let found = groups(counted, &known, (k, l));
        prop_assert_eq!((found.holds, found.violations), (failing == 0, failing));
        let smallest = sizes.iter().copied().min().unwrap_or(0);
        prop_assert_eq!(found.smallest_group, smallest);
        prop_assert_eq!(found.smallest_equivalence_class, smallest);
        if let Some(worst) = found.worst.first().filter(|worst| worst.size < k) {
            prop_assert_eq!(worst.size, smallest);
        }
        let mut measured: Vec<u64> =
            group_sizes(counted, &known, &Cancellation::new()).unwrap().into_iter().map(u64::from).collect();
        measured.sort_unstable();
        sizes.sort_unstable();
        prop_assert_eq!(measured, sizes);
    }

    #[test]
    fn confidence_per_subject_agrees_with_brute_force(
        table in tables(24, 5),
        subjects in subjects(),
        given in any::<bool>(),
    ) {
        let own: Vec<u32> = (0..table.rows as u32).collect();
        let of_row = if given { &subjects[..table.rows] } else { &own[..] };
        let counted = CountedTable { table: &table, subjects: given.then_some(of_row) };
        let known = ["q0", "q2"];
        let mut greatest = 0f64;
        let mut sizes = Vec::new();
        for rows in rows_by_group(&table, &known) {
            sizes.push(size_of(&rows, Some(of_row)) as u32);
            for name in ["s0", "s1"] {
                let column = table.columns.iter().find(|column| *column.name == *name).unwrap();
                let text = |row: usize| column.column.text(row).filter(|text| !text.is_empty());
                let holders = |value: Option<&str>| -> Vec<usize> {
                    let has = |&row: &usize| match value {
                        None => text(row).is_some(),
                        value => text(row) == value,
                    };
                    rows.iter().copied().filter(has).collect()
                };
                let present = size_of(&holders(None), Some(of_row));
                for value in ["a", "b", "?", "e"] {
                    let having = size_of(&holders(Some(value)), Some(of_row));
                    greatest = greatest.max(having as f64 / present.max(1) as f64);
                }
            }
        }
        let found = subject_groups(counted, &known, &names(&["s0", "s1"]), &Cancellation::new()).unwrap();
        prop_assert_eq!(found.greatest_confidence(), greatest);
        prop_assert_eq!(found.confidences.len(), sizes.len());
        let distinct: BTreeSet<u32> = of_row.iter().copied().collect();
        prop_assert_eq!(found.subjects, distinct.len() as u64);
        let mut measured = found.sizes;
        measured.sort_unstable();
        sizes.sort_unstable();
        prop_assert_eq!(measured, sizes);
    }

    /// K over persons is anti-monotone: a part of a group has no person that the group has not.
    #[test]
    fn more_known_values_never_name_more_persons(table in tables(24, 4), subjects in subjects()) {
        let counted = CountedTable { table: &table, subjects: Some(&subjects[..table.rows]) };
        let known = ["q0", "q1", "q2", "q3", "q4"];
        let smallest: Vec<u64> =
            (0..=5).map(|l| lkc(counted, &known, (l, 1)).smallest_group).collect();
        prop_assert!(smallest.is_sorted_by(|one, other| one >= other), "{smallest:?}");
    }

    /// Persons with one row each are counted like rows, whatever their numbers.
    #[test]
    fn persons_of_one_row_are_rows(table in tables(24, 4), k in 1..6u64, l in 0..=5usize) {
        let own: Vec<u32> = (0..table.rows as u32).map(|row| row * 1_000_003).rev().collect();
        let counted = CountedTable { table: &table, subjects: Some(&own) };
        let known = ["q0", "q1", "q2", "q3", "q4"];
        let by_row = lkc((&table).into(), &known, (l, k));
        prop_assert_eq!(lkc(counted, &known, (l, k)), by_row);
        let by_row = groups((&table).into(), &known, (k, 1));
        prop_assert_eq!(groups(counted, &known, (k, 1)), by_row);
    }
}

/// Confidence stays a share of rows.
#[test]
fn a_bound_on_confidence_asks_for_rows() {
    let rows = ["hiv", "flu", "flu", "flu"].map(|ill| vec!["a", ill]);
    let table = table(&["q0", "s0"], &rows);
    let counted = CountedTable {
        table: &table,
        subjects: Some(&[0, 1, 1, 1]),
    };
    let requirement = |c: f64| LkcRequirement {
        l: 1,
        k: 2,
        c: Confidence::new(c).unwrap(),
        sensitive: vec![SensitiveRequirement {
            column: "s0".into(),
            values: SensitiveSet::Listed(names(&["hiv"])),
        }],
        missing_sensitive: MissingSensitive::Excluded,
    };
    for (c, holds) in [(0.25, true), (0.2, false)] {
        let (known, sensitive) = (names(&["q0"]), names(&["s0"]));
        let cancellation = Cancellation::new();
        let found = verify_lkc(
            counted,
            columns(&known, &sensitive),
            &requirement(c),
            &cancellation,
        )
        .unwrap();
        assert_eq!((found.holds, found.greatest_confidence), (holds, 0.25));
        assert_eq!(found.smallest_group, 2);
    }
}
