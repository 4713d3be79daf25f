//! Random tables of overlapping labels, compared with every raw qid of at most L values.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::decide_overlaps;
use crate::tests::columns;
use crate::{VerifyError, by_groups, verify_model};
use pais_core::cancellation::Cancellation;
use pais_core::definition::{ColumnRole, DatasetDefinition};
use pais_core::model::{Confidence, Lkc, MinimumAnonymity, MissingSensitive};
use pais_core::schema::Schema;
use pais_core::table::{Column, Form, NULL_CODE, ReleasedColumn, ReleasedTable};

/// Labels of a taxonomy, of numbers and of a column without a taxonomy.
const LABELS: [&[&str]; 3] = [
    &["t0", "t1", "t2", "low", "any", "?"],
    &["0", "[0,5]", "[3,8)", "[5,9]", "7", "[0,10]", "?"],
    &["f0", "f1", "*", "?"],
];

/// Raw values; `?` is a missing cell. Each number between two ends is one of them, and a column
/// without a taxonomy may have had a value that no label names.
const RAW: [&[&str]; 3] = [
    &["t0", "t1", "t2", "?"],
    &[
        "0", "1", "3", "4", "5", "6", "7", "7.5", "8", "8.5", "9", "9.5", "10", "?",
    ],
    &["f0", "f1", "f9", "?"],
];

fn schema() -> Schema {
    let definition: DatasetDefinition = serde_json::from_value(json!({"name": "a", "columns": [
        {"name": "t", "role": "quasi_identifier", "taxonomy": {"label": "any", "children": [
            {"label": "low", "children": [{"label": "t0"}, {"label": "t1"}]}, {"label": "t2"}]}},
        {"name": "n", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 10]},
        {"name": "f", "role": "quasi_identifier"},
        {"name": "s", "role": "sensitive"},
    ]}))
    .unwrap();
    Schema::inline(&definition).unwrap()
}

/// Whether a label covers a raw value, from their texts alone.
fn covers(column: usize, label: &str, raw: &str) -> bool {
    match (column, label) {
        (0, "any") | (2, "*") | (1, "[0,10]") => true,
        (0, "low") => raw == "t0" || raw == "t1",
        (1, _) if raw != "?" && label.starts_with('[') => {
            let value: f64 = raw.parse().unwrap();
            let inner = label.trim_matches(['[', ']', ')']);
            let (lo, hi) = inner.split_once(',').unwrap();
            let (lo, hi): (f64, f64) = (lo.parse().unwrap(), hi.parse().unwrap());
            lo <= value && (value < hi || (value == hi && label.ends_with(']')))
        }
        _ => label == raw,
    }
}

fn table(rows: &[([usize; 3], usize)]) -> ReleasedTable {
    let column = |name: &str, texts: &[&str], codes: Vec<u32>, form| ReleasedColumn {
        name: name.into(),
        form,
        column: Column {
            dictionary: texts.iter().map(|&text| text.into()).collect(),
            codes,
        },
        missing: vec!["".into()],
    };
    let labels = |index: usize| rows.iter().map(|(row, _)| row[index] as u32).collect();
    let mut columns: Vec<_> = (0..3)
        .map(|index| {
            column(
                ["t", "n", "f"][index],
                LABELS[index],
                labels(index),
                Form::Generalized,
            )
        })
        .collect();
    let sensitive = rows.iter().map(|&(_, value)| match value {
        3 => NULL_CODE,
        value => value as u32,
    });
    columns.push(column(
        "s",
        &["a", "b", "c"],
        sensitive.collect(),
        Form::Text,
    ));
    ReleasedTable {
        name: "data".into(),
        rows: rows.len(),
        columns,
    }
}

/// Whether each raw qid of at most `l` values meets the model; the fewest records that one matches
/// and the greatest confidence.
fn brute_force(rows: &[([usize; 3], usize)], model: &Lkc, l: usize) -> (bool, u64, f64) {
    let (mut holds, mut smallest, mut greatest) = (true, rows.len() as u64, 0.0f64);
    for_each_qid(rows, model, l, |_, _, figures| {
        holds &= figures.meets;
        smallest = smallest.min(figures.size);
        greatest = greatest.max(figures.confidence);
    });
    (holds, smallest, greatest)
}

