//! Compares partitions in both layouts with records counted row by row.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use pais_core::model::{Confidence, MinimumAnonymity};
use pais_core::table::codes::Codes;
use pais_core::table::{Domain, NULL_CODE, QuasiIdentifier};

use super::super::attribute::{Attribute, Concept, Meaning};
use super::super::partitions::{
    ChildOfCode, PartitionId, PartitionShare, Partitions, Scan, SplitCounts,
};
use super::super::requirement::{Requirement, SensitiveBound, ValueRows, ValueShare};
use super::super::sensitive::SensitiveSlots;

/// Number of distinct numbers in a column.
const NUMBERS: u32 = 9;

/// Number of counted values of a sensitive column: three values, and missing cells if they are
/// excluded.
const VALUES: u32 = 4;

#[derive(Clone, Debug)]
struct LayoutCase {
    /// By attribute and row.
    codes: Vec<Vec<u32>>,
    /// By sensitive column and row.
    sensitive: Vec<Vec<u32>>,
    /// The specializations in order: the attribute, the index of the concept in its cut, and the
    /// number of children.
    splits: Vec<(usize, usize, usize)>,
    /// By row, whether it is suppressed; some rows are suppressed from the beginning.
    suppressed: Vec<bool>,
    /// Whether a partition is suppressed after each split.
    suppress: bool,
    /// Whether missing cells are excluded.
    excludes_missing: bool,
}

fn case() -> impl Strategy<Value = LayoutCase> {
    (1..60usize).prop_flat_map(|rows| {
        let column = |values| prop::collection::vec(0..values, rows);
        let cell = || prop_oneof![4 => 0..4u32, 1 => Just(NULL_CODE)];
        let cells = move || prop::collection::vec(cell(), rows);
        let suppressed = prop_oneof![
            Just(vec![false; rows]),
            prop::collection::vec(prop::bool::weighted(0.2), rows)
        ];
        (
            prop::collection::vec(column(NUMBERS), 3),
            prop::collection::vec(cells(), 0..4),
            prop::collection::vec((0..3usize, any::<usize>(), 2..6usize), 1..7),
            suppressed,
            prop::bool::weighted(0.3),
            any::<bool>(),
        )
            .prop_map(
                |(codes, sensitive, splits, suppressed, suppress, excludes_missing)| LayoutCase {
                    codes,
                    sensitive,
                    splits,
                    suppressed,
                    suppress,
                    excludes_missing,
                },
            )
    })
}

fn columns(case: &LayoutCase) -> Vec<QuasiIdentifier> {
    let column = |(position, codes): (usize, &Vec<u32>)| QuasiIdentifier {
        name: format!("q{position}").into(),
        position,
        domain: Domain::Numeric {
            values: (0..NUMBERS).map(f64::from).collect(),
            lo: 0.0,
            hi: f64::from(NUMBERS),
            missing: false,
            scale: pais_core::taxonomy::Scale::Number,
            round: None,
            ends: None,
        },
        codes: Codes::Four(codes.clone().into()),
    };
    case.codes.iter().enumerate().map(column).collect()
}

/// The most frequent of the bounded values of some rows, counted column by column: all values
/// except the first one of each column are bounded.
fn greatest_share(case: &LayoutCase, rows: &[u32]) -> (usize, usize) {
    let mut greatest = (0, 1);
    for codes in &case.sensitive {
        let cells = || rows.iter().map(|&row| codes[row as usize]);
        let of = match case.excludes_missing {
            true => cells().filter(|&code| code != NULL_CODE).count(),
            false => rows.len(),
        };
        for value in 1..4 {
            let holding = cells().filter(|&code| code == value).count();
            if holding * greatest.1 > greatest.0 * of {
                greatest = (holding, of);
            }
        }
    }
    greatest
}

/// All values except the first one of each column are sensitive.
fn requirement<'a>(case: &'a LayoutCase) -> Requirement<'a> {
    let bound = |(column, codes): (usize, &'a Vec<u32>)| {
        let first = VALUES * column as u32;
        SensitiveBound {
            codes,
            numbers: vec![NULL_CODE, first, first + 1, first + 2],
            missing: case.excludes_missing.then_some(first + 3),
        }
    };
    let (k, c) = (MinimumAnonymity::new(2), Confidence::new(0.5));
    let sensitive = case.sensitive.iter().enumerate().map(bound).collect();
    Requirement::new(2, k.unwrap(), c.unwrap(), sensitive)
}

