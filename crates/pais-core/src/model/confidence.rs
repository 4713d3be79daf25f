//! The bound on what an adversary may infer.

use super::Decimal;

/// *C*, the greatest confidence in a sensitive value, in (0, 1] (KDD'09, Definition 3.1).
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

    /// The fewest records among which `holding` are no more than the bound allows.
    pub fn least_group(self, holding: u64) -> u64 {
        self.0.least_whole(holding)
    }

    /// The most records with one value that the bound allows among `group`.
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
