//! Moves rows between the classes of one relational class, where another class discloses more of
//! what the row has.
//!
//! A row discloses its highest ranked pivot, so it may be in a class with few disclosed items although it has
//! all the items of another class. Such a row moves if its class keeps enough rows. It hides less, and no other
//! row hides more. The classes then disclose what has become possible: one item at a time, over all set-valued
//! columns the item that loses least. A round of the paper discloses the most frequent items of one column
//! together. Here a class is divided in two by one item, of whichever column, and each part goes on by itself.
//! It is slower, and often hides less in a small class.

use std::collections::BTreeMap;

use pais_core::split_mix::SplitMix64;

use super::class::EquivalenceClass;
use super::disclosure::StopCheck;
use super::search::{DisclosureTask, TIE};

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

/// Moves each row to the most valuable group whose items it has, if its own group keeps enough rows. The least
/// valuable groups give rows away first.
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

/// The gain of an item in the choice of the next one.
#[derive(Clone, Copy)]
pub(super) struct ItemGains {
    /// Seed of the random factors; `None` where the gains are those of NCP.
    seed: Option<u64>,
    /// Greatest deviation of a factor from 1.
    spread: f64,
}

impl ItemGains {
    /// The decrease of NCP.
    pub(super) const EXACT: Self = Self {
        seed: None,
        spread: 0.0,
    };

    /// The decrease of NCP times random factors, which deviate from 1 by `spread` at most.
    pub(super) fn random(seed: u64, spread: f64) -> Self {
        Self {
            seed: Some(seed),
            spread,
        }
    }

    /// A factor from `1 - spread` to `1 + spread`, the same for an item in every class.
    fn factor(&self, set: usize, item: u32) -> f64 {
        let Some(seed) = self.seed else { return 1.0 };
        let mixed = mix(seed ^ mix((set as u64) << 32 | u64::from(item)));
        let unit = (mixed >> 11) as f64 / (1u64 << 53) as f64;
        1.0 + self.spread * (2.0 * unit - 1.0)
    }
}

/// A number that depends on every bit of another one.
pub(super) fn mix(number: u64) -> u64 {
    SplitMix64(number).next_u64()
}

/// An item that may be the next one.
struct ItemCandidate {
    set: usize,
    item: u32,
    /// The decrease of the loss.
    gain: f64,
}

/// Divides a class as long as an item can be disclosed. If `stop` returns true, classes that could
/// still be divided may be left as they are.
pub(super) fn disclose_singly(
    task: &DisclosureTask,
    class: EquivalenceClass,
    gains: ItemGains,
    stop: StopCheck,
) -> Vec<EquivalenceClass> {
    let vocabularies = task.vocabularies.iter();
    let mut counts: Vec<Vec<u32>> = vocabularies.map(|items| vec![0; items.len()]).collect();
    let (mut open, mut done) = (vec![class], Vec::new());
    while let Some(mut class) = open.pop() {
        if stop() {
            done.push(class);
            continue;
        }
        let candidates = candidates(task, &mut class, gains, &mut counts);
        match best(task, &class, candidates) {
            None => done.push(class),
            Some(chosen) => open.extend(divided(class, &chosen)),
        }
    }
    done
}

/// The items that a part of a class can disclose, as far as its numbers of rows show. Items that
/// too few rows have leave the class, because they stay rare in its parts.
fn candidates(
    task: &DisclosureTask,
    class: &mut EquivalenceClass,
    gains: ItemGains,
    counts: &mut [Vec<u32>],
) -> Vec<ItemCandidate> {
    let (k, rows) = (task.anonymity.k, class.rows.len());
    let mut candidates = Vec::new();
    for (set, (hidden, counts)) in class.sets.iter_mut().zip(counts).enumerate() {
        let mut found = Vec::new();
        for &item in &hidden.items {
            let count = &mut counts[item as usize];
            if *count == 0 {
                found.push(item);
            }
            *count += 1;
        }
        hidden.retain(|item| counts[item as usize] as usize >= k);
        let weight = task.item_weight(set);
        for item in found {
            let count = std::mem::take(&mut counts[item as usize]) as usize;
            if count >= k && (count == rows || rows - count >= k) {
                let kept = count as f64 * (1.0 - task.vocabularies[set].ncp(item));
                let gain = weight * kept * gains.factor(set, item);
                candidates.push(ItemCandidate { set, item, gain });
            }
        }
    }
    candidates
}

/// The candidate with the greatest gain whose parts have enough rows or persons; ties go to the
/// first column, then to the first item.
fn best(
    task: &DisclosureTask,
    class: &EquivalenceClass,
    mut candidates: Vec<ItemCandidate>,
) -> Option<ItemCandidate> {
    let order = |one: &ItemCandidate, other: &ItemCandidate| {
        let by_gain = other.gain.total_cmp(&one.gain);
        by_gain.then((one.set, one.item).cmp(&(other.set, other.item)))
    };
    if !task.anonymity.counts_persons() {
        return candidates.into_iter().min_by(order);
    }
    candidates.sort_unstable_by(order);
    candidates.into_iter().find(|candidate| {
        let holds = |index: &usize| {
            let items = class.sets[candidate.set].items_of(*index);
            items.binary_search(&candidate.item).is_ok()
        };
        let (with, without): (Vec<usize>, Vec<usize>) = (0..class.len()).partition(holds);
        let row = |&index: &usize| class.rows[index];
        let enough = |part: &[usize]| task.anonymity.has_enough(part.iter().map(row));
        enough(&with) && (without.is_empty() || enough(&without))
    })
}

/// The rows that have the item and disclose it, and the others where there are any.
fn divided(mut class: EquivalenceClass, chosen: &ItemCandidate) -> Vec<EquivalenceClass> {
    let &ItemCandidate { set, item, .. } = chosen;
    let whole = &class.sets[set];
    let holds = |index: usize| whole.items_of(index).binary_search(&item).is_ok();
    let all = (0..class.len()).all(holds);
    let mut parts = if all {
        Vec::new()
    } else {
        class.divide(2, |index| usize::from(!holds(index)))
    };
    let with = match parts.first_mut() {
        Some(with) => &mut with.sets[set],
        None => &mut class.sets[set],
    };
    with.retain(|other| other != item);
    with.disclosed.push(item);
    if all { vec![class] } else { parts }
}
