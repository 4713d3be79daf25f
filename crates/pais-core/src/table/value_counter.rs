//! Counts the values of columns that are released unchanged while their rows are read.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap};
use serde::{Deserialize, Serialize};

use crate::definition::ColumnRole;
use crate::schema::SchemaColumn;
use crate::table::{Column, ValueCounts};
use crate::warning::Warning;

/// Maximum number of values of a column that are kept.
const MOST_VALUES: usize = 1_000_000;

/// Maximum number of values that are kept of all columns together.
const MOST_OF_ALL: usize = 4 * MOST_VALUES;

/// The counts of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnValueCounts {
    /// Name of the column.
    pub column: String,
    /// Its role.
    pub role: ColumnRole,
    /// How often its values are in its rows; estimated beyond a million distinct values.
    pub counts: ValueCounts,
}

impl ColumnValueCounts {
    /// The warning about the column.
    pub fn warning(&self) -> Option<Warning> {
        self.counts.warning(&self.column, self.role)
    }
}

/// Counts the rows and values of the sensitive and insensitive columns of a table that is read
/// chunk by chunk.
///
/// Values are kept as 64-bit hashes under a key that is random for each counter, and no longer than the
/// counter. Up to a million distinct values of a column are kept, and four million of all columns, in at most
/// some 160 MiB. Beyond that, a sample is kept: the values whose hash begins with enough zero bits. All rows of
/// a sampled value are counted, so distinct values and those of one row are estimated by the same factor. The
/// standard error is one divided by the root of the number of values that are kept: up to 0.15 % with four
/// columns, up to 1.5 % with 400. These counts only warn; what refuses a job is counted exactly
/// ([`super::KeyCounter`]).
#[derive(Debug)]
pub struct ValueCounters {
    columns: Vec<CountedColumn>,
    hasher: DefaultHashBuilder,
    most_values: usize,
}

impl Default for ValueCounters {
    fn default() -> Self {
        Self {
            columns: Vec::new(),
            hasher: DefaultHashBuilder::default(),
            most_values: MOST_VALUES,
        }
    }
}

impl ValueCounters {
    /// Counts the rows of a chunk, given by its columns as they were declared. Each chunk has the
    /// same columns in the same order.
    ///
    /// One pass over the codes of each column that is counted; each distinct text is hashed once.
    pub fn push<'a>(&mut self, chunk: impl IntoIterator<Item = (&'a SchemaColumn, &'a Column)>) {
        let is_counted = |(spec, _): &(&SchemaColumn, &Column)| {
            matches!(spec.role, ColumnRole::Sensitive | ColumnRole::Insensitive)
        };
        let counted: Vec<_> = chunk.into_iter().filter(is_counted).collect();
        let most_values = self.most_values.min(MOST_OF_ALL / counted.len().max(1));
        for (index, (spec, column)) in counted.into_iter().enumerate() {
            if index == self.columns.len() {
                self.columns.push(CountedColumn::new(spec));
            }
            self.columns[index].push(spec, column, &self.hasher, most_values);
        }
    }

    /// Distinct values up to which counts are exact, for a table with this number of counted columns.
    pub fn exact_up_to(columns: usize) -> u64 {
        MOST_VALUES.min(MOST_OF_ALL / columns.max(1)) as u64
    }

    /// The counts of the columns so far.
    pub fn counts(&self) -> Vec<ColumnValueCounts> {
        let columns = self.columns.iter();
        columns
            .map(|column| ColumnValueCounts {
                column: column.name.to_string(),
                role: column.role,
                counts: column.counts(),
            })
            .collect()
    }
}

/// A value of a chunk.
pub(super) struct HashedValue {
    /// The hash of its text.
    pub(super) hash: u64,
    /// Number of rows; two texts of a chunk can be one value.
    pub(super) rows: u64,
}

/// The values of a chunk that are in its rows and not missing, as they are released: numbers with
/// `round` are rounded.
pub(super) fn hashed_values(
    spec: &SchemaColumn,
    column: &Column,
    hasher: &DefaultHashBuilder,
) -> impl Iterator<Item = HashedValue> {
    let values = column.dictionary.iter().zip(column.row_counts());
    let present = values.filter(|(text, rows)| *rows > 0 && !spec.is_missing(text));
    present.map(|(text, rows)| HashedValue {
        hash: hasher.hash_one(&*spec.rounded(&spec.canonical(text))),
        rows,
    })
}

/// The values of a column so far.
#[derive(Debug)]
struct CountedColumn {
    name: Box<str>,
    role: ColumnRole,
    rows: u64,
    /// Whether each kept value, by its hash, is in one row only.
    is_single: HashMap<u64, bool>,
    /// Number of zero bits with which the hashes of kept values begin.
    zeros: u32,
}

