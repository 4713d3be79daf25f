//! LKC-privacy with set-valued columns: an adversary knows at most *L* facts about a person, each
//! one value of a relational column or one item of a set-valued column.
//!
//! The search starts with every relational column at its topmost value and no item disclosed.
//! Each step takes the candidate with the greatest decrease of NCP: a relational column one level
//! down, or one item disclosed for all rows that have it. It is performed if the table stays
//! valid; else it is dropped for good, because a table that is refined further stays invalid
//! (docs/methods/sets.md).

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};

use pais_core::model::{Confidence, Lkc, MissingSensitive};
use pais_core::table::codes::RowCodes;
use pais_core::table::{EncodedTable, NULL_CODE};
use pais_core::with_codes;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::class::Anonymity;
use super::disclosure::{STRIDE, StopCheck};
use super::hierarchy::Hierarchy;
use super::outcome::{DisclosedSet, DisclosedTable};
use super::search::{DisclosureSettings, DisclosureTask, TIE, too_many_items};
use super::vocabulary::Vocabulary;
use crate::error::RunError;
use crate::methods::bounded_values::{
    ExceedingShare, bounded_values, check_shares, greatest_of_columns,
};
use crate::observer::Phase;

/// Maximum number of look-ups of a fact in a row for one candidate; one that needs more is dropped.
const CANDIDATE_BUDGET: u64 = 1 << 28;

/// Maximum number of look-ups for all candidates that are performed; later ones are dropped. The verifier
/// enumerates fewer, so that it can decide every result.
const BUDGET: u64 = 1 << 32;

/// Runs the search and returns the cuts and the disclosed items. No row is suppressed.
///
/// # Errors
/// Where the topmost table does not meet the model, and on cancellation.
pub(super) fn search_facts(task: &DisclosureTask, model: &Lkc) -> Result<DisclosedTable, RunError> {
    let DisclosureTask {
        table,
        settings,
        observer,
        anonymity,
        vocabularies,
        ..
    } = task;
    let ordered = anonymity.ordered_rows(table.rows);
    let (mut sensitive, mut exceeding) = (Vec::new(), Vec::new());
    for (column, values) in bounded_values(model, table) {
        let bound = FactBound {
            codes: &column.codes,
            bounded: values.iter().map(Option::is_some).collect(),
            excludes_missing: model.missing_sensitive == MissingSensitive::Excluded,
        };
        if let Some((holding, of)) = bound.exceeded(&ordered, model.c) {
            exceeding.push(ExceedingShare {
                column: column.name.clone(),
                pointer: "/privacy/c".to_owned(),
                is_listed: model.sensitive_values.is_some(),
                holding,
                of,
            });
        }
        sensitive.push(bound);
    }
    let exceeding = greatest_of_columns(exceeding.into_iter());
    check_shares(&exceeding, ordered.len() as u64, "")?;
    let mut search = FactSearch::new(task, &ordered).ok_or_else(too_many_items)?;
    let mut items = search.items(vocabularies, settings);
    let candidates = items.len().max(1) as f64;
    let mut in_qi = vec![true; search.hierarchies.len()];
    let mut spent = 0;
    loop {
        observer.check()?;
        let relational = search.best_column(&in_qi, settings);
        let check = FactCheck {
            facts: &search.facts,
            anonymity: *anonymity,
            c: model.c,
            sensitive: &sensitive,
            budget: CANDIDATE_BUDGET.min(BUDGET - spent),
            stop: &|| observer.must_stop(),
        };
        let column = match (relational, items.last()) {
            (None, None) => break,
            (Some((at, gain, position)), Some(item)) => {
                let is_tie = (gain - item.gain).abs() <= TIE;
                let is_first = gain > item.gain || (is_tie && position < item.position);
                is_first.then_some(at)
            }
            (Some((at, ..)), None) => Some(at),
            (None, Some(_)) => None,
        };
        let known = model.l.map_or(u32::MAX, |l| l.get()) - 1;
        if let Some(at) = column {
            let tried = search.descended(at, &ordered);
            let own = search.range(at);
            let parts: Vec<_> = tried.changed.iter().map(Vec::as_slice).collect();
            match check.lookups(&parts, own, known) {
                Some(lookups) => {
                    spent += lookups;
                    search.descend(at, &tried.facts);
                }
                None => in_qi[at] = false,
            }
        } else if let Some(item) = items.pop() {
            let rows = std::mem::take(&mut search.rows_of[item.set][item.item as usize]);
            let fact = search.offsets[search.hierarchies.len() + item.set] + item.item;
            if let Some(lookups) = check.lookups(&[&rows], fact..fact + 1, known) {
                spent += lookups;
                search.disclose(fact, &rows);
            }
        }
        let left = items.len() as f64 / candidates;
        observer.progress(Phase::Searching, 1.0 - left);
    }
    observer.check()?;
    Ok(search.outcome(vocabularies))
}

