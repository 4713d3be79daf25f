//! Groups of least loss among few rows: grown around one another's opposites, then mended by
//! moving and exchanging single rows.
//!
//! A tree's cuts run through a whole cell. Among a few dozen rows the best neighbours of a row
//! can be found one by one, which keeps labels narrower (as in greedy k-member clustering; Byun,
//! Kamra, Bertino, Li: *Efficient k-Anonymization Using Clustering Techniques*, DASFAA 2007).

use super::condition::Judge;
use super::loss::Loss;

/// Passes over a cell's rows; most cells are still before.
const PASSES: usize = 4;

/// Less than this is no gain but rounding.
const LEAST_GAIN: f32 = 1e-4;

/// The first and the last code of a group, dimension by dimension.
type Bounds = Vec<(u32, u32)>;

/// The rows of a cell, by their place in it.
pub(super) struct Cell<'a> {
    losses: &'a [Loss<'a>],
    rows: &'a [u32],
    /// Row after row, a code for each dimension.
    codes: Vec<u32>,
}

/// A group of a cell.
struct Cluster {
    members: Vec<u32>,
    bounds: Bounds,
    /// NCP of its labels, summed over dimensions.
    ncp: f32,
}

impl Cluster {
    /// What its rows lose together.
    fn loss(&self) -> f32 {
        self.ncp * self.members.len() as f32
    }
}

/// What a change of a row's group gains.
#[derive(Clone, Copy)]
struct Change {
    gain: f32,
    to: usize,
    /// The member of the other group that comes back, by its place.
    back: Option<usize>,
}

impl<'a> Cell<'a> {
    pub(super) fn of(losses: &'a [Loss<'a>], rows: &'a [u32]) -> Self {
        let codes = rows
            .iter()
            .flat_map(|&row| losses.iter().map(move |loss| loss.codes[row as usize]));
        Self {
            losses,
            rows,
            codes: codes.collect(),
        }
    }

    /// Groups that meet the condition, at least as good as the given ones, which are runs of the
    /// cell's rows of these sizes and meet it.
    pub(super) fn groups(&self, sizes: &[u32], judge: &mut Judge) -> Vec<Vec<u32>> {
        let mut next = 0;
        let mut groups: Vec<Cluster> = sizes
            .iter()
            .map(|&size| {
                next += size;
                self.cluster((next - size..next).collect())
            })
            .collect();
        let grown = self.grow(judge);
        let loss = |groups: &[Cluster]| groups.iter().map(Cluster::loss).sum::<f32>();
        if !grown.is_empty() && loss(&grown) < loss(&groups) {
            groups = grown;
        }
        for _ in 0..PASSES {
            if !self.mend(&mut groups, judge) {
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
            .map(|(loss, &(first, last))| loss.of_range(first, last))
            .sum()
    }

    /// NCP of a group's labels with a further member.
    #[inline]
    fn ncp_with(&self, bounds: &Bounds, member: u32) -> f32 {
        let mut sum = 0.0;
        let codes = self.codes(member);
        for ((loss, &(first, last)), &code) in self.losses.iter().zip(bounds).zip(codes) {
            sum += loss.of_range(first.min(code), last.max(code));
        }
        sum
    }

    fn accepts(&self, members: impl Iterator<Item = u32>, judge: &mut Judge) -> bool {
        if !judge.minds_values() {
            return judge.suffices(members.count());
        }
        let rows: Vec<u32> = members.map(|member| self.rows[member as usize]).collect();
        judge.accepts(&rows)
    }

    /// Groups grown one after another, each from the row that is farthest from the last one by
    /// its nearest rows, until it meets the condition; rows left over join the group that loses
    /// least. Empty where not all groups meet it then.
    fn grow(&self, judge: &mut Judge) -> Vec<Cluster> {
        let mut left: Vec<u32> = (0..self.rows.len() as u32).collect();
        let mut groups: Vec<Cluster> = Vec::new();
        while judge.suffices(left.len()) {
            let seed = groups.last().map_or(0, |last| self.farthest(last, &left));
            let mut group = self.cluster(vec![left.swap_remove(seed)]);
            let accepted = loop {
                if judge.suffices(group.members.len())
                    && self.accepts(group.members.iter().copied(), judge)
                {
                    break true;
                }
                let Some((place, ncp)) = self.nearest(&group, &left) else {
                    break false;
                };
                let member = left.swap_remove(place);
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
        let holds = |group: &Cluster| self.accepts(group.members.iter().copied(), judge);
        if groups.iter().all(holds) {
            groups
        } else {
            Vec::new()
        }
    }

    fn farthest(&self, from: &Cluster, left: &[u32]) -> usize {
        let ncp = left
            .iter()
            .map(|&member| self.ncp_with(&from.bounds, member));
        let places = ncp.enumerate();
        let farthest = places.max_by(|(_, one), (_, other)| one.total_cmp(other));
        farthest.map_or(0, |(place, _)| place)
    }

    fn nearest(&self, to: &Cluster, left: &[u32]) -> Option<(usize, f32)> {
        let mut best: Option<(usize, f32)> = None;
        for (place, &member) in left.iter().enumerate() {
            let ncp = self.ncp_with(&to.bounds, member);
            if best.is_none_or(|(_, least)| ncp < least) {
                best = Some((place, ncp));
                if ncp <= to.ncp {
                    break;
                }
            }
        }
        best
    }

    /// One pass: each row is moved to another group, or exchanged with a row of one, where that
    /// gains and both groups still meet the condition. Whether any was.
    fn mend(&self, groups: &mut [Cluster], judge: &mut Judge) -> bool {
        let mut changed = false;
        for from in 0..groups.len() {
            let mut place = 0;
            while place < groups[from].members.len() {
                if let Some(change) = self.best_change(groups, from, place, judge)
                    && self.perform(groups, (from, place), change, judge)
                {
                    changed = true;
                }
                place += 1;
            }
        }
        changed
    }

    fn best_change(
        &self,
        groups: &[Cluster],
        from: usize,
        place: usize,
        judge: &Judge,
    ) -> Option<Change> {
        let own = &groups[from];
        // What loses nothing gains nothing by a change, a single row above all.
        if own.loss() <= LEAST_GAIN {
            return None;
        }
        let member = own.members[place];
        let others = own.members.iter().filter(|&&other| other != member);
        let rest = self.bounds(others.copied());
        let (size, before) = (own.members.len() as f32, own.loss());
        let saved = before - self.ncp(&rest) * (size - 1.0);
        let movable = judge.suffices(own.members.len() - 1) && own.members.len() > 1;
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

    /// The member of another group that should come for `member`; `rest` are the bounds of its
    /// own group without it, which loses `before` and has `size` rows.
    fn best_exchange(
        &self,
        other: &Cluster,
        (to, member): (usize, u32),
        (rest, before, size): (&Bounds, f32, f32),
    ) -> Option<Change> {
        let mut best: Option<Change> = None;
        for (place, &back) in other.members.iter().enumerate() {
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
                    back: Some(place),
                });
            }
        }
        best
    }

    fn perform(
        &self,
        groups: &mut [Cluster],
        (from, place): (usize, usize),
        change: Change,
        judge: &mut Judge,
    ) -> bool {
        let mut own = groups[from].members.clone();
        let mut other = groups[change.to].members.clone();
        match change.back {
            Some(back) => std::mem::swap(&mut own[place], &mut other[back]),
            None => other.push(own.swap_remove(place)),
        }
        // A further row may break a model of frequencies, though none that counts strikes.
        if !self.accepts(other.iter().copied(), judge) || !self.accepts(own.iter().copied(), judge)
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
