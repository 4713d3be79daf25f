//! Privacy models of groups of records: what each group of a partition has to meet.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::MinimumAnonymity;

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
}
