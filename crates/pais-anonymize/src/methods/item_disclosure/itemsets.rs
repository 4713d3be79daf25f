//! Disclosure under k^m-anonymity in one class: which items can stand together.

use std::ops::ControlFlow;

use super::class::Class;
use super::disclosure::{STRIDE, Stop};

/// Look-ups that one item may cost before it is left hidden; with few items known at a time no
/// item comes near it.
const BUDGET: u64 = 1 << 26;

/// The items of all set-valued columns of a class, numbered across them, that may stand: every
/// set of at most *m* of them is held by none or by at least *k* of its rows.
///
/// The most frequent item comes first, ties by column and name, and stands where that keeps what
/// stands already: an item that does not fit once fits never, since more items only make more
/// sets. So no item that is left hidden could stand beside those that do.
///
/// A run that is stopped gets nothing of use.
pub fn standing(class: &Class, offsets: &[u32], (k, m): (usize, u32), stop: Stop) -> Vec<u32> {
    let mut rows_of: hashbrown::HashMap<u32, Vec<u32>> = hashbrown::HashMap::new();
    for (set, &offset) in class.sets.iter().zip(offsets) {
        for place in 0..class.len() {
            for &item in set.of(place) {
                rows_of.entry(offset + item).or_default().push(place as u32);
            }
        }
    }
    let mut ranked: Vec<(u32, Vec<u32>)> = rows_of
        .into_iter()
        .filter(|(_, rows)| rows.len() >= k)
        .collect();
    ranked.sort_unstable_by_key(|(item, rows)| (std::cmp::Reverse(rows.len()), *item));
    let mut disclosed: Vec<Vec<u32>> = vec![Vec::new(); class.len()];
    let mut standing = Vec::new();
    for (item, rows) in ranked {
        let mut check = Check {
            disclosed: &disclosed,
            k,
            left: BUDGET,
            stop,
        };
        if check.extend(&rows, 0, m - 1).is_break() {
            continue;
        }
        // Ranks ascend, so that each row's items do.
        let rank = standing.len() as u32;
        standing.push(item);
        for &place in &rows {
            disclosed[place as usize].push(rank);
        }
    }
    standing.sort_unstable();
    standing
}

/// Looks for a set of items that some rows hold, but too few.
struct Check<'a> {
    /// By place in the class, the ranks of what stands, ascending.
    disclosed: &'a [Vec<u32>],
    k: usize,
    left: u64,
    stop: Stop<'a>,
}

impl Check<'_> {
    /// Extends what `rows` hold in common by up to `more` items from rank `from` on; breaks where
    /// an extension is held by too few of them, or the budget is spent.
    fn extend(&mut self, rows: &[u32], from: u32, more: u32) -> ControlFlow<()> {
        if more == 0 {
            return ControlFlow::Continue(());
        }
        let mut holding: hashbrown::HashMap<u32, Vec<u32>> = hashbrown::HashMap::new();
        for (at, &row) in rows.iter().enumerate() {
            if at % STRIDE == 0 && (self.stop)() {
                return ControlFlow::Break(());
            }
            let items = &self.disclosed[row as usize];
            let after = &items[items.partition_point(|&rank| rank < from)..];
            self.left = self.left.saturating_sub(after.len() as u64 + 1);
            for &rank in after {
                holding.entry(rank).or_default().push(row);
            }
        }
        let too_few = |rows: &Vec<u32>| rows.len() < self.k;
        if self.left == 0 || holding.values().any(too_few) {
            return ControlFlow::Break(());
        }
        for (rank, held) in holding {
            // What all hold divides nothing: the sets with it are held as those without.
            if held.len() < rows.len() {
                self.extend(&held, rank + 1, more - 1)?;
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::standing;
    use crate::methods::item_disclosure::class::{Class, ClassSet};

    fn class(rows: &[&[u32]]) -> Class {
        let mut set = ClassSet {
            starts: vec![0],
            ..ClassSet::default()
        };
        for row in rows {
            set.items.extend_from_slice(row);
            set.starts.push(set.items.len() as u32);
        }
        Class {
            rows: (0..rows.len() as u32).collect(),
            sets: vec![set],
        }
    }

    #[test]
    fn items_stand_together_as_far_as_they_are_known_together() {
        let class = class(&[&[0, 1], &[0, 1], &[0, 2], &[1, 2], &[2]]);
        assert_eq!(standing(&class, &[0], (2, 1), &|| false), [0, 1, 2]);
        // 0 and 2 together single out a row, and so do 1 and 2.
        assert_eq!(standing(&class, &[0], (2, 2), &|| false), [0, 1]);
        assert_eq!(standing(&class, &[0], (4, 1), &|| false), [] as [u32; 0]);
    }

    #[test]
    fn equal_rows_cost_no_enumeration() {
        let row: Vec<u32> = (0..40).collect();
        let class = class(&[&row, &row, &row]);
        assert_eq!(standing(&class, &[0], (3, 40), &|| false), row);
    }
}
