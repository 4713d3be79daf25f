//! Beyond the papers: one greedy cut for the whole table, a thorough search for a better one, and
//! local recoding, on Adult.

use serde_json::Value;

use super::claims;
use super::kdd09::{BE, CE, CE_AXIS, COST, DR, DR_AXIS, K_AXIS, L_VALUES, adult_job, adult_table};
use super::{Extent, report, runs};
use crate::axis::Axis;
use crate::plan::{Figure, Series};

/// Seconds of a thorough search.
const SECONDS: u64 = 5;

/// The figures, one for each measure.
pub(super) fn figures(extent: Extent) -> Vec<Figure> {
    let mut errors = series(extent, CE, "classification");
    let mut costs = series(extent, COST, "classification");
    for series in &mut costs {
        series.name = format!("CE - BE, {}", series.name);
        series.style = None;
    }
    errors.push(runs("BE", (5, 1), &places(extent), &BE, |k| {
        (adult_table(extent), adult_job(2, k, 20.0, "classification"))
    }));
    errors.extend(costs);
    vec![
        Figure {
            id: "adult-dr",
            title: "Adult: DR of greedy, thorough and local recoding over K (C = 20 %)",
            x: K_AXIS,
            y: Axis {
                logarithmic: true,
                ..DR_AXIS
            },
            series: series(extent, DR, "discernibility"),
            claims: Vec::new(),
        },
        Figure {
            id: "adult-ncp",
            title: "Adult: NCP of greedy, thorough and local recoding over K (C = 20 %)",
            x: K_AXIS,
            y: Axis::new("Mean NCP"),
            series: series(extent, "/utility/ncp", "ncp"),
            claims: Vec::new(),
        },
        Figure {
            id: "adult-ce",
            title: "Adult: CE of greedy, thorough and local recoding over K (C = 20 %)",
            x: K_AXIS,
            y: CE_AXIS,
            series: errors,
            claims: claims::costs_by_way(&L_VALUES),
        },
    ]
}

fn places(extent: Extent) -> Vec<f64> {
    extent.places(&[20.0, 60.0, 100.0])
}

/// Greedy and thorough for each *L*, and local recoding, whose groups do not depend on *L*.
fn series(extent: Extent, pointer: &str, objective: &'static str) -> Vec<Series> {
    let table = adult_table(extent);
    let seconds = match extent {
        Extent::Full => SECONDS,
        Extent::Quick => 1,
    };
    let thorough = |mut job: Value| {
        job["utility"]["search"] = "thorough".into();
        job["utility"]["search_seconds"] = seconds.into();
        job["seed"] = 1.into();
        job
    };
    let local = |mut job: Value| {
        job["recoding"] = "local".into();
        job
    };
    let line = |name: String, style, l, change: &dyn Fn(Value) -> Value| {
        runs(name, style, &places(extent), &report(pointer), |k| {
            (table.clone(), change(adult_job(l, k, 20.0, objective)))
        })
    };
    let mut all = Vec::new();
    for (index, l) in L_VALUES.into_iter().enumerate() {
        all.push(line(format!("greedy, L = {l}"), (index, 0), l, &|job| job));
        all.push(line(format!("thorough, L = {l}"), (index, 1), l, &thorough));
    }
    all.push(line("local, any L".to_owned(), (3, 2), 2, &local));
    all
}
