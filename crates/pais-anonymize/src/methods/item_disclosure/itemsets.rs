//! Disclosure under k^m-anonymity in one class: which items can be disclosed together.

use std::ops::ControlFlow;

use super::anonymity::Anonymity;
use super::class::EquivalenceClass;
use super::disclosure::{STRIDE, StopCheck};

/// Number of look-ups that one item may cost before it is left hidden. With a small *m* no item
/// comes near this limit.
const BUDGET: u64 = 1 << 26;

/// The items of all set-valued columns of a class that may be disclosed together: every set of at
/// most *m* of them is held by none or by at least *k* of its rows. Items are numbered
/// consecutively over the columns, from each column's entry in `offsets`. Returns the item numbers,
/// ascending.
///
/// Items are tried by descending frequency, ties by column and name. An item is disclosed if the
/// condition still holds with it. An item that is rejected once stays rejected, because more items
/// only add more sets. So no hidden item could be disclosed in addition.
///
/// If `stop` returns true, the result must be discarded.
pub(super) fn disclosable_items(
    class: &EquivalenceClass,
    offsets: &[u32],
    (anonymity, m): (Anonymity<'_>, u32),
    stop: StopCheck,
) -> Vec<u32> {
    let mut rows_of: hashbrown::HashMap<u32, Vec<u32>> = hashbrown::HashMap::new();
    for (set, &offset) in class.sets.iter().zip(offsets) {
        for index in 0..class.len() {
            for &item in set.items_of(index) {
                rows_of.entry(offset + item).or_default().push(index as u32);
            }
        }
    }
    let mut ranked: Vec<(u32, Vec<u32>)> = rows_of
        .into_iter()
        .filter(|(_, rows)| has_enough(class, anonymity, rows))
        .collect();
    ranked.sort_unstable_by_key(|(item, rows)| (std::cmp::Reverse(rows.len()), *item));
    let mut disclosed_ranks: Vec<Vec<u32>> = vec![Vec::new(); class.len()];
    let mut disclosed = Vec::new();
    for (item, rows) in ranked {
        let mut check = ItemsetCheck {
            disclosed_ranks: &disclosed_ranks,
            class,
            anonymity,
            budget: BUDGET,
            stop,
        };
        if check.extend(&rows, 0, m - 1).is_break() {
            continue;
        }
        // Ranks are assigned in ascending order, so each row's ranks ascend too.
        let rank = disclosed.len() as u32;
        disclosed.push(item);
        for &row in &rows {
            disclosed_ranks[row as usize].push(rank);
        }
    }
    disclosed.sort_unstable();
    disclosed
}

/// Whether rows, by their ascending indices in the class, have *k* persons.
fn has_enough(class: &EquivalenceClass, anonymity: Anonymity<'_>, rows: &[u32]) -> bool {
    anonymity.has_enough(rows.iter().map(|&index| class.rows[index as usize]))
}

/// Searches for a set of items that at least one row, but fewer than k rows hold.
struct ItemsetCheck<'a> {
    /// By index of the row in the class, the ranks of its disclosed items, ascending.
    disclosed_ranks: &'a [Vec<u32>],
    class: &'a EquivalenceClass,
    anonymity: Anonymity<'a>,
    /// Number of look-ups left.
    budget: u64,
    stop: StopCheck<'a>,
}

impl ItemsetCheck<'_> {
    /// Extends the set of items that `rows` hold in common by up to `more` items of rank `from` or
    /// later. Breaks when fewer than k rows hold an extended set, when the budget is spent, or when
    /// the search must stop.
    fn extend(&mut self, rows: &[u32], from: u32, more: u32) -> ControlFlow<()> {
        if more == 0 {
            return ControlFlow::Continue(());
        }
        let mut holding: hashbrown::HashMap<u32, Vec<u32>> = hashbrown::HashMap::new();
        for (at, &row) in rows.iter().enumerate() {
            if at % STRIDE == 0 && (self.stop)() {
                return ControlFlow::Break(());
            }
            let items = &self.disclosed_ranks[row as usize];
            let after = &items[items.partition_point(|&rank| rank < from)..];
            self.budget = self.budget.saturating_sub(after.len() as u64 + 1);
            for &rank in after {
                holding.entry(rank).or_default().push(row);
            }
        }
        let too_few = |rows: &Vec<u32>| !has_enough(self.class, self.anonymity, rows);
        if self.budget == 0 || holding.values().any(too_few) {
            return ControlFlow::Break(());
        }
        for (rank, holders) in holding {
            // An item that all rows hold changes nothing: sets with it have the same rows as sets
            // without it.
            if holders.len() < rows.len() {
                self.extend(&holders, rank + 1, more - 1)?;
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::disclosable_items;
    use crate::methods::item_disclosure::anonymity::Anonymity;
    use crate::methods::item_disclosure::class::{ClassSet, EquivalenceClass};

    fn class(rows: &[&[u32]]) -> EquivalenceClass {
        let mut set = ClassSet {
            starts: vec![0],
            ..ClassSet::default()
        };
        for row in rows {
            set.items.extend_from_slice(row);
            set.starts.push(set.items.len() as u32);
        }
        EquivalenceClass {
            rows: (0..rows.len() as u32).collect(),
            sets: vec![set],
        }
    }

    #[test]
    fn items_are_disclosed_if_every_itemset_has_k_rows() {
        let class = class(&[&[0, 1], &[0, 1], &[0, 2], &[1, 2], &[2]]);
        assert_eq!(
            disclosable_items(&class, &[0], (Anonymity::of_rows(2), 1), &|| false),
            [0, 1, 2]
        );
        // Only one row holds both 0 and 2, and only one row holds both 1 and 2.
        assert_eq!(
            disclosable_items(&class, &[0], (Anonymity::of_rows(2), 2), &|| false),
            [0, 1]
        );
        assert_eq!(
            disclosable_items(&class, &[0], (Anonymity::of_rows(4), 1), &|| false),
            [] as [u32; 0]
        );
    }

    #[test]
    fn equal_rows_cost_no_enumeration() {
        let row: Vec<u32> = (0..40).collect();
        let class = class(&[&row, &row, &row]);
        assert_eq!(
            disclosable_items(&class, &[0], (Anonymity::of_rows(3), 40), &|| false),
            row
        );
    }
}
