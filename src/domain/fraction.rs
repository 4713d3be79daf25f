//! Exact fractions: comparing with a confidence of 1/5 must not depend on how 0.2 is rounded.

use std::fmt;

/// A decimal fraction `numerator / denominator` in [0, 1]. The denominator is a power of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    numerator: u64,
    denominator: u64,
}

impl Fraction {
    /// 1.
    pub const ONE: Self = Self {
        numerator: 1,
        denominator: 1,
    };

    /// The exact value of the shortest decimal form of `value`, that is the number as it was
    /// written. `None` if it is negative, not finite, above 1, or has more than 18 decimals.
    ///
    /// ```
    /// # use pais::domain::Fraction;
    /// let fifth = Fraction::from_decimal(0.2).unwrap();
    /// assert!(!fifth.is_exceeded_by(1, 5));
    /// assert!(fifth.is_exceeded_by(2, 9));
    /// ```
    pub fn from_decimal(value: f64) -> Option<Self> {
        if !(0.0..=1.0).contains(&value) {
            return None;
        }
        let text = format!("{value}");
        let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
        if decimals.len() > 18 {
            return None;
        }
        let denominator = 10u64.pow(decimals.len() as u32);
        let whole: u64 = whole.parse().ok()?;
        let part: u64 = if decimals.is_empty() {
            0
        } else {
            decimals.parse().ok()?
        };
        Some(Self {
            numerator: whole * denominator + part,
            denominator,
        })
    }

    /// Whether `part / whole` is greater than this fraction. Never true if `part` and `whole` are
    /// 0.
    #[inline]
    pub fn is_exceeded_by(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(self.denominator)
            > u128::from(self.numerator) * u128::from(whole)
    }

    /// The smallest `whole` for which `part / whole` does not exceed this fraction; [`u64::MAX`] if
    /// there is none.
    pub fn smallest_whole(self, part: u64) -> u64 {
        let scaled = u128::from(part) * u128::from(self.denominator);
        match self.numerator {
            0 if part > 0 => u64::MAX,
            0 => 0,
            numerator => u64::try_from(scaled.div_ceil(u128::from(numerator))).unwrap_or(u64::MAX),
        }
    }

    /// Whether this is 1, a bound that no `part / whole` exceeds.
    pub fn is_one(self) -> bool {
        self.numerator == self.denominator
    }

    /// The fraction as a floating-point number, for display.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// The largest number of rows that is at most this fraction of `total` rows.
    pub fn floor_of(self, total: u64) -> u64 {
        let rows = u128::from(self.numerator) * u128::from(total) / u128::from(self.denominator);
        // The fraction is at most 1, so the result is at most `total`.
        rows as u64
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::Fraction;

    #[test]
    fn bounds_are_compared_exactly() {
        for (value, part, whole) in [(0.2, 1, 5), (0.15, 3, 20), (0.5, 1, 2), (1.0, 7, 7)] {
            let bound = Fraction::from_decimal(value).unwrap();
            assert!(!bound.is_exceeded_by(part, whole), "{value}");
            assert!(bound.is_exceeded_by(part * 1000 + 1, whole * 1000) || bound.is_one());
        }
    }

    #[test]
    fn only_values_from_0_to_1_are_accepted() {
        for value in [-0.1, 1.1, f64::NAN, f64::INFINITY, 1e-300] {
            assert_eq!(Fraction::from_decimal(value), None);
        }
        assert_eq!(Fraction::from_decimal(0.0).unwrap().floor_of(10), 0);
        assert_eq!(
            Fraction::from_decimal(0.05).unwrap().floor_of(45_222),
            2_261
        );
    }
}
