//! The subject column: what can be declared of it.

use crate::definition::{ColumnDefinition, ColumnKind, ColumnRole};
use crate::rejection::Fault;

use super::Schema;

/// What is wrong with the declarations of subject columns.
pub(super) fn faults(columns: &[ColumnDefinition]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let is_subject = |column: &ColumnDefinition| column.role == ColumnRole::Subject;
    let subjects = columns.iter().filter(|column| is_subject(column)).count();
    if subjects > 1 {
        faults.push(
            Fault::at(
                "/columns",
                format!("{subjects} columns have the role subject; at most one can"),
            )
            .fix("give the others the role identifier"),
        );
    }
    for (index, column) in columns.iter().enumerate().filter(|(_, it)| is_subject(it)) {
        if column.kind != ColumnKind::Categorical {
            let pointer = format!("/columns/{index}/kind");
            let detail = "subjects are compared as text, so the kind must be categorical";
            faults.push(Fault::at(pointer, detail).fix("leave `kind` out"));
        }
        let given = [
            ("taxonomy", column.taxonomy.is_some()),
            ("domain", column.domain.is_some()),
            ("order", column.order.is_some()),
        ];
        for (field, _) in given.into_iter().filter(|(_, given)| *given) {
            let pointer = format!("/columns/{index}/{field}");
            let detail = "a subject is not generalized, so this field has no effect";
            faults.push(Fault::at(pointer, detail).fix("leave it out"));
        }
    }
    faults
}

impl Schema {
    /// The position, among the stored columns, of the subject column.
    pub fn subject(&self) -> Option<usize> {
        self.stored_with(ColumnRole::Subject).first().copied()
    }
}
