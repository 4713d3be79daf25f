//! Texts that a reader cannot tell apart: characters that are not shown, and other shapes of the
//! same letters.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// The form in which texts that look alike to a reader are compared: without white
/// space around it and default-ignorable characters, such as zero-width spaces and soft hyphens,
/// and in Unicode NFKC, so that full-width letters are letters.
///
/// Superscripts, subscripts and fractions stay, because `10²` is not `102`. ASCII text is borrowed.
/// The form is for comparison only; it is never released.
pub fn visible_text(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text.trim());
    }
    let mut visible = String::with_capacity(text.len());
    let mut rest: String = text.chars().filter(|it| !is_ignorable(*it)).collect();
    while let Some(at) = rest.find(is_number_form) {
        let after = rest.split_off(at);
        visible.extend(rest.nfkc());
        let mut characters = after.chars();
        visible.extend(characters.next());
        rest = characters.as_str().to_owned();
    }
    visible.extend(rest.nfkc());
    let trimmed = visible.trim();
    Cow::Owned(if trimmed.len() == visible.len() {
        visible
    } else {
        trimmed.to_owned()
    })
}

/// The form in which ids are compared to find those that may be spelled in two ways: the visible text in lower
/// case, each number in it without leading zeros.
pub(crate) fn id_without_case_and_zeros(id: &str) -> String {
    let lower = visible_text(id).to_lowercase();
    let mut form = String::with_capacity(lower.len());
    let mut characters = lower.chars().peekable();
    let mut is_in_number = false;
    while let Some(character) = characters.next() {
        let is_leading_zero = character == '0' && !is_in_number;
        let is_followed = characters.peek().is_some_and(char::is_ascii_digit);
        is_in_number = character.is_ascii_digit() && !(is_leading_zero && is_followed);
        if !(is_leading_zero && is_followed) {
            form.push(character);
        }
    }
    form
}

/// The form in which the values of a column are compared to find those that may be spelled in two ways: the
/// visible text in lower case, without spaces and punctuation.
///
/// A minus at the end stays, because `HIV-` is not `HIV`, and so do all characters of a text without letters,
/// because `1.5` is not `15`.
pub(crate) fn value_without_case_and_punctuation(value: &str) -> String {
    let lower = visible_text(value).to_lowercase();
    if !lower.contains(char::is_alphabetic) {
        return lower;
    }
    let is_left_out = |it: char| it.is_whitespace() || is_punctuation(it);
    let end = lower.trim_end_matches(|it| it != '-' && is_left_out(it));
    // `E11.-` is the ICD category E11.
    let is_negative = end.ends_with('-') && !end.ends_with(".-");
    let kept = lower.chars().filter(|it| !is_left_out(*it));
    kept.chain(is_negative.then_some('-')).collect()
}

/// Whether a character separates or marks parts of a value. Signs such as `+` and `<` do not: they distinguish
/// values.
fn is_punctuation(character: char) -> bool {
    matches!(
        character,
        '.' | ','
            | ';'
            | ':'
            | '-'
            | '_'
            | '/'
            | '\''
            | '"'
            | '('
            | ')'
            | '['
            | ']'
            | '!'
            | '*'
            | '\u{b7}'
            | '\u{2010}'..='\u{2015}'
            | '\u{2018}'..='\u{201f}'
    )
}

/// Whether a character has no shape of its own: Unicode's property `Default_Ignorable_Code_Point`.
fn is_ignorable(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether a character is a superscript, a subscript or a fraction, which NFKC makes plain digits.
fn is_number_form(character: char) -> bool {
    matches!(
        character,
        '\u{b2}' | '\u{b3}' | '\u{b9}' | '\u{bc}'..='\u{be}' | '\u{2070}'..='\u{209f}'
            | '\u{2150}'..='\u{215f}' | '\u{2189}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{id_without_case_and_zeros, value_without_case_and_punctuation, visible_text};

    #[test]
    fn what_is_not_shown_and_other_shapes_make_no_other_text() {
        for text in [
            "HIV",
            " H\u{200b}IV\u{feff}",
            "H\u{ad}I\u{2060}V",
            "\u{ff28}\u{ff29}\u{ff36}",
            "\u{1d407}\u{1d408}\u{1d415}",
            "\u{202e}HIV\u{202c}",
            "H\u{fe0f}IV\u{e0041}",
        ] {
            assert_eq!(visible_text(text), "HIV", "{text:?}");
        }
        assert_eq!(visible_text("hepatitis\u{a0}B"), "hepatitis B");
        assert_eq!(visible_text("Bo\u{308}se"), "B\u{f6}se");
        assert_eq!(visible_text("\u{200b}"), "");
    }

    #[test]
    fn powers_and_fractions_are_no_other_numbers() {
        for (text, other) in [
            ("10\u{b2}", "102"),
            ("1\u{bd}", "11/2"),
            ("H\u{2082}", "H2"),
        ] {
            assert_ne!(visible_text(text), visible_text(other));
            assert_eq!(visible_text(text), text);
        }
        assert_eq!(visible_text("\u{ff11}0\u{b2}\u{200b}"), "10\u{b2}");
    }

    #[test]
    fn ids_in_other_case_and_with_leading_zeros_are_alike() {
        for (one, other) in [
            ("p1", "P1"),
            ("007", "7"),
            ("P-0012", "p-12"),
            ("00", "0"),
            ("\u{ff30}1", "p1"),
        ] {
            assert_eq!(
                id_without_case_and_zeros(one),
                id_without_case_and_zeros(other)
            );
        }
        for (one, other) in [
            ("70", "7"),
            ("p1", "p2"),
            ("100", "1"),
            ("0", ""),
            ("1005", "15"),
        ] {
            assert_ne!(
                id_without_case_and_zeros(one),
                id_without_case_and_zeros(other)
            );
        }
    }

    #[test]
    fn values_in_other_case_and_punctuation_are_alike() {
        let form = value_without_case_and_punctuation;
        for (one, other) in [
            ("B20", "b20"),
            ("B20", "B20."),
            ("B20", "B 20"),
            ("E11.9", "E119"),
            ("E11", "E11.-"),
            ("Hepatitis-C", "hepatitis\u{a0}c"),
            ("G63.2", "G63.2*"),
        ] {
            assert_eq!(form(one), form(other), "{one} {other}");
        }
        for (one, other) in [
            ("HIV+", "HIV-"),
            ("HIV", "HIV-"),
            ("HIV", "HIV (-)"),
            ("A", "A+"),
            ("1.5", "15"),
            ("<5", ">5"),
            ("B20", "B2"),
            ("grade 1", "grade 01"),
        ] {
            assert_ne!(form(one), form(other), "{one} {other}");
        }
    }

    proptest! {
        #[test]
        fn a_visible_text_is_its_own_form(text in any::<String>()) {
            let visible = visible_text(&text).into_owned();
            prop_assert_eq!(visible_text(&visible), visible.as_str());
        }
    }
}
