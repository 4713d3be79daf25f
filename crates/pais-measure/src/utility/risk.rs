//! The re-identification risk, for an adversary who knows every quasi-identifier of a patient in
//! the table.

use pais_core::table::UnchangedRisk;
use pais_verify::{QidConfidences, QidSizes, SubjectGroups};
use serde::{Deserialize, Serialize};

use super::attribute_risk::AttributeRisk;
use super::holder_only::rounded;

/// Risks that [`Risk::share_above`] counts the records above.
const THRESHOLDS: [f64; 5] = [0.05, 0.1, 0.2, 0.33, 0.5];

/// Risk of re-identification, from 0 to 1, by the groups of equal generalized records over all
/// quasi-identifiers: a patient in a group of *|G|* records is picked with probability *1/|G|*.
/// Under LKC-privacy with fewer known values it is lower: then at most *1 / smallest group* of
/// the verification.
///
/// Where the dataset has a subject column, *|G|* is the number of distinct persons of the group,
/// and records are persons: one with rows in several groups is in each.
///
/// Of an anatomized release the groups are those of its quasi-identifier table, whose values are
/// exact: the model protects the link to sensitive values, which `attribute` measures.
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
    /// Prosecutor risk, of an adversary who knows that the patient is in the table: `highest`.
    #[serde(default)]
    pub prosecutor: f64,
    /// Journalist risk, of an adversary who does not know whether the patient is in the table. It
    /// is *1 / smallest group of the population*, in which a group is at least as large as in the
    /// table. The population is not known here, so this is its upper bound, `prosecutor`.
    #[serde(default)]
    pub journalist: f64,
    /// Marketer risk, the expected share of records that are assigned to the right patients:
    /// `average`.
    #[serde(default)]
    pub marketer: f64,
    /// Share of the records whose risk *1/|G|* is above a threshold. With a subject column for the
    /// holder alone, of persons and with two significant digits.
    #[serde(default)]
    pub share_above: Vec<ShareAbove>,
    /// The risk from adversaries who know some of the quasi-identifiers, from one value on; up to *L* +
    /// 2, or all where the model has no *L*. Empty for releases with sets and for anatomized ones.
    /// With a subject column for the holder alone.
    #[serde(default)]
    pub by_length: Vec<LengthRisk>,
    /// Whether `by_length` is exact. Where labels of a column overlap, which they do with local
    /// recoding, `smallest` is a lower bound, and the other figures are upper bounds, of what
    /// adversaries with raw values find.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_length_exact: Option<bool>,
    /// Lengths that are not in `by_length` because they would take too much work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lengths_left_out: Vec<u32>,
    /// Number of qids by *|T\[qid\]|*, over the lengths up to *L* that `by_length` has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub qid_sizes: Vec<QidSizes>,
    /// Number of the same qids by their greatest confidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub qid_confidences: Vec<QidConfidences>,
    /// Insensitive columns, released unchanged, that have a value in one row, or of one person, only. Of persons for
    /// the holder only, as `unchanged`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub insensitive_singled_out: Vec<String>,
    /// What the columns that are released unchanged say of the rows by themselves.
    #[serde(default)]
    pub unchanged: UnchangedRisk,
    /// The risk that a sensitive value is inferred; absent without sensitive columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute: Option<AttributeRisk>,
    /// The greatest share of one value of a sensitive column among the persons of a group who have
    /// a value in it in any of their rows of the group; from 0 to 1. Only where the dataset has a
    /// subject column. For the holder alone, with two significant digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub greatest_confidence_per_subject: Option<f64>,
}

/// The share of records above a risk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShareAbove {
    /// The risk *1/|G|*, not included.
    pub threshold: f64,
    /// Share of the records with a greater risk, from 0 to 1.
    pub share: f64,
}

/// The risk from an adversary who knows at most `length` quasi-identifiers of a patient. A *qid* is a
/// combination of released values of at most `length` quasi-identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LengthRisk {
    /// Maximum number of known values; above *L* this is more than the model assumes.
    pub length: u32,
    /// The least *|T\[qid\]|*, in records, or in persons where the dataset has a subject column.
    pub smallest: u64,
    /// Share of the records, or persons, that have a qid which fewer than *K* records, or persons,
    /// have; from 0 to 1.
    pub share_below_k: f64,
    /// The greatest *P(s|qid)* of a value that the model bounds, or of any sensitive value where it
    /// bounds none; from 0 to 1.
    pub greatest_confidence: f64,
}

impl Risk {
    /// The risk of a table whose groups have these sizes, in records.
    pub(crate) fn from_sizes(sizes: &[u32]) -> Self {
        let Some(smallest) = sizes.iter().copied().min().filter(|&size| size > 0) else {
            return Self::default();
        };
        let rows: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
        let at_highest = sizes.iter().filter(|&&size| size == smallest).count() as u64;
        let (highest, average) = (1.0 / f64::from(smallest), sizes.len() as f64 / rows as f64);
        let share_above = THRESHOLDS.map(|threshold| {
            let above = sizes
                .iter()
                .filter(|&&size| 1.0 / f64::from(size) > threshold);
            let above: u64 = above.map(|&size| u64::from(size)).sum();
            ShareAbove {
                threshold,
                share: above as f64 / rows as f64,
            }
        });
        Self {
            highest,
            average,
            records_at_highest: at_highest * u64::from(smallest),
            prosecutor: highest,
            journalist: highest,
            marketer: average,
            share_above: share_above.to_vec(),
            ..Self::default()
        }
    }

    /// The risk of a table whose groups have these persons.
    pub(crate) fn of_subjects(groups: &SubjectGroups) -> Self {
        let by_size = Self::from_sizes(&groups.sizes);
        let average = rounded(by_size.average);
        let share_above = by_size.share_above.iter().map(|above| ShareAbove {
            share: rounded(above.share),
            ..*above
        });
        Self {
            average,
            marketer: average,
            share_above: share_above.collect(),
            greatest_confidence_per_subject: Some(rounded(groups.greatest_confidence())),
            ..by_size
        }
    }

    /// Records, or persons where the dataset has a subject column, of the smallest group; 0 for an empty table. The
    /// inverse of the risk is that number, up to the rounding of one division.
    pub(crate) fn smallest_group(&self) -> u64 {
        if self.highest > 0.0 {
            (1.0 / self.highest).round() as u64
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use pais_verify::SubjectGroups;

    use super::{Risk, ShareAbove};

    fn shares(shares: [f64; 5]) -> Vec<ShareAbove> {
        let pairs = super::THRESHOLDS.into_iter().zip(shares);
        let pairs = pairs.map(|(threshold, share)| ShareAbove { threshold, share });
        pairs.collect()
    }

    #[test]
    fn risk_is_one_divided_by_the_group_size() {
        let risk = Risk {
            highest: 0.5,
            average: 0.375,
            records_at_highest: 4,
            prosecutor: 0.5,
            journalist: 0.5,
            marketer: 0.375,
            share_above: shares([1.0, 1.0, 1.0, 0.5, 0.0]),
            ..Risk::default()
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
            prosecutor: 0.5,
            journalist: 0.5,
            marketer: 0.33,
            share_above: shares([1.0, 1.0, 1.0, 0.56, 0.0]),
            greatest_confidence_per_subject: Some(0.67),
            ..Risk::default()
        };
        assert_eq!(Risk::of_subjects(&groups), risk);
    }
}
