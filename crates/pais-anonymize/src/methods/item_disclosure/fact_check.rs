//! Whether new facts keep every combination of at most *L* facts valid.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};

use pais_core::model::Confidence;
use pais_core::table::NULL_CODE;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::anonymity::Anonymity;
use super::disclosure::{STRIDE, StopCheck};

/// A sensitive column with the values that *C* bounds.
pub(super) struct SensitiveBound<'a> {
    /// One code per row; [`NULL_CODE`] for missing.
    pub codes: &'a [u32],
    /// By code.
    pub bounded: Vec<bool>,
    /// Whether rows with a missing cell are left out of the denominator.
    pub excludes_missing: bool,
}

impl SensitiveBound<'_> {
    /// The rows that hold a value whose confidence among `rows` is above `c`, and the number of
    /// rows of which that is a share; the most frequent value. `None` where none is above.
    pub(super) fn exceeded(&self, rows: &[u32], c: Confidence) -> Option<(u64, u64)> {
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
pub(super) struct FactCheck<'a> {
    /// By row, its facts, ascending.
    pub facts: &'a [Vec<u32>],
    /// *K*.
    pub anonymity: Anonymity<'a>,
    /// *C*.
    pub c: Confidence,
    /// The columns that *C* bounds.
    pub sensitive: &'a [SensitiveBound<'a>],
    /// Most look-ups of a fact in a row.
    pub budget: u64,
    /// Whether the search must stop.
    pub stop: StopCheck<'a>,
}

impl FactCheck<'_> {
    /// Checks each new fact, given by the rows that have it, together with up to `more` other
    /// facts that are not in the range `own`. Returns the number of look-ups if every combination
    /// is valid; `None` if one is not, if the budget is spent, or if the search must stop.
    pub(super) fn lookups(&self, new: &[&[u32]], own: Range<u32>, more: u32) -> Option<u64> {
        let spent = AtomicU64::new(0);
        let check = |rows: &&[u32]| {
            self.is_valid(rows) && self.extend((rows, 0), &own, more, &spent).is_continue()
        };
        let holds = new.par_iter().all(check);
        holds.then(|| spent.into_inner())
    }

    fn is_valid(&self, rows: &[u32]) -> bool {
        let exceeds = |bound: &SensitiveBound| bound.exceeded(rows, self.c).is_some();
        self.anonymity.has_enough(rows.iter().copied()) && !self.sensitive.iter().any(exceeds)
    }

    /// Extends what `rows` have in common by up to `more` facts numbered `from` or later. The
    /// branches run in parallel.
    fn extend(
        &self,
        (rows, from): (&[u32], u32),
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
            self.extend((holders, fact + 1), own, more - 1, spent)
                .is_continue()
        };
        if holding.par_iter().all(extend) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}
