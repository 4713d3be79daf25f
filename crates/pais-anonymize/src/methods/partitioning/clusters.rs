//! Greedy k-member clustering of the few rows of a bucket, a small leaf region of the k-d split
//! (Byun, Kamra, Bertino, Li: *Efficient k-Anonymization Using Clustering Techniques*, DASFAA
//! 2007). Each cluster starts at the row farthest from the previous cluster; single rows are then
//! moved and exchanged while that decreases NCP.
//!
//! A cut of the k-d split divides a whole bucket. Among a few dozen rows the best neighbours of
//! each row can be found individually, which keeps the released labels narrower.

use std::cell::RefCell;

use pais_core::table::codes::CodeRange;

use super::condition::GroupChecker;
use super::confidence::{BoundedCells, Tally};
use super::loss::Loss;
use super::split_progress::SplitProgress;
use crate::error::RunError;

/// The codes of a group in each dimension, from the first to the last.
type Bounds = Vec<CodeRange>;

/// Tolerance for the rounding of sums of NCP.
const ROUNDING: f32 = 1e-5;

/// The rows of a bucket. A member is a row by its index in the bucket.
pub(super) struct Bucket<'a> {
    losses: &'a [Loss<'a>],
    rows: &'a [u32],
    /// Rows × dimensions, row by row.
    codes: Vec<u32>,
    /// The values that *C* bounds, by member; `None` where it bounds none.
    bounded: Option<BoundedCells>,
}

/// A group of a bucket.
struct Cluster {
    members: Vec<u32>,
    bounds: Bounds,
    /// In each dimension, the second lowest and the second highest code of its members: the ends of the bounds
    /// once a member at one of the ends has left.
    inner: Bounds,
    /// NCP of its labels, summed over dimensions.
    ncp: f32,
    /// Its members by bounded value. Changed for a trial and back.
    tally: RefCell<Tally>,
}

impl Cluster {
    /// NCP summed over its rows.
    fn loss(&self) -> f32 {
        self.ncp * self.members.len() as f32
    }

    /// Whether *C* allows the group without one member, and with another.
    fn allows(&self, bucket: &Bucket, out: Option<u32>, into: Option<u32>) -> bool {
        let Some(bounded) = &bucket.bounded else {
            return true;
        };
        let [out, into] = [out, into].map(|it| it.map(|member| bounded.record(member as usize)));
        let mut tally = self.tally.borrow_mut();
        out.into_iter().for_each(|cells| tally.remove(cells));
        into.into_iter().for_each(|cells| tally.add(cells));
        let allowed = bounded.allows(&tally);
        into.into_iter().for_each(|cells| tally.remove(cells));
        out.into_iter().for_each(|cells| tally.add(cells));
        allowed
    }
}

