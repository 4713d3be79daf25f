//! Sensitive columns, and how many records of each class have each of their values.

use std::borrow::Cow;

use pais_core::model::MissingSensitive;
use pais_core::table::ReleasedTable;
use pais_core::taxonomy::interval::number;

use super::classes::{Classes, Values};
use super::lists::Lists;
use super::profiles::{Profiles, ValueCount, add_up};
use super::requirement::{LkcRequirement, SensitiveRequirement};
use super::verification::{ColumnValue, VerifyError};

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
        let values = Values::visible(table, &requirement.column)?;
        let missing = values.missing();
        let is_sensitive = |(value, missing): (usize, &bool)| {
            let text = values.text(value as u32);
            !missing && text.is_some_and(|text| requirement.values.lists(text))
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
        Self::new(table, &SensitiveRequirement::every(name))
    }

    /// The columns that a requirement names.
    ///
    /// # Errors
    /// [`VerifyError`] for a column that is missing, repeated or malformed.
    pub(super) fn named(
        table: &'a ReleasedTable,
        requirement: &LkcRequirement,
    ) -> Result<Vec<Self>, VerifyError> {
        let named = requirement.sensitive.iter();
        named.map(|named| Self::new(table, named)).collect()
    }

    /// All values of the declared columns that a requirement does not name.
    ///
    /// # Errors
    /// As [`Self::named`].
    pub(super) fn unnamed(
        table: &'a ReleasedTable,
        declared: &[Box<str>],
        requirement: &LkcRequirement,
    ) -> Result<Vec<Self>, VerifyError> {
        let is_named = |name: &str| {
            let mut named = requirement.sensitive.iter();
            named.any(|named| *named.column == *name)
        };
        let others = declared.iter().filter(|name| !is_named(name));
        others.map(|name| Self::every_value(table, name)).collect()
    }

    /// Whether the confidence in a value is measured.
    pub(super) fn is_sensitive(&self, value: u32) -> bool {
        self.sensitive[value as usize]
    }

    /// A value with the column's name.
    pub(super) fn name(&self, value: u32) -> ColumnValue {
        self.values.name(value)
    }

    /// The column's name.
    pub(super) fn column_name(&self) -> &str {
        &self.values.column.name
    }

    /// The numeric value of each value; `None` for text that is not a number.
    pub(super) fn numbers(&self) -> Vec<Option<f64>> {
        let values = 0..self.value_count() as u32;
        values
            .map(|value| number(self.values.text(value)?))
            .collect()
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.values.column.column.codes.len()
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

    /// Number of sensitive values that occur in the table.
    pub(super) fn count(&self) -> usize {
        self.values.len()
    }

    /// A sensitive value with its column's name.
    pub(super) fn name(&self, number: u32) -> ColumnValue {
        let (column, value) = self.values[number as usize];
        self.columns[column].0.name(value)
    }

    /// The classes as profiles, with the number of records that have each sensitive value. Only
    /// the records in the denominator count, and classes without any are left out.
    pub(super) fn profiles(&self, classes: &Classes) -> Result<Profiles, VerifyError> {
        let ClassCounts {
            records, values, ..
        } = self.class_counts(classes, classes.numbers())?;
        let kept: Vec<u32> = (0..records.len() as u32)
            .filter(|&class| records[class as usize] > 0)
            .collect();
        let records = kept.iter().map(|&class| records[class as usize]);
        let records = records.collect();
        Ok(Profiles::new(kept, records, values))
    }

    /// How many records of each class are in the denominator, and have each sensitive value. The classes are
    /// numbered in this order.
    pub(super) fn class_counts(
        &self,
        classes: &Classes,
        order: impl Iterator<Item = u32> + Clone,
    ) -> Result<ClassCounts, VerifyError> {
        let count = classes.sizes.len();
        let multiplicity = |row: usize| classes.multiplicities.map_or(1, |rows| rows[row]);
        let records = match self.columns.first() {
            Some((column, _)) if self.excludes_missing => {
                let mut present = vec![0u32; count];
                for (row, &class) in classes.of_row.iter().enumerate() {
                    if column.present(row).is_some() {
                        present[class as usize] += multiplicity(row);
                    }
                }
                Cow::Owned(present)
            }
            _ => Cow::Borrowed(&classes.sizes),
        };
        let records = order.clone().map(|class| records[class as usize]);
        let records: Vec<u32> = records.collect();
        let value_count = self.count();
        if let Some(values) = self.counted_in_place(classes, order.clone()) {
            return Ok(ClassCounts {
                value_count,
                records,
                values,
            });
        }
        // The classes and sensitive values of all cells with one, each with its row.
        let cells = self.columns.iter().flat_map(|(column, numbers)| {
            let rows = classes.of_row.iter().enumerate();
            rows.filter_map(|(row, &class)| {
                let number = numbers[column.values.at(row) as usize];
                (number != u32::MAX).then_some((class, number, row))
            })
        });
        let most = self.columns.len() * classes.of_row.len();
        if most >= u32::MAX as usize && cells.clone().count() >= u32::MAX as usize {
            return Err(VerifyError::TooManySensitiveCells);
        }
        let values = if classes.multiplicities.is_some() {
            let cells = cells.map(|(class, value, row)| {
                let records = multiplicity(row);
                (class, ValueCount { value, records })
            });
            self.added_up(&Lists::new(cells, count), order, |count| count)
        } else {
            let cells = cells.map(|(class, value, _)| (class, value));
            self.added_up(&Lists::new(cells, count), order, |value| ValueCount {
                value,
                records: 1,
            })
        };
        Ok(ClassCounts {
            value_count,
            records,
            values,
        })
    }

    /// The values of each class in one pass over the rows of each column, with a counter for each value of
    /// each class; `None` where there would be too many counters.
    fn counted_in_place(
        &self,
        classes: &Classes,
        order: impl Iterator<Item = u32>,
    ) -> Option<Lists<ValueCount>> {
        /// Counters per row that take about as much memory as the cells by class.
        const MOST_COUNTERS: usize = 2;
        /// Always few enough. Lower in tests, so that small tables are counted in both ways.
        const FEW_COUNTERS: usize = if cfg!(test) { 16 } else { 1 << 16 };
        let (rows, count) = (classes.of_row.len(), self.count());
        // The last counter of a class is for all other cells.
        let width = count + 1;
        let counters = classes.sizes.len().checked_mul(width)?;
        let most = rows.saturating_mul(MOST_COUNTERS).max(FEW_COUNTERS);
        if counters > most.min(u32::MAX as usize) {
            return None;
        }
        let mut records = vec![0u32; counters];
        for (SensitiveColumn { values, .. }, numbers) in &self.columns {
            let column = &values.column.column;
            let null = column.dictionary.len() as u32;
            let place = |code: u32| {
                let number = numbers.get(values.number(code) as usize);
                number.map_or(count, |&number| (number as usize).min(count))
            };
            let places: Vec<usize> = (0..=null).map(place).collect();
            let cells = column.codes.iter().zip(&classes.of_row);
            for (row, (&code, &class)) in cells.enumerate() {
                let place = places[code.min(null) as usize];
                let records = &mut records[class as usize * width + place];
                let multiplicity = classes.multiplicities.map_or(1, |rows| rows[row]);
                // That of all other cells counts each column, and is not read.
                *records = records.wrapping_add(multiplicity);
            }
        }
        let of_classes = records.chunks_exact(width);
        let entries = of_classes.map(|of_class| of_class[..count].iter().filter(|&&it| it > 0));
        let entries = entries.map(Iterator::count).sum();
        let mut values = Lists::with_capacity(classes.sizes.len(), entries);
        for class in order {
            let counts = (0..).zip(&records[class as usize * width..][..count]);
            let counts = counts.map(|(value, &records)| ValueCount { value, records });
            values.push(counts.filter(|count| count.records > 0));
        }
        Some(values)
    }

    /// The cells of each class as one count for each value; values ascend.
    fn added_up<T: Copy>(
        &self,
        by_class: &Lists<T>,
        order: impl Iterator<Item = u32>,
        count: impl Fn(T) -> ValueCount,
    ) -> Lists<ValueCount> {
        let mut index = vec![u32::MAX; self.count()];
        let mut values = Lists::with_capacity(by_class.count(), by_class.entries());
        for class in order {
            let cells = by_class.of(class).iter().map(|&cell| count(cell));
            values.push_by(|counts| {
                let first = counts.len();
                add_up(cells, &mut index, counts);
                counts[first..].sort_unstable_by_key(|count| count.value);
            });
        }
        values.shrink();
        values
    }
}

