//! The report of a release as an HTML page for a privacy officer.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::store::releases::StoredRelease;

use super::html;

/// Fields that the page shows in sections of their own.
const SHOWN_ELSEWHERE: [&str; 6] = [
    "ncp_by_column",
    "information_remain_by_column",
    "group_sizes",
    "worst",
    "query_error",
    "item_loss_by_column",
];

/// The report as a page.
pub(crate) fn page(release: &StoredRelease, report: &Value) -> Response {
    let id = release.id.to_string();
    let name = release.name.as_deref().unwrap_or(&id);
    let content = html! {
        p {
            "This page shows which protection was requested, what an independent check of the "
            "released table found, how much utility the table has kept, and which risk remains. "
            "It shows no record."
        }
        (facts(release))

        h2 { "What was asked" }
        p { "The privacy model and its parameters." }
        (values(&release.privacy, |_| ""))
        (pre_generalization(&report["pre_generalization"]))

        h2 { "What was found" }
        (verdict(&release.verification))
        (values(&release.verification, verification_field))
        (warnings(&report["warnings"]))

        h2 { "Utility" }
        p { "How much utility the table has kept; docs/methods.md defines each number." }
        (values(&report["utility"], utility_field))

        h2 { "Risk" }
        p { "Of an adversary who knows every quasi-identifier of a patient." }
        (values(&report["risk"], risk_field))

        h2 { "Loss by column" }
        p { "Normalized certainty penalty of each quasi-identifier, 0 to 1." }
        (losses(&report["utility"]["ncp_by_column"]))

        (holder_only(&report["utility"]))

        h2 { "Group sizes" }
        p { "Records in groups of each size: small groups protect least." }
        (group_sizes(&report["utility"]["group_sizes"]))
    };
    html::page(&format!("Release {name}"), &content)
}

fn verification_field(name: &str) -> &'static str {
    match name {
        "holds" => "whether the table meets the privacy model",
        "rows" => "records in the released table",
        "groups" => "groups of records that are equal in all quasi-identifiers",
        "smallest_group" => "fewest records that share what an adversary may know",
        "smallest_equivalence_class" => "fewest records that are equal in all quasi-identifiers",
        "greatest_confidence" => {
            "greatest share of one value of a declared sensitive column, bounded or not"
        }
        "greatest_bounded_confidence" => "greatest share of a value that the model bounds by C",
        "missing_sensitive" => {
            "excluded: shares are among the records that have a value; counted: among all"
        }
        "subsets" => "sets of quasi-identifiers that were checked",
        "violations" => "combinations of values, or groups, that break the model",
        "diversity" => "diversity of the least diverse group, in the model's own measure",
        _ => "",
    }
}

fn utility_field(name: &str) -> &'static str {
    match name {
        "dr" => "discernibility ratio, 0 to 1, lower is better",
        "discernibility" => "sum of the squared sizes of the groups",
        "ncp" => "normalized certainty penalty, 0 (nothing lost) to 1 (all lost)",
        "information_remain" => "1 - ncp, higher is better",
        "groups" => "groups of records that are equal in all quasi-identifiers",
        "smallest_group" => "records of the smallest group, over all quasi-identifiers",
        "smallest_known_group" => "fewest records that share what an adversary may know",
        "average_group" => "average number of records of a group",
        "average_group_per_record" => "average number of records in the group of a record",
        "greatest_confidence" => {
            "greatest share of one value of a declared sensitive column, bounded or not"
        }
        "classification_error" => "share of records that a classifier gets wrong",
        _ => "",
    }
}

fn query_field(name: &str) -> &'static str {
    match name {
        "queries" => "number of random counting queries",
        "all" => "relative error over all queries",
        "below_one_percent" => "relative error of queries that count fewer than 1 % of the records",
        "from_one_percent" => "relative error of the other queries",
        "queries_from_one_percent" => "number of the other queries",
        _ => "",
    }
}

/// What is computed from the raw rows; a recipient's report has nothing of it.
fn holder_only(utility: &Value) -> Markup {
    let (queries, items) = (&utility["query_error"], &utility["item_loss_by_column"]);
    html! {
        @if queries.is_object() || items.is_object() {
            h2 { "For the holder alone" }
            p {
                "Computed from the raw rows and rounded to two significant digits. Recipients do "
                "not receive these numbers."
            }
        }
        @if queries.is_object() {
            p { "Error of random counting queries." }
            (values(queries, query_field))
        }
        @if items.is_object() {
            p { "Loss of the items of sets, hidden items included, 0 to 1." }
            (losses(items))
        }
    }
}

fn risk_field(name: &str) -> &'static str {
    match name {
        "highest" => "highest probability of finding the patient's record",
        "average" => "average of this probability over the records",
        "records_at_highest" => "records at the highest risk",
        "greatest_confidence_per_subject" => {
            "greatest share of one sensitive value among the persons of a group; for the holder \
             alone, rounded"
        }
        _ => "",
    }
}

