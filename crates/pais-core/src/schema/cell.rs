//! Whether a cell is valid for its column.

use super::SchemaColumn;
use super::value::items;
use crate::calendar::NotADate;
use crate::definition::{ColumnKind, ColumnRole};
use crate::rejection::{Fault, Place};
use crate::table::Column;
use crate::taxonomy::Interval;
use crate::taxonomy::interval::number;

/// The fault of a row without a subject, without its place, which is not known here.
pub fn no_subject() -> Fault {
    fault("the subject of the row is missing")
        .fix("give each row the person it is about, or leave the row out")
}

/// The fault of a cell that is not a number in a numeric column.
pub fn no_number() -> Fault {
    fault("the cell is not a number, and the column is numeric")
}

fn fault(detail: impl Into<String>) -> Fault {
    Fault::new(Place::Whole, detail)
}

impl SchemaColumn {
    /// Checks that a cell in canonical form is valid for the column. The fault does not say where
    /// the cell is.
    ///
    /// # Errors
    /// If it is not a leaf of the taxonomy, not a number or a date, or outside the domain.
    pub fn check(&self, cell: &str) -> Result<(), Fault> {
        let is_missing = self.is_missing(cell);
        // All rows without one would be rows of one person.
        if self.role == ColumnRole::Subject && (is_missing || cell.trim().is_empty()) {
            return Err(no_subject());
        }
        if is_missing {
            return Ok(());
        }
        match self.kind {
            ColumnKind::Numeric => check_number(self, cell),
            // An empty label names no node of a hierarchy that is made from the values.
            ColumnKind::Categorical if cell.is_empty() && self.made.is_some() => Err(fault(
                "the cell is empty, and the column's hierarchy is made from its values",
            )
            .fix("add the empty word to the column's `missing` words, or write one of them")),
            ColumnKind::Categorical => check_label(self, cell),
            ColumnKind::Date | ColumnKind::Datetime => check_date(self, cell),
            ColumnKind::Set => {
                items(cell, self.separator).try_for_each(|item| check_item(self, item))
            }
        }
    }
}

fn check_number(spec: &SchemaColumn, cell: &str) -> Result<(), Fault> {
    let Some(value) = number(cell) else {
        return Err(no_number());
    };
    if let Some((lo, hi)) = spec.domain
        && !(lo..=hi).contains(&value)
    {
        let detail = format!("the number is outside the column's domain [{lo},{hi}]");
        return Err(fault(detail));
    }
    if let Some(round) = &spec.round
        && (round.below(value).is_none() || round.above(value).is_none())
    {
        let detail = "the number is too large to be rounded to multiples of the column's `round`";
        let fix = "correct the number, or declare a greater `round`";
        return Err(fault(detail).fix(fix));
    }
    if spec.ranges.is_some() && spec.leaf(cell).is_none() {
        let detail = "the number is not in any range of the column's taxonomy".to_owned();
        return Err(fault(detail));
    }
    Ok(())
}

fn check_date(spec: &SchemaColumn, cell: &str) -> Result<(), Fault> {
    if let Some(reason) = spec.why_no_date(cell) {
        let kind = spec.kind.as_str();
        let (detail, fix) = match (reason, &spec.format) {
            _ if cell.is_empty() => (
                format!("the cell is empty, and the column is of the kind {kind}"),
                "write the missing value as one of the column's `missing` words",
            ),
            (NotADate::Calendar, _) => (
                "the cell is written as a date that is not in the calendar".to_owned(),
                "correct the date; years are 0001 to 9999. If another part of it is the month, \
                 declare the column's `format`",
            ),
            (NotADate::Form, Some(_)) => (
                "the cell is not a date in the column's `format`".to_owned(),
                "change `format` to how the cells are written, or write ISO 8601",
            ),
            (NotADate::Form, None) => (
                format!("the cell is not a {kind} of ISO 8601"),
                match spec.kind {
                    ColumnKind::Date => {
                        "write 1987-09-03, or declare the column's `format`, such as %d.%m.%Y"
                    }
                    _ => {
                        "write 1987-09-03T10:15:00, or declare the column's `format`, such as \
                         %d.%m.%Y %H:%M"
                    }
                },
            ),
        };
        return Err(fault(detail).fix(fix));
    }
    if let Some(domain) = spec.domain {
        let domain = Interval::closed(domain.0, domain.1).on(spec.scale());
        let value = spec.scale().value(cell);
        if !value.is_some_and(|value| domain.contains(value)) {
            let detail = format!("the date is outside the column's domain {domain}");
            return Err(fault(detail));
        }
    }
    match spec.tree {
        Some(_) => check_label(spec, cell),
        None => Ok(()),
    }
}

