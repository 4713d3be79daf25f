//! Groups as bitmaps: one bit a record, one bitmap for each value of each attribute.
//!
//! The most frequent value of an attribute has none: the records with it are those in no other
//! bitmap of the attribute, and their number is what the others leave.

use std::ops::Range;

use super::popcount;

/// Some records, by their values of the attributes that tell them apart.
#[derive(Default)]
pub(super) struct Bitmaps {
    /// Number of each record among all that are looked at.
    pub(super) record: Vec<u32>,
    /// Words of a bitmap.
    words: usize,
    /// Number of the first bitmap of each attribute; the end last.
    pub(super) first: Vec<usize>,
    bits: Vec<u64>,
}

/// Records of [`Bitmaps`] that are a group.
#[derive(Clone, Copy)]
pub(super) struct Group<'b> {
    pub(super) bitmaps: &'b Bitmaps,
    /// A bit for each record.
    pub(super) mask: &'b [u64],
    /// Bits that are set: never 0.
    pub(super) records: u32,
}

/// A value of an attribute: that of a bitmap, or the one that has none.
#[derive(Clone, Copy)]
pub(super) enum Choice {
    Bitmap(usize),
    Rest(usize),
}

impl Bitmaps {
    /// Makes room for records of the numbers in `record` and the attributes of `first`, none
    /// of them with a value that has a bitmap.
    pub(super) fn clear(&mut self) {
        self.words = self.record.len().div_ceil(64);
        self.bits.clear();
        let bitmaps = self.first.last().copied().unwrap_or(0);
        self.bits.resize(bitmaps * self.words, 0);
    }

    /// Sets a value of the records from number `start` on.
    pub(super) fn set(&mut self, bitmap: usize, start: u32, records: u32) {
        let bits = &mut self.bits[bitmap * self.words..][..self.words];
        for record in start..start + records {
            bits[record as usize / 64] |= 1 << (record % 64);
        }
    }

    /// Number of attributes.
    pub(super) fn attributes(&self) -> usize {
        self.first.len() - 1
    }

    /// Words of a bitmap.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// The bitmaps of an attribute, by number.
    pub(super) fn of(&self, attribute: usize) -> Range<usize> {
        self.first[attribute]..self.first[attribute + 1]
    }

    /// Makes `mask` that of all records.
    pub(super) fn mask_all(&self, mask: &mut Vec<u64>) {
        mask.clear();
        mask.resize(self.words, u64::MAX);
        let beyond = self.words * 64 - self.record.len();
        if let Some(last) = mask.last_mut() {
            *last >>= beyond;
        }
    }

    fn bitmap(&self, bitmap: usize) -> &[u64] {
        &self.bits[bitmap * self.words..][..self.words]
    }
}

impl Group<'_> {
    /// Counts the records with each value that has a bitmap, of the attributes from number
    /// `from` on.
    pub(super) fn count(&self, from: usize, counts: &mut Vec<u32>) {
        let first = self.bitmaps.first[from];
        counts.clear();
        counts.resize(self.bitmaps.first[self.bitmaps.attributes()] - first, 0);
        let bits = &self.bitmaps.bits[first * self.bitmaps.words..];
        popcount::count(self.mask, bits, counts);
    }

    /// Makes `mask` that of the group's records with a value.
    pub(super) fn choose(&self, choice: Choice, mask: &mut Vec<u64>) {
        mask.clear();
        match choice {
            Choice::Bitmap(bitmap) => {
                let pairs = self.mask.iter().zip(self.bitmaps.bitmap(bitmap));
                mask.extend(pairs.map(|(mask, bits)| mask & bits));
            }
            Choice::Rest(attribute) => {
                mask.extend_from_slice(self.mask);
                for bitmap in self.bitmaps.of(attribute) {
                    for (mask, bits) in mask.iter_mut().zip(self.bitmaps.bitmap(bitmap)) {
                        *mask &= !bits;
                    }
                }
            }
        }
    }

    /// The numbers of the group's records.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + Clone + use<'_> {
        let words = self.mask.iter().zip(self.bitmaps.record.chunks(64));
        words.flat_map(|(&word, numbers)| {
            let rest = |word: &u64| Some(word & word.wrapping_sub(1));
            std::iter::successors(Some(word), rest)
                .take_while(|&word| word != 0)
                .map(|word| numbers[word.trailing_zeros() as usize])
        })
    }

    /// Makes `into` the group's records alone, with the bitmaps of those attributes that tell
    /// them apart: `varying`, with `counts` from [`Self::count`].
    pub(super) fn pack(&self, from: usize, counts: &[u32], varying: &[usize], into: &mut Bitmaps) {
        let source = self.bitmaps;
        into.record.clear();
        into.record.extend(self.numbers());
        let mut kept = Vec::new();
        into.first.clear();
        for &attribute in varying {
            into.first.push(kept.len());
            let held = |&bitmap: &usize| counts[bitmap - source.first[from]] > 0;
            kept.extend(source.of(attribute).filter(held));
        }
        into.first.push(kept.len());
        into.clear();
        let mut end = 0;
        let masks = self.mask.iter().enumerate();
        for (word, &mask) in masks.filter(|&(_, &mask)| mask != 0) {
            let compress = Compress::new(mask);
            let (at, shift) = (end / 64, end % 64);
            end += mask.count_ones() as usize;
            let spills = shift > 0 && end > (at + 1) * 64;
            let targets = into.bits.chunks_exact_mut(into.words);
            for (&bitmap, target) in kept.iter().zip(targets) {
                let bits = compress.of(source.bits[bitmap * source.words + word]);
                target[at] |= bits << shift;
                if spills {
                    target[at + 1] |= bits >> (64 - shift);
                }
            }
        }
    }
}

/// Gathers the bits of words under a mask at their low end (Warren, *Hacker's Delight*, 7-4):
/// what depends on the mask alone is found once for all words.
struct Compress {
    mask: u64,
    /// The bits that move by 1, 2, 4, … places.
    moves: [u64; 6],
}

impl Compress {
    fn new(mask: u64) -> Self {
        let mut moves = [0; 6];
        let mut left = mask;
        // Bits with a 0 of the mask below them.
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

    #[inline]
    fn of(&self, word: u64) -> u64 {
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
    fn compress_gathers_the_bits_under_the_mask() {
        let mut word = 1u64;
        let mut masks = vec![0, 1, 1 << 63, u64::MAX, u64::MAX - 1];
        for _ in 0..200 {
            word = word
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            masks.push(word ^ word >> 29);
        }
        for mask in masks {
            word = word
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let kept = (0..64).filter(|bit| mask >> bit & 1 == 1);
            let expected = kept
                .enumerate()
                .fold(0, |bits, (place, bit)| bits | (word >> bit & 1) << place);
            assert_eq!(Compress::new(mask).of(word), expected);
        }
    }
}
