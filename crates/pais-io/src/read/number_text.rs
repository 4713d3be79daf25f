//! Numbers as a text format writes them, converted to the plain spelling with a point.

use std::borrow::Cow;

use crate::read::text_format::TextFormat;

/// How numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumberText {
    /// Before the fraction.
    pub(crate) decimal: char,
    /// Between groups of three digits.
    pub(crate) thousands: Option<char>,
}

/// A number in a text format, converted to a point and no separators; `None` for text that is not a number in
/// the format.
///
/// ```
/// use pais_io::read::{TextFormat, TextParameters, plain_number};
///
/// let german = TextParameters {
///     delimiter: Some(";".parse()?),
///     decimal: Some(",".parse()?),
///     ..TextParameters::default()
/// };
/// let german = german.format(TextFormat::CSV)?;
/// assert_eq!(plain_number("3,5", &german).as_deref(), Some("3.5"));
/// assert_eq!(plain_number("3.5", &german), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plain_number<'t>(text: &'t str, format: &TextFormat) -> Option<Cow<'t, str>> {
    NumberText::of(format).plain(text)
}

impl NumberText {
    /// How a text format writes numbers.
    pub(super) fn of(format: &TextFormat) -> Self {
        Self {
            decimal: format.decimal().character(),
            thousands: format.thousands().map(|mark| mark.character()),
        }
    }

    /// Whether numbers have a point and no separators, so that no number needs to be converted.
    pub(super) fn is_plain(self) -> bool {
        self.decimal == '.' && self.thousands.is_none()
    }

    /// The number with a point and without separators; `None` for text that is not a number in this format.
    /// There must be three digits between two separators, and one to three before the first separator, the
    /// first of which is not 0.
    pub(crate) fn plain(self, text: &str) -> Option<Cow<'_, str>> {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (mantissa, exponent) = match digits.find(['e', 'E']) {
            Some(at) => digits.split_at(at),
            None => (digits, ""),
        };
        let (whole, fraction) = match mantissa.split_once(self.decimal) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let fraction_digits = fraction.unwrap_or("");
        if !is_digits(fraction_digits) || (whole.is_empty() && fraction_digits.is_empty()) {
            return None;
        }
        let exponent_digits = exponent.get(1..).unwrap_or("");
        let exponent_digits = exponent_digits
            .strip_prefix(['+', '-'])
            .unwrap_or(exponent_digits);
        if !exponent.is_empty() && (exponent_digits.is_empty() || !is_digits(exponent_digits)) {
            return None;
        }
        let is_grouped = self.thousands.is_some_and(|mark| whole.contains(mark));
        let whole = if is_grouped {
            Cow::Owned(self.ungrouped(whole)?)
        } else if is_digits(whole) {
            Cow::Borrowed(whole)
        } else {
            return None;
        };
        if !is_grouped && (self.decimal == '.' || fraction.is_none()) {
            return Some(Cow::Borrowed(text));
        }
        let sign = &text[..text.len() - digits.len()];
        let point = fraction.map_or("", |_| ".");
        let plain = [sign, &whole, point, fraction_digits, exponent].concat();
        Some(Cow::Owned(plain))
    }

    /// A whole number without its separators; `None` where they are in wrong places.
    fn ungrouped(self, whole: &str) -> Option<String> {
        let mut groups = whole.split(self.thousands?);
        let first = groups.next()?;
        if !(1..=3).contains(&first.len()) || !is_digits(first) || first.starts_with('0') {
            return None;
        }
        let mut digits = first.to_owned();
        for group in groups {
            if group.len() != 3 || !is_digits(group) {
                return None;
            }
            digits.push_str(group);
        }
        Some(digits)
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::NumberText;
    use pais_core::taxonomy::interval::number;

    const fn written(decimal: char, thousands: char) -> NumberText {
        NumberText {
            decimal,
            thousands: Some(thousands),
        }
    }

    const PLAIN: NumberText = NumberText {
        decimal: '.',
        thousands: None,
    };

    const COMMA: NumberText = NumberText {
        decimal: ',',
        thousands: None,
    };

    #[test]
    fn a_number_loses_its_separators_and_gets_a_point() {
        for (format, text, plain) in [
            (written('.', ','), "108,429.42", "108429.42"),
            (written('.', ','), "1,234,567", "1234567"),
            (written('.', ','), "1234567.5", "1234567.5"),
            (written('.', ','), "-1,000", "-1000"),
            (written('.', ','), "+999", "+999"),
            (written(',', '.'), "1.234,5", "1234.5"),
            (written(',', '.'), "1.234", "1234"),
            (written(',', '\u{202f}'), "12\u{202f}345,67", "12345.67"),
            (written('.', '\''), "9'999.0", "9999.0"),
            (COMMA, "3,5", "3.5"),
            (COMMA, "-,5", "-.5"),
            (COMMA, "5,", "5."),
            (COMMA, "2,5e-3", "2.5e-3"),
            (PLAIN, "2.5E7", "2.5E7"),
        ] {
            assert_eq!(format.plain(text).as_deref(), Some(plain), "{text}");
        }
    }

    #[test]
    fn separators_in_wrong_places_make_no_number() {
        for text in [
            "1,23",
            "12,34,567",
            "1,2345",
            ",123",
            "1,,234",
            "1234,567",
            "123,",
            "1,234,",
            "0,123",
            "1.234,5",
            "1.5,000",
            "1,234.5,6",
            "1,234e5,0",
            "-,123",
            "--1,234",
        ] {
            assert_eq!(written('.', ',').plain(text), None, "{text}");
        }
        for text in [
            "3.5", "1.234", "1,2,3", ",", "", "-", "e5", "1e", "1e+", " 1", "1 ", "\u{663}",
        ] {
            assert_eq!(COMMA.plain(text), None, "{text:?}");
        }
        for text in ["3,5", "1,234", ".", "NaN", "inf", "0x1", "1_0"] {
            assert_eq!(PLAIN.plain(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn plain_numbers_are_those_that_are_numbers(text in "[+-]{0,2}[0-9.eE]{0,6}[+-]?[0-9]{0,3}") {
            let plain = PLAIN.plain(&text);
            prop_assert_eq!(plain.is_some_and(|it| number(&it).is_some()), number(&text).is_some());
        }

        #[test]
        fn a_written_number_reads_back(
            value in any::<i64>(), fraction in prop::option::of("[0-9]{1,6}"),
            decimal in prop::sample::select(vec!['.', ',']),
            thousands in prop::sample::select(vec![' ', '\'', '\u{a0}', '_']),
        ) {
            let digits = value.unsigned_abs().to_string();
            let mut text = String::new();
            for (at, digit) in digits.char_indices() {
                if at > 0 && (digits.len() - at).is_multiple_of(3) {
                    text.push(thousands);
                }
                text.push(digit);
            }
            let sign = if value < 0 { "-" } else { "" };
            let end = |mark: char| fraction.as_ref().map_or(String::new(), |it| format!("{mark}{it}"));
            let text = format!("{sign}{text}{}", end(decimal));
            let plain = format!("{sign}{digits}{}", end('.'));
            let read = written(decimal, thousands).plain(&text);
            prop_assert_eq!(read.as_deref(), Some(plain.as_str()));
        }
    }
}
