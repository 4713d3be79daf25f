//! Numeric intervals in PostgreSQL's range syntax.

use std::fmt;

/// `[lo,hi)`, or `[lo,hi]` for the last interval of a domain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound, always included.
    pub lo: f64,
    /// Upper bound.
    pub hi: f64,
    /// Whether the upper bound is included.
    pub closed: bool,
}

impl Interval {
    /// `[lo,hi]`.
    pub fn closed(lo: f64, hi: f64) -> Self {
        Self {
            lo,
            hi,
            closed: true,
        }
    }

    /// `[lo,hi)`.
    pub fn half_open(lo: f64, hi: f64) -> Self {
        Self {
            lo,
            hi,
            closed: false,
        }
    }

    /// Whether `value` is inside the interval.
    pub fn contains(&self, value: f64) -> bool {
        self.lo <= value && (value < self.hi || (self.closed && value == self.hi))
    }

    /// Whether `other` is a subset of this interval.
    pub fn encloses(&self, other: &Self) -> bool {
        self.lo <= other.lo
            && (other.hi < self.hi || (other.hi == self.hi && (self.closed || !other.closed)))
    }

    /// `hi - lo`.
    pub fn width(&self) -> f64 {
        self.hi - self.lo
    }

    /// Reads a label: `[30,60)`, `[60,99]`, or `60` for `[60,60]`. `None` for any other text and
    /// for an empty interval.
    pub fn parse(label: &str) -> Option<Self> {
        if let Some(inner) = label.strip_prefix('[') {
            let closed = inner.ends_with(']');
            let inner = inner.strip_suffix([']', ')'])?;
            let (lo, hi) = inner.split_once(',')?;
            let interval = Self {
                lo: number(lo.trim())?,
                hi: number(hi.trim())?,
                closed,
            };
            let nonempty = interval.lo < interval.hi || (closed && interval.lo == interval.hi);
            return nonempty.then_some(interval);
        }
        number(label).map(|value| Self::closed(value, value))
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.closed && self.lo == self.hi {
            return write!(f, "{}", self.lo);
        }
        write!(
            f,
            "[{},{}{}",
            self.lo,
            self.hi,
            if self.closed { ']' } else { ')' }
        )
    }
}

/// The greatest magnitude of a number. It keeps the width of every interval finite.
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

#[cfg(test)]
mod tests {
    use super::{Interval, number};

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
    fn minus_zero_is_zero() {
        assert!(number("-0").unwrap().is_sign_positive());
        assert_eq!(number("1e400"), None);
    }

    #[test]
    fn only_a_closed_interval_contains_its_upper_bound() {
        assert!(Interval::closed(60.0, 99.0).contains(99.0));
        assert!(!Interval::half_open(30.0, 60.0).contains(60.0));
        assert!(Interval::closed(1.0, 99.0).encloses(&Interval::closed(60.0, 99.0)));
        assert!(!Interval::half_open(1.0, 99.0).encloses(&Interval::closed(60.0, 99.0)));
    }
}
