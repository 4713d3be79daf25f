//! What risk remains, and the sizes of groups.

use maud::{Markup, html};
use serde_json::Value;

use crate::chart::{Bar, bars};
use crate::input::ReportPage;
use crate::words::{count, counted, list, percent, plain, share};

/// The section on risk.
pub(crate) fn risk(page: &ReportPage) -> Markup {
    let risk = page.risk();
    let (one, many) = page.unit();
    html! {
        section #risk {
            h2 { "What risk remains" }
            @if let (Some(highest), Some(average)) = (risk["highest"].as_f64(), risk["average"].as_f64()) {
                p {
                    "Somebody who knows every identifying attribute of a patient and that the patient is in the table picks "
                    "the right " (one) " with a chance of " strong { (percent(average)) } " on average and of "
                    strong { (percent(highest)) } " where the risk is highest, which is so for "
                    (counted(risk["records_at_highest"].as_u64().unwrap_or(0), one, many)) "."
                    @if let Some(facts) = page.known_facts() {
                        " With up to " (counted(facts, "known attribute", "known attributes"))
                        @if let Some(smallest) = page.smallest_known() { " it is at most " (percent(1.0 / smallest.max(1) as f64)) }
                        "."
                    }
                }
            }
            (attackers(risk))
            (by_length(page))
            (qid_sizes(page))
            @let singled = texts(&risk["insensitive_singled_out"]);
            @if !singled.is_empty() {
                p.warn { "These columns are released unchanged and single out records: " (list(&singled)) "." }
            }
            (group_sizes(page))
            (above(&risk["share_above"], many))
        }
    }
}

fn texts(values: &Value) -> Vec<String> {
    values.as_array().into_iter().flatten().map(plain).collect()
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
    html! {
        @if !found.is_empty() {
            div.scroll {
                table {
                    thead { tr { th scope="col" { "Attacker" } th scope="col" { "Who" } th.n scope="col" { "Chance of success" } } }
                    tbody {
                        @for (name, who, chance) in found {
                            tr { th scope="row" { (name) } td { (who) } td.n { (chance) } }
                        }
                    }
                }
            }
        }
    }
}

fn by_length(page: &ReportPage) -> Markup {
    let Some(lengths) = page.risk()["by_length"]
        .as_array()
        .filter(|it| !it.is_empty())
    else {
        return html! {};
    };
    let (_, many) = page.unit();
    let guaranteed = |length: &Value| match page.known_facts() {
        Some(facts) => length.as_u64().is_some_and(|length| length <= facts),
        None => true,
    };
    html! {
        h3 { "By how much somebody knows" }
        div.scroll {
            table {
                thead {
                    tr {
                        th scope="col" { "Known attributes" }
                        th.n scope="col" { "Fewest " (many) " that fit" }
                        th.n scope="col" { "Share below K" }
                        th.n scope="col" { "Greatest confidence in a sensitive value" }
                        th scope="col" { "Protected" }
                    }
                }
                tbody {
                    @for row in lengths {
                        tr {
                            th scope="row" { (plain(&row["length"])) }
                            td.n { (plain(&row["smallest"])) }
                            td.n { (share(&row["share_below_k"]).unwrap_or_default()) }
                            td.n { (share(&row["greatest_confidence"]).unwrap_or_else(|| "not bounded".to_owned())) }
                            td { @if guaranteed(&row["length"]) { "yes" } @else { "no: beyond what was asked" } }
                        }
                    }
                }
            }
        }
        @if page.risk()["by_length_exact"] == false {
            p.note { "Labels of different groups overlap here: the fewest " (many) " are a lower bound, and the shares upper bounds, of what can be found." }
        }
    }
}

fn group_sizes(page: &ReportPage) -> Markup {
    let buckets = page.utility()["group_sizes"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let rows = |bucket: &Value| bucket["rows"].as_f64().unwrap_or(0.0);
    let most = buckets.iter().map(rows).fold(0.0, f64::max);
    let all: f64 = buckets.iter().map(rows).sum();
    let bar = |bucket: &Value| Bar {
        name: match (bucket["from"].as_u64(), bucket["to"].as_u64()) {
            (Some(from), Some(to)) if from == to => counted(from, "record", "records"),
            (Some(from), Some(to)) => format!("{} to {}", count(from), count(to)),
            _ => plain(&bucket["from"]),
        },
        text: format!(
            "{} in {}",
            percent(rows(bucket) / all.max(1.0)),
            counted(bucket["groups"].as_u64().unwrap_or(0), "group", "groups")
        ),
        share: rows(bucket) / most.max(1.0),
    };
    let drawn: Vec<Bar> = buckets.iter().map(bar).collect();
    html! {
        @if !drawn.is_empty() {
            h3 { "Sizes of groups" }
            p {
                "Records that look alike in all identifying attributes form a group; the larger, the safer against somebody who knows everything."
                @if page.known_facts().is_some() {
                    " Groups may be small here: the guarantee is about fewer known attributes, which match many groups together."
                }
            }
            (bars("Share of records by the size of their group", &drawn))
        }
    }
}

fn above(shares: &Value, many: &str) -> Markup {
    let shares = shares.as_array().map_or(&[][..], Vec::as_slice);
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
            p { "How many " (many) " somebody who knows all identifying attributes picks with a chance above:" }
            (bars("Share with a risk above", &drawn))
        }
    }
}

/// How many records the combinations of known values match.
fn qid_sizes(page: &ReportPage) -> Markup {
    let buckets = page.risk()["qid_sizes"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let qids = |bucket: &Value| bucket["qids"].as_f64().unwrap_or(0.0);
    let (all, most) = (
        buckets.iter().map(qids).sum::<f64>(),
        buckets.iter().map(qids).fold(0.0, f64::max),
    );
    let range = |bucket: &Value| match (bucket["from"].as_u64(), bucket["to"].as_u64()) {
        (Some(from), Some(to)) if from < to => format!("{} to {}", count(from), count(to)),
        (Some(from), _) => count(from),
        _ => String::new(),
    };
    let drawn: Vec<Bar> = buckets
        .iter()
        .map(|bucket| Bar {
            name: range(bucket),
            text: percent(qids(bucket) / all.max(1.0)),
            share: qids(bucket) / most.max(1.0),
        })
        .collect();
    let (_, many) = page.unit();
    html! {
        @if !drawn.is_empty() {
            p { "Of all combinations of values that somebody may know within the guarantee, these shares match so many " (many) ":" }
            (bars("Combinations of known values by the number that fit", &drawn))
        }
    }
}
