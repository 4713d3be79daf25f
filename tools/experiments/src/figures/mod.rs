//! The figures: those of the three papers, and some of ours.

mod beyond;
mod claims;
mod diversity;
mod items;
mod kdd09;
mod months;
mod scalability;

use serde_json::Value;

use crate::plan::{Figure, Measure, Point, Series, Source};
use crate::tables::TableSpec;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All points on all rows.
    Full,
    /// Few points on few rows.
    Quick,
}

impl Extent {
    /// Rows of a table that has `full` of them.
    fn rows(self, full: usize) -> usize {
        match self {
            Self::Full => full,
            Self::Quick => full.min(200),
        }
    }

    /// The places on the horizontal axis: all, or the first and the last.
    fn places(self, full: &[f64]) -> Vec<f64> {
        match (self, full) {
            (Self::Quick, [first, .., last]) => vec![*first, *last],
            _ => full.to_vec(),
        }
    }

    /// Numbers of rows as places. A tenth of the last of them is the minimum for a quick run.
    fn row_places(self, full: &[f64]) -> Vec<f64> {
        match self {
            Self::Full => full.to_vec(),
            Self::Quick => vec![100.0, 200.0],
        }
    }
}

/// The name of the series of traditional k-anonymity.
const TRADITIONAL: &str = "k-anonymity";

/// The name of the series of an *L*.
fn named(l: usize) -> String {
    format!("L = {l}")
}

/// All figures, in the order of the page.
pub(crate) fn all(extent: Extent) -> Vec<Figure> {
    let parts = [
        kdd09::blood(extent),
        kdd09::adult(extent),
        scalability::figures(extent),
        items::figures(extent),
        diversity::figures(extent),
        beyond::figures(extent),
        months::figures(extent),
    ];
    parts.into_iter().flatten().collect()
}

/// A series of runs; `run` gives the table and the job of a place.
fn runs(
    name: impl Into<String>,
    style: impl Into<Option<(usize, usize)>>,
    places: &[f64],
    measure: &Measure,
    run: impl Fn(f64) -> (TableSpec, Value),
) -> Series {
    let points = places.iter().map(|&x| {
        let (table, job) = run(x);
        let measure = measure.clone();
        Point {
            x,
            source: Source::Run {
                table,
                job,
                measure,
            },
        }
    });
    Series {
        name: name.into(),
        style: style.into(),
        points: points.collect(),
    }
}

/// A number of the report.
fn report(pointer: &str) -> Measure {
    Measure::Report(pointer.to_owned())
}
