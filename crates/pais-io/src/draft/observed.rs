//! What is known about a column after its cells were read: counts and shapes, and a few of its values.

use std::collections::BTreeMap;

use pais_core::table::{Column, NULL_CODE};

use super::codes::CodeShapes;
use super::dates::DateForms;
use super::items::Divisions;
use super::missing::{MissingWords, Placeholders};
use super::numbers::{NumberForms, NumberRange};
use super::order::FileOrder;
use super::sketch::Sketch;

/// Maximum number of distinct values of a column that are kept as text.
pub(super) const MOST_KEPT: usize = 60;

/// Maximum number of bytes of a value that is kept as text. Columns with longer values keep none.
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

/// A column of a file: its name, and what is known about it.
#[derive(Clone, Debug)]
pub(super) struct FileColumn {
    pub(super) name: String,
    pub(super) observed: Observed,
    /// The separator with which its lists were read.
    pub(super) list_separator: Option<char>,
}

/// What is known about a column. Memory does not grow with its rows.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// What the format of the file says; `None` for CSV, and where records differ.
    pub(super) declared: Option<ColumnType>,
    /// Rows with a value.
    pub(super) rows: u64,
    /// Distinct values, estimated where they are very many.
    pub(super) distinct: u64,
    /// Whether `distinct` is estimated.
    pub(super) is_estimated: bool,
    /// Rows with null.
    pub(super) nulls: u64,
    /// Rows with words for missing.
    pub(super) missing: MissingWords,
    /// The values with their rows; `None` where they are too many or too long.
    pub(super) kept: Option<BTreeMap<Box<str>, u64>>,
    /// Values that can stand for missing ones.
    pub(super) placeholders: Placeholders,
    /// As numbers, without placeholders.
    pub(super) numbers: NumberForms,
    /// As dates.
    pub(super) dates: DateForms,
    /// As lists.
    pub(super) divisions: Divisions,
    /// As codes.
    pub(super) codes: CodeShapes,
    /// The greatest number of characters.
    pub(super) longest: usize,
    /// Rows by their number of characters; the last entry has all longer ones.
    pub(super) lengths: [u64; MOST_LENGTHS],
    /// Rows whose value has several words of letters.
    pub(super) phrases: u64,
    /// Some of the distinct values.
    pub(super) sketch: Sketch,
    /// Whether numbers ascend in the order of the file.
    pub(super) order: FileOrder,
}

/// Numbers of characters that are counted apart.
const MOST_LENGTHS: usize = 24;

impl Observed {
    /// A column of which nothing was read.
    pub(super) fn new(declared: Option<ColumnType>) -> Self {
        Self {
            declared,
            rows: 0,
            distinct: 0,
            is_estimated: false,
            nulls: 0,
            missing: MissingWords::default(),
            kept: Some(BTreeMap::new()),
            placeholders: Placeholders::default(),
            numbers: NumberForms::default(),
            dates: DateForms::default(),
            divisions: Divisions::default(),
            codes: CodeShapes::default(),
            longest: 0,
            lengths: [0; MOST_LENGTHS],
            phrases: 0,
            sketch: Sketch::default(),
            order: FileOrder::default(),
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
        self.order.add(column);
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
        if !self.placeholders.add(text, rows) {
            self.numbers.add(text);
        }
        self.dates.add(trimmed);
        self.divisions.add(trimmed, rows);
        self.codes.add(trimmed, rows);
        let length = trimmed.chars().take(1_000).count();
        self.longest = self.longest.max(length);
        self.lengths[length.min(MOST_LENGTHS - 1)] += rows;
        let words = trimmed.split_whitespace().take(8);
        let words = words.filter(|word| word.chars().any(char::is_alphabetic));
        if words.count() > 1 {
            self.phrases += rows;
        }
        self.sketch.add(trimmed);
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

    /// The range of its numbers in a form; `None` if some value is not a number in it.
    pub(super) fn range(&self, form: usize) -> Option<NumberRange> {
        self.numbers.range_with(form, self.placeholders.numbers())
    }

    /// Whether each row with a value has a different one, as far as known.
    pub(super) fn is_all_distinct(&self) -> bool {
        self.distinct >= self.rows || (self.is_estimated && self.distinct_share() >= 0.99)
    }

    /// The share of distinct values among the rows with a value; 0 without rows.
    pub(super) fn distinct_share(&self) -> f64 {
        self.distinct as f64 / self.rows.max(1) as f64
    }

    /// The number of characters of nearly all values, as for keys; `None` where lengths differ.
    pub(super) fn one_length(&self) -> Option<usize> {
        let (length, &rows) = self
            .lengths
            .iter()
            .enumerate()
            .max_by_key(|(_, rows)| **rows)?;
        let is_one = length + 1 < MOST_LENGTHS && rows as f64 >= 0.85 * self.rows as f64;
        (is_one && self.rows > 0).then_some(length)
    }

    /// Whether most rows with a value have a shape that these `rows` have.
    pub(super) fn is_most(&self, rows: u64) -> bool {
        rows > 0 && rows as f64 >= 0.9 * self.rows as f64
    }
}
