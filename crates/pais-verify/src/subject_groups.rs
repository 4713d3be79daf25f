//! The equivalence classes of a table, with their persons, for the measures of risk.

use std::borrow::Cow;

use rayon::prelude::*;

use pais_core::cancellation::Cancellation;
use pais_core::table::ReleasedTable;

use super::classes::{Classes, Values};
use super::persons::{CountedTable, class_sizes, persons_of};
use super::sensitive::SensitiveColumn;
use super::verification::VerifyError;

/// The persons of the equivalence classes of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct SubjectGroups {
    /// Number of distinct persons of the table.
    pub subjects: u64,
    /// Number of distinct persons of each class, in no particular order. A person with rows in
    /// several classes is in each.
    pub sizes: Vec<u32>,
    /// For each class, in the same order, the greatest confidence per person: of the persons of the
    /// class with a value in a sensitive column in any of their rows of the class, the share that
    /// has one and the same value in any of these rows. From 0 to 1; 0 if no row has a value.
    pub confidences: Vec<f64>,
}

impl SubjectGroups {
    /// The greatest confidence per person of any class; 0 without classes.
    pub fn greatest_confidence(&self) -> f64 {
        self.confidences.iter().copied().fold(0.0, f64::max)
    }
}

/// The sizes of the groups of records that are equal on `quasi_identifiers`, in records, or in
/// persons where the table has subjects, and in no particular order. Without quasi-identifiers
/// there is one group of all records; an empty table has no group.
///
/// # Errors
/// [`VerifyError`] for a table that lacks a column or is malformed, and [`VerifyError::Stopped`].
pub fn group_sizes<'t>(
    table: impl Into<CountedTable<'t>>,
    quasi_identifiers: &[impl AsRef<str> + Sync],
    cancellation: &Cancellation,
) -> Result<Vec<u32>, VerifyError> {
    let counted = table.into();
    let columns = Values::new_all(counted.table, quasi_identifiers)?;
    let classes = Classes::new(counted.table.rows, &columns, cancellation)?;
    Ok(class_sizes(&classes, persons_of(counted)?.as_ref()))
}

/// The persons of the groups of records that are equal on `quasi_identifiers`, and how well the values of the
/// columns `sensitive` can be inferred about a person who is known to be in a group. Where the table has no
/// subjects, each row is a person.
///
/// A share of rows can hide what a share of persons shows. Of ten rows, let nine be of one person
/// without a value, and one of another person who has it: the value is in a tenth of the rows, but
/// half of the persons have it.
///
/// # Errors
/// [`VerifyError`] for a table that lacks a column or is malformed, and [`VerifyError::Stopped`].
pub fn subject_groups<'t>(
    table: impl Into<CountedTable<'t>>,
    quasi_identifiers: &[impl AsRef<str> + Sync],
    sensitive: &[Box<str>],
    cancellation: &Cancellation,
) -> Result<SubjectGroups, VerifyError> {
    let counted = table.into();
    let table = counted.table;
    let columns = Values::new_all(table, quasi_identifiers)?;
    let classes = Classes::new(table.rows, &columns, cancellation)?;
    let persons = persons_of(counted)?;
    let sizes = class_sizes(&classes, persons.as_ref());
    let (subjects, of_row) = match &persons {
        Some(persons) => (persons.len(), Cow::Borrowed(persons.of_row())),
        None => (table.rows as u64, (0..table.rows as u32).collect()),
    };
    let mut confidences = vec![0.0; sizes.len()];
    for name in sensitive {
        cancellation.check()?;
        raise_confidences(table, name, &classes, &of_row, &mut confidences)?;
    }
    Ok(SubjectGroups {
        subjects,
        sizes,
        confidences,
    })
}

/// Raises each class's confidence to that in the values of one column.
fn raise_confidences(
    table: &ReleasedTable,
    name: &str,
    classes: &Classes,
    persons: &[u32],
    confidences: &mut [f64],
) -> Result<(), VerifyError> {
    let column = SensitiveColumn::every_value(table, name)?;
    let cells = classes.of_row.par_iter().zip(persons).enumerate();
    // By class, value and person; a person with several rows of a value has it once.
    let mut holders: Vec<(u32, u32, u32)> = cells
        .filter_map(|(row, (&class, &person))| Some((class, column.present(row)?, person)))
        .collect();
    holders.par_sort_unstable();
    holders.dedup();
    let of_class = holders.chunk_by(|one, other| one.0 == other.0);
    let mut present = Vec::new();
    for holders in of_class {
        present.clear();
        present.extend(holders.iter().map(|(_, _, person)| *person));
        present.sort_unstable();
        present.dedup();
        let runs = holders.chunk_by(|one, other| one.1 == other.1);
        let most = runs.map(<[_]>::len).max().unwrap_or(0);
        let confidence = &mut confidences[holders[0].0 as usize];
        *confidence = confidence.max(most as f64 / present.len() as f64);
    }
    Ok(())
}