impl<'a> Bucket<'a> {
    pub(super) fn new(
        losses: &'a [Loss<'a>],
        rows: &'a [u32],
        bounded: Option<BoundedCells>,
    ) -> Self {
        let codes = rows
            .iter()
            .flat_map(|&row| losses.iter().map(move |loss| loss.codes.at(row as usize)));
        Self {
            losses,
            rows,
            codes: codes.collect(),
            bounded,
        }
    }

    #[inline]
    fn codes(&self, member: u32) -> &[u32] {
        let width = self.losses.len();
        &self.codes[member as usize * width..][..width]
    }

    /// The cluster of these members.
    fn cluster(&self, members: Vec<u32>) -> Cluster {
        let mut bounds = vec![CodeRange::EMPTY; self.losses.len()];
        let mut inner = bounds.clone();
        for &member in &members {
            let codes = self.codes(member).iter();
            for ((outer, inner), &code) in bounds.iter_mut().zip(&mut inner).zip(codes) {
                inner.first = inner.first.min(outer.first.max(code));
                inner.last = inner.last.max(outer.last.min(code));
                *outer = outer.widened(code);
            }
        }
        let tally = self
            .bounded
            .as_ref()
            .map_or_else(Tally::default, |bounded| {
                let mut tally = bounded.empty_tally();
                for &member in &members {
                    tally.add(bounded.record(member as usize));
                }
                tally
            });
        Cluster {
            ncp: self.ncp(bounds.iter().copied()),
            members,
            bounds,
            inner,
            tally: RefCell::new(tally),
        }
    }

    fn ncp(&self, bounds: impl Iterator<Item = CodeRange>) -> f32 {
        let losses = self.losses.iter().zip(bounds);
        losses.map(|(loss, range)| loss.ncp_of_range(range)).sum()
    }

    /// NCP of a group's labels with one more member, summed over dimensions.
    #[inline]
    fn ncp_with(&self, bounds: &Bounds, member: u32) -> f32 {
        let codes = self.codes(member).iter();
        let ranges = bounds.iter().zip(codes);
        self.ncp(ranges.map(|(range, &code)| range.widened(code)))
    }

    /// [`Self::ncp_with`] if it is at most `limit`; `None` if it is greater by more than rounding.
    #[inline]
    fn ncp_with_up_to(&self, bounds: &Bounds, member: u32, limit: f32) -> Option<f32> {
        let limit = limit + limit.abs() * ROUNDING + ROUNDING;
        let codes = self.codes(member).iter();
        let mut sum = 0.0;
        for ((loss, range), &code) in self.losses.iter().zip(bounds).zip(codes) {
            sum += loss.ncp_of_range(range.widened(code));
            if sum > limit {
                return None;
            }
        }
        Some(sum)
    }

    /// NCP of the labels of a cluster of two members or more without one of them.
    fn ncp_without(&self, cluster: &Cluster, member: u32) -> f32 {
        self.ncp(self.bounds_without(cluster, member))
    }

    /// NCP of the labels of a cluster with a member in place of another.
    #[inline]
    fn ncp_exchanged(&self, cluster: &Cluster, out: u32, member: u32) -> f32 {
        let ranges = self.bounds_without(cluster, out).zip(self.codes(member));
        self.ncp(ranges.map(|(range, &code)| range.widened(code)))
    }

    #[inline]
    fn bounds_without<'s>(
        &'s self,
        cluster: &'s Cluster,
        member: u32,
    ) -> impl Iterator<Item = CodeRange> + 's {
        let ranges = cluster.bounds.iter().zip(&cluster.inner);
        ranges
            .zip(self.codes(member))
            .map(|((&CodeRange { first, last }, inner), &code)| {
                let first = if code == first { inner.first } else { first };
                let last = if code == last { inner.last } else { last };
                CodeRange { first, last }
            })
    }
}

/// The remaining rows, and the growing cluster, with the loss of each row as its next member.
///
/// What a row would add is kept by dimension. A new member changes the bounds of a cluster in few
/// dimensions; only these are computed again, and the sums over dimensions are those of arrays.
struct Candidates<'b> {
    bucket: &'b Bucket<'b>,
    /// Members of the bucket that are in no cluster.
    left: Vec<u32>,
    /// Dimensions × rows left, dimension by dimension, with room for all rows of the bucket: the
    /// code of each.
    codes: Vec<u32>,
    /// In the same order, NCP of the label in the dimension with this row as a member.
    ncp: Vec<f32>,
    /// NCP of the labels with this row as a member, summed over dimensions.
    sums: Vec<f32>,
    /// The growing cluster, or the one that has grown last.
    bounds: Bounds,
    members: Vec<u32>,
}

impl<'b> Candidates<'b> {
    /// All rows of the bucket.
    fn new(bucket: &'b Bucket<'b>) -> Self {
        let rows = bucket.rows.len();
        let dimensions = bucket.losses.len();
        let mut codes = Vec::with_capacity(rows * dimensions);
        for dimension in 0..dimensions {
            codes.extend((0..rows as u32).map(|member| bucket.codes(member)[dimension]));
        }
        Self {
            bucket,
            left: (0..rows as u32).collect(),
            ncp: vec![0.0; codes.len()],
            codes,
            sums: vec![0.0; rows],
            bounds: Bounds::new(),
            members: Vec::new(),
        }
    }

