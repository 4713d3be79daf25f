//! What is known of a column after its cells were read: counts and shapes, and few of its values.

use std::collections::BTreeMap;

use pais_core::table::{Column, NULL_CODE};

use super::codes::CodeShapes;
use super::dates::DateForms;
use super::items::Divisions;
use super::missing::MissingWords;
use super::numbers::NumberForms;

/// Most distinct values of a column that are kept as text.
pub(super) const MOST_KEPT: usize = 60;

/// Most bytes of a value that is kept as text. Columns with longer values keep none.
const MOST_KEPT_BYTES: usize = 60;

/// What a format with types says about a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// Numbers.
    Number,
    /// Text, even where it looks like numbers.
    Text,
    /// `true` and `false`.
    Boolean,
    /// Days.
    Date,
    /// Moments.
    Moment,
    /// Lists.
    List,
}

/// What is known of a column. Memory does not grow with its rows.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// What the format of the file says; `None` for CSV, and where records differ.
    pub(super) declared: Option<ColumnType>,
    /// Rows with a value.
    pub(super) rows: u64,
    /// Distinct values; exact up to hundreds of thousands.
    pub(super) distinct: u64,
    /// Rows with null.
    pub(super) nulls: u64,
    /// Rows with words for missing.
    pub(super) missing: MissingWords,
    /// The values with their rows; `None` where they are too many or too long.
    pub(super) kept: Option<BTreeMap<Box<str>, u64>>,
    /// As numbers.
    pub(super) numbers: NumberForms,
    /// As dates.
    pub(super) dates: DateForms,
    /// As lists.
    pub(super) divisions: Divisions,
    /// As codes.
    pub(super) codes: CodeShapes,
    /// The greatest number of characters.
    pub(super) longest: usize,
}

impl Observed {
    /// A column of which nothing was read.
    pub(super) fn new(declared: Option<ColumnType>) -> Self {
        Self {
            declared,
            rows: 0,
            distinct: 0,
            nulls: 0,
            missing: MissingWords::default(),
            kept: Some(BTreeMap::new()),
            numbers: NumberForms::default(),
            dates: DateForms::default(),
            divisions: Divisions::default(),
            codes: CodeShapes::default(),
            longest: 0,
        }
    }

    /// Adds the column of a chunk. Each distinct value of the chunk is looked at once.
    pub(super) fn add(&mut self, column: &Column) {
        let mut rows = vec![0u64; column.dictionary.len()];
        for &code in &column.codes {
            match code {
                NULL_CODE => self.nulls += 1,
                code => rows[code as usize] += 1,
            }
        }
        for (text, rows) in column.dictionary.iter().zip(rows) {
            match MissingWords::find(text) {
                Some(word) => self.missing.add(word, rows),
                None => self.add_value(text, rows),
            }
        }
    }

    fn add_value(&mut self, text: &str, rows: u64) {
        // Cells are trimmed where they are compared, and numbers and dates must not have spaces.
        let trimmed = text.trim();
        self.rows += rows;
        self.numbers.add(text);
        self.dates.add(trimmed);
        self.divisions.add(trimmed, rows);
        self.codes.add(trimmed, rows);
        self.longest = self.longest.max(trimmed.chars().take(1_000).count());
        if let Some(kept) = &mut self.kept {
            let is_kept = trimmed.len() <= MOST_KEPT_BYTES;
            if is_kept && (kept.len() < MOST_KEPT || kept.contains_key(trimmed)) {
                *kept.entry(trimmed.into()).or_insert(0) += rows;
            } else {
                self.kept = None;
            }
        }
    }

    /// Rows without a value.
    pub(super) fn missing_rows(&self) -> u64 {
        self.missing.rows() + self.nulls
    }

    /// Whether a shape is that of most rows with a value.
    pub(super) fn is_most(&self, rows: u64) -> bool {
        rows > 0 && rows as f64 >= 0.9 * self.rows as f64
    }
}
