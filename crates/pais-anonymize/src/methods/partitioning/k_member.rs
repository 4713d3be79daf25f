//! Greedy k-member clustering of the few rows of a bucket, a small leaf region of the k-d split
//! (Byun, Kamra, Bertino, Li: *Efficient k-Anonymization Using Clustering Techniques*, DASFAA
//! 2007). Each cluster starts at the row farthest from the previous cluster; single rows are then
//! moved and exchanged while that decreases NCP.
//!
//! A cut of the k-d split divides a whole bucket. Among a few dozen rows the best neighbours of
//! each row can be found individually, which keeps the released labels narrower.

use super::candidates::Candidates;
use super::clusters::{Bucket, Cluster};
use super::condition::GroupChecker;
use super::improvement::{accepts, improve};
use super::shares;

/// Groups of row numbers that meet the condition, with no greater loss than the given ones. The
/// given groups are consecutive rows of the bucket with these sizes, and meet the condition.
pub(super) fn groups(bucket: &Bucket, sizes: &[u32], checker: &mut GroupChecker) -> Vec<Vec<u32>> {
    let mut next = 0;
    let mut groups: Vec<Cluster> = sizes
        .iter()
        .map(|&size| {
            next += size;
            bucket.cluster((next - size..next).collect())
        })
        .collect();
    let grown = match &bucket.bounded {
        Some(bounded) => shares::grow(bucket, bounded, checker),
        None => grow(bucket, checker),
    };
    let loss = |groups: &[Cluster]| groups.iter().map(Cluster::loss).sum::<f32>();
    if !grown.is_empty() && loss(&grown) < loss(&groups) {
        groups = grown;
    }
    improve(bucket, &mut groups, checker);
    let row = |&member: &u32| bucket.rows[member as usize];
    groups
        .iter()
        .map(|group| group.members.iter().map(row).collect())
        .collect()
}

/// Grows groups one after another. Each starts with the row farthest from the previous group and
/// takes the nearest rows until it meets the condition. Each row left over joins the group whose
/// loss grows least. Empty where not all groups meet the condition in the end.
fn grow(bucket: &Bucket, checker: &mut GroupChecker) -> Vec<Cluster> {
    let mut candidates = Candidates::new(bucket);
    let mut groups: Vec<Cluster> = Vec::new();
    while checker.has_enough_rows(candidates.left().len()) {
        candidates.start();
        let accepted = loop {
            let members = candidates.members();
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
        groups.push(bucket.cluster(candidates.members().to_vec()));
    }
    if groups.is_empty() {
        return groups;
    }
    for member in candidates.into_left() {
        let cost = |group: &Cluster| {
            let grown = (group.members.len() + 1) as f32;
            bucket.ncp_with(&group.bounds, member) * grown - group.loss()
        };
        let best = groups
            .iter_mut()
            .min_by(|one, other| cost(one).total_cmp(&cost(other)));
        if let Some(group) = best {
            let mut members = std::mem::take(&mut group.members);
            members.push(member);
            *group = bucket.cluster(members);
        }
    }
    let mut holds = |group: &Cluster| accepts(bucket, &group.members, checker);
    if groups.iter().all(&mut holds) {
        groups
    } else {
        Vec::new()
    }
}
