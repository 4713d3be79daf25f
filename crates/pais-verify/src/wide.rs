//! The groups of qids over many attributes that hardly any two records agree on.
//!
//! There profiles save nothing: a group has about as many as it has records, and each is looked
//! at for each attribute. As bitmaps 64 records are looked at together. A group is a mask over
//! them; it is narrowed attribute by attribute, and the last two attributes of a qid are only
//! counted. The counts with the most frequent value of an attribute are what the other values
//! leave of the group's own.
//!
//! Four things keep it small:
//! - Where a mask has lost half of its bits, what is left is packed into shorter bitmaps, which
//!   serve all qids below.
//! - An attribute with one value throughout a group tells nothing more about it. It is left out,
//!   and if too few others are left for a qid of the greatest size, then all of them together
//!   have the extremes, as in the whole table.
//! - No part of a group holds a sensitive value more often than the group does. Sensitive values
//!   are counted only for parts so small that this might matter, first of their group, then of
//!   them.
//! - Once no group can be of interest, nothing is looked at.
//!
//! Memory, for each thread: a group's records take a bit for each value of its attributes, and
//! so do those with a sensitive value for each that they hold, at most 32 MiB together. What is
//! packed below an attribute of a qid is no larger, and as a rule half of that above.

use std::ops::Range;

use super::bitmaps::{Bitmaps, Choice};
use super::profiles::{Grid, Profiles, Tally};
use super::search::Visitor;
use super::unfolding::Unfolding;

/// A walk over the qids of a group by bitmaps. It says of no group by which qid it came about,
/// nor which sensitive value is its most frequent.
pub(super) struct Wide {
    unfolding: Unfolding,
    bitmaps: Bitmaps,
    spare: Vec<Level>,
}

/// Working space of one attribute of a qid.
#[derive(Default)]
struct Level {
    counts: Vec<u32>,
    varying: Vec<usize>,
    packed: Bitmaps,
    whole: Masks,
    part: Masks,
    below: Vec<u32>,
    rest: Vec<u32>,
    scratch: Vec<u64>,
}

/// A group on both sheets of bitmaps.
#[derive(Default)]
struct Masks {
    records: Vec<u64>,
    sensitive: Vec<u64>,
}

/// Records that stand as bitmaps.
#[derive(Clone, Copy)]
struct Group<'b> {
    bitmaps: &'b Bitmaps,
    masks: &'b Masks,
    /// Never 0.
    records: u32,
}

/// An upper bound of the records of a group with one sensitive value.
#[derive(Clone, Copy)]
struct Bound {
    most: u32,
    exact: bool,
}

impl Bound {
    fn of_part(self, records: u32) -> Self {
        Self {
            most: self.most.min(records),
            exact: false,
        }
    }

    /// Whether a part of so many records may be of interest for its confidence.
    fn minds(self, visitor: &impl Visitor, records: u32) -> bool {
        let most = self.most.min(records);
        most > 0 && visitor.minds_confidence(most, records)
    }

    /// As [`Self::minds`]; counts the group's records with each sensitive value, `mask`, where
    /// the bound does not exclude it.
    fn minds_counted(
        &mut self,
        visitor: &impl Visitor,
        (bitmaps, mask): (&Bitmaps, &[u64]),
        records: u32,
    ) -> bool {
        if self.minds(visitor, records) && !self.exact {
            self.most = bitmaps.sensitive.most(mask);
            self.exact = true;
        }
        self.minds(visitor, records)
    }
}

impl Masks {
    fn take_all(&mut self, bitmaps: &Bitmaps) {
        bitmaps.records.mask_all(&mut self.records);
        bitmaps.sensitive.mask_all(&mut self.sensitive);
    }
}

impl Wide {
    pub(super) fn new(grid: &Grid, sensitive_values: usize) -> Self {
        Self {
            unfolding: Unfolding::new(grid, sensitive_values),
            bitmaps: Bitmaps::default(),
            spare: Vec::new(),
        }
    }

