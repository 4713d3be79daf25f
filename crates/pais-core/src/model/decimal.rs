//! Exact decimals: whether a confidence exceeds 0.2 must not depend on how 0.2 rounds.

/// A non-negative decimal number, kept exactly as `numerator / denominator`, the denominator a
/// power of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Decimal {
    numerator: u64,
    denominator: u64,
}

impl Decimal {
    /// 0.
    pub const ZERO: Self = Self {
        numerator: 0,
        denominator: 1,
    };

    /// 1.
    pub(crate) const ONE: Self = Self {
        numerator: 1,
        denominator: 1,
    };

    /// A fraction from 0 to 1, exactly: the shortest decimal that reads back as `value`. `None` outside that
    /// range and for more than 18 decimals.
    ///
    /// ```
    /// use pais_core::model::Decimal;
    ///
    /// let fifth = Decimal::fraction(0.2).unwrap();
    /// assert!(!fifth.is_exceeded_by(1, 5));
    /// assert!(fifth.is_exceeded_by(2, 9));
    /// ```
    pub fn fraction(value: f64) -> Option<Self> {
        if !(0.0..=1.0).contains(&value) {
            return None;
        }
        Self::parse(&value.to_string(), 18)
    }

    /// A factor, above 0 and at most a million, with at most six decimals. `None` for others.
    pub fn factor(value: f64) -> Option<Self> {
        if !(value > 0.0 && value <= 1e6) {
            return None;
        }
        Self::parse(&value.to_string(), 6)
    }

    /// Digits with at most `decimals` after the point.
    fn parse(text: &str, decimals: usize) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        if part.len() > decimals {
            return None;
        }
        let denominator = 10u64.pow(part.len() as u32);
        let whole: u64 = whole.parse().ok()?;
        let part: u64 = if part.is_empty() {
            0
        } else {
            part.parse().ok()?
        };
        Some(Self {
            numerator: whole.checked_mul(denominator)?.checked_add(part)?,
            denominator,
        })
    }

    /// Whether `part` is greater than this number times `whole`; never for an empty whole.
    #[inline]
    pub fn is_exceeded_by(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(self.denominator)
            > u128::from(self.numerator) * u128::from(whole)
    }

    /// Whether this number times `whole` is greater than `part`.
    #[inline]
    pub fn times_exceeds(self, whole: u64, part: u64) -> bool {
        u128::from(part) * u128::from(self.denominator)
            < u128::from(self.numerator) * u128::from(whole)
    }

    /// The smallest `whole` such that `part / whole` does not exceed this number; [`u64::MAX`] if there
    /// is none.
    pub(crate) fn least_whole(self, part: u64) -> u64 {
        let scaled = u128::from(part) * u128::from(self.denominator);
        match self.numerator {
            0 if part > 0 => u64::MAX,
            0 => 0,
            numerator => u64::try_from(scaled.div_ceil(u128::from(numerator))).unwrap_or(u64::MAX),
        }
    }

    /// Whether this is 1, the bound that no share exceeds.
    pub(crate) fn is_one(self) -> bool {
        self.numerator == self.denominator
    }

    /// The nearest floating-point number, for display.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// The largest whole number that is at most this number times `total`; [`u64::MAX`] if it is greater.
    pub fn floor_of(self, total: u64) -> u64 {
        let rows = u128::from(self.numerator) * u128::from(total) / u128::from(self.denominator);
        u64::try_from(rows).unwrap_or(u64::MAX)
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

/// *C*, the maximum confidence in a sensitive value, in (0, 1] (KDD'09, Definition 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Confidence(Decimal);

impl Confidence {
    /// A bound of 1, which nothing exceeds.
    pub const UNBOUNDED: Self = Self(Decimal::ONE);

    /// `None` outside (0, 1].
    pub fn new(value: f64) -> Option<Self> {
        if value <= 0.0 {
            return None;
        }
        Decimal::fraction(value).map(Self)
    }

    /// Whether `holding` of `group` records are more than the bound allows; compared exactly.
    #[inline]
    pub fn is_exceeded_by(self, holding: u64, group: u64) -> bool {
        self.0.is_exceeded_by(holding, group)
    }

    /// The minimum number of records in a group in which `holding` records do not exceed the bound.
    pub fn least_group(self, holding: u64) -> u64 {
        self.0.least_whole(holding)
    }

    /// Maximum number of records with one value that the bound allows among `group` records.
    ///
    /// ```
    /// use pais_core::model::Confidence;
    ///
    /// let fifth = Confidence::new(0.2).unwrap();
    /// assert_eq!((fifth.most_of(20), fifth.most_of(24), fifth.most_of(4)), (4, 4, 0));
    /// ```
    pub fn most_of(self, group: u64) -> u64 {
        self.0.floor_of(group)
    }

    /// Whether the bound is 1, which nothing exceeds.
    pub fn is_unbounded(self) -> bool {
        self.0.is_one()
    }

    /// The nearest floating-point number, for display.
    pub fn as_f64(self) -> f64 {
        self.0.as_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::Decimal;

    #[test]
    fn bounds_are_met_exactly() {
        for (value, part, whole) in [(0.2, 1, 5), (0.15, 3, 20), (0.5, 1, 2), (1.0, 7, 7)] {
            let bound = Decimal::fraction(value).unwrap();
            assert!(!bound.is_exceeded_by(part, whole), "{value}");
            assert!(bound.is_exceeded_by(part * 1000 + 1, whole * 1000) || bound.is_one());
        }
    }

    #[test]
    fn a_fraction_is_from_0_to_1() {
        for value in [-0.1, 1.1, f64::NAN, f64::INFINITY, 1e-300] {
            assert_eq!(Decimal::fraction(value), None);
        }
        assert_eq!(Decimal::fraction(0.0).unwrap().floor_of(10), 0);
        assert_eq!(Decimal::fraction(0.05).unwrap().floor_of(45_222), 2_261);
    }

    #[test]
    fn factors_are_compared_exactly() {
        let tenth = Decimal::factor(0.1).unwrap();
        assert!(!tenth.times_exceeds(30, 3) && tenth.times_exceeds(31, 3));
        assert!(Decimal::factor(2.5).unwrap().times_exceeds(2, 4));
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e7, 0.000_000_1] {
            assert_eq!(Decimal::factor(value), None, "{value}");
        }
    }
}
