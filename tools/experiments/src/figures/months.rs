//! A publication of twelve months.

use super::Extent;
use crate::axis::Axis;
use crate::plan::{Figure, MonthMeasure, Point, Series, Source};

/// The figures: what detail costs, and how many rows wait.
pub(super) fn figures(extent: Extent) -> Vec<Figure> {
    let series = |name: &str, number: usize, measure| series(extent, name, number, measure);
    vec![
        Figure {
            id: "months-ncp",
            title: "Encounters of 2018: NCP of editions, months alone, and all rows at once",
            x: Axis::new("Month"),
            y: Axis::new("Mean NCP"),
            series: vec![
                series("edition", 0, MonthMeasure::Edition),
                series("its rows alone", 1, MonthMeasure::Alone),
                series("all rows so far at once", 2, MonthMeasure::Together),
            ],
            claims: Vec::new(),
        },
        Figure {
            id: "months-rows",
            title: "Encounters of 2018: rows sent, published, and waiting",
            x: Axis::new("Month"),
            y: Axis::new("Rows"),
            series: vec![
                series("sent", 0, MonthMeasure::Sent),
                series("published", 1, MonthMeasure::Published),
                series("waiting", 2, MonthMeasure::Waiting),
            ],
            claims: Vec::new(),
        },
    ]
}

fn series(extent: Extent, name: &str, number: usize, measure: MonthMeasure) -> Series {
    let all: Vec<f64> = (1..=12).map(f64::from).collect();
    let points = extent.places(&all).into_iter().map(|x| Point {
        x,
        source: Source::Month {
            number: x as usize,
            measure,
        },
    });
    Series {
        name: name.to_owned(),
        style: Some((number, number)),
        points: points.collect(),
    }
}
