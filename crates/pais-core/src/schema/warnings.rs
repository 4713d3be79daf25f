//! What a holder should know about a dataset's definition before any row is read.

use super::Schema;
use crate::definition::ColumnRole;
use crate::warning::{Warning, WarningCode};

impl Schema {
    /// The warnings about the declared columns: quasi-identifiers of numbers and dates whose outermost interval
    /// in a release is their exact range. Pointers are into the dataset's definition.
    pub fn warnings(&self) -> Vec<Warning> {
        let columns = self.columns.iter().enumerate();
        let exact = columns.filter(|(_, column)| {
            column.role == ColumnRole::QuasiIdentifier
                && column.has_grown_intervals()
                && column.domain.is_none()
                && !column.round_range
                && column.round.is_none()
        });
        exact
            .map(|(index, column)| {
                let detail = format!(
                    "the outermost interval of `{}` in a release has its exact smallest and \
                     greatest {} as ends; declare {}",
                    column.name,
                    if column.kind.is_of_dates() {
                        "date"
                    } else {
                        "number"
                    },
                    if column.kind.is_of_dates() {
                        "a `domain`, or set `round_range` to true"
                    } else {
                        "a `domain` or `round`, or set `round_range` to true"
                    }
                );
                let pointer = format!("/columns/{index}/domain");
                Warning::at(WarningCode::ExactRange, pointer, detail)
            })
            .collect()
    }
}
