//! The exact check that runs when the heuristics cannot prove diversity: a search tree of depth
//! *L - 1* for a set of values that covers all records, so that eliminating them deletes every
//! record (Definitions 6 and 7 of the multiple-sensitive-attribute paper).

use hashbrown::HashMap;
use rustc_hash::FxHashSet;

use super::condition::SensitiveCodes;

/// Answer to "must at least *L* values be eliminated to delete all records?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CoverAnswer {
    /// At least *L* values are needed.
    Yes,
    /// Fewer than *L* values delete all records.
    No,
    /// The budget ran out before the search was finished.
    OutOfBudget,
}

/// Whether at least `l` values, 1 or more, must be eliminated to delete all records of a group.
/// `rows` must be in the order of [`DisjointRecords::order`]. `budget` limits the number of
/// records that the search visits, over all nodes of its tree.
///
/// [`DisjointRecords::order`]: super::disjoint::DisjointRecords::order
pub(super) fn needs_at_least(
    sensitive: &SensitiveCodes,
    rows: &[u32],
    l: u32,
    budget: u64,
) -> CoverAnswer {
    let mut records: Vec<&[u32]> = rows.iter().filter_map(|&row| sensitive.row(row)).collect();
    // Records with equal values are deleted together.
    let mut seen = FxHashSet::default();
    records.retain(|record| seen.insert(*record));
    let mut search = CoverSearch {
        sensitive,
        remaining_limits: sensitive.limits.clone(),
        excluded: FxHashSet::default(),
        budget,
    };
    match search.delete(&records, l - 1) {
        Some(true) => CoverAnswer::No,
        Some(false) => CoverAnswer::Yes,
        None => CoverAnswer::OutOfBudget,
    }
}

/// Number of records, picked greedily in order, that share no value that may be eliminated. Each
/// of them needs a separate elimination (Theorem 4), so this is a lower bound.
fn count_disjoint(records: &[&[u32]], permitted: &HashMap<u32, u32>) -> u32 {
    let mut taken: FxHashSet<u32> = FxHashSet::default();
    let mut found = 0;
    for record in records {
        if record.iter().any(|value| taken.contains(value)) {
            continue;
        }
        taken.extend(record.iter().filter(|value| permitted.contains_key(*value)));
        found += 1;
    }
    found
}

/// The search tree and its current node.
struct CoverSearch<'a> {
    sensitive: &'a SensitiveCodes,
    /// Number of values of each column that may still be eliminated.
    remaining_limits: Vec<u32>,
    /// Values already tried without success further up the tree.
    excluded: FxHashSet<u32>,
    /// Number of records that may still be visited.
    budget: u64,
}

impl CoverSearch<'_> {
    /// Whether this many eliminations can delete these records; `None` when the budget is spent.
    fn delete(&mut self, records: &[&[u32]], eliminations: u32) -> Option<bool> {
        if records.is_empty() {
            return Some(true);
        }
        if eliminations == 0 {
            return Some(false);
        }
        self.budget = self.budget.checked_sub(records.len() as u64)?;
        let mut frequency: HashMap<u32, u32> = HashMap::new();
        for record in records {
            for (column, &value) in record.iter().enumerate() {
                if self.remaining_limits[column] > 0 && !self.excluded.contains(&value) {
                    *frequency.entry(value).or_insert(0) += 1;
                }
            }
        }
        if self.most_deletable(&frequency, eliminations) < records.len() as u64 {
            return Some(false);
        }
        if count_disjoint(records, &frequency) > eliminations {
            return Some(false);
        }
        let open = |record: &[u32]| -> (usize, u64) {
            let known = record.iter().filter_map(|value| frequency.get(value));
            known.fold((0, 0), |(count, sum), &held| {
                (count + 1, sum + u64::from(held))
            })
        };
        let hardest = records.iter().min_by_key(|record| open(record))?;
        let mut choices: Vec<(u32, usize, u32)> = hardest
            .iter()
            .enumerate()
            .filter_map(|(column, &value)| Some((*frequency.get(&value)?, column, value)))
            .collect();
        choices.sort_by(|one, other| other.cmp(one));
        let mut found = Some(false);
        let mut tried = Vec::with_capacity(choices.len());
        for (_, column, value) in choices {
            let remaining = records.iter().filter(|record| record[column] != value);
            let remaining: Vec<&[u32]> = remaining.copied().collect();
            self.remaining_limits[column] -= 1;
            found = self.delete(&remaining, eliminations - 1);
            self.remaining_limits[column] += 1;
            if found != Some(false) {
                break;
            }
            self.excluded.insert(value);
            tried.push(value);
        }
        for value in tried {
            self.excluded.remove(&value);
        }
        found
    }

    /// Upper bound of the number of records that this many eliminations delete: the sum of the
    /// greatest frequencies, which counts a record once for each of its eliminated values
    /// (Lemma 1).
    fn most_deletable(&self, frequency: &HashMap<u32, u32>, eliminations: u32) -> u64 {
        let mut columns: Vec<Vec<u32>> = vec![Vec::new(); self.remaining_limits.len()];
        for (&value, &held) in frequency {
            let column = self
                .sensitive
                .first_values
                .partition_point(|&first| first <= value)
                - 1;
            columns[column].push(held);
        }
        let mut best = Vec::new();
        for (mut held, &left) in columns.into_iter().zip(&self.remaining_limits) {
            held.sort_unstable_by(|one, other| other.cmp(one));
            held.truncate(left as usize);
            best.append(&mut held);
        }
        best.sort_unstable_by(|one, other| other.cmp(one));
        best.iter()
            .take(eliminations as usize)
            .map(|&held| u64::from(held))
            .sum()
    }
}
