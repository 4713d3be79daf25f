//! The technical annex: every figure with its definition, digests and ids.

use maud::{Markup, html};
use serde_json::Value;

use crate::input::ReportPage;
use crate::words::{items, plain};

/// Fields that have a section of their own.
const SHOWN_ABOVE: [&str; 19] = [
    "ncp_by_column",
    "information_remain_by_column",
    "group_sizes",
    "worst",
    "query_error",
    "item_loss_by_column",
    "items_by_column",
    "item_query_error",
    "classification_error",
    "entropy_loss_by_column",
    "frequency_survival_by_column",
    "by_length",
    "share_above",
    "insensitive_singled_out",
    "qid_sizes",
    "qid_confidences",
    "distributions",
    "unchanged",
    "attribute",
];

/// The annex.
pub(crate) fn annex(page: &ReportPage) -> Markup {
    html! {
        section #annex {
            h2 { "For the record" }
            (warnings(&page.report["warnings"]))
            details {
                summary { "All figures" }
                (fields("Utility", page.utility()))
                (fields("Risk", page.risk()))
                (fields("Verification", &page.verification))
            }
            details {
                summary { "Tables and their digests" }
                div.scroll {
                    table {
                        thead { tr { th scope="col" { "Table" } th.n scope="col" { "Rows" } th scope="col" { "SHA-256 of the CSV" } } }
                        tbody {
                            @for table in items(&page.tables) {
                                tr { th scope="row" { (plain(&table["name"])) } td.n { (plain(&table["rows"])) } td { code { (plain(&table["sha256"])) } } }
                            }
                        }
                    }
                }
            }
            p.note {
                "Release " code { (page.release) }
                @if let Some(name) = &page.name { ", " (name) }
                @if let Some(step) = page.released_step { ", after step " (step) }
                ". This page shows no record."
            }
        }
    }
}

fn warnings(warnings: &Value) -> Markup {
    let details = items(warnings).iter();
    let details: Vec<&str> = details.filter_map(|it| it["detail"].as_str()).collect();
    html! {
        @if !details.is_empty() {
            h3 { "Warnings" }
            ul.warnings { @for detail in details { li { (with_code(detail)) } } }
        }
    }
}

/// A sentence whose names between backticks are set as code.
fn with_code(sentence: &str) -> Markup {
    html! {
        @for (number, part) in sentence.split('`').enumerate() {
            @if number % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn fields(title: &str, object: &Value) -> Markup {
    let fields = object.as_object().into_iter().flatten();
    let fields: Vec<_> = fields
        .filter(|(name, value)| !value.is_null() && !SHOWN_ABOVE.contains(&name.as_str()))
        .collect();
    html! {
        @if !fields.is_empty() {
            h3 { (title) }
            dl.fields {
                @for (name, value) in fields {
                    dt { code { (name) } @let meaning = meaning(name); @if !meaning.is_empty() { small { (meaning) } } }
                    dd { (plain(value)) }
                }
            }
        }
    }
}

fn meaning(name: &str) -> &'static str {
    match name {
        "dr" => {
            "discernibility ratio: sum of the squared sizes of the groups, divided by the squared number of records"
        }
        "discernibility" => "sum of the squared sizes of the groups",
        "ncp" => "normalized certainty penalty, mean over the quasi-identifiers",
        "information_remain" => "1 - ncp",
        "groups" => "groups of records that are equal in all quasi-identifiers",
        "smallest_group" => "records of the smallest group",
        "smallest_known_group" => {
            "fewest records that share what an adversary of the model may know"
        }
        "smallest_equivalence_class" => "fewest records that are equal in all quasi-identifiers",
        "average_group" => "records divided by groups",
        "average_group_per_record" => "average size of the group of a record",
        "greatest_confidence" => {
            "greatest share of one value of a sensitive column, bounded or not"
        }
        "greatest_bounded_confidence" => "greatest share of a value that the model bounds",
        "association_survival" => {
            "share of the associations between pairs of columns that survives"
        }
        "highest" => "1 / smallest group",
        "average" => "groups / records",
        "records_at_highest" => "records in groups of the smallest size",
        "prosecutor" | "journalist" | "marketer" => "chance of success of this attacker",
        "greatest_confidence_per_subject" => {
            "greatest share of one sensitive value among the patients of a group"
        }
        "holds" => "whether the table meets the model",
        "subsets" => "sets of quasi-identifiers that were checked",
        "violations" => "combinations of values, or groups, that break the model",
        "diversity" => "diversity of the least diverse group, in the measure of the model",
        "missing_sensitive" => {
            "excluded: shares are among records that have a value; counted: among all"
        }
        _ => "",
    }
}
