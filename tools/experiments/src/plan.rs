//! What an experiment is: a figure of series, each point of which is a table and a job.

use serde_json::Value;

use crate::axis::Axis;
use crate::measured::MeasuredFigure;
use crate::tables::TableSpec;

/// A figure: an experiment of a paper, or one of ours.
pub(crate) struct Figure {
    /// The name of its files.
    pub id: &'static str,
    /// The title, with the paper's number of it.
    pub title: &'static str,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis. Measured values are multiplied by [`Axis::times`].
    pub y: Axis,
    /// What is compared.
    pub series: Vec<Series>,
    /// The statements about it in the paper's text.
    pub claims: Vec<Claim>,
}

/// One line of a figure, or one colour of its bars.
pub(crate) struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The number of its colour, and of its dashes; `None` for a line that is only in the table.
    pub style: Option<(usize, usize)>,
    /// Its points, by ascending place on the horizontal axis.
    pub points: Vec<Point>,
}

/// A value to measure.
pub(crate) struct Point {
    /// The place on the horizontal axis.
    pub x: f64,
    /// Where the value comes from.
    pub source: Source,
}

/// Where a value comes from.
pub(crate) enum Source {
    /// A run of a job on a table.
    Run {
        table: TableSpec,
        job: Value,
        measure: Measure,
    },
    /// The average group of a record under Exponential-L (Machanavajjhala et al. 2006), at this L.
    ExponentialL { table: TableSpec, l: usize },
    /// Seconds of Itemset Recoding (the method with which the 2014 paper compares) on the first
    /// set-valued column, at this k.
    ItemsetRecoding { table: TableSpec, k: usize },
    /// The outcome of this month of the publication of encounters.
    Month {
        number: usize,
        measure: MonthMeasure,
    },
}

/// What is read from a month of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MonthMeasure {
    /// Mean NCP of its edition.
    Edition,
    /// Mean NCP of a job on the rows of its edition alone.
    Alone,
    /// Mean NCP of a job on all rows that were sent so far.
    Together,
    /// Rows that were sent.
    Sent,
    /// Rows of its edition.
    Published,
    /// Rows that wait after it.
    Waiting,
}

/// What is read from a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Measure {
    /// A number of its report, by its JSON pointer.
    Report(String),
    /// The first number of its report plus a multiple of the second one.
    Combined(&'static str, f64, &'static str),
    /// Seconds.
    Seconds(Part),
}

/// A part of a run, from file to file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A CSV file to columns.
    Read,
    /// Encoding, and the search.
    Search,
    /// The released table, its verification and its report.
    Verify,
    /// The released table to a CSV file.
    Write,
    /// All of it.
    Total,
}

/// A statement about a measured figure.
pub(crate) type Statement = dyn Fn(&MeasuredFigure) -> Option<String>;

/// A statement of the paper, and what was measured here.
pub(crate) struct Claim {
    /// What is compared.
    pub what: String,
    /// What the paper says.
    pub paper: &'static str,
    /// The same statement for a measured figure; `None` if it was not measured.
    pub here: Box<Statement>,
}

impl Claim {
    pub(crate) fn new(
        what: impl Into<String>,
        paper: &'static str,
        here: impl Fn(&MeasuredFigure) -> Option<String> + 'static,
    ) -> Self {
        let what = what.into();
        let here = Box::new(here);
        Self { what, paper, here }
    }
}
