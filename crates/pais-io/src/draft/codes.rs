//! Values of a known shape: codes of diseases, postal codes, numbers of persons, addresses.

/// How many rows of a column have values of each shape.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CodeShapes {
    /// ICD-10: `E11.9`, `E119`.
    pub(super) icd10: u64,
    /// Codes that only ICD-9 has: `V45.1`, `E812`; and its numbers: `250.83`.
    pub(super) icd9: u64,
    /// Of these, those with a letter.
    pub(super) icd9_letters: u64,
    /// ICD-9 without its point: `25083`, `V451`, `E8120`.
    pub(super) icd9_plain: u64,
    /// Of these, those with a letter.
    pub(super) icd9_plain_letters: u64,
    /// Five digits, or five and four.
    pub(super) zip: u64,
    /// Has an `@` between two names.
    pub(super) email: u64,
    /// Five groups of hexadecimal digits.
    pub(super) uuid: u64,
    /// At least twelve hexadecimal digits, letters among them.
    pub(super) hex: u64,
    /// One to four letters and at least four digits: `S99984539`.
    pub(super) prefixed: u64,
    /// A social security number of the United States: `078-05-1120`.
    pub(super) ssn: u64,
    /// A telephone number with separators or a plus: `+41 44 668 18 00`.
    pub(super) phone: u64,
    /// An address of IPv4.
    pub(super) ip: u64,
    /// Begins with `http://`, `https://` or `www.`.
    pub(super) url: u64,
    /// Two or three short numbers with slashes, which are no items: `03/2025`, `24/12`, `120/80`.
    pub(super) slashed: u64,
    /// Whole numbers that begin with 0 and have another digit.
    pub(super) leading_zeros: u64,
    /// Whole numbers that a program wrote with a fraction of one zero: `91911.0`.
    pub(super) point_zero: u64,
    /// Numbers with another fraction, of which `0.00` is one.
    pub(super) fractions: u64,
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
        let is_plain = is_icd9_plain(bytes);
        count(&mut self.icd9_plain, is_plain);
        count(&mut self.icd9_plain_letters, is_plain && has_letter);
        count(&mut self.hex, is_hex(bytes));
        count(&mut self.prefixed, is_prefixed(bytes));
        count(&mut self.ssn, is_ssn(bytes));
        count(&mut self.phone, is_phone(bytes));
        count(&mut self.ip, text.parse::<std::net::Ipv4Addr>().is_ok());
        let begins = |start: &str| text.get(..start.len()).is_some_and(|it| it == start);
        let is_url = ["http://", "https://", "www."].into_iter().any(begins);
        count(&mut self.url, is_url);
        if let Some((whole, fraction)) = text.split_once(['.', ',']) {
            let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
            let is_written = !fraction.is_empty() && is_number(fraction);
            let is_whole = is_number(whole.trim_start_matches('-'));
            count(
                &mut self.point_zero,
                is_written && is_whole && fraction == "0",
            );
            count(&mut self.fractions, is_written && fraction != "0");
        }
        count(&mut self.zip, is_zip(bytes));
        count(&mut self.email, is_email(text));
        count(&mut self.uuid, is_uuid(bytes));
        count(&mut self.slashed, is_slashed(text));
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

/// Three to five digits, or `V` and two to four, or `E` and three to four.
fn is_icd9_plain(text: &[u8]) -> bool {
    let (digits, least, most) = match text {
        [b'V', digits @ ..] => (digits, 2, 4),
        [b'E', digits @ ..] => (digits, 3, 4),
        digits => (digits, 3, 5),
    };
    (least..=most).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
}

fn is_hex(text: &[u8]) -> bool {
    text.len() >= 12
        && text.iter().all(u8::is_ascii_hexdigit)
        && text.iter().any(u8::is_ascii_alphabetic)
        && text.iter().any(u8::is_ascii_digit)
}

fn is_prefixed(text: &[u8]) -> bool {
    let letters = text
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let digits = &text[letters..];
    let digits = digits.strip_prefix(b"-").unwrap_or(digits);
    (1..=4).contains(&letters) && digits.len() >= 4 && digits.iter().all(u8::is_ascii_digit)
}

