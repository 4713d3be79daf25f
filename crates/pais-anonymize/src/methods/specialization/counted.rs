//! Frequency sets of a table that is not in memory: an engine counts its rows, and each answer is compared with
//! what is known about the table.

use pais_core::parallel;
use pais_core::table::EncodedTable;
use pais_core::table::codes::{Codes, RowCodes};
use pais_core::with_codes;

use super::attribute::Histogram;
use super::frequencies::{Floor, FrequencySet, FrequencySets};
use super::search::ATTEMPTS;
use super::sensitive::SensitiveSlots;
use crate::observer::Observer;
use crate::row_counter::{ColumnParts, CountError, PartCounts, RowCounter};

/// A table that is known by the distinct values of its columns.
pub(super) struct CountedTable<'a> {
    /// A row for each number of a value, in all columns at once.
    pub values: &'a EncodedTable,
    /// By stored column and value, its rows.
    pub rows_of: &'a [Vec<u64>],
    /// Number of rows.
    pub rows: u64,
    /// The slots of the values.
    pub sensitive: &'a SensitiveSlots,
    /// Position of the sensitive column of each slot column; empty where no value is bounded.
    pub slot_columns: Vec<usize>,
    /// Position of the class column.
    pub class_column: Option<usize>,
    /// The engine that counts.
    pub counter: &'a dyn RowCounter,
}

impl CountedTable<'_> {
    /// Counts the rows by parts. An answer that contradicts what is known about the table is discarded and
    /// requested again.
    fn count(
        &self,
        columns: &[ColumnParts],
        most: Option<usize>,
        observer: &dyn Observer,
    ) -> Result<PartCounts, CountError> {
        let mut failure = String::new();
        for _ in 0..ATTEMPTS {
            failure = match self.counter.count(columns, most, observer) {
                Ok(counts) => match self.contradiction(columns, &counts) {
                    None => return Ok(counts),
                    Some(found) => format!("the counts of an engine are wrong: {found}"),
                },
                Err(CountError::Failed(reason)) => reason,
                Err(error) => return Err(error),
            };
            observer.check()?;
        }
        Err(CountError::Failed(failure))
    }

    /// What is wrong with an answer.
    fn contradiction(&self, columns: &[ColumnParts], counts: &PartCounts) -> Option<&'static str> {
        let records = counts.rows.len();
        let is_short = |parts: &Vec<u32>| parts.len() != records;
        if counts.parts.len() != columns.len()
            || counts.parts.iter().any(is_short)
            || counts.number_sums.len() != records
            || counts.rows.contains(&0)
        {
            return Some("it is not one number for each combination");
        }
        let sum = |numbers: &[u64]| {
            numbers
                .iter()
                .map(|&number| u128::from(number))
                .sum::<u128>()
        };
        let rows = u128::from(self.rows);
        if sum(&counts.rows) != rows {
            return Some("they are of more or fewer rows");
        }
        if sum(&counts.number_sums) != rows * rows.saturating_sub(1) / 2 {
            return Some("they are of other rows");
        }
        let is_margin = |(column, parts): (&ColumnParts, &Vec<u32>)| {
            let mut left = vec![0u64; column.parts as usize];
            let values = column.part_of.iter().zip(&self.rows_of[column.column]);
            for (&part, rows) in values {
                left[part as usize] += rows;
            }
            let mut pairs = parts.iter().zip(&counts.rows);
            let fits = pairs.all(|(&part, rows)| {
                let left = left.get_mut(part as usize);
                let rest = left.as_ref().and_then(|left| left.checked_sub(*rows));
                left.zip(rest).map(|(left, rest)| *left = rest).is_some()
            });
            fits && left.iter().all(|rows| *rows == 0)
        };
        let pairs = columns.iter().zip(&counts.parts);
        let are_margins = parallel::map(pairs, is_margin).into_iter().all(|fits| fits);
        (!are_margins).then_some("they contradict the histogram of a column")
    }

    /// The request to the engine for a set: the columns with several ranges, then the slot columns. The
    /// positions are those of the former among the attributes.
    fn asked(&self, floors: &[Floor]) -> (Vec<usize>, Vec<ColumnParts>) {
        // A column with one range, or one slot, distinguishes no rows.
        let ranges = floors
            .iter()
            .enumerate()
            .filter(|(_, floor)| floor.0.len() > 1);
        let ranges: Vec<usize> = ranges.map(|(column, _)| column).collect();
        let of_ranges = ranges.iter().map(|&column| {
            let (codes, starts) = (self.codes(column), &floors[column].0);
            let part = |code: &u32| starts.partition_point(|start| start <= code) as u32 - 1;
            ColumnParts {
                part_of: codes.part_of.iter().map(part).collect(),
                parts: starts.len() as u32,
                ..codes
            }
        });
        let slots = self.sensitive.slots.iter().zip(&self.slot_columns);
        let of_slots = slots.map(|(slots, &column)| ColumnParts {
            column,
            part_of: with_codes!(&slots.codes, codes => {
                (0..self.rows_of[column].len()).map(|value| codes.at(value)).collect()
            }),
            parts: slots.count,
        });
        let columns = of_ranges.chain(of_slots).collect();
        (ranges, columns)
    }

    /// The values of a column by their codes in its domain.
    fn codes(&self, column: usize) -> ColumnParts {
        let quasi_identifier = &self.values.quasi_identifiers[column];
        let values = self.rows_of[quasi_identifier.position].len();
        ColumnParts {
            column: quasi_identifier.position,
            part_of: with_codes!(&quasi_identifier.codes, codes => codes.in_rows(0..values).collect()),
            parts: quasi_identifier.domain.code_count().max(1) as u32,
        }
    }
}

