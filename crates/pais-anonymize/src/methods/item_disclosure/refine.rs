//! The greedy search: Algorithm 1 and, for a table that is small enough, refinements that lose less.
//!
//! The published result is kept wherever nothing loses less. Beyond it the search tries other levels
//! of the relational columns, and in each relational class the disclosure of one item at a time and
//! rows that change classes. All of it ends with the same kind of table: classes of at least *k*
//! rows that are equal on all quasi-identifiers.

use std::collections::BTreeSet;

use pais_core::parallel;
use rustc_hash::FxHashMap;

use crate::error::RunError;

use super::class::EquivalenceClass;
use super::disclosure::StopCheck;
use super::hierarchy::Hierarchy;
use super::search::{DisclosureTask, Found, RowGroups, TIE, search, search_sets};
use super::settle::{ItemGains, disclose_singly, settle};

/// Maximum number of levels that a greedy search tries beyond its own.
const MOST_CHOICES: usize = 8;

/// Rounds of disclosure that a search is expected to need, for its cost.
const EXPECTED_ROUNDS: u64 = 8;

/// Runs Algorithm 1, and refines its result as far as the allowance of a greedy search goes.
///
/// # Errors
/// As [`search`].
pub(super) fn greedy(task: &DisclosureTask) -> Result<Found, RunError> {
    let published = search(task)?;
    // The searches come first: other levels gain more than other classes.
    let mut for_searches = Allowance::of_greedy().share(2);
    let mut for_classes = for_searches;
    let stop = || task.observer.must_stop();
    let cost = search_cost(task);
    if !for_searches.covers(cost) {
        return Ok(published);
    }
    let mut best = regroup(task, published, &mut for_classes, &stop);
    let choices = choices(task, &mut for_searches.share(4), &stop)?;
    for choice in choices.into_iter().take(MOST_CHOICES) {
        if cannot_lose_less(task, choice.least_loss, &best) || !for_searches.take(cost) {
            break;
        }
        let tried = search_sets(task, &choice.levels)?;
        let tried = regroup(task, tried, &mut for_classes, &stop);
        if tried.loss < best.loss - TIE {
            best = tried;
        }
    }
    if stop() {
        Err(RunError::Cancelled)
    } else {
        Ok(best)
    }
}

/// Whether no search with at least this loss can be better than a result.
pub(super) fn cannot_lose_less(task: &DisclosureTask, least_loss: f64, best: &Found) -> bool {
    // Where items of a row are joined, one disclosed label counts for several of them.
    let is_bound = !task.vocabularies.iter().any(|items| items.joins_items());
    is_bound && least_loss >= best.loss - TIE
}

/// Steps of a search over the set-valued columns.
fn search_cost(task: &DisclosureTask) -> u64 {
    let items: u64 = task.raw_items.iter().sum();
    (items + task.table.rows as u64) * EXPECTED_ROUNDS
}

/// The classes by relational class, in the order of their first classes.
pub(super) fn by_relational_class(
    task: &DisclosureTask,
    found: Found,
) -> Vec<Vec<EquivalenceClass>> {
    let classes = found.classes.iter();
    let first_rows: Vec<u32> = classes
        .filter_map(|class| class.rows.first().copied())
        .collect();
    let groups = task.group(&found.levels, &first_rows);
    let mut parts: Vec<Vec<EquivalenceClass>> = Vec::new();
    parts.resize_with(groups.groups, Vec::new);
    for (class, group) in found.classes.into_iter().zip(groups.group_of) {
        parts[group as usize].push(class);
    }
    parts
}

