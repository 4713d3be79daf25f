//! Dates as files write them: ISO 8601, and common forms in the words of `strftime`.

/// A way to write dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DateForm {
    /// In the words of `strftime`; `None` for ISO 8601.
    pub(super) format: Option<&'static str>,
    /// Whether it has a time of day.
    pub(super) is_moment: bool,
}

/// The forms that are looked for. Where several fit, the first one is proposed, unless it is a
/// matter of the order of day and month.
pub(super) const FORMS: [DateForm; 34] = [
    iso(false),
    iso(true),
    day("%d.%m.%Y"),
    day("%d/%m/%Y"),
    day("%m/%d/%Y"),
    day("%d-%m-%Y"),
    day("%m-%d-%Y"),
    day("%Y/%m/%d"),
    day("%Y.%m.%d"),
    day("%d.%m.%y"),
    day("%d/%m/%y"),
    day("%m/%d/%y"),
    day("%d %b %Y"),
    day("%d-%b-%Y"),
    day("%d%b%Y"),
    day("%Y%m%d"),
    moment("%d.%m.%Y %H:%M"),
    moment("%d.%m.%Y %H:%M:%S"),
    moment("%d/%m/%Y %H:%M"),
    moment("%d/%m/%Y %H:%M:%S"),
    moment("%m/%d/%Y %H:%M"),
    moment("%m/%d/%Y %H:%M:%S"),
    moment("%d-%m-%Y %H:%M"),
    moment("%d-%m-%Y %H:%M:%S"),
    moment("%m-%d-%Y %H:%M"),
    moment("%m-%d-%Y %H:%M:%S"),
    moment("%Y/%m/%d %H:%M"),
    moment("%Y/%m/%d %H:%M:%S"),
    moment("%d.%m.%y %H:%M"),
    moment("%d.%m.%y %H:%M:%S"),
    moment("%d/%m/%y %H:%M"),
    moment("%m/%d/%y %H:%M"),
    moment("%d-%b-%Y %H:%M:%S"),
    moment("%d%b%Y:%H:%M:%S"),
];

const fn iso(is_moment: bool) -> DateForm {
    let format = None;
    DateForm { format, is_moment }
}

const fn day(format: &'static str) -> DateForm {
    DateForm {
        format: Some(format),
        is_moment: false,
    }
}

const fn moment(format: &'static str) -> DateForm {
    DateForm {
        format: Some(format),
        is_moment: true,
    }
}

impl DateForm {
    /// Whether a text is a date in this form.
    fn fits(self, text: &str) -> bool {
        match self.format {
            Some(format) => fits_format(text.as_bytes(), format.as_bytes()),
            None => fits_iso(text.as_bytes(), self.is_moment),
        }
    }

    /// Whether the month is before the day, where the year is last.
    pub(super) fn is_month_first(self) -> bool {
        self.format.is_some_and(|format| format.starts_with("%m"))
    }

    /// The form that has day and month in the other order; `None` where there is none.
    pub(super) fn swapped(self) -> Option<Self> {
        let format = self.format?;
        let swapped = match format.as_bytes() {
            [b'%', b'd', separator, b'%', b'm', ..] => {
                format!("%m{}%d{}", char::from(*separator), &format[5..])
            }
            [b'%', b'm', separator, b'%', b'd', ..] => {
                format!("%d{}%m{}", char::from(*separator), &format[5..])
            }
            _ => return None,
        };
        let mut forms = FORMS.into_iter();
        forms.find(|form| form.format == Some(swapped.as_str()))
    }
}

/// The forms in which all values of a column are dates.
#[derive(Clone, Copy, Debug)]
pub(super) struct DateForms {
    /// A bit for each form.
    fit: u64,
    is_empty: bool,
}

impl Default for DateForms {
    fn default() -> Self {
        Self {
            fit: (1 << FORMS.len()) - 1,
            is_empty: true,
        }
    }
}

impl DateForms {
    /// Adds a value. A form in which it is no date is no longer one of the column.
    pub(super) fn add(&mut self, text: &str) {
        self.is_empty = false;
        let mut left = self.fit;
        while left != 0 {
            let form = left.trailing_zeros();
            left &= left - 1;
            if !FORMS[form as usize].fits(text) {
                self.fit &= !(1 << form);
            }
        }
    }

