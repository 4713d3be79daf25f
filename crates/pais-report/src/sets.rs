//! What happened to the items of sets.

use maud::{Markup, html};
use serde_json::Value;

use crate::input::ReportPage;
use crate::words::{count, percent, share};

/// How many items are left, and how well queries over items are answered; nothing without sets.
pub(crate) fn items(page: &ReportPage) -> Markup {
    let utility = page.utility();
    let columns = utility["items_by_column"].as_object();
    let error = &utility["item_query_error"];
    html! {
        @if let Some(columns) = columns {
            h3 { "Items of sets" }
            ul { @for (column, counts) in columns { li { strong { (column) } ": " (sentence(counts)) } } }
        }
        @if let Some(all) = share(&error["all"]) {
            p {
                "Counting the records that have one or two items from the release is off by " strong { (all) }
                " on average. For the holder alone, rounded."
            }
        }
    }
}

fn sentence(counts: &Value) -> String {
    let number = |name: &str| counts[name].as_u64().unwrap_or(0);
    let (raw, released) = (number("raw"), number("released"));
    let kept = released as f64 / raw.max(1) as f64;
    format!(
        "{} items became {} ({}); {} records had no item, and {} released ones have none.",
        count(raw),
        count(released),
        percent(kept),
        count(number("raw_cells_without_items")),
        count(number("released_cells_without_items"))
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::sentence;

    #[test]
    fn the_sentence_says_how_many_items_are_left_and_how_many_cells_are_empty() {
        let counts = json!({"raw": 10407, "released": 1425, "raw_cells_without_items": 12,
            "released_cells_without_items": 1800});
        assert_eq!(
            sentence(&counts),
            "10,407 items became 1,425 (14 %); 12 records had no item, and 1,800 released ones have none."
        );
    }
}
