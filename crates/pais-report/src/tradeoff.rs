//! What other choices would have cost: the steps of the run, or the combinations of a sweep.

use maud::{Markup, html};

use crate::chart::{Axis, Chart, Series};
use crate::input::{ReportPage, StepFact, SweepFact};
use crate::table::{Column, Row, table};
use crate::words::percent;

/// The section on the trade-off; empty if only one table is known.
pub(crate) fn tradeoff(page: &ReportPage) -> Markup {
    html! {
        @if page.steps.len() > 1 || !page.sweep.is_empty() {
            section #tradeoff {
                h2 { "What other choices would have cost" }
                @if page.sweep.is_empty() { (steps(page)) } @else { (sweep(&page.sweep)) }
            }
        }
    }
}

fn steps(page: &ReportPage) -> Markup {
    let series = |name: &str, colour: usize, of: fn(&StepFact) -> f64| Series {
        name: name.to_owned(),
        colour,
        dashes: 0,
        points: page
            .steps
            .iter()
            .map(|step| (f64::from(step.step), of(step)))
            .collect(),
    };
    let chart = Chart {
        title: "Detail lost after each step of the run".to_owned(),
        x: Axis::linear("step", false),
        y: Axis::linear("share", true),
        series: vec![
            series("detail lost (NCP)", 0, |step| step.ncp),
            series("records that look alike (DR)", 1, |step| step.dr),
        ],
        marked: page.released_step.map(f64::from),
    };
    html! {
        p {
            "The run started with the most general table and specialized one value at a time while the guarantee held. "
            "Every step can be released; the circle marks the one that was."
        }
        (chart.figure())
    }
}

fn sweep(combinations: &[SweepFact]) -> Markup {
    let columns = [Column::number("Detail lost"), Column::number("DR")];
    let rows = combinations.iter().map(|one| Row {
        name: html! { (one.name) @if one.is_released { " ← released" } },
        cells: vec![
            html! { (one.ncp.map_or_else(|| "no table meets it".to_owned(), percent)) },
            html! { (one.dr.map_or_else(String::new, percent)) },
        ],
        is_marked: one.is_released,
    });
    let rows: Vec<Row> = rows.collect();
    html! {
        p { "The job compared several combinations. Less loss is more use; the released one is marked." }
        (table("Combination", &columns, &rows))
    }
}
