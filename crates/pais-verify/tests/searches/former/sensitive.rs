//! Sensitive columns, and how many records of each class have each of their values.

use pais_core::model::MissingSensitive;
use pais_core::table::ReleasedTable;

use super::classes::{Classes, Values};
use super::profiles::{Profiles, ValueCount};
use super::requirement::{SensitiveRequirement, SensitiveSet};
use super::verification::VerifyError;

/// A sensitive column, with its values that are sensitive and those that mean missing.
pub(super) struct SensitiveColumn<'a> {
    values: Values<'a>,
    /// For each value, whether the confidence in it is measured.
    sensitive: Vec<bool>,
    /// For each value, whether it means that the cell is missing.
    missing: Vec<bool>,
}

impl<'a> SensitiveColumn<'a> {
    pub(super) fn new(
        table: &'a ReleasedTable,
        requirement: &SensitiveRequirement,
    ) -> Result<Self, VerifyError> {
        let values = Values::new(table, &requirement.column)?;
        let missing = values.missing();
        let is_sensitive = |(value, missing): (usize, &bool)| {
            let text = values.text(value as u32);
            !missing && text.is_some_and(|text| lists(&requirement.values, text))
        };
        let sensitive = missing.iter().enumerate().map(is_sensitive).collect();
        Ok(Self {
            values,
            sensitive,
            missing,
        })
    }

    /// All values of the column `name` that are not missing.
    pub(super) fn every_value(table: &'a ReleasedTable, name: &str) -> Result<Self, VerifyError> {
        let requirement = SensitiveRequirement {
            column: name.into(),
            values: SensitiveSet::Every,
        };
        Self::new(table, &requirement)
    }

    /// Whether the confidence in a value is measured.
    pub(super) fn is_sensitive(&self, value: u32) -> bool {
        self.sensitive[value as usize]
    }

    /// The text of a value; `None` for a null.
    pub(super) fn text(&self, value: u32) -> Option<&str> {
        self.values.text(value)
    }

    /// Number of distinct values, missing ones included.
    pub(super) fn value_count(&self) -> usize {
        self.missing.len()
    }

    /// The number of a row's value; `None` if it is missing.
    #[inline]
    pub(super) fn present(&self, row: usize) -> Option<u32> {
        let value = self.values.at(row);
        (!self.missing[value as usize]).then_some(value)
    }

    fn has_missing(&self) -> bool {
        self.missing.contains(&true)
    }
}

/// Sensitive columns whose confidences have the same denominator. Their sensitive values are
/// numbered across the columns.
pub(super) struct SensitiveIndex<'a> {
    /// Each column with, for each of its values, the number among the sensitive values;
    /// `u32::MAX` for a value that is not sensitive.
    columns: Vec<(SensitiveColumn<'a>, Vec<u32>)>,
    /// Column (index in `columns`) and value of each sensitive value.
    values: Vec<(usize, u32)>,
    /// Whether the denominator is the number of records that have a value in the one column, and
    /// not that of all records.
    excludes_missing: bool,
}

impl<'a> SensitiveIndex<'a> {
    /// The columns by denominator. The first index has those whose denominator is the number of
    /// all records, and is there even if it has no column.
    ///
    /// Under [`MissingSensitive::Excluded`] a column with missing cells has an index of its own:
    /// *P(s|qid)* in it is that of Definition 3.1 in the table of the records that have a value
    /// in the column.
    pub(super) fn by_denominator(
        columns: Vec<SensitiveColumn<'a>>,
        reading: MissingSensitive,
    ) -> Vec<Self> {
        let is_of_all = |column: &SensitiveColumn| match reading {
            MissingSensitive::Excluded => !column.has_missing(),
            MissingSensitive::Counted => true,
        };
        let (of_all, apart): (Vec<_>, Vec<_>) = columns.into_iter().partition(is_of_all);
        let apart = apart
            .into_iter()
            .map(|column| Self::new(vec![column], true));
        std::iter::once(Self::new(of_all, false))
            .chain(apart)
            .collect()
    }

    fn new(columns: Vec<SensitiveColumn<'a>>, excludes_missing: bool) -> Self {
        let mut values = Vec::new();
        let mut number_all = |(index, column): (usize, SensitiveColumn<'a>)| {
            let mut numbers = vec![u32::MAX; column.value_count()];
            for (value, number) in numbers.iter_mut().enumerate() {
                if column.sensitive[value] {
                    *number = values.len() as u32;
                    values.push((index, value as u32));
                }
            }
            (column, numbers)
        };
        Self {
            columns: columns
                .into_iter()
                .enumerate()
                .map(&mut number_all)
                .collect(),
            values,
            excludes_missing,
        }
    }

    /// Whether no value of the columns that occurs in the table is sensitive.
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Number of sensitive values that occur in the table.
    pub(super) fn count(&self) -> usize {
        self.values.len()
    }

    /// Column and text of a sensitive value.
    pub(super) fn name(&self, number: u32) -> (&str, &str) {
        let (column, value) = self.values[number as usize];
        let values = &self.columns[column].0.values;
        // Null is never sensitive, so each sensitive value has a text.
        (&values.column.name, values.text(value).unwrap_or_default())
    }

