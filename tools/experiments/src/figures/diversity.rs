//! Figures 9 to 14 and Table 1 of the 2008 paper: l-diversity over several sensitive columns.

use serde_json::{Value, json};

use super::claims::value;
use super::{Extent, report, runs};
use crate::axis::Axis;
use crate::measured::range;
use crate::plan::{Claim, Figure, Measure, Part, Point, Series, Source};
use crate::tables::TableSpec;

/// The sensitive columns in the paper's order. The paper uses a column with few values in the
/// experiment with column limits only; here it is the last of the seven.
const SENSITIVE: [&str; 7] = [
    "topography",
    "histology",
    "survival_years",
    "diagnosis_date",
    "age_at_diagnosis",
    "tumor_size",
    "recurrence",
];
const FEW_VALUES: &str = "recurrence";

/// The average group of a record, which the paper calls discernability.
const GROUP: &str = "/utility/average_group_per_record";
const GROUP_AXIS: Axis = Axis::logarithmic("Discernability: average group of a record, rows");
const SECONDS: Axis = Axis::new("Seconds");
const QUERIES: Axis = Axis::named("Queries", &["all", "below 1 %", "from 1 %"]);
const M_AXIS: Axis = Axis::new("m, sensitive columns");

/// Rows of the paper's table.
const ROWS: usize = 72_194;

