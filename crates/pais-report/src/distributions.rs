//! Raw and released distributions side by side, for the holder.

use maud::{Markup, html};
use serde_json::Value;

use crate::chart::{Bar, bars};
use crate::input::ReportPage;
use crate::words::{items, percent, plain};

/// Maximum number of columns whose distributions are open, and so printed, without being asked for.
const MOST_OPEN: usize = 6;

/// The section on distributions; empty where the report has none.
pub(crate) fn distributions(page: &ReportPage) -> Markup {
    let columns = items(&page.report["distributions"]);
    html! {
        @if !columns.is_empty() {
            section #distributions {
                h2 { "Raw beside released" }
                p { "For the holder alone: shares of the raw and of the released records, rounded. Rare values are pooled. The bars of a column have one scale." }
                @if columns.len() > MOST_OPEN { p.note.screen { "What is open is printed." } }
                @for column in columns {
                    details open[columns.len() <= MOST_OPEN] {
                        summary { (plain(&column["column"])) }
                        (pair(column))
                    }
                }
            }
        }
    }
}

fn pair(column: &Value) -> Markup {
    let (raw, released) = (drawn(&column["raw"]), drawn(&column["released"]));
    let both = raw.iter().chain(&released);
    let most = both.map(|bar| bar.share).fold(0.0, f64::max);
    html! {
        div.pair {
            (bars("raw", &raw, most))
            (bars("released", &released, most))
        }
    }
}

fn drawn(shares: &Value) -> Vec<Bar> {
    let shares = items(shares).iter();
    let drawn = shares.map(|one| {
        let share = one["share"].as_f64().unwrap_or(0.0);
        Bar {
            name: plain(&one["label"]),
            text: percent(share),
            share,
        }
    });
    drawn.collect()
}