/// By combination of labels that violates and has a violating raw qid, of the greatest number of columns
/// that has any, the fewest records that one of these matches, or K. Columns with one label are left
/// out.
fn violating_labels(
    rows: &[([usize; 3], usize)],
    model: &Lkc,
    l: usize,
) -> BTreeMap<Vec<(&'static str, &'static str)>, u64> {
    let mut found: BTreeMap<Vec<(&str, &str)>, u64> = BTreeMap::new();
    let varies = |&column: &usize| rows.iter().any(|row| row.0[column] != rows[0].0[column]);
    for_each_qid(rows, model, l, |known, qid, figures| {
        if figures.meets || !known.iter().all(varies) {
            return;
        }
        for (row, _) in rows {
            let labels = known.iter().map(|&column| LABELS[column][row[column]]);
            let mut pairs = labels.clone().zip(known).zip(qid);
            let equal = rows.iter().filter(|(other, _)| {
                let mut known = known.iter();
                known.all(|&column| other[column] == row[column])
            });
            let equal: Vec<usize> = equal.map(|row| row.1).collect();
            if !QidFigures::new(&equal, model).meets
                && pairs.all(|((label, &column), raw)| covers(column, label, raw))
            {
                let names = known.iter().map(|&column| ["t", "n", "f"][column]);
                let size = figures.size.min(model.k.get());
                let least = found.entry(names.zip(labels).collect()).or_insert(size);
                *least = size.min(*least);
            }
        }
    });
    let longest = found.keys().map(Vec::len).max();
    found.retain(|labels, _| Some(labels.len()) == longest);
    found
}

/// What a raw qid matches.
struct QidFigures {
    meets: bool,
    size: u64,
    confidence: f64,
}

impl QidFigures {
    /// Of the sensitive values that are matched.
    fn new(matching: &[usize], model: &Lkc) -> Self {
        let mut figures = Self {
            meets: matching.len() as u64 >= model.k.get(),
            size: matching.len() as u64,
            confidence: 0.0,
        };
        let of = match model.missing_sensitive {
            MissingSensitive::Excluded => matching.iter().filter(|&&it| it != 3).count(),
            MissingSensitive::Counted => matching.len(),
        };
        for value in 0..2 {
            let holding = matching.iter().filter(|&&it| it == value).count();
            figures.meets &= !model.c.is_exceeded_by(holding as u64, of as u64);
            if holding > 0 {
                figures.confidence = figures.confidence.max(holding as f64 / of as f64);
            }
        }
        figures
    }
}

/// The raw qids of at most `l` values that match a record.
fn for_each_qid(
    rows: &[([usize; 3], usize)],
    model: &Lkc,
    l: usize,
    mut visit: impl FnMut(&[usize], &[&str], QidFigures),
) {
    for columns in 0u32..8 {
        let known: Vec<usize> = (0..3).filter(|column| columns & 1 << column != 0).collect();
        if known.len() > l {
            continue;
        }
        let mut qids: Vec<Vec<&str>> = vec![Vec::new()];
        for &column in &known {
            qids = qids
                .into_iter()
                .flat_map(|qid| {
                    RAW[column]
                        .iter()
                        .map(move |&raw| [qid.clone(), vec![raw]].concat())
                })
                .collect();
        }
        for qid in qids {
            let matches = |row: &&([usize; 3], usize)| {
                let mut pairs = known.iter().zip(&qid);
                pairs.all(|(&column, raw)| covers(column, LABELS[column][row.0[column]], raw))
            };
            let matching: Vec<usize> = rows.iter().filter(matches).map(|row| row.1).collect();
            if matching.is_empty() {
                continue;
            }
            let figures = QidFigures::new(&matching, model);
            visit(&known, &qid, figures);
        }
    }
}

