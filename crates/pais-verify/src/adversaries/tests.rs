//! Figures by length on a table of a paper, and against enumeration of rows.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use pais_core::cancellation::Cancellation;
use pais_core::model::{Confidence, MissingSensitive};

use super::{AdversaryFigures, AdversaryLengths, affordable, measure_adversaries};
use crate::EquivalenceClasses;
use crate::tests::{names, table, table_2};
use crate::{CountedTable, LkcRequirement, SensitiveRequirement, SensitiveSet, VerifyError};

fn requirement(k: u64) -> LkcRequirement {
    LkcRequirement {
        l: 2,
        k,
        c: Confidence::UNBOUNDED,
        sensitive: vec![SensitiveRequirement {
            column: "Surgery".into(),
            values: SensitiveSet::Every,
        }],
        missing_sensitive: MissingSensitive::Excluded,
    }
}

fn measured(
    table: CountedTable,
    columns: &[&str],
    k: u64,
    (assumed, longest): (u32, u32),
) -> AdversaryFigures {
    let lengths = AdversaryLengths { assumed, longest };
    let columns = names(columns);
    let cancellation = Cancellation::new();
    let classes = EquivalenceClasses::new(table.table, &columns, None, &cancellation).unwrap();
    measure_adversaries(table, &classes, &requirement(k), lengths, &cancellation).unwrap()
}

/// By hand from Table 2 of KDD'09: of single values the intervals [1,30) and [60,99] and the job
/// Technical have two records; Professional, F, [30,60) has two, and Professional, M, [30,60) one.
#[test]
fn in_table_2_three_values_single_out_a_patient_and_two_do_not() {
    let released = table_2();
    let found = measured((&released).into(), &["Job", "Sex", "Age"], 2, (2, 4));
    let sizes: Vec<u64> = found.by_length.iter().map(|it| it.smallest).collect();
    assert_eq!(sizes, [2, 2, 1]);
    let below: Vec<f64> = found.by_length.iter().map(|it| it.share_below_k).collect();
    assert_eq!(below, [0.0, 0.0, 1.0 / 11.0]);
    let lengths: Vec<u32> = found.by_length.iter().map(|it| it.length).collect();
    assert_eq!(lengths, [1, 2, 3], "there are three quasi-identifiers");
    assert!(found.lengths_left_out.is_empty());
    // 3 jobs, 2 sexes, 3 ages; 4 pairs of job and sex, 4 of job and age, 4 of sex and age.
    let qids: u64 = found.qid_sizes.iter().map(|it| it.qids).sum();
    assert_eq!(qids, 20);
    let qids: u64 = found.qid_confidences.iter().map(|it| it.qids).sum();
    assert_eq!(qids, 20);
}

#[test]
fn an_empty_table_has_no_figures() {
    let empty = table(&["Job", "Surgery"], &[]);
    let found = measured((&empty).into(), &["Job"], 2, (1, 3));
    assert_eq!(found, AdversaryFigures::default());
}

#[test]
fn columns_of_one_value_add_nothing() {
    let rows = [vec!["x", "y", "s"], vec!["x", "y", "t"]];
    let same = table(&["a", "b", "Surgery"], &rows);
    let found = measured((&same).into(), &["a", "b"], 3, (1, 2));
    let found: Vec<_> = found
        .by_length
        .iter()
        .map(|it| (it.smallest, it.share_below_k, it.greatest_confidence))
        .collect();
    assert_eq!(found, [(2, 1.0, 0.5), (2, 1.0, 0.5)]);
}

#[test]
fn lengths_beyond_the_budget_are_left_out() {
    let most = |attributes, assumed, cells| {
        let lengths = AdversaryLengths {
            assumed,
            longest: 6,
        };
        affordable(attributes, lengths, cells)
    };
    assert_eq!(most(13, 6, 100_000), 6);
    assert_eq!(most(13, 6, 1_000_000), 3);
    assert_eq!(most(13, 6, u64::MAX), 1);
    assert_eq!(most(0, 6, 10), 0);
    // Lengths that the model does not assume may take a tenth of the work.
    assert_eq!(most(13, 4, 20_000), 6);
    assert_eq!(most(13, 4, 100_000), 4);
    assert_eq!(most(13, 2, 455_851), 2);
}

#[test]
fn a_request_to_stop_is_followed() {
    let cancellation = Cancellation::new();
    let lengths = AdversaryLengths {
        assumed: 2,
        longest: 3,
    };
    let columns = names(&["Job", "Sex", "Age"]);
    let released = table_2();
    let classes = EquivalenceClasses::new(&released, &columns, None, &cancellation).unwrap();
    cancellation.cancel();
    let found = measure_adversaries(&released, &classes, &requirement(2), lengths, &cancellation);
    assert_eq!(found, Err(VerifyError::Stopped));
}

