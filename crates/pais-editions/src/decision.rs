//! The decision of one edition: which of the new rows it has, and under which labels.

use std::sync::Arc;

use hashbrown::HashSet;
use pais_anonymize::{AnonymizationRun, Observer, RunError, SearchOutcome, VerifiedTables};
use pais_core::definition::{ColumnRole, ContinuedCut, Job, SplitRule};
use pais_core::model::Decimal;
use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_verify::{NOWHERE, Recoded, VerifyError};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::base::{self, Bases, EarlierEdition};
use crate::held_back::{History, failing_alone, persons_to_hold_back};
use crate::known::{KnownRelease, RawTable};

/// Number of steps that are tried in addition to the last one, spread evenly over a search.
const TRIED_STEPS: u64 = 8;

/// Rounds after which all persons of earlier releases are held back at once.
const MOST_ROUNDS: usize = 12;

/// An edition to be decided.
pub struct EditionTask<'a> {
    /// The schema of the dataset.
    pub schema: Arc<Schema>,
    /// The job of the publication.
    pub job: Job,
    /// The published editions, oldest first.
    pub earlier: &'a [EarlierEdition],
    /// The secret of the dataset, on which the order of a seeded release depends.
    pub order_key: Option<Zeroizing<[u8; 32]>>,
    /// The schemas by which the edition and the known releases show values
    /// ([`pais_core::codebook::views`]); at least one.
    pub views: &'a [Schema],
    /// The raw rows: those of the edition, and those that the known releases come from.
    pub raw: &'a Table,
    /// The rows that no edition has, ascending.
    pub candidates: Vec<u32>,
    /// Releases of the dataset that recipients have.
    pub known: &'a [KnownRelease],
    /// For each recipient, which of them.
    pub histories: &'a [Vec<usize>],
}

/// An edition whose table was verified, by itself and together with what each recipient has.
pub struct DecidedEdition {
    /// The run over the rows that were not held back.
    pub run: AnonymizationRun,
    /// Its outcome.
    pub found: SearchOutcome,
    /// Its table.
    pub verified: VerifiedTables,
    /// The raw row of each row of the run.
    pub rows: Vec<u32>,
    /// Whether it does not continue the cut of an earlier edition, so that later ones continue its own.
    pub is_base: bool,
    /// The mean NCP after its step; 0 without steps.
    ncp: f64,
}

impl DecidedEdition {
    /// The raw row of each released row.
    pub fn source_rows(&self) -> Vec<u32> {
        let released = self.verified.source_rows().iter();
        released.map(|&row| self.rows[row as usize]).collect()
    }
}

/// Why an edition has no table.
#[derive(Debug, Error)]
pub enum EditionError {
    /// The rows cannot be anonymized, or the run was stopped.
    #[error(transparent)]
    Run(#[from] RunError),
    /// All rows wait for a later edition.
    #[error(
        "all rows wait for a later edition: none can be published now without breaking the privacy \
         model together with earlier releases"
    )]
    NothingLeft,
    /// What a recipient has breaks its model regardless of what the edition publishes.
    #[error(
        "together with the releases that a recipient has, the privacy model does not hold whatever \
         the edition publishes"
    )]
    Broken {
        /// The recipient: its place among the histories.
        history: usize,
    },
    /// It cannot be decided whether the model holds.
    #[error("it cannot be decided whether the privacy model holds: {0}")]
    Undecided(VerifyError),
}

impl From<VerifyError> for EditionError {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Stopped => Self::Run(RunError::Cancelled),
            error => Self::Undecided(error),
        }
    }
}

/// Decides an edition: searches, then holds back the rows of persons who would break a model together with what
/// some recipient has, and searches again over the rest, until the model holds for every recipient. From time
/// to time it is a new base edition of the same rows, if that loses noticeably less and holds nobody back.
///
/// # Errors
/// [`EditionError`].
pub fn decide_edition(
    task: EditionTask<'_>,
    observer: &dyn Observer,
) -> Result<DecidedEdition, EditionError> {
    let bases = Bases::of(task.earlier);
    let views = task.views.iter();
    let views = views.map(|schema| RawTable::new(schema, task.raw.clone()));
    let views: Vec<RawTable> = views.collect();
    let Some(persons) = views.first() else {
        return Err(internal("an edition is shown by no schema").into());
    };
    let histories = task.histories.iter();
    let histories = histories.map(|it| related(it, task.known, &task.candidates, persons));
    let histories = histories.collect();
    let decision = Decision {
        schema: task.schema,
        order_key: task.order_key,
        raw: task.raw,
        persons,
        views: &views,
        known: task.known,
        histories,
        observer,
    };
    let edition = match bases.continued() {
        None => return decision.decided(&task.job, task.candidates),
        Some(cut) => decision.decided(&continuing(&task.job, cut), task.candidates)?,
    };
    let Some(cut) = bases.tried(edition.verified.source_rows().len() as u64) else {
        return Ok(edition);
    };
    let job = Job {
        // It is not worth it to make a row wait for finer labels of other rows.
        suppression_limit: Decimal::ZERO,
        ..continuing(&task.job, cut)
    };
    let base = decision.new_base(&job, &edition, &bases)?;
    Ok(base.unwrap_or(edition))
}

