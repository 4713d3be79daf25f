//! Intervals of numbers and of dates in PostgreSQL's range syntax.

use std::fmt;
use std::ops::Range;

use super::Scale;
use crate::calendar::{days_of_label, moments_of_label};

/// `[lo,hi)`, or `[lo,hi]` for the last interval of a domain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound, always included.
    pub lo: f64,
    /// Upper bound.
    pub hi: f64,
    /// Whether the upper bound is included.
    pub closed: bool,
    /// What the bounds are.
    pub scale: Scale,
}

impl Interval {
    /// `[lo,hi]`, of numbers.
    pub fn closed(lo: f64, hi: f64) -> Self {
        Self {
            lo,
            hi,
            closed: true,
            scale: Scale::Number,
        }
    }

    /// `[lo,hi)`, of numbers.
    pub fn half_open(lo: f64, hi: f64) -> Self {
        Self {
            lo,
            hi,
            closed: false,
            scale: Scale::Number,
        }
    }

    /// The interval with the same bounds on another scale.
    pub fn on(self, scale: Scale) -> Self {
        Self { scale, ..self }
    }

    /// Whether `value` is inside the interval.
    pub fn contains(&self, value: f64) -> bool {
        self.lo <= value && (value < self.hi || (self.closed && value == self.hi))
    }

    /// The places of the numbers inside the interval in an ascending list.
    pub fn places(&self, ascending: &[f64]) -> Range<usize> {
        let start = ascending.partition_point(|&value| value < self.lo);
        let end = ascending.partition_point(|&value| value < self.lo || self.contains(value));
        start..end
    }

    /// Whether all numbers of the interval are less than `value`.
    pub(crate) fn is_below(&self, value: f64) -> bool {
        self.hi < value || (self.hi == value && !self.closed)
    }

    /// Whether `other` is a subset of this interval.
    pub fn encloses(&self, other: &Self) -> bool {
        self.scale == other.scale
            && self.lo <= other.lo
            && (other.hi < self.hi || (other.hi == self.hi && (self.closed || !other.closed)))
    }

    /// `hi - lo`.
    pub fn width(&self) -> f64 {
        self.hi - self.lo
    }

    /// Reads a label of numbers: `[30,60)`, `[60,99]`, or `60` for `[60,60]`. `None` for any other
    /// text and for an empty interval.
    pub fn parse(label: &str) -> Option<Self> {
        Self::parse_on(label, Scale::Number)
    }

    /// Whether it begins with the first day of a year and ends with the last day of one; `false` for
    /// numbers.
    pub fn is_of_whole_years(&self) -> bool {
        if self.scale == Scale::Number {
            return false;
        }
        // Days and moments are whole numbers, so the last value before an open end is one less.
        let last = if self.closed { self.hi } else { self.hi - 1.0 };
        self.scale.widened(self.lo, last) == (self.lo, last)
    }

    /// The numbers or dates that a label covers: those of an interval, or of a period of the
    /// calendar.
    pub fn of_label(label: &str, scale: Scale) -> Option<Self> {
        let period = match scale {
            Scale::Number => None,
            Scale::Day => days_of_label(label),
            Scale::Moment => moments_of_label(label),
        };
        match period {
            Some((first, last)) => Some(Self::closed(first as f64, last as f64).on(scale)),
            None => Self::parse_on(label, scale),
        }
    }

    /// Reads a label on a scale, such as `[1987-01-01,1990-07-01)` of days.
    pub fn parse_on(label: &str, scale: Scale) -> Option<Self> {
        if let Some(inner) = label.strip_prefix('[') {
            let closed = inner.ends_with(']');
            let inner = inner.strip_suffix([']', ')'])?;
            let (lo, hi) = inner.split_once(',')?;
            let interval = Self {
                lo: scale.value(lo.trim())?,
                hi: scale.value(hi.trim())?,
                closed,
                scale,
            };
            let nonempty = interval.lo < interval.hi || (closed && interval.lo == interval.hi);
            return nonempty.then_some(interval);
        }
        let value = scale.value(label)?;
        Some(Self::closed(value, value).on(scale))
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.closed && self.lo == self.hi {
            return self.scale.write(f, self.lo);
        }
        f.write_str("[")?;
        self.scale.write(f, self.lo)?;
        f.write_str(",")?;
        self.scale.write(f, self.hi)?;
        f.write_str(if self.closed { "]" } else { ")" })
    }
}

/// Maximum magnitude of a number. It keeps the width of every interval finite.
const MAX_MAGNITUDE: f64 = 1e300;

