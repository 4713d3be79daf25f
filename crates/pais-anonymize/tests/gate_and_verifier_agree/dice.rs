//! Pseudorandom choices, the same for a number on every machine.

use pais_core::split_mix::SplitMix64;

/// The choices of a case.
pub(crate) struct Dice(SplitMix64);

impl Dice {
    /// The choices of a case.
    pub(crate) fn new(case: u64) -> Self {
        Self(SplitMix64(case))
    }

    /// A number below `count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.0.below(count)
    }

    /// One of the items.
    pub(crate) fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    /// True in `times` of `of` cases.
    pub(crate) fn chance(&mut self, times: usize, of: usize) -> bool {
        self.below(of) < times
    }
}
