//! The sorted values of a sensitive column.

use pais_core::definition::ColumnKind;
use pais_core::schema::SchemaColumn;
use pais_core::table::{Column, NULL_CODE};
use pais_core::taxonomy::interval::number;

/// The ranks of a column's values: missing values first, then numbers by size, or other texts by
/// their bytes.
pub struct ValueRanks {
    /// The rank of each code.
    rank: Vec<u32>,
    /// The code of each rank; [`NULL_CODE`] for the rank of empty cells.
    codes: Vec<u32>,
    /// Number of ranks that belong to missing cells; they are the first ones.
    missing: u32,
}

impl ValueRanks {
    /// Sorts the distinct values of a column.
    pub fn new(spec: &SchemaColumn, column: &Column) -> Self {
        struct RankedValue<'t> {
            code: u32,
            missing: bool,
            size: Option<f64>,
            text: &'t str,
        }
        let mut values: Vec<RankedValue> = (0..)
            .zip(&column.dictionary)
            .map(|(code, text)| RankedValue {
                code,
                missing: spec.is_missing(text),
                size: (spec.kind() == ColumnKind::Numeric)
                    .then(|| number(text))
                    .flatten(),
                text,
            })
            .collect();
        values.sort_by(|one, other| {
            let size = |value: &RankedValue| value.size.unwrap_or(f64::NEG_INFINITY);
            let missing = other.missing.cmp(&one.missing);
            let order = missing.then(size(one).total_cmp(&size(other)));
            order.then(one.text.cmp(other.text))
        });
        let mut ranks = Self {
            rank: vec![0; column.dictionary.len()],
            codes: vec![NULL_CODE],
            missing: 1,
        };
        // In CSV an empty marker for missing values cannot be distinguished from an empty cell.
        for value in values
            .iter()
            .filter(|it| !(it.missing && it.text.is_empty()))
        {
            ranks.rank[value.code as usize] = ranks.codes.len() as u32;
            ranks.codes.push(value.code);
            ranks.missing += u32::from(value.missing);
        }
        ranks
    }

    /// The rank of a cell by its code; 0 where the cell is empty.
    pub fn of_code(&self, code: u32) -> u32 {
        self.rank.get(code as usize).copied().unwrap_or(0)
    }

    /// The code of a rank; [`NULL_CODE`] for the rank of empty cells.
    pub fn code(&self, rank: u32) -> u32 {
        self.codes[rank as usize]
    }

    /// Number of ranks of values that are not missing.
    pub(crate) fn known(&self) -> u32 {
        self.codes.len() as u32 - self.missing
    }

    /// The rank of a cell among the values that are not missing, from 0; `None` for a missing one.
    pub(crate) fn known_rank(&self, code: u32) -> Option<u32> {
        self.of_code(code).checked_sub(self.missing)
    }
}
