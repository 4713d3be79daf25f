//! The technical annex: every figure with its definition, digests and ids.

use maud::{Markup, html};
use serde_json::Value;

use crate::input::ReportPage;
use crate::table::{Column, Row, table};
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
                (fields("Utility", page.utility(), of_utility))
                (fields("Risk", page.risk(), of_risk))
                (fields("Verification", &page.verification, of_verification))
            }
            details {
                summary { "Tables and their digests" }
                (tables(&page.tables))
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

/// A sentence with names between backticks set as code.
fn with_code(sentence: &str) -> Markup {
    html! {
        @for (number, part) in sentence.split('`').enumerate() {
            @if number % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn tables(tables: &Value) -> Markup {
    let rows = items(tables).iter().map(|table| {
        let digest = html! { code { (plain(&table["sha256"])) } };
        Row::new(
            plain(&table["name"]),
            vec![html! { (plain(&table["rows"])) }, digest],
        )
    });
    let rows: Vec<Row> = rows.collect();
    let columns = [Column::number("Rows"), Column::text("SHA-256 of the CSV")];
    table("Table", &columns, &rows)
}

/// The fields of an object that have no section of their own, each with its meaning.
fn fields(title: &str, object: &Value, meaning: fn(&str) -> &'static str) -> Markup {
    let fields = object.as_object().into_iter().flatten();
    let fields: Vec<_> = fields
        .filter(|(name, value)| !value.is_null() && !SHOWN_ABOVE.contains(&name.as_str()))
        .collect();
    html! {
        @if !fields.is_empty() {
            h3 { (title) }
            dl.fields {
                @for (name, value) in fields {
                    @let meaning = meaning(name);
                    dt { code { (name) } @if !meaning.is_empty() { small { (meaning) } } }
                    dd { (plain(value)) }
                }
            }
        }
    }
}

const GROUPS: &str =
    "groups of records: equal in all quasi-identifiers, or with common counts of sensitive values";

const SMALLEST_KNOWN: &str = "fewest records, or patients, that share what an adversary of the model may know: what K bounds";

const GREATEST: &str = "greatest share of one sensitive value that an adversary of the model finds, bounded or not; of a column whose values the job lists, of these alone";

fn of_utility(name: &str) -> &'static str {
    match name {
        "dr" => {
            "discernibility ratio: sum of the squared sizes of the groups, divided by the squared number of records"
        }
        "discernibility" => "sum of the squared sizes of the groups",
        "ncp" => "normalized certainty penalty: detail lost, mean over the quasi-identifiers",
        "information_remain" => "1 - ncp: detail that is left",
        "groups" => GROUPS,
        "smallest_group" => "records, or patients where they are counted, of the smallest group",
        "smallest_known_group" => SMALLEST_KNOWN,
        "average_group" => "records divided by groups",
        "average_group_per_record" => "size of the group of a record, averaged over records",
        "greatest_confidence" => GREATEST,
        "association_survival" => {
            "share of the associations between pairs of columns that survives"
        }
        "sampled_rows" => {
            "records that the figures for classifiers, queries, entropy and associations were measured on"
        }
        _ => "",
    }
}

fn of_risk(name: &str) -> &'static str {
    match name {
        "highest" => {
            "greatest chance to pick the right record by all quasi-identifiers: 1 / smallest group"
        }
        "average" => "mean of that chance over the records: groups / records",
        "records_at_highest" => "records in groups of the smallest size",
        "prosecutor" => {
            "success probability of somebody who looks for one patient known to be in the table"
        }
        "journalist" => {
            "success probability of an adversary who looks for any patient; at most the prosecutor risk, since the population is unknown"
        }
        "marketer" => "expected share of the patients found by somebody who looks for all of them",
        "by_length_exact" => {
            "whether the figures by known attributes are exact; else labels overlap and they are bounds"
        }
        "lengths_left_out" => {
            "numbers of known attributes that were not measured because it would take too long"
        }
        "greatest_confidence_per_subject" => {
            "greatest share of one sensitive value among the patients of a group"
        }
        _ => "",
    }
}

fn of_verification(name: &str) -> &'static str {
    match name {
        "holds" => "whether the table meets the model",
        "rows" => "records that were checked",
        "groups" => GROUPS,
        "smallest_group" => SMALLEST_KNOWN,
        "smallest_equivalence_class" => {
            "fewest records, or patients, that are equal in all quasi-identifiers; of an anatomized release, of a group"
        }
        "greatest_confidence" => GREATEST,
        "greatest_bounded_confidence" => "the same, for the values that the model bounds",
        "subsets" => "combinations of quasi-identifiers that were checked",
        "violations" => "combinations of values, or groups, that break the model",
        "diversity" => "diversity of the least diverse group, in the measure of the model",
        "smallest_range" => {
            "by column, the minimum difference between the largest and the smallest number of a group"
        }
        "missing_sensitive" => {
            "excluded: shares are among records that have a value; counted: among all"
        }
        _ => "",
    }
}
