//! Sweeps: searches under several combinations of parameters over the same encoded rows.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use pais_core::cancellation::Cancellation;
use pais_core::definition::{Combination, JobDefinition, Sweep};
use pais_measure::TableFigures;

use crate::error::RunError;
use crate::method::SearchOutcome;
use crate::observer::{Count, Observer, Phase};
use crate::plan::PARALLEL_SEARCHES;
use crate::run::AnonymizationRun;
use crate::step::StepRecord;

/// The result of one combination of a sweep.
#[derive(Clone, Debug)]
pub struct SweepOutcome {
    /// Its parameters.
    pub combination: Combination,
    /// The steps of its search, none for a method without steps;
    /// [`RunError::NotAnonymizable`] if no generalization meets it.
    pub steps: Result<Vec<StepRecord>, RunError>,
    /// The table that its release would have; `None` where no generalization meets it.
    pub table: Option<TableFigures>,
    /// How long the search took.
    pub seconds: f64,
}

/// Searches under every combination of a job's lists of parameters, in the order of `sweep`.
///
/// `run` holds the encoded rows, prepared for the first combination of `job`.
///
/// ```
/// # use std::sync::Arc;
/// use pais_anonymize::{AnonymizationRun, RunError, Unobserved, run_sweep};
/// use pais_core::definition::{JobDefinition, Sweep, json};
/// # use pais_core::definition::DatasetDefinition;
/// # use pais_io::read::csv;
/// # use pais_core::schema::Schema;
/// # let dataset: DatasetDefinition = json::parse(
/// #     br#"{"name": "a", "columns": [{"name": "sex", "role": "quasi_identifier"}]}"#,
/// # )?;
/// # let schema = Arc::new(Schema::inline(&dataset)?);
/// # let table = csv::read_table(&schema, "sex\nF\nM\nF\nM\n".as_bytes())?;
///
/// // Four rows of a column `sex`.
/// let job: JobDefinition = json::parse(br#"{"privacy": {"model": "k_anonymity", "k": [2, 4, 5]}}"#)?;
/// let sweep = Sweep::new(&job)?;
/// let observer = Unobserved::default();
/// let first = sweep.combinations[0].apply(&job).parse()?;
/// let run = AnonymizationRun::new(schema, first, table, &observer)?;
/// let outcomes = run_sweep(&run, &job, &sweep, &observer)?;
/// let steps: Vec<_> = outcomes.iter().map(|outcome| outcome.steps.as_ref().map(Vec::len)).collect();
/// assert_eq!((&steps[0], &steps[1]), (&Ok(2), &Ok(1)));
/// assert!(matches!(steps[2], Err(RunError::NotAnonymizable { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`RunError`], except that a combination that no generalization meets is an outcome of its own.
pub fn run_sweep(
    run: &AnonymizationRun,
    job: &JobDefinition,
    sweep: &Sweep,
    observer: &dyn Observer,
) -> Result<Vec<SweepOutcome>, RunError> {
    let count = sweep.combinations.len();
    let next = AtomicUsize::new(0);
    let progress = SweepProgress::new(observer, count);
    let search = |number: usize| -> Result<SweepOutcome, RunError> {
        let combination = &sweep.combinations[number];
        let run = run.with_job(combination.apply(job).parse()?)?;
        let observer = progress.search(number);
        let began = Instant::now();
        let found = run.search(&observer);
        let seconds = began.elapsed().as_secs_f64();
        let table = match &found {
            Ok(found) => Some(run.figures(found, &observer)?),
            Err(_) => None,
        };
        // A failed search has ended too.
        observer.progress(Phase::Searching, 1.0);
        match found {
            Ok(_) | Err(RunError::NotAnonymizable { .. }) => Ok(SweepOutcome {
                combination: combination.clone(),
                steps: found.map(SearchOutcome::into_steps),
                table,
                seconds,
            }),
            Err(error) => Err(error),
        }
    };
    let worker = || {
        let numbers = std::iter::from_fn(|| {
            let number = next.fetch_add(1, Ordering::Relaxed);
            (number < count).then_some(number)
        });
        let outcomes = numbers.map(|number| Ok((number, search(number)?)));
        let outcomes = outcomes.collect::<Result<Vec<_>, RunError>>();
        if outcomes.is_err() {
            // The sweep has failed: the other worker takes no further combination.
            next.store(count, Ordering::Relaxed);
        }
        outcomes
    };
    let outcomes = thread::scope(|scope| {
        let workers: Vec<_> = (0..PARALLEL_SEARCHES.min(count))
            .map(|_| scope.spawn(worker))
            .collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined
            .map(|outcomes| outcomes.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let mut outcomes: Vec<_> = outcomes.into_iter().flatten().collect();
    outcomes.sort_unstable_by_key(|(number, _)| *number);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

/// The progress of several searches, reported as that of one.
struct SweepProgress<'a> {
    whole: &'a dyn Observer,
    searches: Mutex<Vec<SearchProgress>>,
}

/// What one search has reported last.
#[derive(Clone, Copy, Debug, Default)]
struct SearchProgress {
    fraction: f64,
    steps: u64,
}

impl<'a> SweepProgress<'a> {
    /// The progress of `count` searches, reported to `whole`.
    fn new(whole: &'a dyn Observer, count: usize) -> Self {
        Self {
            whole,
            searches: Mutex::new(vec![SearchProgress::default(); count]),
        }
    }

    /// The observer of the search with this number, from 0.
    fn search(&self, number: usize) -> SearchObserver<'_> {
        SearchObserver {
            sweep: self,
            number,
        }
    }

    /// Updates the progress of a search; the mean fraction and the sum of steps of all of them.
    fn update(&self, number: usize, update: impl FnOnce(&mut SearchProgress)) -> SearchProgress {
        // No update leaves a number half written, so a poisoned lock is harmless.
        let mut searches = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(search) = searches.get_mut(number) {
            update(search);
        }
        let sum: f64 = searches.iter().map(|search| search.fraction).sum();
        SearchProgress {
            fraction: sum / searches.len().max(1) as f64,
            steps: searches.iter().map(|search| search.steps).sum(),
        }
    }
}

/// The observer of one of several searches.
struct SearchObserver<'a> {
    sweep: &'a SweepProgress<'a>,
    number: usize,
}

impl Observer for SearchObserver<'_> {
    fn progress(&self, phase: Phase, fraction: f64) {
        let update = |search: &mut SearchProgress| search.fraction = fraction.clamp(0.0, 1.0);
        let all = self.sweep.update(self.number, update);
        self.sweep.whole.progress(phase, all.fraction);
    }

    fn counted(&self, count: Count) {
        match count {
            // They read the same rows.
            Count::RowsRead(_) => self.sweep.whole.counted(count),
            Count::StepsDone(steps) => {
                let all = self
                    .sweep
                    .update(self.number, |search| search.steps = steps);
                self.sweep.whole.counted(Count::StepsDone(all.steps));
            }
        }
    }

    fn cancellation(&self) -> &Cancellation {
        self.sweep.whole.cancellation()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use pais_core::cancellation::Cancellation;

    use super::SweepProgress;
    use crate::{Count, Observer, Phase};

    #[derive(Default)]
    struct Reports(Mutex<(f64, Vec<Count>)>, Cancellation);

    impl Observer for Reports {
        fn progress(&self, _: Phase, fraction: f64) {
            self.0.lock().unwrap().0 = fraction;
        }

        fn counted(&self, count: Count) {
            self.0.lock().unwrap().1.push(count);
        }

        fn cancellation(&self) -> &Cancellation {
            &self.1
        }
    }

    #[test]
    fn searches_add_up_in_whatever_order_they_run() {
        let reports = Reports::default();
        reports.1.cancel();
        let searches = SweepProgress::new(&reports, 4);
        let (first, third) = (searches.search(0), searches.search(2));
        third.progress(Phase::Searching, 1.0);
        first.progress(Phase::Searching, 0.5);
        first.counted(Count::StepsDone(3));
        third.counted(Count::StepsDone(4));
        third.counted(Count::StepsDone(4));
        first.counted(Count::StepsDone(5));
        assert!(first.must_stop());
        let (fraction, counts) = reports.0.into_inner().unwrap();
        assert_eq!(fraction, 0.375);
        assert_eq!(counts, [3, 7, 7, 9].map(Count::StepsDone));
    }
}
