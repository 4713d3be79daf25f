//! Risk beside the thresholds of guidelines: 0.09 of the chance to pick the right record, and cells of
//! 11.

use serde::{Deserialize, Serialize};

use super::opinion::UniqueRows;
use crate::release::MeasuredRelease;
use crate::utility::Risk;

/// The threshold of EMA Policy 0070 (EMA/90915/2016, chapter 3) and of Health Canada's guidance on
/// the public release of clinical information.
const GREATEST_RISK: f64 = 0.09;

/// The smallest number of persons of a cell that is not 0 (cell size suppression policy of CMS: no cell
/// of 1 to 10).
const LEAST_CELL: u64 = 11;

/// The risk of re-identification beside a threshold, for somebody who knows every quasi-identifier.
/// What the columns add that are released unchanged is not in it.
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
    /// Whether the average risk is at most the threshold.
    pub average_is_within: bool,
}

impl RiskThreshold {
    pub(super) fn new(risk: &Risk) -> Self {
        Self {
            threshold: GREATEST_RISK,
            highest: risk.highest,
            average: risk.average,
            highest_is_within: risk.highest <= GREATEST_RISK,
            average_is_within: risk.average <= GREATEST_RISK,
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
    pub(super) fn new(release: &MeasuredRelease, risk: &Risk, groups: &UniqueRows) -> Self {
        // The inverse of the risk is the size, up to the rounding of one division.
        let smallest = if risk.highest > 0.0 {
            (1.0 / risk.highest).round() as u64
        } else {
            0
        };
        let share = || groups.share_in_groups_below(LEAST_CELL);
        Self {
            least: LEAST_CELL,
            smallest,
            all_are_within: smallest == 0 || smallest >= LEAST_CELL,
            share_in_smaller: release.persons.is_none().then(share),
        }
    }
}