    /// Starts the next cluster with the row that increases the loss of the last one the most; the first cluster
    /// starts with the first row. There must be a row left.
    fn start(&mut self) {
        let seed = if self.bounds.is_empty() {
            0
        } else {
            let indexed = self.sums[..self.left.len()].iter().enumerate();
            let farthest = indexed.max_by(|(_, one), (_, other)| one.total_cmp(other));
            farthest.map_or(0, |(index, _)| index)
        };
        self.members.clear();
        let member = self.left[seed];
        let codes = self.bucket.codes(member).iter();
        self.bounds = codes.map(|&code| CodeRange::new(code, code)).collect();
        self.remove(seed);
        self.members.push(member);
        for dimension in 0..self.bounds.len() {
            self.compute(dimension);
        }
        self.sum();
    }

    /// The index of the permitted remaining row with the smallest loss as the next member; ties go to the
    /// first.
    fn nearest(&self, mut is_permitted: impl FnMut(u32) -> bool) -> Option<usize> {
        let mut best: Option<(usize, f32)> = None;
        for (index, (&member, &sum)) in self.left.iter().zip(&self.sums).enumerate() {
            if best.is_none_or(|(_, least)| sum < least) && is_permitted(member) {
                best = Some((index, sum));
            }
        }
        best.map(|(index, _)| index)
    }

    /// Adds the row at an index to the growing cluster.
    fn take(&mut self, index: usize) {
        let member = self.left[index];
        self.remove(index);
        self.members.push(member);
        let mut changed = false;
        for dimension in 0..self.bounds.len() {
            let code = self.bucket.codes(member)[dimension];
            let widened = self.bounds[dimension].widened(code);
            if widened != self.bounds[dimension] {
                self.bounds[dimension] = widened;
                self.compute(dimension);
                changed = true;
            }
        }
        if changed {
            self.sum();
        }
    }

    /// Gives up the growing cluster: its rows are left again, after all others.
    fn give_up(&mut self) {
        self.left.append(&mut self.members);
    }

    /// Removes a row from the remaining ones; the last one takes its place.
    fn remove(&mut self, index: usize) {
        let last = self.left.len() - 1;
        self.left.swap_remove(index);
        let rows = self.bucket.rows.len();
        for dimension in 0..self.bounds.len() {
            let start = dimension * rows;
            self.codes[start + index] = self.codes[start + last];
            self.ncp[start + index] = self.ncp[start + last];
        }
        self.sums[index] = self.sums[last];
    }

    fn compute(&mut self, dimension: usize) {
        let start = dimension * self.bucket.rows.len();
        let range = start..start + self.left.len();
        let (codes, ncp) = (&self.codes[range.clone()], &mut self.ncp[range]);
        let loss = &self.bucket.losses[dimension];
        loss.ncp_of_widened(self.bounds[dimension], codes, ncp);
    }

    /// Sums over dimensions, in their order.
    fn sum(&mut self) {
        let rows = self.bucket.rows.len();
        let sums = &mut self.sums[..self.left.len()];
        sums.fill(0.0);
        for dimension in self.ncp.chunks(rows.max(1)) {
            for (sum, ncp) in sums.iter_mut().zip(dimension) {
                *sum += ncp;
            }
        }
    }
}

/// Groups of row numbers that meet the condition, with no greater loss than the given ones. The
/// given groups are consecutive rows of the bucket with these sizes, and meet the condition.
///
/// # Errors
/// When the observer requested a stop.
pub(super) fn groups(
    bucket: &Bucket,
    sizes: &[u32],
    checker: &mut GroupChecker,
    progress: &SplitProgress,
) -> Result<Vec<Vec<u32>>, RunError> {
    let mut next = 0;
    let mut groups: Vec<Cluster> = sizes
        .iter()
        .map(|&size| {
            next += size;
            bucket.cluster((next - size..next).collect())
        })
        .collect();
    let grown = match &bucket.bounded {
        Some(bounded) => grow_under_c(bucket, bounded, checker, progress)?,
        None => grow(bucket, checker, progress)?,
    };
    let loss = |groups: &[Cluster]| groups.iter().map(Cluster::loss).sum::<f32>();
    if !grown.is_empty() && loss(&grown) < loss(&groups) {
        groups = grown;
    }
    improve(bucket, &mut groups, checker, progress)?;
    let row = |&member: &u32| bucket.rows[member as usize];
    let rows = |group: &Cluster| group.members.iter().map(row).collect();
    Ok(groups.iter().map(rows).collect())
}