fn check_item(spec: &SchemaColumn, item: &str) -> Result<(), Fault> {
    if item.is_empty() && spec.role == ColumnRole::QuasiIdentifier {
        let fix = "write exactly one separator between two items, and none at the ends";
        return Err(fault("an item of the set is empty").fix(fix));
    }
    check_label(spec, item)
}

fn check_label(spec: &SchemaColumn, cell: &str) -> Result<(), Fault> {
    if let Some(tree) = &spec.tree {
        if tree.leaf_number(cell).is_some() {
            return Ok(());
        }
        let detail = match tree.find(cell) {
            Some(_) => "the cell is an inner label of the column's taxonomy, not a leaf",
            None => "the cell is not a leaf of the column's taxonomy",
        };
        let found = fault(detail);
        return Err(if cell.is_empty() {
            found.fix("write the missing value as one of the column's `missing` words")
        } else {
            found
        });
    }
    if cell == "*" && spec.role == ColumnRole::QuasiIdentifier {
        let detail = "`*` is reserved for the root label of a column without a taxonomy";
        let fix = "declare a taxonomy for the column, or write another value";
        return Err(fault(detail).fix(fix));
    }
    Ok(())
}

/// Why the stored cells of a column do not fit it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfitCells {
    /// Distinct values that do not fit.
    pub values: usize,
    /// What is wrong with the first one, without its value.
    pub detail: String,
}

/// Checks each distinct value of a stored column that is in some row. `None` where all fit.
///
/// ```
/// use pais_core::definition::{DatasetDefinition, json};
/// use pais_io::read::csv;
/// use pais_core::schema::unfit_cells;
/// use pais_core::schema::Schema;
///
/// let schema = |domain: &str| -> Result<Schema, Box<dyn std::error::Error>> {
///     let text = format!(
///         r#"{{"name": "a", "columns": [{{"name": "age", "role": "insensitive",
///              "kind": "numeric", "domain": {domain}}}]}}"#
///     );
///     let dataset: DatasetDefinition = json::parse(text.as_bytes())?;
///     Ok(Schema::inline(&dataset)?)
/// };
/// let table = csv::read_table(&schema("[0,99]")?, "age\n41\n42\n70\n".as_bytes())?;
/// let age = &table.columns[0];
/// assert_eq!(unfit_cells(&schema("[40,80]")?.columns[0], age), None);
/// let unfit = unfit_cells(&schema("[0,41]")?.columns[0], age).unwrap();
/// assert_eq!(unfit.values, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn unfit_cells(spec: &SchemaColumn, column: &Column) -> Option<UnfitCells> {
    let mut found: Option<UnfitCells> = None;
    // Null is missing in every column.
    let texts = column.dictionary.iter().zip(column.row_counts());
    for (text, _) in texts.filter(|(_, rows)| *rows > 0) {
        let Err(fault) = spec.check(&spec.canonical(text)) else {
            continue;
        };
        match &mut found {
            Some(found) => found.values += 1,
            None => {
                let detail = fault.detail;
                found = Some(UnfitCells { values: 1, detail });
            }
        }
    }
    found
}
