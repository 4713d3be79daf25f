//! The words in a column name.

use crate::canonical_text::canonical_text;

/// The words of a name, in lower case: `patientId`, `patient_id` and `PATIENT ID` have the same words. Umlauts
/// are written with two letters, as people do without them on their keyboard. At most 200 characters are read.
///
/// ```
/// use pais_core::column_name::words;
///
/// assert_eq!(words("patientId"), ["patient", "id"]);
/// assert_eq!(words("PATIENT-ID"), ["patient", "id"]);
/// assert_eq!(words("Körpergröße"), ["koerpergroesse"]);
/// ```
pub fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for character in canonical_text(name).chars().take(200) {
        let begins = character.is_uppercase() && was_lower;
        if (begins || !character.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if character.is_alphanumeric() {
            character
                .to_lowercase()
                .for_each(|letter| match two_letters(letter) {
                    Some(letters) => word.push_str(letters),
                    None => word.push(letter),
                });
        }
        was_lower = character.is_lowercase();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// How a German letter in lower case is written without umlauts.
fn two_letters(letter: char) -> Option<&'static str> {
    match letter {
        'ä' => Some("ae"),
        'ö' => Some("oe"),
        'ü' => Some("ue"),
        'ß' => Some("ss"),
        _ => None,
    }
}

/// Whether a word is in a list of words with spaces between them.
pub fn is_in(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_name_is_divided_into_words() {
        for name in [
            "patientId",
            "patient_id",
            "PATIENT ID",
            "Patient.Id",
            " patient-id ",
        ] {
            assert_eq!(words(name), ["patient", "id"], "{name}");
        }
        assert_eq!(words("ID"), ["id"]);
        assert!(words("_-.").is_empty());
    }

    #[test]
    fn umlauts_are_two_letters_in_any_spelling() {
        for (name, word) in [
            ("Größe", "groesse"),
            ("GRÖSSE", "groesse"),
            ("GRÖẞE", "groesse"),
            ("Gro\u{308}ße", "groesse"),
            ("Straße", "strasse"),
            ("Beschäftigung", "beschaeftigung"),
            ("Übergewicht", "uebergewicht"),
            ("U\u{308}bergewicht", "uebergewicht"),
            ("Ärztin", "aerztin"),
        ] {
            assert_eq!(words(name), [word], "{name}");
        }
        assert_eq!(words("körperGröße"), ["koerper", "groesse"]);
    }
}