/// Grows groups one after another. Each starts with the row farthest from the previous group and
/// takes the nearest rows until it meets the condition. Each row left over joins the group whose
/// loss grows least. Empty where not all groups meet the condition in the end.
fn grow(
    bucket: &Bucket,
    checker: &mut GroupChecker,
    progress: &SplitProgress,
) -> Result<Vec<Cluster>, RunError> {
    let mut candidates = Candidates::new(bucket);
    let mut groups: Vec<Cluster> = Vec::new();
    while checker.has_enough_rows(candidates.left.len()) {
        progress.stop_if_asked()?;
        candidates.start();
        let accepted = loop {
            let members = &candidates.members;
            if checker.has_enough_rows(members.len()) && accepts(bucket, members, checker) {
                break true;
            }
            let Some(nearest) = candidates.nearest(|_| true) else {
                break false;
            };
            candidates.take(nearest);
        };
        if !accepted {
            candidates.give_up();
            break;
        }
        groups.push(bucket.cluster(candidates.members.clone()));
    }
    if groups.is_empty() {
        return Ok(groups);
    }
    for member in candidates.left {
        join_nearest(bucket, &mut groups, member);
    }
    let mut holds = |group: &Cluster| accepts(bucket, &group.members, checker);
    if !groups.iter().all(&mut holds) {
        groups.clear();
    }
    Ok(groups)
}

/// Grows groups one after another, as [`grow`] does, so that each meets *C*. A last group of all
/// rows that are left is one of them where it meets the condition; else each of these rows joins the
/// group whose loss grows least and that still meets *C* with it. Empty where there is no such
/// group.
///
/// A cluster takes a row only while its most frequent bounded value can still be at most *C* of its final rows,
/// and takes as many rows with a value as needed so that the rest of the bucket stays within *C*. So both the
/// cluster and the rest can meet *C*, as the halves of a split do.
fn grow_under_c(
    bucket: &Bucket,
    bounded: &BoundedCells,
    checker: &mut GroupChecker,
    progress: &SplitProgress,
) -> Result<Vec<Cluster>, RunError> {
    let mut candidates = Candidates::new(bucket);
    let mut whole = bounded.empty_tally();
    for &member in &candidates.left {
        whole.add(bounded.record(member as usize));
    }
    let mut groups: Vec<Cluster> = Vec::new();
    // A group takes K rows or more. Fewer than twice as many are the last group.
    while checker.has_enough_rows(candidates.left.len() / 2) {
        progress.stop_if_asked()?;
        match grow_one(bucket, bounded, &mut candidates, &mut whole, checker) {
            Some(group) => groups.push(group),
            None => break,
        }
    }
    let left = candidates.left;
    if accepts(bucket, &left, checker) {
        groups.push(bucket.cluster(left));
        return Ok(groups);
    }
    for member in left {
        if !join_nearest(bucket, &mut groups, member) {
            return Ok(Vec::new());
        }
    }
    Ok(groups)
}

/// Adds a row to the group whose loss grows least among those that *C* allows with it; false where
/// there is none.
fn join_nearest(bucket: &Bucket, groups: &mut [Cluster], member: u32) -> bool {
    let cost = |group: &Cluster| {
        let grown = (group.members.len() + 1) as f32;
        bucket.ncp_with(&group.bounds, member) * grown - group.loss()
    };
    let allowed = groups
        .iter_mut()
        .filter(|group| group.allows(bucket, None, Some(member)));
    let Some(group) = allowed.min_by(|one, other| cost(one).total_cmp(&cost(other))) else {
        return false;
    };
    let mut members = std::mem::take(&mut group.members);
    members.push(member);
    *group = bucket.cluster(members);
    true
}

