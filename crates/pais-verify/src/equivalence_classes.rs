//! The equivalence classes of a table, for all measures that count rows with equal values.

use std::borrow::Cow;

use pais_core::cancellation::Cancellation;
use pais_core::table::{Column, ReleasedTable};

use crate::classes::{Classes, Values};
use crate::persons::{CountedTable, alone_by, persons_of};
use crate::verification::VerifyError;

/// The rows of a table by their equal values of some columns.
pub struct EquivalenceClasses<'t> {
    pub(super) columns: Vec<Values<'t>>,
    pub(super) classes: Cow<'t, Classes<'static>>,
}

impl<'t> EquivalenceClasses<'t> {
    /// By the values of the columns `names`; without columns, one class of all rows. `found` are the
    /// classes that a verification of the table has found by the same columns.
    ///
    /// # Errors
    /// [`VerifyError`] for a table that lacks a column or is malformed, and [`VerifyError::Stopped`].
    pub fn new(
        table: &'t ReleasedTable,
        names: &[impl AsRef<str> + Sync],
        found: Option<&'t Classes<'static>>,
        cancellation: &Cancellation,
    ) -> Result<Self, VerifyError> {
        if let Some(classes) = found.filter(|classes| classes.of_row.len() == table.rows) {
            return Ok(Self {
                columns: Values::of_classes(table, names, classes)?,
                classes: Cow::Borrowed(classes),
            });
        }
        let columns = Values::new_all(table, names)?;
        let classes = Classes::new(table.rows, &columns, cancellation)?;
        Ok(Self {
            columns,
            classes: Cow::Owned(classes),
        })
    }

    /// Number of rows of each class, in the order of their first rows.
    pub fn sizes(&self) -> &[u32] {
        &self.classes.sizes
    }

    /// Share of the rows that equal no other row when further columns are compared too, or of the persons with a row
    /// that equals nobody else's; 0 without rows. Costs one pass over the rows, and one for each column.
    ///
    /// # Errors
    /// As [`Self::new`], and [`VerifyError::UnevenSubjects`].
    pub fn share_alone_by<'c>(
        &self,
        table: impl Into<CountedTable<'c>>,
        names: &[impl AsRef<str> + Sync],
        cancellation: &Cancellation,
    ) -> Result<f64, VerifyError> {
        let counted = table.into();
        let columns = Values::new_all(counted.table, names)?;
        let (alone, all) = match persons_of(counted)? {
            None => {
                let alone = self.classes.alone_by(&columns, cancellation)?;
                (alone, counted.table.rows)
            }
            Some(persons) => {
                let alone = alone_by(&persons, &self.classes, &columns, cancellation)?;
                (alone, persons.codes())
            }
        };
        Ok(alone as f64 / all.max(1) as f64)
    }

    /// How many rows have each code of a column that the classes are formed by; null is not counted. A
    /// dictionary must not have a text twice. The cost depends on the number of classes, not of rows.
    pub fn code_counts(&self, column: &Column) -> Vec<u64> {
        let mut counts = vec![0; column.dictionary.len()];
        for (&row, &size) in self.classes.row.iter().zip(&self.classes.sizes) {
            if let Some(count) = counts.get_mut(column.codes[row as usize] as usize) {
                *count += u64::from(size);
            }
        }
        counts
    }
}