impl CountedColumn {
    fn new(spec: &SchemaColumn) -> Self {
        Self {
            name: spec.name.clone(),
            role: spec.role,
            rows: 0,
            is_single: HashMap::new(),
            zeros: 0,
        }
    }

    /// Counts the values of a chunk.
    fn push(
        &mut self,
        spec: &SchemaColumn,
        column: &Column,
        hasher: &DefaultHashBuilder,
        most_values: usize,
    ) {
        for HashedValue { hash, rows } in hashed_values(spec, column, hasher) {
            self.rows += rows;
            if hash.leading_zeros() < self.zeros {
                continue;
            }
            let single = self.is_single.entry(hash);
            single
                .and_modify(|single| *single = false)
                .or_insert(rows == 1);
            while self.is_single.len() > most_values {
                self.zeros += 1;
                let zeros = self.zeros;
                self.is_single
                    .retain(|hash, _| hash.leading_zeros() >= zeros);
            }
        }
    }

    /// The counts so far.
    fn counts(&self) -> ValueCounts {
        let estimate = |kept: usize| {
            let whole = (kept as u64).checked_shl(self.zeros).unwrap_or(u64::MAX);
            whole.min(self.rows)
        };
        ValueCounts {
            rows: self.rows,
            distinct: estimate(self.is_single.len()),
            single: estimate(self.is_single.values().filter(|single| **single).count()),
            persons: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::ValueCounters;
    use crate::schema::Schema;
    use crate::table::{Column, NULL_CODE, ValueCounts};
    use crate::warning::WarningCode;

    fn schema() -> Schema {
        let definition = json!({"name": "t", "columns": [
            {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
            {"name": "note", "role": "insensitive"},
            {"name": "disease", "role": "sensitive"},
        ]});
        Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap()
    }

    fn column(cells: &[Option<u32>]) -> Column {
        let mut column = Column::default();
        for cell in cells {
            let text = match cell {
                None => {
                    column.codes.push(NULL_CODE);
                    continue;
                }
                Some(0) => String::new(),
                Some(value) => value.to_string(),
            };
            let known = column.dictionary.iter().position(|known| **known == *text);
            let code = known.unwrap_or_else(|| {
                column.dictionary.push(text.into());
                column.dictionary.len() - 1
            });
            column.codes.push(code as u32);
        }
        column
    }

    proptest! {
        #[test]
        fn values_are_counted_over_all_chunks(
            chunks in prop::collection::vec(
                prop::collection::vec(prop::option::of(0u32..30), 0..20), 0..5),
        ) {
            let schema = schema();
            let mut counters = ValueCounters::default();
            for cells in &chunks {
                let column = column(cells);
                counters.push(schema.stored().map(|spec| (spec, &column)));
            }
            // The value 0 is written as the empty cell, which means missing.
            let cells = chunks.concat().into_iter().flatten().filter(|&value| value > 0);
            let mut rows = [0u64; 30];
            cells.for_each(|value| rows[value as usize] += 1);
            let expected = ValueCounts {
                rows: rows.iter().sum(),
                distinct: rows.iter().filter(|&&rows| rows > 0).count() as u64,
                single: rows.iter().filter(|&&rows| rows == 1).count() as u64,
                persons: None,
            };
            let found = counters.counts();
            prop_assert_eq!(found.len(), if chunks.is_empty() { 0 } else { 2 });
            prop_assert!(found.iter().all(|column| column.counts == expected));
        }
    }

    #[test]
    fn beyond_the_limit_counts_are_estimated_from_a_sample() {
        let schema = schema();
        let mut counters = ValueCounters {
            most_values: 4_000,
            ..ValueCounters::default()
        };
        // 60,000 values in one row each, and 20,000 values in two rows each.
        for start in (0..80_000).step_by(8_000) {
            let twice = 60_000 + start / 4..60_000 + start / 4 + 2_000;
            let once = start * 3 / 4..start * 3 / 4 + 6_000;
            let texts = once
                .chain(twice.clone())
                .map(|value| value.to_string().into());
            let column = Column {
                dictionary: texts.collect(),
                codes: (0..8_000).chain(6_000..8_000).collect(),
            };
            counters.push(schema.stored().map(|spec| (spec, &column)));
        }
        for column in counters.counts() {
            let near = |found: u64, expected: u64| found.abs_diff(expected) < expected / 5;
            assert_eq!(column.counts.rows, 100_000);
            assert!(near(column.counts.distinct, 80_000), "{column:?}");
            assert!(near(column.counts.single, 60_000), "{column:?}");
            let code = column.warning().map(|warning| warning.code);
            assert_eq!(code, Some(WarningCode::SingledOutRows));
        }
        assert!(
            counters
                .columns
                .iter()
                .all(|it| it.is_single.len() <= 4_000)
        );
    }
}