/// Grows one group out of the candidates, of which `whole` is the tally. `None` where no further
/// row leads to a group that meets the condition; then its rows are candidates again.
fn grow_one(
    bucket: &Bucket,
    bounded: &BoundedCells,
    candidates: &mut Candidates,
    whole: &mut Tally,
    checker: &mut GroupChecker,
) -> Option<Cluster> {
    let size = checker.condition.typical_rows();
    let least = bounded.least_in_part(whole, size);
    let mut tally = bounded.empty_tally();
    candidates.start();
    for &seed in &candidates.members {
        tally.add(bounded.record(seed as usize));
    }
    loop {
        let taken = candidates.members.len();
        if checker.has_enough_rows(taken)
            && bounded.allows(&tally)
            && accepts(bucket, &candidates.members, checker)
        {
            break;
        }
        // Beyond the typical size a group grows as long as persons are missing.
        let places = size.saturating_sub(taken).max(1);
        let lacking = bounded.lacking(&least, &tally);
        let is_full = |column: usize| lacking[column] as usize >= places;
        let mut trial = tally.clone();
        let mut is_permitted = |member: u32| {
            let cells = bounded.record(member as usize);
            if !bounded.fills(member as usize, &least, &tally, is_full) {
                return false;
            }
            trial.add(cells);
            let allowed = bounded.allows_with(&trial, places as u32 - 1);
            trial.remove(cells);
            allowed
        };
        let Some(nearest) = candidates.nearest(&mut is_permitted) else {
            candidates.give_up();
            return None;
        };
        tally.add(bounded.record(candidates.left[nearest] as usize));
        candidates.take(nearest);
    }
    let members = &candidates.members;
    for &member in members {
        whole.remove(bounded.record(member as usize));
    }
    Some(bucket.cluster(members.clone()))
}

/// Greatest number of passes over a bucket's rows; most buckets stop changing before.
const PASSES: usize = 4;

/// Smallest decrease of NCP that counts as a gain; a smaller one may be rounding.
const LEAST_GAIN: f32 = 1e-4;

/// A change of a row's group.
#[derive(Clone, Copy)]
struct Change {
    /// The decrease of NCP summed over rows.
    gain: f32,
    /// Index of the group that the row moves to.
    to: usize,
    /// Index of the member of that group that moves the other way, in an exchange.
    back: Option<usize>,
}

/// A member by its place.
#[derive(Clone, Copy)]
struct MemberPlace {
    group: usize,
    index: usize,
}

/// A member that may leave its group.
struct Leaving<'a> {
    member: u32,
    from: &'a Cluster,
    /// NCP of its group without it, summed over dimensions.
    ncp_of_rest: f32,
}

/// Improves the clusters of a bucket: single rows are moved to another cluster, or exchanged with
/// a row of another one, until no change decreases NCP, or for a few passes.
fn improve(
    bucket: &Bucket,
    groups: &mut [Cluster],
    checker: &mut GroupChecker,
    progress: &SplitProgress,
) -> Result<(), RunError> {
    let mut changes = Changes {
        count: 0,
        last: vec![0; groups.len()],
        examined: vec![None; groups.len()],
    };
    for _ in 0..PASSES {
        let before = changes.count;
        progress.stop_if_asked()?;
        pass(bucket, groups, checker, &mut changes);
        if changes.count == before {
            break;
        }
    }
    Ok(())
}

/// Which groups have changed since they were examined.
struct Changes {
    /// Changes so far.
    count: usize,
    /// By group, the number of its last change.
    last: Vec<usize>,
    /// By group, the number of changes when its members were examined last.
    examined: Vec<Option<usize>>,
}

impl Changes {
    /// Whether a change between two groups may gain: not if neither has changed since the members
    /// of the first were examined, when none of them gained by one.
    fn may_gain(&self, from: usize, to: usize) -> bool {
        let changed = self.last[from].max(self.last[to]);
        self.examined[from].is_none_or(|examined| changed > examined)
    }
}

