//! What the anonymous table must meet, resolved against the rows of a run.

use pais_core::model::{Confidence, MinimumAnonymity};
use pais_core::table::NULL_CODE;

/// One sensitive column and which of its values count.
#[derive(Clone, Debug)]
pub struct SensitiveBound<'a> {
    /// As in the header.
    pub column: &'a str,
    /// One code a row; [`NULL_CODE`] for missing.
    pub codes: &'a [u32],
    /// By code: the number of the sensitive value among all of the run, or [`NULL_CODE`].
    pub numbers: Vec<u32>,
}

/// *L*, *K*, *C* and *S* of Definition 3.1.
#[derive(Clone, Debug)]
pub struct Requirement<'a> {
    /// *L*, capped at the number of quasi-identifiers.
    pub l: usize,
    /// *K*.
    pub k: MinimumAnonymity,
    /// *C*.
    pub c: Confidence,
    /// *S*, by column; empty where nothing is bounded.
    pub sensitive: Vec<SensitiveBound<'a>>,
    /// Number of sensitive values over all columns.
    pub sensitive_values: usize,
}

impl Requirement<'_> {
    /// Whether a group of `size` rows, of which `holding` have one sensitive value, is allowed.
    #[inline]
    pub fn allows(&self, size: u64, holding: u64) -> bool {
        size >= self.k.get() && !self.c.is_exceeded_by(holding, size)
    }

    /// Whether there is a sensitive value that a group could have too many rows of.
    pub fn bounds_confidence(&self) -> bool {
        self.sensitive_values > 0 && !self.c.is_unbounded()
    }

    /// The fewest rows among which `holding` may have one sensitive value; at least *K*.
    pub fn enough_for(&self, holding: u64) -> u64 {
        self.c.least_group(holding).max(self.k.get())
    }

    /// Calls `found` with the number of each sensitive value that `row` has.
    #[inline]
    pub fn sensitive_of(&self, row: usize, mut found: impl FnMut(usize)) {
        for bound in &self.sensitive {
            let code = bound.codes[row];
            if code != NULL_CODE {
                let number = bound.numbers[code as usize];
                if number != NULL_CODE {
                    found(number as usize);
                }
            }
        }
    }
}