/// An item that may be disclosed.
struct HiddenItem {
    set: usize,
    item: u32,
    /// The weighted decrease of NCP.
    gain: f64,
    /// Position of the column among the stored columns.
    position: usize,
}

/// A relational column one level down.
struct Descended {
    /// By row, the fact of the column.
    facts: Vec<u32>,
    /// The rows of each value that is new at this level.
    changed: Vec<Vec<u32>>,
}

/// The state of the search. Facts are numbered across the columns: the values of relational
/// columns first, then the items of sets.
struct FactSearch<'a> {
    table: &'a EncodedTable,
    hierarchies: Vec<Hierarchy<'a>>,
    /// The first fact of each column, and the number of facts at the end.
    offsets: Vec<u32>,
    /// By row, the facts that it has in the current table, ascending.
    facts: Vec<Vec<u32>>,
    /// By set and item, the rows that have it, in the order of persons.
    rows_of: Vec<Vec<Vec<u32>>>,
}

impl<'a> FactSearch<'a> {
    /// The topmost state; `None` for more facts than 32 bits can number.
    fn new(task: &DisclosureTask<'a>, ordered: &[u32]) -> Option<Self> {
        let (table, vocabularies) = (task.table, &task.vocabularies);
        let hierarchies = task.hierarchies.clone();
        let sizes = hierarchies.iter().map(Hierarchy::value_count);
        let sizes = sizes.chain(vocabularies.iter().map(Vocabulary::len));
        let mut offsets = vec![0u32];
        for size in sizes {
            let last = offsets.last().copied()?;
            offsets.push(last.checked_add(u32::try_from(size).ok()?)?);
        }
        let mut row_items = Vec::new();
        let rows_of = vocabularies.iter().map(|vocabulary| {
            let mut rows_of = vec![Vec::new(); vocabulary.len()];
            for &row in ordered {
                row_items.clear();
                vocabulary.push_row(row as usize, &mut row_items);
                for &item in &row_items {
                    rows_of[item as usize].push(row);
                }
            }
            rows_of
        });
        let rows_of = rows_of.collect();
        // The topmost value of a relational column is its first.
        let topmost = offsets[..hierarchies.len()].to_vec();
        Some(Self {
            facts: vec![topmost; table.rows],
            table,
            hierarchies,
            offsets,
            rows_of,
        })
    }

    /// The items that may be disclosed, the best last.
    fn items(&self, vocabularies: &[Vocabulary], settings: &DisclosureSettings) -> Vec<HiddenItem> {
        let mut items = Vec::new();
        for (set, (rows_of, vocabulary)) in self.rows_of.iter().zip(vocabularies).enumerate() {
            let all: usize = rows_of.iter().map(Vec::len).sum();
            let weight = settings.weights[self.hierarchies.len() + set] / all.max(1) as f64;
            for (item, rows) in rows_of.iter().enumerate() {
                let item = item as u32;
                let gain = rows.len() as f64 * (1.0 - vocabulary.ncp(item)) * weight;
                if gain > 0.0 {
                    items.push(HiddenItem {
                        set,
                        item,
                        gain,
                        position: self.table.sets[set].position,
                    });
                }
            }
        }
        items.sort_by(|one, other| {
            let place = |it: &HiddenItem| (it.position, it.item);
            let by_gain = one.gain.total_cmp(&other.gain);
            by_gain.then_with(|| place(other).cmp(&place(one)))
        });
        items
    }