/// How many records of each class are in a denominator, and have each sensitive value.
pub(super) struct ClassCounts {
    /// Number of sensitive values.
    pub(super) value_count: usize,
    /// By class, the records in the denominator.
    pub(super) records: Vec<u32>,
    /// By class, the values that some of its records have.
    pub(super) values: Lists<ValueCount>,
}

impl ClassCounts {
    /// The counts of merged classes; `None` if they have more than half of the entries. `index` is that of
    /// [`add_up`].
    pub(super) fn merged<'m>(
        &self,
        merged: impl Iterator<Item = &'m [u32]> + Clone,
        index: &mut [u32],
    ) -> Option<Self> {
        let members = merged.clone().flatten();
        let entries: usize = members.map(|&class| self.values.of(class).len()).sum();
        // A list is never longer than there are values.
        let most = entries / 2 + self.value_count;
        let mut values = Lists::with_capacity(merged.clone().count(), most);
        for members in merged.clone() {
            let counts = members.iter().flat_map(|&class| self.values.of(class));
            values.push_by(|into| add_up(counts.copied(), index, into));
            if 2 * values.entries() > entries {
                return None;
            }
        }
        let records = merged.map(|members| {
            let records = members.iter().map(|&class| self.records[class as usize]);
            records.sum()
        });
        Some(Self {
            value_count: self.value_count,
            records: records.collect(),
            values,
        })
    }
}

