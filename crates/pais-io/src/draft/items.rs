//! Cells with several items: which character separates them.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashSet};

/// The separators that are tried. If several fit, the first one is proposed.
pub(super) const SEPARATORS: [char; 5] = ['|', ';', ',', '/', ' '];

/// Maximum number of distinct items of a column that are counted.
const MOST_ITEMS: usize = 20_000;

/// Maximum number of bytes of an item. Longer ones are parts of sentences.
const MOST_ITEM_BYTES: usize = 60;

/// Minimum number of rows with several items, and the share of a column's rows that has them.
const LEAST_ROWS: u64 = 4;
const LEAST_SHARE: f64 = 0.1;

/// How often each item occurs on average, at least. Parts of names and sentences occur less often.
const LEAST_REPETITION: u64 = 3;

/// The statistics of a column's cells divided at one separator.
#[derive(Clone, Debug, Default)]
struct SeparatedCells {
    /// Rows with several items.
    rows: u64,
    /// Items in these rows.
    items: u64,
    /// Items in the distinct cells of each chunk.
    in_cells: u64,
    /// Items that have several words.
    phrases: u64,
    /// Hashes of the distinct items in these rows, up to [`MOST_ITEMS`].
    distinct: HashSet<u64>,
    /// An item is empty, or too long, or has no digit.
    has_empty: bool,
    has_long: bool,
    has_word: bool,
}

/// The statistics of a column's cells divided at each separator.
#[derive(Clone, Debug, Default)]
pub(super) struct Divisions {
    hasher: DefaultHashBuilder,
    of: [SeparatedCells; SEPARATORS.len()],
}

impl Divisions {
    /// Counts the items of a value that is in `rows` rows.
    pub(super) fn add(&mut self, text: &str, rows: u64) {
        for (&separator, division) in SEPARATORS.iter().zip(&mut self.of) {
            if !text.contains(separator) || division.has_long {
                continue;
            }
            division.rows += rows;
            for item in text.split(separator) {
                let item = item.trim();
                division.items += rows;
                division.in_cells += 1;
                division.phrases += u64::from(item.split(' ').count() > 2);
                division.has_empty |= item.is_empty();
                division.has_long |= item.len() > MOST_ITEM_BYTES;
                division.has_word |= !item.bytes().any(|byte| byte.is_ascii_digit());
                if division.distinct.len() < MOST_ITEMS {
                    division.distinct.insert(self.hasher.hash_one(item));
                }
            }
        }
    }

    /// The separator of a column whose values are in `rows` rows; `None` where the cells are no
    /// lists of repeated items.
    pub(super) fn separator(&self, rows: u64) -> Option<char> {
        let is_list = |&(&separator, division): &(&char, &SeparatedCells)| {
            let distinct = division.distinct.len() as u64;
            // Words of a sentence have spaces between them too, and dates have slashes.
            let is_codes = !matches!(separator, ' ' | '/') || !division.has_word;
            // A sentence has commas too; its parts are phrases, and occur only in that cell.
            let is_prose = separator == ','
                && (2 * division.phrases > division.in_cells
                    || 2 * division.in_cells < 3 * distinct);
            division.rows >= LEAST_ROWS
                && !is_prose
                && division.rows as f64 >= LEAST_SHARE * rows as f64
                && !division.has_empty
                && !division.has_long
                && is_codes
                && distinct > 1
                && distinct < MOST_ITEMS as u64
                && division.items >= LEAST_REPETITION * distinct
        };
        let mut found = SEPARATORS.iter().zip(&self.of);
        found.find(is_list).map(|(&separator, _)| separator)
    }
}

#[cfg(test)]
mod tests {
    use super::Divisions;

    fn separator(cells: &[&str]) -> Option<char> {
        let mut found = Divisions::default();
        // Each cell is in five rows.
        cells.iter().for_each(|cell| found.add(cell, 5));
        found.separator(5 * cells.len() as u64)
    }

    #[test]
    fn repeated_items_show_their_separator() {
        assert_eq!(separator(&["flu|cough", "cough", "flu"]), Some('|'));
        assert_eq!(separator(&["flu;cough", "cough"]), Some(';'));
        assert_eq!(separator(&["flu, cough", "cough, flu"]), Some(','));
        assert_eq!(separator(&["10509002 65363002", "65363002"]), Some(' '));
    }

    #[test]
    fn sentences_names_and_single_values_are_no_lists() {
        assert_eq!(separator(&["San Diego", "Costa Mesa"]), None);
        assert_eq!(separator(&["flu", "cough"]), None);
        assert_eq!(separator(&["flu||cough", "flu|cough"]), None);
        let diseases = [
            "Infectious and parasitic diseases, systemic or unspecified sites",
            "Diseases and disorders of the ear, nose, mouth and throat",
            "Pregnancy, childbirth and the puerperium",
            "Burns",
        ];
        assert_eq!(separator(&diseases), None);
        assert_eq!(separator(&["Yes, often", "Yes, always", "No"]), None);
        let long = format!("{}|cough", "x".repeat(80));
        assert_eq!(separator(&[&long, "flu|cough"]), None);
        // Each item occurs once.
        let mut found = Divisions::default();
        for row in 0..50 {
            found.add(&format!("a{row}|b{row}"), 1);
        }
        assert_eq!(found.separator(50), None);
    }
}
