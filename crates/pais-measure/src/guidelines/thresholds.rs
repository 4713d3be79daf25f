//! Risk compared with the thresholds of guidelines: 0.09 for the probability of picking the right record, and
//! cells of 11.

use pais_core::table::ACCEPTED_RISK;
use pais_verify::SubjectGroups;
use serde::{Deserialize, Serialize};

use super::opinion::UniqueRows;
use crate::release::MeasuredRelease;
use crate::utility::Risk;

/// The smallest number of persons of a cell that is not 0 (cell size suppression policy of CMS: no cell
/// of 1 to 10).
const LEAST_CELL: u64 = 11;

/// The risk of re-identification compared with a threshold, for somebody who knows every quasi-identifier.
/// It does not include the risk of columns that are released unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RiskThreshold {
    /// The threshold, 0.09. Groups of 12 are below it; groups of 11 have 0.0909.
    pub threshold: f64,
    /// The greatest risk, `risk.highest`; the figure for data that is published.
    pub highest: f64,
    /// The average risk, `risk.average`; for data that is shared under controls.
    pub average: f64,
    /// Whether the greatest risk is at most the threshold.
    pub highest_is_within: bool,
    /// Whether the average risk is at most the threshold. Where the dataset has a subject column the
    /// average is rounded, so it has to be below the threshold.
    pub average_is_within: bool,
}

impl RiskThreshold {
    pub(super) fn new(risk: &Risk, persons: Option<&SubjectGroups>) -> Self {
        // 0.0904 is rounded to 0.09.
        let is_rounded = persons.is_some();
        Self {
            threshold: ACCEPTED_RISK,
            highest: risk.highest,
            average: risk.average,
            highest_is_within: risk.highest <= ACCEPTED_RISK,
            average_is_within: if is_rounded {
                risk.average < ACCEPTED_RISK
            } else {
                risk.average <= ACCEPTED_RISK
            },
        }
    }
}

/// The groups of equal quasi-identifiers as cells of a table. A table that also divides by other
/// columns has smaller cells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SmallCells {
    /// The least permitted size of a cell, 11.
    pub least: u64,
    /// Records of the smallest group, or persons where the dataset has a subject column; 0 for an
    /// empty table.
    pub smallest: u64,
    /// Whether every group has at least that size.
    pub all_are_within: bool,
    /// Share of the records in smaller groups, from 0 to 1. Absent where the dataset has a subject
    /// column: it needs to know which rows are of one person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_in_smaller: Option<f64>,
}

impl SmallCells {
    pub(super) fn new(release: &MeasuredRelease, risk: &Risk, groups: &UniqueRows<'_>) -> Self {
        let smallest = risk.smallest_group();
        let share = || groups.share_in_groups_below(LEAST_CELL);
        Self {
            least: LEAST_CELL,
            smallest,
            all_are_within: smallest == 0 || smallest >= LEAST_CELL,
            share_in_smaller: release.persons.is_none().then(share),
        }
    }
}

#[cfg(test)]
mod tests {
    use pais_verify::SubjectGroups;

    use super::RiskThreshold;
    use crate::utility::Risk;

    /// As many groups of 10 and of 100 persons as are asked for.
    fn persons(of_10: usize, of_100: usize) -> SubjectGroups {
        SubjectGroups {
            subjects: (10 * of_10 + 100 * of_100) as u64,
            sizes: [vec![10; of_10], vec![100; of_100]].concat(),
            confidences: Vec::new(),
        }
    }

    #[test]
    fn an_average_that_is_rounded_to_the_threshold_may_be_above_it() {
        // With 200 groups of 10 it is 0.0957, with 82 groups of 10 it is 0.0902, with 80 exactly 0.09.
        for (groups, average, of_rows, of_persons) in [
            (persons(200, 1), 0.096, false, false),
            (persons(82, 1), 0.09, false, false),
            (persons(80, 1), 0.09, true, false),
            (persons(70, 1), 0.089, true, true),
        ] {
            let exact = RiskThreshold::new(&Risk::from_sizes(&groups.sizes), None);
            assert_eq!(exact.average_is_within, of_rows, "{exact:?}");
            let rounded = RiskThreshold::new(&Risk::of_subjects(&groups), Some(&groups));
            assert_eq!(rounded.average, average);
            assert_eq!(rounded.average_is_within, of_persons, "{rounded:?}");
        }
    }
}
