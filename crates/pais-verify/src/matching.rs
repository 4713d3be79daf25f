//! Maximum bipartite matching of rows, with equal rows counted together.
//!
//! Which rows fit each other is not listed, because a label may cover much of a table: candidates
//! are found by an index while they are needed. First each record takes free rows. What stays open
//! is matched along augmenting paths, which are searched for from all open records at once, so
//! that each round visits a record at most once.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use hashbrown::HashMap;
use pais_core::cancellation::{Cancellation, Stopped};
use rustc_hash::FxHashMap;

use super::fit_index::{Fit, FitIndex, RecordSet};

/// Maximum number of records on the right that a record on the left reaches in its turn.
const TURN: usize = 8;

/// No record.
const NONE: u32 = u32::MAX;

/// One side of the matching: the distinct records, each with the number of rows equal to it.
#[derive(Clone, Debug, Default)]
pub(super) struct MatchingSide {
    number: HashMap<Vec<u32>, u32>,
    rows: Vec<u64>,
}

impl MatchingSide {
    /// Adds a row; returns the number of its record.
    pub(super) fn add(&mut self, record: Vec<u32>) -> u32 {
        let fresh = self.rows.len() as u32;
        let number = *self.number.entry(record).or_insert(fresh);
        if number == fresh {
            self.rows.push(0);
        }
        self.rows[number as usize] += 1;
        number
    }