    /// The forms that fit all values, in the order of [`FORMS`].
    pub(super) fn all(self) -> impl Iterator<Item = DateForm> {
        let fit = if self.is_empty { 0 } else { self.fit };
        let forms = FORMS.into_iter().enumerate();
        forms.filter_map(move |(index, form)| (fit >> index & 1 == 1).then_some(form))
    }
}

/// Years of dates that are written without separators. Other numbers of eight digits are no dates.
const PLAIN_YEARS: std::ops::RangeInclusive<u32> = 1850..=2100;

fn fits_format(text: &[u8], format: &[u8]) -> bool {
    let (mut at, mut rest) = (0, format);
    let (mut year, mut month, mut day) = (None, None, None);
    // Without separators the number of digits is the only mark of a part.
    let is_plain = format == b"%Y%m%d";
    while let Some((&word, after)) = rest.split_first() {
        let (Some(&kind), b'%') = (after.first(), word) else {
            if text.get(at) != Some(&word) {
                return false;
            }
            (at, rest) = (at + 1, after);
            continue;
        };
        rest = &after[1..];
        if kind == b'b' {
            let Some(found) = text.get(at..at + 3).and_then(month_of) else {
                return false;
            };
            (month, at) = (Some(found), at + 3);
            continue;
        }
        let (least, most) = match kind {
            b'Y' => (4, 4),
            b'y' | b'M' | b'S' => (2, 2),
            _ if is_plain => (2, 2),
            _ => (1, 2),
        };
        let digits = text[at.min(text.len())..].iter().take(most);
        let digits = digits.take_while(|byte| byte.is_ascii_digit()).count();
        if digits < least {
            return false;
        }
        let value = number(&text[at..at + digits]);
        at += digits;
        match kind {
            b'Y' => year = Some(value),
            b'y' => year = Some(2000 + value),
            b'm' => month = Some(value),
            b'd' => day = Some(value),
            b'H' if value < 24 => {}
            b'M' | b'S' if value < 60 => {}
            _ => return false,
        }
    }
    let (Some(year), Some(month), Some(day)) = (year, month, day) else {
        return false;
    };
    at == text.len() && (!is_plain || PLAIN_YEARS.contains(&year)) && is_day(year, month, day)
}

/// A day alone is a day and the midnight of one is too; any of them is a moment.
fn fits_iso(text: &[u8], is_moment: bool) -> bool {
    let Some((date, time)) = text.split_at_checked(10) else {
        return false;
    };
    let digits = |range: std::ops::Range<usize>| {
        let part = &date[range];
        part.iter().all(u8::is_ascii_digit).then(|| number(part))
    };
    let (Some(year), Some(month), Some(day)) = (digits(0..4), digits(5..7), digits(8..10)) else {
        return false;
    };
    if date[4] != b'-' || date[7] != b'-' || !is_day(year, month, day) {
        return false;
    }
    match time {
        [] => true,
        [b'T' | b't' | b' ', time @ ..] => fits_iso_time(time, !is_moment),
        _ => false,
    }
}

/// `10:15`, with seconds, a fraction of them, and an offset.
fn fits_iso_time(text: &[u8], only_midnight: bool) -> bool {
    let zone = text
        .iter()
        .position(|byte| matches!(byte, b'Z' | b'z' | b'+' | b'-'));
    let (time, offset) = text.split_at(zone.unwrap_or(text.len()));
    let is_offset = match offset {
        [] | [b'Z' | b'z'] => true,
        [_, rest @ ..] => {
            let digits = rest.iter().filter(|byte| byte.is_ascii_digit()).count();
            matches!((rest.len(), digits), (2, 2) | (4, 4) | (5, 4))
                && (rest.len() < 5 || rest[2] == b':')
        }
    };
    let fits = |format: &[u8]| {
        time.iter().zip(format).all(|(byte, word)| match word {
            b'0' => byte.is_ascii_digit(),
            word => byte == word,
        })
    };
    let is_time = match time.len() {
        5 => fits(b"00:00"),
        8 => fits(b"00:00:00"),
        10..=18 => {
            fits(b"00:00:00")
                && matches!(time[8], b'.' | b',')
                && time[9..].iter().all(u8::is_ascii_digit)
        }
        _ => false,
    };
    let is_midnight = || offset.is_empty() && !time.iter().any(|byte| (b'1'..=b'9').contains(byte));
    is_time
        && is_offset
        && number(&time[..2]) < 24
        && number(&time[3..5]) < 60
        && (time.len() < 8 || number(&time[6..8]) < 60)
        && (!only_midnight || is_midnight())
}

