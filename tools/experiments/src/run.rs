//! Runs the jobs of the figures. A job on a table is run once for all figures that need it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::rc::Rc;
use std::time::Instant;

use anyhow::Context;
use pais_anonymize::{AnonymizationRun, RunError, Unobserved};
use pais_core::definition::JobDefinition;
use pais_core::table::EncodedTable;
use pais_io::read::csv;
use serde_json::Value;

use crate::exponential_l;
use crate::measured::{MeasuredFigure, MeasuredPoint, MeasuredSeries, shown};
use crate::months::{self, Month};
use crate::plan::{Figure, Measure, Part, Point, Source};
use crate::tables::{TableFiles, TableSpec};
use pais_test_support::recoding;

/// Runs shorter than this many seconds are run three times where their time is measured.
const SHORT: f64 = 3.0;

/// The outcome of a job.
struct Outcome {
    seconds: Seconds,
    /// The report, or why there is none.
    report: Result<Value, String>,
}

/// Seconds of each part of a run.
#[derive(Clone, Copy, Default)]
struct Seconds {
    read: f64,
    search: f64,
    verify: f64,
    write: f64,
}

impl Seconds {
    fn of(self, part: Part) -> f64 {
        match part {
            Part::Read => self.read,
            Part::Search => self.search,
            Part::Verify => self.verify,
            Part::Write => self.write,
            Part::Total => self.read + self.search + self.verify + self.write,
        }
    }
}

/// Runs jobs, and keeps their outcomes.
pub(crate) struct Runner {
    files: TableFiles,
    done: HashMap<(TableSpec, String, bool), Rc<Outcome>>,
    /// The months of the publication; empty until they are needed.
    months: Vec<Month>,
}

