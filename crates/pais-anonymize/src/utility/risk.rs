//! The re-identification risk, for an adversary who knows every quasi-identifier of a patient in
//! the table.

use serde::{Deserialize, Serialize};

/// Risk of re-identification, from 0 to 1, by the groups of equal generalized records over all
/// quasi-identifiers: a patient in a group of *|G|* records is picked with probability *1/|G|*.
/// Under LKC-privacy with fewer known values it is lower: then at most *1 / smallest group* of
/// the verification.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Risk {
    /// *1 / smallest group*, the risk of those at highest risk; 0 for an empty table.
    pub highest: f64,
    /// *groups / |T|*, the mean over the records of *1/|G|*; 0 for an empty table.
    pub average: f64,
    /// Number of records at the highest risk: those in groups of the smallest size.
    pub records_at_highest: u64,
}

impl Risk {
    /// The risk of a table whose groups have these sizes, in records.
    pub fn from_sizes(sizes: &[u32]) -> Self {
        let Some(smallest) = sizes.iter().copied().min().filter(|&size| size > 0) else {
            return Self::default();
        };
        let rows: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
        let at_highest = sizes.iter().filter(|&&size| size == smallest).count() as u64;
        Self {
            highest: 1.0 / f64::from(smallest),
            average: sizes.len() as f64 / rows as f64,
            records_at_highest: at_highest * u64::from(smallest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Risk;

    #[test]
    fn risk_is_one_divided_by_the_group_size() {
        let risk = Risk {
            highest: 0.5,
            average: 0.375,
            records_at_highest: 4,
        };
        assert_eq!(Risk::from_sizes(&[2, 4, 2]), risk);
        assert_eq!(Risk::from_sizes(&[]), Risk::default());
    }
}
