//! The values of a sensitive column in order.

use pais_core::definition::ColumnKind;
use pais_core::table::{Column, NULL_CODE};
use pais_core::schema::SchemaColumn;
use pais_core::taxonomy::interval::number;

/// The values of a column in order: missing ones first, then numbers by size or words by their
/// bytes.
pub(super) struct Ranks {
    /// Of each code, its rank.
    rank: Vec<u32>,
    /// Of each rank, a code; that of a cell that holds nothing is [`NULL_CODE`].
    codes: Vec<u32>,
    /// How many ranks, the first ones, are those of missing cells.
    missing: u32,
}

impl Ranks {
    pub(super) fn of(spec: &SchemaColumn, column: &Column) -> Self {
        struct Value<'t> {
            code: u32,
            missing: bool,
            size: Option<f64>,
            text: &'t str,
        }
        let mut values: Vec<Value> = (0..)
            .zip(&column.dictionary)
            .map(|(code, text)| Value {
                code,
                missing: spec.is_missing(text),
                size: (spec.kind == ColumnKind::Numeric)
                    .then(|| number(text))
                    .flatten(),
                text,
            })
            .collect();
        values.sort_by(|one, other| {
            let size = |value: &Value| value.size.unwrap_or(f64::NEG_INFINITY);
            let missing = other.missing.cmp(&one.missing);
            let order = missing.then(size(one).total_cmp(&size(other)));
            order.then(one.text.cmp(other.text))
        });
        let mut ranks = Self {
            rank: vec![0; column.dictionary.len()],
            codes: vec![NULL_CODE],
            missing: 1,
        };
        // CSV cannot tell an empty word for missing from a cell that holds nothing.
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

    /// The rank of a cell; 0 where it holds nothing.
    pub(super) fn of_code(&self, code: u32) -> u32 {
        self.rank.get(code as usize).copied().unwrap_or(0)
    }

    /// A code of a rank; [`NULL_CODE`] for that of a cell that holds nothing.
    pub(super) fn code(&self, rank: u32) -> u32 {
        self.codes[rank as usize]
    }

    /// Number of ranks that are not those of missing cells.
    pub(super) fn known(&self) -> u32 {
        self.codes.len() as u32 - self.missing
    }

    /// The rank of a cell among those that are not missing; `None` for one that is.
    pub(super) fn known_rank(&self, code: u32) -> Option<u32> {
        self.of_code(code).checked_sub(self.missing)
    }
}