fn rows() -> impl Strategy<Value = Vec<([usize; 3], usize)>> {
    // Few distinct rows, each several times: otherwise hardly any table holds.
    let row = (
        [0usize..6, 0usize..7, 0usize..4],
        prop::collection::vec(0usize..4, 1..6),
    );
    prop::collection::vec(row, 1..7).prop_map(|rows| {
        let copies = |(labels, values): ([usize; 3], Vec<usize>)| {
            values.into_iter().map(move |value| (labels, value))
        };
        rows.into_iter().flat_map(copies).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_table_holds_where_every_raw_qid_does(
        rows in rows(),
        l in 1u32..4,
        k in 1u64..7,
        c in prop::sample::select(vec![0.3, 0.5, 0.6, 0.8, 1.0]),
        counted in any::<bool>(),
    ) {
        let model = Lkc {
            l: std::num::NonZeroU32::new(l),
            k: MinimumAnonymity::new(k).unwrap(),
            c: Confidence::new(c).unwrap(),
            sensitive_values: Some([("s".to_owned(), vec!["a".to_owned(), "b".to_owned()])].into()),
            missing_sensitive: if counted { MissingSensitive::Counted } else { MissingSensitive::Excluded },
        };
        let schema = schema();
        let table = table(&rows);
        let cancellation = Cancellation::new();
        let decided = decide_overlaps(&table, &schema, &model, &cancellation).unwrap();
        let found = decided.found;
        let (holds, smallest, greatest) = brute_force(&rows, &model, l as usize);
        let violating = violating_labels(&rows, &model, l as usize);
        prop_assert_eq!(decided.violations.count, violating.len() as u64);
        prop_assert_eq!(decided.violations.worst.len(), violating.len().min(10));
        for worst in &decided.violations.worst {
            let known = worst.quasi_identifiers.iter();
            let known: Vec<_> = known.map(|it| (&*it.column, it.value.as_deref().unwrap())).collect();
            prop_assert_eq!(Some(&worst.size.min(k)), violating.get(&known), "{:?}", worst);
        }
        prop_assert!(decided.violations.worst.is_sorted_by_key(|it| it.size.min(k)));
        prop_assert_eq!(found.holds, holds);
        prop_assert!(found.smallest_group <= smallest);
        if c < 1.0 {
            prop_assert!(found.greatest_bounded_confidence >= greatest - 1e-12);
        }
        // What holds in every group holds for every qid.
        let names = schema.names(ColumnRole::QuasiIdentifier);
        let sensitive = schema.names(ColumnRole::Sensitive);
        let model = by_groups(&model.into());
        let counted = (&table).into();
        let (local, _) = verify_model(counted, columns(&names, &sensitive), &model, &cancellation).unwrap();
        prop_assert!(!local.holds() || holds);
        prop_assert!(local.smallest_group() <= smallest);
    }
}

/// Two thirds of the records have the value, but every value of the column matches half of each.
#[test]
fn a_shorter_qid_may_violate_where_no_longer_one_does() {
    let rows = [([0, 4, 0], 0), ([0, 4, 1], 0), ([0, 4, 2], 1)];
    let model = Lkc {
        l: None,
        k: MinimumAnonymity::MIN,
        c: Confidence::new(0.6).unwrap(),
        sensitive_values: Some([("s".to_owned(), vec!["a".to_owned()])].into()),
        missing_sensitive: MissingSensitive::Excluded,
    };
    let decided = decide_overlaps(&table(&rows), &schema(), &model, &Cancellation::new());
    assert!(!decided.unwrap().found.holds);
    for raw in ["f0", "f1"] {
        let matching = rows
            .iter()
            .filter(|(row, _)| covers(2, LABELS[2][row[2]], raw));
        let matching: Vec<usize> = matching.map(|(_, value)| *value).collect();
        assert_eq!(
            matching.iter().filter(|&&value| value == 0).count() * 2,
            matching.len()
        );
    }
}

/// Each interval encloses the next one, so that what is kept grows with the square of their number, and so did the
/// depth of the search.
#[test]
fn nested_labels_end_beyond_the_bytes_that_are_held() {
    let decide = |intervals: usize| {
        let numbers = json!({"name": "n", "role": "quasi_identifier", "kind": "numeric",
            "domain": [0, 2 * intervals]});
        let definition =
            json!({"name": "a", "columns": [numbers, {"name": "s", "role": "sensitive"}]});
        let definition: DatasetDefinition = serde_json::from_value(definition).unwrap();
        let labels = (0..intervals).map(|at| format!("[{at},{}]", 2 * intervals - at));
        let column = |name: &str, form, dictionary: Vec<Box<str>>, codes| ReleasedColumn {
            name: name.into(),
            form,
            column: Column { dictionary, codes },
            missing: Vec::new(),
        };
        let codes = (0..intervals as u32).collect();
        let values = vec!["a".into(), "b".into()];
        let columns = vec![
            column(
                "n",
                Form::Generalized,
                labels.map(Box::from).collect(),
                codes,
            ),
            column(
                "s",
                Form::Text,
                values,
                (0..intervals as u32).map(|at| at % 2).collect(),
            ),
        ];
        let table = ReleasedTable {
            name: "data".into(),
            rows: intervals,
            columns,
        };
        let model = Lkc {
            l: std::num::NonZeroU32::new(1),
            k: MinimumAnonymity::new(2).unwrap(),
            c: Confidence::new(0.5).unwrap(),
            sensitive_values: None,
            missing_sensitive: MissingSensitive::Excluded,
        };
        let schema = Schema::inline(&definition).unwrap();
        let decided = decide_overlaps(&table, &schema, &model, &Cancellation::new());
        decided.map(|it| it.found.holds)
    };
    assert_eq!(decide(40), Ok(false));
    assert_eq!(decide(300), Err(VerifyError::TooManyOverlaps));
    assert_eq!(decide(20_000), Err(VerifyError::TooManyOverlaps));
}

#[test]
fn a_label_of_another_domain_is_refused() {
    let mut table = table(&[([0, 0, 0], 0)]);
    table.columns[1].column.dictionary[0] = "many".into();
    let model = Lkc {
        l: None,
        k: MinimumAnonymity::MIN,
        c: Confidence::new(0.5).unwrap(),
        sensitive_values: None,
        missing_sensitive: MissingSensitive::Excluded,
    };
    let decided = decide_overlaps(&table, &schema(), &model, &Cancellation::new());
    let error = decided.map(|it| it.found).unwrap_err().to_string();
    assert_eq!(
        error,
        "the column `n` has a label that is not of its domain"
    );
}
