//! The search with bitmaps, for tables of many attributes in which hardly any two records agree.
//!
//! Profiles save nothing there: a group has about as many profiles as records, and each profile
//! is read for each attribute. Bitmaps process 64 records at a time. A group is a mask over the
//! bitmaps. The mask is narrowed attribute by attribute, and the last two attributes of a qid are
//! only counted. The count of an attribute's most frequent value is the group's count less the
//! counts of the other values.
//!
//! Four measures reduce the work:
//! - Once a mask has lost half of its bits, the remaining records are packed into shorter bitmaps, which are
//!   used for all qids below.
//! - An attribute with a single value in a group does not split it and is left out. If too few
//!   attributes are left for a qid of the greatest size, then all of them together have the
//!   extremes, as in the whole table.
//! - No part of a group has a sensitive value more often than the group. Sensitive values are
//!   counted only for parts so small that this might matter: first those of the group, then
//!   those of the part.
//! - If no group below can be relevant, the search returns.
//!
//! Memory for each thread: one bit for each record of a group and each value of its attributes,
//! and one bit for each sensitive value of a record and each value of the attributes, at most
//! 32 MiB together. Bitmaps packed at one attribute of a qid are no larger than those above, and
//! usually half as large.

use super::bitmaps::{AttributeValue, BitmapCounts, BitmapSet, GroupBitmaps, GroupMasks};
use super::group_visitor::{FoundQids, GroupVisitor};
use super::profiles::{Grid, ProfileGroup, Share, ValueCount};
use super::unfolding::Unfolding;

/// A search over the qids of a group with bitmaps. It reports neither the qid of a group nor
/// which sensitive value is the most frequent.
pub(super) struct BitmapSearch<'g> {
    unfolding: Unfolding<'g>,
    bitmaps: GroupBitmaps,
    spare: Vec<Level>,
}

/// Working space for one attribute of a qid.
#[derive(Default)]
struct Level {
    counts: Vec<u32>,
    varying: Vec<usize>,
    packed: GroupBitmaps,
    whole: Masks,
    part: Masks,
    below: Vec<u32>,
    rest: Vec<u32>,
    scratch: Vec<u64>,
}

/// The masks of a group in both sets of bitmaps.
#[derive(Default)]
struct Masks {
    records: Vec<u64>,
    sensitive: Vec<u64>,
}

/// A group of records as a mask over bitmaps.
#[derive(Clone, Copy)]
struct BitmapGroup<'b> {
    bitmaps: &'b GroupBitmaps,
    mask: &'b [u64],
    /// Number of records; never 0.
    records: u32,
}

/// The records of a group with each sensitive value, and an upper bound of the most of them.
#[derive(Clone, Copy)]
struct ConfidenceBound<'b> {
    bitmaps: &'b BitmapSet,
    mask: &'b [u64],
    most: u32,
    /// Whether `most` is the exact number.
    exact: bool,
}

impl<'b> ConfidenceBound<'b> {
    /// The bound for a part of the group with `records` records.
    fn of_part(&self, mask: &'b [u64], records: u32) -> Self {
        Self {
            mask,
            most: self.most.min(records),
            exact: false,
            ..*self
        }
    }

    /// Whether a part with `records` records may be relevant for its confidence.
    fn may_matter(&self, visitor: &impl GroupVisitor, records: u32) -> bool {
        let most = self.most.min(records);
        most > 0 && visitor.confidence_matters(Share { most, of: records })
    }

    /// As [`Self::may_matter`], but if the bound does not exclude it, first makes the bound exact
    /// by counting the group's records with each sensitive value.
    fn may_matter_counted(&mut self, visitor: &impl GroupVisitor, records: u32) -> bool {
        if self.may_matter(visitor, records) && !self.exact {
            self.most = self.bitmaps.most(self.mask);
            self.exact = true;
        }
        self.may_matter(visitor, records)
    }
}

impl Masks {
    fn take_all(&mut self, bitmaps: &GroupBitmaps) {
        bitmaps.records.mask_all(&mut self.records);
        bitmaps.sensitive.mask_all(&mut self.sensitive);
    }
}

impl<'g> BitmapSearch<'g> {
    pub(super) fn new(grid: &'g Grid, sensitive_values: usize) -> Self {
        Self {
            unfolding: Unfolding::new(grid, sensitive_values),
            bitmaps: GroupBitmaps::default(),
            spare: Vec::new(),
        }
    }