/// Splits the codes of a concept into parts; `None` if it has too few codes.
fn split(concept: &Concept, parts: usize) -> Option<Vec<Concept>> {
    let codes = concept.codes.clone();
    let width = (codes.len() / parts).max(1) as u32;
    let mut starts: Vec<u32> = codes.clone().step_by(width as usize).take(parts).collect();
    (starts.len() > 1).then(|| {
        starts.push(codes.end);
        let child = |bounds: &[u32]| Concept {
            codes: bounds[0]..bounds[1],
            meaning: Meaning::Missing,
        };
        starts.windows(2).map(child).collect()
    })
}

/// A partition: the concept of each attribute, as the range of its codes.
type PartitionRecord = Vec<(u32, u32)>;

/// Rows by record.
fn records(
    case: &LayoutCase,
    attributes: &[Attribute<'_>],
) -> BTreeMap<PartitionRecord, BTreeSet<u32>> {
    let mut records: BTreeMap<PartitionRecord, BTreeSet<u32>> = BTreeMap::new();
    for row in (0..case.suppressed.len()).filter(|&row| !case.suppressed[row]) {
        let concept = |attribute: &Attribute<'_>| {
            let code = attribute.column.codes.at(row);
            let concepts = attribute.cut.iter().map(|&id| attribute.concept(id));
            let mut containing = concepts.filter(|concept| concept.codes.contains(&code));
            let codes = containing.next().unwrap().codes.clone();
            (codes.start, codes.end)
        };
        let record = attributes.iter().map(concept).collect();
        records.entry(record).or_default().insert(row as u32);
    }
    records
}

/// The counts of a partition and child: the partition, its number of rows, whether they meet *K*
/// and *C*, and the number of rows by sensitive value.
type ShareCounts = (PartitionId, u32, bool, Vec<ValueRows>);

/// The counts of a split, by child.
fn share_counts(split_counts: &SplitCounts) -> Vec<Vec<ShareCounts>> {
    let share = |share: &PartitionShare| {
        (
            share.partition,
            share.size,
            share.meets,
            split_counts.counts_of(share).to_vec(),
        )
    };
    let children = split_counts.children.iter();
    children
        .map(|shares| shares.iter().map(share).collect())
        .collect()
}

/// The same counts, computed row by row.
fn expected(
    case: &LayoutCase,
    partitions: &Partitions,
    codes: &[u32],
    split: &[Concept],
    link: &[PartitionId],
    requirement: &Requirement<'_>,
) -> Vec<Vec<ShareCounts>> {
    let of_child = |child: &Concept| {
        let share = |&partition: &PartitionId| {
            let mut rows = partitions.rows(partition);
            rows.retain(|&row| child.codes.contains(&codes[row as usize]));
            let mut value_counts: BTreeMap<u32, u32> = BTreeMap::new();
            for &row in &rows {
                requirement.for_each_counted_value(row as usize, |value| {
                    *value_counts.entry(value as u32).or_default() += 1
                });
            }
            let (holding, of) = greatest_share(case, &rows);
            let meets = rows.len() >= 2 && 2 * holding <= of;
            (!rows.is_empty()).then(|| {
                (
                    partition,
                    rows.len() as u32,
                    meets,
                    value_counts
                        .into_iter()
                        .map(|(value, rows)| ValueRows { value, rows })
                        .collect(),
                )
            })
        };
        link.iter().filter_map(share).collect()
    };
    split.iter().map(of_child).collect()
}