    /// Visits those groups that are of interest, and perhaps others, of the qids that add `need`
    /// of the attributes from number `from` on to what is known; not where profiles are looked
    /// through faster, and then it says so.
    pub(super) fn visit<V: Visitor>(
        &mut self,
        visitor: &mut V,
        grid: &Grid,
        (profiles, group): (&Profiles, Range<usize>),
        from: usize,
        need: usize,
    ) -> bool {
        let records = profiles.records[group.clone()].iter().sum();
        let mut bitmaps = std::mem::take(&mut self.bitmaps);
        let unfolds = self
            .unfolding
            .unfold(grid, (profiles, group), from, &mut bitmaps);
        if unfolds {
            let mut level = self.spare.pop().unwrap_or_default();
            level.whole.take_all(&bitmaps);
            let group = Group {
                bitmaps: &bitmaps,
                masks: &level.whole,
                records,
            };
            let bound = Bound {
                most: records,
                exact: false,
            };
            self.narrow(visitor, group, 0, need, bound);
            self.spare.push(level);
        }
        self.bitmaps = bitmaps;
        unfolds
    }

    /// Visits the groups that come of a group by `need` more attributes from number `from` on.
    fn narrow<V: Visitor>(
        &mut self,
        visitor: &mut V,
        group: Group,
        from: usize,
        need: usize,
        mut bound: Bound,
    ) {
        let Group {
            bitmaps,
            masks,
            records,
        } = group;
        let sensitive = (bitmaps, &masks.sensitive[..]);
        if visitor.stops() || !visitor.minds_size(1) && !bound.minds_counted(visitor, sensitive, 1)
        {
            return;
        }
        let mut level = self.spare.pop().unwrap_or_default();
        bitmaps.count(&masks.records, from, &mut level.counts);
        let first = bitmaps.first[from];
        let varies = |&attribute: &usize| {
            let cells = bitmaps.of(attribute);
            let counts = &level.counts[cells.start - first..cells.end - first];
            counts.iter().any(|&count| 0 < count && count < records)
        };
        level.varying.clear();
        level
            .varying
            .extend((from..bitmaps.attributes()).filter(varies));
        match need.min(level.varying.len()) {
            0 => {
                let counted = bound.minds_counted(visitor, sensitive, records);
                visit(visitor, records, counted.then_some(bound.most));
            }
            1 => {
                let fewest = fewest(bitmaps, from, &level.counts, records);
                visit(visitor, fewest, None);
                if bound.minds_counted(visitor, sensitive, fewest) {
                    let counts = (from, &level.counts[..]);
                    count_sensitive(
                        visitor,
                        sensitive,
                        records,
                        counts,
                        bound,
                        &mut level.scratch,
                    );
                }
            }
            2 => count_two(visitor, group, from, &mut level, bound),
            need => self.narrow_more(visitor, group, from, need, &mut level, bound),
        }
        self.spare.push(level);
    }

    /// As [`Self::narrow`], where at least three more attributes vary and are needed.
    fn narrow_more<V: Visitor>(
        &mut self,
        visitor: &mut V,
        group: Group,
        mut from: usize,
        need: usize,
        level: &mut Level,
        bound: Bound,
    ) {
        let Level {
            counts,
            varying,
            packed,
            whole,
            part,
            ..
        } = level;
        let mut group = Group { ..group };
        let words = group.records.div_ceil(64) as usize;
        let attributes = group.bitmaps.attributes() - from;
        if words * 2 <= group.bitmaps.records.words() || varying.len() * 4 <= attributes * 3 {
            let masks = (&group.masks.records[..], &group.masks.sensitive[..]);
            group.bitmaps.pack(masks, (from, counts), varying, packed);
            whole.take_all(packed);
            group.bitmaps = packed;
            group.masks = whole;
            from = 0;
            packed.count(&whole.records, from, counts);
            varying.clear();
            varying.extend(0..packed.attributes());
        }
        let (bitmaps, masks) = (group.bitmaps, group.masks);
        let first = bitmaps.first[from];
        for &attribute in &varying[..=varying.len() - need] {
            let cells = bitmaps.of(attribute);
            let held = &counts[cells.start - first..cells.end - first];
            let rest = group.records - held.iter().sum::<u32>();
            let choices = cells.clone().map(Choice::Bitmap).zip(held.iter().copied());
            let choices = choices.chain([(Choice::Rest(cells), rest)]);
            for (choice, records) in choices.filter(|&(_, records)| records > 0) {
                let (by_record, by_value) = (&mut part.records, &mut part.sensitive);
                bitmaps.records.choose(&masks.records, &choice, by_record);
                bitmaps
                    .sensitive
                    .choose(&masks.sensitive, &choice, by_value);
                let group = Group {
                    bitmaps,
                    masks: part,
                    records,
                };
                let bound = bound.of_part(records);
                self.narrow(visitor, group, attribute + 1, need - 1, bound);
            }
        }
    }
}

