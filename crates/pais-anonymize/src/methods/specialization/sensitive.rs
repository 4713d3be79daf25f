//! The sensitive values of a row as one code, so that a scan counts a row by one addition. Missing cells are a
//! value too if the requirement excludes them.
//!
//! Sensitive columns are combined as long as their values have few combinations. With more
//! combinations a row has several codes, and is counted once for each.

use std::ops::{AddAssign, Range};

use pais_core::parallel;
use pais_core::table::NULL_CODE;
use pais_core::table::codes::{Codes, RowCodes};
use pais_core::with_codes;

use super::requirement::{Requirement, SensitiveBound};

/// Largest number of codes of combined columns, so that they take one byte per row.
const MAX_COMBINED_CODES: usize = if cfg!(test) { 8 } else { 1 << 8 };

/// Rows of a task that collects pairs of codes; lower in tests, so that small tables are split into tasks too.
const ROWS_PER_PAIR_TASK: usize = if cfg!(test) { 5 } else { 1 << 16 };

/// The sensitive values of all rows. A *slot* is a combination of sensitive values that a row may
/// have in a group of combined columns; one slot of each group has no sensitive value.
#[derive(Debug)]
pub(super) struct SensitiveSlots {
    /// Every row has one slot in each slot column. There is at least one slot column.
    pub slots: Vec<SlotColumn>,
    /// By slot, its sensitive values.
    value_lists: ValueLists,
    /// Whether the values of all slots, slot after slot, are strictly ascending.
    pub is_ascending: bool,
    /// By counted value, the number of rows that have it.
    pub rows_by_value: Vec<u64>,
}

/// One slot per row.
#[derive(Debug)]
pub(super) struct SlotColumn {
    /// Number of the first slot of this column: slot = `first` + code.
    pub first: u32,
    /// Number of codes.
    pub count: u32,
    /// One code per row, or per record of a frequency set.
    pub codes: Codes<'static>,
}

/// Lists of sensitive values, stored one after the other.
#[derive(Clone, Debug, Default)]
struct ValueLists {
    values: Vec<u32>,
    ends: Vec<u32>,
}

impl ValueLists {
    fn push(&mut self, values: impl IntoIterator<Item = u32>) {
        self.values.extend(values);
        self.ends.push(self.values.len() as u32);
    }

    #[inline]
    fn get(&self, slot: usize) -> &[u32] {
        let start = slot.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start as usize..self.ends[slot] as usize]
    }
}

/// One or more sensitive columns with one code per row, and the sensitive values of each code.
struct CombinedColumns {
    codes: Codes<'static>,
    value_lists: ValueLists,
}

impl SensitiveSlots {
    /// Encodes the sensitive columns of `rows` rows. Makes up to three passes over each column,
    /// shared among the threads.
    pub(super) fn new(requirement: &Requirement<'_>, rows: usize) -> Self {
        let mut combined_columns: Vec<CombinedColumns> = Vec::new();
        for bound in &requirement.sensitive {
            let column = CombinedColumns::from_bound(bound);
            match combined_columns
                .last()
                .and_then(|last| last.combined_with(&column, rows))
            {
                Some(combined) => {
                    combined_columns.pop();
                    combined_columns.push(combined);
                }
                None => combined_columns.push(column),
            }
        }
        Self::of_columns(combined_columns, requirement, rows, |_, column| {
            column.codes.counts(column.value_lists.ends.len())
        })
    }

    /// Encodes the sensitive columns of a table by their values: codes are per value instead of per row.
    /// `rows_of` has the rows by column and value.
    pub(super) fn of_values(requirement: &Requirement<'_>, rows_of: &[&[u64]]) -> Self {
        let bounds = requirement.sensitive.iter();
        let columns = bounds.map(CombinedColumns::from_bound).collect();
        Self::of_columns(columns, requirement, 0, |column, combined| {
            let mut rows = vec![0; combined.value_lists.ends.len()];
            with_codes!(&combined.codes, codes => {
                for (value, of_value) in rows_of[column].iter().enumerate() {
                    rows[codes.at(value) as usize] += of_value;
                }
            });
            rows
        })
    }

    /// The slots of these columns of `rows` rows. `rows_by_code` counts the rows of one of them.
    fn of_columns(
        columns: Vec<CombinedColumns>,
        requirement: &Requirement<'_>,
        rows: usize,
        rows_by_code: impl Fn(usize, &CombinedColumns) -> Vec<u64>,
    ) -> Self {
        let mut sensitive = Self {
            slots: Vec::new(),
            value_lists: ValueLists::default(),
            is_ascending: true,
            rows_by_value: vec![0; requirement.counted_values],
        };
        if columns.is_empty() {
            sensitive.value_lists.push([]);
            sensitive.slots.push(SlotColumn {
                first: 0,
                count: 1,
                codes: Codes::Zero(rows),
            });
        }
        for (index, column) in columns.into_iter().enumerate() {
            let rows_by_code = rows_by_code(index, &column);
            let CombinedColumns { codes, value_lists } = column;
            let first = sensitive.count() as u32;
            for (code, rows) in rows_by_code.into_iter().enumerate() {
                for &value in value_lists.get(code) {
                    sensitive.rows_by_value[value as usize] += rows;
                }
                sensitive
                    .value_lists
                    .push(value_lists.get(code).iter().copied());
            }
            let count = sensitive.count() as u32 - first;
            sensitive.slots.push(SlotColumn {
                first,
                count,
                codes,
            });
        }
        let values = &sensitive.value_lists.values;
        sensitive.is_ascending = values.is_sorted_by(|one, next| one < next);
        sensitive
    }