/// Improves each relational class of a result, if the allowance covers it.
pub(super) fn regroup(
    task: &DisclosureTask,
    found: Found,
    allowance: &mut Allowance,
    stop: StopCheck,
) -> Found {
    let levels = found.levels.clone();
    let parts = by_relational_class(task, found);
    let items_of_row = search_cost(task) / EXPECTED_ROUNDS / task.table.rows.max(1) as u64 + 1;
    let cost = parts.iter().map(|classes| {
        let rows: u64 = classes.iter().map(|class| class.len() as u64).sum();
        let classes = classes.len() as u64;
        // In the worst case, each division of one class of all rows splits off k rows.
        rows * rows / task.anonymity.k.max(1) as u64 * items_of_row + rows * classes
    });
    if !allowance.take(cost.sum()) {
        let classes = parts.into_iter().flatten().collect();
        return task.found(levels, classes);
    }
    let improved = parallel::map(parts, |classes| {
        let rows: Vec<u32> = classes
            .iter()
            .flat_map(|class| class.rows.clone())
            .collect();
        let settled = settle(task, classes.clone(), stop);
        let singly = disclosed_singly(task, rows, ItemGains::EXACT, stop);
        let mut best = (kept(task, &classes), classes);
        for tried in [settled, singly] {
            let kept = kept(task, &tried);
            if kept > best.0 + TIE {
                best = (kept, tried);
            }
        }
        best.1
    });
    let classes = improved.into_iter().flatten().collect();
    task.found(levels, classes)
}

/// The classes of rows of one relational class, disclosed one item at a time.
pub(super) fn disclosed_singly(
    task: &DisclosureTask,
    rows: Vec<u32>,
    gains: ItemGains,
    stop: StopCheck,
) -> Vec<EquivalenceClass> {
    let nothing = vec![Vec::new(); task.vocabularies.len()];
    let classes = disclose_singly(task, task.class_of(rows, &nothing), gains, stop);
    settle(task, classes, stop)
}

/// What the classes disclose, as [`DisclosureTask::kept`].
pub(super) fn kept(task: &DisclosureTask, classes: &[EquivalenceClass]) -> f64 {
    classes.iter().map(|class| task.kept(class)).sum()
}

/// Maximum number of combinations of levels that are examined.
const MOST_EXAMINED: usize = 1 << 13;

/// Levels of the relational columns whose classes have at least *k* rows or persons.
pub(super) struct LevelChoice {
    /// By relational column.
    pub levels: Vec<u32>,
    /// Lower bound of the loss of a search from here, unless pre-generalization joins items of a row: the loss
    /// if every item that *k* rows of a class have were disclosed.
    pub least_loss: f64,
}

/// Levels of the relational columns that may lose less than those of Algorithm 1.
///
/// Algorithm 1 moves the column with the greatest expected gain and never goes back. A flat column that moves
/// down first may keep all others at the top. Because columns move as a whole, there are few combinations of
/// levels, and whether one is k-anonymous can be decided without the sets. Combinations are listed in ascending
/// order of the lower bound of their loss.
///
/// Lists levels, the smallest `least_loss` first. Combinations are examined from the topmost one down, in
/// ascending order of their relational loss, as far as the allowance goes.
///
/// # Errors
/// Where the rows hold more items in one column than 32 bits can index.
pub(super) fn choices(
    task: &DisclosureTask,
    allowance: &mut Allowance,
    stop: StopCheck,
) -> Result<Vec<LevelChoice>, RunError> {
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

/// Steps of the refinement of a greedy result: some tenths of a second at most.
const OF_GREEDY: u64 = 1 << 24;

/// How much work the refinement of a greedy result may cost: a number of steps that are left, so that
/// it does not depend on the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance(u64);

impl Allowance {
    /// The steps that a greedy search may take beyond the published algorithm.
    pub(super) fn of_greedy() -> Self {
        Self(OF_GREEDY)
    }

    /// No limit in steps.
    pub(super) fn unlimited() -> Self {
        Self(u64::MAX)
    }

    /// Whether so many steps are left.
    pub(super) fn covers(self, steps: u64) -> bool {
        steps <= self.0
    }

    /// Takes so many steps if they are left.
    pub(super) fn take(&mut self, steps: u64) -> bool {
        let covered = self.covers(steps);
        if covered && self.0 < u64::MAX {
            self.0 -= steps;
        }
        covered
    }

    /// A part of it, for one purpose.
    pub(super) fn share(self, of: u64) -> Self {
        match self.0 {
            u64::MAX => self,
            left => Self(left / of),
        }
    }
}
