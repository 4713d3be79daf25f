//! The questions of guidelines that privacy officers have to answer, and what the release says about them.
//! Nothing here looks like a seal: a question that a person has to decide stays a question.

use maud::{Markup, html};
use serde_json::Value;

use crate::input::ReportPage;
use crate::table::{Column, Row, table};
use crate::words::{capital, count, counted, items, list, percent, plain, share, texts};

/// The section on guidelines; empty where the report has none.
pub(crate) fn guidelines(page: &ReportPage) -> Markup {
    let answers = &page.report["guidelines"];
    html! {
        @if answers.is_object() {
            section #guidelines {
                h2 { "What guidelines ask" }
                p { (plain(&answers["note"])) }
                (opinion(page, &answers["opinion_05_2014"]))
                (thresholds(page, answers))
                (safe_harbor(&answers["safe_harbor"]))
            }
        }
    }
}

/// Opinion 05/2014: three questions.
fn opinion(page: &ReportPage, opinion: &Value) -> Markup {
    let (one, many) = page.unit();
    let known = match (page.model(), page.known_facts()) {
        ("k_m_anonymity", _) => counted(page.privacy["m"].as_u64().unwrap_or(1), "item", "items"),
        (_, Some(1)) => "1 attribute".to_owned(),
        (_, Some(facts)) => format!("{} {}", count(facts), page.known_word()),
        (_, None) => "all quasi-identifiers".to_owned(),
    };
    let singling_out = &opinion["singling_out"];
    let linkability = &opinion["linkability"];
    let inference = &opinion["inference"];
    let links = texts(&linkability["exact_links"]);
    let unprotected = texts(&inference["unprotected"]);
    let listed = texts(&inference["listed_only"]);
    let counted_of = |value: &Value| counted(value.as_u64().unwrap_or(0), one, many);
    let rows = [
        Row::new(
            "Singling out",
            vec![
                html! { (answer(&singling_out["answer"])) },
                html! {
                    @if !singling_out["unique_share"].is_null() {
                        (share_of(&singling_out["unique_by_quasi_identifiers"])) " of the " (many) " are unique by their quasi-identifiers, "
                        (share_of(&singling_out["unique_share"])) " by all columns that are not sensitive, and "
                        (share_of(&singling_out["unique_by_all_columns"])) " by all columns. "
                    }
                    @if page.is_anatomy() { "Each is in a group of at least " } @else { "Whoever knows " (known) " of a patient finds at least " }
                    (counted_of(&singling_out["smallest_known_group"])) "."
                },
            ],
        ),
        Row::new(
            "Linkability",
            vec![
                html! { (answer(&linkability["answer"])) },
                html! {
                    "Another table with all quasi-identifiers links a record to at least "
                    (counted_of(&linkability["smallest_group"])) ". "
                    @if !links.is_empty() { "Values of " (list(&links)) " that one record has link it exactly. " }
                    "Models of groups do not exclude links, and what other releases and tables contain is not known here."
                },
            ],
        ),
        Row::new(
            "Inference",
            vec![
                html! { (answer(&inference["answer"])) },
                html! {
                    @if inference["answer"] == "unknown" {
                        "No column is declared sensitive, so it is unknown what must not be inferred."
                    } @else {
                        "The greatest confidence in a sensitive value is " (share_of(&inference["greatest_confidence"]))
                        ", for an adversary as the model assumes. "
                        @if !unprotected.is_empty() { "The model does not protect " (list(&unprotected)) ". " }
                        @if !listed.is_empty() { "Of " (list(&listed)) " it protects only the listed values. " }
                    }
                },
            ],
        ),
    ];
    html! {
        h3 { "Singling out, linkability, inference" }
        p.note { "The three questions of opinion 05/2014 (WP216) of the European Article 29 Working Party." }
        (table("Question", &[Column::text("Still possible?"), Column::text("In this release")], &rows))
    }
}

fn answer(answer: &Value) -> &'static str {
    match answer.as_str() {
        Some("possible") => "possible",
        Some("partly_limited") => "limited in part by the model",
        Some("limited") => "limited by the model",
        _ => "not known",
    }
}

fn share_of(value: &Value) -> String {
    share(value).unwrap_or_default()
}

