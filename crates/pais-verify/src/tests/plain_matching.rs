//! The plain maximum matching, which lists all pairs that fit: the reference for the indexed one.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::matching::MatchingSide;

/// The size of a maximum matching.
pub(crate) fn plain_matching(
    left: &MatchingSide,
    right: &MatchingSide,
    fit: impl Fn(&[u32], &[u32]) -> bool,
) -> u64 {
    let records = right.records();
    let edges: Vec<Vec<usize>> = left
        .records()
        .iter()
        .map(|one| {
            (0..records.len())
                .filter(|&other| fit(one, records[other]))
                .collect()
        })
        .collect();
    let mut flow = Flow {
        edges,
        free: right.rows().to_vec(),
        matched: vec![HashMap::new(); right.len()],
    };
    // Records with the fewest candidates go first. Most of them find free rows, so that the
    // search for augmenting paths is only needed for the rest.
    let mut order: Vec<usize> = (0..left.len()).collect();
    order.sort_by_key(|&one| flow.edges[one].len());
    let mut got = vec![0; left.len()];
    for &one in &order {
        got[one] = flow.match_free(one, left.rows()[one]);
    }
    for &one in &order {
        got[one] += flow.match_by_paths(one, left.rows()[one] - got[one]);
    }
    got.iter().sum()
}

/// The current matching, as a flow from records on the left to records on the right.
struct Flow {
    /// For each record on the left, the records on the right that it fits.
    edges: Vec<Vec<usize>>,
    /// For each record on the right, the number of unmatched rows.
    free: Vec<u64>,
    /// For each record on the right, the number of rows matched with each record on the left.
    matched: Vec<HashMap<usize, u64>>,
}

impl Flow {
    /// Matches up to `rows` rows of a record on the left with unmatched rows; returns how many.
    fn match_free(&mut self, one: usize, rows: u64) -> u64 {
        let mut got = 0;
        for &other in &self.edges[one] {
            let taken = self.free[other].min(rows - got);
            if taken > 0 {
                self.free[other] -= taken;
                *self.matched[other].entry(one).or_insert(0) += taken;
                got += taken;
            }
            if got == rows {
                break;
            }
        }
        got
    }

    /// Matches up to `rows` rows of a record on the left along augmenting paths, which rematch
    /// rows of other records; returns how many.
    fn match_by_paths(&mut self, one: usize, rows: u64) -> u64 {
        let mut got = 0;
        while got < rows {
            let Some(path) = self.augmenting_path(one) else {
                break;
            };
            got += self.augment(one, &path, rows - got);
        }
        got
    }

    /// A shortest augmenting path from a record on the left to a record on the right with free
    /// rows, as pairs of a left and a right record to match, in reverse: the free rows come
    /// first.
    fn augmenting_path(&self, one: usize) -> Option<Vec<(usize, usize)>> {
        // For each record on the right: the record on the left that reaches it, and the record on
        // the right that this one would give up for it.
        let mut reached_from: Vec<Option<(usize, Option<usize>)>> = vec![None; self.free.len()];
        let mut queue = VecDeque::new();
        let mut seen = vec![false; self.edges.len()];
        seen[one] = true;
        queue.push_back((one, None));
        while let Some((holder, gives_up)) = queue.pop_front() {
            for &other in &self.edges[holder] {
                if reached_from[other].is_some() {
                    continue;
                }
                reached_from[other] = Some((holder, gives_up));
                if self.free[other] > 0 {
                    let mut path = Vec::new();
                    let mut at = Some(other);
                    while let Some(other) = at {
                        let (holder, gives_up) = reached_from[other]?;
                        path.push((holder, other));
                        at = gives_up;
                    }
                    return Some(path);
                }
                for &next in self.matched[other].keys() {
                    if !std::mem::replace(&mut seen[next], true) {
                        queue.push_back((next, Some(other)));
                    }
                }
            }
        }
        None
    }

    /// Augments the matching along a path by as many rows as it allows, at most `wanted`;
    /// returns how many.
    fn augment(&mut self, one: usize, path: &[(usize, usize)], wanted: u64) -> u64 {
        let held = |flow: &Self, holder: usize, other: usize| {
            flow.matched[other].get(&holder).copied().unwrap_or(0)
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
            *self.matched[other].entry(holder).or_insert(0) += rows;
            // The rows that it gives up go to the next holder on the path.
            if holder != one
                && let Some(&(_, before)) = path.get(index + 1)
            {
                let left = held(self, holder, before) - rows;
                if left == 0 {
                    self.matched[before].remove(&holder);
                } else {
                    self.matched[before].insert(holder, left);
                }
            }
        }
        rows
    }
}