/// The job of an edition that continues a cut.
fn continuing(job: &Job, cut: ContinuedCut) -> Job {
    Job {
        continued_cut: Some(cut),
        // The path to the continued cut stays open: no split point of it is dropped for a better one.
        split: Some(SplitRule::BestValid),
        thorough: None,
        ..job.clone()
    }
}

/// The data that an edition is decided on.
struct Decision<'a> {
    schema: Arc<Schema>,
    order_key: Option<Zeroizing<[u8; 32]>>,
    raw: &'a Table,
    /// One of the views, which all have the same persons.
    persons: &'a RawTable,
    /// The raw table as the edition and the known releases show it.
    views: &'a [RawTable],
    known: &'a [KnownRelease],
    /// The known releases of each recipient that the edition is decided with.
    histories: Vec<Vec<usize>>,
    observer: &'a dyn Observer,
}

/// The verified tables after a step of a search; `None` for the last one.
struct TriedStep {
    step: Option<u32>,
    verified: VerifiedTables,
}

/// A run over some rows, with its outcome.
struct Searched {
    run: AnonymizationRun,
    found: SearchOutcome,
    rows: Vec<u32>,
}

impl Searched {
    /// The edition of the tables after a step.
    fn edition(self, tried: TriedStep, is_base: bool) -> DecidedEdition {
        DecidedEdition {
            ncp: self.ncp(tried.step),
            is_base,
            run: self.run,
            found: self.found,
            verified: tried.verified,
            rows: self.rows,
        }
    }

    /// The mean NCP after a step, or the last one.
    fn ncp(&self, step: Option<u32>) -> f64 {
        let mut steps = self.found.steps().iter().rev();
        let record = steps.find(|it| step.is_none_or(|step| it.item.step == step));
        record.map_or(0.0, |record| record.item.ncp)
    }
}

