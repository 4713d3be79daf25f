//! Words that programs and people write for a missing cell, and values that they write where a cell must not be
//! empty.

use std::collections::BTreeMap;

use pais_core::missing_words::MISSING_WORDS;

use super::numbers::NumberRange;

/// How many rows of a column have each word.
#[derive(Clone, Debug, Default)]
pub(super) struct MissingWords {
    /// Empty until a row has one.
    rows: Vec<u64>,
}

impl MissingWords {
    /// The index of a cell among the words; `None` for a value.
    pub(super) fn find(cell: &str) -> Option<usize> {
        // All words are short, so that most cells are not compared.
        if cell.len() > 13 {
            return None;
        }
        let cell = cell.trim();
        MISSING_WORDS.iter().position(|word| *word == cell)
    }

    /// Counts rows with a word.
    pub(super) fn add(&mut self, word: usize, rows: u64) {
        self.rows.resize(MISSING_WORDS.len(), 0);
        self.rows[word] += rows;
    }

    /// Rows with any word.
    pub(super) fn rows(&self) -> u64 {
        self.rows.iter().sum()
    }

    /// The words that the column has, to be declared: none where the empty cell is the only one,
    /// which means missing without a declaration.
    /// `others` are words too.
    pub(super) fn declared(&self, others: &[&'static str]) -> Option<Vec<&'static str>> {
        let found = MISSING_WORDS.iter().zip(&self.rows).skip(1);
        let found = found.filter(|(_, rows)| **rows > 0);
        let found = found.map(|(word, _)| word).chain(others);
        let mut words: Vec<&str> = found.copied().collect();
        if words.is_empty() {
            return None;
        }
        // A later file can have empty cells too.
        words.insert(0, "");
        Some(words)
    }
}

/// Well-known values that are written for a missing one. They can also be values, so that a person is asked.
///
/// No other value of a cell is in a question or a reason. The first ones are [`NUMBERS`], then come postal codes
/// and days in the forms of files.
pub(super) const PLACEHOLDERS: [&str; 33] = [
    "99",
    "999",
    "9999",
    "99999",
    "-1",
    "-9",
    "00000",
    "1900-01-01",
    "1900-01-01 00:00",
    "1900-01-01 00:00:00",
    "1900-01-01T00:00:00",
    "01.01.1900",
    "01.01.1900 00:00",
    "01.01.1900 00:00:00",
    "01/01/1900",
    "1/1/1900",
    "1901-01-01",
    "1901-01-01 00:00",
    "1901-01-01 00:00:00",
    "1901-01-01T00:00:00",
    "01.01.1901",
    "01.01.1901 00:00",
    "01.01.1901 00:00:00",
    "01/01/1901",
    "1/1/1901",
    "9999-12-31",
    "9999-12-31 00:00:00",
    "9999-12-31T00:00:00",
    "31.12.9999",
    "31.12.9999 00:00",
    "31.12.9999 00:00:00",
    "31/12/9999",
    "12/31/9999",
];

/// The placeholders that are numbers.
pub(super) const NUMBERS: [f64; 6] = [99.0, 999.0, 9_999.0, 99_999.0, -1.0, -9.0];

/// The placeholders that are postal codes.
const POSTAL_CODES: [&str; 2] = ["00000", "99999"];

/// Rows with a placeholder that are frequent: one in so many.
const FREQUENT: u64 = 50;

/// How many rows of a column have each placeholder.
#[derive(Clone, Debug, Default)]
pub(super) struct Placeholders {
    rows: BTreeMap<usize, u64>,
}

impl Placeholders {
    /// Counts rows of a value; `true` if it is a number for a missing one.
    pub(super) fn add(&mut self, cell: &str, rows: u64) -> bool {
        let Some(at) = PLACEHOLDERS.iter().position(|it| *it == cell) else {
            return false;
        };
        *self.rows.entry(at).or_default() += rows;
        at < NUMBERS.len()
    }

    /// The numbers that the column has.
    pub(super) fn numbers(&self) -> impl Iterator<Item = f64> {
        self.rows.keys().filter_map(|&at| NUMBERS.get(at).copied())
    }

    /// The numbers that frequently stand among `rows` rows, far from the `others`.
    pub(super) fn far_numbers(&self, rows: u64, others: NumberRange) -> Vec<&'static str> {
        let is_far = |value: f64| {
            let is_below = value < 0.0 && others.lo >= 0.0;
            is_below || (value > others.hi && value - others.hi >= others.hi - others.lo)
        };
        self.frequent(rows, |at, _| NUMBERS.get(at).is_some_and(|it| is_far(*it)))
    }

    /// The postal codes that frequently stand among `rows` rows.
    pub(super) fn postal_codes(&self, rows: u64) -> Vec<&'static str> {
        self.frequent(rows, |_, text| POSTAL_CODES.contains(&text))
    }

    /// The days that frequently stand among `rows` rows.
    pub(super) fn days(&self, rows: u64) -> Vec<&'static str> {
        self.frequent(rows, |at, text| {
            at >= NUMBERS.len() && !POSTAL_CODES.contains(&text)
        })
    }

    fn frequent(&self, rows: u64, is_one: impl Fn(usize, &str) -> bool) -> Vec<&'static str> {
        let found = self
            .rows
            .iter()
            .filter(|(_, found)| **found * FREQUENT >= rows);
        let found = found.filter(|(at, _)| is_one(**at, PLACEHOLDERS[**at]));
        found.map(|(at, _)| PLACEHOLDERS[*at]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{MISSING_WORDS, MissingWords, NUMBERS, PLACEHOLDERS};

    #[test]
    fn the_first_placeholders_are_the_numbers() {
        let first = PLACEHOLDERS.iter().take(NUMBERS.len());
        assert!(first.map(|it| it.parse::<f64>()).eq(NUMBERS.map(Ok)));
        assert!(
            PLACEHOLDERS
                .iter()
                .all(|it| MissingWords::find(it).is_none())
        );
    }

    #[test]
    fn words_are_found_in_their_spelling_and_numbers_are_none() {
        for cell in ["", " ", "NA", " NA", "n/a", "?", ".", "unknown", "\\N"] {
            assert!(MissingWords::find(cell).is_some(), "{cell:?}");
        }
        for cell in [
            "999",
            "0",
            "none",
            "None",
            "nA",
            "no",
            "unknown reason",
            "--------------",
        ] {
            assert_eq!(MissingWords::find(cell), None, "{cell:?}");
        }
        assert_eq!(MISSING_WORDS[0], "");
        assert!(MISSING_WORDS.iter().all(|word| word.len() <= 13));
    }

    #[test]
    fn the_empty_cell_is_declared_only_beside_a_word() {
        let mut missing = MissingWords::default();
        missing.add(0, 3);
        assert_eq!((missing.declared(&[]), missing.rows()), (None, 3));
        let question_mark = MissingWords::find("?").unwrap();
        missing.add(question_mark, 2);
        assert_eq!(missing.declared(&[]), Some(vec!["", "?"]));
        assert_eq!(missing.declared(&["999"]), Some(vec!["", "?", "999"]));
        assert_eq!(missing.rows(), 5);
    }
}
