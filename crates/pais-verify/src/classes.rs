//! Equivalence classes: the distinct generalized records, each with its number of rows.
//!
//! The verifier works on classes, so it reads the rows only once. The values of a row are packed into
//! one number of 64 bits, and rows with equal numbers get equal class ids: with a dense table
//! while the numbers are few compared with the rows, and with a hash table beyond. Where the values of
//! all columns do not fit 64 bits, those that fit are packed first, and then the ids with the others.
//! Threads number parts of the rows, and the distinct numbers of the parts are numbered again.
//! The time is linear in rows times columns; the memory is 8 bytes for each row.

use std::borrow::Cow;
use std::ops::Range;

use hashbrown::HashMap;
use rustc_hash::FxHashMap;

use pais_core::cancellation::Cancellation;
use pais_core::look_alike::visible_text;
use pais_core::parallel;
use pais_core::table::{Column, NULL_CODE, ReleasedColumn, ReleasedTable, code_counts};

use super::lists::Lists;
use super::sets::key;
use super::verification::{ColumnValue, VerifyError};

/// The one column with a name, which has as many rows as its table.
///
/// # Errors
/// [`VerifyError::NoSuchColumn`], [`VerifyError::RepeatedColumn`] and [`VerifyError::UnevenColumn`].
pub(super) fn only_column<'t>(
    table: &'t ReleasedTable,
    name: &str,
) -> Result<&'t ReleasedColumn, VerifyError> {
    let mut named = table.columns.iter().filter(|column| &*column.name == name);
    let column = named.next().ok_or_else(|| VerifyError::NoSuchColumn {
        column: name.into(),
    })?;
    if named.next().is_some() {
        return Err(VerifyError::RepeatedColumn {
            column: name.into(),
        });
    }
    let found = column.column.codes.len();
    if found != table.rows {
        return Err(VerifyError::UnevenColumn {
            column: name.into(),
            found,
            rows: table.rows,
        });
    }
    Ok(column)
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
        Self::numbered(table, name, None, key)
    }

    /// Numbers the values that occur in the column `name`. Texts that look alike ([`visible_text`]) have the
    /// same number: they are not two values of a person.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(super) fn visible(table: &'a ReleasedTable, name: &str) -> Result<Self, VerifyError> {
        Self::numbered(table, name, None, |column, text| match key(column, text) {
            Cow::Borrowed(text) => visible_text(text),
            Cow::Owned(text) => Cow::Owned(visible_text(&text).into_owned()),
        })
    }

    fn numbered(
        table: &'a ReleasedTable,
        name: &str,
        rows: Option<&[u32]>,
        key: impl Fn(&ReleasedColumn, &'a str) -> Cow<'a, str>,
    ) -> Result<Self, VerifyError> {
        let column = only_column(table, name)?;
        let Column { dictionary, codes } = &column.column;
        let null = dictionary.len();
        let codes: Cow<[u32]> = match rows {
            None => codes.into(),
            Some(rows) => rows.iter().map(|&row| codes[row as usize]).collect(),
        };
        let rows_by_code = code_counts(&codes, null);
        let others = codes.len() as u64 - rows_by_code.iter().sum::<u64>();
        let nulls = if others == 0 {
            0
        } else {
            codes.iter().filter(|code| **code == NULL_CODE).count() as u64
        };
        if others != nulls {
            return Err(VerifyError::UnknownCode {
                column: name.into(),
            });
        }
        let occurs = |slot: usize| rows_by_code.get(slot).map_or(nulls, |rows| *rows) > 0;
        // A dictionary should contain a text once, but the verifier does not rely on it.
        let mut by_text: HashMap<Cow<str>, u32> = HashMap::new();
        let mut number = vec![u32::MAX; null + 1];
        let mut values = Vec::new();
        for slot in (0..=null).filter(|&slot| occurs(slot)) {
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
        let columns = parallel::map(names, |name| Self::new(table, name.as_ref()));
        columns.into_iter().collect()
    }

    /// As [`Self::new_all`], of columns whose classes have these first rows: each value that occurs is in
    /// one of them. Only codes of these rows have a number.
    pub(super) fn of_classes(
        table: &'a ReleasedTable,
        names: &[impl AsRef<str> + Sync],
        classes: &Classes,
    ) -> Result<Vec<Self>, VerifyError> {
        let rows = Some(&*classes.row);
        let columns = parallel::map(names, |name| {
            Self::numbered(table, name.as_ref(), rows, key)
        });
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

    /// For each value by its number, whether it means that the cell is missing, or looks missing.
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
#[derive(Clone)]
pub struct Classes<'m> {
    /// Class of each row.
    pub(super) of_row: Vec<u32>,
    /// Number of rows of each class, by their multiplicities.
    pub(super) sizes: Vec<u32>,
    /// The first row of each class.
    pub(super) row: Vec<u32>,
    /// By row, its multiplicity in the table; `None` where each is 1.
    pub(super) multiplicities: Option<&'m [u32]>,
}

impl<'m> Classes<'m> {
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
        Self::divided(vec![0; rows], rows.min(1), columns, cancellation)
    }

    /// The number of rows that no other row equals, on these columns too. Each row has multiplicity 1.
    ///
    /// # Errors
    /// [`VerifyError::Stopped`].
    pub(super) fn alone_by(
        &self,
        columns: &[Values],
        cancellation: &Cancellation,
    ) -> Result<u64, VerifyError> {
        /// Numbers per row for which two bits each need less memory than ids and sizes of classes.
        const MOST_NUMBERS: u64 = 32;
        let order = packing_order(columns);
        let mut packing = Packing::new(self.sizes.len());
        let fits = order.iter().all(|values| packing.add(values.count()));
        if !fits || packing.numbers > MOST_NUMBERS * self.of_row.len() as u64 {
            let of_row = self.of_row.clone();
            let refined = Self::divided(of_row, self.sizes.len(), columns, cancellation)?;
            return Ok(refined.sizes.iter().filter(|&&size| size == 1).count() as u64);
        }
        packing.alone(&self.of_row, &order, cancellation)
    }

    /// Divides the classes of the rows, which are numbered below `classes`, by these columns.
    pub(super) fn divided(
        mut of_row: Vec<u32>,
        mut classes: usize,
        columns: &[Values],
        cancellation: &Cancellation,
    ) -> Result<Self, VerifyError> {
        let order = packing_order(columns);
        let mut left = order.as_slice();
        while !left.is_empty() {
            let mut packing = Packing::new(classes);
            let packed = left.iter().take_while(|values| packing.add(values.count()));
            let (packed, rest) = left.split_at(packed.count());
            classes = packing.refine(&mut of_row, packed, cancellation)?;
            left = rest;
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
        Ok(Self {
            of_row,
            sizes,
            row,
            multiplicities: None,
        })
    }

    /// The same classes of rows with multiplicities, whose sum must be below 2^32.
    pub(super) fn counted_by(mut self, multiplicities: Option<&'m [u32]>) -> Self {
        if let Some(multiplicities) = multiplicities {
            self.sizes.fill(0);
            for (&class, rows) in self.of_row.iter().zip(multiplicities) {
                self.sizes[class as usize] += rows;
            }
            self.multiplicities = Some(multiplicities);
        }
        self
    }

    /// The number of each class.
    pub(super) fn numbers(&self) -> Range<u32> {
        0..self.sizes.len() as u32
    }

    /// The rows of each class.
    pub(super) fn rows(&self) -> Lists<u32> {
        Lists::of_positions(&self.of_row, self.sizes.len())
    }
}

/// The columns with several values, those with few first, so that many of them are packed together.
fn packing_order<'v, 'a>(columns: &'v [Values<'a>]) -> Vec<&'v Values<'a>> {
    let mut order: Vec<&Values> = columns.iter().filter(|values| values.count() > 1).collect();
    order.sort_by_key(|values| values.count());
    order
}

/// The values of some columns, and a class id before them, as digits of one number.
struct Packing {
    /// For each column, what its values are multiplied by.
    factors: Vec<u64>,
    /// How many numbers there can be.
    numbers: u64,
}

/// Rows whose numbers are computed before they are looked up, so that they stay in the cache. Lower in
/// tests, so that small tables have several blocks too.
const BLOCK: usize = if cfg!(test) { 4 } else { 4096 };

/// Minimum number of blocks of a part of the rows.
const MIN_BLOCKS: usize = if cfg!(test) { 2 } else { 16 };

/// Maximum number of parts of the rows: each has a table of its own.
const MOST_PARTS: usize = 4;

impl Packing {
    fn new(classes: usize) -> Self {
        Self {
            factors: Vec::new(),
            numbers: classes as u64,
        }
    }

    /// Adds a column with this many values if the numbers still fit 64 bits. Ids are below 2^32 and so
    /// are values: one column always fits.
    fn add(&mut self, values: usize) -> bool {
        let Some(numbers) = self.numbers.checked_mul(values as u64) else {
            return false;
        };
        self.factors.push(self.numbers);
        self.numbers = numbers;
        true
    }

    /// Refines class ids by the added columns: rows keep a common id only if their values are equal.
    /// Ids are in the order of their first rows. Returns their number.
    ///
    /// # Errors
    /// [`VerifyError::Stopped`].
    fn refine(
        &self,
        ids: &mut [u32],
        columns: &[&Values],
        cancellation: &Cancellation,
    ) -> Result<usize, VerifyError> {
        let blocks = ids.len().div_ceil(BLOCK);
        let parts = (blocks / MIN_BLOCKS).clamp(1, rayon::current_num_threads().min(MOST_PARTS));
        let part_rows = blocks.div_ceil(parts).max(1) * BLOCK;
        let number = |(part, ids): (usize, &mut [u32])| {
            self.number(ids, part * part_rows, columns, cancellation)
        };
        let parts = parallel::map(ids.chunks_mut(part_rows).enumerate(), number);
        let parts: Vec<Numbering> = parts.into_iter().collect::<Result<_, _>>()?;
        let mut parts = parts.into_iter();
        let Some(mut all) = parts.next() else {
            return Ok(0);
        };
        for (ids, part) in ids.chunks_mut(part_rows).skip(1).zip(parts) {
            let of_all: Vec<u32> = part.numbers.iter().map(|&number| all.id(number)).collect();
            parallel::map(ids.chunks_mut(BLOCK), |ids| {
                ids.iter_mut().for_each(|id| *id = of_all[*id as usize]);
            });
        }
        Ok(all.numbers.len())
    }

    /// As [`Self::refine`], of only the rows from row `first` on.
    ///
    /// # Errors
    /// [`VerifyError::Stopped`].
    fn number(
        &self,
        ids: &mut [u32],
        first: usize,
        columns: &[&Values],
        cancellation: &Cancellation,
    ) -> Result<Numbering, VerifyError> {
        let mut numbering = Numbering::new(self.numbers, ids.len());
        let mut numbers = [0u64; BLOCK];
        for (block, ids) in ids.chunks_mut(BLOCK).enumerate() {
            cancellation.check()?;
            let numbers = &mut numbers[..ids.len()];
            self.pack(ids, first + block * BLOCK, columns, numbers);
            for (id, &number) in ids.iter_mut().zip(&*numbers) {
                *id = numbering.id(number);
            }
        }
        Ok(numbering)
    }

    /// The numbers of as many rows as there are ids, from row `first` on.
    fn pack(&self, ids: &[u32], first: usize, columns: &[&Values], numbers: &mut [u64]) {
        for (number, &id) in numbers.iter_mut().zip(ids) {
            *number = u64::from(id);
        }
        for (values, factor) in columns.iter().zip(&self.factors) {
            let codes = &values.column.column.codes[first..];
            for (number, &code) in numbers.iter_mut().zip(codes) {
                *number += factor * u64::from(values.number(code));
            }
        }
    }

    /// How many numbers occur in exactly one row, found with two bits for each number.
    ///
    /// # Errors
    /// [`VerifyError::Stopped`].
    fn alone(
        &self,
        ids: &[u32],
        columns: &[&Values],
        cancellation: &Cancellation,
    ) -> Result<u64, VerifyError> {
        // Whether a row, and whether a second one, has each number.
        let mut seen = vec![[0u64; 2]; self.numbers.div_ceil(64) as usize];
        let mut numbers = [0u64; BLOCK];
        for (block, ids) in ids.chunks(BLOCK).enumerate() {
            cancellation.check()?;
            let numbers = &mut numbers[..ids.len()];
            self.pack(ids, block * BLOCK, columns, numbers);
            for &number in &*numbers {
                let [once, twice] = &mut seen[(number / 64) as usize];
                let bit = 1 << (number % 64);
                *twice |= *once & bit;
                *once |= bit;
            }
        }
        let alone = seen
            .iter()
            .map(|[once, twice]| (once & !twice).count_ones());
        Ok(alone.map(u64::from).sum())
    }
}

/// Numbers distinct numbers in the order of their occurrence.
struct Numbering {
    ids: Ids,
    /// The number of each id.
    numbers: Vec<u64>,
}

enum Ids {
    /// By number; `u32::MAX` for those that have not occurred.
    Dense(Vec<u32>),
    Hashed(FxHashMap<u64, u32>),
}

impl Numbering {
    /// For numbers below `bound`, of this many rows.
    fn new(bound: u64, rows: usize) -> Self {
        let is_dense = bound <= (rows as u64).saturating_mul(4).max(1 << 16);
        Self {
            ids: if is_dense {
                Ids::Dense(vec![u32::MAX; bound as usize])
            } else {
                Ids::Hashed(FxHashMap::default())
            },
            numbers: Vec::new(),
        }
    }

    #[inline]
    fn id(&mut self, number: u64) -> u32 {
        let id = match &mut self.ids {
            Ids::Dense(ids) => &mut ids[number as usize],
            Ids::Hashed(ids) => ids.entry(number).or_insert(u32::MAX),
        };
        if *id == u32::MAX {
            *id = self.numbers.len() as u32;
            self.numbers.push(number);
        }
        *id
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
    let numbers = (classes as u64).saturating_mul(cardinality as u64);
    let mut numbering = Numbering::new(numbers, ids.len());
    for (id, value) in ids.iter_mut().zip(values) {
        *id = numbering.id(u64::from(*id) * cardinality as u64 + u64::from(value));
    }
    numbering.numbers.len()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use pais_core::cancellation::Cancellation;
    use pais_core::table::{Column, Form, NULL_CODE, ReleasedColumn, ReleasedTable};
    use proptest::prelude::*;

    use super::{Classes, Values};

    proptest! {
        /// Up to 24 columns of up to 60 values: the numbers of all columns do not fit 64 bits.
        #[test]
        fn rows_have_equal_ids_where_their_values_are_equal(
            columns in prop::collection::vec(
                prop::collection::vec(prop_oneof![0u32..60, Just(NULL_CODE)], 70), 0..24),
            equal_rows in prop::collection::vec((0usize..70, 0usize..70), 0..80),
        ) {
            let mut columns = columns;
            for column in &mut columns {
                equal_rows.iter().for_each(|&(one, other)| column[one] = column[other]);
            }
            let names: Vec<String> = (0..columns.len()).map(|at| format!("c{at}")).collect();
            let released = names.iter().zip(&columns).map(|(name, codes)| ReleasedColumn {
                name: name.as_str().into(),
                form: Form::Generalized,
                column: Column {
                    dictionary: (0..60).map(|value| value.to_string().into()).collect(),
                    codes: codes.clone(),
                },
                missing: Vec::new(),
            });
            let table = ReleasedTable { name: "data".into(), rows: 70, columns: released.collect() };
            let values = Values::new_all(&table, &names).unwrap();
            let found = Classes::new(70, &values, &Cancellation::new()).unwrap();
            let mut ids: HashMap<Vec<u32>, u32> = HashMap::new();
            let expected: Vec<u32> = (0..70)
                .map(|row| {
                    let fresh = ids.len() as u32;
                    *ids.entry(columns.iter().map(|codes| codes[row]).collect()).or_insert(fresh)
                })
                .collect();
            prop_assert_eq!(&found.of_row, &expected);
            for (id, (&size, &first)) in (0..).zip(found.sizes.iter().zip(&found.row)) {
                let of_id = expected.iter().filter(|&&other| other == id);
                prop_assert_eq!(of_id.count(), size as usize);
                prop_assert_eq!(expected.iter().position(|&other| other == id), Some(first as usize));
            }
        }
    }
}