/// Measures the confidences in the values of a sensitive column.
pub(super) struct ConfidenceMeter<'a> {
    pub(super) column: SensitiveColumn<'a>,
    /// Whether *C* bounds the confidence in its values.
    pub(super) is_bounded: bool,
    reading: MissingSensitive,
    /// By value, the number of rows; 0 between calls.
    counts: Vec<u32>,
}

/// The most frequent sensitive value of a group.
pub(super) struct MostFrequent {
    pub(super) value: u32,
    /// Rows with the value.
    pub(super) rows: u32,
    /// The denominator of the confidence in it, in rows.
    pub(super) of: u32,
}

impl<'a> ConfidenceMeter<'a> {
    /// Meters of the columns that a requirement names, then of the other declared ones.
    ///
    /// # Errors
    /// As [`SensitiveColumn::named`].
    pub(super) fn all(
        table: &'a ReleasedTable,
        declared: &[Box<str>],
        requirement: &LkcRequirement,
    ) -> Result<Vec<Self>, VerifyError> {
        let meter = |column: SensitiveColumn<'a>, is_bounded| Self {
            counts: vec![0; column.value_count()],
            column,
            is_bounded,
            reading: requirement.missing_sensitive,
        };
        let is_bounded = !requirement.c.is_unbounded();
        let named = SensitiveColumn::named(table, requirement)?.into_iter();
        let others = SensitiveColumn::unnamed(table, declared, requirement)?.into_iter();
        let named = named.map(|column| meter(column, is_bounded));
        Ok(named
            .chain(others.map(|column| meter(column, false)))
            .collect())
    }

    /// The most frequent sensitive value of these rows; `None` if no row has any.
    pub(super) fn most_frequent(&mut self, rows: &[u32]) -> Option<MostFrequent> {
        let mut present = 0;
        let mut most: Option<(u32, u32)> = None;
        for &row in rows {
            let Some(value) = self.column.present(row as usize) else {
                continue;
            };
            present += 1;
            if !self.column.is_sensitive(value) {
                continue;
            }
            let count = &mut self.counts[value as usize];
            *count += 1;
            if most.is_none_or(|(_, rows)| *count > rows) {
                most = Some((value, *count));
            }
        }
        for &row in rows {
            if let Some(value) = self.column.present(row as usize) {
                self.counts[value as usize] = 0;
            }
        }
        let of = match self.reading {
            MissingSensitive::Excluded => present,
            MissingSensitive::Counted => rows.len() as u32,
        };
        most.map(|(value, rows)| MostFrequent { value, rows, of })
    }
}
