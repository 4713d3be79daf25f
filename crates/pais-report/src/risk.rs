//! What risk remains, and the sizes of groups.

use maud::{Markup, html};
use serde_json::Value;

use crate::chart::{Bar, bars};
use crate::input::ReportPage;
use crate::table::{Column, Row, table};
use crate::unchanged;
use crate::words::{count, counted, items, percent, percent_at_most, plain, share};

/// The section on risk.
pub(crate) fn risk(page: &ReportPage) -> Markup {
    let risk = page.risk();
    let (one, many) = page.unit();
    html! {
        section #risk {
            h2 { "What risk remains" }
            @if let (Some(highest), Some(average)) = (risk["highest"].as_f64(), risk["average"].as_f64()) {
                p {
                    "Somebody who knows every quasi-identifier of a patient and that the patient is in the table picks "
                    "the right " (one) " with a chance of " strong { (percent(average)) } " on average and of "
                    strong { (percent(highest)) } " where the risk is highest, which is so for "
                    (counted(risk["records_at_highest"].as_u64().unwrap_or(0), one, many)) "."
                    @if let Some(facts) = page.known_facts() {
                        " With up to " (counted(facts, "known attribute", "known attributes"))
                        @if let Some(smallest) = page.smallest_known() { " it is at most " (percent_at_most(1.0 / smallest.max(1) as f64)) }
                        "."
                    }
                }
            }
            (attackers(risk))
            @if let Some((share, column)) = page.attribute().filter(|(share, _)| *share > 0.0) {
                p {
                    "Of what an adversary of the model finds, at most " strong { (percent_at_most(share)) } " have the same "
                    "sensitive value; the greatest share is of a value of " (column) "."
                    @if page.privacy["sensitive_values"][column].is_array() {
                        " Only values that the job lists are compared: others may have a greater share."
                    }
                }
            }
            (unchanged::section(page))
            (by_length(page))
            (qid_sizes(page))
            (group_sizes(page))
            (above(&risk["share_above"], many))
        }
    }
}

fn attackers(risk: &Value) -> Markup {
    let kinds = [
        (
            "prosecutor",
            "who looks for one patient known to be in the table",
        ),
        ("journalist", "who looks for anybody in the table"),
        (
            "marketer",
            "who wants to find as many patients as possible, on average",
        ),
    ];
    let found: Vec<_> = kinds
        .into_iter()
        .filter_map(|(name, who)| Some((name, who, share(&risk[name])?)))
        .collect();
    let rows = found.into_iter();
    let rows =
        rows.map(|(name, who, chance)| Row::new(name, vec![html! { (who) }, html! { (chance) }]));
    let rows: Vec<Row> = rows.collect();
    let columns = [Column::text("Who"), Column::number("Chance of success")];
    html! { @if !rows.is_empty() { (table("Attacker", &columns, &rows)) } }
}

fn by_length(page: &ReportPage) -> Markup {
    let lengths = items(&page.risk()["by_length"]);
    if lengths.is_empty() {
        return html! {};
    }
    let (_, many) = page.unit();
    // The table also has a confidence, which only a bound limits.
    let within = match page.bound() {
        Some(_) if page.lists_values() => "yes, with the listed values",
        Some(_) => "yes",
        None => "the number that fits, not the confidence",
    };
    let protected = |length: &Value| match page.known_facts() {
        Some(facts) if length.as_u64().is_none_or(|length| length > facts) => {
            "no: beyond what was asked"
        }
        _ => within,
    };
    let fewest = format!("Fewest {many} that fit");
    let columns = [
        Column::number(&fewest),
        Column::number("Share below K"),
        Column::number("Greatest confidence in a sensitive value"),
        Column::text("Protected"),
    ];
    let rows = lengths.iter().map(|row| {
        let confidence = share(&row["greatest_confidence"]);
        Row::new(
            plain(&row["length"]),
            vec![
                html! { (plain(&row["smallest"])) },
                html! { (share(&row["share_below_k"]).unwrap_or_default()) },
                html! { (confidence.unwrap_or_else(|| "not bounded".to_owned())) },
                html! { (protected(&row["length"])) },
            ],
        )
    });
    let rows: Vec<Row> = rows.collect();
    html! {
        h3 { "By the number of known values" }
        (table("Known attributes", &columns, &rows))
        @if page.risk()["by_length_exact"] == false {
            p.note { "Labels of different groups overlap here: the fewest " (many) " are a lower bound, and the shares upper bounds, of what can be found." }
        }
    }
}