    /// The relational column with the greatest decrease of NCP by its next level, that decrease,
    /// and its position; ties go to the first column.
    fn best_column(
        &mut self,
        in_qi: &[bool],
        settings: &DisclosureSettings,
    ) -> Option<(usize, f64, usize)> {
        let rows = self.table.rows.max(1) as f64;
        let mut best: Option<(usize, f64, usize)> = None;
        for (at, hierarchy) in self.hierarchies.iter_mut().enumerate() {
            if !in_qi[at] || hierarchy.is_exhausted() {
                continue;
            }
            let gain = hierarchy.gain() / rows * settings.weights[at];
            if best.is_none_or(|(_, best, _)| gain > best + TIE) {
                best = Some((at, gain, hierarchy.column().position));
            }
        }
        best
    }

    /// The facts of a relational column.
    fn range(&self, at: usize) -> Range<u32> {
        self.offsets[at]..self.offsets[at + 1]
    }

    fn descended(&self, at: usize, ordered: &[u32]) -> Descended {
        let hierarchy = &self.hierarchies[at];
        let below = hierarchy.next_level();
        let fact = |code: u32| self.offsets[at] + below[code as usize];
        let facts: Vec<u32> = with_codes!(&hierarchy.column().codes, codes => {
            codes.in_rows(0..self.facts.len()).map(fact).collect()
        });
        let mut rows_of = vec![Vec::new(); hierarchy.value_count()];
        for &row in ordered {
            let fact = facts[row as usize];
            if self.facts[row as usize].binary_search(&fact).is_err() {
                rows_of[(fact - self.offsets[at]) as usize].push(row);
            }
        }
        rows_of.retain(|rows| !rows.is_empty());
        Descended {
            facts,
            changed: rows_of,
        }
    }

    /// Moves a relational column one level down.
    fn descend(&mut self, at: usize, facts: &[u32]) {
        for (list, &fact) in self.facts.iter_mut().zip(facts) {
            // Columns have disjoint ranges, so the order stays.
            list[at] = fact;
        }
        self.hierarchies[at].descend();
    }

    /// Discloses an item.
    fn disclose(&mut self, fact: u32, rows: &[u32]) {
        for &row in rows {
            let list = &mut self.facts[row as usize];
            let place = list.partition_point(|&other| other < fact);
            list.insert(place, fact);
        }
    }

    fn outcome(&self, vocabularies: &[Vocabulary]) -> DisclosedTable {
        let rows: Vec<u32> = (0..self.facts.len() as u32).collect();
        let sets = vocabularies.iter().enumerate().map(|(set, vocabulary)| {
            let own = self.range(self.hierarchies.len() + set);
            let disclosed = rows.chunks(1).zip(&self.facts).map(|(row, list)| {
                let items = list.iter().filter(|fact| own.contains(*fact));
                (row, items.map(|fact| fact - own.start).collect())
            });
            DisclosedSet::new(rows.len(), vocabulary, disclosed)
        });
        let sets = sets.collect();
        let cuts = self.hierarchies.iter().map(Hierarchy::cut).collect();
        DisclosedTable::of_all_rows(rows.len(), cuts, sets)
    }
}

/// A sensitive column with the values that *C* bounds.
struct FactBound<'a> {
    /// One code per row; [`NULL_CODE`] for missing.
    codes: &'a [u32],
    /// By code.
    bounded: Vec<bool>,
    /// Whether rows with a missing cell are left out of the denominator.
    excludes_missing: bool,
}