/// A row of four quasi-identifiers and a sensitive value, with its person.
type Row = ([u8; 4], u8, u32);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    prop::collection::vec(([0..3u8, 0..2u8, 0..4u8, 0..3u8], 0..4u8, 0..6u32), 1..40)
}

/// Size in persons, and greatest confidence, of every qid of exactly this length.
fn qids(rows: &[Row], length: u32) -> Vec<(u64, f64, BTreeSet<u32>)> {
    let mut found = Vec::new();
    for columns in (0u8..16).filter(|set| set.count_ones() == length) {
        let mut groups: BTreeMap<Vec<u8>, Vec<&Row>> = BTreeMap::new();
        for row in rows {
            let known = (0..4).filter(|column| columns >> column & 1 == 1);
            let known = known.map(|column| row.0[column]).collect();
            groups.entry(known).or_default().push(row);
        }
        for group in groups.values() {
            let persons: BTreeSet<u32> = group.iter().map(|row| row.2).collect();
            // The first sensitive value is a missing cell.
            let present = group.iter().filter(|row| row.1 > 0).count();
            let most = (1..4).map(|value| group.iter().filter(|row| row.1 == value).count());
            let most = most.max().unwrap_or(0);
            let confidence = most as f64 / present.max(1) as f64;
            found.push((persons.len() as u64, confidence, persons));
        }
    }
    found
}

proptest! {
    #[test]
    fn figures_by_length_are_those_of_brute_force(
        rows in rows(),
        k in 1..5u64,
        assumed in 1..4u32,
        longest in 1..5u32,
        has_subjects: bool,
    ) {
        let mut rows = rows;
        if !has_subjects {
            (0..).zip(&mut rows).for_each(|(person, row)| row.2 = person);
        }
        let texts: Vec<Vec<String>> = rows
            .iter()
            .map(|(known, sensitive, _)| {
                let cells = known.iter().map(|value| format!("v{value}"));
                let sensitive = match sensitive {
                    0 => String::new(),
                    value => format!("s{value}"),
                };
                cells.chain([sensitive]).collect()
            })
            .collect();
        let cells: Vec<Vec<&str>> =
            texts.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
        let released = table(&["a", "b", "c", "d", "Surgery"], &cells);
        let subjects: Vec<u32> = rows.iter().map(|row| row.2).collect();
        let counted = CountedTable {
            table: &released,
            subjects: has_subjects.then_some(subjects.as_slice()),
        };
        let found = measured(counted, &["a", "b", "c", "d"], k, (assumed, longest));

        let persons: BTreeSet<u32> = subjects.iter().copied().collect();
        prop_assert_eq!(found.by_length.len(), longest as usize);
        for length in 1..=longest {
            let expected = qids(&rows, length);
            let figures = found.by_length[length as usize - 1];
            prop_assert_eq!(figures.length, length);
            prop_assert_eq!(Some(figures.smallest), expected.iter().map(|it| it.0).min());
            let greatest = expected.iter().map(|it| it.1).fold(0.0, f64::max);
            prop_assert!((figures.greatest_confidence - greatest).abs() < 1e-12);
            let classes_below = qid_rows_below(&rows, length, k);
            let share = classes_below.len() as f64 / persons.len() as f64;
            prop_assert!((figures.share_below_k - share).abs() < 1e-12);
        }
        // Columns of one value are no part of the counted qids.
        let varied = (0..4).all(|column| rows.iter().any(|row| row.0[column] != rows[0].0[column]));
        if varied {
            let assumed = assumed.min(longest);
            let counted: u64 = (1..=assumed).map(|length| qids(&rows, length).len() as u64).sum();
            prop_assert_eq!(found.qid_sizes.iter().map(|it| it.qids).sum::<u64>(), counted);
            for bucket in &found.qid_sizes {
                let expected = (1..=assumed).flat_map(|length| qids(&rows, length));
                let expected = expected.filter(|it| (bucket.from..=bucket.to).contains(&it.0));
                prop_assert_eq!(bucket.qids, expected.count() as u64);
            }
            let counted_again = found.qid_confidences.iter().map(|it| it.qids).sum::<u64>();
            prop_assert_eq!(counted_again, counted);
        }
    }
}

/// The persons who have a qid of this length below *K*.
fn qid_rows_below(rows: &[Row], length: u32, k: u64) -> BTreeSet<u32> {
    let below = qids(rows, length).into_iter().filter(|it| it.0 < k);
    below.flat_map(|it| it.2).collect()
}
