//! What another recoding would keep, and what parameters would cost: quick runs on a sample of the rows, as a
//! help for the holder. They need raw rows, so no recipient sees them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pais_core::cancellation::Cancellation;
use pais_core::definition::{ColumnRole, Job, ModelKind, Recoding};
use pais_core::model::Lkc;
use pais_core::risk::Feasible;
use pais_core::schema::Schema;
use pais_core::table::{Column, NULL_CODE, Table};
use pais_core::warning::{Warning, WarningCode};
use serde::Serialize;

use crate::error::RunError;
use crate::method::SearchOutcome;
use crate::methods::bounded_values::ROOM;
use crate::observer::{Deadline, Observer, Unobserved};
use crate::plan::JobPlan;
use crate::run::AnonymizationRun;

/// Maximum number of rows that two recodings are compared on.
const COMPARED_ROWS: usize = 10_000;

/// Maximum number of rows that parameters are suggested from.
const SUGGESTED_ROWS: usize = 5_000;

/// How long suggestions are computed at most; those that are not begun by then are left out.
const SUGGESTION_TIME: Duration = Duration::from_secs(5);

/// The share of the loss of global recoding up to which that of local recoding is worth a warning.
const WORTH: f64 = 0.75;

/// The least difference of losses that is worth a warning.
const LEAST_DIFFERENCE: f64 = 0.02;

/// At most `limit` rows, spread evenly over a table; if the table has a subject column, all rows of some
/// persons.
fn sample(schema: &Schema, table: &Table, limit: usize) -> Table {
    let subject = schema.subject().and_then(|at| table.columns.get(at));
    let rows: Vec<u32> = match subject {
        Some(subject) => rows_of_some_persons(subject, limit),
        None => {
            let stride = table.rows.div_ceil(limit).max(1);
            (0..table.rows as u32).step_by(stride).collect()
        }
    };
    table.of_rows(&rows)
}

/// At most `limit` rows: all rows of some persons, who are spread evenly over the persons of a subject column.
/// A person with more rows than that is never included.
fn rows_of_some_persons(subject: &Column, limit: usize) -> Vec<u32> {
    let mut persons = subject.dictionary.len();
    let person_of = subject.codes.iter().map(|&code| match code {
        // A row that names nobody is a person of its own.
        NULL_CODE => {
            persons += 1;
            persons - 1
        }
        code => code as usize,
    });
    let person_of: Vec<usize> = person_of.collect();
    let mut size = vec![0usize; persons];
    for &person in &person_of {
        size[person] += 1;
    }
    let all = size.iter().filter(|&&rows| rows <= limit).sum::<usize>();
    let mut left = limit;
    let mut is_taken = vec![false; persons];
    for person in (0..persons).step_by(all.div_ceil(limit).max(1)) {
        if size[person] <= left {
            left -= size[person];
            is_taken[person] = true;
        }
    }
    let rows = (0..).zip(&person_of);
    let taken = rows.filter(|(_, person)| is_taken[**person]);
    taken.map(|(row, _)| row).collect()
}

/// A reason to release each column unchanged, for a run that releases nothing: a column with few rows for each
/// value is nearly a key of a sample, though it is not a key of the table.
fn reasons(schema: &Schema) -> BTreeMap<String, String> {
    let names = schema.columns.iter().map(|column| column.name().to_owned());
    names
        .map(|name| (name, "not released".to_owned()))
        .collect()
}

/// A comparison of global with local recoding, for a job that does not specify the recoding and whose model
/// takes both.
pub struct RecodingComparison {
    schema: Arc<Schema>,
    global: Job,
    local: Job,
    /// The rows to compare on; `None` where they are those of the run.
    sample: Option<Table>,
}

impl RecodingComparison {
    /// The comparison for a job on a table; `None` if the job has no choice, or has chosen.
    pub fn new(schema: &Arc<Schema>, job: &Job, table: &Table) -> Option<Self> {
        if job.recoding.is_some() {
            return None;
        }
        let with = |recoding| Job {
            recoding: Some(recoding),
            thorough: None,
            acknowledged: reasons(schema),
            ..job.clone()
        };
        let (global, local) = (with(Recoding::Global), with(Recoding::Local));
        let fits = |job: &Job| JobPlan::new(schema, job).is_ok_and(|plan| plan.takes_sweeps());
        if !fits(&global) || !fits(&local) {
            return None;
        }
        let is_large = table.rows > COMPARED_ROWS;
        Some(Self {
            sample: is_large.then(|| sample(schema, table, COMPARED_ROWS)),
            schema: Arc::clone(schema),
            global,
            local,
        })
    }