    /// Visits the relevant groups, and perhaps others, of the qids that extend the prefix by
    /// `need` of the attributes from number `from` on. Returns `false` without visiting any if
    /// searching the profiles is faster.
    pub(super) fn visit<V: GroupVisitor>(
        &mut self,
        visitor: &mut V,
        group: &ProfileGroup,
        from: usize,
        need: usize,
    ) -> bool {
        let records = group.records().iter().sum();
        let mut bitmaps = std::mem::take(&mut self.bitmaps);
        let unfolds = self.unfolding.unfold(group, from, &mut bitmaps);
        if unfolds {
            let mut level = self.spare.pop().unwrap_or_default();
            level.whole.take_all(&bitmaps);
            let group = BitmapGroup {
                bitmaps: &bitmaps,
                mask: &level.whole.records,
                records,
            };
            let bound = ConfidenceBound {
                bitmaps: &bitmaps.sensitive,
                mask: &level.whole.sensitive,
                most: records,
                exact: false,
            };
            self.narrow(visitor, group, 0, need, bound);
            self.spare.push(level);
        }
        self.bitmaps = bitmaps;
        unfolds
    }

    /// Visits the groups that result from a group by `need` more attributes from number `from`
    /// on.
    fn narrow<V: GroupVisitor>(
        &mut self,
        visitor: &mut V,
        group: BitmapGroup,
        from: usize,
        need: usize,
        mut bound: ConfidenceBound,
    ) {
        let BitmapGroup {
            bitmaps,
            mask,
            records,
        } = group;
        if visitor.should_stop()
            || !visitor.size_matters(1) && !bound.may_matter_counted(visitor, 1)
        {
            return;
        }
        let mut level = self.spare.pop().unwrap_or_default();
        bitmaps.count(mask, from, &mut level.counts);
        let first = bitmaps.first[from];
        let varies = |&attribute: &usize| {
            let cells = bitmaps.of_attribute(attribute);
            let counts = &level.counts[cells.start - first..cells.end - first];
            counts.iter().any(|&count| 0 < count && count < records)
        };
        level.varying.clear();
        level
            .varying
            .extend((from..bitmaps.attributes()).filter(varies));
        match need.min(level.varying.len()) {
            0 => {
                let counted = bound.may_matter_counted(visitor, records);
                visit(visitor, records, counted.then_some(bound.most));
            }
            1 => {
                let fewest = fewest(bitmaps, from, &level.counts, records);
                visit(visitor, fewest, None);
                if bound.may_matter_counted(visitor, fewest) {
                    let counts = &level.counts;
                    let counted = BitmapCounts { from, counts };
                    count_sensitive(visitor, group, counted, bound, &mut level.scratch);
                }
            }
            2 => count_two(visitor, group, from, &mut level, bound),
            need => self.narrow_more(visitor, group, from, need, &mut level, bound),
        }
        self.spare.push(level);
    }

    /// As [`Self::narrow`], where at least three more attributes vary and are needed.
    fn narrow_more<V: GroupVisitor>(
        &mut self,
        visitor: &mut V,
        group: BitmapGroup,
        mut from: usize,
        need: usize,
        level: &mut Level,
        bound: ConfidenceBound,
    ) {
        let Level {
            counts,
            varying,
            packed,
            whole,
            part,
            ..
        } = level;
        // Copies, which may refer to the packed bitmaps.
        let (mut group, mut bound) = (BitmapGroup { ..group }, ConfidenceBound { ..bound });
        let words = group.records.div_ceil(64) as usize;
        let attributes = group.bitmaps.attributes() - from;
        if words * 2 <= group.bitmaps.records.words() || varying.len() * 4 <= attributes * 3 {
            let masks = GroupMasks {
                records: group.mask,
                sensitive: bound.mask,
            };
            let counted = BitmapCounts { from, counts };
            group.bitmaps.pack(masks, counted, varying, packed);
            whole.take_all(packed);
            (group.bitmaps, group.mask) = (&*packed, &whole.records);
            (bound.bitmaps, bound.mask) = (&packed.sensitive, &whole.sensitive);
            from = 0;
            packed.count(&whole.records, from, counts);
            varying.clear();
            varying.extend(0..packed.attributes());
        }
        let bitmaps = group.bitmaps;
        let counted = BitmapCounts { from, counts };
        for &attribute in &varying[..=varying.len() - need] {
            for (value, records) in bitmaps.values(attribute, counted, group.records) {
                let (by_record, by_value) = (&mut part.records, &mut part.sensitive);
                bitmaps.records.select(group.mask, &value, by_record);
                bitmaps.sensitive.select(bound.mask, &value, by_value);
                let group = BitmapGroup {
                    bitmaps,
                    mask: by_record,
                    records,
                };
                let bound = bound.of_part(by_value, records);
                self.narrow(visitor, group, attribute + 1, need - 1, bound);
            }
        }
    }
}

