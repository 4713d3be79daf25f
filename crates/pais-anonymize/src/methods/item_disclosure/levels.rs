//! Levels of the relational columns that may lose less than those of Algorithm 1.
//!
//! Algorithm 1 moves the column that promises most and never takes a step back. A flat column that
//! goes down first may keep all others at the top. With the columns moving as a whole there are few
//! combinations of levels, and whether one is k-anonymous shows without any set. These are listed,
//! the least loss that each of them may end with first.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::allowance::Allowance;
use super::class::EquivalenceClass;
use super::disclosure::StopCheck;
use super::hierarchy::Hierarchy;
use super::search::DisclosureError;
use super::search::{DisclosureTask, RowGroups};

/// Most combinations of levels that are examined.
const MOST_EXAMINED: usize = 1 << 13;

/// Levels of the relational columns whose classes have at least *k* rows or persons.
pub(super) struct LevelChoice {
    /// By relational column.
    pub levels: Vec<u32>,
    /// What a search from here loses at least, unless pre-generalization joins items of a row: the
    /// loss if every item were disclosed that *k* rows of a class have.
    pub least_loss: f64,
}

/// Lists levels, the least `least_loss` first. Combinations are examined from the topmost one down,
/// those with the least relational loss first, as far as the allowance goes.
///
/// # Errors
/// Where the rows hold more items in one column than 32 bits can index.
pub(super) fn choices(
    task: &DisclosureTask,
    allowance: &mut Allowance,
    stop: StopCheck,
) -> Result<Vec<LevelChoice>, DisclosureError> {
    let whole = task.whole()?;
    let rows = task.table.rows.max(1) as f64;
    let columns = task.hierarchies.iter().zip(&task.settings.weights);
    let loss_at = |(column, weight): (&Hierarchy, &f64)| -> Vec<f64> {
        let depths = 0..=column.deepest();
        depths
            .map(|depth| weight * column.loss_at(depth) / rows)
            .collect()
    };
    let loss_at: Vec<Vec<f64>> = columns.map(loss_at).collect();
    let relational_loss = |levels: &[u32]| -> f64 {
        let columns = loss_at.iter().zip(levels);
        columns.map(|(loss, &depth)| loss[depth as usize]).sum()
    };
    let cost = whole.rows.len() as u64 * (1 + task.hierarchies.len() as u64);
    let items: usize = whole.sets.iter().map(|set| set.items.len()).sum();
    let top = vec![0; task.hierarchies.len()];
    let mut seen = BTreeSet::from([top.clone()]);
    // A loss is not negative, so its bits are in its order.
    let mut open = BTreeSet::from([(relational_loss(&top).to_bits(), top)]);
    let mut found = Vec::new();
    for _ in 0..MOST_EXAMINED {
        let Some((_, levels)) = open.pop_first() else {
            break;
        };
        if stop() || !allowance.take(cost + items as u64) {
            break;
        }
        let groups = task.group(&levels, &whole.rows);
        if !all_have_enough(task, &whole.rows, &groups) {
            // Nor have the parts of these classes.
            continue;
        }
        for column in 0..levels.len() {
            let mut below = levels.clone();
            below[column] += 1;
            let exists = below[column] <= task.hierarchies[column].deepest();
            if exists && seen.insert(below.clone()) {
                open.insert((relational_loss(&below).to_bits(), below));
            }
        }
        let hidden = least_hidden(task, &whole, &groups);
        found.push(LevelChoice {
            least_loss: relational_loss(&levels) + hidden,
            levels,
        });
    }
    found.sort_by(|one, other| {
        let by_loss = one.least_loss.total_cmp(&other.least_loss);
        by_loss.then_with(|| one.levels.cmp(&other.levels))
    });
    Ok(found)
}

/// Whether every group has *k* rows or persons; the rows of a person are next to one another.
fn all_have_enough(task: &DisclosureTask, rows: &[u32], groups: &RowGroups) -> bool {
    let mut counts = vec![(0usize, None); groups.groups];
    for (&row, &group) in rows.iter().zip(&groups.group_of) {
        let (count, last) = &mut counts[group as usize];
        let person = task.anonymity.person(row);
        *count += usize::from(last.replace(person) != Some(person));
    }
    counts.iter().all(|(count, _)| *count >= task.anonymity.k)
}

/// The weighted share of the items that fewer than *k* rows of their group have.
fn least_hidden(task: &DisclosureTask, whole: &EquivalenceClass, groups: &RowGroups) -> f64 {
    let sets = whole.sets.iter().zip(&task.vocabularies).enumerate();
    let hidden = sets.map(|(set, (items, vocabulary))| {
        let mut counts: FxHashMap<(u32, u32), u64> = FxHashMap::default();
        for (index, &group) in groups.group_of.iter().enumerate() {
            for &item in items.items_of(index) {
                *counts.entry((group, item)).or_insert(0) += 1;
            }
        }
        // Summed by item, so that the result does not depend on the order of the table.
        let mut frequent = vec![0u64; vocabulary.len()];
        for ((_, item), count) in counts {
            if count >= task.anonymity.k as u64 {
                frequent[item as usize] += count;
            }
        }
        let kept = (0u32..).zip(&frequent);
        let kept: f64 = kept
            .map(|(item, &count)| count as f64 * (1.0 - vocabulary.ncp(item)))
            .sum();
        let all = match task.raw_items[set] {
            0 => 0.0,
            items => items as f64,
        };
        task.item_weight(set) * (all - kept)
    });
    hidden.sum()
}
