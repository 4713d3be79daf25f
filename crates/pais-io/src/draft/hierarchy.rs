//! Which hierarchy is made for a column. All proposals of hierarchies are made here.

use pais_core::definition::{ColumnKind, ColumnRole, GeneratedHierarchy};

use super::names::NameMeaning;
use super::observed::Observed;
use super::role::{is_icd, is_postal};

/// Characters of the levels of ICD: the category, and the chapter.
const ICD_LENGTHS: [u32; 2] = [3, 1];

/// Fewest labels that have an order.
const LEAST_LABELS: usize = 3;

/// Labels with an order. Labels of one rank mean the same.
const SCALES: [&[&[&str]]; 11] = [
    &[
        &["very low", "sehr niedrig"],
        &["low", "niedrig"],
        &[
            "medium", "moderate", "normal", "average", "mittel", "middle",
        ],
        &["high", "hoch"],
        &["very high", "sehr hoch"],
    ],
    &[
        &["none", "no", "absent", "keine"],
        &["minimal", "trace"],
        &["mild", "slight", "leicht"],
        &["moderate", "medium", "mittel"],
        &["severe", "strong", "schwer"],
        &["very severe", "critical", "extreme"],
    ],
    &[
        &["never", "nie"],
        &["rarely", "seldom", "selten"],
        &["sometimes", "occasionally", "manchmal"],
        &["often", "frequently", "oft"],
        &["always", "immer"],
    ],
    &[
        &["tiny"],
        &["small", "klein"],
        &["medium", "mittel"],
        &["large", "big", "gross"],
        &["huge"],
    ],
    &[&["xs"], &["s"], &["m"], &["l"], &["xl"], &["xxl"]],
    &[&["i"], &["ii"], &["iii"], &["iv"], &["v"]],
    &[
        &["stage 0"],
        &["stage i"],
        &["stage ii"],
        &["stage iii"],
        &["stage iv"],
    ],
    &[
        &["stage 0"],
        &["stage 1"],
        &["stage 2"],
        &["stage 3"],
        &["stage 4"],
        &["stage 5"],
    ],
    &[
        &["very poor"],
        &["poor", "bad"],
        &["fair"],
        &["good"],
        &["very good"],
        &["excellent"],
    ],
    &[&["underweight"], &["normal"], &["overweight"], &["obese"]],
    &[
        &["strongly disagree"],
        &["disagree"],
        &["neutral", "undecided"],
        &["agree"],
        &["strongly agree"],
    ],
];

/// Proposes the hierarchy of a column, and adds a reason. `is_whole` says whether all rows of the
/// file were read: labels of later rows would not be in a list.
pub(super) fn propose(
    column: &Observed,
    name: NameMeaning,
    (kind, role): (ColumnKind, ColumnRole),
    is_whole: bool,
    reasons: &mut Vec<String>,
) -> Option<GeneratedHierarchy> {
    let is_known = role == ColumnRole::QuasiIdentifier && column.rows > 0;
    let (hierarchy, reason) = match kind {
        ColumnKind::Date | ColumnKind::Datetime if is_known => (
            GeneratedHierarchy::Calendar { levels: None },
            "dates are generalized to periods of the calendar",
        ),
        ColumnKind::Categorical if is_known && is_postal(column, name) => (
            GeneratedHierarchy::Prefix { lengths: None },
            "postal codes are generalized to their beginning",
        ),
        ColumnKind::Categorical
            if matches!(role, ColumnRole::QuasiIdentifier | ColumnRole::Sensitive)
                && is_icd(column, name) =>
        {
            let lengths = Some(ICD_LENGTHS.to_vec());
            let reason = "codes of ICD have categories of three characters";
            (GeneratedHierarchy::Prefix { lengths }, reason)
        }
        ColumnKind::Categorical if is_known && is_whole => {
            let order = Some(ordered_labels(column)?);
            let hierarchy = GeneratedHierarchy::Ordered {
                order,
                fanout: None,
            };
            (hierarchy, "its labels have an order")
        }
        _ => return None,
    };
    reasons.push(reason.to_owned());
    Some(hierarchy)
}

/// The labels of a column in their order; `None` where they have none that is known.
fn ordered_labels(column: &Observed) -> Option<Vec<String>> {
    let labels: Vec<&str> = column.kept.as_ref()?.keys().map(AsRef::as_ref).collect();
    if labels.len() < LEAST_LABELS {
        return None;
    }
    let ranks = SCALES.iter().find_map(|scale| scale_ranks(scale, &labels));
    let mut ranked: Vec<(f64, &str)> = match ranks {
        Some(ranks) => ranks.into_iter().zip(labels).collect(),
        None => {
            let ranks: Option<Vec<f64>> = labels.iter().map(|label| lower_end(label)).collect();
            let is_band = |label: &&str| label.contains(['-', '\u{2013}', '<', '>', '+', '[']);
            if labels.iter().filter(|label| is_band(label)).count() < 2 {
                return None;
            }
            ranks?.into_iter().zip(labels).collect()
        }
    };
    ranked.sort_by(|one, other| one.0.total_cmp(&other.0));
    let has_ties = ranked.windows(2).any(|pair| pair[0].0 == pair[1].0);
    (!has_ties).then(|| {
        ranked
            .into_iter()
            .map(|(_, label)| label.to_owned())
            .collect()
    })
}

