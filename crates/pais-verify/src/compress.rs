//! Bit compression, also called parallel bit extract.

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
    use super::Compress;

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