fn is_ssn(text: &[u8]) -> bool {
    text.len() == 11
        && text.iter().enumerate().all(|(at, byte)| match at {
            3 | 6 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

fn is_phone(text: &[u8]) -> bool {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_mark = |byte: &u8| matches!(byte, b' ' | b'(' | b')' | b'-' | b'/' | b'.');
    let plain = text.strip_prefix(b"+");
    let rest = plain.unwrap_or(text);
    let marks = rest.iter().filter(|byte| is_mark(byte)).count();
    let begins = rest
        .first()
        .is_some_and(|byte| byte.is_ascii_digit() || *byte == b'(');
    (9..=15).contains(&digits)
        && begins
        && digits + marks == rest.len()
        && (plain.is_some() || (marks >= 2 && !is_date_like(text)))
}

/// Whether a text begins like a date of ISO 8601, whose digits have separators too.
fn is_date_like(text: &[u8]) -> bool {
    text.len() >= 10 && text[..4].iter().all(u8::is_ascii_digit) && matches!(text[4], b'-' | b'/')
}

fn is_slashed(text: &str) -> bool {
    let is_short = |part: &str| {
        let part = part.trim();
        (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    (1..=2).contains(&text.matches('/').count()) && text.split('/').all(is_short)
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
        for (text, has_letter) in [("25083", 0), ("486", 0), ("V451", 1), ("E8120", 1)] {
            let found = shapes(text);
            let plain = (found.icd9_plain, found.icd9_plain_letters);
            assert_eq!(plain, (1, has_letter), "{text}");
        }
        for text in ["25", "250830", "V4", "E81", "X123", ""] {
            assert_eq!(shapes(text).icd9_plain, 0, "{text}");
        }
        assert_eq!(shapes("00013D2EFD8E45D1").hex, 1);
        assert_eq!(
            shapes("196661176988405").hex + shapes("deadbeefcafe").hex,
            0
        );
        assert_eq!(
            shapes("S99984539").prefixed + shapes("MRN-10042").prefixed,
            2
        );
        assert_eq!(shapes("V45").prefixed + shapes("99984539").prefixed, 0);
        assert_eq!(shapes("999-47-2873").ssn, 1);
        assert_eq!(shapes("999-47-287").ssn, 0);
        assert_eq!(
            shapes("+41 44 668 18 00").phone + shapes("(555) 010-9999").phone,
            2
        );
        for text in ["2016-03-04 10:15", "123456789", "12-34", "999.5"] {
            assert_eq!(shapes(text).phone, 0, "{text}");
        }
        assert_eq!(shapes("10.0.0.7").ip + shapes("10.0.7").ip, 1);
        assert_eq!(
            shapes("https://clinic.example").url + shapes("clinic").url,
            1
        );
        assert_eq!(
            shapes("91911.0").point_zero + shapes("4000.00").point_zero,
            1
        );
        assert_eq!(shapes("4000.00").fractions + shapes("91911.0").fractions, 1);
        assert_eq!(shapes("91911").zip + shapes("91911-0001").zip, 2);
        assert_eq!(shapes("9191").zip + shapes("91911-001").zip, 0);
        assert_eq!(shapes("a.b@clinic.example").email, 1);
        assert_eq!(shapes("@home").email + shapes("a b@c.d").email, 0);
        assert_eq!(shapes("87ba3fec-791b-4565-87b6-cf9ce1dec850").uuid, 1);
        for text in [
            "03/2025",
            "3/25",
            "24/12",
            "120/80",
            "31/02/2020",
            "120 / 80",
        ] {
            assert_eq!(shapes(text).slashed, 1, "{text}");
        }
        for text in ["03", "120/", "1/2/3/4", "10509002/65363002", "a/b"] {
            assert_eq!(shapes(text).slashed, 0, "{text}");
        }
        assert_eq!(shapes("007").leading_zeros, 1);
        assert_eq!(shapes("0").leading_zeros + shapes("70").leading_zeros, 0);
    }
}
