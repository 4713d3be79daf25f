//! The canonical form of text: of cells, labels and listed values that are compared.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Trimmed text in Unicode NFC. Text that already has this form is borrowed.
pub fn canonical_text(text: &str) -> Cow<'_, str> {
    let trimmed = text.trim();
    if trimmed.is_ascii() || is_nfc_quick(trimmed.chars()) == IsNormalized::Yes {
        return Cow::Borrowed(trimmed);
    }
    Cow::Owned(trimmed.nfc().collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::canonical_text;

    #[test]
    fn text_is_trimmed_and_composed() {
        for (text, canonical) in [
            ("HIV", "HIV"),
            ("\u{a0}\tHIV \n", "HIV"),
            ("Bo\u{308}se", "B\u{f6}se"),
            ("B\u{f6}se", "B\u{f6}se"),
            (" \u{2003} ", ""),
            ("a b", "a b"),
        ] {
            assert_eq!(canonical_text(text), canonical);
        }
    }

    proptest! {
        #[test]
        fn canonical_text_is_its_own_canonical_form(text in any::<String>()) {
            let canonical = canonical_text(&text).into_owned();
            prop_assert_eq!(canonical_text(&canonical), canonical.as_str());
        }
    }
}
