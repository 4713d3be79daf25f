//! The words in a column name.

/// The words of a name, in lower case: `patientId`, `patient_id` and `PATIENT ID` have the same words. At most
/// 200 characters are read.
///
/// ```
/// use pais_core::column_name::words;
///
/// assert_eq!(words("patientId"), ["patient", "id"]);
/// assert_eq!(words("PATIENT-ID"), ["patient", "id"]);
/// ```
pub fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for character in name.chars().take(200) {
        let begins = character.is_uppercase() && was_lower;
        if (begins || !character.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        }
        was_lower = character.is_lowercase();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
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
}