fn group_sizes(page: &ReportPage) -> Markup {
    let drawn = buckets(
        &page.utility()["group_sizes"],
        "rows",
        |bucket, range, share| {
            let groups = bucket["groups"].as_u64().unwrap_or(0);
            let is_one = bucket["from"] == bucket["to"];
            let name = match bucket["from"].as_u64().filter(|_| is_one) {
                Some(from) => counted(from, "record", "records"),
                None => range,
            };
            (
                name,
                format!("{share} in {}", counted(groups, "group", "groups")),
            )
        },
    );
    html! {
        @if !drawn.is_empty() {
            h3 { "Sizes of groups" }
            p {
                @if page.is_anatomy() {
                    "The records of a group share the counts of its sensitive values; the larger it is, the less these say about one of them."
                } @else {
                    "Records with equal quasi-identifiers form a group; the larger the group, the safer against somebody who knows everything."
                }
                @if page.known_facts().is_some() {
                    " Groups may be small here: the guarantee is about fewer known attributes, which match many groups together."
                }
            }
            (bars("Share of records by the size of their group", &drawn, 1.0))
        }
    }
}

/// The bars of buckets `[{from, to, <of>}]`: their length is their share of all. `text` makes the name and
/// value of a bucket, its range, and its share.
fn buckets(
    buckets: &Value,
    of: &str,
    text: impl Fn(&Value, String, String) -> (String, String),
) -> Vec<Bar> {
    let buckets = items(buckets);
    let number = |bucket: &Value| bucket[of].as_f64().unwrap_or(0.0);
    let all: f64 = buckets.iter().map(number).sum();
    let bar = |bucket: &Value| {
        let range = match (bucket["from"].as_u64(), bucket["to"].as_u64()) {
            (Some(from), Some(to)) if from < to => format!("{} to {}", count(from), count(to)),
            _ => plain(&bucket["from"]),
        };
        let share = number(bucket) / all.max(1.0);
        let (name, text) = text(bucket, range, percent(share));
        Bar { name, text, share }
    };
    buckets.iter().map(bar).collect()
}

fn above(shares: &Value, many: &str) -> Markup {
    let shares = items(shares);
    let drawn: Vec<Bar> = shares
        .iter()
        .filter_map(|one| {
            let share = one["share"].as_f64()?;
            Some(Bar {
                name: format!("above {}", percent(one["threshold"].as_f64()?)),
                text: percent(share),
                share,
            })
        })
        .collect();
    html! {
        @if !drawn.is_empty() {
            h3 { "Share of " (many) " by risk" }
            p { "How many " (many) " somebody who knows all quasi-identifiers picks with a chance above:" }
            (bars("Share with a risk above", &drawn, 1.0))
        }
    }
}

/// How many records the combinations of known values match.
fn qid_sizes(page: &ReportPage) -> Markup {
    let sizes = &page.risk()["qid_sizes"];
    let drawn = buckets(sizes, "qids", |_, range, share| (range, share));
    let (_, many) = page.unit();
    html! {
        @if !drawn.is_empty() {
            p { "Of all combinations of values that somebody may know within the guarantee, these shares match so many " (many) ":" }
            (bars("Combinations of known values by the number that fit", &drawn, 1.0))
        }
    }
}
