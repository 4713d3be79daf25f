//! The exact check behind the heuristics' no: a search tree of depth *L - 1* for values that
//! cover all records (Definitions 6 and 7 of the multiple-sensitive-attribute paper).

use hashbrown::HashMap;
use rustc_hash::FxHashSet;

use super::condition::Cells;

/// What the check found of "at least *L* values have to be struck out".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// They have to.
    Yes,
    /// Fewer delete all records.
    No,
    /// The search tree was too large to tell.
    OutOfPatience,
}

/// Whether no `strikes` values delete all records of a group, rows as [`Disjoint`] orders them.
///
/// [`Disjoint`]: super::disjoint::Disjoint
pub(super) fn coverable(cells: &Cells, rows: &[u32], strikes: u32, patience: u64) -> Answer {
    let mut records: Vec<&[u32]> = rows.iter().filter_map(|&row| cells.row(row)).collect();
    // Records with equal values are deleted together.
    let mut seen = FxHashSet::default();
    records.retain(|record| seen.insert(*record));
    let mut tree = Tree {
        cells,
        left: cells.limits.clone(),
        barred: FxHashSet::default(),
        patience,
    };
    match tree.delete(&records, strikes) {
        Some(true) => Answer::No,
        Some(false) => Answer::Yes,
        None => Answer::OutOfPatience,
    }
}

/// Records picked as they come that share no value of those that may be struck out: each needs
/// a strike of its own (Theorem 4).
fn apart(records: &[&[u32]], open: &HashMap<u32, u32>) -> u32 {
    let mut taken: FxHashSet<u32> = FxHashSet::default();
    let mut found = 0;
    for record in records {
        if record.iter().any(|value| taken.contains(value)) {
            continue;
        }
        taken.extend(record.iter().filter(|value| open.contains_key(*value)));
        found += 1;
    }
    found
}

struct Tree<'a> {
    cells: &'a Cells,
    /// Strikes left in each column.
    left: Vec<u32>,
    /// Values tried in vain further up.
    barred: FxHashSet<u32>,
    /// Records that may still be looked at.
    patience: u64,
}

impl Tree<'_> {
    /// Whether so many strikes can delete these records; `None` when out of patience.
    fn delete(&mut self, records: &[&[u32]], strikes: u32) -> Option<bool> {
        if records.is_empty() {
            return Some(true);
        }
        if strikes == 0 {
            return Some(false);
        }
        self.patience = self.patience.checked_sub(records.len() as u64)?;
        let mut frequency: HashMap<u32, u32> = HashMap::new();
        for record in records {
            for (column, &value) in record.iter().enumerate() {
                if self.left[column] > 0 && !self.barred.contains(&value) {
                    *frequency.entry(value).or_insert(0) += 1;
                }
            }
        }
        if self.reach(&frequency, strikes) < records.len() as u64 {
            return Some(false);
        }
        if apart(records, &frequency) > strikes {
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
            let standing = records.iter().filter(|record| record[column] != value);
            let standing: Vec<&[u32]> = standing.copied().collect();
            self.left[column] -= 1;
            found = self.delete(&standing, strikes - 1);
            self.left[column] += 1;
            if found != Some(false) {
                break;
            }
            self.barred.insert(value);
            tried.push(value);
        }
        for value in tried {
            self.barred.remove(&value);
        }
        found
    }

    /// The most records that so many strikes could delete, were no record to hold two of the
    /// values (Lemma 1).
    fn reach(&self, frequency: &HashMap<u32, u32>, strikes: u32) -> u64 {
        let mut columns: Vec<Vec<u32>> = vec![Vec::new(); self.left.len()];
        for (&value, &held) in frequency {
            let column = self.cells.first.partition_point(|&first| first <= value) - 1;
            columns[column].push(held);
        }
        let mut best = Vec::new();
        for (mut held, &left) in columns.into_iter().zip(&self.left) {
            held.sort_unstable_by(|one, other| other.cmp(one));
            held.truncate(left as usize);
            best.append(&mut held);
        }
        best.sort_unstable_by(|one, other| other.cmp(one));
        best.iter()
            .take(strikes as usize)
            .map(|&held| u64::from(held))
            .sum()
    }
}
