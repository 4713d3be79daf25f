//! The results of runs in the form in which they are stored and shown to their holders.

use pais_anonymize::{RunError, SweepOutcome};
use pais_core::definition::{Objective, Recoding};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use utoipa::ToSchema;

use crate::db::StoreError;
use crate::problem::{Problem, ProblemDocument};

/// How a combination ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SweepStatus {
    /// It has a table, which can be released.
    Succeeded,
    /// No generalization meets it.
    Failed,
}

/// One combination of a sweep, as `GET /v1/jobs/{id}/sweep` shows it. The figures are those of
/// the last step, or of the groups; null where the combination failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SweepItem {
    /// *L*, where the model takes it.
    #[schema(value_type = Option<i64>)]
    pub l: Option<Number>,
    /// *K*, where the model takes it.
    pub k: Option<i64>,
    /// *C*, where the model takes it.
    pub c: Option<f64>,
    /// The recoding, where the job gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recoding: Option<Recoding>,
    /// The objective, where the job gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Objective>,
    /// How it ended.
    pub status: SweepStatus,
    /// Specializations performed; null for groups, which have no steps.
    pub steps: Option<u32>,
    /// Equivalence classes.
    pub groups: Option<u64>,
    /// Rows, or persons, of the smallest class: records that are equal in all quasi-identifiers.
    pub smallest_group: Option<u64>,
    /// Rows, or persons, of the smallest group that an adversary of the model can know, which *K*
    /// bounds; absent where it would take too long to find.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_known_group: Option<u64>,
    /// Discernibility ratio.
    pub dr: Option<f64>,
    /// Mean NCP.
    pub ncp: Option<f64>,
    /// Rows suppressed.
    pub suppressed_rows: Option<u64>,
    /// How long the search took.
    pub seconds: f64,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ProblemDocument>,
}

impl From<&SweepOutcome> for SweepItem {
    fn from(outcome: &SweepOutcome) -> Self {
        let last = outcome.table;
        let problem = |error: &RunError| Problem::from(error.clone()).document();
        Self {
            l: outcome.combination.l.clone(),
            k: outcome.combination.k,
            c: outcome.combination.c,
            recoding: outcome.combination.recoding,
            objective: outcome.combination.objective,
            status: match &outcome.steps {
                Ok(_) => SweepStatus::Succeeded,
                Err(_) => SweepStatus::Failed,
            },
            steps: last.and_then(|item| item.steps),
            groups: last.map(|item| item.groups),
            smallest_group: last.map(|item| item.smallest_group),
            smallest_known_group: last.and_then(|item| item.smallest_known_group),
            dr: last.map(|item| item.dr),
            ncp: last.map(|item| item.ncp),
            suppressed_rows: last.map(|item| item.suppressed_rows),
            seconds: outcome.seconds,
            error: outcome.steps.as_ref().err().map(problem),
        }
    }
}

/// A result as JSON.
///
/// # Errors
/// When it cannot be written as JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Result<Value, StoreError> {
    Ok(serde_json::to_value(value)?)
}
