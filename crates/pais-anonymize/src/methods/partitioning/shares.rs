//! Clusters of a bucket whose bounded values keep to their shares: the growth of
//! [`super::k_member`] under *C*.
//!
//! A cluster takes a row only while its most frequent bounded value can still be at most *C* of
//! its final rows, and takes as many rows with a value as the rest of the bucket cannot keep under
//! *C* itself. So both the cluster and the rest can meet *C*, as the halves of a split do.

use super::candidates::Candidates;
use super::clusters::{Bucket, Cluster};
use super::condition::GroupChecker;
use super::confidence::BoundedCells;
use super::improvement::accepts;
use super::tally::Tally;

/// Grows groups one after another, as [`super::k_member`] does. A last group of all rows that are
/// left is one of them where it meets the condition; else each of these rows joins the group whose
/// loss grows least and that still meets *C* with it. Empty where there is no such group.
pub(super) fn grow(
    bucket: &Bucket,
    bounded: &BoundedCells,
    checker: &mut GroupChecker,
) -> Vec<Cluster> {
    let mut candidates = Candidates::new(bucket);
    let mut whole = bounded.empty_tally();
    for &member in candidates.left() {
        whole.add(bounded.record(member as usize));
    }
    let mut groups: Vec<Cluster> = Vec::new();
    // A group takes K rows or more. Fewer than twice as many are the last group.
    while checker.has_enough_rows(candidates.left().len() / 2) {
        match grow_one(bucket, bounded, &mut candidates, &mut whole, checker) {
            Some(group) => groups.push(group),
            None => break,
        }
    }
    let left = candidates.into_left();
    if accepts(bucket, &left, checker) {
        groups.push(bucket.cluster(left));
        return groups;
    }
    for member in left {
        let cells = bounded.record(member as usize);
        let cost = |group: &Cluster| {
            let grown = (group.members.len() + 1) as f32;
            bucket.ncp_with(&group.bounds, member) * grown - group.loss()
        };
        let allowed = groups
            .iter_mut()
            .filter(|group| group.allows(bounded, None, Some(cells)));
        let best = allowed.min_by(|one, other| cost(one).total_cmp(&cost(other)));
        let Some(group) = best else {
            return Vec::new();
        };
        let mut members = std::mem::take(&mut group.members);
        members.push(member);
        *group = bucket.cluster(members);
    }
    groups
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
    let size = checker.typical_rows();
    let least = bounded.least_in_part(whole, size);
    let mut tally = bounded.empty_tally();
    candidates.start();
    for &seed in candidates.members() {
        tally.add(bounded.record(seed as usize));
    }
    loop {
        let taken = candidates.members().len();
        if checker.has_enough_rows(taken)
            && bounded.allows(&tally)
            && accepts(bucket, candidates.members(), checker)
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
            if !bounded.fills(member as usize, (&least, &tally), is_full) {
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
        tally.add(bounded.record(candidates.left()[nearest] as usize));
        candidates.take(nearest);
    }
    let members = candidates.members();
    for &member in members {
        whole.remove(bounded.record(member as usize));
    }
    Some(bucket.cluster(members.to_vec()))
}
