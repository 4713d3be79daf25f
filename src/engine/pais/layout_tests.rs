//! Partitions in both layouts, against records counted one by one.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::domain::{Confidence, MinimumAnonymity};
use crate::table::{Domain, NULL_CODE, QuasiIdentifier};

use super::aim::Aim;
use super::attribute::{Attribute, Concept, Meaning, Split};
use super::partitions::{PartitionId, Partitions};
use super::requirement::{Requirement, SensitiveBound};
use super::sensitive::Sensitive;
use super::tally::Scan;
use super::weights::Weights;

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
    /// Rows suppressed from the beginning, by row.
    gone: Vec<bool>,
}

fn case() -> impl Strategy<Value = Case> {
    (1..60usize).prop_flat_map(|rows| {
        let column = |values| prop::collection::vec(0..values, rows);
        let gone = prop_oneof![
            Just(vec![false; rows]),
            prop::collection::vec(prop::bool::weighted(0.2), rows)
        ];
        (
            prop::collection::vec(column(NUMBERS), 3),
            prop::collection::vec(column(4), 0..3),
            prop::collection::vec((0..3usize, any::<usize>(), 2..6usize), 1..7),
            gone,
        )
            .prop_map(|(codes, sensitive, splits, gone)| Case {
                codes,
                sensitive,
                splits,
                gone,
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

/// What was weighed, by child: rows of each partition, and its sensitive values.
fn weighed(weights: &Weights) -> Vec<Vec<(PartitionId, u32, bool, Vec<(u32, u32)>)>> {
    let child = |items: &Vec<super::weights::Item>| {
        let item = |item: &super::weights::Item| {
            (
                item.partition,
                item.size,
                item.meets,
                weights.holding(item).to_vec(),
            )
        };
        items.iter().map(item).collect()
    };
    weights.children().iter().map(child).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500,
        rng_seed: proptest::test_runner::RngSeed::Fixed(4), ..ProptestConfig::default() })]

    #[test]
    fn partitions_are_the_records_in_whatever_order_the_rows_are(case in case()) {
        let quasi_identifiers = columns(&case);
        let requirement = requirement(&case);
        let rows = case.gone.len();
        let sensitive = Sensitive::new(&requirement, rows);
        let mut attributes: Vec<_> =
            quasi_identifiers.iter().map(|column| Attribute::new(column, None)).collect();
        let gone: Vec<u32> = (0..rows as u32).filter(|&row| case.gone[row as usize]).collect();
        let partitions = || Partitions::new(rows, &gone, attributes.len(), 0);
        let mut both = [partitions(), partitions()];
        both[1].sort();
        let mut aim = Aim::default();
        for &(at, which, parts) in &case.splits {
            let concept = attributes[at].cut[which % attributes[at].cut.len()];
            let Some(split) = split(attributes[at].concept(concept), parts) else { continue };
            aim.at(&attributes[at], &split);
            let first = attributes[at].concepts.len() as u32;
            let mut found = Vec::new();
            for partitions in &mut both {
                let scan = Scan {
                    column: &attributes[at],
                    aim: &aim,
                    width: split.children.len(),
                    sensitive: &sensitive,
                    requirement: &requirement,
                };
                let term = |size, squares: u128| size as f64 - squares as f64;
                let weights = Weights::new(partitions, (at, concept), &scan, term);
                found.push((weighed(&weights), weights.score()));
                let children = first..first + split.children.len() as u32;
                partitions.refine(concept, children, &weights, &scan, |_, _, _| ());
            }
            prop_assert_eq!(&found[0], &found[1]);
            attributes[at].specialize(concept, &split);

            let expected = records(&case, &attributes);
            for partitions in &both {
                let record = |partition| {
                    let concept = |at: usize| {
                        let codes = &attributes[at].concept(partitions.concept(partition, at)).codes;
                        (codes.start, codes.end)
                    };
                    (0..attributes.len()).map(concept).collect::<Record>()
                };
                let all = partitions.all();
                let standing: BTreeMap<Record, BTreeSet<u32>> = all
                    .map(|partition| (record(partition), partitions.rows(partition).into_iter().collect()))
                    .collect();
                prop_assert_eq!(&standing, &expected);
                prop_assert_eq!(partitions.count(), expected.len().max(1));
                for (partition, rows) in partitions.all().map(|partition| (partition, partitions.rows(partition))) {
                    prop_assert!(rows.is_sorted());
                    prop_assert_eq!(rows.len() as u32, partitions.size(partition));
                    let values = |row: u32| {
                        let mut values = Vec::new();
                        requirement.sensitive_of(row as usize, |value| values.push(value));
                        values
                    };
                    let mut held = [0u32; 6];
                    rows.iter().flat_map(|&row| values(row)).for_each(|value| held[value] += 1);
                    // Of all partitions, this one among them.
                    let share = f64::from(held.into_iter().max().unwrap()) / rows.len() as f64;
                    prop_assert!(partitions.extremes().1 >= share - 1e-12);
                }
            }
        }
    }
}