/// One pass: each row is moved to another group, or exchanged with a row of another group, where
/// that decreases NCP and both groups still meet the condition.
fn pass(
    bucket: &Bucket,
    groups: &mut [Cluster],
    checker: &mut GroupChecker,
    changes: &mut Changes,
) {
    for from in 0..groups.len() {
        let before = changes.count;
        let mut index = 0;
        while index < groups[from].members.len() {
            let place = MemberPlace { group: from, index };
            if let Some(change) = best_change(bucket, groups, place, checker, changes)
                && perform(bucket, groups, place, change, checker)
            {
                changes.count += 1;
                changes.last[from] = changes.count;
                changes.last[change.to] = changes.count;
            }
            index += 1;
        }
        changes.examined[from] = Some(before);
    }
}

/// The change of a member that decreases NCP most.
fn best_change(
    bucket: &Bucket,
    groups: &[Cluster],
    MemberPlace { group: from, index }: MemberPlace,
    checker: &GroupChecker,
    changes: &Changes,
) -> Option<Change> {
    let own = &groups[from];
    // A group without loss gains nothing by a change.
    if own.loss() <= LEAST_GAIN {
        return None;
    }
    let member = own.members[index];
    let (size, before) = (own.members.len() as f32, own.loss());
    // A single row has a loss too, where its label is a range. No row is left without it.
    let ncp_of_rest = match own.members.len() {
        1 => 0.0,
        _ => bucket.ncp_without(own, member),
    };
    let saved = before - ncp_of_rest * (size - 1.0);
    let movable = checker.has_enough_rows(own.members.len() - 1)
        && own.members.len() > 1
        && own.allows(bucket, Some(member), None);
    let leaving = Leaving {
        member,
        from: own,
        ncp_of_rest,
    };
    let mut best: Option<Change> = None;
    for (to, other) in groups.iter().enumerate() {
        if to == from || !changes.may_gain(from, to) {
            continue;
        }
        let grown = (other.members.len() + 1) as f32;
        let least = best.map_or(LEAST_GAIN, |best| best.gain);
        // Most rows would cost more in most groups, which a few dimensions show.
        let limit = (saved - least + other.loss()) / grown;
        let Some(ncp) = bucket.ncp_with_up_to(&other.bounds, member, limit) else {
            continue;
        };
        let cost = ncp * grown - other.loss();
        if saved - cost <= least {
            continue;
        }
        if movable && other.allows(bucket, None, Some(member)) {
            best = Some(Change {
                gain: saved - cost,
                to,
                back: None,
            });
            continue;
        }
        if let Some((gain, back)) = best_exchange(bucket, &leaving, other, least) {
            best = Some(Change {
                gain,
                to,
                back: Some(back),
            });
        }
    }
    best
}

/// The best exchange with a member of another group that gains more than `least`: the gain, and
/// the index of that member.
fn best_exchange(
    bucket: &Bucket,
    leaving: &Leaving,
    other: &Cluster,
    least: f32,
) -> Option<(f32, usize)> {
    let own = leaving.from;
    let (size, before) = (own.members.len() as f32, own.loss());
    let mut best: Option<(f32, usize)> = None;
    for (index, &back) in other.members.iter().enumerate() {
        let most = best.map_or(least, |(gain, _)| gain);
        // No range is narrower than that of the rest alone.
        if before - leaving.ncp_of_rest * size + other.loss() <= most {
            return best;
        }
        let saved = before - bucket.ncp_exchanged(own, leaving.member, back) * size;
        if saved + other.loss() <= most {
            continue;
        }
        let exchanged = bucket.ncp_exchanged(other, back, leaving.member);
        let gain = saved + other.loss() - exchanged * other.members.len() as f32;
        if gain > most && may_exchange(bucket, leaving, other, back) {
            best = Some((gain, index));
        }
    }
    best
}

/// Whether *C* allows both groups after an exchange.
fn may_exchange(bucket: &Bucket, leaving: &Leaving, other: &Cluster, back: u32) -> bool {
    let own = leaving.member;
    let is_same = bucket.bounded.as_ref().is_none_or(|bounded| {
        let [own, back] = [own, back].map(|member| bounded.record(member as usize));
        own == back
    });
    is_same
        || (leaving.from.allows(bucket, Some(own), Some(back))
            && other.allows(bucket, Some(back), Some(own)))
}