impl Decision<'_> {
    fn searched(&self, job: &Job, rows: Vec<u32>) -> Result<Searched, RunError> {
        let (observer, table) = (self.observer, self.raw.of_rows(&rows));
        let run = AnonymizationRun::new(self.schema.clone(), job.clone(), table, observer)?;
        let run = match &self.order_key {
            Some(key) => run.with_order_key(key.clone()),
            None => run,
        };
        let found = run.search(observer)?;
        Ok(Searched { run, found, rows })
    }

    /// The edition with as many of the rows as can be published now.
    fn decided(&self, job: &Job, mut rows: Vec<u32>) -> Result<DecidedEdition, EditionError> {
        let is_base = job.continued_cut.as_ref().is_none_or(|it| it.goes_below);
        let mut job = job.clone();
        let mut round = 0;
        loop {
            let searched = match self.searched(&job, rows) {
                // After rows were held back, too few are left.
                Err(RunError::NotAnonymizable { .. }) if round > 0 => {
                    return Err(EditionError::NothingLeft);
                }
                searched => searched?,
            };
            let tried = match round {
                0 => self.best_step(&searched, &job)?,
                _ => self.tried(&searched, None)?,
            };
            let is_last = tried.step.is_none();
            let edition = searched.edition(tried, is_base);
            let new = edition.release(&job)?;
            let held_back = if round < MOST_ROUNDS {
                self.held_back(&new)?
            } else {
                self.all_returning(&new)?
            };
            if held_back.is_empty() {
                return Ok(edition);
            }
            // The remaining rows are specialized no further than that step.
            if let Some(cut) = edition.verified.cut().filter(|_| !is_last) {
                let cut = ContinuedCut {
                    labels: cut.clone(),
                    goes_below: false,
                };
                job = continuing(&job, cut);
            }
            rows = edition.rows;
            rows.retain(|&row| !held_back.contains(&self.persons.person(row)));
            if rows.is_empty() {
                return Err(EditionError::NothingLeft);
            }
            round += 1;
        }
    }

    fn tried(&self, searched: &Searched, step: Option<u32>) -> Result<TriedStep, RunError> {
        let verified = searched.run.verify(&searched.found, step, self.observer)?;
        Ok(TriedStep { step, verified })
    }

    /// The step with the smallest loss, where a waiting row counts as a row without any detail. If persons have
    /// several rows, fewer rows wait after an earlier step: more of these persons have the same sets of labels
    /// of all their rows.
    fn best_step(&self, searched: &Searched, job: &Job) -> Result<TriedStep, EditionError> {
        let mut best = self.tried(searched, None)?;
        let mut persons = HashSet::new();
        let mut rows = searched.rows.iter();
        let has_several_rows = rows.any(|&row| !persons.insert(self.persons.person(row)));
        let last = searched.found.steps().last().map(|record| record.item.step);
        let Some(last) = last.filter(|_| has_several_rows) else {
            return Ok(best);
        };
        let waiting = |tried: &TriedStep| -> Result<f64, EditionError> {
            self.share_waiting(&release_of(&tried.verified, &searched.rows, job)?)
        };
        let loss =
            |tried: &TriedStep, waiting: f64| waiting + (1.0 - waiting) * searched.ncp(tried.step);
        let of_last = waiting(&best)?;
        if of_last == 0.0 {
            return Ok(best);
        }
        let mut least = loss(&best, of_last);
        let parts = (0..TRIED_STEPS).rev();
        let steps = parts.map(|part| (u64::from(last) * part / TRIED_STEPS) as u32);
        let mut steps: Vec<u32> = steps.collect();
        steps.dedup();
        for step in steps {
            let tried = self.tried(searched, Some(step))?;
            let found = loss(&tried, waiting(&tried)?);
            // Of equal losses, the step where fewer rows wait.
            if found <= least {
                (best, least) = (tried, found);
            }
        }
        Ok(best)
    }

    /// The share of the rows of an edition whose persons share the labels of all their rows with too few
    /// persons.
    fn share_waiting(&self, new: &KnownRelease) -> Result<f64, EditionError> {
        let mut waiting = HashSet::new();
        for raw in self.views {
            let history = History::new(new, &[], raw)?;
            waiting.extend(failing_alone(&history, self.observer.cancellation())?);
        }
        let rows = new.source_rows.iter();
        let rows = rows.filter(|&&row| waiting.contains(&self.persons.person(row)));
        Ok(rows.count() as f64 / new.source_rows.len().max(1) as f64)
    }

    /// A new base edition of the rows of an edition, unless it loses nearly as much, its labels do not fit
    /// those of other bases, or it would break a model together with what some recipient has.
    fn new_base(
        &self,
        job: &Job,
        edition: &DecidedEdition,
        bases: &Bases<'_>,
    ) -> Result<Option<DecidedEdition>, EditionError> {
        let searched = match self.searched(job, edition.rows.clone()) {
            Err(RunError::NotAnonymizable { .. }) => return Ok(None),
            searched => searched?,
        };
        // No step loses less than the last one.
        if !base::is_better(searched.ncp(None), edition.ncp) {
            return Ok(None);
        }
        let tried = self.best_step(&searched, job)?;
        let base = searched.edition(tried, true);
        if !base::is_better(base.ncp, edition.ncp) {
            return Ok(None);
        }
        let cut = base.verified.cut();
        if !cut.is_some_and(|cut| bases.fit(&self.schema, cut)) {
            return Ok(None);
        }
        match self.held_back(&base.release(job)?) {
            Ok(persons) => Ok(persons.is_empty().then_some(base)),
            Err(EditionError::Run(error)) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }
}

fn internal(reason: &'static str) -> RunError {
    RunError::Internal { reason }
}

/// The releases of a history that persons connect with the rows of the edition.
fn related(
    history: &[usize],
    known: &[KnownRelease],
    candidates: &[u32],
    raw: &RawTable,
) -> Vec<usize> {
    let persons = candidates.iter().map(|&row| raw.person(row));
    connected(history, persons, |release| {
        let rows = known[release].source_rows.iter();
        rows.map(|&row| raw.person(row))
    })
}

