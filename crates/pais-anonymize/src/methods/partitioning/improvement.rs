//! Improves the clusters of a bucket: single rows are moved to another cluster, or exchanged with
//! a row of another one, while that decreases NCP.

use super::clusters::{Bucket, Cluster};
use super::condition::GroupChecker;

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

/// A member that may leave its group.
struct Leaving<'a> {
    member: u32,
    from: &'a Cluster,
    /// NCP of its group without it, summed over dimensions.
    ncp_of_rest: f32,
}

/// Moves and exchanges rows until no change decreases NCP, or for a few passes.
pub(super) fn improve(bucket: &Bucket, groups: &mut [Cluster], checker: &mut GroupChecker) {
    let mut changes = Changes {
        count: 0,
        last: vec![0; groups.len()],
        examined: vec![None; groups.len()],
    };
    for _ in 0..PASSES {
        let before = changes.count;
        pass(bucket, groups, checker, &mut changes);
        if changes.count == before {
            break;
        }
    }
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
            if let Some(change) = best_change(bucket, groups, (from, index), (checker, changes))
                && perform(bucket, groups, (from, index), change, checker)
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

/// The change of the member at `index` of group `from` that decreases NCP most.
fn best_change(
    bucket: &Bucket,
    groups: &[Cluster],
    (from, index): (usize, usize),
    (checker, changes): (&GroupChecker, &Changes),
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
        && may_leave(bucket, own, member);
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
        if movable && may_join(bucket, other, member) {
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
        if gain > most && may_exchange(bucket, leaving, (other, back)) {
            best = Some((gain, index));
        }
    }
    best
}

/// Whether *C* allows the group without the member.
fn may_leave(bucket: &Bucket, group: &Cluster, member: u32) -> bool {
    bucket
        .bounded
        .as_ref()
        .is_none_or(|bounded| group.allows(bounded, Some(bounded.record(member as usize)), None))
}

/// Whether *C* allows the group with one more member.
fn may_join(bucket: &Bucket, group: &Cluster, member: u32) -> bool {
    bucket
        .bounded
        .as_ref()
        .is_none_or(|bounded| group.allows(bounded, None, Some(bounded.record(member as usize))))
}

/// Whether *C* allows both groups after an exchange.
fn may_exchange(bucket: &Bucket, leaving: &Leaving, (other, back): (&Cluster, u32)) -> bool {
    bucket.bounded.as_ref().is_none_or(|bounded| {
        let [own, back] = [leaving.member, back].map(|member| bounded.record(member as usize));
        own == back
            || (leaving.from.allows(bounded, Some(own), Some(back))
                && other.allows(bounded, Some(back), Some(own)))
    })
}

/// Performs a change if both groups then meet the condition; returns whether it did.
fn perform(
    bucket: &Bucket,
    groups: &mut [Cluster],
    (from, index): (usize, usize),
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
pub(super) fn accepts(bucket: &Bucket, members: &[u32], checker: &mut GroupChecker) -> bool {
    if !checker.depends_on_rows() {
        return checker.has_enough_rows(members.len());
    }
    let row = |&member: &u32| bucket.rows[member as usize];
    let rows: Vec<u32> = members.iter().map(row).collect();
    checker.accepts(&rows)
}
