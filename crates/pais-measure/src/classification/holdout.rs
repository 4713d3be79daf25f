//! The error of a tree on rows that it was not trained on.

use super::examples::RowExamples;
use super::gain::Logs;
use super::tree::Tree;
use pais_core::cancellation::Cancellation;

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
    let mut random = SplitMix(seed);
    let mut wanted = u64::from(count) * 2 / 3;
    let (mut learning, mut testing) = (Vec::with_capacity(wanted as usize), Vec::new());
    for number in 0..count {
        // Selection sampling: each subset of this size is equally likely.
        if random.below(u64::from(count - number)) < wanted {
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

/// SplitMix64 (Steele, Lea, Flood 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is below 2³².
    fn below(&mut self, bound: u64) -> u64 {
        ((self.next() >> 32) * bound) >> 32
    }
}