/// Reads a decimal number of a cell or a bound. `None` for other text, for the words for infinity
/// and NaN, and beyond ±1e300. `-0` is read as 0, so that equal numbers have equal bits.
pub fn number(text: &str) -> Option<f64> {
    let first = text.trim_start_matches(['+', '-']).bytes().next()?;
    if !first.is_ascii_digit() && first != b'.' {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    (value.abs() <= MAX_MAGNITUDE).then_some(value + 0.0)
}

/// The canonical form of a number: the shortest decimal that reads back equal, whole numbers without a
/// fraction. `None` for text that is not a number.
///
/// Whole numbers of 64 bits keep all their digits; others are equal where their 64-bit
/// floating-point numbers are. Greater ones, and those below 0.00001, have an exponent.
pub fn canonical_number(text: &str) -> Option<String> {
    let value = number(text)?;
    if let Some(whole) = whole_number(text) {
        return Some(whole.to_string());
    }
    let magnitude = value.abs();
    if value == 0.0 || (1e-5..1e17).contains(&magnitude) {
        return Some(value.to_string());
    }
    let text = format!("{value:e}");
    let whole = whole_number(&text).map(|whole| whole.to_string());
    Some(whole.unwrap_or(text))
}

/// Whether a text is, at a glance, a number in canonical form. `false` for a few that are, such as
/// those with many digits.
pub(crate) fn is_plain_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(part) {
        return false;
    }
    if whole.starts_with('0') && whole.len() > 1 {
        return false;
    }
    if whole.len() == digits.len() {
        // -0 is written 0. 18 digits fit into 64 bits.
        return whole.len() <= 18 && text != "-0";
    }
    // A 64-bit floating-point number keeps every decimal of 15 digits; below 0.00001 it has an
    // exponent.
    let has_canonical_end = !part.is_empty() && !part.ends_with('0');
    has_canonical_end
        && whole.len() + part.len() <= 15
        && (whole != "0" || !part.starts_with("00000"))
}

/// A decimal number, exactly: a whole number of at most 38 digits, times a power of ten. `None` for text that
/// is not a number, and for a number that needs more digits.
pub fn whole_and_power(text: &str) -> Option<(i128, i32)> {
    number(text)?;
    significand(text)
}

