//! The test at the root beside a computation of every test from its definition.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::choice::LEAST_GAIN;
use super::examples::{Domain, Examples};
use super::tests::{examples, grow};

/// Numbers that are computed in different ways differ by less.
const TOLERANCE: f64 = 1e-5;

/// A test computed from its definition: its attribute, the last code below its threshold, gain and
/// split information, in bits over all rows.
#[derive(Clone, Copy, Debug)]
struct Tested {
    position: usize,
    last_low: Option<u32>,
    gain: f64,
    split: f64,
}

fn entropy(labels: &[u32]) -> f64 {
    let mut counts: BTreeMap<u32, f64> = BTreeMap::new();
    for label in labels {
        *counts.entry(*label).or_default() += 1.0;
    }
    let total = labels.len() as f64;
    counts
        .values()
        .map(|count| -count * (count / total).log2())
        .sum()
}

/// A test that gives each row a branch; without its gain's cost. `None` where fewer than two
/// branches have two rows.
fn tested(examples: &Examples, branches: &[u32]) -> Option<(f64, f64)> {
    let mut parts: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (branch, class) in branches.iter().zip(&examples.classes) {
        parts.entry(*branch).or_default().push(*class);
    }
    let within: f64 = parts.values().map(|classes| entropy(classes)).sum();
    let large = parts.values().filter(|classes| classes.len() >= 2).count();
    (large >= 2).then(|| (entropy(&examples.classes) - within, entropy(branches)))
}

/// The tests of an attribute that may be chosen.
fn tests_of(examples: &Examples, position: usize) -> Vec<Tested> {
    let attribute = &examples.attributes[position];
    let codes = &examples.codes(position);
    let Domain::Ordered(values) = &attribute.domain else {
        let found = tested(examples, codes).into_iter();
        let test = |(gain, split)| Tested {
            position,
            last_low: None,
            gain,
            split,
        };
        return found.map(test).collect();
    };
    let missing = values.len() as u32;
    let branch = |last_low: u32| {
        let branch = move |&code: &u32| match code {
            code if code == missing => 2,
            code => u32::from(code > last_low),
        };
        codes.iter().map(branch).collect::<Vec<u32>>()
    };
    let known = codes.iter().filter(|code| **code < missing).count();
    let least = (0.1 * known as f64 / f64::from(examples.class_count)).clamp(2.0, 25.0);
    let is_admitted = |last_low: &u32| {
        let low = codes.iter().filter(|code| *code <= last_low).count();
        codes.contains(last_low) && low as f64 >= least && (known - low) as f64 >= least
    };
    let thresholds: Vec<u32> = (0..missing).filter(is_admitted).collect();
    let cost = (thresholds.len() as f64).log2();
    let of_threshold = |&last_low: &u32| {
        let (gain, split) = tested(examples, &branch(last_low))?;
        Some(Tested {
            position,
            last_low: Some(last_low),
            gain: gain - cost,
            split,
        })
    };
    let all: Vec<Tested> = thresholds.iter().filter_map(of_threshold).collect();
    let most = all.iter().map(|it| it.gain).fold(f64::MIN, f64::max);
    let mut best: Vec<Tested> = all
        .into_iter()
        .filter(|it| it.gain >= most - TOLERANCE)
        .collect();
    if known >= 2 && codes.len() - known >= 2 {
        let (gain, split) = tested(examples, &branch(missing)).unwrap();
        if gain > most + TOLERANCE {
            best.clear();
        }
        if gain > most - TOLERANCE {
            let last_low = Some(missing - 1);
            best.push(Tested {
                position,
                last_low,
                gain,
                split,
            });
        }
    }
    best
}

proptest! {
    #[test]
    fn the_root_has_the_greatest_gain_ratio_among_tests_of_average_gain(examples in examples()) {
        let tree = grow(&examples);
        let positions = 0..examples.attributes.len();
        let all: Vec<Tested> = positions.flat_map(|at| tests_of(&examples, at)).collect();
        let gaining = |it: &&Tested| it.gain > LEAST_GAIN;
        prop_assume!(all.iter().all(|it| (it.gain - LEAST_GAIN).abs() > TOLERANCE));
        let Some(split) = &tree.nodes[0].split else {
            let is_pure = tree.nodes[0].errors <= 1 || examples.len() < 4;
            prop_assert!(is_pure || !all.iter().any(|it| gaining(&it)));
            return Ok(());
        };
        let (position, last_low) = (split.test.position, split.test.last_low);
        // Codes between two that occur are on the same side as the lower one.
        let codes = &examples.codes(position);
        let below = |last: u32| codes.iter().copied().filter(|code| *code <= last).max();
        let chosen = all.iter().find(|it| {
            it.position == position && it.last_low.and_then(below) == last_low.and_then(below)
        });
        let chosen = chosen.unwrap();
        // One test for each attribute: the mean is over attributes.
        let mut of_attribute: BTreeMap<usize, f64> = BTreeMap::new();
        for it in all.iter().filter(gaining) {
            let has_many = match examples.attributes[it.position].domain {
                Domain::Nominal(values) => f64::from(values) >= 0.3 * examples.len() as f64,
                Domain::Ordered(_) => false,
            };
            if !has_many {
                of_attribute.insert(it.position, it.gain);
            }
        }
        if of_attribute.is_empty() {
            return Ok(());
        }
        let mean = of_attribute.values().sum::<f64>() / of_attribute.len() as f64;
        prop_assert!(chosen.gain >= mean - LEAST_GAIN - TOLERANCE, "{chosen:?} {mean}");
        // Thresholds of about the same gain can have different ratios; attributes are compared by
        // the lowest one.
        let mut first: BTreeMap<usize, f64> = BTreeMap::new();
        for it in all.iter().filter(|it| it.gain >= mean + TOLERANCE) {
            let ratio = first.entry(it.position).or_insert(f64::MAX);
            *ratio = ratio.min(it.gain / it.split);
        }
        let most = first.values().copied().fold(0.0, f64::max);
        prop_assert!(chosen.gain / chosen.split >= most - TOLERANCE, "{chosen:?} {most}");
    }
}