    /// Number of distinct records.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The number of rows of each record.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// Whether each record fits no more rows on the right than it has rows, without those of the records before
    /// it in an order.
    fn has_no_choice<F: Fit>(
        &self,
        order: &[usize],
        records: &[&[u32]],
        right: &Self,
        index: &FitIndex<F>,
        cancellation: &Cancellation,
    ) -> Result<bool, Stopped> {
        let mut unseen = index.all();
        for &one in order {
            cancellation.check()?;
            let (mut fitting, mut rows) = (Vec::new(), 0);
            index.visit_fitting(records[one], &unseen, |other| {
                fitting.push(other);
                rows += right.rows[other as usize];
                if rows > self.rows[one] {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            });
            fitting
                .into_iter()
                .for_each(|other| index.remove(other, &mut unseen));
            if rows > self.rows[one] {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The records by number.
    pub(super) fn records(&self) -> Vec<&[u32]> {
        let mut records: Vec<&[u32]> = vec![&[]; self.rows.len()];
        for (record, &number) in &self.number {
            records[number as usize] = record;
        }
        records
    }
}

/// A maximum matching: as many rows on the left as possible get a row of their own on the right
/// that they fit.
pub(super) struct Matching {
    /// Pairs of records on the left and on the right, by number, with the rows of each pair.
    pub(super) pairs: Vec<(u32, u32, u64)>,
    /// Whether it is known that no other matching gives each row on the left a row.
    pub(super) is_only: bool,
}

/// Matches the rows of two sides.
///
/// # Errors
/// [`Stopped`].
pub(super) fn matched(
    left: &MatchingSide,
    right: &MatchingSide,
    fit: &impl Fit,
    cancellation: &Cancellation,
) -> Result<Matching, Stopped> {
    let records = left.records();
    let index = FitIndex::new(fit, right.records());
    let mut flow = Flow {
        wanted: left.rows.clone(),
        free: right.rows.clone(),
        matched: vec![FxHashMap::default(); right.rows.len()],
        cancellation,
    };
    let mut with_free = index.all();
    let order = by_candidates(&records, &index);
    flow.match_free(&order, &records, &index, &mut with_free)?;
    while flow.wanted.iter().any(|&wanted| wanted > 0)
        && flow.match_by_paths(&records, &index, &mut with_free)?
    {}
    let matched = (0..).zip(flow.matched);
    let pairs = matched.flat_map(|(other, holders)| {
        let holders = holders.into_iter();
        holders.map(move |(one, rows)| (one, other, rows))
    });
    let mut pairs: Vec<(u32, u32, u64)> = pairs.collect();
    // In a fixed order, so that the same tables always have the same pairs.
    pairs.sort_unstable();
    Ok(Matching {
        pairs,
        is_only: left.has_no_choice(&order, &records, right, &index, cancellation)?,
    })
}

/// The records on the left, those with the fewest candidates first.
fn by_candidates<F: Fit>(left: &[&[u32]], index: &FitIndex<F>) -> Vec<usize> {
    let shares = left.iter().map(|one| index.expected_share(one));
    let shares: Vec<f64> = shares.collect();
    let mut order: Vec<usize> = (0..left.len()).collect();
    order.sort_by(|&one, &other| shares[one].total_cmp(&shares[other]));
    order
}

/// The current matching, as a flow from records on the left to records on the right.
struct Flow<'a> {
    /// For each record on the left, the number of unmatched rows.
    wanted: Vec<u64>,
    /// For each record on the right, the number of unmatched rows.
    free: Vec<u64>,
    /// For each record on the right, the number of rows matched with each record on the left.
    matched: Vec<FxHashMap<u32, u64>>,
    cancellation: &'a Cancellation,
}

impl Flow<'_> {
    /// Matches rows with unmatched rows. In an order with the fewest candidates first most of them
    /// find free rows, so that paths are only needed for the rest.
    fn match_free<F: Fit>(
        &mut self,
        order: &[usize],
        left: &[&[u32]],
        index: &FitIndex<F>,
        with_free: &mut RecordSet,
    ) -> Result<(), Stopped> {
        let mut paths = self.no_paths();
        for &one in order {
            self.cancellation.check()?;
            self.match_free_by(&mut paths, one as u32, left[one], index, with_free);
        }
        Ok(())
    }

    /// Paths without steps: each record on the left with unmatched rows takes free ones.
    fn no_paths(&self) -> Paths {
        Paths {
            is_reached: self.wanted.iter().map(|&wanted| wanted > 0).collect(),
            is_on_path: vec![false; self.wanted.len()],
            can_give_up: vec![VecDeque::new(); self.wanted.len()],
            reached_by: vec![NONE; self.free.len()],
        }
    }

    /// Searches for augmenting paths from all records on the left with unmatched rows at once, and
    /// rematches rows along them. Returns whether there was one; if not, the matching is a maximum
    /// one.
    fn match_by_paths<F: Fit>(
        &mut self,
        left: &[&[u32]],
        index: &FitIndex<F>,
        with_free: &mut RecordSet,
    ) -> Result<bool, Stopped> {
        let mut paths = self.no_paths();
        let has_open = |one: &u32| self.wanted[*one as usize] > 0;
        let mut reached: Vec<u32> = (0..left.len() as u32).filter(has_open).collect();
        let mut open_rows: u64 = self.wanted.iter().sum();
        let mut unseen = index.all();
        let mut level = 0;
        while level < reached.len() {
            let next = self.next_level(&mut paths, &reached[level..], left, index, &mut unseen)?;
            level = reached.len();
            reached.extend(next);
        }
        let mut is_augmented = false;
        for one in reached {
            if open_rows == 0 {
                break;
            }
            self.cancellation.check()?;
            let rows = self.match_free_by(&mut paths, one, left[one as usize], index, with_free);
            open_rows -= rows;
            is_augmented |= rows > 0;
        }
        Ok(is_augmented)
    }

    /// Augments the matching along paths that end with a step from a record on the left to free
    /// rows; returns by how many rows.
    fn match_free_by<F: Fit>(
        &mut self,
        paths: &mut Paths,
        one: u32,
        record: &[u32],
        index: &FitIndex<F>,
        with_free: &mut RecordSet,
    ) -> u64 {
        let mut matched = 0;
        let mut used_up = Vec::new();
        index.visit_fitting(record, with_free, |other| {
            while self.free[other as usize] > 0 {
                match self.augment(paths, one, other) {
                    0 => return ControlFlow::Break(()),
                    rows => matched += rows,
                }
            }
            used_up.push(other);
            ControlFlow::Continue(())
        });
        for other in used_up {
            index.remove(other, with_free);
        }
        matched
    }

    /// The records on the left, not reached before, that hold rows which fit records of a level. The records of
    /// the level take turns: a record on the right is reached from only one of them, which can pass on no more
    /// rows than it holds.
    fn next_level<F: Fit>(
        &self,
        paths: &mut Paths,
        level: &[u32],
        left: &[&[u32]],
        index: &FitIndex<F>,
        unseen: &mut RecordSet,
    ) -> Result<Vec<u32>, Stopped> {
        let mut next = Vec::new();
        let mut queue = level.iter().copied().collect::<VecDeque<u32>>();
        let mut found = Vec::new();
        while let Some(one) = queue.pop_front() {
            self.cancellation.check()?;
            found.clear();
            index.visit_fitting(left[one as usize], unseen, |other| {
                found.push(other);
                if found.len() < TURN {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
            if found.len() == TURN {
                queue.push_back(one);
            }
            for &other in &found {
                index.remove(other, unseen);
                paths.reached_by[other as usize] = one;
                let holders = self.matched[other as usize].keys();
                for &holder in holders.filter(|holder| **holder != one) {
                    if !std::mem::replace(&mut paths.is_reached[holder as usize], true) {
                        next.push(holder);
                    }
                    paths.can_give_up[holder as usize].push_back(other);
                }
            }
        }
        Ok(next)
    }

    /// Augments the matching along a path from a record with unmatched rows to a record `one` on
    /// the left, and from there to a record with free rows; returns by how many rows, 0 if there is
    /// no such path any more.
    fn augment(&mut self, paths: &mut Paths, one: u32, free: u32) -> u64 {
        let held = |flow: &Self, holder: u32, other: u32| {
            let held = flow.matched[other as usize].get(&holder);
            held.copied().unwrap_or(0)
        };
        // Backwards: a record on the left, and the one on the right whose rows it gives up. The first choice of
        // each record leads to a root without a cycle.
        let mut steps: Vec<(u32, u32)> = Vec::new();
        let mut at = one;
        paths.is_on_path[at as usize] = true;
        while self.wanted[at as usize] == 0 {
            let choices = &mut paths.can_give_up[at as usize];
            let Some(&other) = choices.front() else {
                // Nothing reaches this record any more.
                paths.is_on_path[at as usize] = false;
                let Some((before, _)) = steps.pop() else {
                    return 0;
                };
                paths.can_give_up[before as usize].pop_front();
                at = before;
                continue;
            };
            let from = paths.reached_by[other as usize];
            if paths.is_on_path[from as usize] || held(self, at, other) == 0 {
                choices.pop_front();
                continue;
            }
            steps.push((at, other));
            at = from;
            paths.is_on_path[at as usize] = true;
        }
        paths.is_on_path[at as usize] = false;
        for (at, _) in &steps {
            paths.is_on_path[*at as usize] = false;
        }
        let root = at;
        let gives = steps.iter().map(|&(at, other)| held(self, at, other));
        let rows = gives.fold(self.wanted[root as usize], u64::min);
        let rows = rows.min(self.free[free as usize]);
        self.wanted[root as usize] -= rows;
        self.free[free as usize] -= rows;
        let mut gets = free;
        for (at, other) in steps {
            *self.matched[gets as usize].entry(at).or_insert(0) += rows;
            let left = held(self, at, other) - rows;
            if left == 0 {
                self.matched[other as usize].remove(&at);
            } else {
                self.matched[other as usize].insert(at, left);
            }
            gets = other;
        }
        *self.matched[gets as usize].entry(root).or_insert(0) += rows;
        rows
    }
}

/// The paths from records on the left with unmatched rows, the roots, to all records that can be
/// reached.
struct Paths {
    /// Whether each record on the left was reached.
    is_reached: Vec<bool>,
    /// Whether each record on the left is on the path that is followed.
    is_on_path: Vec<bool>,
    /// For each record on the left, the records on the right whose rows it can give up to others,
    /// those on the shortest paths first.
    can_give_up: Vec<VecDeque<u32>>,
    /// For each record on the right, the record on the left that it was reached from.
    reached_by: Vec<u32>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use pais_core::cancellation::{Cancellation, Stopped};

    use super::{MatchingSide, matched};
    use crate::fit_index::{Fit, Have, Need};

    #[test]
    fn a_matching_ends_when_it_is_asked_to_stop() {
        let mut side = MatchingSide::default();
        side.add(vec![0]);
        let cancellation = Cancellation::new();
        cancellation.cancel();
        let found = matched(&side, &side, &FitTable(&[true; 16]), &cancellation);
        assert_eq!(found.err(), Some(Stopped));
    }

    /// The size of a maximum matching, found by trying all.
    fn brute_force(left: &[u32], right: &mut Vec<u32>, fit: &impl Fn(u32, u32) -> bool) -> u64 {
        let Some((&one, rest)) = left.split_first() else {
            return 0;
        };
        let mut best = brute_force(rest, right, fit);
        for at in 0..right.len() {
            if fit(one, right[at]) {
                let taken = right.swap_remove(at);
                best = best.max(1 + brute_force(rest, right, fit));
                right.push(taken);
                let last = right.len() - 1;
                right.swap(at, last);
            }
        }
        best
    }

    /// All ways to give each number on the left one on the right, as pairs in ascending order.
    fn whole_matchings(
        left: &[u32],
        right: &mut Vec<u32>,
        fit: &impl Fn(u32, u32) -> bool,
        pairs: &mut Vec<(u32, u32)>,
        found: &mut BTreeSet<Vec<(u32, u32)>>,
    ) {
        let Some((&one, rest)) = left.split_first() else {
            let mut pairs = pairs.clone();
            pairs.sort_unstable();
            found.insert(pairs);
            return;
        };
        for at in 0..right.len() {
            if fit(one, right[at]) {
                let taken = right.remove(at);
                pairs.push((one, taken));
                whole_matchings(rest, right, fit, pairs, found);
                pairs.pop();
                right.insert(at, taken);
            }
        }
    }

    proptest! {
        #[test]
        fn size_agrees_with_brute_force(
            left in prop::collection::vec(0u32..4, 0..6),
            right in prop::collection::vec(0u32..4, 0..6),
            fits in prop::collection::vec(any::<bool>(), 16),
        ) {
            let fit = |one: u32, other: u32| fits[(one * 4 + other) as usize];
            let side = |rows: &[u32]| {
                let mut side = MatchingSide::default();
                for &row in rows {
                    side.add(vec![row]);
                }
                side
            };
            let found = matched(&side(&left), &side(&right), &FitTable(&fits), &Cancellation::new());
            let found = found.unwrap();
            let size: u64 = found.pairs.iter().map(|(_, _, rows)| rows).sum();
            prop_assert_eq!(size, brute_force(&left, &mut right.clone(), &fit));
            let mut whole = BTreeSet::new();
            whole_matchings(&left, &mut right.clone(), &fit, &mut Vec::new(), &mut whole);
            prop_assert!(!found.is_only || whole.len() <= 1);
            let fits_once = |other: &u32| {
                left.iter().collect::<BTreeSet<_>>().into_iter().filter(|one| fit(**one, *other)).count() == 1
            };
            if left.len() == right.len() && right.iter().all(fits_once) {
                prop_assert_eq!(found.is_only, !whole.is_empty());
            }
        }
    }

    /// Which of four numbers on the left fit which of four on the right.
    struct FitTable<'a>(&'a [bool]);

    impl Fit for FitTable<'_> {
        fn columns(&self) -> usize {
            1
        }

        fn have(&self, _: usize, raw: u32) -> Have {
            Have::Code(raw)
        }

        fn need(&self, _: usize, _: u32) -> Option<Need> {
            Some(Need::Codes(0..4, None))
        }

        fn fits(&self, finished: &[u32], raw: &[u32]) -> bool {
            self.0[(finished[0] * 4 + raw[0]) as usize]
        }
    }
}
