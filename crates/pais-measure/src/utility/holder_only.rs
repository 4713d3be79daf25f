//! The parts of a report that are only for the holder of the raw rows.
//!
//! A measure that needs raw rows can single out one of the raw tables that a release may come from. So
//! recipients do not receive it, and the holder receives it rounded.

use serde_json::Value;

/// The fields of a report that are computed from raw rows, and the holder's reasons, as JSON
/// pointers. All others follow from the release and from declared domains.
const HOLDER_ONLY: [&str; 14] = [
    "/utility/classification_error/be",
    "/utility/classification_error/ue",
    "/utility/classification_error/ce_minus_be",
    "/utility/classification_error/ue_minus_ce",
    "/utility/query_error",
    "/utility/item_loss_by_column",
    "/utility/items_by_column",
    "/utility/item_query_error",
    "/utility/entropy_loss_by_column",
    "/utility/frequency_survival_by_column",
    "/utility/association_survival",
    "/distributions",
    // Words of the holder, which may name persons.
    "/acknowledged_unchanged",
    "/risk/greatest_confidence_per_subject",
];

/// The fields that need to know which rows are of one person, where the dataset has a subject
/// column. Without one they follow from the release.
const HOLDER_ONLY_OF_SUBJECTS: [&str; 12] = [
    "/risk/share_above",
    "/risk/by_length",
    "/risk/by_length_exact",
    "/risk/lengths_left_out",
    "/risk/qid_sizes",
    "/risk/qid_confidences",
    "/risk/insensitive_singled_out",
    "/risk/unchanged",
    "/guidelines/opinion_05_2014/singling_out/unique_by_quasi_identifiers",
    "/guidelines/opinion_05_2014/singling_out/unique_share",
    "/guidelines/opinion_05_2014/singling_out/unique_by_all_columns",
    "/guidelines/opinion_05_2014/linkability/exact_links",
];

/// The fields that the holder's package does not have, since it may be passed on: counts of raw items, and
/// the holder's words.
const NOT_PACKED: [&str; 2] = ["/utility/items_by_column", "/acknowledged_unchanged"];

/// A report as its recipients see it: without the fields that are computed from raw rows.
///
/// ```
/// use serde_json::json;
///
/// let report = json!({"utility": {"dr": 0.25, "query_error": {"all": 0.13}}});
/// let shown = pais_measure::for_recipient(report);
/// assert_eq!(shown, json!({"utility": {"dr": 0.25}}));
/// ```
pub fn for_recipient(mut report: Value) -> Value {
    let of_subjects = report.get("subjects").is_some_and(|it| !it.is_null());
    let of_subjects = HOLDER_ONLY_OF_SUBJECTS.iter().filter(|_| of_subjects);
    remove(&mut report, HOLDER_ONLY.iter().chain(of_subjects));
    // Of the figures of a sample, a recipient sees only the error of classifiers.
    if report
        .pointer("/utility/classification_error")
        .is_none_or(Value::is_null)
    {
        remove(&mut report, &["/utility/sampled_rows"]);
    }
    report
}

/// A report as it is in a package. The warning about identifiers that repeat counts raw rows.
pub fn for_package(mut report: Value) -> Value {
    remove(&mut report, &NOT_PACKED);
    if let Some(warnings) = report.get_mut("warnings").and_then(Value::as_array_mut) {
        warnings.retain(|warning| warning["code"] != "repeated_identifier");
    }
    report
}

fn remove<'a>(report: &mut Value, pointers: impl IntoIterator<Item = &'a &'static str>) {
    for pointer in pointers {
        let parent = pointer.rsplit_once('/');
        let object = parent.and_then(|(parent, _)| report.pointer_mut(parent)?.as_object_mut());
        if let (Some(object), Some((_, field))) = (object, parent) {
            object.remove(field);
        }
    }
}

/// A measure of raw rows with two significant digits.
pub(crate) fn rounded(number: f64) -> f64 {
    format!("{number:.1e}").parse().unwrap_or(number)
}

/// A count of raw rows with two significant digits.
pub(crate) fn rounded_count(count: u64) -> u64 {
    let digits = count.checked_ilog10().unwrap_or(0);
    let unit = 10u64.pow(digits.saturating_sub(1));
    // The greatest counts are rounded down where the next multiple is beyond 64 bits.
    let up = (count + unit / 2).checked_div(unit).unwrap_or(count);
    up.checked_mul(unit).unwrap_or(count / unit * unit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{for_package, for_recipient, rounded, rounded_count};

    #[test]
    fn two_significant_digits_remain() {
        for (number, expected) in [
            (0.123456, 0.12),
            (0.0, 0.0),
            (3.0 / 11.0, 0.27),
            (0.36, 0.36),
            (1234.5, 1200.0),
            (0.999, 1.0),
        ] {
            assert_eq!(rounded(number), expected, "{number}");
        }
        for (count, expected) in [(0, 0), (7, 7), (42, 42), (8_800, 8_800), (4_372, 4_400)] {
            assert_eq!(rounded_count(count), expected, "{count}");
        }
    }

    #[test]
    fn a_package_has_no_counts_of_raw_items_and_no_words_of_the_holder() {
        let utility = json!({"dr": 1.0, "items_by_column": {"x": {"kept": 3}}});
        let report = json!({"utility": utility, "acknowledged_unchanged": {"cost": "asked for"}});
        assert_eq!(for_package(report), json!({"utility": {"dr": 1.0}}));
        let other = json!({"code": "column_at_top"});
        let report = json!({"warnings": [{"code": "repeated_identifier"}, other]});
        assert_eq!(for_package(report), json!({"warnings": [other]}));
    }

    #[test]
    fn a_recipient_sees_the_size_of_a_sample_with_a_figure_of_it_alone() {
        let report =
            |figure: &str| json!({"utility": {"sampled_rows": 100_000, figure: {"ce": 0.2}}});
        let shown = report("classification_error");
        assert_eq!(for_recipient(shown.clone()), shown);
        assert_eq!(for_recipient(report("query_error")), json!({"utility": {}}));
        let null = json!({"utility": {"sampled_rows": 100_000, "classification_error": null}});
        let expected = json!({"utility": {"classification_error": null}});
        assert_eq!(for_recipient(null), expected);
    }

    #[test]
    fn a_report_without_holder_only_fields_is_unchanged() {
        for report in [json!({"utility": {"dr": 1.0}}), json!({}), json!(null)] {
            assert_eq!(for_recipient(report.clone()), report);
        }
    }
}
