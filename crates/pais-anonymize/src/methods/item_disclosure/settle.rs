//! Moves rows between the classes of one relational class, where another class discloses more of
//! what the row has.
//!
//! A row discloses its highest ranked pivot, so it may be in a class with few disclosed items
//! although it has all the items of another class. Such a row moves if its class keeps enough rows.
//! It hides less, and nobody else hides more. The classes then disclose what they newly can.

use std::collections::BTreeMap;

use super::class::EquivalenceClass;
use super::disclosure::StopCheck;
use super::search::TIE;
use super::single::{ItemGains, disclose_singly};
use super::search::DisclosureTask;

/// Number of times that rows are moved; after it classes are only divided and joined.
const MOST_ROUNDS: usize = 16;

/// A class while rows move.
struct Group {
    rows: Vec<u32>,
    /// By set-valued column, ascending.
    disclosed: Vec<Vec<u32>>,
    /// What a row that discloses these items keeps.
    worth: f64,
    /// Whether it may disclose more than when it was last divided.
    changed: bool,
}

/// The items of each row of a relational class, by set-valued column.
struct RowItems {
    place_of: rustc_hash::FxHashMap<u32, usize>,
    columns: Vec<(Vec<u32>, Vec<u32>)>,
}

impl RowItems {
    fn new(task: &DisclosureTask, classes: &[EquivalenceClass]) -> Self {
        let rows = classes.iter().flat_map(|class| &class.rows);
        let rows: Vec<u32> = rows.copied().collect();
        let columns = task.vocabularies.iter().map(|vocabulary| {
            let (mut starts, mut items) = (vec![0], Vec::new());
            for &row in &rows {
                vocabulary.push_row(row as usize, &mut items);
                starts.push(items.len() as u32);
            }
            (starts, items)
        });
        Self {
            columns: columns.collect(),
            place_of: rows.into_iter().zip(0..).collect(),
        }
    }

    /// Whether a row has all of these items.
    fn has_all(&self, row: u32, disclosed: &[Vec<u32>]) -> bool {
        let Some(&place) = self.place_of.get(&row) else {
            return false;
        };
        let mut columns = self.columns.iter().zip(disclosed);
        columns.all(|((starts, items), disclosed)| {
            let own = &items[starts[place] as usize..starts[place + 1] as usize];
            let mut disclosed = disclosed.iter();
            disclosed.all(|item| own.binary_search(item).is_ok())
        })
    }
}

/// Improves the classes of one relational class, which have the same relational values.
pub(super) fn settle(
    task: &DisclosureTask,
    classes: Vec<EquivalenceClass>,
    stop: StopCheck,
) -> Vec<EquivalenceClass> {
    let items = RowItems::new(task, &classes);
    let groups = classes.into_iter();
    let mut groups: Vec<Group> = groups.map(|class| group(task, class)).collect();
    for round in 0.. {
        join_equal(&mut groups);
        if round < MOST_ROUNDS && !stop() {
            move_rows(task, &mut groups, &items, stop);
        }
        if stop() || groups.iter().all(|group| !group.changed) {
            break;
        }
        let divide = |mut kept: Vec<Group>, group: Group| {
            if !group.changed {
                kept.push(group);
                return kept;
            }
            let class = task.class_of(group.rows, &group.disclosed);
            let parts = disclose_singly(task, class, ItemGains::EXACT, stop);
            kept.extend(parts.into_iter().map(|class| self::group(task, class)));
            kept
        };
        groups = groups.into_iter().fold(Vec::new(), divide);
    }
    let classes = groups.into_iter();
    classes
        .map(|group| task.class_of(group.rows, &group.disclosed))
        .collect()
}

fn group(task: &DisclosureTask, class: EquivalenceClass) -> Group {
    let sets = class.sets.into_iter();
    let disclosed: Vec<Vec<u32>> = sets
        .map(|set| {
            let mut disclosed = set.disclosed;
            disclosed.sort_unstable();
            disclosed
        })
        .collect();
    let columns = disclosed.iter().zip(&task.vocabularies).enumerate();
    let worth = columns.map(|(set, (items, vocabulary))| {
        let kept = items.iter().map(|&item| 1.0 - vocabulary.ncp(item));
        task.item_weight(set) * kept.sum::<f64>()
    });
    Group {
        worth: worth.sum(),
        rows: class.rows,
        disclosed,
        changed: false,
    }
}

/// Joins groups that disclose the same, which are one class of the released table.
fn join_equal(groups: &mut Vec<Group>) {
    let mut place_of: BTreeMap<Vec<Vec<u32>>, usize> = BTreeMap::new();
    let mut joined: Vec<Group> = Vec::with_capacity(groups.len());
    for group in groups.drain(..) {
        let fresh = joined.len();
        let place = *place_of.entry(group.disclosed.clone()).or_insert(fresh);
        match joined.get_mut(place) {
            Some(same) => {
                same.rows.extend(group.rows);
                same.changed = true;
            }
            None => joined.push(group),
        }
    }
    *groups = joined;
}

/// Moves each row to the group that is worth most of those whose items it has, if its own group
/// keeps enough rows. Groups that are worth least give rows away first.
fn move_rows(task: &DisclosureTask, groups: &mut [Group], items: &RowItems, stop: StopCheck) {
    groups.sort_by(|one, other| {
        let by_worth = other.worth.total_cmp(&one.worth);
        by_worth.then_with(|| one.disclosed.cmp(&other.disclosed))
    });
    for from in (1..groups.len()).rev() {
        if stop() {
            return;
        }
        let (above, rest) = groups.split_at_mut(from);
        let Some(own) = rest.first_mut() else { return };
        let mut at = 0;
        while own.rows.len() > task.anonymity.k && at < own.rows.len() {
            let row = own.rows[at];
            let mut better = above.iter_mut();
            let better = better.find(|group| {
                group.worth > own.worth + TIE && items.has_all(row, &group.disclosed)
            });
            match better.filter(|_| spares(task, &own.rows, at)) {
                Some(better) => {
                    own.rows.remove(at);
                    better.rows.push(row);
                    (own.changed, better.changed) = (true, true);
                }
                None => at += 1,
            }
        }
    }
}

/// Whether the rows other than that at a place are enough.
fn spares(task: &DisclosureTask, rows: &[u32], at: usize) -> bool {
    if !task.anonymity.counts_persons() {
        return rows.len() > task.anonymity.k;
    }
    let others = rows.iter().enumerate().filter(|(place, _)| *place != at);
    let mut others: Vec<u32> = others.map(|(_, &row)| row).collect();
    others.sort_unstable_by_key(|&row| task.anonymity.person(row));
    task.anonymity.has_enough(others.into_iter())
}
