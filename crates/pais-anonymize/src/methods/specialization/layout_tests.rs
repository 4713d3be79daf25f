//! Partitions in both layouts, against records counted one by one.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use pais_core::model::{Confidence, MinimumAnonymity};
use pais_core::table::{Domain, NULL_CODE, QuasiIdentifier};

use super::attribute::{Attribute, Concept, Meaning, Split};
use super::partitions::{PartitionId, Partitions};
use super::requirement::{Requirement, SensitiveBound};
use super::scan::{Aim, Scan};
use super::sensitive::Sensitive;
use super::weights::{Item, Weights};

/// Numbers of a column.
const NUMBERS: u32 = 9;

#[derive(Clone, Debug)]
struct Case {
    /// By attribute and row.
    codes: Vec<Vec<u32>>,
    /// By sensitive column and row.
    sensitive: Vec<Vec<u32>>,
    /// What is split, one after the other: an attribute, which of its cut, and into how many.
    splits: Vec<(usize, usize, usize)>,
    /// By row, whether it is suppressed; some from the beginning.
    gone: Vec<bool>,
    /// Whether a partition is suppressed after each split.
    suppress: bool,
}

fn case() -> impl Strategy<Value = Case> {
    (1..60usize).prop_flat_map(|rows| {
        let column = |values| prop::collection::vec(0..values, rows);
        let cell = || prop_oneof![4 => 0..4u32, 1 => Just(NULL_CODE)];
        let cells = move || prop::collection::vec(cell(), rows);
        let gone = prop_oneof![
            Just(vec![false; rows]),
            prop::collection::vec(prop::bool::weighted(0.2), rows)
        ];
        (
            prop::collection::vec(column(NUMBERS), 3),
            prop::collection::vec(cells(), 0..4),
            prop::collection::vec((0..3usize, any::<usize>(), 2..6usize), 1..7),
            gone,
            prop::bool::weighted(0.3),
        )
            .prop_map(|(codes, sensitive, splits, gone, suppress)| Case {
                codes,
                sensitive,
                splits,
                gone,
                suppress,
            })
    })
}

fn columns(case: &Case) -> Vec<QuasiIdentifier> {
    let column = |(position, codes): (usize, &Vec<u32>)| QuasiIdentifier {
        name: format!("q{position}").into(),
        position,
        domain: Domain::Numeric {
            values: (0..NUMBERS).map(f64::from).collect(),
            lo: 0.0,
            hi: f64::from(NUMBERS),
            missing: false,
        },
        codes: codes.clone(),
    };
    case.codes.iter().enumerate().map(column).collect()
}

/// All values but the first of each column are sensitive.
fn requirement<'a>(case: &'a Case) -> Requirement<'a> {
    let bound = |(column, codes): (usize, &'a Vec<u32>)| {
        let first = 3 * column as u32;
        SensitiveBound {
            column: "s",
            codes,
            numbers: vec![NULL_CODE, first, first + 1, first + 2],
        }
    };
    Requirement {
        l: 2,
        k: MinimumAnonymity::new(2).unwrap(),
        c: Confidence::new(0.5).unwrap(),
        sensitive: case.sensitive.iter().enumerate().map(bound).collect(),
        sensitive_values: 3 * case.sensitive.len(),
    }
}

/// Cuts the codes of a concept into parts; `None` where it has too few.
fn split(concept: &Concept, parts: usize) -> Option<Split> {
    let codes = concept.codes.clone();
    let width = (codes.len() / parts).max(1) as u32;
    let mut starts: Vec<u32> = codes.clone().step_by(width as usize).take(parts).collect();
    (starts.len() > 1).then(|| {
        starts.push(codes.end);
        let child = |bounds: &[u32]| Concept {
            codes: bounds[0]..bounds[1],
            meaning: Meaning::Missing,
        };
        Split {
            children: starts.windows(2).map(child).collect(),
        }
    })
}

/// A partition: the concept of each attribute, as the range of its codes.
type Record = Vec<(u32, u32)>;

/// Rows by record.
fn records(case: &Case, attributes: &[Attribute<'_>]) -> BTreeMap<Record, BTreeSet<u32>> {
    let mut records: BTreeMap<Record, BTreeSet<u32>> = BTreeMap::new();
    for row in (0..case.gone.len()).filter(|&row| !case.gone[row]) {
        let concept = |attribute: &Attribute<'_>| {
            let code = attribute.column.codes[row];
            let concepts = attribute.cut.iter().map(|&id| attribute.concept(id));
            let mut holding = concepts.filter(|concept| concept.codes.contains(&code));
            let codes = holding.next().unwrap().codes.clone();
            (codes.start, codes.end)
        };
        let record = attributes.iter().map(concept).collect();
        records.entry(record).or_default().insert(row as u32);
    }
    records
}

/// What is weighed of a partition and child: rows, whether they meet K and C, and by sensitive
/// value how many rows have it.
type Weighed = (PartitionId, u32, bool, Vec<(u32, u32)>);

/// What was weighed, by child.
fn weighed(weights: &Weights) -> Vec<Vec<Weighed>> {
    let item = |item: &Item| {
        (
            item.partition,
            item.size,
            item.meets,
            weights.holding(item).to_vec(),
        )
    };
    let children = weights.children().iter();
    children
        .map(|items| items.iter().map(item).collect())
        .collect()
}

