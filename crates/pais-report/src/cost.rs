//! What it cost: detail lost by column, and what remains for a classifier and for queries.

use maud::{Markup, html};
use serde_json::Value;

use crate::chart::{Bar, bars};
use crate::columns;
use crate::input::ReportPage;
use crate::sets;
use crate::table::{Column, Row, table};
use crate::words::{capital, count, counted, list, percent, plain, points, share};

/// The section on utility.
pub(crate) fn cost(page: &ReportPage) -> Markup {
    let utility = page.utility();
    html! {
        section #cost {
            h2 { "What it cost" }
            p {
                (counted(page.rows(), "record is", "records are")) " released, "
                (plain(&page.report["suppressed_rows"])) " were left out. "
                @if let Some(groups) = utility["groups"].as_u64() {
                    "They form " (counted(groups, "group", "groups")) @if !page.is_anatomy() { " of records that look alike in all quasi-identifiers" }
                    @if let Some(average) = utility["average_group"].as_f64() { ", " (plain(&((average * 10.0).round() / 10.0).into())) " records on average" }
                    "."
                }
            }
            (known_columns(page))
            (other_columns(page))
            (classification(&utility["classification_error"]))
            (queries(utility))
            (sets::items(page))
            @if let Some(association) = share(&utility["association_survival"]) {
                h3 { "Between columns" }
                p { (association) " of the associations between pairs of columns survive. For the holder alone, rounded." }
            }
        }
    }
}

/// A figure that each quasi-identifier has: the title of its column in the table, where it is in the
/// report, and what it means.
const FIGURES: [(&str, &str, &str); 3] = [
    (
        "Information lost",
        "entropy_loss_by_column",
        "Information lost: how much less certain a raw value is once its label is known (entropy).",
    ),
    (
        "Frequencies kept",
        "frequency_survival_by_column",
        "Frequencies kept: how much of the frequencies of raw values can be estimated from the labels.",
    ),
    (
        "Items lost",
        "item_loss_by_column",
        "Items lost: of the items of all raw sets, those that are hidden or generalized, by how far.",
    ),
];

fn known_columns(page: &ReportPage) -> Markup {
    let known = columns::known(page);
    let utility = page.utility();
    let has = |figure: &&(&str, &str, &str)| utility[figure.1].is_object();
    let figures: Vec<_> = FIGURES.iter().filter(has).collect();
    let mut titles = vec![Column::text("What happened"), Column::text("Detail lost")];
    titles.extend(figures.iter().map(|figure| Column::number(figure.0)));
    let rows = known.iter().map(|column| {
        let mut cells = vec![
            html! { (column.fate) },
            html! { @if let Some(loss) = column.loss { (meter(loss)) } },
        ];
        cells.extend(figures.iter().map(|figure| {
            let value = share(&utility[figure.1][&*column.name]);
            html! { @if let Some(value) = value { (value) } }
        }));
        Row::new(&column.name, cells)
    });
    let rows: Vec<Row> = rows.collect();
    html! {
        @if !rows.is_empty() {
            h3 { "Quasi-identifiers, by which a patient could be known" }
            (table("Quasi-identifier", &titles, &rows))
            p.note {
                "Detail lost: the share of its range or of its hierarchy that a released value leaves open on "
                "average (normalized certainty penalty). 0 % is exact, 100 % says nothing. Records left out count as 100 %."
                @for figure in &figures { " " (figure.2) }
                @if !figures.is_empty() { " These are for the holder alone, rounded." }
            }
        }
    }
}

/// The other columns, one line for each fate.
fn other_columns(page: &ReportPage) -> Markup {
    let others = columns::others(page);
    html! {
        @if !others.is_empty() {
            h3 { "All other columns" }
            dl.lines {
                @for other in &others {
                    dt { (other.fate) span.count { (counted(other.names.len() as u64, "column", "columns")) } }
                    dd { (list(&other.names)) }
                }
            }
        }
    }
}

fn meter(loss: f64) -> Markup {
    let width = format!("width:{:.1}%", loss.clamp(0.0, 1.0) * 100.0);
    html! {
        span.meter {
            span.value { (percent(loss)) }
            span.track aria-hidden="true" { @if loss > 0.0 { span.fill style=(width) {} } }
        }
    }
}

fn classification(error: &Value) -> Markup {
    let bar = |name: &str, value: &Value| {
        value.as_f64().map(|value| Bar {
            name: name.to_owned(),
            text: percent(value),
            share: value,
        })
    };
    let found = [
        bar("on the raw records", &error["be"]),
        bar("on this release", &error["ce"]),
        bar("without quasi-identifiers", &error["ue"]),
    ];
    let found: Vec<Bar> = found.into_iter().flatten().collect();
    let most = found.iter().map(|bar| bar.share).fold(0.0, f64::max);
    html! {
        @if error.is_object() {
            h3 { "For predicting the class" }
            p {
                "A decision tree was trained on "
                (count(error["trained_rows"].as_u64().unwrap_or(0)))
                " records and tested on "
                (count(error["tested_rows"].as_u64().unwrap_or(0)))
                " others. Share of wrong predictions:"
            }
            (bars("Wrong predictions of a decision tree", &found, most))
            @if let (Some(cost), Some(gain)) = (error["ce_minus_be"].as_f64(), error["ue_minus_ce"].as_f64()) {
                p {
                    (capital(&difference(cost))) " than on the raw records, and "
                    (difference(-gain)) " than without the quasi-identifiers."
                }
            }
        }
    }
}

/// A difference of two shares of wrong predictions.
fn difference(difference: f64) -> String {
    let word = if difference < 0.0 { "fewer" } else { "more" };
    format!("{} {word} are wrong", points(difference.abs()))
}

fn queries(utility: &Value) -> Markup {
    let error = &utility["query_error"];
    html! {
        @if error.is_object() {
            h3 { "For counting" }
            p {
                "Random counting queries (such as: how many women from 40 to 59 with this value) were answered from the "
                "release and compared with the raw records. On average the answers are off by "
                (share(&error["all"]).unwrap_or_default()) " of the true count"
                @if let Some(large) = share(&error["from_one_percent"]) {
                    ", and by " (large) " for counts of at least one in a hundred records"
                }
                @if let Some(rows) = utility["sampled_rows"].as_u64() {
                    ", counted in a random sample of " (count(rows)) " records"
                }
                ". For the holder alone, rounded."
            }
        }
    }
}
