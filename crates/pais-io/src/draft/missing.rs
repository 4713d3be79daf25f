//! Words that programs and people write for a missing cell.

/// The words, each as it is spelled in files. The empty one is first.
///
/// Numbers such as 999 and the word `None` are not included: they can be values.
pub(super) const WORDS: [&str; 30] = [
    "",
    "NA",
    "N/A",
    "n/a",
    "na",
    "n.a.",
    "N.A.",
    "#N/A",
    "NaN",
    "nan",
    "NAN",
    "NULL",
    "null",
    "Null",
    "<NA>",
    "?",
    "??",
    "-",
    "--",
    ".",
    "..",
    "unknown",
    "Unknown",
    "UNKNOWN",
    "missing",
    "Missing",
    "MISSING",
    "unbekannt",
    "k.A.",
    "\\N",
];

/// How many rows of a column have each word.
#[derive(Clone, Debug, Default)]
pub(super) struct MissingWords {
    rows: [u64; WORDS.len()],
}

impl MissingWords {
    /// The index of a cell among the words; `None` for a value.
    pub(super) fn find(cell: &str) -> Option<usize> {
        // All words are short, so that most cells are not compared.
        if cell.len() > 12 {
            return None;
        }
        let cell = cell.trim();
        WORDS.iter().position(|word| *word == cell)
    }

    /// Counts rows with a word.
    pub(super) fn add(&mut self, word: usize, rows: u64) {
        self.rows[word] += rows;
    }

    /// Rows with any word.
    pub(super) fn rows(&self) -> u64 {
        self.rows.iter().sum()
    }

    /// The words that the column has, to be declared: none where the empty cell is the only one,
    /// which means missing without a declaration.
    pub(super) fn declared(&self) -> Option<Vec<&'static str>> {
        let found = WORDS.iter().zip(&self.rows).skip(1);
        let found = found.filter(|(_, rows)| **rows > 0);
        let mut words: Vec<&str> = found.map(|(word, _)| *word).collect();
        if words.is_empty() {
            return None;
        }
        // A later file can have empty cells too.
        words.insert(0, "");
        Some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::{MissingWords, WORDS};

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
        assert_eq!(WORDS[0], "");
        assert!(WORDS.iter().all(|word| word.len() <= 12));
    }

    #[test]
    fn the_empty_cell_is_declared_only_beside_a_word() {
        let mut missing = MissingWords::default();
        missing.add(0, 3);
        assert_eq!((missing.declared(), missing.rows()), (None, 3));
        let question_mark = MissingWords::find("?").unwrap();
        missing.add(question_mark, 2);
        assert_eq!(missing.declared(), Some(vec!["", "?"]));
        assert_eq!(missing.rows(), 5);
    }
}
