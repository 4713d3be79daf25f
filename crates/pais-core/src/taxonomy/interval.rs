//! Numeric intervals in PostgreSQL's range syntax.

use std::fmt;

/// `[lo,hi)`, or `[lo,hi]` where it is the last one of its domain.
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

    /// Whether `value` lies inside.
    pub fn contains(&self, value: f64) -> bool {
        self.lo <= value && (value < self.hi || (self.closed && value == self.hi))
    }

    /// Whether `other` lies wholly inside.
    pub fn encloses(&self, other: &Self) -> bool {
        self.lo <= other.lo
            && (other.hi < self.hi || (other.hi == self.hi && (self.closed || !other.closed)))
    }

    /// `hi - lo`.
    pub fn width(&self) -> f64 {
        self.hi - self.lo
    }

    /// Reads a label: `[30,60)`, `[60,99]`, or `60` for `[60,60]`.
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

/// The greatest magnitude of a number, so that no width of an interval is infinite.
const GREATEST: f64 = 1e300;

/// A decimal number as cells and bounds write it; not the words for infinity and NaN, nothing
/// beyond ±1e300, and zero without a sign, so that equal numbers are the same value.
pub fn number(text: &str) -> Option<f64> {
    let first = text.trim_start_matches(['+', '-']).bytes().next()?;
    if !first.is_ascii_digit() && first != b'.' {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    (value.abs() <= GREATEST).then_some(value + 0.0)
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
    fn the_last_interval_holds_its_end() {
        assert!(Interval::closed(60.0, 99.0).contains(99.0));
        assert!(!Interval::half_open(30.0, 60.0).contains(60.0));
        assert!(Interval::closed(1.0, 99.0).encloses(&Interval::closed(60.0, 99.0)));
        assert!(!Interval::half_open(1.0, 99.0).encloses(&Interval::closed(60.0, 99.0)));
    }
}
