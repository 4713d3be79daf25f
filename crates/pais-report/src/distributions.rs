//! Raw beside released distributions, for the holder.

use maud::{Markup, html};
use serde_json::Value;

use crate::chart::{Bar, bars};
use crate::input::ReportPage;
use crate::words::{items, percent, plain};

/// The section on distributions; empty where the report has none.
pub(crate) fn distributions(page: &ReportPage) -> Markup {
    let columns = items(&page.report["distributions"]);
    html! {
        @if !columns.is_empty() {
            section #distributions {
                h2 { "Raw beside released" }
                p { "For the holder alone: shares of the raw and of the released records, rounded. Rare values are pooled." }
                @for column in columns {
                    details open {
                        summary { (plain(&column["column"])) }
                        div.pair {
                            (half("raw", &column["raw"]))
                            (half("released", &column["released"]))
                        }
                    }
                }
            }
        }
    }
}

fn half(title: &str, shares: &Value) -> Markup {
    let shares = items(shares);
    let drawn: Vec<Bar> = shares
        .iter()
        .map(|one| {
            let share = one["share"].as_f64().unwrap_or(0.0);
            Bar {
                name: plain(&one["label"]),
                text: percent(share),
                share,
            }
        })
        .collect();
    bars(title, &drawn)
}