/// The ranks of labels in a scale; `None` where a label is not in it.
fn scale_ranks(scale: &[&[&str]], labels: &[&str]) -> Option<Vec<f64>> {
    let rank = |label: &&str| {
        let label = label.to_lowercase();
        let rank = scale
            .iter()
            .position(|same| same.contains(&label.as_str()))?;
        Some(rank as f64)
    };
    labels.iter().map(rank).collect()
}

/// The lower end of a band of numbers: `[70-80)`, `20-29`, `<18`, `65+`, `>8`; `None` for other
/// text.
fn lower_end(label: &str) -> Option<f64> {
    let text = label
        .trim_start_matches(['[', '(', ' '])
        .trim_end_matches([']', ')', ' ']);
    let number = |text: &str| pais_core::taxonomy::interval::number(text.trim());
    if let Some(end) = text.strip_prefix(['<', '\u{2264}']) {
        // Below the band that begins at this end.
        return number(end.trim_start_matches('=')).map(f64::next_down);
    }
    if let Some(end) = text.strip_prefix(['>', '\u{2265}']) {
        return number(end.trim_start_matches('=')).map(f64::next_up);
    }
    if let Some(end) = text.strip_suffix('+') {
        return number(end);
    }
    match text.split_once(['-', '\u{2013}']) {
        Some((low, high)) => number(low).filter(|low| number(high).is_some_and(|it| it >= *low)),
        None => number(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::propose;
    use crate::draft::names::NameMeaning;
    use crate::draft::observed::Observed;
    use pais_core::definition::{ColumnKind, ColumnRole};
    use pais_core::table::Column;

    fn observed(values: &[&str]) -> Observed {
        let mut column = Observed::new(None);
        column.add(&Column {
            dictionary: values.iter().map(|value| Box::from(*value)).collect(),
            codes: (0..values.len() as u32).collect(),
        });
        column.distinct = values.len() as u64;
        column
    }

    fn hierarchy(name: &str, kind: ColumnKind, role: ColumnRole, values: &[&str]) -> Value {
        let (column, name) = (observed(values), NameMeaning::of(name));
        let mut reasons = Vec::new();
        let found = propose(&column, name, (kind, role), true, &mut reasons);
        assert_eq!(reasons.len(), usize::from(found.is_some()));
        serde_json::to_value(found).unwrap()
    }

    const KNOWN: ColumnRole = ColumnRole::QuasiIdentifier;

    #[test]
    fn dates_postal_codes_and_codes_of_icd_get_their_hierarchies() {
        let label = ColumnKind::Categorical;
        let calendar = json!({"generate": "calendar"});
        assert_eq!(
            hierarchy("dob", ColumnKind::Date, KNOWN, &["1987-09-03"]),
            calendar
        );
        let prefix = json!({"generate": "prefix"});
        assert_eq!(hierarchy("zip", label, KNOWN, &["91911", "92614"]), prefix);
        let icd = json!({"generate": "prefix", "lengths": [3, 1]});
        let codes = ["E11.9", "I10", "C50.1"];
        assert_eq!(hierarchy("code", label, KNOWN, &codes), icd);
        assert_eq!(hierarchy("code", label, ColumnRole::Sensitive, &codes), icd);
        assert_eq!(
            hierarchy("code", label, ColumnRole::Insensitive, &codes),
            Value::Null
        );
        assert_eq!(
            hierarchy("age", ColumnKind::Numeric, KNOWN, &["17", "90"]),
            Value::Null
        );
        assert_eq!(
            hierarchy("job", label, KNOWN, &["Mover", "Cook", "Lawyer"]),
            Value::Null
        );
    }

    #[test]
    fn labels_of_a_scale_and_bands_of_numbers_are_ordered() {
        for (values, order) in [
            (
                &["high", "low", "medium"][..],
                Some(&["low", "medium", "high"][..]),
            ),
            (
                &["Severe", "Mild", "None", "Moderate"],
                Some(&["None", "Mild", "Moderate", "Severe"]),
            ),
            (
                &["[70-80)", "[0-10)", "[10-20)"],
                Some(&["[0-10)", "[10-20)", "[70-80)"]),
            ),
            (&["65+", "<18", "18-64"], Some(&["<18", "18-64", "65+"])),
            (&["IV", "I", "II"], Some(&["I", "II", "IV"])),
            (&["low", "high"], None),
            (&["low", "high", "blue"], None),
            (&["medium", "moderate", "high"], None),
            (&["1-2-3", "a", "b"], None),
        ] {
            let found = hierarchy("level", ColumnKind::Categorical, KNOWN, values);
            let expected = order.map(|order| json!({"generate": "ordered", "order": order}));
            assert_eq!(found, expected.unwrap_or(Value::Null), "{values:?}");
        }
    }

    #[test]
    fn labels_are_not_listed_where_rows_were_not_read() {
        let column = observed(&["low", "medium", "high"]);
        let kind = (ColumnKind::Categorical, KNOWN);
        let name = NameMeaning::of("level");
        assert_eq!(propose(&column, name, kind, false, &mut Vec::new()), None);
    }
}
