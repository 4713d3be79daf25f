//! The error of a tree on rows that it was not trained on.

use pais_core::cancellation::Cancellation;
use pais_core::split_mix::SplitMix64;

use super::examples::RowExamples;
use super::gain::Logs;
use super::tree::Tree;

/// Rows to learn from and rows to test on, by number, both ascending.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Thirds {
    /// Two thirds, rounded down.
    pub(super) learning: Vec<u32>,
    /// The others.
    pub(super) testing: Vec<u32>,
}

/// Divides the numbers below `count` at random. The same seed divides the same count the same way, on every
/// machine and in every version.
pub(super) fn two_thirds(count: u32, seed: u64) -> Thirds {
    let mut random = SplitMix64(seed);
    let mut wanted = u64::from(count) * 2 / 3;
    let (mut learning, mut testing) = (Vec::with_capacity(wanted as usize), Vec::new());
    for number in 0..count {
        // Selection sampling: each subset of this size is equally likely.
        let below_left = ((random.next_u64() >> 32) * u64::from(count - number)) >> 32;
        if below_left < wanted {
            wanted -= 1;
            learning.push(number);
        } else {
            testing.push(number);
        }
    }
    Thirds { learning, testing }
}

/// The share of the tested rows to which a tree gives another class than theirs, from 0 to 1. `None` if there
/// are none, or none to learn from, and when stopped.
pub(super) fn held_out_error(
    rows: &RowExamples,
    thirds: &Thirds,
    logs: &Logs,
    cancellation: &Cancellation,
) -> Option<f64> {
    let Thirds { learning, testing } = thirds;
    let tree = Tree::learn(&rows.distinct, &rows.weights(learning), logs, cancellation)?;
    let wrong = tree.wrong(&rows.distinct, &rows.weights(testing));
    (!testing.is_empty()).then(|| wrong as f64 / testing.len() as f64)
}