    /// The warning where local recoding loses much less than `found`, the outcome of `run`. A comparison that
    /// cannot be made fails no job.
    ///
    /// # Errors
    /// [`RunError::Cancelled`].
    pub fn warning(
        self,
        run: &AnonymizationRun,
        found: &SearchOutcome,
        observer: &dyn Observer,
    ) -> Result<Option<Warning>, RunError> {
        let quiet = Deadline::new(observer, Instant::now(), None);
        let rows = self.sample.as_ref().map(|sample| sample.rows);
        let losses = match self.sample {
            None => {
                let global = run.figures(found, &quiet).map(|figures| figures.ncp);
                let local = run.with_job(self.local);
                let local = local.and_then(|run| loss(&run, &quiet));
                global.and_then(|global| Ok((global, local?)))
            }
            Some(table) => {
                let run = AnonymizationRun::new(self.schema, self.global, table, &quiet);
                run.and_then(|run| {
                    let local = run.with_job(self.local)?;
                    Ok((loss(&run, &quiet)?, loss(&local, &quiet)?))
                })
            }
        };
        match losses {
            Ok((global, local)) if is_worth_it(global, local) => {
                Ok(Some(warning(global, local, rows)))
            }
            Err(RunError::Cancelled) => Err(RunError::Cancelled),
            Ok(_) | Err(_) => Ok(None),
        }
    }
}

fn is_worth_it(global: f64, local: f64) -> bool {
    local <= WORTH * global && global - local >= LEAST_DIFFERENCE
}

fn warning(global: f64, local: f64, sampled: Option<usize>) -> Warning {
    let percent = |loss: f64| format!("{:.1} %", 100.0 * loss);
    let on = match sampled {
        Some(rows) => format!("a sample of {rows} rows"),
        None => "all rows".to_owned(),
    };
    let detail = format!(
        "global recoding, which is taken where a job does not say `recoding`, loses {} of the detail \
         (NCP), and local recoding {}, measured on {on}; try `\"recoding\": \"local\"`, or both as \
         a list, unless each value must have one label in the whole table",
        percent(global),
        percent(local)
    );
    Warning::at(WarningCode::LocalLosesLess, "/recoding", detail)
}

/// The mean NCP of the table that a run finds.
fn loss(run: &AnonymizationRun, observer: &dyn Observer) -> Result<f64, RunError> {
    let found = run.search(observer)?;
    Ok(run.figures(&found, observer)?.ncp)
}

/// Suggested job parameters, each with its loss on a sample of the rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Suggestions {
    /// Rows of the sample, at most 5,000, spread evenly over the table; of a table of persons all rows of
    /// some persons. A smaller table needs more generalization, so the whole table loses less.
    pub rows: u64,
    /// Ordered by increasing loss.
    pub items: Vec<Suggestion>,
}

/// Parameters of a job, and their loss.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Suggestion {
    /// `privacy` of the job.
    pub privacy: SuggestedPrivacy,
    /// `recoding` of the job.
    pub recoding: Recoding,
    /// Mean NCP of the table that was found.
    pub ncp: f64,
    /// Its equivalence classes.
    pub groups: u64,
}

/// A privacy model with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SuggestedPrivacy {
    /// `lkc`.
    pub model: ModelKind,
    /// *L*.
    pub l: u32,
    /// *K*.
    pub k: u64,
    /// *C*.
    pub c: f64,
}

/// The numbers of known values that are suggested.
const SUGGESTED_L: [u32; 2] = [2, 4];

/// The suggested sizes of groups: a common minimum, the size for a risk of 0.09, and a cautious one.
const SUGGESTED_K: [u64; 3] = [5, 11, 20];

/// The parameters of a job, and how it recodes.
struct RecodingCandidate {
    privacy: SuggestedPrivacy,
    recoding: Recoding,
}

