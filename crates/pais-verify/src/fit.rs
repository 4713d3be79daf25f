//! Which finished records fit which raw ones, and what an index can know of it.

use std::ops::Range;

/// Bits for the labels of items; labels of the same bit are not distinguished.
pub(super) type ItemBits = [u64; 4];

/// Number of bits of [`ItemBits`].
pub(super) const ITEM_BITS: usize = 256;

/// What a finished value asks of a raw one. It may ask for less than a fit.
#[derive(Clone, Debug)]
pub(super) enum Need {
    /// A code in a range, or the other one.
    Codes(Range<u32>, Option<u32>),
    /// A set with an item of each label.
    Items(ItemBits),
}

/// A raw value as the index sees it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Have {
    /// Its code.
    Code(u32),
    /// The labels that cover an item of the set.
    Items(ItemBits),
}

/// Which finished records fit which raw ones. A record has one number for each column.
pub(super) trait Fit {
    /// Number of columns.
    fn columns(&self) -> usize;

    /// A raw number of a column.
    fn have(&self, column: usize, raw: u32) -> Have;

    /// What a finished number of a column asks for; `None` if it fits no raw value.
    fn need(&self, column: usize, finished: u32) -> Option<Need>;

    /// Whether a finished record fits a raw one in all columns.
    fn fits(&self, finished: &[u32], raw: &[u32]) -> bool;
}

/// The numbers of the bits that are set.
pub(super) fn ones(items: &ItemBits) -> impl Iterator<Item = usize> + '_ {
    items.iter().enumerate().flat_map(|(word, &bits)| {
        let next = move |bits: &u64| Some(bits & (bits - 1)).filter(|rest| *rest != 0);
        let from = Some(bits).filter(|bits| *bits != 0);
        std::iter::successors(from, next)
            .map(move |bits| word * 64 + bits.trailing_zeros() as usize)
    })
}

/// Whether all items that are needed are there.
pub(super) fn has_all(items: &ItemBits, needed: &ItemBits) -> bool {
    let mut words = items.iter().zip(needed);
    words.all(|(items, needed)| needed & !items == 0)
}
