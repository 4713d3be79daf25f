//! What a search asks about the rows: how many have which values.
//!
//! All that top-down specialization decides follows from histograms and from *frequency sets*
//! (LeFevre, DeWitt, Ramakrishnan: Incognito, SIGMOD 2005): the distinct combinations of values at
//! some level of all attributes, each with its number of rows. A set below the cut answers all
//! candidates whose children it distinguishes, so any store that can count rows can be the source.

use std::ops::Range;

use pais_core::parallel;
use pais_core::table::EncodedTable;
use pais_core::table::codes::{Codes, RowCodes};
use pais_core::with_codes;

use super::attribute::{Concept, Histogram};
use super::sensitive::{SensitiveSlots, add_counters};
use crate::observer::Observer;
use crate::row_counter::CountError;

/// A source of row counts.
pub(super) trait FrequencySets {
    /// Number of rows.
    fn rows(&self) -> u64;

    /// By attribute, the rows by code, and by class too with `by_class`.
    ///
    /// # Errors
    /// As [`Self::frequency_set`].
    fn histograms(
        &self,
        by_class: bool,
        observer: &dyn Observer,
    ) -> Result<Vec<Histogram>, CountError>;

    /// About how many records [`Self::frequency_set`] has for these floors; 0 if it is as cheap to count them.
    ///
    /// # Errors
    /// [`CountError::Cancelled`] and [`CountError::Failed`].
    fn expected_records(
        &self,
        _floors: &[Floor],
        _observer: &dyn Observer,
    ) -> Result<u64, CountError> {
        Ok(0)
    }

    /// The distinct combinations of ranges, given by a floor for each attribute, and of slots of
    /// sensitive values, each with its number of rows; or a finer set. Without `most` it is
    /// counted however large it is.
    ///
    /// # Errors
    /// [`CountError::MoreThan`] for a set of more than `most` combinations, [`CountError::Cancelled`],
    /// and [`CountError::Failed`] for counts that contradict the table.
    fn frequency_set(
        &self,
        floors: &[Floor],
        most: Option<usize>,
        observer: &dyn Observer,
    ) -> Result<FrequencySet, CountError>;
}

/// Where a search gets its counts from.
#[derive(Clone, Copy)]
pub(super) struct Rounds<'a> {
    /// The source of its sets.
    pub source: &'a dyn FrequencySets,
    /// Maximum number of records of a set. One that distinguishes only the children of the best candidate
    /// is counted however many records it has.
    pub budget: usize,
}

/// Which codes of an attribute a set distinguishes: the first codes of consecutive ranges, ascending
/// from 0. The codes of a range are not distinguished.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Floor(pub(super) Vec<u32>);

impl Floor {
    /// Whether a range begins at a code.
    pub(super) fn starts_at(&self, code: u32) -> bool {
        self.0.binary_search(&code).is_ok()
    }

    /// Whether no two children of a split have rows in the same range. The split concept must
    /// consist of ranges.
    pub(super) fn separates(&self, split: &[Concept]) -> bool {
        split.iter().all(|child| self.starts_at(child.codes.start))
    }
}

/// Distinct records with their numbers of rows.
pub(super) struct FrequencySet {
    /// By attribute, which codes are distinguished.
    pub floors: Vec<Floor>,
    /// By attribute, a code of each record's range.
    pub codes: Vec<Codes<'static>>,
    /// By slot column, the code of each record.
    pub slots: Vec<Codes<'static>>,
    /// By record, its number of rows, at least 1.
    pub rows: Vec<u32>,
}

/// Number of rows of each record that partitions are made of.
#[derive(Debug)]
pub(super) enum Multiplicity {
    /// The records are the rows.
    One,
    /// By record.
    Of(Vec<u32>),
}

/// A slice of a [`Multiplicity`], as a scan reads it.
pub(super) trait RowsOfRecord: Copy + Send + Sync {
    /// Number of rows of a record.
    fn rows(self, record: usize) -> u32;

    /// The rows of a range of records, which are numbered from 0 in the result.
    fn slice(self, records: Range<usize>) -> Self;
}

/// Each record is one row.
#[derive(Clone, Copy)]
pub(super) struct OneRow;

impl RowsOfRecord for OneRow {
    #[inline(always)]
    fn rows(self, _: usize) -> u32 {
        1
    }

    fn slice(self, _: Range<usize>) -> Self {
        self
    }
}

impl RowsOfRecord for &[u32] {
    #[inline(always)]
    fn rows(self, record: usize) -> u32 {
        self[record]
    }

    fn slice(self, records: Range<usize>) -> Self {
        &self[records]
    }
}

/// Evaluates an expression with `$rows` the [`RowsOfRecord`] of `$multiplicity`, compiled for each
/// variant.
macro_rules! with_rows {
    ($multiplicity:expr, $rows:ident => $body:expr) => {
        match $multiplicity {
            $crate::methods::specialization::frequencies::Multiplicity::One => {
                let $rows = $crate::methods::specialization::frequencies::OneRow;
                $body
            }
            $crate::methods::specialization::frequencies::Multiplicity::Of(rows) => {
                let $rows = rows.as_slice();
                $body
            }
        }
    };
}
pub(super) use with_rows;

/// Minimum number of rows per cell of the combined codes with which a table is counted once instead of
/// scanned for each candidate. Tests have few rows, so they take sparse tables too.
const ROWS_PER_CELL: f64 = if cfg!(test) { 1.0 / 512.0 } else { 16.0 };

/// Largest number of cells: 4 MiB of counters for each thread.
pub(super) const MAX_CELLS: usize = 1 << 20;

/// Rows that are counted together, so that their keys stay in the cache.
const BLOCK_ROWS: usize = if cfg!(test) { 3 } else { 1 << 10 };

