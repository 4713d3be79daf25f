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
//! Memory, for each thread: of a group's records a bit for each value of its attributes and 4
//! bytes for each sensitive value, at most 64 MiB of bits, and about as much again for all that
//! is packed below.

use std::ops::Range;

use super::bitmaps::{Bitmaps, Choice, Group};
use super::held::Held;
use super::profiles::{Grid, Profiles};
use super::search::Visitor;
use super::unfolding::Unfolding;

/// A walk over the qids of a group by bitmaps. It says of no group by which qid it came about.
pub(super) struct Wide {
    unfolding: Unfolding,
    bitmaps: Bitmaps,
    held: Held,
    mask: Vec<u64>,
    part: Vec<u64>,
    spare: Vec<Level>,
}

/// Working space of one attribute of a qid.
#[derive(Default)]
struct Level {
    counts: Vec<u32>,
    varying: Vec<usize>,
    packed: Bitmaps,
    packed_mask: Vec<u64>,
    mask: Vec<u64>,
    below: Vec<u32>,
    rest: Vec<u32>,
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
}

impl Wide {
    pub(super) fn new(grid: &Grid, sensitive_values: usize) -> Self {
        Self {
            unfolding: Unfolding::new(grid),
            bitmaps: Bitmaps::default(),
            held: Held::new(sensitive_values),
            mask: Vec::new(),
            part: Vec::new(),
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
        group: (&Profiles, Range<usize>),
        from: usize,
        need: usize,
    ) -> bool {
        let mut bitmaps = std::mem::take(&mut self.bitmaps);
        let into = (&mut bitmaps, &mut self.held);
        let unfolded = self.unfolding.unfold(grid, group, from, into);
        if unfolded {
            let mut mask = std::mem::take(&mut self.mask);
            bitmaps.mask_all(&mut mask);
            let group = Group {
                bitmaps: &bitmaps,
                mask: &mask,
                records: bitmaps.record.len() as u32,
            };
            let bound = Bound {
                most: group.records,
                exact: false,
            };
            self.narrow(visitor, group, 0, need, bound);
            self.mask = mask;
        }
        self.bitmaps = bitmaps;
        unfolded
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
        if visitor.stops() {
            return;
        }
        if !visitor.minds_size(1) && !self.minds_part(visitor, group, 1, &mut bound) {
            return;
        }
        let mut level = self.spare.pop().unwrap_or_default();
        group.count(from, &mut level.counts);
        level.varying.clear();
        let first = group.bitmaps.first[from];
        let varying = (from..group.bitmaps.attributes()).filter(|&attribute| {
            let cells = group.bitmaps.of(attribute);
            let counts = &level.counts[cells.start - first..cells.end - first];
            counts
                .iter()
                .any(|&count| 0 < count && count < group.records)
        });
        level.varying.extend(varying);
        match need.min(level.varying.len()) {
            0 => self.whole(visitor, group, bound),
            1 => self.count_one(visitor, group, from, &level.counts, bound),
            2 => self.count_two(visitor, group, from, &mut level, bound),
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
            packed_mask,
            mask,
            ..
        } = level;
        let words = group.records.div_ceil(64) as usize;
        let attributes = group.bitmaps.attributes() - from;
        let mut group = Group { ..group };
        if words * 2 <= group.bitmaps.words() || varying.len() * 4 <= attributes * 3 {
            group.pack(from, counts, varying, packed);
            packed.mask_all(packed_mask);
            group.bitmaps = packed;
            group.mask = packed_mask;
            from = 0;
            group.count(from, counts);
            varying.clear();
            varying.extend(0..group.bitmaps.attributes());
        }
        let first = group.bitmaps.first[from];
        for &attribute in &varying[..=varying.len() - need] {
            let mut rest = group.records;
            for bitmap in group.bitmaps.of(attribute) {
                let records = counts[bitmap - first];
                rest -= records;
                if records > 0 {
                    group.choose(Choice::Bitmap(bitmap), mask);
                    let part = Group {
                        mask: &*mask,
                        records,
                        ..group
                    };
                    let bound = bound.of_part(records);
                    self.narrow(visitor, part, attribute + 1, need - 1, bound);
                }
            }
            if rest > 0 {
                group.choose(Choice::Rest(attribute), mask);
                let part = Group {
                    mask: &*mask,
                    records: rest,
                    ..group
                };
                self.narrow(visitor, part, attribute + 1, need - 1, bound.of_part(rest));
            }
        }
    }

    /// Visits a group that no attribute splits any more.
    fn whole<V: Visitor>(&mut self, visitor: &mut V, group: Group, mut bound: Bound) {
        let most = if self.minds_part(visitor, group, group.records, &mut bound) {
            self.held.most(group.numbers())
        } else {
            None
        };
        visitor.group(group.records, most, 1, Vec::new);
    }

    /// Visits the groups that come of a group by one more attribute from number `from` on.
    fn count_one<V: Visitor>(
        &mut self,
        visitor: &mut V,
        group: Group,
        from: usize,
        counts: &[u32],
        mut bound: Bound,
    ) {
        let fewest = fewest(group.bitmaps, from, counts, group.records);
        visit_size(visitor, fewest);
        if self.minds_part(visitor, group, fewest, &mut bound) {
            self.count_sensitive(visitor, group, from, counts, bound);
        }
    }

    /// Visits the groups that come of a group by two more attributes from number `from` on, of
    /// which at least two vary.
    fn count_two<V: Visitor>(
        &mut self,
        visitor: &mut V,
        group: Group,
        from: usize,
        level: &mut Level,
        mut bound: Bound,
    ) {
        let Level {
            counts,
            varying,
            mask,
            below,
            rest: counts_of_rest,
            ..
        } = level;
        let first = group.bitmaps.first[from];
        // After the last that varies no attribute splits its parts.
        for &attribute in &varying[..varying.len() - 1] {
            if visitor.stops() {
                return;
            }
            let next = attribute + 1;
            counts_of_rest.clear();
            counts_of_rest.extend_from_slice(&counts[group.bitmaps.first[next] - first..]);
            let mut rest = group.records;
            for bitmap in group.bitmaps.of(attribute) {
                let records = counts[bitmap - first];
                if records == 0 {
                    continue;
                }
                rest -= records;
                group.choose(Choice::Bitmap(bitmap), mask);
                let part = Group {
                    mask: &*mask,
                    records,
                    ..group
                };
                part.count(next, below);
                for (left, count) in counts_of_rest.iter_mut().zip(&*below) {
                    *left -= count;
                }
                let fewest = fewest(group.bitmaps, next, below, records);
                visit_size(visitor, fewest);
                if self.minds_part(visitor, group, fewest, &mut bound) {
                    let mut bound = bound.of_part(records);
                    if self.minds_part(visitor, part, fewest, &mut bound) {
                        self.count_sensitive(visitor, part, next, below, bound);
                    }
                }
            }
            if rest > 0 {
                let fewest = fewest(group.bitmaps, next, counts_of_rest, rest);
                visit_size(visitor, fewest);
                if self.minds_part(visitor, group, fewest, &mut bound) {
                    let mut bound = bound.of_part(rest);
                    group.choose(Choice::Rest(attribute), mask);
                    let part = Group {
                        mask: &*mask,
                        records: rest,
                        ..group
                    };
                    if self.minds_part(visitor, part, fewest, &mut bound) {
                        self.count_sensitive(visitor, part, next, counts_of_rest, bound);
                    }
                }
            }
        }
    }

    /// Counts the sensitive values of those parts of a group, by one more attribute, that may be
    /// of interest for their confidence.
    fn count_sensitive<V: Visitor>(
        &mut self,
        visitor: &mut V,
        group: Group,
        from: usize,
        counts: &[u32],
        bound: Bound,
    ) {
        let first = group.bitmaps.first[from];
        let mut mask = std::mem::take(&mut self.part);
        let mut count = |choice, records: u32| {
            if records > 0 && visitor.minds_confidence(bound.most.min(records), records) {
                group.choose(choice, &mut mask);
                let part = Group {
                    mask: &mask,
                    records,
                    ..group
                };
                let most = self.held.most(part.numbers());
                visitor.group(records, most, 1, Vec::new);
            }
        };
        for attribute in from..group.bitmaps.attributes() {
            let mut rest = group.records;
            for bitmap in group.bitmaps.of(attribute) {
                let records = counts[bitmap - first];
                rest -= records;
                count(Choice::Bitmap(bitmap), records);
            }
            count(Choice::Rest(attribute), rest);
        }
        self.part = mask;
    }

    /// Whether a part of a group, of so many records, may be of interest for its confidence.
    /// Counts the sensitive values of the group if the bound that there is does not tell.
    fn minds_part<V: Visitor>(
        &mut self,
        visitor: &V,
        group: Group,
        records: u32,
        bound: &mut Bound,
    ) -> bool {
        let minds = |bound: &Bound| {
            let most = bound.most.min(records);
            most > 0 && visitor.minds_confidence(most, records)
        };
        if !minds(bound) || bound.exact {
            return minds(bound);
        }
        let most = self.held.most(group.numbers());
        *bound = Bound {
            most: most.map_or(0, |most| most.records),
            exact: true,
        };
        minds(bound)
    }
}

fn visit_size<V: Visitor>(visitor: &mut V, records: u32) {
    if visitor.minds_size(records) {
        visitor.group(records, None, 1, Vec::new);
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
