//! k^m-anonymity of records: equivalence classes of at least k rows over the relational columns,
//! and in each class every set of at most m items is held by none or by at least k of its rows.
//!
//! An adversary who knows all relational values of a patient and up to m items is left with at
//! least k rows. Disclosure does not divide classes here, so items are disclosed once for the
//! current classes. A relational column moves one level down where that decreases the total loss.

use std::ops::ControlFlow;

use rayon::prelude::*;

use super::class::Anonymity;
use super::class::EquivalenceClass;
use super::disclosure::{STRIDE, StopCheck};
use super::hierarchy::Hierarchy;
use super::outcome::{DisclosedSet, DisclosedTable};
use super::search::{DisclosureTask, TIE, divide_classes};
use super::vocabulary::Vocabulary;
use crate::error::RunError;
use crate::observer::Phase;
use crate::published_cut::Cut;

/// Runs the search with at most `m` known items, and returns the cuts and the disclosed items. No
/// row is suppressed.
///
/// # Errors
/// For too many items in a column, and on cancellation.
pub(super) fn search_km(task: &DisclosureTask, m: u32) -> Result<DisclosedTable, RunError> {
    let mut hierarchies = task.hierarchies.clone();
    let rows = task.table.rows as f64;
    let search = KmSearch {
        numbering: ItemNumbering::new(&task.vocabularies, task.table.rows),
        task,
        m,
    };
    let mut state = search.disclose(vec![task.whole()?])?;
    let mut in_qi = vec![true; hierarchies.len()];
    let mut relational = vec![0.0; hierarchies.len()];
    let mut steps = 0u32;
    loop {
        let mut best: Option<(f64, usize, KmState)> = None;
        for (at, hierarchy) in hierarchies.iter_mut().enumerate() {
            if !in_qi[at] || hierarchy.is_exhausted() {
                continue;
            }
            let Some(classes) = divide_classes(&state.classes, hierarchy, task.anonymity) else {
                in_qi[at] = false;
                continue;
            };
            let tried = search.disclose(classes)?;
            let gain = task.settings.weights[at] * hierarchy.gain() / rows;
            let decrease = gain + tried.kept - state.kept;
            if decrease > best.as_ref().map_or(TIE, |(best, ..)| best + TIE) {
                best = Some((decrease, at, tried));
            }
        }
        let Some((gain, at, tried)) = best else {
            break;
        };
        relational[at] += gain;
        hierarchies[at].descend();
        state = tried;
        steps += 1;
        task.observer
            .progress(Phase::Searching, 1.0 - 1.0 / f64::from(steps + 1));
    }
    let cuts = hierarchies.iter().map(Hierarchy::cut).collect();
    Ok(search.outcome(cuts, &state))
}

/// Numbers the items of all columns consecutively.
struct ItemNumbering {
    /// The number of the first item of each column.
    offsets: Vec<u32>,
    /// By column, the share of one item in all items of the column's rows.
    item_share: Vec<f64>,
}

impl ItemNumbering {
    fn new(vocabularies: &[Vocabulary], rows: usize) -> Self {
        let mut offset = 0;
        let offsets = vocabularies.iter().map(|vocabulary| {
            offset += vocabulary.len() as u32;
            offset - vocabulary.len() as u32
        });
        let mut row_items = Vec::new();
        Self {
            offsets: offsets.collect(),
            item_share: vocabularies
                .iter()
                .map(|vocabulary| {
                    let all: usize = (0..rows)
                        .map(|row| {
                            row_items.clear();
                            vocabulary.push_row(row, &mut row_items);
                            row_items.len()
                        })
                        .sum();
                    1.0 / all.max(1) as f64
                })
                .collect(),
        }
    }
}

struct KmSearch<'a> {
    task: &'a DisclosureTask<'a>,
    numbering: ItemNumbering,
    m: u32,
}

/// A step of the search: the classes and the items that each class discloses.
struct KmState {
    classes: Vec<EquivalenceClass>,
    /// By class, the numbers of the disclosed items, ascending.
    disclosed: Vec<Vec<u32>>,
    /// Weighted share of items that are disclosed. A generalized item counts 1 - NCP.
    kept: f64,
}

