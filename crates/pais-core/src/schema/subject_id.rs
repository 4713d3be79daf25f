//! The canonical form of a person's id: programs write the same id as a number and as text.

use std::borrow::Cow;

use crate::canonical_text::canonical_text;

/// Maximum number of bytes of an id that is a number. A 64-bit floating-point number has up to 24, and the hash
/// of 32 hexadecimal digits that is stored in place of an id is never a number.
const MOST_BYTES: usize = 31;

/// The canonical form of an id: a plain decimal number by its exact value, so that `1`, `1.0` and `1e0` are one
/// person; other text trimmed and in Unicode NFC. Numbers with leading zeros are text, because `007` and `7`
/// may be two persons.
pub(super) fn canonical_subject(text: &str) -> Cow<'_, str> {
    let text = canonical_text(text);
    match canonical_decimal(&text) {
        Some(number) if *number != *text => Cow::Owned(number),
        _ => text,
    }
}

/// The form of a plain decimal number, exact in all digits; `None` for other text.
fn canonical_decimal(text: &str) -> Option<String> {
    if text.len() > MOST_BYTES {
        return None;
    }
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (decimal, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((decimal, exponent)) => (decimal, exponent.parse::<i32>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, part) = decimal.split_once('.').unwrap_or((decimal, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let has_leading_zero = whole.len() > 1 && whole.starts_with('0');
    if whole.is_empty() || has_leading_zero || !is_digits(whole) || !is_digits(part) {
        return None;
    }
    // The value is `digits`, times ten to the power of `power`.
    let digits = [whole, part].concat();
    let digits = digits.trim_start_matches('0');
    let kept = digits.trim_end_matches('0');
    if kept.is_empty() {
        return Some("0".to_owned());
    }
    let power = i64::from(exponent) - part.len() as i64 + (digits.len() - kept.len()) as i64;
    let point = kept.len() as i64 + power;
    let most = MOST_BYTES as i64 - 3;
    Some(if power >= 0 && point <= most {
        format!("{sign}{kept}{}", "0".repeat(power as usize))
    } else if power < 0 && point > 0 {
        let (whole, part) = kept.split_at(point as usize);
        format!("{sign}{whole}.{part}")
    } else if power < 0 && power >= -most {
        format!("{sign}0.{}{kept}", "0".repeat(-point as usize))
    } else {
        format!("{sign}{kept}e{power}")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::canonical_subject;

    #[test]
    fn an_id_is_one_person_however_it_is_written() {
        for (texts, id) in [
            (vec!["1", "1.0", "1e0", " 1 ", "+1", "1.", "10e-1"], "1"),
            (vec!["0", "-0", "0.0", "0e9"], "0"),
            (vec!["1.50", "15e-1"], "1.5"),
            (
                vec!["1e17", "100000000000000000", "1E+17"],
                "100000000000000000",
            ),
            (vec!["1e999", "10e998"], "1e999"),
            (vec!["0.00001", "1e-5"], "0.00001"),
            (vec!["Bo\u{308}se", " B\u{f6}se"], "B\u{f6}se"),
        ] {
            for text in texts {
                assert_eq!(canonical_subject(text), id, "{text}");
            }
        }
        // Text, in which each character counts.
        for text in [
            "007", "00", "007.0", "-01", "p1", "P1", "1,0", ".5", "e5", "-", "1e", "NaN", "",
        ] {
            assert_eq!(canonical_subject(text), text);
        }
    }

    #[test]
    fn ids_that_a_floating_point_number_does_not_tell_apart_are_two_persons() {
        for id in [
            "9007199254740993",
            "12345678901234567890",
            "12345678901234567891",
            "0123456789abcdef0123456789abcdef",
            "12345678901234567890123456789000",
            "123456789012345678901234567890e2",
        ] {
            assert_eq!(canonical_subject(id), id);
        }
    }

    proptest! {
        #[test]
        fn the_form_is_its_own_form_and_has_the_same_value(
            text in "[-+]?[0-9]{1,14}(\\.[0-9]{0,14})?([eE][-+]?[0-9]{1,6})?"
        ) {
            let form = canonical_subject(&text).into_owned();
            prop_assert_eq!(canonical_subject(&form), form.as_str());
            prop_assert_eq!(form.parse::<f64>().unwrap(), text.parse::<f64>().unwrap());
        }

        #[test]
        fn zeros_at_the_end_and_exponents_do_not_matter(
            whole in 0..1_000_000u64, part in "[0-9]{0,5}", zeros in 0..4usize, shift in -9..9i32,
        ) {
            let (one, zeros) = (format!("{whole}.{part}"), "0".repeat(zeros));
            let longer = format!("{one}{zeros}e0");
            prop_assert_eq!(canonical_subject(&longer), canonical_subject(&one));
            prop_assume!(whole > 0);
            let shifted = format!("{one}e{shift}");
            let digits = format!("{whole}{part}e{}", shift - part.len() as i32);
            prop_assert_eq!(canonical_subject(&digits), canonical_subject(&shifted));
        }
    }
}
