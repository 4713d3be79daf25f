//! Privacy models of groups of records: what each group of a partition has to meet.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::{Decimal, MinimumAnonymity};

/// What every group of a partition has to meet.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupModel {
    /// *K*, the fewest records of a group.
    pub k: MinimumAnonymity,
    /// What the sensitive values of a group have to meet.
    pub diversity: Diversity,
}

/// What the sensitive values of a group have to meet.
#[derive(Clone, Debug, PartialEq)]
pub enum Diversity {
    /// Nothing: k-anonymity alone.
    None,
    /// Definition 6 of *A Privacy Protection Model for Patient Data with Multiple Sensitive
    /// Attributes* (Gal, Chen, Gangopadhyay 2008): an adversary who eliminates sensitive values
    /// one by one, and with each the records that have it, has to eliminate at least *L* before
    /// no record of the group is left. The least number is the group's minimum cover.
    MinimumCover {
        /// *L*.
        l: NonZeroU32,
        /// *L_i*, the most values of a sensitive column that may be eliminated (Definition 7);
        /// *L* for a column that is not named.
        column_limits: BTreeMap<String, u32>,
    },
    /// At least *l* distinct values of the one sensitive column (Machanavajjhala et al., ACM
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
        c: Decimal,
        /// *l*.
        l: NonZeroU32,
    },
    /// Frequencies of the sensitive column's values that differ from the whole table's by at
    /// most *t*, half the sum of the differences: the earth mover's distance with equal ground
    /// distances (Li, Li, Venkatasubramanian, ICDE 2007, Section 4.2).
    Closeness {
        /// *t*.
        t: Decimal,
    },
}

impl Diversity {
    /// Whether some group of records fails to meet it. Sensitive columns are given by name; without
    /// any, nothing is bound.
    pub fn binds(&self, sensitive: &[Box<str>]) -> bool {
        let some = !sensitive.is_empty();
        match self {
            Self::None => false,
            Self::MinimumCover { l, column_limits } => {
                let may_be_eliminated =
                    |name: &str| column_limits.get(name).is_none_or(|&limit| limit > 0);
                l.get() > 1 && sensitive.iter().any(|name| may_be_eliminated(name))
            }
            Self::Distinct { l } => some && l.get() > 1,
            Self::Entropy { l } => some && *l > 1.0,
            // With l = 1 the tail is the whole group, of which no value has more than all.
            Self::Recursive { c, l } => some && (l.get() > 1 || !c.times_exceeds(1, 1)),
            Self::Closeness { t } => some && !t.is_one(),
        }
    }

    /// Whether the model is defined for exactly one sensitive column.
    pub fn is_of_one_column(&self) -> bool {
        match self {
            Self::None | Self::MinimumCover { .. } => false,
            Self::Distinct { .. }
            | Self::Entropy { .. }
            | Self::Recursive { .. }
            | Self::Closeness { .. } => true,
        }
    }
}