impl FrequencySets for CountedTable<'_> {
    fn rows(&self) -> u64 {
        self.rows
    }

    /// Without a class, the histograms are known. Otherwise one statement for each attribute.
    fn histograms(
        &self,
        by_class: bool,
        observer: &dyn Observer,
    ) -> Result<Vec<Histogram>, CountError> {
        let class = self.values.class.as_ref().filter(|_| by_class);
        let class = class.zip(self.class_column);
        let columns = 0..self.values.quasi_identifiers.len();
        let histograms = columns.map(|column| {
            let codes = self.codes(column);
            let mut histogram = Histogram {
                rows: vec![0; codes.parts as usize],
                by_class: Vec::new(),
                classes: 0,
            };
            for (&code, rows) in codes.part_of.iter().zip(&self.rows_of[codes.column]) {
                histogram.rows[code as usize] += rows;
            }
            if let Some((of_row, position)) = class {
                let classes = of_row.classes;
                let class = ColumnParts {
                    column: position,
                    part_of: with_codes!(&of_row.codes, codes => {
                        codes.in_rows(0..self.rows_of[position].len()).collect()
                    }),
                    parts: classes as u32,
                };
                histogram.classes = classes;
                histogram.by_class = vec![0; histogram.rows.len() * classes];
                let counts = self.count(&[codes, class], None, observer)?;
                let pairs = counts.parts[0].iter().zip(&counts.parts[1]);
                for ((&code, &class), rows) in pairs.zip(&counts.rows) {
                    histogram.by_class[code as usize * classes + class as usize] += rows;
                }
            }
            Ok(histogram)
        });
        histograms.collect()
    }

    fn expected_records(
        &self,
        floors: &[Floor],
        observer: &dyn Observer,
    ) -> Result<u64, CountError> {
        let (_, columns) = self.asked(floors);
        self.counter.expected_combinations(&columns, observer)
    }

    /// One statement.
    fn frequency_set(
        &self,
        floors: &[Floor],
        most: Option<usize>,
        observer: &dyn Observer,
    ) -> Result<FrequencySet, CountError> {
        let (ranges, columns) = self.asked(floors);
        let counts = self.count(&columns, most, observer)?;
        let mut parts = counts.parts.into_iter();
        let mut codes: Vec<Codes<'static>> = vec![Codes::Zero(counts.rows.len()); floors.len()];
        for (column, parts) in ranges.into_iter().zip(&mut parts) {
            let starts = &floors[column].0;
            let first = |&part: &u32| starts[part as usize];
            let count = self.values.quasi_identifiers[column].domain.code_count();
            codes[column] = Codes::computed(parts.len(), count, &|rows, out| {
                out.extend(parts[rows].iter().map(first));
            });
        }
        let mut slots: Vec<Codes<'static>> = parts
            .zip(&self.sensitive.slots)
            .map(|(parts, slots)| {
                Codes::computed(parts.len(), slots.count as usize, &|rows, out| {
                    out.extend_from_slice(&parts[rows]);
                })
            })
            .collect();
        slots.resize(self.sensitive.slots.len(), Codes::Zero(counts.rows.len()));
        let rows = counts.rows.into_iter().map(u32::try_from);
        let rows: Result<Vec<u32>, _> = rows.collect();
        Ok(FrequencySet {
            floors: floors.to_vec(),
            codes,
            slots,
            rows: rows.map_err(|_| CountError::Failed("a combination has too many rows".into()))?,
        })
    }
}
