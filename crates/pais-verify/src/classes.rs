//! Equivalence classes: the distinct generalized records, each with its number of rows.
//!
//! The verifier works on classes, so it reads the rows only once. Class ids are refined column
//! by column, with a dense table of (class, value) while that is small compared with the rows,
//! and with a hash table beyond. The time is linear in rows times columns; the memory is 8 bytes
//! for each row.

use std::borrow::Cow;

use hashbrown::HashMap;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use pais_core::cancellation::Cancellation;
use pais_core::look_alike::visible_text;
use pais_core::table::{Column, NULL_CODE, ReleasedColumn, ReleasedTable};

use super::lists::Lists;
use super::sets::key;
use super::verification::{ColumnValue, VerifyError, stop_if_asked};

/// The first column with a name.
pub(super) fn find_column<'t>(table: &'t ReleasedTable, name: &str) -> Option<&'t ReleasedColumn> {
    let mut columns = table.columns.iter();
    columns.find(|column| *column.name == *name)
}

/// A column whose values are numbered 0, 1, … without gaps. Equal texts, and equal sets, have the
/// same number.
pub(super) struct Values<'a> {
    pub(super) column: &'a ReleasedColumn,
    /// The number of each code; the last entry is for null.
    number: Vec<u32>,
    /// A code of each number; [`NULL_CODE`] for null.
    codes: Vec<u32>,
}

impl<'a> Values<'a> {
    /// Numbers the values that occur in the column `name`.
    ///
    /// # Errors
    /// [`VerifyError`] for a column that is missing, repeated or malformed.
    pub(super) fn new(table: &'a ReleasedTable, name: &str) -> Result<Self, VerifyError> {
        Self::numbered(table, name, key)
    }

    /// Numbers the values that occur in the column `name`. Texts that look alike
    /// ([`visible_text`]) have the same number: two of them are no two values of a person.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(super) fn visible(table: &'a ReleasedTable, name: &str) -> Result<Self, VerifyError> {
        Self::numbered(table, name, |column, text| match key(column, text) {
            Cow::Borrowed(text) => visible_text(text),
            Cow::Owned(text) => Cow::Owned(visible_text(&text).into_owned()),
        })
    }

    fn numbered(
        table: &'a ReleasedTable,
        name: &str,
        key: impl Fn(&ReleasedColumn, &'a str) -> Cow<'a, str>,
    ) -> Result<Self, VerifyError> {
        let mut named = table.columns.iter().filter(|column| &*column.name == name);
        let column = named.next().ok_or_else(|| VerifyError::NoSuchColumn {
            column: name.into(),
        })?;
        if named.next().is_some() {
            return Err(VerifyError::RepeatedColumn {
                column: name.into(),
            });
        }
        let Column { dictionary, codes } = &column.column;
        if codes.len() != table.rows {
            return Err(VerifyError::UnevenColumn {
                column: name.into(),
                found: codes.len(),
                rows: table.rows,
            });
        }
        let null = dictionary.len();
        let mut occurs = vec![false; null + 1];
        for &code in codes {
            let slot = if code == NULL_CODE {
                null
            } else {
                code as usize
            };
            *occurs
                .get_mut(slot)
                .filter(|_| slot != null || code == NULL_CODE)
                .ok_or_else(|| VerifyError::UnknownCode {
                    column: name.into(),
                })? = true;
        }
        // A dictionary should contain a text once, but the verifier does not rely on it.
        let mut by_text: HashMap<Cow<str>, u32> = HashMap::new();
        let mut number = vec![u32::MAX; null + 1];
        let mut values = Vec::new();
        for slot in (0..=null).filter(|&slot| occurs[slot]) {
            let fresh = values.len() as u32;
            let id = match dictionary.get(slot) {
                Some(text) => *by_text.entry(key(column, text)).or_insert(fresh),
                None => fresh,
            };
            if id == fresh {
                values.push(if slot == null { NULL_CODE } else { slot as u32 });
            }
            number[slot] = id;
        }
        Ok(Self {
            column,
            number,
            codes: values,
        })
    }

    /// As [`Self::new`], for several columns in parallel. Returns the first error in the order of
    /// `names`.
    pub(super) fn new_all(
        table: &'a ReleasedTable,
        names: &[impl AsRef<str> + Sync],
    ) -> Result<Vec<Self>, VerifyError> {
        let columns = names.par_iter().map(|name| Self::new(table, name.as_ref()));
        let columns: Vec<_> = columns.collect();
        columns.into_iter().collect()
    }

    /// Number of distinct values.
    pub(super) fn count(&self) -> usize {
        self.codes.len()
    }

    /// The number of a row's value.
    #[inline]
    pub(super) fn at(&self, row: usize) -> u32 {
        self.number(self.column.column.codes[row])
    }

    /// The number of a code's value.
    #[inline]
    pub(super) fn number(&self, code: u32) -> u32 {
        self.number[(code as usize).min(self.number.len() - 1)]
    }

    /// For each value by its number, whether it means that the cell is missing, or looks so.
    pub(super) fn missing(&self) -> Vec<bool> {
        let words = self.column.missing.iter();
        let words: Vec<Cow<'_, str>> = words.map(|word| visible_text(word)).collect();
        let is_missing = |text: &str| words.contains(&visible_text(text));
        (0..self.count() as u32)
            .map(|value| self.text(value).is_none_or(is_missing))
            .collect()
    }

    /// A value by its number, with the column's name.
    pub(super) fn name(&self, number: u32) -> ColumnValue {
        ColumnValue {
            column: self.column.name.to_string(),
            value: self.text(number).map(str::to_owned),
        }
    }

    /// The text of a value by its number; `None` for null.
    pub(super) fn text(&self, number: u32) -> Option<&str> {
        let code = self.codes[number as usize] as usize;
        self.column.column.dictionary.get(code).map(AsRef::as_ref)
    }
}