impl RecodingCandidate {
    fn job(&self, schema: &Schema) -> Option<Job> {
        let SuggestedPrivacy { l, k, c, .. } = self.privacy;
        let mut job = Job::new(Lkc::new(l, k, c).ok()?);
        job.recoding = Some(self.recoding);
        job.acknowledged = reasons(schema);
        Some(job)
    }
}

/// The rows that parameters are suggested from.
pub struct SuggestionSample {
    schema: Arc<Schema>,
    rows: Table,
}

impl SuggestionSample {
    /// At most 5,000 rows of a table.
    pub fn new(schema: &Arc<Schema>, table: &Table) -> Self {
        Self {
            schema: Arc::clone(schema),
            rows: sample(schema, table, SUGGESTED_ROWS),
        }
    }

    /// Suggests *L*, *K* and *C* with global and local recoding; `feasible` is what the whole table can
    /// meet. Nothing is suggested for a table without quasi-identifiers, and for one with a column of
    /// sets.
    ///
    /// Runs at most nine searches, for at most five seconds.
    ///
    /// # Errors
    /// [`RunError::Cancelled`].
    pub fn suggestions(
        self,
        feasible: &Feasible,
        cancellation: &Cancellation,
    ) -> Result<Suggestions, RunError> {
        let Self { schema, rows } = self;
        let columns = schema.names(ColumnRole::QuasiIdentifier).len();
        let fits = |job: &Job| JobPlan::new(&schema, job).is_ok_and(|plan| plan.takes_sweeps());
        let observer = Unobserved(cancellation.clone());
        let quiet = Deadline::new(&observer, Instant::now(), Some(SUGGESTION_TIME));
        let mut suggested = Suggestions {
            rows: rows.rows as u64,
            items: Vec::new(),
        };
        let mut rows = Some(rows).filter(|rows| rows.rows > 0);
        let mut prepared: Option<AnonymizationRun> = None;
        for candidate in candidates(columns as u32, feasible) {
            let Some(job) = candidate.job(&schema).filter(fits) else {
                continue;
            };
            let run = match (&prepared, rows.take()) {
                (Some(run), _) => run.with_job(job),
                (None, Some(rows)) => AnonymizationRun::new(Arc::clone(&schema), job, rows, &quiet),
                (None, None) => break,
            };
            let found = run.and_then(|run| {
                let run = prepared.insert(run);
                let found = run.search(&quiet)?;
                run.figures(&found, &quiet)
            });
            match found {
                Ok(figures) => suggested.items.push(Suggestion {
                    privacy: candidate.privacy,
                    recoding: candidate.recoding,
                    ncp: figures.ncp,
                    groups: figures.groups,
                }),
                Err(RunError::Cancelled) if cancellation.is_cancelled() => {
                    return Err(RunError::Cancelled);
                }
                // The time is over.
                Err(RunError::Cancelled) => break,
                // The sample cannot meet these parameters.
                Err(_) => {}
            }
        }
        let items = &mut suggested.items;
        items.sort_by(|one, other| one.ncp.total_cmp(&other.ncp));
        Ok(suggested)
    }
}

/// The candidates, the least costly first: the time may be over before the last one.
fn candidates(columns: u32, feasible: &Feasible) -> Vec<RecodingCandidate> {
    let c = feasible.c_min.map_or(1.0, above);
    let mut ls: Vec<u32> = SUGGESTED_L.iter().map(|l| columns.min(*l)).collect();
    ls.dedup();
    let ks = SUGGESTED_K.into_iter().filter(|k| *k <= feasible.k_max);
    let mut all = Vec::new();
    for k in ks {
        let privacy = |l| SuggestedPrivacy {
            model: ModelKind::Lkc,
            l,
            k,
            c,
        };
        // Groups over all quasi-identifiers hold for any L.
        all.extend(ls.last().map(|&l| RecodingCandidate {
            privacy: privacy(l),
            recoding: Recoding::Local,
        }));
        all.extend(ls.iter().map(|&l| RecodingCandidate {
            privacy: privacy(l),
            recoding: Recoding::Global,
        }));
    }
    all
}

/// A round bound above the smallest one that the table can meet.
fn above(least: f64) -> f64 {
    let tenths = (1..10).map(|tenth| f64::from(tenth) / 10.0);
    let mut roomy = tenths.filter(|c| *c >= ROOM * least);
    roomy.next().unwrap_or(1.0)
}

#[cfg(test)]
mod tests;
