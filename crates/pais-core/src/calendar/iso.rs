//! ISO 8601, read strictly: every part has all its digits.

use chrono::{NaiveDate, NaiveDateTime, TimeDelta};

use super::{MILLISECONDS_OF_A_DAY, NotADate, number_of_day, number_of_moment};

/// The bytes of `1987-09-03`.
const DAY_BYTES: usize = 10;

/// The bytes of `1987-09-03T10:15:00`.
const MOMENT_BYTES: usize = 19;

/// The longest text of a moment: nine digits of a fraction and an offset.
const MOST_BYTES: usize = 35;

/// Reads a day: `1987-09-03`. A moment at midnight is read as its day, because some programs write only moments
/// (`1987-09-03T00:00:00`).
///
/// # Errors
/// For any other text.
pub fn read_day(text: &str) -> Result<i64, NotADate> {
    if text.len() == DAY_BYTES {
        return number_of_day(day(text)?);
    }
    let milliseconds = read_moment(text)?;
    match milliseconds.rem_euclid(MILLISECONDS_OF_A_DAY) {
        0 => Ok(milliseconds.div_euclid(MILLISECONDS_OF_A_DAY)),
        _ => Err(NotADate::Form),
    }
}

/// Reads a moment: `1987-09-03T10:15:00`; also with a space instead of the `T`, without seconds, with
/// fractional seconds, with `Z` or with an offset. A day alone is read as its midnight.
///
/// # Errors
/// For any other text.
pub fn read_moment(text: &str) -> Result<i64, NotADate> {
    if text.len() > MOST_BYTES || !text.is_ascii() || text.len() < DAY_BYTES {
        return Err(NotADate::Form);
    }
    let (date, rest) = text.split_at(DAY_BYTES);
    if rest.is_empty() {
        return Ok(number_of_day(day(date)?)? * MILLISECONDS_OF_A_DAY);
    }
    let time = rest.strip_prefix(['T', 't', ' ']).ok_or(NotADate::Form)?;
    let (time, offset) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => (&time[..at], read_offset(&time[at..])?),
        None => (time, TimeDelta::zero()),
    };
    let mut parts = time.split(':');
    let hour = two_digits(parts.next())?;
    let minute = two_digits(parts.next())?;
    let (second, milliseconds) = match parts.next() {
        Some(second) => seconds(second)?,
        None => (0, 0),
    };
    if parts.next().is_some() {
        return Err(NotADate::Form);
    }
    let moment: NaiveDateTime = day(date)?
        .and_hms_milli_opt(hour, minute, second, milliseconds)
        .ok_or(NotADate::Calendar)?;
    let moment = moment.checked_sub_signed(offset);
    number_of_moment(moment.ok_or(NotADate::Calendar)?)
}

/// Whether a text is a day in canonical form.
pub(crate) fn is_canonical_day(text: &str) -> bool {
    text.len() == DAY_BYTES && read_day(text).is_ok()
}

/// Whether a text is a moment in canonical form.
pub(crate) fn is_canonical_moment(text: &str) -> bool {
    let has_form = text.len() >= MOMENT_BYTES
        && text.is_ascii()
        && text.as_bytes()[DAY_BYTES] == b'T'
        && text.as_bytes()[MOMENT_BYTES - 3] == b':'
        && match &text[MOMENT_BYTES..] {
            "" => true,
            rest => {
                let digits = rest.strip_prefix('.').unwrap_or_default();
                (1..=3).contains(&digits.len())
                    && digits.bytes().all(|byte| byte.is_ascii_digit())
                    && !digits.ends_with('0')
            }
        };
    has_form && read_moment(text).is_ok()
}

fn day(text: &str) -> Result<NaiveDate, NotADate> {
    let mut parts = text.split('-');
    let year = parts.next().filter(|year| year.len() == 4);
    let year = digits(year.ok_or(NotADate::Form)?)?;
    let (month, day) = (two_digits(parts.next())?, two_digits(parts.next())?);
    if parts.next().is_some() {
        return Err(NotADate::Form);
    }
    let year = i32::try_from(year).map_err(|_| NotADate::Form)?;
    NaiveDate::from_ymd_opt(year, month, day).ok_or(NotADate::Calendar)
}

/// `05`, `05.25` or `05,25`; digits after the millisecond are cut off.
fn seconds(text: &str) -> Result<(u32, u32), NotADate> {
    let (whole, fraction) = match text.split_once(['.', ',']) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let milliseconds = match fraction {
        None => 0,
        Some(fraction) => {
            if fraction.len() > 9 {
                return Err(NotADate::Form);
            }
            digits(fraction)?;
            let kept = &fraction[..fraction.len().min(3)];
            digits(kept)? * 10u32.pow(3 - kept.len() as u32)
        }
    };
    Ok((two_digits(Some(whole))?, milliseconds))
}

/// `Z`, `+02:00`, `+0200` or `+02`.
fn read_offset(text: &str) -> Result<TimeDelta, NotADate> {
    if matches!(text, "Z" | "z") {
        return Ok(TimeDelta::zero());
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let text = text.get(1..).unwrap_or_default();
    let (hours, minutes) = match (text.split_once(':'), text.len()) {
        (Some((hours, minutes)), _) => (hours, Some(minutes)),
        (None, 4) => (&text[..2], Some(&text[2..])),
        (None, _) => (text, None),
    };
    let hours = two_digits(Some(hours))?;
    let minutes = minutes.map_or(Ok(0), |minutes| two_digits(Some(minutes)))?;
    if hours > 23 || minutes > 59 {
        return Err(NotADate::Calendar);
    }
    Ok(TimeDelta::minutes(sign * i64::from(hours * 60 + minutes)))
}

fn two_digits(text: Option<&str>) -> Result<u32, NotADate> {
    match text {
        Some(text) if text.len() == 2 => digits(text),
        _ => Err(NotADate::Form),
    }
}

fn digits(text: &str) -> Result<u32, NotADate> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NotADate::Form);
    }
    text.parse().map_err(|_| NotADate::Form)
}
