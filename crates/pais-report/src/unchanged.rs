//! What the columns that are released unchanged say about the records by themselves.

use maud::{Markup, html};
use serde_json::Value;

use crate::input::ReportPage;
use crate::words::{list, percent, plain, texts};

/// Maximum number of columns that are listed with their own share.
const LISTED: usize = 10;

/// The sentence next to the verdict; `None` if no column is released unchanged.
pub(crate) fn sentence(page: &ReportPage) -> Option<String> {
    let unchanged = &page.risk()["unchanged"];
    let columns = texts(&unchanged["columns"]);
    if columns.is_empty() {
        return None;
    }
    let found = unchanged["singled_out_share"].as_f64()?;
    let (which, all) = match columns.as_slice() {
        [one] => (format!("{one}, which is"), "it"),
        [_, _] | [_, _, _] => (format!("{}, which are", list(&columns)), "all of them"),
        all => (
            format!("values in the {} columns that are", all.len()),
            "all of them",
        ),
    };
    let assumption = format!(
        "The privacy model assumes that nobody knows a patient's {which} released unchanged."
    );
    let (one, many) = page.unit();
    if found == 0.0 {
        return Some(format!(
            "{assumption} Somebody who does finds no {one} by that: each has the same values in {all} as \
             another one."
        ));
    }
    let telling = texts(&unchanged["most_telling"]["columns"]);
    let by_telling = unchanged["most_telling"]["singled_out_share"].as_f64();
    let suffice = by_telling.filter(|_| telling.len() < columns.len());
    let suffice =
        suffice.map(|share| format!("; {} suffice for {}", list(&telling), percent(share)));
    Some(format!(
        "{assumption} Somebody who does finds {} of the {many}: no other {one} has the same values in {all}{}.",
        percent(found),
        suffice.unwrap_or_default()
    ))
}

/// The part of the section on risk.
pub(crate) fn section(page: &ReportPage) -> Markup {
    let unchanged = &page.risk()["unchanged"];
    let Some(sentence) = sentence(page) else {
        return html! {};
    };
    let reasons = page.report["acknowledged_unchanged"].as_object();
    let by_column = by_column(unchanged);
    html! {
        h3 { "What is released unchanged" }
        p { (sentence) }
        @if !by_column.is_empty() {
            p { "By itself, a value is of one " (page.unit().0) " only: " (list(&by_column)) "." }
        }
        @for (column, reason) in reasons.into_iter().flatten() {
            p.warn { (column) " may be a key of the " (page.unit().1) ", and is released for this reason: " (plain(reason)) }
        }
    }
}

/// The columns that single out records or patients alone, with their shares, greatest first.
fn by_column(unchanged: &Value) -> Vec<String> {
    let shares = unchanged["by_column"].as_object().into_iter().flatten();
    let shares = shares.filter_map(|(column, share)| Some((column, share.as_f64()?)));
    let mut shares: Vec<_> = shares.filter(|(_, share)| *share > 0.0).collect();
    shares.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let left_out = shares.len().saturating_sub(LISTED);
    let listed = shares.iter().take(LISTED);
    let mut texts: Vec<String> = listed
        .map(|(column, share)| format!("{column} ({})", percent(*share)))
        .collect();
    if left_out > 0 {
        texts.push(format!("{left_out} more columns"));
    }
    texts
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{by_column, sentence};
    use crate::input::ReportPage;

    fn page(unchanged: Value) -> ReportPage {
        ReportPage {
            report: json!({ "risk": { "unchanged": unchanged } }),
            ..ReportPage::default()
        }
    }

    #[test]
    fn the_sentence_names_the_columns_and_those_that_suffice() {
        let all = ["a", "b", "c", "d"];
        let four = json!({"columns": all, "singled_out_share": 0.95,
            "most_telling": {"columns": ["c", "a", "d"], "singled_out_share": 0.9}});
        assert_eq!(
            sentence(&page(four)).unwrap(),
            "The privacy model assumes that nobody knows a patient's values in the 4 columns that are \
             released unchanged. Somebody who does finds 95 % of the records: no other record has the \
             same values in all of them; c, a and d suffice for 90 %."
        );
        let one = json!({"columns": ["a"], "singled_out_share": 0.0,
            "most_telling": {"columns": ["a"], "singled_out_share": 0.0}});
        assert_eq!(
            sentence(&page(one)).unwrap(),
            "The privacy model assumes that nobody knows a patient's a, which is released unchanged. \
             Somebody who does finds no record by that: each has the same values in it as another one."
        );
        for none in [
            json!(null),
            json!({"columns": [], "singled_out_share": 0.0}),
        ] {
            assert_eq!(sentence(&page(none)), None);
        }
    }

    #[test]
    fn columns_that_single_out_records_are_listed_by_their_share() {
        let shares = json!({"by_column": {"a": 0.0, "b": 0.1, "c": 0.5}});
        assert_eq!(by_column(&shares), ["c (50 %)", "b (10 %)"]);
        let many: serde_json::Map<_, _> = (0..12)
            .map(|column| (column.to_string(), json!(0.5)))
            .collect();
        let listed = by_column(&json!({ "by_column": many }));
        assert_eq!((listed.len(), listed[10].as_str()), (11, "2 more columns"));
    }
}
