//! The thorough search: more levels of the relational columns, and in each relational class
//! disclosures with random deviations, as long as they find something within the time limit.
//!
//! It begins with the greedy result, and returns it where nothing loses less. The random choices of
//! a relational class depend on the seed and on its place alone, so that a search which ends before
//! its limit gives the same table with any number of threads.

use std::time::{Duration, Instant};

use pais_core::parallel;

use super::class::EquivalenceClass;
use super::disclosure::StopCheck;
use super::refine::Allowance;
use super::refine::choices;
use super::refine::{by_relational_class, cannot_lose_less, disclosed_singly, kept, regroup};
use super::search::{DisclosureTask, Found};
use super::search::{TIE, ThoroughSearch, search_sets};
use super::settle::settle;
use super::settle::{ItemGains, disclose_singly, mix};
use crate::error::RunError;
use crate::observer::Phase;

/// Maximum number of levels of the relational columns that are refined at random, those that lose least.
const FINALISTS: usize = 3;

/// Restarts without gain after which a relational class is left as it is.
const PATIENCE: u32 = 60;

/// One restart of so many begins with all rows of a relational class, the others with those of a
/// few of its classes.
const WHOLE: u64 = 4;

/// Classes that a restart dissolves, on average.
const DISSOLVED: u64 = 4;

/// Maximum deviations of a gain from that of NCP, in turns.
const SPREADS: [f64; 2] = [0.3, 1.0];

/// A relational class while it is refined.
struct Part {
    rows: Vec<u32>,
    classes: Vec<EquivalenceClass>,
    /// What `classes` disclose.
    kept: f64,
    /// Restarts since the last gain.
    failures: u32,
}

/// When a search began and when it must end.
struct Clock<'a> {
    task: &'a DisclosureTask<'a>,
    began: Instant,
    limit: Duration,
}

impl Clock<'_> {
    /// Whether this share of the time is over, or the run is cancelled.
    fn is_over(&self, share: f64) -> bool {
        self.task.observer.must_stop() || self.began.elapsed() >= self.limit.mul_f64(share)
    }

    fn report(&self) {
        let share = self.began.elapsed().as_secs_f64() / self.limit.as_secs_f64();
        let observer = self.task.observer;
        observer.progress(Phase::Searching, share.min(1.0));
    }
}

/// Improves a greedy result.
///
/// # Errors
/// As [`search_sets`].
pub(super) fn improve(
    task: &DisclosureTask,
    greedy: Found,
    search: ThoroughSearch,
) -> Result<Found, RunError> {
    let clock = Clock {
        task,
        began: Instant::now(),
        limit: search.limit,
    };
    let finalists = finalists(task, greedy, &clock)?;
    let count = finalists.len() as f64;
    let mut best: Option<Found> = None;
    for (place, finalist) in (1u32..).zip(finalists) {
        // The next one also gets the time that one leaves unused.
        let share = 0.5 + 0.5 * f64::from(place) / count;
        let refined = refine_at_random(task, finalist, search.seed, &clock, share);
        if best
            .as_ref()
            .is_none_or(|best| refined.loss < best.loss - TIE)
        {
            best = Some(refined);
        }
    }
    match best.filter(|_| !task.observer.must_stop()) {
        Some(best) => Ok(best),
        None => Err(RunError::Cancelled),
    }
}

/// The results that lose least, by the levels of the relational columns; the greedy result is one
/// of them.
fn finalists(task: &DisclosureTask, greedy: Found, clock: &Clock) -> Result<Vec<Found>, RunError> {
    let stop = || clock.is_over(0.5);
    let mut found = vec![regroup(task, greedy, &mut Allowance::unlimited(), &stop)];
    for choice in choices(task, &mut Allowance::unlimited(), &stop)? {
        // More than the worst of them, and it is not among the best either.
        let enough = found.len() == FINALISTS;
        let worst = found.last().filter(|_| enough);
        if stop() || worst.is_some_and(|it| cannot_lose_less(task, choice.least_loss, it)) {
            break;
        }
        clock.report();
        let tried = search_sets(task, &choice.levels)?;
        let tried = regroup(task, tried, &mut Allowance::unlimited(), &stop);
        match found.iter_mut().find(|it| it.levels == tried.levels) {
            Some(same) if tried.loss < same.loss - TIE => *same = tried,
            Some(_) => {}
            None => found.push(tried),
        }
        found.sort_by(|one, other| one.loss.total_cmp(&other.loss));
        found.truncate(FINALISTS);
    }
    Ok(found)
}

/// Restarts the disclosure of each relational class, or of some of its classes, with other gains of
/// its items, and keeps what discloses most.
fn refine_at_random(
    task: &DisclosureTask,
    found: Found,
    seed: u64,
    clock: &Clock,
    share: f64,
) -> Found {
    let levels = found.levels.clone();
    let stop = || clock.is_over(share);
    let parts = by_relational_class(task, found).into_iter().map(|classes| {
        let rows = classes.iter().flat_map(|class| class.rows.clone());
        Part {
            rows: rows.collect(),
            kept: kept(task, &classes),
            classes,
            failures: 0,
        }
    });
    let mut parts: Vec<Part> = parts.collect();
    for restart in 0u64.. {
        if stop() || parts.iter().all(|part| part.failures >= PATIENCE) {
            break;
        }
        parallel::map(parts.iter_mut().enumerate(), |(place, part)| {
            if part.failures < PATIENCE && !stop() {
                let seed = mix(seed ^ mix(place as u64 ^ mix(restart)));
                let spread = SPREADS[restart as usize % SPREADS.len()];
                let gains = ItemGains::random(seed, spread);
                let tried = if restart.is_multiple_of(WHOLE) {
                    disclosed_singly(task, part.rows.clone(), gains, &stop)
                } else {
                    part.dissolve_some(task, gains, seed, &stop)
                };
                part.take_if_better(task, tried);
            }
        });
        clock.report();
    }
    let classes = parts.into_iter().flat_map(|part| part.classes);
    task.found(levels, classes.collect())
}

impl Part {
    /// Pools the rows of some classes, discloses their items anew, and lets rows change between all
    /// classes.
    fn dissolve_some(
        &self,
        task: &DisclosureTask,
        gains: ItemGains,
        seed: u64,
        stop: StopCheck,
    ) -> Vec<EquivalenceClass> {
        let count = self.classes.len() as u64;
        let dissolves = |place: u64| mix(seed ^ mix(place)) % count < DISSOLVED;
        let (mut pool, mut classes) = (Vec::new(), Vec::new());
        for (place, class) in (0u64..).zip(&self.classes) {
            if dissolves(place) {
                pool.extend_from_slice(&class.rows)
            } else {
                classes.push(class.clone())
            }
        }
        if !pool.is_empty() {
            let nothing = vec![Vec::new(); task.vocabularies.len()];
            let pooled = task.class_of(pool, &nothing);
            classes.extend(disclose_singly(task, pooled, gains, stop));
        }
        settle(task, classes, stop)
    }

    fn take_if_better(&mut self, task: &DisclosureTask, tried: Vec<EquivalenceClass>) {
        let kept = kept(task, &tried);
        self.failures += 1;
        if kept > self.kept + TIE {
            (self.classes, self.kept, self.failures) = (tried, kept, 0);
        }
    }
}
