//! The picture of a measured figure.

use pais_report::chart::{Axis, Chart, Scale, Series};

use crate::measured::MeasuredFigure;
use crate::plan::Figure;

/// The chart of a measured figure, of the series that have a style.
pub(crate) fn svg(figure: &Figure, measured: &MeasuredFigure) -> String {
    let series = figure.series.iter().zip(&measured.series);
    let series = series.filter_map(|(series, measured)| {
        let (colour, dashes) = series.style?;
        let points = measured.points.iter();
        Some(Series {
            name: series.name.clone(),
            colour,
            dashes,
            points: points
                .map(|point| (point.x, point.y.unwrap_or(f64::NAN)))
                .collect(),
        })
    });
    let chart = Chart {
        title: format!("{}.", figure.title),
        x: axis(figure.x),
        y: axis(figure.y),
        series: series.collect(),
        marked: None,
    };
    chart.document()
}

fn axis(axis: crate::axis::Axis) -> Axis {
    Axis {
        title: axis.label.to_owned(),
        scale: if axis.logarithmic {
            Scale::Logarithmic
        } else {
            Scale::Linear
        },
        is_share: false,
        names: axis.names.iter().map(|name| (*name).to_owned()).collect(),
    }
}
