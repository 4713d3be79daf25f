//! How often each code occurs in the columns of a release and of its raw quasi-identifiers: counted once
//! for NCP, distortion and classifiers.

use pais_core::definition::ColumnRole;
use pais_core::parallel;
use pais_verify::EquivalenceClasses;

use crate::release::MeasuredRelease;

/// By column, the number of rows that have each code; null is none of them.
pub(crate) struct CodeFrequencies {
    /// Of the released table.
    pub(crate) released: Vec<Vec<u64>>,
    /// Of the raw quasi-identifiers.
    pub(crate) raw: Vec<Vec<u64>>,
}

impl CodeFrequencies {
    /// `classes` are those of the release. Without meaning when stopped.
    pub(crate) fn new(release: &MeasuredRelease, classes: &EquivalenceClasses<'_>) -> Self {
        let cancellation = release.cancellation;
        let known = release.schema.names(ColumnRole::QuasiIdentifier);
        Self {
            released: parallel::map(&release.table.columns, |it| {
                let column = &it.column;
                if known.contains(&it.name) {
                    classes.code_counts(column)
                } else if cancellation.is_cancelled() {
                    Vec::new()
                } else {
                    column.row_counts()
                }
            }),
            raw: parallel::map(release.quasi_identifiers, |it| {
                if cancellation.is_cancelled() {
                    Vec::new()
                } else {
                    it.codes.counts(it.domain.code_count())
                }
            }),
        }
    }
}
