//! The re-identification risk, for an adversary who knows every quasi-identifier of a patient in
//! the table.

use pais_verify::SubjectGroups;
use serde::{Deserialize, Serialize};

use super::holder_only::rounded;

/// Risk of re-identification, from 0 to 1, by the groups of equal generalized records over all
/// quasi-identifiers: a patient in a group of *|G|* records is picked with probability *1/|G|*.
/// Under LKC-privacy with fewer known values it is lower: then at most *1 / smallest group* of
/// the verification.
///
/// Where the dataset has a subject column, *|G|* is the number of distinct persons of the group,
/// and records are persons: one with rows in several groups is in each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Risk {
    /// *1 / smallest group*, the risk of those at highest risk; 0 for an empty table.
    pub highest: f64,
    /// *groups / |T|*, the mean over the records of *1/|G|*; 0 for an empty table. With a subject
    /// column *groups / Σ|G|*, with two significant digits.
    pub average: f64,
    /// Number of records at the highest risk: those in groups of the smallest size.
    pub records_at_highest: u64,
    /// The greatest share of one value of a sensitive column among the persons of a group who have
    /// a value in it in any of their rows of the group; from 0 to 1. Only where the dataset has a
    /// subject column. For the holder alone, with two significant digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub greatest_confidence_per_subject: Option<f64>,
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
            greatest_confidence_per_subject: None,
        }
    }

    /// The risk of a table whose groups have these persons.
    pub(super) fn of_subjects(groups: &SubjectGroups) -> Self {
        let by_size = Self::from_sizes(&groups.sizes);
        Self {
            average: rounded(by_size.average),
            greatest_confidence_per_subject: Some(rounded(groups.greatest_confidence())),
            ..by_size
        }
    }
}

#[cfg(test)]
mod tests {
    use pais_verify::SubjectGroups;

    use super::Risk;

    #[test]
    fn risk_is_one_divided_by_the_group_size() {
        let risk = Risk {
            highest: 0.5,
            average: 0.375,
            records_at_highest: 4,
            greatest_confidence_per_subject: None,
        };
        assert_eq!(Risk::from_sizes(&[2, 4, 2]), risk);
        assert_eq!(Risk::from_sizes(&[]), Risk::default());
    }

    #[test]
    fn risk_of_persons_is_one_divided_by_the_persons_of_a_group() {
        let groups = SubjectGroups {
            subjects: 6,
            sizes: vec![2, 4, 3],
            confidences: vec![0.5, 0.0, 2.0 / 3.0],
        };
        let risk = Risk {
            highest: 0.5,
            average: 0.33,
            records_at_highest: 2,
            greatest_confidence_per_subject: Some(0.67),
        };
        assert_eq!(Risk::of_subjects(&groups), risk);
    }
}
