//! The test of a node: gain ratio among the tests with at least average gain.

use super::counts::CodeCounts;
use super::examples::{Examples, Test};
use super::gain::{Logs, bits};

/// Minimum number of examples that at least two branches have.
pub(super) const LEAST: u64 = 2;

/// A smaller gain counts as none, in bits over all examples of a node; rounding errors are far below it.
pub(super) const LEAST_GAIN: f64 = 1e-3;

/// A nominal attribute with at least this share of values among the examples does not count in the
/// average gain, unless all do.
const MANY_VALUES: f64 = 0.3;

/// A test with its value, in bits over all examples of the node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    /// What the classes lose of their information.
    pub(super) gain: f64,
    /// Information of the branches.
    pub(super) split: f64,
    pub(super) test: Test,
}

/// A node whose tests are compared.
#[derive(Clone, Copy)]
pub(super) struct TestedNode<'a> {
    /// Weight of each class.
    pub(super) classes: &'a [u64],
    /// Their information.
    pub(super) information: i64,
    pub(super) logs: &'a Logs,
}

/// The test by the values of a nominal attribute that occur at a node; `None` where fewer than two of
/// them have [`LEAST`] examples.
pub(super) fn value_test(
    position: usize,
    counts: &CodeCounts,
    node: TestedNode<'_>,
) -> Option<Candidate> {
    let logs = node.logs;
    let (mut large, mut total, mut within, mut parts) = (0, 0, 0, 0);
    for place in 0..counts.len() {
        let classes = counts.classes(place).iter();
        let weights = classes.map(|it| u64::from(it.weight));
        let weight: u64 = weights.clone().sum();
        let of_weight = logs.of(weight);
        large += usize::from(weight >= LEAST);
        total += weight;
        within += (of_weight - weights.map(|weight| logs.of(weight)).sum::<i64>()).max(0);
        parts += of_weight;
    }
    (large >= 2).then(|| Candidate {
        gain: bits(node.information - within),
        split: bits(logs.of(total) - parts),
        test: Test {
            position,
            last_low: None,
        },
    })
}

/// The test of the greatest gain ratio among those with at least average gain; ties go to the first. `all` is
/// the weight of the examples of the whole tree.
pub(super) fn choose(examples: &Examples, candidates: &[Candidate], all: u64) -> Option<Candidate> {
    let gaining = || {
        candidates
            .iter()
            .filter(|candidate| candidate.gain > LEAST_GAIN)
    };
    let has_many_values = |candidate: &&Candidate| {
        let Test { position, last_low } = candidate.test;
        let values = examples.attributes[position].domain.code_count();
        last_low.is_none() && values as f64 >= MANY_VALUES * all as f64
    };
    let mean = |gains: &mut dyn Iterator<Item = &Candidate>| {
        let (count, sum) = gains.fold((0u32, 0.0), |(count, sum), it| (count + 1, sum + it.gain));
        (count > 0).then(|| sum / f64::from(count))
    };
    let mean = mean(&mut gaining().filter(|it| !has_many_values(it))).or(mean(&mut gaining()))?;
    let mut best: Option<(f64, Candidate)> = None;
    for candidate in gaining() {
        if candidate.gain < mean - LEAST_GAIN || candidate.split <= LEAST_GAIN {
            continue;
        }
        let ratio = candidate.gain / candidate.split;
        if best.is_none_or(|(most, _)| ratio > most) {
            best = Some((ratio, *candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}