/// As [`whole_and_power`], of text that is a number.
fn significand(text: &str) -> Option<(i128, i32)> {
    let (decimal, exponent) = match text.split_once(['e', 'E']) {
        Some((decimal, exponent)) => (decimal, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, part) = decimal.split_once('.').unwrap_or((decimal, ""));
    let digits = [whole, part].concat();
    let kept = digits.trim_end_matches('0');
    let dropped = i32::try_from(digits.len() - kept.len()).ok()?;
    let power = exponent
        .checked_sub(i32::try_from(part.len()).ok()?)?
        .checked_add(dropped)?;
    match kept.trim_start_matches(['+', '-']) {
        "" => Some((0, 0)),
        significant if significant.trim_start_matches('0').len() > 38 => None,
        _ => Some((kept.parse().ok()?, power)),
    }
}

/// The 64-bit integer that a decimal equals exactly; `None` for any other, and for `i64::MIN`.
fn whole_number(text: &str) -> Option<i64> {
    let (whole, power) = significand(text)?;
    let scale = 10i128.checked_pow(u32::try_from(power).ok()?)?;
    let whole = i64::try_from(whole.checked_mul(scale)?).ok();
    whole.filter(|&whole| whole != i64::MIN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Interval, Scale, canonical_number, is_plain_number, number, whole_and_power};

    #[test]
    fn labels_are_postgresql_ranges() {
        for label in ["[30,60)", "[60,99]", "17", "[-1.5,0)", "[0.25,0.5)"] {
            assert_eq!(Interval::parse(label).unwrap().to_string(), label);
        }
        assert_eq!(Interval::parse("[17,17]").unwrap().to_string(), "17");
        for label in [
            "[60,30)", "[1,1)", "(1,2]", "[1;2)", "x", "", "[nan,1)", "inf", "-",
        ] {
            assert_eq!(Interval::parse(label), None, "{label}");
        }
    }

    #[test]
    fn places_of_an_interval_are_those_of_its_numbers() {
        let numbers = [1.0, 2.0, 2.5, 3.0, 4.0];
        for (label, places) in [
            ("[2,3)", 1..3),
            ("[2,3]", 1..4),
            ("2", 1..2),
            ("[0,9]", 0..5),
            ("[3.5,3.7)", 4..4),
            ("[5,6]", 5..5),
        ] {
            let interval = Interval::parse(label).unwrap();
            assert_eq!(interval.places(&numbers), places, "{label}");
        }
    }

    #[test]
    fn a_number_has_one_spelling() {
        for (spellings, canonical) in [
            (
                &["200", "200.0", "2e2", "+200", "0200", "2.00E+2", "20000e-2"][..],
                "200",
            ),
            (&["0", "-0", "0.0", "0e5", "-.0"], "0"),
            (&[".5", "0.50", "5e-1"], "0.5"),
            (&["-7", "-7.", "-07.000"], "-7"),
            (
                &["9007199254740993", "9007199254740993.0"],
                "9007199254740993",
            ),
            (&["1e300"], "1e300"),
            (&["0.0000001", "1e-7"], "1e-7"),
            (&["1e17", "100000000000000000"], "100000000000000000"),
        ] {
            for spelling in spellings {
                assert_eq!(
                    canonical_number(spelling).as_deref(),
                    Some(canonical),
                    "{spelling}"
                );
            }
        }
        assert_eq!(canonical_number("1,5"), None);
    }

    proptest! {
        #[test]
        fn a_canonical_number_reads_back_equal_and_is_canonical(
            digits in "[+-]?[0-9]{1,20}(\\.[0-9]{0,20})?(e[+-]?[0-9]{1,2})?",
        ) {
            let Some(canonical) = canonical_number(&digits) else {
                return Ok(());
            };
            prop_assert_eq!(number(&digits), number(&canonical), "{} {}", digits, canonical);
            let again = canonical_number(&canonical);
            prop_assert_eq!(again.as_deref(), Some(&*canonical));
        }
    }

    proptest! {
        #[test]
        fn a_plain_number_is_canonical(digits in "-?[0-9]{1,19}(\\.[0-9]{0,16})?") {
            if is_plain_number(&digits) {
                let canonical = canonical_number(&digits);
                prop_assert_eq!(canonical.as_deref(), Some(&*digits));
            }
        }

        #[test]
        fn a_number_is_a_whole_one_times_a_power_of_ten(
            text in "[+-]?[0-9]{1,12}(\\.[0-9]{0,12})?(e[+-]?[0-9]{1,2})?",
        ) {
            let (whole, power) = whole_and_power(&text).unwrap();
            prop_assert_eq!(number(&format!("{whole}e{power}")), number(&text));
            prop_assert!(whole % 10 != 0 || (whole, power) == (0, 0));
        }
    }

    #[test]
    fn common_numbers_are_plain() {
        for text in [
            "0",
            "7",
            "-7",
            "34.5",
            "0.00001",
            "-0.5",
            "123456789012345678",
        ] {
            assert!(is_plain_number(text), "{text}");
        }
        for text in [
            "", "-", ".", "-0", "007", "1.0", "1.", ".5", "+1", "1e5", "NA", "0.000001",
        ] {
            assert!(!is_plain_number(text), "{text}");
        }
    }

    #[test]
    fn minus_zero_is_zero() {
        assert!(number("-0").unwrap().is_sign_positive());
        assert_eq!(number("1e400"), None);
    }

    #[test]
    fn whole_years_begin_and_end_with_a_year() {
        let is_whole =
            |label: &str, scale| Interval::of_label(label, scale).map(|it| it.is_of_whole_years());
        for (label, expected) in [
            ("1987", true),
            ("1980s", true),
            ("[1980-01-01,1990-01-01)", true),
            ("[1980-01-01,1989-12-31]", true),
            ("[1980-01-01,1989-12-31)", false),
            ("1987-09", false),
            ("1987-Q1", false),
            ("1987-09-03", false),
        ] {
            assert_eq!(is_whole(label, Scale::Day), Some(expected), "{label}");
            let moment = is_whole(label, Scale::Moment);
            assert!(
                moment.is_none_or(|it| it == expected || label.ends_with(']')),
                "{label}"
            );
        }
        assert_eq!(is_whole("[1980,1990)", Scale::Number), Some(false));
    }

    #[test]
    fn only_a_closed_interval_contains_its_upper_bound() {
        assert!(Interval::closed(60.0, 99.0).contains(99.0));
        assert!(!Interval::half_open(30.0, 60.0).contains(60.0));
        assert!(Interval::closed(1.0, 99.0).encloses(&Interval::closed(60.0, 99.0)));
        assert!(!Interval::half_open(1.0, 99.0).encloses(&Interval::closed(60.0, 99.0)));
    }
}