impl KmSearch<'_> {
    /// Discloses items in these classes.
    fn disclose(&self, classes: Vec<EquivalenceClass>) -> Result<KmState, RunError> {
        let DisclosureTask {
            settings,
            vocabularies,
            ..
        } = self.task;
        let stop = || self.task.observer.must_stop();
        let disclose = |class: &EquivalenceClass| {
            let disclosed = disclosable_items(
                class,
                &self.numbering.offsets,
                self.task.anonymity,
                self.m,
                &stop,
            );
            let kept = (0..class.sets.len())
                .map(|set| self.kept(class, set, &disclosed))
                .collect();
            (disclosed, kept)
        };
        let found: Vec<(Vec<u32>, Vec<f64>)> = classes.par_iter().map(disclose).collect();
        if stop() {
            return Err(RunError::Cancelled);
        }
        let relational = settings.weights.len() - vocabularies.len();
        let shares = self
            .numbering
            .item_share
            .iter()
            .zip(&settings.weights[relational..]);
        let kept = shares.enumerate().map(|(set, (share, weight))| {
            let items: f64 = found.iter().map(|(_, kept)| kept[set]).sum();
            items * share * weight
        });
        Ok(KmState {
            kept: kept.sum(),
            disclosed: found.into_iter().map(|(disclosed, _)| disclosed).collect(),
            classes,
        })
    }

    /// The sum of 1 - NCP over the items that a class discloses in a set-valued column.
    fn kept(&self, class: &EquivalenceClass, set: usize, disclosed: &[u32]) -> f64 {
        let offset = self.numbering.offsets[set];
        let items = class.sets[set].items.iter();
        let kept = items.filter(|&&item| disclosed.binary_search(&(offset + item)).is_ok());
        kept.map(|&item| 1.0 - self.task.vocabularies[set].ncp(item))
            .sum()
    }

    fn outcome(&self, cuts: Vec<Cut>, state: &KmState) -> DisclosedTable {
        let rows = self.task.table.rows;
        let sets = self.task.vocabularies.iter().enumerate();
        let sets = sets.map(|(set, vocabulary)| {
            let offset = self.numbering.offsets[set];
            let classes = state.classes.iter().zip(&state.disclosed);
            let disclosed = classes.flat_map(|(class, disclosed)| {
                let is_disclosed =
                    move |item: &u32| disclosed.binary_search(&(offset + item)).is_ok();
                class.rows.chunks(1).enumerate().map(move |(index, row)| {
                    let items = class.sets[set].items_of(index).iter().copied();
                    (row, items.filter(is_disclosed).collect())
                })
            });
            DisclosedSet::new(rows, vocabulary, disclosed)
        });
        DisclosedTable::of_all_rows(rows, cuts, sets.collect())
    }
}

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
fn disclosable_items(
    class: &EquivalenceClass,
    offsets: &[u32],
    anonymity: Anonymity<'_>,
    m: u32,
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
mod itemsets_tests {
    use super::disclosable_items;
    use crate::methods::item_disclosure::class::Anonymity;
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
            disclosable_items(&class, &[0], Anonymity::of_rows(2), 1, &|| false),
            [0, 1, 2]
        );
        // Only one row holds both 0 and 2, and only one row holds both 1 and 2.
        assert_eq!(
            disclosable_items(&class, &[0], Anonymity::of_rows(2), 2, &|| false),
            [0, 1]
        );
        assert_eq!(
            disclosable_items(&class, &[0], Anonymity::of_rows(4), 1, &|| false),
            [] as [u32; 0]
        );
    }

    #[test]
    fn equal_rows_cost_no_enumeration() {
        let row: Vec<u32> = (0..40).collect();
        let class = class(&[&row, &row, &row]);
        assert_eq!(
            disclosable_items(&class, &[0], Anonymity::of_rows(3), 40, &|| false),
            row
        );
    }
}
