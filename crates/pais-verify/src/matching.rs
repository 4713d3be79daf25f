//! A greatest matching of records with rows, equal ones counted together.

use std::collections::VecDeque;

use hashbrown::HashMap;
use rayon::prelude::*;

/// Distinct records, each with the number of rows that hold it.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    number: HashMap<Vec<u32>, usize>,
    rows: Vec<u64>,
}

impl Side {
    /// Adds a row.
    pub(super) fn add(&mut self, record: impl Iterator<Item = u32>) {
        let fresh = self.rows.len();
        let number = *self.number.entry(record.collect()).or_insert(fresh);
        if number == fresh {
            self.rows.push(0);
        }
        self.rows[number] += 1;
    }

    fn records(&self) -> Vec<&[u32]> {
        let mut records: Vec<&[u32]> = vec![&[]; self.rows.len()];
        for (record, &number) in &self.number {
            records[number] = record;
        }
        records
    }
}

/// The greatest number of rows on the left that can each be given a row of their own on the
/// right to which they `fit`.
pub(super) fn matched(
    left: &Side,
    right: &Side,
    fit: impl Fn(&[u32], &[u32]) -> bool + Sync,
) -> u64 {
    let records = right.records();
    let edges: Vec<Vec<usize>> = left
        .records()
        .par_iter()
        .map(|one| {
            (0..records.len())
                .filter(|&other| fit(one, records[other]))
                .collect()
        })
        .collect();
    let mut flow = Flow {
        edges,
        free: right.rows.clone(),
        given: vec![HashMap::new(); right.rows.len()],
    };
    // Those that fit the fewest choose first, and most find free rows: a way through others has
    // to be looked for only for the rest.
    let mut order: Vec<usize> = (0..left.rows.len()).collect();
    order.sort_by_key(|&one| flow.edges[one].len());
    let mut got = vec![0; left.rows.len()];
    for &one in &order {
        got[one] = flow.give_free(one, left.rows[one]);
    }
    for &one in &order {
        got[one] += flow.give(one, left.rows[one] - got[one]);
    }
    got.iter().sum()
}

/// Rows on the right as they are given away.
struct Flow {
    /// Of each record on the left, the records on the right that it fits.
    edges: Vec<Vec<usize>>,
    /// Of each record on the right, the rows not given away.
    free: Vec<u64>,
    /// Of each record on the right, the rows given to records on the left.
    given: Vec<HashMap<usize, u64>>,
}

impl Flow {
    /// Gives a record on the left up to `rows` that nobody has; how many it gets.
    fn give_free(&mut self, one: usize, rows: u64) -> u64 {
        let mut got = 0;
        for &other in &self.edges[one] {
            let taken = self.free[other].min(rows - got);
            if taken > 0 {
                self.free[other] -= taken;
                *self.given[other].entry(one).or_insert(0) += taken;
                got += taken;
            }
            if got == rows {
                break;
            }
        }
        got
    }

    /// Gives a record on the left up to `rows`, taking them from others that can have other
    /// ones; how many it gets.
    fn give(&mut self, one: usize, rows: u64) -> u64 {
        let mut got = 0;
        while got < rows {
            let Some(path) = self.path(one) else { break };
            got += self.shift(one, &path, rows - got);
        }
        got
    }

    /// The shortest way from a record on the left to free rows: records on the right, each the
    /// one that the holder of rows of the one before takes instead.
    fn path(&self, one: usize) -> Option<Vec<(usize, usize)>> {
        // By record on the right: who asks for it, and for which it gives up its own.
        let mut asked: Vec<Option<(usize, Option<usize>)>> = vec![None; self.free.len()];
        let mut queue = VecDeque::new();
        let mut seen = vec![false; self.edges.len()];
        seen[one] = true;
        queue.push_back((one, None));
        while let Some((holder, gives_up)) = queue.pop_front() {
            for &other in &self.edges[holder] {
                if asked[other].is_some() {
                    continue;
                }
                asked[other] = Some((holder, gives_up));
                if self.free[other] > 0 {
                    let mut path = Vec::new();
                    let mut at = Some(other);
                    while let Some(other) = at {
                        let (holder, gives_up) = asked[other]?;
                        path.push((holder, other));
                        at = gives_up;
                    }
                    return Some(path);
                }
                for &next in self.given[other].keys() {
                    if !std::mem::replace(&mut seen[next], true) {
                        queue.push_back((next, Some(other)));
                    }
                }
            }
        }
        None
    }

    /// Moves as many rows along a path as it takes; `path` begins at the free rows.
    fn shift(&mut self, one: usize, path: &[(usize, usize)], wanted: u64) -> u64 {
        let held = |flow: &Self, holder: usize, other: usize| {
            flow.given[other].get(&holder).copied().unwrap_or(0)
        };
        let mut rows = wanted;
        if let Some(&(_, free)) = path.first() {
            rows = rows.min(self.free[free]);
        }
        for pair in path.windows(2) {
            rows = rows.min(held(self, pair[0].0, pair[1].1));
        }
        for (index, &(holder, other)) in path.iter().enumerate() {
            if index == 0 {
                self.free[other] -= rows;
            }
            *self.given[other].entry(holder).or_insert(0) += rows;
            // Its rows of the next one on the path go to the next holder.
            if holder != one
                && let Some(&(_, before)) = path.get(index + 1)
            {
                let left = held(self, holder, before) - rows;
                if left == 0 {
                    self.given[before].remove(&holder);
                } else {
                    self.given[before].insert(holder, left);
                }
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Side, matched};

    /// By trying all.
    fn greatest(left: &[u32], right: &mut Vec<u32>, fit: &impl Fn(u32, u32) -> bool) -> u64 {
        let Some((&one, rest)) = left.split_first() else {
            return 0;
        };
        let mut best = greatest(rest, right, fit);
        for at in 0..right.len() {
            if fit(one, right[at]) {
                let taken = right.swap_remove(at);
                best = best.max(1 + greatest(rest, right, fit));
                right.push(taken);
                let last = right.len() - 1;
                right.swap(at, last);
            }
        }
        best
    }

    proptest! {
        #[test]
        fn no_matching_is_greater(
            left in prop::collection::vec(0u32..4, 0..6),
            right in prop::collection::vec(0u32..4, 0..6),
            fits in prop::collection::vec(any::<bool>(), 16),
        ) {
            let fit = |one: u32, other: u32| fits[(one * 4 + other) as usize];
            let side = |rows: &[u32]| {
                let mut side = Side::default();
                rows.iter().for_each(|&row| side.add([row].into_iter()));
                side
            };
            let found = matched(&side(&left), &side(&right), |one, other| fit(one[0], other[0]));
            prop_assert_eq!(found, greatest(&left, &mut right.clone(), &fit));
        }
    }
}