/// Performs the specializations of a case in both layouts. Returns the number of steps that the
/// partitions with a free choice of layout made in table order.
fn check(mut case: LayoutCase) -> Result<usize, TestCaseError> {
    let quasi_identifiers = columns(&case);
    let rows = case.suppressed.len();
    let sensitive = SensitiveSlots::new(&requirement(&case), rows);
    let mut attributes: Vec<_> = quasi_identifiers
        .iter()
        .map(|column| Attribute::new(column, None, &[]))
        .collect();
    let suppressed: Vec<u32> = (0..rows as u32)
        .filter(|&row| case.suppressed[row as usize])
        .collect();
    let partitions =
        || Partitions::new(rows, &suppressed, attributes.len(), ValueShare::NONE, None);
    let mut both = [partitions(), partitions()];
    both[1].sort();
    let mut child_of_code = ChildOfCode::default();
    let mut in_table_order = 0;
    for (at, which, parts) in std::mem::take(&mut case.splits) {
        let requirement = requirement(&case);
        let concept = attributes[at].cut[which % attributes[at].cut.len()];
        let Some(split) = split(attributes[at].concept(concept), parts) else {
            continue;
        };
        child_of_code.assign_split(&attributes[at], &split);
        let first = attributes[at].concepts.len() as u32;
        let mut scores = Vec::new();
        for partitions in &mut both {
            let scan = Scan {
                attribute: at,
                concept,
                column: &attributes[at],
                child_of_code: &child_of_code,
                width: split.len(),
                sensitive: &sensitive,
                requirement: &requirement,
            };
            let term = |size: u64, squares: u128| u128::from(size) + 3 * squares;
            let link = partitions.link(at, concept).to_vec();
            let split_counts = partitions.count_split(&scan, term);
            let expected = expected(
                &case,
                partitions,
                &case.codes[at],
                &split,
                &link,
                &requirement,
            );
            prop_assert_eq!(share_counts(&split_counts), expected);
            scores.push(split_counts.score);
            let children = first..first + split.len() as u32;
            partitions.refine(children, &split_counts, &scan, |_, _, _| ());
        }
        prop_assert_eq!(scores[0], scores[1]);
        in_table_order += usize::from(both[0].is_in_table_order());
        attributes[at].specialize(concept, &split);
        for partitions in &both {
            check_records(partitions, &attributes, &case)?;
        }
        if case.suppress {
            let all: Vec<_> = both[0].non_empty().collect();
            let Some(&partition) = all.get(which % all.len().max(1)) else {
                continue;
            };
            for row in both[0].suppress(partition) {
                case.suppressed[row as usize] = true;
            }
            both[1].suppress(partition);
        }
    }
    Ok(in_table_order)
}

/// Checks that the partitions are the distinct records with their rows.
fn check_records(
    partitions: &Partitions,
    attributes: &[Attribute<'_>],
    case: &LayoutCase,
) -> Result<(), TestCaseError> {
    let record = |partition| {
        let concept = |(at, attribute): (usize, &Attribute<'_>)| {
            let codes = &attribute.concept(partitions.concept(partition, at)).codes;
            (codes.start, codes.end)
        };
        attributes
            .iter()
            .enumerate()
            .map(concept)
            .collect::<PartitionRecord>()
    };
    let rows = |partition| partitions.rows(partition).into_iter().collect();
    let actual: BTreeMap<PartitionRecord, BTreeSet<u32>> = partitions
        .non_empty()
        .map(|partition| (record(partition), rows(partition)))
        .collect();
    let expected = records(case, attributes);
    let squares: usize = expected.values().map(|rows| rows.len().pow(2)).sum();
    prop_assert_eq!(actual, expected);
    prop_assert_eq!(partitions.squares(), squares as u128);
    let mut greatest = 0.0f64;
    for partition in partitions.non_empty() {
        let rows = partitions.rows(partition);
        prop_assert!(rows.is_sorted());
        prop_assert_eq!(rows.len() as u32, partitions.size(partition));
        let (holding, of) = greatest_share(case, &rows);
        greatest = greatest.max(holding as f64 / of as f64);
    }
    // The count of the first partition is passed to `Partitions::new`, which these tests leave out.
    if partitions.count() > 1 {
        prop_assert!((partitions.extremes().1.as_f64() - greatest).abs() < 1e-12);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn partitions_are_the_distinct_records_in_both_layouts(case in case()) {
        check(case)?;
    }
}

#[test]
fn few_partitions_of_many_rows_keep_the_table_order() {
    let codes = |step: u32| (0..200).map(|row| row * step % NUMBERS).collect();
    let case = LayoutCase {
        codes: vec![codes(1), codes(2), codes(4)],
        sensitive: vec![
            (0..200)
                .map(|row| if row % 5 == 4 { NULL_CODE } else { row % 5 })
                .collect(),
        ],
        splits: vec![(0, 0, 2), (1, 0, 2), (0, 1, 2)],
        suppressed: vec![false; 200],
        suppress: false,
        excludes_missing: true,
    };
    assert_eq!(check(case).unwrap(), 3);
}