const MONTHS: [&[u8; 3]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];

fn month_of(text: &[u8]) -> Option<u32> {
    let found = MONTHS
        .iter()
        .position(|month| text.eq_ignore_ascii_case(*month));
    found.map(|index| index as u32 + 1)
}

/// The value of at most four digits.
fn number(digits: &[u8]) -> u32 {
    digits
        .iter()
        .fold(0, |value, digit| value * 10 + u32::from(digit - b'0'))
}

fn is_day(year: u32, month: u32, day: u32) -> bool {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(is_leap),
        1..=12 => 31,
        _ => 0,
    };
    year > 0 && (1..=days).contains(&day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DateForms, FORMS};

    fn forms(values: &[&str]) -> Vec<&'static str> {
        let mut found = DateForms::default();
        values.iter().for_each(|value| found.add(value));
        found
            .all()
            .map(|form| {
                form.format
                    .unwrap_or(if form.is_moment { "moment" } else { "day" })
            })
            .collect()
    }

    #[test]
    fn values_decide_the_form() {
        for (values, expected) in [
            (&["1987-09-03", "2000-02-29"][..], &["day", "moment"][..]),
            (&["1987-09-03 00:00:00"], &["day", "moment"]),
            (&["1987-09-03", "1987-09-03T10:15:00.5+02:00"], &["moment"]),
            (&["1987-09-03 10:15"], &["moment"]),
            (&["03.09.1987", "31.12.1999"], &["%d.%m.%Y"]),
            (&["3.9.1987"], &["%d.%m.%Y"]),
            (&["03/09/1987", "31/12/1999"], &["%d/%m/%Y"]),
            (&["03/09/1987", "12/31/1999"], &["%m/%d/%Y"]),
            (&["03/09/1987"], &["%d/%m/%Y", "%m/%d/%Y"]),
            (&["03-SEP-1987"], &["%d-%b-%Y"]),
            (&["03SEP1987"], &["%d%b%Y"]),
            (&["19870903"], &["%Y%m%d"]),
            (&["31.12.99"], &["%d.%m.%y"]),
            (&["31.12.1999 23:59"], &["%d.%m.%Y %H:%M"]),
            (
                &["1/2/1999 3:04:05"],
                &["%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S"],
            ),
        ] {
            assert_eq!(forms(values), expected, "{values:?}");
        }
    }

    #[test]
    fn other_text_is_no_date() {
        for text in [
            "",
            "1987",
            "1987-9-3",
            "1987-13-01",
            "1987-02-29",
            "29.02.1987",
            "31.04.2000",
            "1987-09-03x",
            "1987-09-03T",
            "1987-09-03 25:00",
            "1987-09-03T10:15:00+2",
            "12345678",
            "03.09.1987 24:00",
            "03.09.198",
            "3.9",
            "250.83",
            "\u{661}9870903",
            "1987-09-0\u{663}",
            "1987-09-03T10:1\u{663}",
            "03/\u{663}/1987",
        ] {
            assert!(forms(&[text]).is_empty(), "{text:?}");
        }
        assert!(forms(&[]).is_empty());
    }

    #[test]
    fn forms_that_differ_in_the_order_of_day_and_month_are_pairs() {
        let paired = FORMS.into_iter().filter(|form| form.swapped().is_some());
        let mut count = 0;
        for form in paired {
            let other = form.swapped().unwrap();
            assert_eq!(other.swapped(), Some(form));
            assert_ne!(form.is_month_first(), other.is_month_first());
            count += 1;
        }
        assert_eq!(count, 16);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9a-zA-Z:./ T+\u{e9}-]{0,24}") {
            let mut found = DateForms::default();
            found.add(&text);
            prop_assert!(found.all().count() <= 4);
        }
    }
}
