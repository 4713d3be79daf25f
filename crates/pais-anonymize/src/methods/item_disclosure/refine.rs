//! The greedy search: Algorithm 1, and for a table that is small enough what loses less.
//!
//! The published result is kept wherever nothing loses less. Beyond it the search tries other levels
//! of the relational columns, and in each relational class the disclosure of one item at a time and
//! rows that change classes. All of it ends with the same kind of table: classes of at least *k*
//! rows that are equal on all quasi-identifiers.

use rayon::prelude::*;

use super::allowance::Allowance;
use super::class::EquivalenceClass;
use super::disclosure::StopCheck;
use super::levels::choices;
use super::search::{DisclosureError, TIE, search, search_sets};
use super::search::{DisclosureTask, Found};
use super::settle::settle;
use super::settle::{ItemGains, disclose_singly};

/// Most levels that a greedy search tries beyond its own.
const MOST_CHOICES: usize = 8;

/// Rounds of disclosure that a search is expected to need, for its cost.
const EXPECTED_ROUNDS: u64 = 8;

/// Runs Algorithm 1, and refines its result as far as the allowance of a greedy search goes.
///
/// # Errors
/// As [`search`].
pub(super) fn greedy(task: &DisclosureTask) -> Result<Found, DisclosureError> {
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
        Err(DisclosureError::Cancelled)
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
        // Dividing one class of all rows at worst takes off k rows each time.
        rows * rows / task.anonymity.k.max(1) as u64 * items_of_row + rows * classes
    });
    if !allowance.take(cost.sum()) {
        let classes = parts.into_iter().flatten().collect();
        return task.found(levels, classes);
    }
    let improved = parts.into_par_iter().flat_map_iter(|classes| {
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
    let classes = improved.collect();
    task.found(levels, classes)
}

/// The classes of rows of one relational class, from one item at a time.
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
