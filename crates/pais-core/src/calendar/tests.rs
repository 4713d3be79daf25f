use proptest::prelude::*;

use super::{
    DateFormat, DateFormatError, NotADate, is_canonical_day, is_canonical_moment, read_day,
    read_moment, write_day, write_moment,
};

/// 0001-01-01 and 9999-12-31 as days since 1970-01-01.
const DAYS: std::ops::RangeInclusive<i64> = -719_162..=2_932_896;

/// The first and the last millisecond of these years.
const MOMENTS: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;

fn day(days: i64) -> String {
    let mut text = String::new();
    write_day(&mut text, days).unwrap();
    text
}

fn moment(milliseconds: i64) -> String {
    let mut text = String::new();
    write_moment(&mut text, milliseconds).unwrap();
    text
}

#[test]
fn every_day_of_the_years_1_to_9999_reads_back() {
    let mut previous = String::new();
    for days in DAYS {
        let text = day(days);
        assert_eq!(read_day(&text), Ok(days), "{text}");
        assert!(previous < text && is_canonical_day(&text), "{text}");
        previous = text;
    }
    assert_eq!(day(*DAYS.start()), "0001-01-01");
    assert_eq!(day(*DAYS.end()), "9999-12-31");
    assert_eq!(day(0), "1970-01-01");
    // The bounds are not dates, so that no reader returns a number that is written otherwise.
    assert_eq!(read_day("0000-12-31"), Err(NotADate::Calendar));
    assert_eq!(day(DAYS.end() + 1), "2932897");
}

#[test]
fn a_moment_has_one_form() {
    for (text, canonical) in [
        ("1987-09-03T10:15:00", "1987-09-03T10:15:00"),
        ("1987-09-03 10:15", "1987-09-03T10:15:00"),
        ("1987-09-03t10:15:00z", "1987-09-03T10:15:00"),
        ("1987-09-03T10:15:00Z", "1987-09-03T10:15:00"),
        ("1987-09-03T10:15:00+02:00", "1987-09-03T08:15:00"),
        ("1987-09-03T10:15:00+0200", "1987-09-03T08:15:00"),
        ("1987-09-03 22:15-02", "1987-09-04T00:15:00"),
        ("1987-09-03T10:15:00.500", "1987-09-03T10:15:00.5"),
        ("1987-09-03T10:15:00,123456789", "1987-09-03T10:15:00.123"),
        ("1987-09-03T10:15:00.000", "1987-09-03T10:15:00"),
        ("1969-12-31T23:59:59.999", "1969-12-31T23:59:59.999"),
        ("1987-09-03", "1987-09-03T00:00:00"),
    ] {
        assert_eq!(moment(read_moment(text).unwrap()), canonical, "{text}");
        assert!(is_canonical_moment(canonical));
        assert_eq!(is_canonical_moment(text), text == canonical, "{text}");
    }
}

#[test]
fn what_is_not_in_the_calendar_is_no_date() {
    for text in [
        "1987-02-30",
        "1987-13-01",
        "1900-02-29",
        "0000-01-01",
        "1987-09-03T24:00:00",
        "1987-09-03T10:60:00",
        "1987-09-03T10:15:60",
        "1987-09-03T10:15:00+24:00",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
    ] {
        assert_eq!(read_moment(text), Err(NotADate::Calendar), "{text}");
    }
    for text in [
        "",
        "1987",
        "1987-9-3",
        "87-09-03",
        "03.09.1987",
        "1987-09-03T",
        "1987-09-03T10",
        "1987-09-03T10:15:00+",
        "1987-09-03T10:15:00+2",
        "1987-09-03T10:15:00.",
        "1987-09-03T10:15:00:00",
        "1987-09-03X10:15:00",
        "+987-09-03",
        "1987-09-0\u{661}",
        "1987\u{2d}09\u{2010}03",
    ] {
        assert_eq!(read_moment(text), Err(NotADate::Form), "{text}");
        assert_eq!(read_day(text), Err(NotADate::Form), "{text}");
    }
    assert_eq!(read_day("1987-02-30"), Err(NotADate::Calendar));
}

#[test]
fn the_midnight_of_a_day_is_the_day() {
    let days = read_day("1987-09-03");
    assert_eq!(read_day("1987-09-03T00:00:00"), days);
    assert_eq!(read_day("1987-09-03 00:00:00.000Z"), days);
    assert_eq!(read_day("1987-09-03T10:15:00"), Err(NotADate::Form));
}

