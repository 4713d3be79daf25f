//! Sets that are made of several columns of a file: checks of `from`.

use std::collections::HashSet;

use crate::definition::{ColumnDefinition, ColumnKind};
use crate::rejection::Fault;

/// Most characters of the name of a column.
const NAME_LENGTH: usize = 200;

/// What is wrong with a name of a column.
pub(super) const NO_NAME: &str = "a column's name must have 1 to 200 characters and no NUL";

/// Whether a text cannot be the name of a column.
pub(super) fn is_no_name(name: &str) -> bool {
    name.is_empty() || name.chars().count() > NAME_LENGTH || name.contains('\0')
}

/// The columns of a file that a set is made of.
pub(super) fn names(column: &ColumnDefinition) -> Vec<Box<str>> {
    let names = column.from.iter().flatten();
    names.map(|name| name.as_str().into()).collect()
}

/// What is wrong with the columns that sets are made of.
pub(super) fn faults(columns: &[ColumnDefinition]) -> Vec<Fault> {
    let declared: HashSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let mut used = HashSet::new();
    let mut faults = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        let Some(from) = &column.from else { continue };
        let at = format!("/columns/{index}/from");
        if column.kind != ColumnKind::Set {
            let detail = "only a set is made of several columns";
            faults.push(Fault::at(&at, detail).fix("add \"kind\": \"set\", or leave `from` out"));
        }
        if from.is_empty() {
            let detail = "a set is made of at least one column";
            faults.push(Fault::at(&at, detail).fix("name the columns, or leave `from` out"));
        }
        for (number, name) in from.iter().enumerate() {
            let detail = if is_no_name(name) {
                NO_NAME
            } else if declared.contains(name.as_str()) {
                "this column is declared too; a file has it once"
            } else if !used.insert(name.as_str()) {
                "a set is already made of this column"
            } else {
                continue;
            };
            faults.push(Fault::at(format!("{at}/{number}"), detail));
        }
    }
    faults
}
