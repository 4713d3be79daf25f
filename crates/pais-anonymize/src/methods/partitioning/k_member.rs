//! Greedy k-member clustering of the few rows of a bucket, a small leaf region of the k-d split
//! (Byun, Kamra, Bertino, Li: *Efficient k-Anonymization Using Clustering Techniques*, DASFAA
//! 2007). Each cluster starts at the row farthest from the previous cluster; single rows are then
//! moved and exchanged while that decreases NCP.
//!
//! A cut of the k-d split divides a whole bucket. Among a few dozen rows the best neighbours of
//! each row can be found individually, which keeps the released labels narrower.

use super::condition::GroupChecker;
use super::loss::Loss;

/// Greatest number of improvement passes over a bucket's rows; most buckets stop changing before.
const PASSES: usize = 4;

/// Smallest decrease of NCP that counts as a gain; a smaller one may be rounding.
const LEAST_GAIN: f32 = 1e-4;

/// The first and the last code of a group in each dimension.
type Bounds = Vec<(u32, u32)>;

/// The clustering of a bucket's rows. A member is a row by its index in the bucket.
pub(super) struct KMemberClusters<'a> {
    losses: &'a [Loss<'a>],
    rows: &'a [u32],
    /// Rows × dimensions, row by row.
    codes: Vec<u32>,
}

/// A group of a bucket.
struct Cluster {
    members: Vec<u32>,
    bounds: Bounds,
    /// NCP of its labels, summed over dimensions.
    ncp: f32,
}

impl Cluster {
    /// NCP summed over its rows.
    fn loss(&self) -> f32 {
        self.ncp * self.members.len() as f32
    }
}

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

