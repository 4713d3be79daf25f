//! Figures 2 to 4 of the 2014 paper: concurrent item disclosure on medical receipts, k = 10.

use serde_json::{Value, json};

use super::{Extent, report, runs};
use crate::axis::Axis;
use crate::plan::{Claim, Figure, Measure, Part, Point, Series, Source};
use crate::tables::TableSpec;

const K: usize = 10;
const ROWS: Axis = Axis::new("Records");
const SECONDS: Axis = Axis::new("Seconds");

/// The relational columns, then the sets.
const COLUMNS: [&str; 5] = [
    "birth_year",
    "gender",
    "treatment_date",
    "diseases",
    "drugs",
];
const RELATIONAL: usize = 3;
const BY_COLUMN: Axis = Axis::named("Column", &COLUMNS);

/// Figures 2 to 4.
pub(super) fn figures(extent: Extent) -> Vec<Figure> {
    vec![one_set(extent), scale(extent), utility(extent)]
}

fn receipts(rows: usize, dropped: &[&'static str]) -> TableSpec {
    TableSpec::generated("receipts", rows, dropped)
}

fn job() -> Value {
    json!({"privacy": {"model": "k_anonymity", "k": K}})
}

/// The job with every relational column at level 1 or above from the beginning.
fn tailored() -> Value {
    let levels = COLUMNS[..RELATIONAL].iter();
    let levels: serde_json::Map<String, Value> = levels
        .map(|name| ((*name).to_owned(), json!({"level": 1})))
        .collect();
    let mut job = job();
    job["pre_generalization"] = levels.into();
    job
}

/// Figure 2: one set-valued column alone.
fn one_set(extent: Extent) -> Figure {
    let places = extent.row_places(&[100_000.0, 250_000.0, 500_000.0, 750_000.0, 1_000_000.0]);
    let table = |rows: f64| {
        let dropped = ["birth_year", "gender", "treatment_date", "drugs"];
        receipts(rows as usize, &dropped)
    };
    let search = Measure::Seconds(Part::Search);
    let earlier = places.iter().map(|&x| Point {
        x,
        source: Source::ItemsetRecoding {
            table: table(x),
            k: K,
        },
    });
    Figure {
        id: "items14-2",
        title: "2014 paper, Figure 2: seconds over records, one set-valued column",
        x: ROWS,
        y: SECONDS,
        series: vec![
            runs("CID", (0, 0), &places, &search, |rows| (table(rows), job())),
            Series {
                name: "IR".into(),
                style: Some((1, 1)),
                points: earlier.collect(),
            },
        ],
        claims: vec![Claim::new(
            "IR / CID, 1,000,000 records",
            "around 3",
            |found| {
                let at = |name| found.named(name)?.at(1e6);
                Some(format!("{:.1}", at("IR")? / at("CID")?))
            },
        )],
    }
}

/// Figure 3: many records.
fn scale(extent: Extent) -> Figure {
    let places = extent.row_places(&[1e6, 2e6, 5e6, 1e7]);
    let search = Measure::Seconds(Part::Search);
    let line = |name: &str, style, dropped: &'static [&'static str]| {
        runs(name, (style, 0), &places, &search, |rows| {
            (receipts(rows as usize, dropped), job())
        })
    };
    Figure {
        id: "items14-3",
        title: "2014 paper, Figure 3: seconds over records",
        x: ROWS,
        y: SECONDS,
        series: vec![line("R3T1", 0, &["drugs"]), line("R3T2", 1, &[])],
        claims: vec![
            Claim::new("1,000,000 records", "several minutes", |found| {
                let at = |name| found.named(name)?.at(1e6);
                Some(format!(
                    "{:.1} s (R3T1), {:.1} s (R3T2)",
                    at("R3T1")?,
                    at("R3T2")?
                ))
            }),
            Claim::new(
                "ten times the records, R3T2",
                "linear: 10 times the time",
                |found| {
                    let at = |rows| found.named("R3T2")?.at(rows);
                    Some(format!("{:.1} times", at(1e7)? / at(1e6)?))
                },
            ),
        ],
    }
}

/// Figure 4: information remain by column.
fn utility(extent: Extent) -> Figure {
    let rows = extent.rows(1_000_000);
    let kinds: [(&str, &'static [&'static str]); 3] = [
        ("R3T1a", &["drugs"]),
        ("R3T1b", &["diseases"]),
        ("R3T2", &[]),
    ];
    let mut series = Vec::new();
    for (is_tailored, mark) in [(false, ""), (true, "'")] {
        for (index, (name, dropped)) in kinds.into_iter().enumerate() {
            let columns = COLUMNS.iter().enumerate();
            let columns = columns.filter(|(_, column)| !dropped.contains(column));
            let points = columns.map(|(place, column)| Point {
                x: place as f64,
                source: Source::Run {
                    table: receipts(rows, dropped),
                    job: if is_tailored { tailored() } else { job() },
                    measure: report(&format!("/utility/information_remain_by_column/{column}")),
                },
            });
            series.push(Series {
                name: name.replacen('R', &format!("R{mark}"), 1),
                style: Some((index, usize::from(is_tailored))),
                points: points.collect(),
            });
        }
    }
    Figure {
        id: "items14-4",
        title: "2014 paper, Figure 4: information remain by column",
        x: BY_COLUMN,
        y: Axis::percent("Information remain, %"),
        series,
        claims: Vec::new(),
    }
}
