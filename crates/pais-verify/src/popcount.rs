//! Bit counts over bitmaps: the innermost loops of the search with bitmaps.

/// Counts, for each bitmap of `bitmaps`, the bits that it has in common with `mask`. All bitmaps
/// must be as long as the mask, which must not be empty, and `counts` must have one entry for
/// each bitmap.
pub(super) fn count(mask: &[u64], bitmaps: &[u64], counts: &mut [u32]) {
    // x86-64 processors have had a bit-count instruction since 2008, but code compiled for all of
    // them must not use it without a check.
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("popcnt") {
        // SAFETY: the only requirement of the function is the `popcnt` instruction, and the line
        // above checks that the processor has it.
        return unsafe { count_by_instruction(mask, bitmaps, counts) };
    }
    count_inline(mask, bitmaps, counts);
}

/// The greatest number of bits of a mask in one of its segments; `ends` are the ends of the
/// segments, in words.
pub(super) fn most(mask: &[u64], ends: &[usize]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("popcnt") {
        // SAFETY: as in `count`.
        return unsafe { most_by_instruction(mask, ends) };
    }
    most_inline(mask, ends)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn count_by_instruction(mask: &[u64], bitmaps: &[u64], counts: &mut [u32]) {
    count_inline(mask, bitmaps, counts);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn most_by_instruction(mask: &[u64], ends: &[usize]) -> u32 {
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