impl<'a> KMemberClusters<'a> {
    pub(super) fn new(losses: &'a [Loss<'a>], rows: &'a [u32]) -> Self {
        let codes = rows
            .iter()
            .flat_map(|&row| losses.iter().map(move |loss| loss.codes[row as usize]));
        Self {
            losses,
            rows,
            codes: codes.collect(),
        }
    }

    /// Groups of row numbers that meet the condition, with no greater loss than the given ones.
    /// The given groups are consecutive rows of the bucket with these sizes, and meet the
    /// condition.
    pub(super) fn groups(&self, sizes: &[u32], checker: &mut GroupChecker) -> Vec<Vec<u32>> {
        let mut next = 0;
        let mut groups: Vec<Cluster> = sizes
            .iter()
            .map(|&size| {
                next += size;
                self.cluster((next - size..next).collect())
            })
            .collect();
        let grown = self.grow(checker);
        let loss = |groups: &[Cluster]| groups.iter().map(Cluster::loss).sum::<f32>();
        if !grown.is_empty() && loss(&grown) < loss(&groups) {
            groups = grown;
        }
        for _ in 0..PASSES {
            if !self.improve(&mut groups, checker) {
                break;
            }
        }
        let row = |&member: &u32| self.rows[member as usize];
        groups
            .iter()
            .map(|group| group.members.iter().map(row).collect())
            .collect()
    }

    fn codes(&self, member: u32) -> &[u32] {
        let width = self.losses.len();
        &self.codes[member as usize * width..][..width]
    }

    fn cluster(&self, members: Vec<u32>) -> Cluster {
        let bounds = self.bounds(members.iter().copied());
        Cluster {
            ncp: self.ncp(&bounds),
            members,
            bounds,
        }
    }

    fn bounds(&self, members: impl Iterator<Item = u32>) -> Bounds {
        let mut bounds = vec![(u32::MAX, 0); self.losses.len()];
        for member in members {
            widen(&mut bounds, self.codes(member));
        }
        bounds
    }

    fn ncp(&self, bounds: &Bounds) -> f32 {
        let losses = self.losses.iter().zip(bounds);
        losses
            .map(|(loss, &(first, last))| loss.ncp_of_range(first, last))
            .sum()
    }

    /// NCP of a group's labels with one more member, summed over dimensions.
    #[inline]
    fn ncp_with(&self, bounds: &Bounds, member: u32) -> f32 {
        let mut sum = 0.0;
        let codes = self.codes(member);
        for ((loss, &(first, last)), &code) in self.losses.iter().zip(bounds).zip(codes) {
            sum += loss.ncp_of_range(first.min(code), last.max(code));
        }
        sum
    }

    fn accepts(&self, members: impl Iterator<Item = u32>, checker: &mut GroupChecker) -> bool {
        if !checker.depends_on_rows() {
            return checker.has_enough_rows(members.count());
        }
        let rows: Vec<u32> = members.map(|member| self.rows[member as usize]).collect();
        checker.accepts(&rows)
    }

    /// Grows groups one after another. Each starts with the row farthest from the previous group
    /// and takes the nearest rows until it meets the condition. Each row left over joins the group
    /// whose loss grows least. Empty where not all groups meet the condition in the end.
    fn grow(&self, checker: &mut GroupChecker) -> Vec<Cluster> {
        let mut left: Vec<u32> = (0..self.rows.len() as u32).collect();
        let mut groups: Vec<Cluster> = Vec::new();
        while checker.has_enough_rows(left.len()) {
            let seed = groups.last().map_or(0, |last| self.farthest(last, &left));
            let mut group = self.cluster(vec![left.swap_remove(seed)]);
            let accepted = loop {
                if checker.has_enough_rows(group.members.len())
                    && self.accepts(group.members.iter().copied(), checker)
                {
                    break true;
                }
                let Some((index, ncp)) = self.nearest(&group, &left) else {
                    break false;
                };
                let member = left.swap_remove(index);
                widen(&mut group.bounds, self.codes(member));
                group.ncp = ncp;
                group.members.push(member);
            };
            if !accepted {
                left.append(&mut group.members);
                break;
            }
            groups.push(group);
        }
        if groups.is_empty() {
            return groups;
        }
        for member in left {
            let cost = |group: &Cluster| {
                let grown = (group.members.len() + 1) as f32;
                self.ncp_with(&group.bounds, member) * grown - group.loss()
            };
            let best = groups
                .iter_mut()
                .min_by(|one, other| cost(one).total_cmp(&cost(other)));
            if let Some(group) = best {
                group.ncp = self.ncp_with(&group.bounds, member);
                widen(&mut group.bounds, self.codes(member));
                group.members.push(member);
            }
        }
        let holds = |group: &Cluster| self.accepts(group.members.iter().copied(), checker);
        if groups.iter().all(holds) {
            groups
        } else {
            Vec::new()
        }
    }

    /// The index in `left` of the row that increases the group's NCP most.
    fn farthest(&self, from: &Cluster, left: &[u32]) -> usize {
        let ncp = left
            .iter()
            .map(|&member| self.ncp_with(&from.bounds, member));
        let indexed = ncp.enumerate();
        let farthest = indexed.max_by(|(_, one), (_, other)| one.total_cmp(other));
        farthest.map_or(0, |(index, _)| index)
    }

    /// The index in `left` of the row that increases the group's NCP least, and the NCP with it.
    fn nearest(&self, to: &Cluster, left: &[u32]) -> Option<(usize, f32)> {
        let mut best: Option<(usize, f32)> = None;
        for (index, &member) in left.iter().enumerate() {
            let ncp = self.ncp_with(&to.bounds, member);
            if best.is_none_or(|(_, least)| ncp < least) {
                best = Some((index, ncp));
                if ncp <= to.ncp {
                    break;
                }
            }
        }
        best
    }

    /// One pass: each row is moved to another group, or exchanged with a row of another group,
    /// where that decreases NCP and both groups still meet the condition. Returns whether any row
    /// changed its group.
    fn improve(&self, groups: &mut [Cluster], checker: &mut GroupChecker) -> bool {
        let mut changed = false;
        for from in 0..groups.len() {
            let mut index = 0;
            while index < groups[from].members.len() {
                if let Some(change) = self.best_change(groups, from, index, checker)
                    && self.perform(groups, (from, index), change, checker)
                {
                    changed = true;
                }
                index += 1;
            }
        }
        changed
    }

    /// The change of the member at `index` of group `from` that decreases NCP most.
    fn best_change(
        &self,
        groups: &[Cluster],
        from: usize,
        index: usize,
        checker: &GroupChecker,
    ) -> Option<Change> {
        let own = &groups[from];
        // A group without loss gains nothing by a change.
        if own.loss() <= LEAST_GAIN {
            return None;
        }
        let member = own.members[index];
        let others = own.members.iter().filter(|&&other| other != member);
        let rest = self.bounds(others.copied());
        let (size, before) = (own.members.len() as f32, own.loss());
        // A single row has a loss too, where its label is a range. No row is left without it.
        let left = if own.members.len() > 1 {
            self.ncp(&rest)
        } else {
            0.0
        };
        let saved = before - left * (size - 1.0);
        let movable = checker.has_enough_rows(own.members.len() - 1) && own.members.len() > 1;
        let mut best: Option<Change> = None;
        for (to, other) in groups.iter().enumerate().filter(|(to, _)| *to != from) {
            let grown = (other.members.len() + 1) as f32;
            let cost = self.ncp_with(&other.bounds, member) * grown - other.loss();
            let least = best.map_or(LEAST_GAIN, |best| best.gain);
            if saved - cost <= least {
                continue;
            }
            if movable {
                best = Some(Change {
                    gain: saved - cost,
                    to,
                    back: None,
                });
                continue;
            }
            if let Some(change) = self.best_exchange(other, (to, member), (&rest, before, size))
                && change.gain > least
            {
                best = Some(change);
            }
        }
        best
    }

    /// The best exchange of `member` with a member of another group. `rest` are the bounds of its
    /// own group without it; that group has `size` rows and the loss `before`.
    fn best_exchange(
        &self,
        other: &Cluster,
        (to, member): (usize, u32),
        (rest, before, size): (&Bounds, f32, f32),
    ) -> Option<Change> {
        let mut best: Option<Change> = None;
        for (index, &back) in other.members.iter().enumerate() {
            let own = before - self.ncp_with(rest, back) * size;
            if own + other.loss() <= best.map_or(LEAST_GAIN, |best| best.gain) {
                continue;
            }
            let members = other.members.iter().filter(|&&it| it != back);
            let bounds = self.bounds(members.copied().chain([member]));
            let gain = own + other.loss() - self.ncp(&bounds) * other.members.len() as f32;
            if gain > best.map_or(LEAST_GAIN, |best| best.gain) {
                best = Some(Change {
                    gain,
                    to,
                    back: Some(index),
                });
            }
        }
        best
    }

    /// Performs a change if both groups then meet the condition; returns whether it did.
    fn perform(
        &self,
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
        if !self.accepts(other.iter().copied(), checker)
            || !self.accepts(own.iter().copied(), checker)
        {
            return false;
        }
        groups[from] = self.cluster(own);
        groups[change.to] = self.cluster(other);
        true
    }
}

fn widen(bounds: &mut Bounds, codes: &[u32]) {
    for (bound, &code) in bounds.iter_mut().zip(codes) {
        *bound = (bound.0.min(code), bound.1.max(code));
    }
}
