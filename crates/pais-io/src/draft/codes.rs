//! Values of a known shape: codes of diseases, postal codes, addresses of the internet.

/// How many rows of a column have values of each shape.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CodeShapes {
    /// ICD-10: `E11.9`, `E119`.
    pub(super) icd10: u64,
    /// Codes that only ICD-9 has: `V45.1`, `E812`; and its numbers: `250.83`.
    pub(super) icd9: u64,
    /// Of these, those with a letter.
    pub(super) icd9_letters: u64,
    /// Five digits, or five and four.
    pub(super) zip: u64,
    /// Has an `@` between two names.
    pub(super) email: u64,
    /// Five groups of hexadecimal digits.
    pub(super) uuid: u64,
    /// Whole numbers that begin with 0 and have another digit.
    pub(super) leading_zeros: u64,
}

impl CodeShapes {
    /// Counts the rows of a value.
    pub(super) fn add(&mut self, text: &str, rows: u64) {
        let bytes = text.as_bytes();
        let count = |counter: &mut u64, is_shape: bool| {
            if is_shape {
                *counter += rows;
            }
        };
        count(&mut self.icd10, is_icd10(bytes));
        let has_letter = bytes.first().is_some_and(u8::is_ascii_alphabetic);
        let is_icd9 = is_icd9(bytes);
        count(&mut self.icd9, is_icd9);
        count(&mut self.icd9_letters, is_icd9 && has_letter);
        count(&mut self.zip, is_zip(bytes));
        count(&mut self.email, is_email(text));
        count(&mut self.uuid, is_uuid(bytes));
        let is_number = bytes.iter().all(u8::is_ascii_digit);
        count(
            &mut self.leading_zeros,
            is_number && bytes.len() > 1 && bytes[0] == b'0',
        );
    }
}

/// A letter, two characters of which the first is a digit, and up to four after an optional point.
fn is_icd10(text: &[u8]) -> bool {
    let [letter, digit, third, rest @ ..] = text else {
        return false;
    };
    let rest = match rest {
        [b'.', rest @ ..] if !rest.is_empty() => rest,
        [b'.'] => return false,
        rest => rest,
    };
    letter.is_ascii_uppercase()
        && digit.is_ascii_digit()
        && is_code(&[*third])
        && rest.len() <= 4
        && is_code(rest)
}

fn is_code(text: &[u8]) -> bool {
    text.iter()
        .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// Three digits, or `V` and two, or `E` and three, and up to two after a point.
fn is_icd9(text: &[u8]) -> bool {
    let (whole, fraction) = match text.iter().position(|&byte| byte == b'.') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[][..]),
    };
    let digits = match whole {
        [b'V', digits @ ..] if digits.len() == 2 => digits,
        [b'E', digits @ ..] if digits.len() == 3 => digits,
        // Programs cut leading zeros off.
        digits if (1..=3).contains(&digits.len()) => digits,
        _ => return false,
    };
    let is_number = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    is_number(digits) && fraction.len() <= 2 && is_number(fraction) && !text.ends_with(b".")
}

fn is_zip(text: &[u8]) -> bool {
    let is_number = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    match text.len() {
        5 => is_number(text),
        10 => is_number(&text[..5]) && text[5] == b'-' && is_number(&text[6..]),
        _ => false,
    }
}

fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.split_once('@') else {
        return false;
    };
    !name.is_empty() && host.contains('.') && !text.contains(char::is_whitespace)
}

fn is_uuid(text: &[u8]) -> bool {
    text.len() == 36
        && text.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::CodeShapes;

    fn shapes(text: &str) -> CodeShapes {
        let mut found = CodeShapes::default();
        found.add(text, 1);
        found
    }

    #[test]
    fn codes_are_known_by_their_shape() {
        for text in ["E11", "E11.9", "E119", "S72.001A", "C4A.9", "Z99"] {
            assert_eq!(shapes(text).icd10, 1, "{text}");
        }
        for text in ["e11", "E1", "EE1", "E11.", "E11.12345", "11E", "", "E11 9"] {
            assert_eq!(shapes(text).icd10, 0, "{text}");
        }
        for (text, has_letter) in [
            ("250.83", 0),
            ("V45", 1),
            ("V45.1", 1),
            ("E812.0", 1),
            ("8", 0),
        ] {
            let found = shapes(text);
            assert_eq!((found.icd9, found.icd9_letters), (1, has_letter), "{text}");
        }
        for text in ["2500", "V4", "E81", "250.", "250.831", "X12", "", "."] {
            assert_eq!(shapes(text).icd9, 0, "{text}");
        }
        assert_eq!(shapes("91911").zip + shapes("91911-0001").zip, 2);
        assert_eq!(shapes("9191").zip + shapes("91911-001").zip, 0);
        assert_eq!(shapes("a.b@clinic.example").email, 1);
        assert_eq!(shapes("@home").email + shapes("a b@c.d").email, 0);
        assert_eq!(shapes("87ba3fec-791b-4565-87b6-cf9ce1dec850").uuid, 1);
        assert_eq!(shapes("007").leading_zeros, 1);
        assert_eq!(shapes("0").leading_zeros + shapes("70").leading_zeros, 0);
    }
}