/// Visits the groups that result from a group by two more attributes from number `from` on, of
/// which at least two vary.
fn count_two<V: GroupVisitor>(
    visitor: &mut V,
    group: BitmapGroup,
    from: usize,
    level: &mut Level,
    mut bound: ConfidenceBound,
) {
    let Level {
        counts,
        varying,
        part,
        below,
        rest: below_rest,
        scratch,
        ..
    } = level;
    let bitmaps = group.bitmaps;
    let first = bitmaps.first[from];
    // No attribute after the last varying one splits its parts.
    for &attribute in &varying[..varying.len() - 1] {
        if visitor.should_stop() {
            return;
        }
        let next = attribute + 1;
        let mut visit_part = |value: &AttributeValue, records: u32, below: &[u32]| {
            let fewest = fewest(bitmaps, next, below, records);
            visit(visitor, fewest, None);
            if !bound.may_matter_counted(visitor, fewest) {
                return;
            }
            let sensitive = &mut part.sensitive;
            bitmaps.sensitive.select(bound.mask, value, sensitive);
            let mut bound = bound.of_part(sensitive, records);
            if bound.may_matter_counted(visitor, fewest) {
                let group = BitmapGroup { records, ..group };
                let counted = BitmapCounts {
                    from: next,
                    counts: below,
                };
                count_sensitive(visitor, group, counted, bound, scratch);
            }
        };
        below_rest.clear();
        below_rest.extend_from_slice(&counts[bitmaps.first[next] - first..]);
        let mut rest = group.records;
        for bitmap in bitmaps.of_attribute(attribute) {
            let records = counts[bitmap - first];
            if records == 0 {
                continue;
            }
            rest -= records;
            let value = AttributeValue::Bitmap(bitmap);
            bitmaps
                .records
                .select(group.mask, &value, &mut part.records);
            bitmaps.count(&part.records, next, below);
            for (left, count) in below_rest.iter_mut().zip(&*below) {
                *left -= count;
            }
            visit_part(&value, records, below);
        }
        if rest > 0 {
            visit_part(
                &AttributeValue::WithoutBitmap(bitmaps.of_attribute(attribute)),
                rest,
                below_rest,
            );
        }
    }
}

/// Counts the sensitive values of the parts that one more of the counted attributes splits a group into, for the parts that may be relevant for their confidence.
fn count_sensitive<V: GroupVisitor>(
    visitor: &mut V,
    group: BitmapGroup,
    counted: BitmapCounts<'_>,
    bound: ConfidenceBound,
    scratch: &mut Vec<u64>,
) {
    for attribute in counted.from..group.bitmaps.attributes() {
        let values = group.bitmaps.values(attribute, counted, group.records);
        for (value, records) in values {
            if bound.may_matter(visitor, records) {
                bound.bitmaps.select(bound.mask, &value, scratch);
                visit(visitor, records, Some(bound.bitmaps.most(scratch)));
            }
        }
    }
}

/// Visits a group if it is relevant for its size, or if its sensitive values were counted.
fn visit<V: GroupVisitor>(visitor: &mut V, records: u32, most: Option<u32>) {
    if most.is_some() || visitor.size_matters(records) {
        // The number of the value is not used, because this search runs only for visitors without
        // `NAMES_VALUES`.
        let value = u32::MAX;
        let most = most.map(|records| ValueCount { value, records });
        visitor.group(records, most, || FoundQids::of(Vec::new()));
    }
}

/// Number of records of the smallest part that one of the attributes from number `from` on splits a group into;
/// at most the records of the group itself.
fn fewest(bitmaps: &GroupBitmaps, from: usize, counts: &[u32], records: u32) -> u32 {
    let first = bitmaps.first[from];
    // Sizes less one: an empty part wraps around to the greatest number and is ignored.
    let mut fewest = records - 1;
    for ends in bitmaps.first[from..].windows(2) {
        let mut rest = records;
        for &count in &counts[ends[0] - first..ends[1] - first] {
            rest -= count;
            fewest = fewest.min(count.wrapping_sub(1));
        }
        fewest = fewest.min(rest.wrapping_sub(1));
    }
    fewest + 1
}
