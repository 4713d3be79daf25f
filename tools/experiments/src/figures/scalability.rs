//! Figure 6 of the KDD'09 paper: seconds over the number of records.

use super::claims::value;
use super::kdd09::adult_job;
use super::{Extent, runs};
use crate::axis::Axis;
use crate::plan::{Figure, Measure, Part, Series};
use crate::tables::TableSpec;

const ROWS: Axis = Axis::new("Records");
const SECONDS: Axis = Axis::new("Seconds");

/// Figure 6, and the same to ten million records.
pub(super) fn figures(extent: Extent) -> Vec<Figure> {
    let millions = |all: &[f64]| -> Vec<f64> { all.iter().map(|it| it * 1e6).collect() };
    let paper = extent.row_places(&millions(&[0.2, 0.4, 0.6, 0.8, 1.0]));
    let beyond = extent.row_places(&millions(&[1.0, 2.0, 5.0, 10.0]));
    vec![
        Figure {
            id: "kdd09-6",
            title: "KDD'09, Figure 6: seconds over records (L = 4, K = 20, C = 100 %)",
            x: ROWS,
            y: SECONDS,
            series: series(&paper),
            claims: vec![
                value("Reading", ROWS, 1e6, " s", "50 s"),
                value("Anonymizing", ROWS, 1e6, " s", "33 s"),
                value("Verifying and report", ROWS, 1e6, " s", "not part of it"),
                value("Writing", ROWS, 1e6, " s", "24 s"),
                value("Total", ROWS, 1e6, " s", "107 s"),
            ],
        },
        Figure {
            id: "kdd09-6-large",
            title: "Beyond KDD'09, Figure 6: to ten million records (L = 4, K = 20, C = 100 %)",
            x: ROWS,
            y: SECONDS,
            series: series(&beyond),
            claims: Vec::new(),
        },
    ]
}

fn series(places: &[f64]) -> Vec<Series> {
    let parts = [
        ("Total", Part::Total),
        ("Reading", Part::Read),
        ("Anonymizing", Part::Search),
        ("Verifying and report", Part::Verify),
        ("Writing", Part::Write),
    ];
    let one = |(index, (name, part)): (usize, (&str, Part))| {
        runs(name, (index, 0), places, &Measure::Seconds(part), |rows| {
            let rows = rows as usize;
            let mut job = adult_job(4, 20.0, 100.0, "classification");
            job["utility"]["raw_figures"] = false.into();
            (TableSpec::Adult { rows }, job)
        })
    };
    parts.into_iter().enumerate().map(one).collect()
}
