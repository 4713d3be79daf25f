//! The decision of one edition: which of the new rows it has, and under which labels.

use std::sync::Arc;

use hashbrown::HashSet;
use pais_anonymize::{AnonymizationRun, Observer, RunError, SearchOutcome, VerifiedTables};
use pais_core::definition::{ColumnRole, Job, SplitRule};
use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_verify::{NOWHERE, Recoded, VerifyError};
use thiserror::Error;

use crate::held_back::{History, persons_to_hold_back};
use crate::known::{KnownRelease, RawTable, canonical_model};
use crate::rows::gathered;

/// Rounds after which all persons of earlier releases are held back at once.
const MOST_ROUNDS: usize = 12;

/// An edition to be decided.
pub struct EditionTask<'a> {
    /// The schema of the dataset.
    pub schema: Arc<Schema>,
    /// The job of the publication, with the cut that the edition continues.
    pub job: Job,
    /// The secret of the dataset, on which the order of a seeded release depends.
    pub order_key: Option<[u8; 32]>,
    /// The raw rows: those of the edition, and those that the known releases come from.
    pub raw: &'a Table,
    /// The rows that no edition has, ascending.
    pub candidates: Vec<u32>,
    /// Releases of the dataset that recipients have.
    pub known: &'a [KnownRelease],
    /// For each recipient, which of them.
    pub histories: &'a [Vec<usize>],
}

/// An edition whose table was verified, alone and together with what each recipient has.
pub struct DecidedEdition {
    /// The run over the rows that were not held back.
    pub run: AnonymizationRun,
    /// Its outcome.
    pub found: SearchOutcome,
    /// Its table.
    pub verified: VerifiedTables,
    /// The raw row of each row of the run.
    pub rows: Vec<u32>,
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
    /// What a recipient has breaks its model whatever the edition publishes.
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

/// Decides an edition: searches, then holds back the rows of persons who would break a model together
/// with what some recipient has, and searches again over the rest, until the model holds for every
/// recipient.
///
/// # Errors
/// [`EditionError`].
pub fn decide_edition(
    task: EditionTask<'_>,
    observer: &dyn Observer,
) -> Result<DecidedEdition, EditionError> {
    let EditionTask {
        schema,
        mut job,
        order_key,
        raw,
        candidates,
        known,
        histories,
    } = task;
    if job.continued_cut.is_some() {
        // The path to the continued cut is free: no point of it is lost for a better one.
        job.split = Some(SplitRule::BestValid);
        job.thorough = None;
    }
    let persons = RawTable::new(&schema, raw.clone());
    let histories = histories.iter();
    let histories = histories.map(|history| related(history, known, &candidates, &persons));
    let histories: Vec<Vec<usize>> = histories.collect();
    let mut rows = candidates;
    let mut round = 0;
    loop {
        let table = gathered(raw, &rows);
        let run = AnonymizationRun::new(schema.clone(), job.clone(), table, observer)?;
        let run = match order_key {
            Some(key) => run.with_order_key(key),
            None => run,
        };
        let found = match run.search(observer) {
            // What is left after rows were held back is too little.
            Err(RunError::NotAnonymizable { .. }) if round > 0 => {
                return Err(EditionError::NothingLeft);
            }
            found => found?,
        };
        let verified = run.verify(&found, None, observer)?;
        let edition = DecidedEdition {
            run,
            found,
            verified,
            rows,
        };
        let new = edition.release(&job)?;
        let held_back = if round < MOST_ROUNDS {
            held_back(&new, &persons, known, &histories, observer)?
        } else {
            all_returning(&new, &persons, known, &histories, observer)?
        };
        if held_back.is_empty() {
            return Ok(edition);
        }
        rows = edition.rows;
        rows.retain(|&row| !held_back.contains(&persons.person(row)));
        if rows.is_empty() {
            return Err(EditionError::NothingLeft);
        }
        round += 1;
    }
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

/// The releases of a history that have one of these persons, or one of a release that is connected. No
/// other says anything about these persons. [`NOWHERE`], the person of a row whose origin is not known,
/// can be any of them.
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
    /// The table as recipients would have it.
    fn release(&self, job: &Job) -> Result<KnownRelease, EditionError> {
        let schema = self.verified.schema();
        let table = self.verified.tables().first();
        let internal = || RunError::Internal {
            reason: "an edition has no table".to_owned(),
        };
        let recoded = match self.verified.cut() {
            Some(_) => Recoded::OneCut,
            None => Recoded::Overlapping,
        };
        Ok(KnownRelease {
            table: table.ok_or_else(internal)?.clone(),
            source_rows: self.source_rows(),
            quasi_identifiers: schema.names(ColumnRole::QuasiIdentifier),
            sensitive: schema.names(ColumnRole::Sensitive),
            model: canonical_model(schema.privacy_model(job).map_err(RunError::from)?, schema),
            recoded,
        })
    }
}

/// The persons to be held back: those who surely break the model for some recipient and, where there
/// are none, those among whom the decision of the whole finds it broken.
fn held_back(
    new: &KnownRelease,
    raw: &RawTable,
    known: &[KnownRelease],
    histories: &[Vec<usize>],
    observer: &dyn Observer,
) -> Result<HashSet<u32>, EditionError> {
    let mut persons = HashSet::new();
    for (_, history) in distinct(histories) {
        let earlier = earlier_of(history, known);
        let history = History::new(new, &earlier, raw)?;
        persons.extend(persons_to_hold_back(&history, observer.cancellation())?);
    }
    if !persons.is_empty() {
        return Ok(persons);
    }
    for (recipient, history) in distinct(histories) {
        let earlier = earlier_of(history, known);
        if earlier.is_empty() {
            continue;
        }
        let all: Vec<&KnownRelease> = std::iter::once(new)
            .chain(earlier.iter().copied())
            .collect();
        let found = raw.compose(&all, observer.cancellation())?;
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

/// The releases of a history.
fn earlier_of<'k>(history: &[usize], known: &'k [KnownRelease]) -> Vec<&'k KnownRelease> {
    history.iter().map(|&it| &known[it]).collect()
}

/// The histories that are not those of an earlier recipient too, with their places.
fn distinct(histories: &[Vec<usize>]) -> impl Iterator<Item = (usize, &Vec<usize>)> {
    let placed = histories.iter().enumerate();
    placed.filter(|(place, history)| !histories[..*place].contains(*history))
}

/// All persons of the edition who are in an earlier release of some recipient. Without them, each
/// recipient knows of the persons of before what it knew.
fn all_returning(
    new: &KnownRelease,
    raw: &RawTable,
    known: &[KnownRelease],
    histories: &[Vec<usize>],
    observer: &dyn Observer,
) -> Result<HashSet<u32>, EditionError> {
    let mut persons = HashSet::new();
    for (_, history) in distinct(histories) {
        let earlier = earlier_of(history, known);
        persons.extend(History::new(new, &earlier, raw)?.returning());
    }
    if persons.is_empty() {
        return held_back(new, raw, known, histories, observer);
    }
    Ok(persons)
}
