//! Bit counts over bitmaps: the innermost loops of the search with bitmaps.
//!
//! x86-64 processors have had a bit-count instruction since 2008, but code compiled for all of them
//! must not use it without a check: each function is compiled with and without it, and the first
//! call chooses.

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
}
