//! The greedy runs that a thorough search starts from: one for each objective and split rule.

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use pais_core::definition::{Objective, SplitRule};
use pais_core::table::{Domain, EncodedTable};

use super::super::replay;
use super::super::search::{self, SpecializationSettings, SpecializationTask};
use super::super::topmost::Draw;
use super::path::Target;
use super::space::{ClassSums, Measure};
use crate::error::RunError;
use crate::observer::{Deadline, Observer};
use crate::published_cut::Cut;
use crate::step::StepRecord;

/// The share of the time limit after which no further greedy run begins or goes on.
const SHARE_OF_TIME: f64 = 0.4;

/// A greedy run that ended.
pub(super) struct Start {
    /// The objective of the scores of the steps.
    pub(super) objective: Objective,
    pub(super) steps: Vec<StepRecord>,
    pub(super) target: Target,
    /// The loss of its last table under the requested objective.
    pub(super) loss: f64,
}

impl Start {
    pub(super) fn new(
        table: &EncodedTable,
        steps: Vec<StepRecord>,
        objective: Objective,
        measure: &Measure,
    ) -> Option<Self> {
        let last = &steps.last()?.item;
        let cuts = replay::cuts_at(table, &steps, last.step).ok()?;
        let loss = match measure.objective() {
            Objective::Ncp => last.ncp,
            Objective::Discernibility | Objective::DiscernibilityEq4 => last.dr,
            Objective::Classification => class_loss(table, &cuts, &steps, measure),
        };
        Some(Self {
            objective,
            target: Target::of_cuts(table, &cuts),
            steps,
            loss,
        })
    }

    /// All rows that its steps suppressed, ascending.
    pub(super) fn suppressed(&self) -> Vec<u32> {
        let rows = self.steps.iter().flat_map(|record| &record.suppressed);
        let mut rows: Vec<u32> = rows.copied().collect();
        rows.sort_unstable();
        rows
    }
}

/// The greedy search with every objective and split rule.
pub(super) struct GreedyRuns<'a> {
    /// The requested run.
    pub(super) task: SpecializationTask<'a>,
    pub(super) measure: &'a Measure,
}

impl GreedyRuns<'_> {
    /// Runs the requested search, and then the search with every other objective and split rule while a part of
    /// the time limit lasts. The first result is that of the requested run. All suppress the same rows of the
    /// topmost table.
    ///
    /// # Errors
    /// Those of the requested run, and cancellation.
    pub(super) fn run(
        &self,
        mut draw: Option<&mut Draw<'_>>,
        began: Instant,
        limit: Duration,
    ) -> Result<Vec<Start>, RunError> {
        let SpecializationTask {
            table,
            settings,
            observer,
            ..
        } = self.task;
        let mut drawn: Vec<u64> = Vec::new();
        let mut starts = Vec::new();
        for (number, settings) in all_runs(table, settings).enumerate() {
            let limit = (number > 0).then(|| limit.mul_f64(SHARE_OF_TIME));
            let deadline = Deadline::new(observer, began, limit);
            if number > 0 && deadline.must_stop() {
                break;
            }
            let mut at = 0;
            let mut repeated = |below: u64| {
                if at == drawn.len() {
                    let new = draw.as_mut().map_or(0, |draw| draw(below));
                    drawn.push(new);
                }
                at += 1;
                drawn[at - 1]
            };
            let suppresses_topmost = settings.suppression_for
                == pais_core::definition::SuppressionFor::SizeAndConfidence;
            let repeated = suppresses_topmost.then_some(&mut repeated as &mut Draw<'_>);
            let task = SpecializationTask {
                settings,
                observer: &deadline,
                ..self.task
            };
            let steps = search::search(task, repeated);
            match steps {
                Ok(steps) => {
                    starts.extend(Start::new(table, steps, settings.objective, self.measure))
                }
                Err(error) if number == 0 || observer.must_stop() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(starts)
    }
}

/// The requested settings, then those with every other objective and split rule that differs for the table.
fn all_runs(
    table: &EncodedTable,
    asked: SpecializationSettings,
) -> impl Iterator<Item = SpecializationSettings> {
    let has_class = table.class.is_some();
    let mut columns = table.quasi_identifiers.iter();
    let has_intervals = columns.any(|it| matches!(it.domain, Domain::Numeric { .. }));
    let objectives = [
        Objective::Ncp,
        Objective::Discernibility,
        Objective::Classification,
        Objective::DiscernibilityEq4,
    ];
    let objectives = move || {
        objectives
            .into_iter()
            .filter(move |it| has_class || *it != Objective::Classification)
    };
    let splits = [SplitRule::Fixed, SplitRule::BestValid];
    let splits = splits.into_iter().take(if has_intervals { 2 } else { 1 });
    let runs = splits.flat_map(move |split| {
        objectives().map(move |objective| SpecializationSettings {
            objective,
            split,
            ..asked
        })
    });
    let is_other = move |it: &SpecializationSettings| {
        (it.objective, it.split) != (asked.objective, asked.split)
    };
    [asked].into_iter().chain(runs.filter(is_other))
}

/// The loss under `classification` of the last table of a run.
fn class_loss(table: &EncodedTable, cuts: &[Cut], steps: &[StepRecord], measure: &Measure) -> f64 {
    let Some(class) = &table.class else {
        return f64::INFINITY;
    };
    let mut is_kept = vec![true; table.rows];
    for &row in steps.iter().flat_map(|record| &record.suppressed) {
        is_kept[row as usize] = false;
    }
    let mut groups: FxHashMap<Vec<u32>, usize> = FxHashMap::default();
    let mut counts: Vec<u64> = Vec::new();
    for row in (0..table.rows).filter(|&row| is_kept[row]) {
        let columns = table.quasi_identifiers.iter().zip(cuts);
        let key = columns.map(|(column, cut)| cut.label_of[column.codes.at(row) as usize]);
        let next = groups.len();
        let group = *groups.entry(key.collect()).or_insert(next);
        counts.resize(groups.len() * class.classes, 0);
        counts[group * class.classes + class.codes.at(row) as usize] += 1;
    }
    let mut tally = ClassSums::default();
    for counts in counts.chunks(class.classes.max(1)) {
        let size: u64 = counts.iter().sum();
        tally.sum += measure.term(size as u32, counts, 0.0);
        tally.kept += size;
    }
    measure.loss(tally)
}