/// What the holder and the recipients should know.
fn warnings(warnings: &Value) -> Markup {
    let details = || {
        let warnings = warnings.as_array().into_iter().flatten();
        warnings.filter_map(|warning| warning["detail"].as_str())
    };
    html! {
        @if details().next().is_some() {
            h2 { "Warnings" }
            ul {
                @for detail in details() { li { (detail) } }
            }
        }
    }
}

/// The columns that were generalized before the search, with the levels of their trees.
fn pre_generalization(columns: &Value) -> Markup {
    html! {
        @if let Some(columns) = columns.as_object() {
            p { "Generalized before the search, to levels of each column's tree." }
            table {
                @for (column, levels) in columns {
                    tr { th { (column) } td { (levels_text(levels)) } }
                }
            }
        }
    }
}

fn levels_text(levels: &Value) -> String {
    let mut text = format!("level {}", levels["level"].as_u64().unwrap_or(0));
    for (level, values) in levels["values"].as_object().into_iter().flatten() {
        let values: Vec<&str> = values
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        text += &format!("; {} at level {level}", values.join(", "));
    }
    text
}

fn facts(release: &StoredRelease) -> Markup {
    let step = release.step.map_or("-".to_owned(), |step| step.to_string());
    html! {
        table {
            tr { th { "Release" } td { (release.id) } }
            tr { th { "Job" } td { (release.job) } }
            tr { th { "Dataset" } td { (release.dataset) } }
            tr { th { "Made at" } td { (release.created_at) } }
            tr { th { "After step" } td { (step) } }
            tr { th { "Records released" } td { (release.rows) } }
            tr { th { "Records suppressed" } td { (release.suppressed_rows) } }
            @for table in release.tables.as_array().into_iter().flatten() {
                tr {
                    th { "Table " (shown(&table["name"])) }
                    td {
                        (shown(&table["rows"])) " rows, SHA-256 "
                        code { (shown(&table["sha256"])) }
                    }
                }
            }
        }
    }
}

fn verdict(verification: &Value) -> Markup {
    html! {
        @match verification["holds"].as_bool() {
            Some(true) => {
                p class="yes" { strong { "The table meets the privacy model." } }
            }
            Some(false) => {
                p class="no" { strong { "The table does not meet the privacy model." } }
            }
            None => {}
        }
    }
}

/// The fields of an object, one in each row, without those of [`SHOWN_ELSEWHERE`].
fn values(object: &Value, meaning: impl Fn(&str) -> &'static str) -> Markup {
    let fields = object.as_object().into_iter().flatten();
    let fields = fields
        .filter(|(name, value)| !value.is_null() && !SHOWN_ELSEWHERE.contains(&name.as_str()));
    html! {
        table {
            @for (name, value) in fields {
                tr {
                    th { code { (name) } br; small { (meaning(name)) } }
                    td class="n" { (shown(value)) }
                }
            }
        }
    }
}

fn losses(by_column: &Value) -> Markup {
    html! {
        table {
            @for (column, loss) in by_column.as_object().into_iter().flatten() {
                (bar(column, &shown(loss), loss.as_f64().unwrap_or(0.0)))
            }
        }
    }
}

fn group_sizes(buckets: &Value) -> Markup {
    let buckets = || buckets.as_array().into_iter().flatten();
    let rows = |bucket: &Value| bucket["rows"].as_f64().unwrap_or(0.0);
    let most = buckets().map(rows).fold(1.0, f64::max);
    html! {
        table {
            @for bucket in buckets() {
                (bar(&size_text(bucket), &count_text(bucket), rows(bucket) / most))
            }
        }
    }
}

fn size_text(bucket: &Value) -> String {
    let (from, to) = (shown(&bucket["from"]), shown(&bucket["to"]));
    match from == to {
        true => from,
        false => format!("{from} to {to}"),
    }
}

fn count_text(bucket: &Value) -> String {
    format!(
        "{} records in {} groups",
        shown(&bucket["rows"]),
        shown(&bucket["groups"])
    )
}

/// A row with a name, a bar for `share` (0 to 1), and a value.
fn bar(name: &str, value: &str, share: f64) -> Markup {
    let width = format!("width:{:.1}%", share.clamp(0.0, 1.0) * 100.0);
    html! {
        tr {
            th { (name) }
            td class="b" { span style=(width) {} }
            td class="n" { (value) }
        }
    }
}

/// A value as text for people.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => rounded(float),
            _ => number.to_string(),
        },
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields: Vec<String> = fields
                .map(|(name, value)| format!("{name}: {}", shown(value)))
                .collect();
            fields.join("; ")
        }
    }
}

/// A number with at most six decimals, which is more than the precision of any of the measures.
fn rounded(number: f64) -> String {
    let text = format!("{number:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "0" if number > 0.0 => format!("{number:.1e}"),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::shown;

    #[test]
    fn values_are_shown_as_text_for_people() {
        assert_eq!(shown(&json!(0.5)), "0.5");
        assert_eq!(shown(&json!(1.0)), "1");
        assert_eq!(shown(&json!(0.00000004)), "4.0e-8");
        assert_eq!(shown(&json!(12)), "12");
        assert_eq!(shown(&json!({"Surgery": ["a", "b"]})), "Surgery: a, b");
    }
}
