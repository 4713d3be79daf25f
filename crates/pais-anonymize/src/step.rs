//! The steps of a top-down run.

use std::collections::BTreeMap;

use pais_measure::TableFigures;
use serde::{Deserialize, Serialize};

/// One specialization of a top-down run, as `GET /v1/jobs/{id}/steps` shows it. Step 0 is the
/// topmost table and has neither attribute nor score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepItem {
    /// 0 for the topmost table.
    pub step: u32,
    /// The column specialized.
    pub attribute: Option<String>,
    /// *v*, the label specialized.
    pub value: Option<String>,
    /// *child(v)*, in the order of the taxonomy.
    pub children: Vec<String>,
    /// *Score(v)* under the job's objective; null too in steps of a thorough search whose cut a run
    /// under another objective found, where the steps to it are not searched again.
    pub score: Option<f64>,
    /// Equivalence classes after the step.
    pub groups: u64,
    /// Rows, or persons where the dataset has a subject column, of the smallest class after the step:
    /// records that are equal in all quasi-identifiers.
    pub smallest_group: u64,
    /// Rows, or persons, of the smallest group that an adversary of the model can know after the
    /// step, which *K* bounds; absent where it would take too long to find, and in steps of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_known_group: Option<u64>,
    /// Greatest share of a class's rows that have one bounded sensitive value, after the step;
    /// null where none is bounded.
    #[serde(default)]
    pub greatest_confidence: Option<f64>,
    /// Discernibility ratio after the step.
    pub dr: f64,
    /// Mean NCP after the step.
    pub ncp: f64,
    /// NCP of each quasi-identifier after the step.
    #[serde(default)]
    pub ncp_by_column: BTreeMap<String, f64>,
    /// Rows suppressed up to and including the step.
    pub suppressed_rows: u64,
}

/// A step with what is needed to rebuild the table after it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRecord {
    /// As shown.
    pub item: StepItem,
    /// Numbers of the rows that this step suppressed, ascending.
    pub suppressed: Vec<u32>,
}

impl From<&StepItem> for TableFigures {
    fn from(last: &StepItem) -> Self {
        Self {
            steps: Some(last.step),
            groups: last.groups,
            smallest_group: last.smallest_group,
            smallest_known_group: last.smallest_known_group,
            dr: last.dr,
            ncp: last.ncp,
            suppressed_rows: last.suppressed_rows,
        }
    }
}
