//! Privacy models of groups of records: what each group of a partition has to meet.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::{Fraction, MinimumAnonymity};

/// What every group of a partition has to meet.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupModel {
    /// *K*, the fewest records of a group.
    pub k: MinimumAnonymity,
    /// What is asked of the sensitive values of a group.
    pub diversity: Diversity,
}

/// What is asked of the sensitive values of a group.
#[derive(Clone, Debug, PartialEq)]
pub enum Diversity {
    /// Nothing: k-anonymity alone.
    Unasked,
    /// Definition 6 of *A Privacy Protection Model for Patient Data with Multiple Sensitive
    /// Attributes* (Gal, Chen, Gangopadhyay 2008): at least *L* sensitive values have to be
    /// struck out before no record of the group is left.
    Strikes {
        /// *L*.
        l: NonZeroU32,
        /// *L_i*, the most values of a sensitive column that may be among those struck out
        /// (Definition 7); *L* for a column that is not named.
        column_limits: BTreeMap<String, u32>,
    },
    /// At least so many distinct values of the one sensitive column (Machanavajjhala et al., ACM
    /// TKDD 2007, Section 4).
    Distinct {
        /// *l*.
        l: NonZeroU32,
    },
    /// An entropy of the sensitive column's values of at least that of *l* equally frequent ones
    /// (the same, Definition 4.1).
    Entropy {
        /// *l*, from 1 on; it need not be whole.
        l: f64,
    },
    /// The most frequent value less than *c* times as frequent as all together from the *l*-th
    /// most frequent one on (the same, Definition 4.2).
    Recursive {
        /// *c*.
        c: Factor,
        /// *l*.
        l: NonZeroU32,
    },
    /// Frequencies of the sensitive column's values that differ from the whole table's by at
    /// most *t*, half the sum of the differences: the earth mover's distance with equal ground
    /// distances (Li, Li, Venkatasubramanian, ICDE 2007, Section 4.2).
    Closeness {
        /// *t*.
        t: Fraction,
    },
}

impl Diversity {
    /// Whether the model speaks of one sensitive column alone.
    pub fn is_of_one_column(&self) -> bool {
        match self {
            Self::Unasked | Self::Strikes { .. } => false,
            Self::Distinct { .. }
            | Self::Entropy { .. }
            | Self::Recursive { .. }
            | Self::Closeness { .. } => true,
        }
    }
}

/// A positive decimal number with at most six decimals, kept exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    millionths: u64,
}

impl Factor {
    /// `None` for what is not above 0, above a million, or has more than six decimals.
    pub fn new(value: f64) -> Option<Self> {
        let millionths = (value * 1e6).round();
        let is_decimal = millionths / 1e6 == value;
        let in_range = value > 0.0 && value <= 1e6 && millionths >= 1.0;
        // In range, so that it is a whole number that fits.
        (in_range && is_decimal).then_some(Self {
            millionths: millionths as u64,
        })
    }

    /// Whether `part` is less than this factor times `whole`, exactly.
    pub fn times_exceeds(self, whole: u64, part: u64) -> bool {
        u128::from(part) * 1_000_000 < u128::from(self.millionths) * u128::from(whole)
    }

    /// For display.
    pub fn as_f64(self) -> f64 {
        self.millionths as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::Factor;

    #[test]
    fn factors_are_compared_exactly() {
        let tenth = Factor::new(0.1).unwrap();
        assert!(!tenth.times_exceeds(30, 3) && tenth.times_exceeds(31, 3));
        assert!(Factor::new(2.5).unwrap().times_exceeds(2, 4));
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e7, 0.000_000_1] {
            assert_eq!(Factor::new(value), None, "{value}");
        }
    }
}
