//! What a holder should know about a dataset's definition before any row is read.

use super::Schema;
use crate::definition::{ColumnKind, ColumnRole};
use crate::warning::{Warning, WarningCode};

impl Schema {
    /// The warnings about the declared columns: numeric quasi-identifiers whose outermost interval
    /// in a release is their exact range. Pointers are into the dataset's definition.
    pub fn warnings(&self) -> Vec<Warning> {
        let columns = self.columns.iter().enumerate();
        let exact = columns.filter(|(_, column)| {
            column.role == ColumnRole::QuasiIdentifier
                && column.kind == ColumnKind::Numeric
                && column.tree.is_none()
                && column.domain.is_none()
                && !column.round_range
        });
        exact
            .map(|(index, column)| {
                let detail = format!(
                    "the outermost interval of `{}` in a release has its exact smallest and \
                     greatest number as ends; declare a `domain`, or set `round_range` to true",
                    column.name
                );
                let pointer = format!("/columns/{index}/domain");
                Warning::at(WarningCode::ExactRange, pointer, detail)
            })
            .collect()
    }
}