impl FactBound<'_> {
    /// For the most frequent value, if its confidence among `rows` is above `c`: its number of rows and the number of
    /// rows that the confidence is a share of. `None` if no value is above `c`.
    fn exceeded(&self, rows: &[u32], c: Confidence) -> Option<(u64, u64)> {
        let mut counts: FxHashMap<u32, u64> = FxHashMap::default();
        let (mut present, mut most) = (0, 0);
        for &row in rows {
            let code = self.codes[row as usize];
            if code == NULL_CODE {
                continue;
            }
            present += 1;
            if self.bounded[code as usize] {
                let count = counts.entry(code).or_insert(0);
                *count += 1;
                most = most.max(*count);
            }
        }
        let of = if self.excludes_missing {
            present
        } else {
            rows.len() as u64
        };
        (most > 0 && c.is_exceeded_by(most, of)).then_some((most, of))
    }
}

/// What every combination of facts must meet, over the facts of the current table.
struct FactCheck<'a> {
    /// By row, its facts, ascending.
    facts: &'a [Vec<u32>],
    /// *K*.
    anonymity: Anonymity<'a>,
    /// *C*.
    c: Confidence,
    /// The columns that *C* bounds.
    sensitive: &'a [FactBound<'a>],
    /// Maximum number of look-ups of a fact in a row.
    budget: u64,
    /// Whether the search must stop.
    stop: StopCheck<'a>,
}

impl FactCheck<'_> {
    /// Checks each new fact, given by the rows that have it, together with up to `more` other
    /// facts that are not in the range `own`. Returns the number of look-ups if every combination
    /// is valid; `None` if one is not, if the budget is spent, or if the search must stop.
    fn lookups(&self, new: &[&[u32]], own: Range<u32>, more: u32) -> Option<u64> {
        let spent = AtomicU64::new(0);
        let check = |rows: &&[u32]| {
            self.is_valid(rows) && self.extend(rows, 0, &own, more, &spent).is_continue()
        };
        let holds = new.par_iter().all(check);
        holds.then(|| spent.into_inner())
    }

    fn is_valid(&self, rows: &[u32]) -> bool {
        let exceeds = |bound: &FactBound| bound.exceeded(rows, self.c).is_some();
        self.anonymity.has_enough(rows.iter().copied()) && !self.sensitive.iter().any(exceeds)
    }

    /// Extends what `rows` have in common by up to `more` facts numbered `from` or later. The
    /// branches run in parallel.
    fn extend(
        &self,
        rows: &[u32],
        from: u32,
        own: &Range<u32>,
        more: u32,
        spent: &AtomicU64,
    ) -> ControlFlow<()> {
        if more == 0 {
            return ControlFlow::Continue(());
        }
        let mut holding: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        let mut looked_up = 0;
        for (at, &row) in rows.iter().enumerate() {
            if at % STRIDE == 0 && (self.stop)() {
                return ControlFlow::Break(());
            }
            let facts = &self.facts[row as usize];
            let after = &facts[facts.partition_point(|&fact| fact < from)..];
            looked_up += after.len() as u64 + 1;
            for &fact in after.iter().filter(|fact| !own.contains(*fact)) {
                holding.entry(fact).or_default().push(row);
            }
        }
        if spent.fetch_add(looked_up, Ordering::Relaxed) + looked_up > self.budget {
            return ControlFlow::Break(());
        }
        // A fact that all rows have changes nothing: combinations with it have the same rows as
        // those without.
        holding.retain(|_, holders| holders.len() < rows.len());
        if !holding
            .par_iter()
            .all(|(_, holders)| self.is_valid(holders))
        {
            return ControlFlow::Break(());
        }
        let extend = |(&fact, holders): (&u32, &Vec<u32>)| {
            self.extend(holders, fact + 1, own, more - 1, spent)
                .is_continue()
        };
        if holding.par_iter().all(extend) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}
