//! The report of a release as a page that a privacy officer reads.

use axum::response::Response;
use serde_json::{Map, Value};

use super::html::{Page, escape};
use super::releases::ReleaseDocument;

/// The report as a page.
pub(super) fn page(release: &ReleaseDocument, report: &Value) -> Response {
    let id = release.id.to_string();
    let name = release.name.as_deref().unwrap_or(&id);
    let mut page = Page::new(&format!("Release {name}"));
    page.text(
        "This page tells which protection was asked for, what an independent check of the \
         released table found, what the table is still worth, and what risk remains. It shows no \
         record.",
    );
    released(&mut page, release);

    page.heading("What was asked");
    page.text("The privacy model and its parameters.");
    values(&mut page, &release.privacy, |_| "");

    wishes(&mut page, &report["pre_generalization"]);

    page.heading("What was found");
    verdict(&mut page, &release.verification);
    values(&mut page, &release.verification, |key| match key {
        "holds" => "whether the table meets what was asked",
        "rows" => "records in the released table",
        "groups" => "groups of records that are equal in all quasi-identifiers",
        "smallest_group" => "fewest records that share what an adversary may know",
        "greatest_confidence" => "how surely a sensitive value can be inferred, at most",
        "subsets" => "sets of quasi-identifiers that were checked",
        "violations" => "combinations of values, or groups, that break the model",
        "diversity" => "diversity of the group that has least of it, in the model's own measure",
        _ => "",
    });

    page.heading("Utility");
    page.text("What the table is still worth; docs/methods.md defines each number.");
    values(&mut page, &report["utility"], |key| match key {
        "dr" => "discernibility ratio, 0 to 1, lower is better",
        "discernibility" => "sum of the squared sizes of the groups",
        "ncp" => "normalized certainty penalty, 0 (nothing lost) to 1 (all lost)",
        "information_remain" => "1 - ncp, higher is better",
        "groups" => "groups of records that are equal in all quasi-identifiers",
        "smallest_group" => "records of the smallest group",
        "average_group" => "records of a group on average",
        "average_group_per_record" => "records in the group of a record, on average",
        "greatest_confidence" => "how surely a sensitive value can be inferred, at most",
        "classification_error" => "share of records a classifier gets wrong",
        "query_error" => "how far counting queries are off",
        _ => "",
    });

    page.heading("Risk");
    page.text("Of an adversary who knows every quasi-identifier of a patient.");
    values(&mut page, &report["risk"], |key| match key {
        "highest" => "chance to pick the patient's record, where it is greatest",
        "average" => "the same chance on average over the records",
        "records_at_highest" => "records at the highest risk",
        _ => "",
    });

    page.heading("Loss by column");
    page.text("Normalized certainty penalty of each quasi-identifier, 0 to 1.");
    losses(&mut page, &report["utility"]["ncp_by_column"]);

    page.heading("Group sizes");
    page.text("Records in groups of each size: small groups protect least.");
    sizes(&mut page, &report["utility"]["group_sizes"]);
    page.into_response()
}

/// What was generalized before anything else, column by column.
fn wishes(page: &mut Page, wishes: &Value) {
    let Some(wishes) = wishes.as_object() else {
        return;
    };
    page.text("Generalized before anything else, to levels of each column's tree.");
    page.line(format_args!("<table>"));
    for (column, wish) in wishes {
        let mut told = format!("level {}", wish["level"].as_u64().unwrap_or(0));
        for (level, values) in wish["values"].as_object().into_iter().flatten() {
            let values: Vec<&str> = values
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            told += &format!("; {} at level {level}", values.join(", "));
        }
        page.line(format_args!(
            "<tr><th>{}</th><td>{}</td></tr>",
            escape(column),
            escape(&told)
        ));
    }
    page.line(format_args!("</table>"));
}

