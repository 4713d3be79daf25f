//! Dates as files write them: ISO 8601, and common forms in the notation of `strftime`.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use pais_core::calendar::{DateFormat, read_day, read_moment};

/// A way to write dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DateForm {
    /// In the notation of `strftime`; `None` for ISO 8601.
    pub(super) format: Option<&'static str>,
    /// Whether it has a time of day.
    pub(super) is_moment: bool,
}

/// The forms that are tried. If several fit, the first one is proposed, unless they differ only in the order of
/// day and month.
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
    /// Adds a value. A form in which it is not a date is dropped.
    pub(super) fn add(&mut self, text: &str) {
        self.is_empty = false;
        let mut left = self.fit;
        while left != 0 {
            let form = left.trailing_zeros();
            left &= left - 1;
            if !fits(form as usize, text) {
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

/// Years of dates that are written without separators, which have eight digits. Other numbers of eight digits
/// are not dates.
const PLAIN: &str = "%Y%m%d";
const PLAIN_DAYS: RangeInclusive<&str> = "18500101"..="21001231";

/// The readers of [`FORMS`]; `None` for ISO 8601.
static READERS: LazyLock<Vec<Option<DateFormat>>> = LazyLock::new(|| {
    let reader = |form: DateForm| {
        let new = if form.is_moment {
            DateFormat::of_moments
        } else {
            DateFormat::of_days
        };
        new(form.format?).ok()
    };
    FORMS.into_iter().map(reader).collect()
});

/// Whether a text is a date in a form.
fn fits(form: usize, text: &str) -> bool {
    let DateForm { format, is_moment } = FORMS[form];
    // A reader is lenient about spaces; the proposed form is the one that is written.
    let spaces = |text: &str| text.trim().matches(' ').count();
    if format.is_some_and(|format| spaces(format) != spaces(text)) {
        return false;
    }
    match &READERS[form] {
        Some(_) if format == Some(PLAIN) && !(text.len() == 8 && PLAIN_DAYS.contains(&text)) => {
            false
        }
        Some(reader) if is_moment => reader.moment(text).is_ok(),
        Some(reader) => reader.day(text).is_ok(),
        None if is_moment => read_moment(text).is_ok(),
        // The midnight of a day is one too; with an offset it is a moment.
        None => read_day(text).is_ok() && !text[10..].contains(['Z', 'z', '+', '-']),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DateForms, FORMS, READERS};

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
    fn each_form_has_a_reader() {
        for (form, reader) in FORMS.iter().zip(READERS.iter()) {
            assert_eq!(form.format.is_some(), reader.is_some(), "{form:?}");
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