/// The distinct records over some columns, in the order of their first rows.
pub(super) struct Classes {
    /// Class of each row.
    pub(super) of_row: Vec<u32>,
    /// Number of rows of each class.
    pub(super) sizes: Vec<u32>,
    /// The first row of each class.
    pub(super) row: Vec<u32>,
}

impl Classes {
    /// The classes of rows that are equal on `columns`; without columns, one class of all rows.
    ///
    /// # Errors
    /// [`VerifyError::TooManyRows`] and [`VerifyError::Stopped`].
    pub(super) fn new(
        rows: usize,
        columns: &[Values],
        cancellation: &Cancellation,
    ) -> Result<Self, VerifyError> {
        if rows >= u32::MAX as usize {
            return Err(VerifyError::TooManyRows);
        }
        let mut of_row = vec![0u32; rows];
        let mut classes = rows.min(1);
        // Columns with few values first, so that the dense tables stay small for longer.
        let mut order: Vec<&Values> = columns.iter().filter(|values| values.count() > 1).collect();
        order.sort_by_key(|values| values.count());
        for values in order {
            stop_if_asked(cancellation)?;
            let codes = &values.column.column.codes;
            let numbers = codes.iter().map(|&code| values.number(code));
            classes = refine(&mut of_row, classes, numbers, values.count());
        }
        let mut sizes = vec![0u32; classes];
        let mut row = vec![0u32; classes];
        for (index, &class) in of_row.iter().enumerate() {
            let size = &mut sizes[class as usize];
            if *size == 0 {
                row[class as usize] = index as u32;
            }
            *size += 1;
        }
        Ok(Self { of_row, sizes, row })
    }

    /// The same classes, numbered in this order.
    pub(super) fn in_order(&self, order: &[u32]) -> Self {
        let mut number = vec![0; order.len()];
        for (fresh, &class) in (0..).zip(order) {
            number[class as usize] = fresh;
        }
        let numbers = self.of_row.iter().map(|&class| number[class as usize]);
        let select = |of: &[u32]| order.iter().map(|&class| of[class as usize]).collect();
        Self {
            of_row: numbers.collect(),
            sizes: select(&self.sizes),
            row: select(&self.row),
        }
    }

    /// The rows of each class.
    pub(super) fn rows(&self) -> Lists<u32> {
        Lists::of_positions(&self.of_row, self.sizes.len())
    }
}

/// Refines class ids by one more column: rows keep a common id only if their values are equal.
/// `values` has a value below `cardinality` for each row. Returns the new number of classes.
pub(super) fn refine(
    ids: &mut [u32],
    classes: usize,
    values: impl Iterator<Item = u32>,
    cardinality: usize,
) -> usize {
    let mut next = 0u32;
    let mut fresh = || {
        next += 1;
        next - 1
    };
    let dense = classes.saturating_mul(cardinality);
    if dense <= ids.len().saturating_mul(4).max(1 << 16) {
        let mut table = vec![u32::MAX; dense];
        for (id, value) in ids.iter_mut().zip(values) {
            let cell = &mut table[*id as usize * cardinality + value as usize];
            if *cell == u32::MAX {
                *cell = fresh();
            }
            *id = *cell;
        }
    } else {
        let mut table: FxHashMap<u64, u32> = FxHashMap::default();
        for (id, value) in ids.iter_mut().zip(values) {
            let key = u64::from(*id) << 32 | u64::from(value);
            *id = *table.entry(key).or_insert_with(&mut fresh);
        }
    }
    next as usize
}