/// The same, counted row by row.
fn expected(
    partitions: &Partitions,
    codes: &[u32],
    split: &Split,
    link: &[PartitionId],
    requirement: &Requirement<'_>,
) -> Vec<Vec<Weighed>> {
    let of_child = |child: &Concept| {
        let item = |&partition: &PartitionId| {
            let mut rows = partitions.rows(partition);
            rows.retain(|&row| child.codes.contains(&codes[row as usize]));
            let mut held: BTreeMap<u32, u32> = BTreeMap::new();
            for &row in &rows {
                requirement.sensitive_of(row as usize, |value| {
                    *held.entry(value as u32).or_default() += 1
                });
            }
            let most = held.values().copied().max().unwrap_or(0);
            let meets = requirement.allows(rows.len() as u64, u64::from(most));
            (!rows.is_empty()).then(|| {
                (
                    partition,
                    rows.len() as u32,
                    meets,
                    held.into_iter().collect(),
                )
            })
        };
        link.iter().filter_map(item).collect()
    };
    split.children.iter().map(of_child).collect()
}

/// Specializes as a case says, in both layouts; how many steps the one that may choose made in the
/// order of the table.
fn check(mut case: Case) -> Result<usize, TestCaseError> {
    let quasi_identifiers = columns(&case);
    let rows = case.gone.len();
    let sensitive = Sensitive::new(&requirement(&case), rows);
    let mut attributes: Vec<_> = quasi_identifiers
        .iter()
        .map(|column| Attribute::new(column, None))
        .collect();
    let gone: Vec<u32> = (0..rows as u32)
        .filter(|&row| case.gone[row as usize])
        .collect();
    let partitions = || Partitions::new(rows, &gone, attributes.len(), 0);
    let mut both = [partitions(), partitions()];
    both[1].sort();
    let mut aim = Aim::default();
    let mut in_table_order = 0;
    for (at, which, parts) in std::mem::take(&mut case.splits) {
        let requirement = requirement(&case);
        let concept = attributes[at].cut[which % attributes[at].cut.len()];
        let Some(split) = split(attributes[at].concept(concept), parts) else {
            continue;
        };
        aim.at(&attributes[at], &split);
        let first = attributes[at].concepts.len() as u32;
        let mut scores = Vec::new();
        for partitions in &mut both {
            let scan = Scan {
                column: &attributes[at],
                aim: &aim,
                width: split.children.len(),
                sensitive: &sensitive,
                requirement: &requirement,
            };
            let term = |size, squares: u128| size as f64 - squares as f64;
            let link = partitions.link(at, concept).to_vec();
            let weights = Weights::new(partitions, (at, concept), &scan, term);
            let expected = expected(partitions, &case.codes[at], &split, &link, &requirement);
            prop_assert_eq!(weighed(&weights), expected);
            scores.push(weights.score());
            let children = first..first + split.children.len() as u32;
            partitions.refine(concept, children, &weights, &scan, |_, _, _| ());
        }
        prop_assert_eq!(scores[0], scores[1]);
        in_table_order += usize::from(both[0].is_in_table_order());
        attributes[at].specialize(concept, &split);
        for partitions in &both {
            stand(partitions, &attributes, &case)?;
        }
        if case.suppress {
            let all: Vec<_> = both[0].all().collect();
            let Some(&partition) = all.get(which % all.len().max(1)) else {
                continue;
            };
            for row in both[0].suppress(partition) {
                case.gone[row as usize] = true;
            }
            both[1].suppress(partition);
        }
    }
    Ok(in_table_order)
}

/// Whether partitions are the distinct records with their rows.
fn stand(
    partitions: &Partitions,
    attributes: &[Attribute<'_>],
    case: &Case,
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
            .collect::<Record>()
    };
    let rows = |partition| partitions.rows(partition).into_iter().collect();
    let standing: BTreeMap<Record, BTreeSet<u32>> = partitions
        .all()
        .map(|partition| (record(partition), rows(partition)))
        .collect();
    let expected = records(case, attributes);
    let squares: usize = expected.values().map(|rows| rows.len().pow(2)).sum();
    prop_assert_eq!(standing, expected);
    prop_assert_eq!(partitions.squares(), squares as u128);
    let requirement = requirement(case);
    let mut greatest = 0.0f64;
    for partition in partitions.all() {
        let rows = partitions.rows(partition);
        prop_assert!(rows.is_sorted());
        prop_assert_eq!(rows.len() as u32, partitions.size(partition));
        let mut held = [0u32; 9];
        for &row in &rows {
            requirement.sensitive_of(row as usize, |value| held[value] += 1);
        }
        let most = held.into_iter().max().unwrap_or(0);
        greatest = greatest.max(f64::from(most) / rows.len() as f64);
    }
    // What stands at first is told to the partitions, not counted by them.
    if partitions.count() > 1 {
        prop_assert!((partitions.extremes().1 - greatest).abs() < 1e-12);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500,
        rng_seed: proptest::test_runner::RngSeed::Fixed(4), ..ProptestConfig::default() })]

    #[test]
    fn partitions_are_the_records_in_whatever_order_the_rows_are(case in case()) {
        check(case)?;
    }
}

#[test]
fn a_few_partitions_of_many_rows_stay_in_the_order_of_the_table() {
    let codes = |step: u32| (0..200).map(|row| row * step % NUMBERS).collect();
    let case = Case {
        codes: vec![codes(1), codes(2), codes(4)],
        sensitive: vec![
            (0..200)
                .map(|row| if row % 5 == 4 { NULL_CODE } else { row % 5 })
                .collect(),
        ],
        splits: vec![(0, 0, 2), (1, 0, 2), (0, 1, 2)],
        gone: vec![false; 200],
        suppress: false,
    };
    assert_eq!(check(case).unwrap(), 3);
}