fn released(page: &mut Page, release: &ReleaseDocument) {
    page.line(format_args!("<table>"));
    let rows = release.rows.to_string();
    let suppressed = release.suppressed_rows.to_string();
    let step = release.step.map_or("-".to_owned(), |step| step.to_string());
    let facts = [
        ("Release", release.id.to_string()),
        ("Job", release.job_id.to_string()),
        ("Dataset", release.dataset_id.to_string()),
        ("Made at", release.created_at.to_string()),
        ("After step", step),
        ("Records released", rows),
        ("Records suppressed", suppressed),
    ];
    for (name, value) in facts {
        page.line(format_args!(
            "<tr><th>{name}</th><td>{}</td></tr>",
            escape(&value)
        ));
    }
    for table in release.tables.as_array().into_iter().flatten() {
        page.line(format_args!(
            "<tr><th>Table {}</th><td>{} rows, SHA-256 <code>{}</code></td></tr>",
            escape(&shown(&table["name"])),
            escape(&shown(&table["rows"])),
            escape(&shown(&table["sha256"])),
        ));
    }
    page.line(format_args!("</table>"));
}

fn verdict(page: &mut Page, verification: &Value) {
    match verification["holds"].as_bool() {
        Some(true) => page.line(format_args!(
            "<p class=\"yes\"><strong>The table meets the privacy model.</strong></p>"
        )),
        Some(false) => page.line(format_args!(
            "<p class=\"no\"><strong>The table does not meet the privacy model.</strong></p>"
        )),
        None => {}
    }
}

/// The plain values of an object, one a row; what is nested stands elsewhere on the page, but for
/// lists and objects of plain values, which are written out.
fn values(page: &mut Page, object: &Value, meaning: impl Fn(&str) -> &'static str) {
    let empty = Map::new();
    page.line(format_args!("<table>"));
    for (key, value) in object.as_object().unwrap_or(&empty) {
        let elsewhere = ["ncp_by_column", "group_sizes", "worst"];
        if value.is_null() || elsewhere.contains(&key.as_str()) {
            continue;
        }
        page.line(format_args!(
            "<tr><th><code>{}</code><br><small>{}</small></th><td class=\"n\">{}</td></tr>",
            escape(key),
            escape(meaning(key)),
            escape(&shown(value)),
        ));
    }
    page.line(format_args!("</table>"));
}

fn losses(page: &mut Page, by_column: &Value) {
    let empty = Map::new();
    page.line(format_args!("<table>"));
    for (column, loss) in by_column.as_object().unwrap_or(&empty) {
        bar(page, column, &shown(loss), loss.as_f64().unwrap_or(0.0));
    }
    page.line(format_args!("</table>"));
}

fn sizes(page: &mut Page, buckets: &Value) {
    let empty = Vec::new();
    let buckets = buckets.as_array().unwrap_or(&empty);
    let rows = |bucket: &Value| bucket["rows"].as_f64().unwrap_or(0.0);
    let most = buckets.iter().map(rows).fold(1.0, f64::max);
    page.line(format_args!("<table>"));
    for bucket in buckets {
        let (from, to) = (shown(&bucket["from"]), shown(&bucket["to"]));
        let size = if from == to {
            from
        } else {
            format!("{from} to {to}")
        };
        let counted = format!(
            "{} records in {} groups",
            shown(&bucket["rows"]),
            shown(&bucket["groups"])
        );
        bar(page, &size, &counted, rows(bucket) / most);
    }
    page.line(format_args!("</table>"));
}

fn bar(page: &mut Page, name: &str, value: &str, share: f64) {
    page.line(format_args!(
        "<tr><th>{}</th><td class=\"b\"><span style=\"width:{:.1}%\"></span></td>\
         <td class=\"n\">{}</td></tr>",
        escape(name),
        share.clamp(0.0, 1.0) * 100.0,
        escape(value),
    ));
}

/// A value as people read it.
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

/// Six decimals are more than any of these numbers means.
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
    fn values_are_shown_as_people_read_them() {
        assert_eq!(shown(&json!(0.5)), "0.5");
        assert_eq!(shown(&json!(1.0)), "1");
        assert_eq!(shown(&json!(0.00000004)), "4.0e-8");
        assert_eq!(shown(&json!(12)), "12");
        assert_eq!(shown(&json!({"Surgery": ["a", "b"]})), "Surgery: a, b");
    }
}
