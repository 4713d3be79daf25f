//! What the combinations of a sweep come to.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::Problem;
use crate::domain::problem::ProblemDocument;
use crate::domain::sweep::Combination;

use super::{Observer, Phase, StepRecord};

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
/// the last step, null where the combination failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SweepItem {
    /// *L*, where the model takes it.
    #[schema(value_type = Option<i64>)]
    pub l: Option<Value>,
    /// *K*, where the model takes it.
    #[schema(value_type = Option<i64>)]
    pub k: Option<Value>,
    /// *C*, where the model takes it.
    #[schema(value_type = Option<f64>)]
    pub c: Option<Value>,
    /// How it ended.
    pub status: SweepStatus,
    /// Specializations performed.
    pub steps: Option<u32>,
    /// Equivalence classes.
    pub groups: Option<u64>,
    /// Rows of the smallest class.
    pub smallest_group: Option<u64>,
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

impl SweepItem {
    /// What a combination came to in so many seconds.
    pub fn of(
        combination: &Combination,
        outcome: Result<&[StepRecord], &Problem>,
        seconds: f64,
    ) -> Self {
        let [l, k, c] = combination.values().map(Option::<&Value>::cloned);
        let last = outcome.ok().and_then(|steps| steps.last());
        let last = last.map(|record| &record.item);
        Self {
            l,
            k,
            c,
            status: match outcome {
                Ok(_) => SweepStatus::Succeeded,
                Err(_) => SweepStatus::Failed,
            },
            steps: last.map(|item| item.step),
            groups: last.map(|item| item.groups),
            smallest_group: last.map(|item| item.smallest_group),
            dr: last.map(|item| item.dr),
            ncp: last.map(|item| item.ncp),
            suppressed_rows: last.map(|item| item.suppressed_rows),
            seconds,
            error: outcome.err().map(Problem::document),
        }
    }
}

/// The observer of one of several searches that together make one.
pub struct Part<'a> {
    /// Follows them all.
    pub whole: &'a dyn Observer,
    /// Which of them, from 0.
    pub number: usize,
    /// How many there are.
    pub count: usize,
}

impl Observer for Part<'_> {
    fn progress(&self, phase: Phase, fraction: f64) {
        let done = self.number as f64 + fraction.clamp(0.0, 1.0);
        self.whole.progress(phase, done / self.count.max(1) as f64);
    }

    fn must_stop(&self) -> bool {
        self.whole.must_stop()
    }
}