/// The registry with these sensitive columns.
fn registry(rows: usize, columns: &[&'static str]) -> TableSpec {
    let dropped = SENSITIVE.iter().filter(|name| !columns.contains(name));
    let dropped: Vec<&'static str> = dropped.copied().collect();
    TableSpec::generated("registry", rows, &dropped)
}

fn job(l: usize, k: usize, limits: Value) -> Value {
    json!({"privacy": {"model": "l_diversity", "k": k, "l": l, "column_limits": limits}})
}

fn unlimited(l: f64, k: f64) -> Value {
    job(l as usize, k as usize, json!({}))
}

fn exponential(places: &[f64], point: impl Fn(f64) -> (TableSpec, usize)) -> Series {
    let points = places.iter().map(|&x| {
        let (table, l) = point(x);
        Point {
            x,
            source: Source::ExponentialL { table, l },
        }
    });
    Series {
        name: "Exponential-L".into(),
        style: Some((1, 1)),
        points: points.collect(),
    }
}

/// The experiments in the paper's order.
pub(super) fn figures(extent: Extent) -> Vec<Figure> {
    let mut all = distortion(extent);
    all.push(random_queries(extent));
    all.push(column_limits(extent));
    all.extend(seconds(extent));
    all
}

/// Figures 9 to 11.
fn distortion(extent: Extent) -> Vec<Figure> {
    let rows = extent.rows(ROWS);
    let three = registry(rows, &SENSITIVE[..3]);
    let measure = report(GROUP);
    let over_l = extent.places(&[2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    let over_k = extent.places(&[20.0, 50.0, 100.0, 150.0, 200.0]);
    let over_m = extent.places(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let first = |m: f64| registry(rows, &SENSITIVE[..m as usize]);
    let several: Vec<f64> = over_m.iter().copied().filter(|m| *m > 1.0).collect();
    let ours = "Anonymize";
    let twice = |over: &'static str| {
        Claim::new(over, "less than 2 in most cases", |found| {
            let ours = found.named("Anonymize")?.points.iter();
            range(ours.filter_map(|point| Some(point.y? / 50.0)))
        })
    };
    vec![
        Figure {
            id: "diversity08-9",
            title: "2008 paper, Figure 9: discernability over L (K = 50, m = 3)",
            x: Axis::new("L, values"),
            y: GROUP_AXIS,
            series: vec![
                runs(ours, (0, 0), &over_l, &measure, |l| {
                    (three.clone(), unlimited(l, 50.0))
                }),
                exponential(&over_l, |l| (three.clone(), l as usize)),
            ],
            claims: vec![twice("Discernability / K")],
        },
        Figure {
            id: "diversity08-10",
            title: "2008 paper, Figure 10: discernability over K (L = 10, m = 3)",
            x: Axis::new("K, rows"),
            y: GROUP_AXIS,
            series: vec![
                runs(ours, (0, 0), &over_k, &measure, |k| {
                    (three.clone(), unlimited(10.0, k))
                }),
                exponential(&over_k, |_| (three.clone(), 10)),
            ],
            claims: vec![Claim::new(
                "Discernability / K",
                "less than 2 in most cases",
                |found| {
                    let ours = found.named("Anonymize")?.points.iter();
                    range(ours.filter_map(|point| Some(point.y? / point.x)))
                },
            )],
        },
        Figure {
            id: "diversity08-11",
            title: "2008 paper, Figure 11: discernability over m (K = 50, L = 10)",
            x: M_AXIS,
            y: GROUP_AXIS,
            series: vec![
                runs(ours, (0, 0), &over_m, &measure, |m| {
                    (first(m), unlimited(10.0, 50.0))
                }),
                exponential(&several, |m| (first(m), 10)),
            ],
            claims: vec![twice("Discernability / K")],
        },
    ]
}

/// Table 1.
fn random_queries(extent: Extent) -> Figure {
    let table = registry(extent.rows(ROWS), &SENSITIVE[..3]);
    let fields = ["all", "below_one_percent", "from_one_percent"];
    let mut series = Vec::new();
    for (index, output) in ["anatomized", "generalized"].into_iter().enumerate() {
        let mut job = unlimited(10.0, 50.0);
        job["output"] = output.into();
        let points = fields.iter().enumerate().map(|(place, field)| Point {
            x: place as f64,
            source: Source::Run {
                table: table.clone(),
                job: job.clone(),
                measure: report(&format!("/utility/query_error/{field}")),
            },
        });
        series.push(Series {
            name: format!("Anonymize, {output}"),
            style: Some((index, index)),
            points: points.collect(),
        });
    }
    let anatomized = "Anonymize, anatomized";
    Figure {
        id: "diversity08-table1",
        title: "2008 paper, Table 1: error of random queries (K = 50, L = 10, m = 3)",
        x: QUERIES,
        y: Axis::percent("Mean relative error, %"),
        series,
        claims: vec![
            value(anatomized, QUERIES, 0.0, " %", "11.3 %"),
            value(anatomized, QUERIES, 1.0, " %", "14.6 %"),
            value(anatomized, QUERIES, 2.0, " %", "1.6 %"),
        ],
    }
}

/// Figure 12.
fn column_limits(extent: Extent) -> Figure {
    let table = registry(extent.rows(ROWS), &["topography", "histology", FEW_VALUES]);
    let places = extent.places(&[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    let limited = |limit: f64| job(10, 50, json!({FEW_VALUES: limit as u64}));
    let without = Series {
        name: "Anonymize (no limits)".into(),
        ..runs("", (1, 1), &places, &report(GROUP), |_| {
            (table.clone(), unlimited(10.0, 50.0))
        })
    };
    Figure {
        id: "diversity08-12",
        title: "2008 paper, Figure 12: discernability over the limit of a column with few values",
        x: Axis::new("Limit of recurrence (31 values)"),
        y: Axis::new(GROUP_AXIS.label),
        series: vec![
            runs(
                "Anonymize-Column",
                (0, 0),
                &places,
                &report(GROUP),
                |limit| (table.clone(), limited(limit)),
            ),
            without,
        ],
        claims: Vec::new(),
    }
}

/// Figures 13 and 14.
fn seconds(extent: Extent) -> Vec<Figure> {
    let rows = extent.rows(ROWS);
    let over_m = extent.places(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let shares = [0.2, 0.4, 0.6, 0.8, 1.0].map(|share| (share * ROWS as f64).round());
    let over_rows = extent.row_places(&shares);
    let search = Measure::Seconds(Part::Search);
    let last_limited = |m: usize| job(10, 50, json!({SENSITIVE[m - 1]: 2}));
    let first = |rows: usize, m: usize| registry(rows, &SENSITIVE[..m]);
    vec![
        Figure {
            id: "diversity08-13",
            title: "2008 paper, Figure 13: seconds over m (K = 50, L = 10)",
            x: M_AXIS,
            y: SECONDS,
            series: vec![
                runs("Anonymize", (0, 0), &over_m, &search, |m| {
                    (first(rows, m as usize), unlimited(10.0, 50.0))
                }),
                runs("Anonymize-Column", (1, 1), &over_m, &search, |m| {
                    (first(rows, m as usize), last_limited(m as usize))
                }),
            ],
            claims: Vec::new(),
        },
        Figure {
            id: "diversity08-14",
            title: "2008 paper, Figure 14: seconds over records (K = 50, L = 10, m = 7)",
            x: Axis::new("Records"),
            y: SECONDS,
            series: vec![
                runs("Anonymize", (0, 0), &over_rows, &search, |rows| {
                    (first(rows as usize, 7), unlimited(10.0, 50.0))
                }),
                runs("Anonymize-Column", (1, 1), &over_rows, &search, |rows| {
                    (first(rows as usize, 7), last_limited(7))
                }),
            ],
            claims: Vec::new(),
        },
    ]
}
