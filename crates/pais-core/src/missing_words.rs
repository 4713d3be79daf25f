//! Words that programs and people write for a missing cell.

/// The words, each as it is spelled in files. The empty one is first.
///
/// Numbers such as 999 and the words `None` and `keine` are not included: they can be values.
pub const MISSING_WORDS: &[&str] = &[
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
    "not known",
    "missing",
    "Missing",
    "MISSING",
    "unbekannt",
    "Unbekannt",
    "UNBEKANNT",
    "nicht bekannt",
    "fehlt",
    "keine Angabe",
    "k.A.",
    "k. A.",
    "\\N",
];

/// Whether a cell in canonical form has one of the words, in any case. Dots and dashes are not enough: they can be
/// marks for an answer.
pub(crate) fn is_word_for_missing(cell: &str) -> bool {
    let is_no_mark = |it: char| it.is_alphabetic() || it == '?';
    let mut words = MISSING_WORDS.iter();
    words.any(|word| word.eq_ignore_ascii_case(cell)) && cell.contains(is_no_mark)
}

#[cfg(test)]
mod tests {
    use super::is_word_for_missing;

    #[test]
    fn words_are_found_in_any_case_and_answers_are_none() {
        for cell in [
            "unbekannt",
            "Nicht bekannt",
            "K.A.",
            "NA",
            "n/a",
            "?",
            "FEHLT",
            "\\N",
        ] {
            assert!(is_word_for_missing(cell), "{cell}");
        }
        for cell in ["", "-", ".", "none", "keine", "no", "unknown reason", "0"] {
            assert!(!is_word_for_missing(cell), "{cell}");
        }
    }
}
