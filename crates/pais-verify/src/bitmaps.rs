//! Groups as bitmaps: one bit a record, one bitmap for each value of each attribute.
//!
//! The most frequent value of an attribute has none: the records with it are those in no other
//! bitmap of the attribute, and their number is what the others leave.
//!
//! There are two sheets of bitmaps. On the first stand the records. On the second stand those of
//! them that hold a sensitive value, once for each that they hold, ordered by it: so that bits
//! counted from one end of a sensitive value to the next are the records of a group that hold it.

use std::ops::Range;

use super::compress::Compress;
use super::popcount;

/// Some records, by their values of the attributes that tell them apart.
#[derive(Default)]
pub(super) struct Bitmaps {
    /// Number of the first bitmap of each attribute; the end last.
    pub(super) first: Vec<usize>,
    pub(super) records: Sheet,
    pub(super) sensitive: Sheet,
}

/// Bitmaps of one length.
#[derive(Default)]
pub(super) struct Sheet {
    /// Bits in each part, and its end in words.
    sizes: Vec<u32>,
    ends: Vec<usize>,
    bits: Vec<u64>,
}

/// A value of an attribute: that of a bitmap, or the one that has none.
#[derive(Clone)]
pub(super) enum Choice {
    /// The bitmap's number.
    Bitmap(usize),
    /// The numbers of the attribute's bitmaps.
    Rest(Range<usize>),
}

impl Bitmaps {
    /// Number of attributes.
    pub(super) fn attributes(&self) -> usize {
        self.first.len() - 1
    }

    /// The bitmaps of an attribute, by number.
    pub(super) fn of(&self, attribute: usize) -> Range<usize> {
        self.first[attribute]..self.first[attribute + 1]
    }

    /// Counts the records in `mask` with each value that has a bitmap, of the attributes from
    /// number `from` on.
    pub(super) fn count(&self, mask: &[u64], from: usize, counts: &mut Vec<u32>) {
        let first = self.first[from];
        counts.clear();
        counts.resize(self.first[self.attributes()] - first, 0);
        let bits = &self.records.bits[first * self.records.words()..];
        popcount::count(mask, bits, counts);
    }

    /// Makes `into` the records of the masks alone, with those attributes that tell them apart:
    /// `varying`, with `counts` from [`Self::count`].
    pub(super) fn pack(
        &self,
        (records, sensitive): (&[u64], &[u64]),
        (from, counts): (usize, &[u32]),
        varying: &[usize],
        into: &mut Self,
    ) {
        let mut kept = Vec::with_capacity(counts.len());
        into.first.clear();
        for &attribute in varying {
            into.first.push(kept.len());
            let held = |&bitmap: &usize| counts[bitmap - self.first[from]] > 0;
            kept.extend(self.of(attribute).filter(held));
        }
        into.first.push(kept.len());
        self.records.pack(records, &kept, &mut into.records);
        self.sensitive.pack(sensitive, &kept, &mut into.sensitive);
    }
}

impl Sheet {
    /// Makes room for so many bitmaps, without a bit set, of parts of these sizes; a part
    /// without a bit is none.
    pub(super) fn clear(&mut self, bitmaps: usize, sizes: impl Iterator<Item = u32>) {
        self.sizes.clear();
        self.sizes.extend(sizes.filter(|&size| size > 0));
        self.ends.clear();
        let mut end = 0;
        for &size in &self.sizes {
            end += size.div_ceil(64) as usize;
            self.ends.push(end);
        }
        self.bits.clear();
        self.bits.resize(bitmaps * end, 0);
    }

    /// Words of a bitmap.
    pub(super) fn words(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// First bit of a part.
    pub(super) fn start(&self, part: usize) -> usize {
        let before = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        before * 64
    }

    /// Sets the same bits of some bitmaps.
    pub(super) fn set(&mut self, bitmaps: impl Iterator<Item = u32>, bits: Range<usize>) {
        let words = self.words();
        for bitmap in bitmaps {
            let first = bitmap as usize * words;
            for bit in bits.clone() {
                self.bits[first + bit / 64] |= 1 << (bit % 64);
            }
        }
    }

    /// Makes `mask` that of all bits.
    pub(super) fn mask_all(&self, mask: &mut Vec<u64>) {
        mask.clear();
        for (&size, &end) in self.sizes.iter().zip(&self.ends) {
            mask.resize(end, u64::MAX);
            mask[end - 1] >>= (64 - size % 64) % 64;
        }
    }

    /// Makes `into` what has a value of what is in `mask`.
    pub(super) fn choose(&self, mask: &[u64], choice: &Choice, into: &mut Vec<u64>) {
        into.clear();
        match choice {
            Choice::Bitmap(bitmap) => {
                let pairs = mask.iter().zip(self.bitmap(*bitmap));
                into.extend(pairs.map(|(mask, bits)| mask & bits));
            }
            Choice::Rest(bitmaps) => {
                into.extend_from_slice(mask);
                for bitmap in bitmaps.clone() {
                    for (mask, bits) in into.iter_mut().zip(self.bitmap(bitmap)) {
                        *mask &= !bits;
                    }
                }
            }
        }
    }

    /// Most bits of a mask in one part.
    pub(super) fn most(&self, mask: &[u64]) -> u32 {
        popcount::most(mask, &self.ends)
    }

    fn bitmap(&self, bitmap: usize) -> &[u64] {
        &self.bits[bitmap * self.words()..][..self.words()]
    }

    fn pack(&self, mask: &[u64], kept: &[usize], into: &mut Self) {
        let mut start = 0;
        let parts = self.ends.iter().map(|&end| {
            let part = &mask[start..end];
            start = end;
            part.iter().map(|word| word.count_ones()).sum()
        });
        into.clear(kept.len(), parts);
        let (words, into_words) = (self.words(), into.words());
        if into_words == 0 {
            return;
        }
        let (mut start, mut at) = (0, 0);
        for &end in &self.ends {
            // Each part begins with a word.
            let mut bit = at * 64;
            for word in (start..end).filter(|&word| mask[word] != 0) {
                let compress = Compress::new(mask[word]);
                let (to, shift) = (bit / 64, bit % 64);
                bit += mask[word].count_ones() as usize;
                let spills = bit > (to + 1) * 64;
                let targets = into.bits.chunks_exact_mut(into_words);
                for (&bitmap, target) in kept.iter().zip(targets) {
                    let bits = compress.of(self.bits[bitmap * words + word]);
                    target[to] |= bits << shift;
                    if spills {
                        target[to + 1] |= bits >> (64 - shift);
                    }
                }
            }
            at = bit.div_ceil(64);
            start = end;
        }
    }
}
