//! Operations on words of bits: the innermost loops of the search with bitmaps.
//!
//! x86-64 processors have had a bit-count instruction since 2008, but code compiled for all of them
//! must not use it without a check: the functions that count bits are compiled with and without it,
//! and the first call chooses.

use multiversion::multiversion;

/// Counts, for each bitmap of `bitmaps`, the bits that it has in common with `mask`. All bitmaps
/// must be as long as the mask, which must not be empty, and `counts` must have one entry for
/// each bitmap.
#[multiversion(targets("x86_64+popcnt"))]
pub(super) fn count(mask: &[u64], bitmaps: &[u64], counts: &mut [u32]) {
    count_inline(mask, bitmaps, counts);
}

/// The greatest number of bits of a mask in one of its segments; `ends` are the ends of the
/// segments, in words.
#[multiversion(targets("x86_64+popcnt"))]
pub(super) fn most(mask: &[u64], ends: &[usize]) -> u32 {
    most_inline(mask, ends)
}

#[inline(always)]
fn count_inline(mask: &[u64], bitmaps: &[u64], counts: &mut [u32]) {
    for (bitmap, count) in bitmaps.chunks_exact(mask.len()).zip(counts) {
        *count = mask
            .iter()
            .zip(bitmap)
            .map(|(mask, bitmap)| (mask & bitmap).count_ones())
            .sum();
    }
}

#[inline(always)]
fn most_inline(mask: &[u64], ends: &[usize]) -> u32 {
    let (mut most, mut start) = (0, 0);
    for &end in ends {
        let bits = mask[start..end].iter().map(|word| word.count_ones()).sum();
        most = most.max(bits);
        start = end;
    }
    most
}

/// Moves the bits of a word that are set in a mask to the low end of the word, in order (Warren,
/// *Hacker's Delight*, 7-4). What depends on the mask alone is computed once, in [`Self::new`].
pub(super) struct Compress {
    mask: u64,
    /// The bits that move by 1, 2, 4, … places.
    moves: [u64; 6],
}

impl Compress {
    pub(super) fn new(mask: u64) -> Self {
        let mut moves = [0; 6];
        let mut left = mask;
        // Bits whose next lower bit of the mask is 0.
        let mut zeros = !mask << 1;
        for (step, bits) in moves.iter_mut().enumerate() {
            let mut parity = zeros ^ zeros << 1;
            for shift in [2, 4, 8, 16, 32] {
                parity ^= parity << shift;
            }
            *bits = parity & left;
            left = (left ^ *bits) | *bits >> (1 << step);
            zeros &= !parity;
        }
        Self { mask, moves }
    }

    /// The bits of `word` under the mask, at the low end; all higher bits are 0.
    #[inline]
    pub(super) fn apply(&self, word: u64) -> u64 {
        let mut word = word & self.mask;
        for (step, bits) in self.moves.iter().enumerate() {
            let moving = word & bits;
            word = (word ^ moving) | moving >> (1 << step);
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instruction_and_the_portable_code_agree() {
        let word = |index: u64| {
            let mixed = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed.rotate_left(17) & mixed
        };
        for words in 1..9 {
            let mask: Vec<u64> = (0..words).map(word).collect();
            let bitmaps: Vec<u64> = (words..words * 6).map(word).collect();
            let (mut found, mut expected) = ([0; 5], [0; 5]);
            count(&mask, &bitmaps, &mut found);
            count_inline(&mask, &bitmaps, &mut expected);
            assert_eq!(found, expected);
            let ends: Vec<usize> = (1..=5).map(|segment| segment * mask.len()).collect();
            assert_eq!(most(&bitmaps, &ends), most_inline(&bitmaps, &ends));
        }
    }

    #[test]
    fn gathers_the_bits_under_the_mask() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005);
            state = state.wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 29
        };
        let mut masks = vec![0, 1, 1 << 63, u64::MAX, u64::MAX - 1];
        masks.extend((0..200).map(|_| next()));
        for mask in masks {
            let word = next();
            let kept = (0..64).filter(|bit| mask >> bit & 1 == 1);
            let expected = kept
                .enumerate()
                .fold(0, |bits, (place, bit)| bits | (word >> bit & 1) << place);
            assert_eq!(Compress::new(mask).apply(word), expected);
        }
    }
}