    /// The same slots before any record has one.
    pub(super) fn without_rows(&self) -> Self {
        let slots = self.slots.iter().map(|slots| SlotColumn {
            codes: Codes::Zero(0),
            ..*slots
        });
        Self {
            slots: slots.collect(),
            value_lists: self.value_lists.clone(),
            is_ascending: self.is_ascending,
            rows_by_value: self.rows_by_value.clone(),
        }
    }

    /// Number of slots.
    pub(super) fn count(&self) -> usize {
        self.value_lists.ends.len()
    }

    /// Number of slots of the first slot column. Each row has exactly one slot below this number.
    pub(super) fn first_column_count(&self) -> usize {
        let second = self.slots.get(1).map(|slots| slots.first as usize);
        second.unwrap_or(self.count())
    }

    /// The values of a slot, ascending.
    #[inline]
    pub(super) fn values(&self, slot: usize) -> &[u32] {
        self.value_lists.get(slot)
    }
}

impl CombinedColumns {
    /// A single column. A value that is not counted has the code 0.
    fn from_bound(bound: &SensitiveBound<'_>) -> Self {
        let sensitive = bound.numbers.iter().copied();
        let mut values: Vec<u32> = sensitive.filter(|&number| number != NULL_CODE).collect();
        values.sort_unstable();
        values.dedup();
        // Missing cells that are counted have the last code.
        values.extend(bound.missing);
        let missing_code = bound.missing.map_or(0, |_| values.len() as u32);
        let position = |number: &u32| {
            values
                .binary_search(number)
                .map_or(0, |position| position as u32 + 1)
        };
        let code_of: Vec<u32> = bound.numbers.iter().map(position).collect();
        // The code of a missing cell is beyond the last code.
        let code = |&code: &u32| code_of.get(code as usize).copied().unwrap_or(missing_code);
        let mut value_lists = ValueLists::default();
        value_lists.push([]);
        values.iter().for_each(|&value| value_lists.push([value]));
        let count = value_lists.ends.len();
        let codes = Codes::computed(bound.codes.len(), count, &|rows, out| {
            out.extend(bound.codes[rows].iter().map(code));
        });
        Self { codes, value_lists }
    }

    /// Combines two columns: one code for each pair of codes that some row has. `None` if there are
    /// too many pairs.
    fn combined_with(&self, other: &Self, rows: usize) -> Option<Self> {
        let (ones, others) = (self.value_lists.ends.len(), other.value_lists.ends.len());
        if ones.max(others) > MAX_COMBINED_CODES {
            return None;
        }
        with_codes!(&self.codes, one => with_codes!(&other.codes, other_one => {
            let pair = |row| one.at(row) as usize * others + other_one.at(row) as usize;
            let none = || vec![false; ones * others];
            let add = |mut occurs: Vec<bool>, task| {
                task_rows(task, rows).for_each(|row| occurs[pair(row)] = true);
                occurs
            };
            let mut occurs = parallel::sum(rows.div_ceil(ROWS_PER_PAIR_TASK), &none, &add, &either);
            occurs[0] = true;
            let mut value_lists = ValueLists::default();
            let mut code_of = vec![0; occurs.len()];
            for pair in (0..occurs.len()).filter(|&pair| occurs[pair]) {
                code_of[pair] = value_lists.ends.len() as u32;
                let mut values = self.value_lists.get(pair / others).to_vec();
                values.extend(other.value_lists.get(pair % others));
                values.sort_unstable();
                value_lists.push(values);
            }
            if value_lists.ends.len() > MAX_COMBINED_CODES {
                return None;
            }
            let codes = Codes::computed(rows, value_lists.ends.len(), &|rows, out| {
                out.extend(rows.map(|row| code_of[pair(row)]));
            });
            Some(Self { codes, value_lists })
        }))
    }
}

/// The rows of a task of [`ROWS_PER_PAIR_TASK`].
fn task_rows(task: usize, rows: usize) -> Range<usize> {
    task * ROWS_PER_PAIR_TASK..rows.min((task + 1) * ROWS_PER_PAIR_TASK)
}

fn either(mut one: Vec<bool>, other: Vec<bool>) -> Vec<bool> {
    one.iter_mut()
        .zip(other)
        .for_each(|(one, other)| *one |= other);
    one
}

/// The sum of two arrays of counters, element by element.
pub(super) fn add_counters<N: AddAssign>(mut one: Vec<N>, other: Vec<N>) -> Vec<N> {
    let counters = one.iter_mut().zip(other);
    counters.for_each(|(one, other)| *one += other);
    one
}