/// Visits the groups that come of a group by two more attributes from number `from` on, of which
/// at least two vary.
fn count_two<V: Visitor>(
    visitor: &mut V,
    Group {
        bitmaps,
        masks,
        records,
    }: Group,
    from: usize,
    level: &mut Level,
    mut bound: Bound,
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
    let first = bitmaps.first[from];
    let whole = (bitmaps, &masks.sensitive[..]);
    // The last that varies has none after it that splits its parts.
    for &attribute in &varying[..varying.len() - 1] {
        if visitor.stops() {
            return;
        }
        let next = attribute + 1;
        let mut visit_part = |choice: &Choice, records: u32, below: &[u32]| {
            let fewest = fewest(bitmaps, next, below, records);
            visit(visitor, fewest, None);
            if !bound.minds_counted(visitor, whole, fewest) {
                return;
            }
            let sensitive = &mut part.sensitive;
            bitmaps.sensitive.choose(whole.1, choice, sensitive);
            let mut bound = bound.of_part(records);
            if bound.minds_counted(visitor, (bitmaps, sensitive), fewest) {
                let counts = (next, below);
                count_sensitive(
                    visitor,
                    (bitmaps, sensitive),
                    records,
                    counts,
                    bound,
                    scratch,
                );
            }
        };
        below_rest.clear();
        below_rest.extend_from_slice(&counts[bitmaps.first[next] - first..]);
        let mut rest = records;
        for bitmap in bitmaps.of(attribute) {
            let records = counts[bitmap - first];
            if records == 0 {
                continue;
            }
            rest -= records;
            let choice = Choice::Bitmap(bitmap);
            bitmaps
                .records
                .choose(&masks.records, &choice, &mut part.records);
            bitmaps.count(&part.records, next, below);
            for (left, count) in below_rest.iter_mut().zip(&*below) {
                *left -= count;
            }
            visit_part(&choice, records, below);
        }
        if rest > 0 {
            visit_part(&Choice::Rest(bitmaps.of(attribute)), rest, below_rest);
        }
    }
}

/// Counts the sensitive values of those parts of a group, by one more attribute from number
/// `from` on, that may be of interest for their confidence.
fn count_sensitive<V: Visitor>(
    visitor: &mut V,
    (bitmaps, mask): (&Bitmaps, &[u64]),
    records: u32,
    (from, counts): (usize, &[u32]),
    bound: Bound,
    scratch: &mut Vec<u64>,
) {
    let first = bitmaps.first[from];
    let mut count = |choice: &Choice, records: u32| {
        if records > 0 && bound.minds(visitor, records) {
            bitmaps.sensitive.choose(mask, choice, scratch);
            visit(visitor, records, Some(bitmaps.sensitive.most(scratch)));
        }
    };
    for attribute in from..bitmaps.attributes() {
        let mut rest = records;
        for bitmap in bitmaps.of(attribute) {
            let records = counts[bitmap - first];
            rest -= records;
            count(&Choice::Bitmap(bitmap), records);
        }
        count(&Choice::Rest(bitmaps.of(attribute)), rest);
    }
}

/// Visits a group, if it is of interest for its size or its sensitive values were counted.
fn visit<V: Visitor>(visitor: &mut V, records: u32, most: Option<u32>) {
    if most.is_some() || visitor.minds_size(records) {
        // Which value it is nobody asks of a visitor that names none.
        let value = u32::MAX;
        let most = most.map(|records| Tally { value, records });
        visitor.group(records, most, 1, Vec::new);
    }
}

/// The fewest records of a part of a group by one of the attributes from number `from` on, or
/// of the group itself.
fn fewest(bitmaps: &Bitmaps, from: usize, counts: &[u32], records: u32) -> u32 {
    let first = bitmaps.first[from];
    // Less one, so that a part that is none is the greatest number.
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
