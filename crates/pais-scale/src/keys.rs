//! Keys, which number the combinations of parts of columns, and counts of rows by keys.

use std::io;
use std::iter::StepBy;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use hashbrown::HashSet;
use pais_anonymize::{ColumnParts, CountError, Observer, PartCounts};

use crate::codes::CodeFile;

/// Maximum number of combinations that one key numbers.
const MOST_KEYS: u64 = 1 << 62;

/// Blocks from which the size of a set is estimated: a million rows.
const SAMPLE_BLOCKS: usize = 64;

/// How a statement ends.
pub(crate) enum Answer {
    /// With the counts of all combinations.
    Counts(KeyCounts),
    /// With more combinations than requested.
    MoreThan,
    /// Before its end, because the run has to stop.
    Cancelled,
}

/// The result of a statement, or a part of it.
pub(crate) struct KeyCounts {
    /// By key column.
    pub(crate) keys: Vec<Vec<u64>>,
    /// Rows by record.
    pub(crate) rows: Vec<u64>,
    /// The sum of the numbers of these rows.
    pub(crate) number_sums: Vec<u64>,
}

impl KeyCounts {
    /// No record of this many keys.
    pub(crate) fn new(keys: usize) -> Self {
        Self {
            keys: vec![Vec::new(); keys],
            rows: Vec::new(),
            number_sums: Vec::new(),
        }
    }

    /// All columns: the keys, the rows and the sums.
    pub(crate) fn columns_mut(&mut self) -> impl Iterator<Item = &mut Vec<u64>> {
        let counts = [&mut self.rows, &mut self.number_sums];
        self.keys.iter_mut().chain(counts)
    }

    /// Appends the engine's results.
    ///
    /// # Errors
    /// When they are not numbers.
    pub(crate) fn push(&mut self, batch: &RecordBatch) -> datafusion::error::Result<()> {
        for (numbers, column) in self.columns_mut().zip(batch.columns()) {
            // The number of rows is signed.
            let column = datafusion::arrow::compute::cast(column, &DataType::UInt64)?;
            numbers.extend_from_slice(column.as_primitive::<UInt64Type>().values());
        }
        Ok(())
    }
}

/// The column of the numbers of rows.
pub(crate) const ROW_ID: &str = "row_id";

/// How rows are numbered by their parts: in a mixed radix, in as few keys as can hold all combinations.
pub(crate) struct Keys {
    /// The keys, and [`ROW_ID`].
    pub(crate) schema: SchemaRef,
    groups: Vec<Vec<Digit>>,
}

/// A digit of a key.
struct Digit {
    /// The index of the requested column.
    asked: usize,
    /// The stored column.
    column: usize,
    /// The value of one unit of it.
    place: u64,
    /// Number of its values.
    parts: u64,
    /// By value of the column, what it adds to the key.
    addends: Vec<u64>,
}

impl Keys {
    /// Keys of these columns, whose parts are below their numbers of parts.
    pub(crate) fn new(columns: &[ColumnParts]) -> Self {
        let mut groups = vec![Vec::new()];
        let mut place = 1u64;
        for (asked, column) in columns.iter().enumerate() {
            let parts = u64::from(column.parts).max(1);
            if place.checked_mul(parts).is_none_or(|keys| keys > MOST_KEYS) {
                groups.push(Vec::new());
                place = 1;
            }
            let addends = column.part_of.iter().map(|&part| u64::from(part) * place);
            let digit = Digit {
                asked,
                column: column.column,
                place,
                parts,
                addends: addends.collect(),
            };
            if let Some(group) = groups.last_mut() {
                group.push(digit);
            }
            place *= parts;
        }
        let keys = (0..groups.len()).map(|key| format!("key{key}"));
        let names = keys.chain([ROW_ID.to_owned()]);
        let fields: Vec<Field> = names
            .map(|name| Field::new(name, DataType::UInt64, false))
            .collect();
        Self {
            schema: Arc::new(Schema::new(fields)),
            groups,
        }
    }

    /// The names of the keys.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let keys = self.schema.fields().iter().take(self.groups.len());
        keys.map(|field| field.name().as_str())
    }

    /// Number of keys of a row.
    pub(crate) fn count(&self) -> usize {
        self.groups.len()
    }

    /// The keys of the rows of a block, whose codes have parts.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn of_block(&self, rows: &CodeFile, block: usize) -> io::Result<Vec<Vec<u64>>> {
        let block = rows.block(block)?;
        let mut keys = vec![vec![0; block.rows()]; self.groups.len()];
        block.for_each_column(|column, codes| {
            for (keys, group) in keys.iter_mut().zip(&self.groups) {
                for digit in group.iter().filter(|digit| digit.column == column) {
                    codes.add_to(keys, |code| digit.addends[code as usize]);
                }
            }
        });
        Ok(keys)
    }

    /// About how many combinations the rows have: extrapolated from blocks at equal distances, by the growth
    /// from half of these blocks to all of them.
    ///
    /// # Errors
    /// [`CountError::Cancelled`], and [`CountError::Failed`] for a file that cannot be read.
    pub(crate) fn expected_combinations(
        &self,
        rows: &CodeFile,
        observer: &dyn Observer,
    ) -> Result<u64, CountError> {
        let blocks = rows.blocks().min(SAMPLE_BLOCKS);
        let mut sampled = 0;
        let mut found = HashSet::new();
        let mut read = |places: StepBy<Range<usize>>| -> Result<(f64, f64), CountError> {
            for place in places {
                observer.check()?;
                let block = place * rows.blocks() / blocks;
                let keys = self.of_block(rows, block);
                let keys = keys.map_err(|error| CountError::Failed(error.to_string()))?;
                for row in 0..rows.rows_of(block) {
                    // Two keys are rarely needed; mixing them can only lose combinations.
                    let mixed = keys.iter().fold(0u64, |mixed, keys| {
                        mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ keys[row]
                    });
                    found.insert(mixed);
                }
                sampled += rows.rows_of(block);
            }
            Ok((found.len() as f64, sampled as f64))
        };
        let (of_half, half) = read((0..blocks).step_by(2))?;
        let (of_all, all) = read((1..blocks).step_by(2))?;
        if all >= rows.rows() as f64 {
            return Ok(of_all as u64);
        }
        let exponent = (of_all / of_half).ln() / (all / half).ln();
        Ok((of_all * (rows.rows() as f64 / all).powf(exponent.clamp(0.0, 1.0))) as u64)
    }

    /// The counts of combinations of parts, of `asked` columns.
    pub(crate) fn part_counts(&self, counts: KeyCounts, asked: usize) -> PartCounts {
        PartCounts {
            parts: self.parts(&counts.keys, asked),
            rows: counts.rows,
            number_sums: counts.number_sums,
        }
    }

    /// By requested column, the part of each key.
    fn parts(&self, keys: &[Vec<u64>], asked: usize) -> Vec<Vec<u32>> {
        let mut parts = vec![Vec::new(); asked];
        for (keys, group) in keys.iter().zip(&self.groups) {
            for digit in group {
                let part = |&key: &u64| (key / digit.place % digit.parts) as u32;
                parts[digit.asked] = keys.iter().map(part).collect();
            }
        }
        parts
    }
}
