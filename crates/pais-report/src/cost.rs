//! What it cost: detail lost by column, and what remains for a classifier and for queries.

use maud::{Markup, html};
use serde_json::Value;

use crate::chart::{Bar, bars};
use crate::columns;
use crate::input::ReportPage;
use crate::sets;
use crate::words::{count, counted, percent, plain, share};

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
                    "They form " (counted(groups, "group", "groups")) " of records that look alike in all identifying attributes"
                    @if let Some(average) = utility["average_group"].as_f64() { ", " (plain(&((average * 10.0).round() / 10.0).into())) " records on average" }
                    "."
                }
            }
            h3 { "Every column, and what happened to it" }
            div.scroll {
                table {
                    thead { tr { th scope="col" { "Column" } th scope="col" { "Role" } th scope="col" { "What happened" } th scope="col" { "Detail lost" } } }
                    tbody {
                        @for column in columns::of(page) {
                            tr {
                                th scope="row" { (column.name) }
                                td { (column.role) }
                                td { (column.fate) }
                                td.meter { @if let Some(loss) = column.loss { (meter(loss)) } }
                            }
                        }
                    }
                }
            }
            p.note {
                "Detail lost: the share of its range or of its hierarchy that a released value leaves open on "
                "average (normalized certainty penalty). 0 % is exact, 100 % says nothing. Records left out count as 100 %."
            }
            (classification(&utility["classification_error"]))
            (queries(utility))
            (sets::items(page))
            (survival(page))
        }
    }
}

fn meter(loss: f64) -> Markup {
    let width = format!("width:{:.1}%", loss.clamp(0.0, 1.0) * 100.0);
    html! {
        span.value { (percent(loss)) }
        span.track aria-hidden="true" { span.fill style=(width) {} }
    }
}

fn classification(error: &Value) -> Markup {
    let bar = |name: &str, value: &Value| {
        value.as_f64().map(|value| Bar {
            name: name.to_owned(),
            text: format!("{:.1} %", value * 100.0),
            share: value,
        })
    };
    let found = [
        bar("on the raw records", &error["be"]),
        bar("on this release", &error["ce"]),
        bar("without identifying attributes", &error["ue"]),
    ];
    let found: Vec<Bar> = found.into_iter().flatten().collect();
    let most = found.iter().map(|bar| bar.share).fold(0.0, f64::max);
    let found = found.into_iter().map(|bar| Bar {
        share: bar.share / most.max(1e-9),
        ..bar
    });
    html! {
        @if error.is_object() {
            h3 { "For predicting the class" }
            p {
                "A decision tree was trained on two thirds of the records and tested on the others. Share of wrong predictions:"
            }
            (bars("Wrong predictions of a decision tree", &found.collect::<Vec<_>>()))
            @if let (Some(cost), Some(gain)) = (error["ce_minus_be"].as_f64(), error["ue_minus_ce"].as_f64()) {
                p { "Protection costs " (percent(cost.max(0.0))) " more wrong predictions than the raw records would give; releasing the identifying attributes in this form saves " (percent(gain.max(0.0))) " against leaving them out." }
            }
        }
    }
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

/// What survives of distributions and associations, where the report measures it.
fn survival(page: &ReportPage) -> Markup {
    let utility = page.utility();
    let frequency = utility["frequency_survival_by_column"].as_object();
    let entropy = utility["entropy_loss_by_column"].as_object();
    let association = share(&utility["association_survival"]);
    let items = utility["item_loss_by_column"].as_object();
    html! {
        @if frequency.is_some() || entropy.is_some() || association.is_some() || items.is_some() {
            h3 { "What survives" }
            @if let Some(association) = association {
                p { (association) " of the associations between pairs of columns survive. For the holder alone, rounded." }
            }
            @for (title, columns) in [
                ("Frequencies of values that survive", frequency),
                ("Information lost (entropy)", entropy),
                ("Items of sets that are lost", items),
            ] {
                @if let Some(columns) = columns {
                    (bars(title, &columns.iter().filter_map(|(name, value)| Some(Bar {
                        name: name.clone(), text: share(value)?, share: value.as_f64()?,
                    })).collect::<Vec<_>>()))
                }
            }
        }
    }
}
