//! Which hierarchy is made for a column. All proposals of hierarchies are made here.

use pais_core::definition::{ColumnKind, ColumnRole, GeneratedHierarchy};
use pais_core::name_meaning::NameMeaning;

use super::numbers::NumberRange;
use super::observed::Observed;
use super::role::{CodeSystem, icd, is_postal, is_year};

/// Years of the ranges of ages.
const AGES: [f64; 3] = [5.0, 10.0, 20.0];

/// Months of the ranges of ages that are counted in months.
const MONTHS: [f64; 3] = [60.0, 120.0, 240.0];

/// The highest possible age in years.
const OLDEST: f64 = 130.0;

/// Years of the ranges of years.
const YEARS: [f64; 2] = [5.0, 10.0];

/// Minimum number of labels that have an order.
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

/// The kind and the role that are proposed for a column.
#[derive(Clone, Copy)]
pub(super) struct KindAndRole {
    pub(super) kind: ColumnKind,
    pub(super) role: ColumnRole,
}

/// Proposes the hierarchy of a column, and adds a reason. `is_whole` says whether all rows of the
/// file were read: labels of later rows would not be in a list.
pub(super) fn propose(
    column: &Observed,
    name: NameMeaning,
    proposed: KindAndRole,
    range: Option<NumberRange>,
    is_whole: bool,
    reasons: &mut Vec<String>,
) -> Option<GeneratedHierarchy> {
    let KindAndRole { kind, role } = proposed;
    let is_known = role == ColumnRole::QuasiIdentifier && column.rows > 0;
    let is_listed = matches!(role, ColumnRole::QuasiIdentifier | ColumnRole::Sensitive);
    let system = icd(column, name).filter(|_| is_listed);
    let (hierarchy, reason) = match (kind, system) {
        (ColumnKind::Categorical, Some(system)) => codes_of(system),
        _ if !is_known => return None,
        (kind, _) => made(column, name, kind, range, is_whole)?,
    };
    reasons.push(reason.to_owned());
    Some(hierarchy)
}

/// The hierarchy of a column that other people know, and why.
fn made(
    column: &Observed,
    name: NameMeaning,
    kind: ColumnKind,
    range: Option<NumberRange>,
    is_whole: bool,
) -> Option<(GeneratedHierarchy, &'static str)> {
    let made = match kind {
        ColumnKind::Date | ColumnKind::Datetime => (
            GeneratedHierarchy::Calendar { levels: None },
            "dates are generalized to periods of the calendar",
        ),
        ColumnKind::Numeric => {
            let (widths, reason) = ranges(column, name, range)?;
            let (start, widths) = (None, Some(widths));
            let balance = false;
            let made = GeneratedHierarchy::Ranges {
                start,
                widths,
                balance,
            };
            (made, reason)
        }
        ColumnKind::Categorical if is_postal(column, name) => (
            GeneratedHierarchy::Prefix { lengths: None },
            "postal codes are generalized to their beginning",
        ),
        ColumnKind::Categorical if is_whole => {
            let order = Some(ordered_labels(column)?);
            let hierarchy = GeneratedHierarchy::Ordered {
                order,
                fanout: None,
                balance: false,
            };
            (hierarchy, "its labels have an order")
        }
        _ => return None,
    };
    Some(made)
}

/// The hierarchy of codes of diseases: categories have three characters, and chapters of ICD-10 one.
pub(super) fn codes_of(system: CodeSystem) -> (GeneratedHierarchy, &'static str) {
    let lengths = match system {
        CodeSystem::Icd10 => vec![3, 1],
        CodeSystem::Icd9 | CodeSystem::PlainIcd9 => vec![3],
    };
    let lengths = Some(lengths);
    let reason = "codes of ICD have categories of three characters";
    (GeneratedHierarchy::Prefix { lengths }, reason)
}

/// The widths of ranges of ages and years; `None` for other numbers.
fn ranges(
    column: &Observed,
    name: NameMeaning,
    range: Option<NumberRange>,
) -> Option<(Vec<f64>, &'static str)> {
    let greatest = range?.hi;
    if name.is_age {
        let widths = if greatest > OLDEST { MONTHS } else { AGES };
        return Some((widths.to_vec(), "ages are generalized to ranges"));
    }
    let is_year = is_year(column, range);
    is_year.then(|| (YEARS.to_vec(), "years are generalized to ranges"))
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

    use super::{KindAndRole, propose};
    use crate::draft::observed::Observed;
    use pais_core::definition::{ColumnKind, ColumnRole};
    use pais_core::name_meaning::NameMeaning;
    use pais_core::table::Column;

    fn observed(values: &[&str]) -> Observed {
        let mut column = Observed::new(None);
        column.add(&Column {
            dictionary: values.iter().map(|value| Box::from(*value)).collect(),
            codes: (0..values.len() as u32).collect(),
        });
        let distinct: std::collections::BTreeSet<_> = values.iter().collect();
        column.distinct = distinct.len() as u64;
        column
    }

    fn hierarchy(name: &str, kind: ColumnKind, role: ColumnRole, values: &[&str]) -> Value {
        let (column, name) = (observed(values), NameMeaning::of(name));
        let mut reasons = Vec::new();
        let range = column.range(0);
        let proposed = KindAndRole { kind, role };
        let found = propose(&column, name, proposed, range, true, &mut reasons);
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
        let number = ColumnKind::Numeric;
        let ranges = |widths: &[f64]| json!({"generate": "ranges", "widths": widths});
        let years = ranges(&[5.0, 10.0, 20.0]);
        assert_eq!(hierarchy("age", number, KNOWN, &["17", "90"]), years);
        let months = ranges(&[60.0, 120.0, 240.0]);
        assert_eq!(
            hierarchy("AgeMonths", number, KNOWN, &["17", "908"]),
            months
        );
        let years = ["1987", "1987", "1990", "1990", "1990"];
        assert_eq!(
            hierarchy("dxyr", number, KNOWN, &years),
            ranges(&[5.0, 10.0])
        );
        assert_eq!(
            hierarchy("height", number, KNOWN, &["172", "190"]),
            Value::Null
        );
        let plain = ["25000", "V4581", "4019"];
        let icd9 = json!({"generate": "prefix", "lengths": [3]});
        assert_eq!(hierarchy("dx", label, KNOWN, &plain), icd9);
        assert_eq!(
            hierarchy("CCS Diagnosis Code", label, KNOWN, &["2", "55", "218"]),
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
        let proposed = KindAndRole {
            kind: ColumnKind::Categorical,
            role: KNOWN,
        };
        let name = NameMeaning::of("level");
        assert_eq!(
            propose(&column, name, proposed, None, false, &mut Vec::new()),
            None
        );
    }
}