/// Performs a change if both groups then meet the condition; returns whether it did.
fn perform(
    bucket: &Bucket,
    groups: &mut [Cluster],
    MemberPlace { group: from, index }: MemberPlace,
    change: Change,
    checker: &mut GroupChecker,
) -> bool {
    let mut own = groups[from].members.clone();
    let mut other = groups[change.to].members.clone();
    match change.back {
        Some(back) => std::mem::swap(&mut own[index], &mut other[back]),
        None => other.push(own.swap_remove(index)),
    }
    // One more row may violate a model of frequencies, but not one by minimum cover.
    if !accepts(bucket, &other, checker) || !accepts(bucket, &own, checker) {
        return false;
    }
    groups[from] = bucket.cluster(own);
    groups[change.to] = bucket.cluster(other);
    true
}

/// Whether these members, as one group, meet the condition.
fn accepts(bucket: &Bucket, members: &[u32], checker: &mut GroupChecker) -> bool {
    if !checker.depends_on_rows() {
        return checker.has_enough_rows(members.len());
    }
    let row = |&member: &u32| bucket.rows[member as usize];
    let rows: Vec<u32> = members.iter().map(row).collect();
    checker.accepts(&rows)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Bucket, groups};
    use crate::methods::partitioning::condition::{Condition, DiversityCheck, GroupChecker};
    use crate::methods::partitioning::loss::Loss;
    use crate::methods::partitioning::split_progress::SplitProgress;
    use crate::{RunError, Unobserved};
    use pais_core::definition::ColumnKind;
    use pais_core::table::codes::Codes;
    use pais_core::table::{Domain, QuasiIdentifier};

    proptest! {
        /// The stored state of a cluster gives the same NCP without a member, and with another in its place, as
        /// a new computation.
        #[test]
        fn the_loss_of_an_exchange_is_that_of_the_exchanged_cluster(
            codes in prop::collection::vec((0u32..6, 0u32..4), 3..12),
        ) {
            let domain = |values: u32| Domain::Numeric {
                values: (0..values).map(f64::from).collect(),
                lo: 0.0,
                hi: f64::from(values - 1),
                missing: false,
                scale: pais_core::taxonomy::Scale::Number,
                round: None,
                ends: None,
            };
            let column = |name: &str, values: u32, codes: Vec<u32>| QuasiIdentifier {
                name: name.into(),
                position: 0,
                domain: domain(values),
                codes: Codes::Four(codes.into()),
            };
            let (a, b): (Vec<u32>, Vec<u32>) = codes.iter().copied().unzip();
            let columns = [column("a", 6, a), column("b", 4, b)];
            let losses: Vec<Loss> =
                columns.iter().map(|it| Loss::new(it, ColumnKind::Numeric)).collect();
            let rows: Vec<u32> = (0..codes.len() as u32).collect();
            let bucket = Bucket::new(&losses, &rows, None);
            let (&last, members) = rows.split_last().unwrap();
            let cluster = bucket.cluster(members.to_vec());
            for &out in members {
                let rest: Vec<u32> = members.iter().copied().filter(|&it| it != out).collect();
                let without = bucket.cluster(rest.clone());
                prop_assert_eq!(bucket.ncp_without(&cluster, out), without.ncp);
                let exchanged = bucket.cluster([rest, vec![last]].concat());
                prop_assert_eq!(bucket.ncp_exchanged(&cluster, out, last), exchanged.ncp);
            }
        }
    }

    #[test]
    fn clustering_ends_when_it_is_asked_to_stop() {
        let condition = Condition {
            k: 2,
            subjects: None,
            diversity: DiversityCheck::None,
            ranges: Vec::new(),
        };
        let rows: Vec<u32> = (0..8).collect();
        let bucket = Bucket::new(&[], &rows, None);
        let observer = Unobserved::default();
        let grouped = || {
            let progress = SplitProgress::new(&observer, rows.len());
            groups(&bucket, &[8], &mut GroupChecker::new(&condition), &progress)
        };
        assert!(grouped().is_ok());
        observer.0.cancel();
        assert!(matches!(grouped(), Err(RunError::Cancelled)));
    }
}
