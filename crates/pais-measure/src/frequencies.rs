//! How often each code occurs in the columns of a release and of its raw quasi-identifiers: counted once
//! for NCP, distortion and classifiers.

use pais_core::parallel;
use pais_core::table::code_counts;

use crate::release::MeasuredRelease;

/// By column, the number of rows that have each code; null is none of them.
pub(crate) struct CodeFrequencies {
    /// Of the released table.
    pub(crate) released: Vec<Vec<u64>>,
    /// Of the raw quasi-identifiers.
    pub(crate) raw: Vec<Vec<u64>>,
}

impl CodeFrequencies {
    /// Without meaning when stopped.
    pub(crate) fn new(release: &MeasuredRelease) -> Self {
        let counted = |codes: &[u32], count: usize| {
            if release.cancellation.is_cancelled() {
                Vec::new()
            } else {
                code_counts(codes, count)
            }
        };
        let released = release.table.columns.iter().map(|it| &it.column);
        Self {
            released: parallel::map(released, |it| counted(&it.codes, it.dictionary.len())),
            raw: parallel::map(release.quasi_identifiers, |it| {
                counted(&it.codes, it.domain.code_count())
            }),
        }
    }
}
