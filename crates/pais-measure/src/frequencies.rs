//! How often each code occurs in the columns of a release and of its raw rows: counted once for all
//! measures.

use pais_core::table::code_counts;
use rayon::prelude::*;

use crate::release::MeasuredRelease;

/// By column, the number of rows that have each code; null is none of them.
pub(crate) struct CodeFrequencies {
    /// Of the released table.
    pub(crate) released: Vec<Vec<u64>>,
    /// Of the raw quasi-identifiers.
    pub(crate) raw: Vec<Vec<u64>>,
}

impl CodeFrequencies {
    pub(crate) fn new(release: &MeasuredRelease) -> Self {
        let released = release.table.columns.par_iter();
        let raw = release.quasi_identifiers.par_iter();
        Self {
            released: released.map(|it| it.column.row_counts()).collect(),
            raw: raw
                .map(|it| code_counts(&it.codes, it.domain.code_count()))
                .collect(),
        }
    }
}