impl Runner {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            files: TableFiles::new()?,
            done: HashMap::new(),
            months: Vec::new(),
        })
    }

    /// Measures a figure; progress goes to standard error.
    pub(crate) fn measure(&mut self, figure: &Figure) -> anyhow::Result<MeasuredFigure> {
        let mut found = MeasuredFigure::default();
        for series in &figure.series {
            let mut points = Vec::new();
            for point in &series.points {
                let began = Instant::now();
                let value = self.value(point)?;
                let place = match figure.x.names.get(point.x as usize) {
                    Some(name) => (*name).to_owned(),
                    None => shown(point.x),
                };
                let measured = MeasuredPoint {
                    x: point.x,
                    y: value.as_ref().ok().map(|value| value * figure.y.times),
                    note: value.err().unwrap_or_default(),
                };
                let text = match measured.y {
                    Some(y) => shown(y),
                    None => format!("none ({})", measured.note),
                };
                eprintln!(
                    "{}: {}, {place}: {text} ({:.1} s)",
                    figure.id,
                    series.name,
                    began.elapsed().as_secs_f64()
                );
                points.push(measured);
            }
            found.series.push(MeasuredSeries {
                name: series.name.clone(),
                points,
            });
        }
        self.files.remove_large()?;
        Ok(found)
    }

    /// The value of a point, or why it has none.
    fn value(&mut self, point: &Point) -> anyhow::Result<Result<f64, String>> {
        match &point.source {
            Source::Run {
                table,
                job,
                measure,
            } => {
                let timed = matches!(measure, Measure::Seconds(_));
                let outcome = self.outcome(table, job, timed)?;
                Ok(read(&outcome, measure))
            }
            Source::ExponentialL { table, l } => {
                let schema = table.schema()?;
                let rows = csv::read_table(&schema, File::open(self.files.file(table)?)?)?;
                let whole = exponential_l::is_one_group(&schema, &rows, *l);
                Ok(if whole {
                    Ok(table.rows() as f64)
                } else {
                    Err("the whole table meets Exponential-L".to_owned())
                })
            }
            Source::Month { number, measure } => {
                if self.months.is_empty() {
                    self.months = months::publish()?;
                }
                let month = self.months.get(number - 1).context("a month of the year")?;
                Ok(Ok(month.value(*measure)))
            }
            Source::ItemsetRecoding { table, k } => {
                let schema = table.schema()?;
                let rows = csv::read_table(&schema, File::open(self.files.file(table)?)?)?;
                let encoded = EncodedTable::new(&schema, rows);
                let column = encoded.sets.first().context("a set-valued column")?;
                let began = Instant::now();
                recoding::recode(column, *k);
                Ok(Ok(began.elapsed().as_secs_f64()))
            }
        }
    }

    fn outcome(
        &mut self,
        table: &TableSpec,
        job: &Value,
        timed: bool,
    ) -> anyhow::Result<Rc<Outcome>> {
        let key = (table.clone(), job.to_string(), timed);
        if let Some(outcome) = self.done.get(&key) {
            return Ok(outcome.clone());
        }
        let first = self.run(table, job)?;
        let outcome = if timed && first.seconds.of(Part::Total) < SHORT {
            median([first, self.run(table, job)?, self.run(table, job)?])
        } else {
            first
        };
        let outcome = Rc::new(outcome);
        self.done.insert(key, outcome.clone());
        Ok(outcome)
    }

    /// From a CSV file to a CSV file.
    fn run(&self, table: &TableSpec, job: &Value) -> anyhow::Result<Outcome> {
        let schema = table.schema()?;
        let job: JobDefinition = serde_json::from_value(job.clone())?;
        let mut job = job.parse()?;
        // In small tables some sensitive columns of the papers have nearly as many values as rows.
        let columns = schema.columns.iter().map(|column| column.name());
        let reason = "the release of an experiment is measured and deleted";
        job.acknowledged = columns.map(|name| (name.into(), reason.into())).collect();
        let file = File::open(self.files.file(table)?)?;
        let mut seconds = Seconds::default();

        let began = Instant::now();
        let rows = csv::read_table(&schema, file)?;
        seconds.read = began.elapsed().as_secs_f64();

        let began = Instant::now();
        let observer = Unobserved::default();
        let run = AnonymizationRun::new(schema, job, rows, &observer)?;
        let steps = match run.search(&observer) {
            Ok(steps) => steps,
            Err(error @ RunError::NotAnonymizable { .. }) => {
                return Ok(Outcome {
                    seconds,
                    report: Err(one_line(&error.to_string())),
                });
            }
            Err(error) => return Err(error.into()),
        };
        seconds.search = began.elapsed().as_secs_f64();

        let began = Instant::now();
        let release = run.release(&steps, None, &observer)?;
        drop(run);
        seconds.verify = began.elapsed().as_secs_f64();

        let began = Instant::now();
        for table in release.tables() {
            let mut out = BufWriter::new(File::create(self.files.release())?);
            pais_io::write::csv(table, &mut out)?;
            out.flush()?;
        }
        seconds.write = began.elapsed().as_secs_f64();
        Ok(Outcome {
            seconds,
            report: Ok(serde_json::to_value(release.report())?),
        })
    }
}

/// The run of median time.
fn median(mut runs: [Outcome; 3]) -> Outcome {
    runs.sort_by(|one, other| {
        let total = |run: &Outcome| run.seconds.of(Part::Total);
        total(one).total_cmp(&total(other))
    });
    let [_, middle, _] = runs;
    middle
}

fn read(outcome: &Outcome, measure: &Measure) -> Result<f64, String> {
    let report = outcome.report.as_ref().map_err(Clone::clone)?;
    let number = |pointer: &str| {
        let found = report.pointer(pointer).and_then(Value::as_f64);
        found.ok_or_else(|| format!("the report has no {pointer}"))
    };
    match measure {
        Measure::Seconds(part) => Ok(outcome.seconds.of(*part)),
        Measure::Report(pointer) => number(pointer),
        Measure::Combined(first, times, second) => Ok(number(first)? + times * number(second)?),
    }
}

/// The first line of a message; further lines say what would help.
fn one_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}