    /// The classes as profiles, with the number of records that have each sensitive value. Only
    /// the records in the denominator count, and classes without any are left out.
    pub(super) fn profiles(&self, classes: &Classes) -> Result<Profiles, VerifyError> {
        let (starts, value_counts) = self.value_counts(classes)?;
        let all = 0..classes.sizes.len() as u32;
        let apart = self.columns.first().filter(|_| self.excludes_missing);
        let Some((column, _)) = apart else {
            let sizes = classes.sizes.clone();
            return Ok(Profiles::new(all.collect(), sizes, starts, value_counts));
        };
        let mut present = vec![0u32; classes.sizes.len()];
        for (row, &class) in classes.of_row.iter().enumerate() {
            present[class as usize] += u32::from(column.present(row).is_some());
        }
        let kept: Vec<u32> = all.filter(|&class| present[class as usize] > 0).collect();
        // The classes left out have no sensitive value, so the counts of the others stay adjacent.
        let ends = starts.last().copied();
        let starts = kept.iter().map(|&class| starts[class as usize]);
        Ok(Profiles::new(
            kept.clone(),
            kept.iter().map(|&class| present[class as usize]).collect(),
            starts.chain(ends).collect(),
            value_counts,
        ))
    }

    /// The number of rows of each class with each sensitive value, as (`starts`, `value_counts`):
    /// `value_counts[starts[i]..starts[i + 1]]` are those of class `i`.
    fn value_counts(&self, classes: &Classes) -> Result<(Vec<u32>, Vec<ValueCount>), VerifyError> {
        let count = classes.sizes.len();
        let sensitive_of = |column: &(SensitiveColumn, Vec<u32>), row: usize| {
            column.1[column.0.values.at(row) as usize]
        };
        let mut ends = vec![0u64; count + 1];
        for column in &self.columns {
            for (row, &class) in classes.of_row.iter().enumerate() {
                ends[class as usize + 1] += u64::from(sensitive_of(column, row) != u32::MAX);
            }
        }
        for class in 0..count {
            ends[class + 1] += ends[class];
        }
        if ends[count] >= u64::from(u32::MAX) {
            return Err(VerifyError::TooManySensitiveCells);
        }
        let mut cells = vec![0u32; ends[count] as usize];
        let mut free = ends.clone();
        for column in &self.columns {
            for (row, &class) in classes.of_row.iter().enumerate() {
                let value = sensitive_of(column, row);
                if value != u32::MAX {
                    cells[free[class as usize] as usize] = value;
                    free[class as usize] += 1;
                }
            }
        }
        let mut starts = Vec::with_capacity(count + 1);
        starts.push(0);
        let mut value_counts: Vec<ValueCount> = Vec::new();
        let mut index = vec![u32::MAX; self.count()];
        for class in 0..count {
            let first = value_counts.len();
            for &value in &cells[ends[class] as usize..ends[class + 1] as usize] {
                let at = &mut index[value as usize];
                if *at == u32::MAX {
                    *at = value_counts.len() as u32;
                    value_counts.push(ValueCount { value, records: 0 });
                }
                value_counts[*at as usize].records += 1;
            }
            for entry in &value_counts[first..] {
                index[entry.value as usize] = u32::MAX;
            }
            starts.push(value_counts.len() as u32);
        }
        Ok((starts, value_counts))
    }
}

/// The greatest share of one value among the rows of a group that have a value in its column,
/// over all groups that it is shown.
pub(super) struct ConfidenceMeter<'a> {
    columns: Vec<SensitiveColumn<'a>>,
    /// For each column, the number of rows with each value; 0 between calls.
    counts: Vec<Vec<u32>>,
    greatest: f64,
}

impl<'a> ConfidenceMeter<'a> {
    /// Measures all values of the columns `names`.
    pub(super) fn new(table: &'a ReleasedTable, names: &[Box<str>]) -> Result<Self, VerifyError> {
        let columns = names
            .iter()
            .map(|name| SensitiveColumn::every_value(table, name))
            .collect::<Result<Vec<_>, _>>()?;
        let counts = columns.iter().map(|column| vec![0; column.value_count()]);
        Ok(Self {
            counts: counts.collect(),
            columns,
            greatest: 0.0,
        })
    }

    /// The greatest share so far, from 0 to 1; 0 if no row had a value.
    pub(super) fn greatest(&self) -> f64 {
        self.greatest
    }

    /// Measures the group of these rows.
    pub(super) fn measure(&mut self, rows: &[u32]) {
        for (column, counts) in self.columns.iter().zip(&mut self.counts) {
            // Nothing is greater than 1.
            if self.greatest >= 1.0 {
                return;
            }
            let (mut most, mut present) = (0u32, 0u32);
            for &row in rows {
                if let Some(value) = column.present(row as usize) {
                    let count = &mut counts[value as usize];
                    *count += 1;
                    most = most.max(*count);
                    present += 1;
                }
            }
            if present > 0 {
                let share = f64::from(most) / f64::from(present);
                self.greatest = self.greatest.max(share);
            }
            for &row in rows {
                if let Some(value) = column.present(row as usize) {
                    counts[value as usize] = 0;
                }
            }
        }
    }
}

/// Whether a set has a value.
fn lists(set: &SensitiveSet, value: &str) -> bool {
    match set {
        SensitiveSet::Every => true,
        SensitiveSet::Listed(values) => values.iter().any(|listed| &**listed == value),
    }
}