/// Rows of a task that counts cells; lower in tests, so that small tables are split into tasks too.
const ROWS_PER_COUNT_TASK: usize = if cfg!(test) { 7 } else { 1 << 16 };

/// A table in memory whose codes have so few combinations that one array counts them all.
pub(super) struct CollapsedTable<'a> {
    table: &'a EncodedTable,
    sensitive: &'a SensitiveSlots,
}

impl<'a> CollapsedTable<'a> {
    /// `None` for a table with too many combinations for its rows.
    pub(super) fn new(table: &'a EncodedTable, sensitive: &'a SensitiveSlots) -> Option<Self> {
        let columns = table.quasi_identifiers.iter();
        let codes = columns.map(|column| column.domain.code_count());
        let slots = sensitive.slots.iter().map(|slots| slots.count as usize);
        let cells = codes.chain(slots).fold(1, usize::saturating_mul);
        let few = cells as f64 * ROWS_PER_CELL <= table.rows as f64;
        (few && cells <= MAX_CELLS).then_some(Self { table, sensitive })
    }
}

impl FrequencySets for CollapsedTable<'_> {
    fn rows(&self) -> u64 {
        self.table.rows as u64
    }

    fn histograms(
        &self,
        by_class: bool,
        observer: &dyn Observer,
    ) -> Result<Vec<Histogram>, CountError> {
        let class = self.table.class.as_ref().filter(|_| by_class);
        let columns = &self.table.quasi_identifiers;
        let histograms = parallel::map(columns, |column| {
            observer.check()?;
            let count = column.domain.code_count();
            Ok(Histogram::new(&column.codes, count, class))
        });
        histograms.into_iter().collect()
    }

    /// One pass over the rows, shared among the threads.
    fn frequency_set(
        &self,
        floors: &[Floor],
        most: Option<usize>,
        observer: &dyn Observer,
    ) -> Result<FrequencySet, CountError> {
        let columns = &self.table.quasi_identifiers;
        // A cell is a number with one digit for each attribute and each slot column.
        let mut cells = 1u32;
        let mut digit = |count: u32| {
            let place = cells;
            cells *= count;
            Digit { place, count }
        };
        let parts: Vec<Digit> = floors.iter().map(|it| digit(it.0.len() as u32)).collect();
        let slots = self.sensitive.slots.iter();
        let slots: Vec<Digit> = slots.map(|slots| digit(slots.count)).collect();
        let addends = columns.iter().zip(floors).zip(&parts);
        let addends: Vec<Vec<u32>> = addends
            .map(|((column, floor), digit)| {
                let mut part = 0;
                let codes = 0..column.domain.code_count() as u32;
                let addend = |code| {
                    part += u32::from(floor.0.get(part as usize + 1) == Some(&code));
                    part * digit.place
                };
                codes.map(addend).collect()
            })
            .collect();
        let count_block = |counters: &mut [u32], keys: &mut Vec<u32>, rows: Range<usize>| {
            keys.clear();
            keys.resize(rows.len(), 0);
            for (column, addends) in columns.iter().zip(&addends) {
                with_codes!(&column.codes, codes => {
                    let pairs = keys.iter_mut().zip(codes.in_rows(rows.clone()));
                    pairs.for_each(|(key, code)| *key += addends[code as usize]);
                });
            }
            for (column, digit) in self.sensitive.slots.iter().zip(&slots) {
                with_codes!(&column.codes, codes => {
                    let codes = codes.part(rows.clone());
                    for (row, key) in keys.iter_mut().enumerate() {
                        *key += codes.at(row) * digit.place;
                    }
                });
            }
            for &key in &*keys {
                counters[key as usize] += 1;
            }
        };
        let task_rows = ROWS_PER_COUNT_TASK.max(cells as usize);
        let count_task = |mut counters: Vec<u32>, task: usize| {
            let end = self.table.rows.min((task + 1) * task_rows);
            let mut keys = Vec::new();
            for start in (task * task_rows..end).step_by(BLOCK_ROWS) {
                if observer.must_stop() {
                    break;
                }
                let rows = start..end.min(start + BLOCK_ROWS);
                count_block(&mut counters, &mut keys, rows);
            }
            counters
        };
        let zeros = || vec![0u32; cells as usize];
        let tasks = self.table.rows.div_ceil(task_rows);
        let counters = parallel::sum(tasks, &zeros, &count_task, &add_counters);
        observer.check()?;
        let records = (0..).zip(counters).filter(|(_, rows)| *rows > 0);
        let (keys, rows): (Vec<u32>, Vec<u32>) = records.unzip();
        if most.is_some_and(|most| keys.len() > most) {
            return Err(CountError::MoreThan);
        }
        let codes = columns.iter().zip(floors).zip(&parts);
        let codes = codes.map(|((column, floor), digit)| {
            let first = |&key: &u32| floor.0[digit.of(key) as usize];
            Codes::computed(keys.len(), column.domain.code_count(), &|rows, out| {
                out.extend(keys[rows].iter().map(first));
            })
        });
        let slots = slots.iter().map(|digit| {
            let slot = |&key: &u32| digit.of(key);
            Codes::computed(keys.len(), digit.count as usize, &|rows, out| {
                out.extend(keys[rows].iter().map(slot));
            })
        });
        Ok(FrequencySet {
            floors: floors.to_vec(),
            codes: codes.collect(),
            slots: slots.collect(),
            rows,
        })
    }
}

/// A digit of a number in a mixed radix.
struct Digit {
    /// What a unit of it is worth.
    place: u32,
    /// Number of its values.
    count: u32,
}

impl Digit {
    fn of(&self, number: u32) -> u32 {
        number / self.place % self.count
    }
}
