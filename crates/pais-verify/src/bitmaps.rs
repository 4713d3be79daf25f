//! Groups as bitmaps: one bit for each record, one bitmap for each value of each attribute.
//!
//! The most frequent value of an attribute has no bitmap: the records with it are those in no
//! other bitmap of the attribute, and their number is the rest.
//!
//! There are two sets of bitmaps. The first has one bit for each record. The second has one bit
//! for each sensitive value of each record, and is divided into one segment for each sensitive
//! value. So the bits set in a segment are the records of a group that have that value.

use std::ops::Range;

use super::bits::{self, Compress};

/// The bitmaps of some records, for the attributes in which they differ.
#[derive(Default)]
pub(super) struct GroupBitmaps {
    /// Number of the first bitmap of each attribute; the end last.
    pub(super) first: Vec<usize>,
    /// One bit for each record, in a single segment.
    pub(super) records: BitmapSet,
    /// One bit for each sensitive value of each record, in one segment for each value.
    pub(super) sensitive: BitmapSet,
}

/// Bitmaps of the same length, divided into segments that start at a word.
#[derive(Default)]
pub(super) struct BitmapSet {
    /// Number of bits of each segment.
    sizes: Vec<u32>,
    /// End of each segment, in words.
    ends: Vec<usize>,
    /// The bitmaps, one after another.
    bits: Vec<u64>,
}

/// A value of an attribute: one with a bitmap, or the one without.
#[derive(Clone)]
pub(super) enum AttributeValue {
    /// The bitmap's number.
    Bitmap(usize),
    /// The value without a bitmap; the numbers of the attribute's bitmaps.
    WithoutBitmap(Range<usize>),
}

/// The counts of [`GroupBitmaps::count`], of the attributes from number `from` on.
#[derive(Clone, Copy)]
pub(super) struct BitmapCounts<'a> {
    pub(super) from: usize,
    pub(super) counts: &'a [u32],
}

/// The records of a group, and their sensitive values.
#[derive(Clone, Copy)]
pub(super) struct GroupMasks<'a> {
    pub(super) records: &'a [u64],
    pub(super) sensitive: &'a [u64],
}

impl GroupBitmaps {
    /// Number of attributes.
    pub(super) fn attributes(&self) -> usize {
        self.first.len() - 1
    }

    /// The bitmaps of an attribute, by number.
    pub(super) fn of_attribute(&self, attribute: usize) -> Range<usize> {
        self.first[attribute]..self.first[attribute + 1]
    }

    /// Counts the records in `mask` with each value that has a bitmap, for the attributes from
    /// number `from` on, into `counts`.
    pub(super) fn count(&self, mask: &[u64], from: usize, counts: &mut Vec<u32>) {
        let first = self.first[from];
        counts.clear();
        counts.resize(self.first[self.attributes()] - first, 0);
        let bits = &self.records.bits[first * self.records.words()..];
        bits::count(mask, bits, counts);
    }

    /// The values of an attribute that some of `records` records have, with their numbers.
    pub(super) fn values(
        &self,
        attribute: usize,
        counted: BitmapCounts<'_>,
        records: u32,
    ) -> impl Iterator<Item = (AttributeValue, u32)> {
        let bitmaps = self.of_attribute(attribute);
        let first = self.first[counted.from];
        let counts = &counted.counts[bitmaps.start - first..bitmaps.end - first];
        let rest = records - counts.iter().sum::<u32>();
        let with_bitmap = bitmaps.clone().map(AttributeValue::Bitmap);
        let values = with_bitmap.zip(counts.iter().copied());
        let values = values.chain([(AttributeValue::WithoutBitmap(bitmaps), rest)]);
        values.filter(|(_, records)| *records > 0)
    }

    /// Sets `into` to the records in the masks only, with the attributes in which they differ:
    /// `varying`.
    pub(super) fn pack(
        &self,
        masks: GroupMasks<'_>,
        counted: BitmapCounts<'_>,
        varying: &[usize],
        into: &mut Self,
    ) {
        let BitmapCounts { from, counts } = counted;
        let mut kept = Vec::with_capacity(counts.len());
        into.first.clear();
        for &attribute in varying {
            into.first.push(kept.len());
            let is_used = |&bitmap: &usize| counts[bitmap - self.first[from]] > 0;
            kept.extend(self.of_attribute(attribute).filter(is_used));
        }
        into.first.push(kept.len());
        self.records.pack(masks.records, &kept, &mut into.records);
        self.sensitive
            .pack(masks.sensitive, &kept, &mut into.sensitive);
    }
}

impl BitmapSet {
    /// Resets to this number of bitmaps without a bit set, with segments of these sizes in bits.
    /// Segments of size 0 are left out.
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

    /// Length of a bitmap, in words.
    pub(super) fn words(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// First bit of a segment.
    pub(super) fn start(&self, segment: usize) -> usize {
        let before = segment.checked_sub(1).map_or(0, |before| self.ends[before]);
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

    /// Sets `mask` to the mask of all bits.
    pub(super) fn mask_all(&self, mask: &mut Vec<u64>) {
        mask.clear();
        for (&size, &end) in self.sizes.iter().zip(&self.ends) {
            mask.resize(end, u64::MAX);
            mask[end - 1] >>= (64 - size % 64) % 64;
        }
    }

    /// Sets `into` to the bits of `mask` with a value.
    pub(super) fn select(&self, mask: &[u64], value: &AttributeValue, into: &mut Vec<u64>) {
        into.clear();
        match value {
            AttributeValue::Bitmap(bitmap) => {
                let pairs = mask.iter().zip(self.bitmap(*bitmap));
                into.extend(pairs.map(|(mask, bits)| mask & bits));
            }
            AttributeValue::WithoutBitmap(bitmaps) => {
                into.extend_from_slice(mask);
                for bitmap in bitmaps.clone() {
                    for (mask, bits) in into.iter_mut().zip(self.bitmap(bitmap)) {
                        *mask &= !bits;
                    }
                }
            }
        }
    }

    /// The greatest number of bits of a mask in one segment.
    pub(super) fn most(&self, mask: &[u64]) -> u32 {
        bits::most(mask, &self.ends)
    }

    fn bitmap(&self, bitmap: usize) -> &[u64] {
        &self.bits[bitmap * self.words()..][..self.words()]
    }

    fn pack(&self, mask: &[u64], kept: &[usize], into: &mut Self) {
        let mut start = 0;
        let sizes = self.ends.iter().map(|&end| {
            let segment = &mask[start..end];
            start = end;
            segment.iter().map(|word| word.count_ones()).sum()
        });
        into.clear(kept.len(), sizes);
        let (words, into_words) = (self.words(), into.words());
        if into_words == 0 {
            return;
        }
        let (mut start, mut at) = (0, 0);
        for &end in &self.ends {
            // Each segment starts at a word.
            let mut bit = at * 64;
            for word in (start..end).filter(|&word| mask[word] != 0) {
                let compress = Compress::new(mask[word]);
                let (to, shift) = (bit / 64, bit % 64);
                bit += mask[word].count_ones() as usize;
                let spills = bit > (to + 1) * 64;
                let targets = into.bits.chunks_exact_mut(into_words);
                for (&bitmap, target) in kept.iter().zip(targets) {
                    let bits = compress.apply(self.bits[bitmap * words + word]);
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
