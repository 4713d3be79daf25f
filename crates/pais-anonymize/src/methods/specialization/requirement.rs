//! The LKC-privacy requirement on the anonymous table, resolved against the rows of a run.

use pais_core::model::{Confidence, MinimumAnonymity};
use pais_core::table::NULL_CODE;

/// One sensitive column and the values of it that are bounded.
#[derive(Clone, Debug)]
pub(super) struct SensitiveBound<'a> {
    /// One code per row; [`NULL_CODE`] for a missing cell.
    pub codes: &'a [u32],
    /// By code: the index of the sensitive value among those of all sensitive columns, or
    /// [`NULL_CODE`] for a value that is not sensitive.
    pub numbers: Vec<u32>,
}

/// *L*, *K*, *C* and *S* of Definition 3.1.
#[derive(Clone, Debug)]
pub(super) struct Requirement<'a> {
    /// *L*, capped at the number of quasi-identifiers.
    pub l: usize,
    /// *K*.
    pub k: MinimumAnonymity,
    /// *C*.
    pub c: Confidence,
    /// *S*, by column; empty if no sensitive value is bounded.
    pub sensitive: Vec<SensitiveBound<'a>>,
    /// Number of sensitive values over all columns.
    pub sensitive_values: usize,
}

impl Requirement<'_> {
    /// Whether a group of `size` rows, of which `with_value` have the same sensitive value, is
    /// allowed.
    #[inline]
    pub(super) fn allows(&self, size: u64, with_value: u64) -> bool {
        size >= self.k.get() && !self.c.is_exceeded_by(with_value, size)
    }

    /// Whether *C* bounds any sensitive value.
    pub(super) fn bounds_confidence(&self) -> bool {
        self.sensitive_values > 0 && !self.c.is_unbounded()
    }

    /// The smallest size of a group in which `with_value` rows may have the same sensitive value;
    /// at least *K*.
    pub(super) fn least_group_for(&self, with_value: u64) -> u64 {
        self.c.least_group(with_value).max(self.k.get())
    }

    /// Calls `found` with the index of each sensitive value that `row` has.
    #[inline]
    pub(super) fn for_each_sensitive_value(&self, row: usize, mut found: impl FnMut(usize)) {
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