/// The risk compared with 0.09, and groups compared with cells of 11.
fn thresholds(page: &ReportPage, answers: &Value) -> Markup {
    let (_, many) = page.unit();
    let risk = &answers["risk_threshold"];
    let cells = &answers["small_cells"];
    let word =
        |is_within: &Value, within: &'static str, beyond: &'static str| match is_within.as_bool() {
            Some(true) => within,
            Some(false) => beyond,
            None => "not known",
        };
    // On one line.
    let threshold = share_of(&risk["threshold"]).replace(' ', "\u{a0}");
    let of_risk = |name: &'static str, what: &str, value: &Value, is_within: &Value| {
        Row::new(
            name,
            vec![
                html! { "at most " (threshold) },
                html! { (share_of(value)) ", " (word(is_within, "not above it", "above it")) },
                html! { (what) },
            ],
        )
    };
    let least = cells["least"].as_u64().unwrap_or(0);
    let rows = [
        of_risk(
            "Greatest risk",
            "EMA Policy 0070 (EMA/90915/2016, chapter 3) and Health Canada, for published data",
            &risk["highest"],
            &risk["highest_is_within"],
        ),
        of_risk(
            "Average risk",
            "the same, for data shared under controls",
            &risk["average"],
            &risk["average_is_within"],
        ),
        Row::new(
            "Smallest group",
            vec![
                html! { (count(least)) " or more" },
                html! {
                    (plain(&cells["smallest"])) ", " (word(&cells["all_are_within"], "not below it", "below it"))
                    @if let Some(below) = share(&cells["share_in_smaller"]) { "; " (below) " of the records are in smaller groups" }
                },
                html! { "cell size suppression policy of CMS: no cell of 1 to " (count(least.saturating_sub(1))) " " (many) },
            ],
        ),
    ];
    let columns = [
        Column::text("Threshold"),
        Column::text("This release"),
        Column::text("Guideline"),
    ];
    html! {
        h3 { "Risk compared with thresholds" }
        (table("Figure", &columns, &rows))
        p.note {
            "For somebody who knows all quasi-identifiers, and no column that is released unchanged. A group of 11 has a risk of "
            (percent(1.0 / 11.0)) ", a group of 12 one of " (percent(1.0 / 12.0))
            ". A table that also splits by other columns has smaller cells."
        }
    }
}

/// The 18 categories: those with columns one by one, and all others in one sentence.
fn safe_harbor(found: &Value) -> Markup {
    let categories = items(&found["categories"]);
    let (without, with): (Vec<&Value>, Vec<&Value>) = categories
        .iter()
        .partition(|category| category["finding"] == "no_column_recognized");
    let name = |category: &Value| {
        format!(
            "({}) {}",
            plain(&category["letter"]),
            plain(&category["title"])
        )
    };
    let without: Vec<String> = without.into_iter().map(name).collect();
    let rows = with.into_iter().map(|category| {
        let columns = items(&category["columns"]);
        let missing = columns.iter().filter(|column| !items(&column["missing"]).is_empty());
        let missing: Vec<&Value> = missing.collect();
        Row::new(
            name(category),
            vec![
                html! { (finding(&category["finding"])) },
                html! { @for column in columns { p { strong { (plain(&column["name"])) } ": " (outcome(&column["outcome"])) } } },
                html! {
                    @for column in missing {
                        p {
                            @if columns.len() > 1 { strong { (plain(&column["name"])) } ": " }
                            (list(&items(&column["missing"]).iter().map(|it| requirement(it).to_owned()).collect::<Vec<_>>()))
                        }
                    }
                },
            ],
        )
    });
    let rows: Vec<Row> = rows.collect();
    let titles = [
        Column::text("Finding"),
        Column::text("Columns"),
        Column::text("What is missing"),
    ];
    let unrecognized = texts(&found["unrecognized"]);
    html! {
        h3 { "The 18 identifiers of HIPAA Safe Harbor" }
        p.note { "45 CFR 164.514(b)(2)(i), of the individual and of relatives, employers and household members." }
        @if !rows.is_empty() { (table("Category", &titles, &rows)) }
        @if !without.is_empty() {
            p {
                "No column was recognized as one of these, which does not say that the table has none: " (list(&without)) "."
            }
        }
        @if !unrecognized.is_empty() {
            p { (capital(&counted(unrecognized.len() as u64, "column was", "columns were"))) " not recognized as any category; check them: " (list(&unrecognized)) "." }
        }
        p.note {
            "Columns are recognized by name and declaration, and one that is released unchanged with nearly as many values as rows as a code. "
            "Values are not inspected further: a name inside a text is not detected. "
            "Safe Harbor also requires that the holder does not know that a person could be identified (164.514(b)(2)(ii))."
        }
    }
}

fn finding(finding: &Value) -> &'static str {
    match finding.as_str() {
        Some("removed") => "removed",
        Some("permitted") => "in a permitted form",
        Some("to_check") => "to be checked",
        Some("missing") => "something is missing",
        _ => "not known",
    }
}

fn outcome(outcome: &Value) -> &'static str {
    match outcome.as_str() {
        Some("dropped") => "not released",
        Some("one_label") => "one label for all",
        Some("generalized") => "generalized",
        Some("unchanged") => "released unchanged",
        _ => "not known",
    }
}

fn requirement(requirement: &Value) -> &'static str {
    match requirement.as_str() {
        Some("remove_column") => "leave the column out",
        Some("state_or_larger") => "release no place smaller than a state",
        Some("three_digits") => "release at most three digits of a ZIP code",
        Some("year_only") => "release the year alone",
        Some("ages_over_89") => "put all ages over 89 into one group, 90 or older",
        Some("population") => {
            "check that more than 20,000 people live in each area of three digits, and write 000 for others"
        }
        Some("years_of_ages_over_89") => "check that no year tells an age over 89",
        Some("meaning_of_labels") => "check what the labels mean, which is not known here",
        _ => "not known",
    }
}