/// The releases of a history that have one of these persons, or one of the persons of a connected release. No
/// other release says anything about these persons.
/// [`NOWHERE`], the person of a row of unknown origin, can be any of them.
pub fn connected<Persons: Iterator<Item = u32>>(
    history: &[usize],
    persons: impl Iterator<Item = u32>,
    persons_of: impl Fn(usize) -> Persons,
) -> Vec<usize> {
    let mut persons: HashSet<u32> = persons.chain([NOWHERE]).collect();
    let (mut connected, mut others) = (Vec::new(), history.to_vec());
    loop {
        let (near, far): (Vec<usize>, Vec<usize>) = others
            .iter()
            .partition(|&&release| persons_of(release).any(|person| persons.contains(&person)));
        if near.is_empty() {
            connected.sort_unstable();
            return connected;
        }
        for &release in &near {
            persons.extend(persons_of(release));
        }
        connected.extend(near);
        others = far;
    }
}

impl DecidedEdition {
    /// The release as a recipient knows it.
    ///
    /// # Errors
    /// When it has no table, or the model does not fit its columns.
    pub fn release(&self, job: &Job) -> Result<KnownRelease, EditionError> {
        release_of(&self.verified, &self.rows, job)
    }
}

/// The release of verified tables of a run over `rows`.
fn release_of(
    verified: &VerifiedTables,
    rows: &[u32],
    job: &Job,
) -> Result<KnownRelease, EditionError> {
    let schema = verified.schema();
    let table = verified.tables().first();
    let recoded = match verified.cut() {
        Some(_) => Recoded::OneCut,
        None => Recoded::Overlapping,
    };
    let sources = verified.source_rows().iter();
    Ok(KnownRelease {
        table: table
            .ok_or_else(|| internal("an edition has no table"))?
            .clone(),
        source_rows: sources.map(|&row| rows[row as usize]).collect(),
        quasi_identifiers: schema.names(ColumnRole::QuasiIdentifier),
        sensitive: schema.names(ColumnRole::Sensitive),
        model: schema.privacy_model(job).map_err(RunError::from)?,
        recoded,
    })
}

impl Decision<'_> {
    /// The persons to be held back: persons who certainly break the model for some recipient in some view or,
    /// if there are none, persons among whom the whole decision finds it broken.
    fn held_back(&self, new: &KnownRelease) -> Result<HashSet<u32>, EditionError> {
        let cancellation = self.observer.cancellation();
        let decided = || {
            let views = self.views.iter();
            views.flat_map(|raw| self.distinct().map(move |(place, it)| (raw, place, it)))
        };
        let mut persons = HashSet::new();
        for (raw, _, history) in decided() {
            let earlier = self.earlier_of(history);
            let history = History::new(new, &earlier, raw)?;
            persons.extend(persons_to_hold_back(&history, cancellation)?);
        }
        if !persons.is_empty() {
            return Ok(persons);
        }
        for (raw, recipient, history) in decided() {
            let earlier = self.earlier_of(history);
            if earlier.is_empty() {
                continue;
            }
            let all: Vec<&KnownRelease> = std::iter::once(new)
                .chain(earlier.iter().copied())
                .collect();
            let found = raw.compose(&all, cancellation)?;
            if found.holds {
                continue;
            }
            let history = History::new(new, &earlier, raw)?;
            let broken = history.returning_among(&found);
            if broken.is_empty() {
                return Err(EditionError::Broken { history: recipient });
            }
            persons.extend(broken);
        }
        Ok(persons)
    }

    /// All persons of the edition who are in an earlier release of any recipient. Without them, no
    /// recipient learns anything new about earlier persons. If there are none, all persons whose rows have different
    /// labels.
    fn all_returning(&self, new: &KnownRelease) -> Result<HashSet<u32>, EditionError> {
        let mut persons = HashSet::new();
        for (_, history) in self.distinct() {
            let earlier = self.earlier_of(history);
            persons.extend(History::new(new, &earlier, self.persons)?.returning());
        }
        if persons.is_empty() {
            let cancellation = self.observer.cancellation();
            persons = History::new(new, &[], self.persons)?.varying(cancellation)?;
        }
        if persons.is_empty() {
            return self.held_back(new);
        }
        Ok(persons)
    }

    /// The releases of a history.
    fn earlier_of(&self, history: &[usize]) -> Vec<&KnownRelease> {
        history.iter().map(|&it| &self.known[it]).collect()
    }

    /// The histories that no earlier recipient has too, with their places.
    fn distinct(&self) -> impl Iterator<Item = (usize, &Vec<usize>)> {
        let placed = self.histories.iter().enumerate();
        placed.filter(|(place, history)| !self.histories[..*place].contains(*history))
    }
}
