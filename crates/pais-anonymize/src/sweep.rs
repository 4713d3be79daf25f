//! What the combinations of a sweep come to, and how their searches are followed as one.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::problem::Problem;
use crate::problem::ProblemDocument;
use pais_core::definition::sweep::Combination;

use super::{Count, Observer, Phase, StepRecord};

/// How a combination ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SweepStatus {
    /// It has a table, which can be released.
    Succeeded,
    /// No generalization meets it.
    Failed,
}

/// One combination of a sweep, as `GET /v1/jobs/{id}/sweep` shows it. The figures are those of
/// the last step, null where the combination failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SweepItem {
    /// *L*, where the model takes it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<i64>))]
    pub l: Option<Value>,
    /// *K*, where the model takes it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<i64>))]
    pub k: Option<Value>,
    /// *C*, where the model takes it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
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

/// Several searches that together make one, whichever of them run at a time.
pub struct Searches<'a> {
    /// Follows them all.
    whole: &'a dyn Observer,
    parts: Mutex<Vec<Told>>,
}

/// What one search has told last.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    fraction: f64,
    steps: u64,
}

impl<'a> Searches<'a> {
    /// So many searches, followed by `whole`.
    pub fn new(whole: &'a dyn Observer, count: usize) -> Self {
        Self {
            whole,
            parts: Mutex::new(vec![Told::default(); count]),
        }
    }

    /// The observer of the search with this number, from 0.
    pub fn part(&self, number: usize) -> Part<'_> {
        Part {
            searches: self,
            number,
        }
    }

    /// Notes what a search tells; what all of them have told then.
    fn note(&self, number: usize, note: impl FnOnce(&mut Told)) -> Told {
        // A change of two numbers is whole, whoever panicked after.
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(told) = parts.get_mut(number) {
            note(told);
        }
        let sum: f64 = parts.iter().map(|told| told.fraction).sum();
        Told {
            fraction: sum / parts.len().max(1) as f64,
            steps: parts.iter().map(|told| told.steps).sum(),
        }
    }
}

/// The observer of one of several searches: the whole hears of the mean of their fractions and
/// of the sum of their steps.
pub struct Part<'a> {
    searches: &'a Searches<'a>,
    number: usize,
}

impl Observer for Part<'_> {
    fn progress(&self, phase: Phase, fraction: f64) {
        let note = |told: &mut Told| told.fraction = fraction.clamp(0.0, 1.0);
        let all = self.searches.note(self.number, note);
        self.searches.whole.progress(phase, all.fraction);
    }

    fn counted(&self, count: Count) {
        match count {
            // They read the same rows.
            Count::RowsRead(_) => self.searches.whole.counted(count),
            Count::StepsDone(steps) => {
                let all = self.searches.note(self.number, |told| told.steps = steps);
                self.searches.whole.counted(Count::StepsDone(all.steps));
            }
        }
    }

    fn must_stop(&self) -> bool {
        self.searches.whole.must_stop()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::Searches;
    use crate::{Count, Observer, Phase};

    #[derive(Default)]
    struct Heard(Mutex<(f64, Vec<Count>)>);

    impl Observer for Heard {
        fn progress(&self, _: Phase, fraction: f64) {
            self.0.lock().unwrap().0 = fraction;
        }

        fn counted(&self, count: Count) {
            self.0.lock().unwrap().1.push(count);
        }

        fn must_stop(&self) -> bool {
            true
        }
    }

    #[test]
    fn searches_add_up_in_whatever_order_they_run() {
        let heard = Heard::default();
        let searches = Searches::new(&heard, 4);
        let (first, third) = (searches.part(0), searches.part(2));
        third.progress(Phase::Searching, 1.0);
        first.progress(Phase::Searching, 0.5);
        first.counted(Count::StepsDone(3));
        third.counted(Count::StepsDone(4));
        third.counted(Count::StepsDone(4));
        first.counted(Count::StepsDone(5));
        assert!(first.must_stop());
        let (fraction, counts) = heard.0.into_inner().unwrap();
        assert_eq!(fraction, 0.375);
        assert_eq!(counts, [3, 7, 7, 9].map(Count::StepsDone));
    }
}