#[test]
fn formats_are_those_of_strftime() {
    let of_days = |format: &str, text: &str| DateFormat::of_days(format).unwrap().day(text);
    for (format, text) in [
        ("%d.%m.%Y", "03.09.1987"),
        ("%d.%m.%Y", "3.9.1987"),
        ("%m/%d/%Y", "09/03/1987"),
        ("%d %B %Y", "3 September 1987"),
        ("%d-%b-%y", "03-Sep-87"),
        ("%Y%m%d", "19870903"),
        ("%Y-%j", "1987-246"),
        ("%d.%m.%Y %H:%M", "03.09.1987 10:15"),
    ] {
        assert_eq!(of_days(format, text), read_day("1987-09-03"), "{format}");
    }
    // Two digits are not a year of the first century.
    assert_eq!(of_days("%d.%m.%Y", "03.09.87"), Err(NotADate::Form));
    assert_eq!(of_days("%d.%m.%Y", "03.09.0087"), read_day("0087-09-03"));
    assert_eq!(of_days("%d.%m.%Y", "30.02.1987"), Err(NotADate::Calendar));
    assert_eq!(of_days("%d.%m.%Y", "03.09.10001"), Err(NotADate::Form));

    let moment = |format: &str, text: &str| DateFormat::of_moments(format).unwrap().moment(text);
    let expected = read_moment("1987-09-03T10:15:00");
    for (format, text) in [
        ("%d.%m.%Y %H:%M", "03.09.1987 10:15"),
        ("%d.%m.%Y %H:%M:%S%.f", "03.09.1987 10:15:00.000"),
        ("%m/%d/%Y %I:%M %p", "09/03/1987 10:15 AM"),
        ("%d.%m.%Y %H:%M %z", "03.09.1987 12:15 +0200"),
        ("%s", "557662500"),
    ] {
        assert_eq!(moment(format, text), expected, "{format}");
    }
}

#[test]
fn a_format_that_does_not_determine_a_date_is_refused() {
    let of_days = |format: &str| DateFormat::of_days(format).unwrap_err();
    let of_moments = |format: &str| DateFormat::of_moments(format).unwrap_err();
    assert_eq!(of_days(""), DateFormatError::Length);
    assert_eq!(of_days(&"%d".repeat(60)), DateFormatError::Length);
    assert_eq!(of_days("%Q"), DateFormatError::Unknown);
    assert_eq!(of_days("%"), DateFormatError::Unknown);
    for format in ["%d.%m.", "dd.mm.yyyy", "%Y", "%H:%M", "%s"] {
        let error = of_days(format);
        assert!(
            matches!(error, DateFormatError::Undetermined(..)),
            "{format}"
        );
    }
    for format in ["%d.%m.%Y", "%H:%M", "%d.%m.%Y %I:%M"] {
        let error = of_moments(format);
        assert!(
            matches!(error, DateFormatError::Undetermined(..)),
            "{format}"
        );
    }
    assert_eq!(of_moments("%d.%m.%Y %H:%M %Z"), DateFormatError::ZoneName);
    let error = of_moments("%d.%m.%Y %H:%M:%S.%f");
    assert_eq!(error, DateFormatError::Nanoseconds);
}

/// A cell in ISO 8601 is read as that in every column, so a format must not give it another
/// meaning.
#[test]
fn a_format_that_iso_8601_reads_otherwise_is_refused() {
    let days = DateFormat::of_days("%Y-%d-%m").unwrap_err();
    assert_eq!(days, DateFormatError::Ambiguous);
    for format in ["%Y-%d-%m %H:%M", "%Y-%m-%d %M:%H"] {
        let error = DateFormat::of_moments(format).unwrap_err();
        assert_eq!(error, DateFormatError::Ambiguous, "{format}");
    }
    for format in ["%Y-%m-%d", "%F"] {
        assert!(DateFormat::of_days(format).is_ok());
    }
    assert!(DateFormat::of_moments("%Y-%m-%dT%H:%M:%S").is_ok());
}

proptest! {
    #[test]
    fn moments_read_back(milliseconds in MOMENTS) {
        let text = moment(milliseconds);
        prop_assert_eq!(read_moment(&text), Ok(milliseconds), "{}", text);
        prop_assert!(is_canonical_moment(&text), "{}", text);
    }

    #[test]
    fn what_is_canonical_is_what_is_written(
        text in "[0-9]{3,4}-[0-1][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-5][0-9](:[0-5][0-9]([.,][0-9]{1,4})?)?(Z|[+-]0[0-9]:[0-5]0)?)?",
    ) {
        let written = read_moment(&text).map(moment);
        prop_assert_eq!(is_canonical_moment(&text), written == Ok(text.clone()));
        let written = read_day(&text).map(day);
        prop_assert_eq!(is_canonical_day(&text), written == Ok(text));
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), format in "[%a-zA-Z.:/ -]{1,20}") {
        let _ = (read_day(&text), read_moment(&text));
        let declared = [DateFormat::of_days(&format), DateFormat::of_moments(&format)];
        for declared in declared.into_iter().flatten() {
            let _ = (declared.day(&text), declared.moment(&text));
        }
    }

    #[test]
    fn a_format_and_iso_8601_agree(days in DAYS) {
        let iso = day(days);
        let parts: Vec<&str> = iso.split('-').collect();
        let german = format!("{}.{}.{}", parts[2], parts[1], parts[0]);
        prop_assert_eq!(DateFormat::of_days("%d.%m.%Y").unwrap().day(&german), Ok(days));
    }
}
