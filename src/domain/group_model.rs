//! Privacy models of groups of records: the conditions that each group of a partition must meet.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::{Fraction, MinimumAnonymity};

/// The conditions that every group of a partition must meet.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupModel {
    /// *K*, the minimum number of records of a group.
    pub k: MinimumAnonymity,
    /// The condition on the sensitive values of a group.
    pub diversity: Diversity,
}

/// The condition on the sensitive values of a group.
#[derive(Clone, Debug, PartialEq)]
pub enum Diversity {
    /// No condition: k-anonymity only.
    Unasked,
    /// Definition 6 of *A Privacy Protection Model for Patient Data with Multiple Sensitive
    /// Attributes* (Gal, Chen, Gangopadhyay 2008): at least *L* sensitive values must be deleted
    /// until no record of the group is left. So the minimum cover of the group's records by
    /// sensitive values has at least *L* values.
    Strikes {
        /// *L*.
        l: NonZeroU32,
        /// *L_i*, the maximum number of values of a sensitive column among the deleted ones
        /// (Definition 7); *L* for a column that is not named.
        column_limits: BTreeMap<String, u32>,
    },
    /// At least *l* distinct values of the one sensitive column (Machanavajjhala et al., ACM TKDD
    /// 2007, Section 4).
    Distinct {
        /// *l*.
        l: NonZeroU32,
    },
    /// The entropy of the sensitive column's values is at least that of *l* equally frequent values
    /// (same paper, Definition 4.1).
    Entropy {
        /// *l*, at least 1; it can be fractional.
        l: f64,
    },
    /// The count of the most frequent value is less than *c* times the sum of the counts from the
    /// *l*-th most frequent value on (same paper, Definition 4.2).
    Recursive {
        /// *c*.
        c: Factor,
        /// *l*.
        l: NonZeroU32,
    },
    /// The frequencies of the sensitive column's values differ from those of the whole table by at
    /// most *t*. The difference is half the sum of the absolute differences: the earth mover's
    /// distance with equal ground distances (Li, Li, Venkatasubramanian, ICDE 2007, Section 4.2).
    Closeness {
        /// *t*.
        t: Fraction,
    },
}

impl Diversity {
    /// Whether the model needs a table with exactly one sensitive column.
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
    /// `None` unless the value is above 0, at most a million, and has at most six decimals.
    pub fn new(value: f64) -> Option<Self> {
        let millionths = (value * 1e6).round();
        let is_decimal = millionths / 1e6 == value;
        let in_range = value > 0.0 && value <= 1e6 && millionths >= 1.0;
        // A value in range is a whole number of millionths that fits into u64.
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
