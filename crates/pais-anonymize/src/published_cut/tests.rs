//! What a suppressed row must not leave in the published cut.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pais_core::cancellation::Cancellation;
use pais_core::schema::Schema;
use pais_core::table::EncodedTable;
use pais_core::taxonomy::Interval;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::publish;
use crate::published_cut::Cut;
use crate::released_table;
use crate::test_data::{load, schema};

fn encoded(column: Value, cells: &[&str]) -> (Arc<Schema>, EncodedTable) {
    let rest = json!({"name": "row", "role": "insensitive"});
    let schema = schema(json!([column, rest]));
    let mut file = "q,row\n".to_owned();
    for (row, cell) in cells.iter().enumerate() {
        file += &format!("{cell},{row}\n");
    }
    let table = EncodedTable::new(&schema, load(&schema, file.as_bytes()));
    (schema, table)
}

/// The published labels of the only quasi-identifier, and the label of each released row.
fn published(
    (schema, table): &(Arc<Schema>, EncodedTable),
    cut: Cut,
    rows: &[u32],
) -> (Vec<String>, Vec<String>) {
    let (cuts, mut published) = publish(schema, table, vec![cut], rows);
    let stop = Cancellation::new();
    let released = released_table::assemble(schema, table, &cuts, Vec::new(), rows, &stop);
    let column = &released.columns[0].column;
    let cells = (0..rows.len()).map(|row| column.text(row).unwrap().to_owned());
    (published.remove("q").unwrap(), cells.collect())
}

/// A cut with these labels; `label_of` by code.
fn cut(labels: &[&str], label_of: &[u32]) -> Cut {
    Cut {
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        label_of: label_of.to_vec(),
    }
}

fn numeric() -> Value {
    json!({"name": "q", "role": "quasi_identifier", "kind": "numeric"})
}

fn numeric_within(lo: i32, hi: i32) -> Value {
    let mut column = numeric();
    column["domain"] = json!([lo, hi]);
    column
}

/// The rows are 107, 63 and others; 63 is a split point.
#[test]
fn a_suppressed_row_leaves_no_interval_end() {
    let cells = ["3", "17", "63", "70", "81", "107"];
    let labels = ["[3,63)", "[63,81)", "[81,107]"];
    let grown = encoded(numeric(), &cells);
    let whole = || cut(&labels, &[0, 0, 1, 1, 2, 2]);
    let (all, _) = published(&grown, whole(), &[0, 1, 2, 3, 4, 5]);
    assert_eq!(all, labels, "without suppression nothing changes");
    let (narrowed, cells_of) = published(&grown, whole(), &[4, 1, 3]);
    assert_eq!(narrowed, ["[17,70)", "[70,81)", "81"]);
    assert_eq!(cells_of, ["81", "[17,70)", "[70,81)"]);
    let (one, _) = published(&grown, whole(), &[1, 0]);
    assert_eq!(one, ["[3,17]"]);

    let declared = encoded(numeric_within(0, 120), &cells);
    let labels = ["[0,63)", "[63,81)", "[81,120]"];
    let whole = || cut(&labels, &[0, 0, 1, 1, 2, 2]);
    let (all, _) = published(&declared, whole(), &[0, 1, 2, 3, 4, 5]);
    assert_eq!(all, labels);
    let (narrowed, _) = published(&declared, whole(), &[1, 3, 4]);
    assert_eq!(narrowed, ["[0,70)", "[70,81)", "[81,120]"]);
    let (without_middle, _) = published(&declared, whole(), &[1, 5]);
    assert_eq!(without_middle, ["[0,107)", "[107,120]"]);
    let (one, _) = published(&declared, whole(), &[2]);
    assert_eq!(one, ["[0,120]"]);
}

#[test]
fn a_suppressed_row_leaves_no_interval_end_beside_missing_cells() {
    let cells = ["3", "17", "63", "107", ""];
    let grown = encoded(numeric(), &cells);
    // The topmost interval covers missing cells too.
    let topmost = || cut(&["[3,107]"], &[0, 0, 0, 0, 0]);
    let (narrowed, cells_of) = published(&grown, topmost(), &[1, 2, 4]);
    assert_eq!(narrowed, ["[17,63]"]);
    assert_eq!(cells_of, ["[17,63]", "[17,63]", "[17,63]"]);
    // One number would be said of the missing cell too.
    let (one, cells_of) = published(&grown, topmost(), &[1, 4]);
    assert_eq!(
        (one, cells_of),
        (vec!["*".to_owned()], vec!["*".to_owned(); 2])
    );
    let (one, _) = published(&grown, topmost(), &[1]);
    assert_eq!(one, ["17"]);
    let (only_missing, cells_of) = published(&grown, topmost(), &[4]);
    assert_eq!(
        (only_missing, cells_of),
        (vec!["?".to_owned()], vec!["?".to_owned()])
    );

    let split = || cut(&["[3,63)", "[63,107]", "?"], &[0, 0, 1, 1, 2]);
    let (without_missing, _) = published(&grown, split(), &[0, 2, 3]);
    assert_eq!(without_missing, ["[3,63)", "[63,107]"]);
    let (narrowed, _) = published(&grown, split(), &[1, 4]);
    assert_eq!(narrowed, ["17", "?"]);

    let declared = encoded(numeric_within(0, 120), &cells);
    let topmost = cut(&["[0,120]"], &[0, 0, 0, 0, 0]);
    let (only_missing, _) = published(&declared, topmost, &[4]);
    assert_eq!(only_missing, ["[0,120]"]);
}

#[test]
fn a_suppressed_row_leaves_no_label_in_the_cut() {
    let flat = encoded(
        json!({"name": "q", "role": "quasi_identifier"}),
        &["mayor", "nurse", "", "nurse"],
    );
    let leaves = || cut(&["mayor", "nurse", "?"], &[0, 1, 2]);
    let (labels, cells) = published(&flat, leaves(), &[3, 1]);
    assert_eq!(
        (labels, cells),
        (vec!["nurse".to_owned()], vec!["nurse".to_owned(); 2])
    );
    let (labels, _) = published(&flat, leaves(), &[2, 0]);
    assert_eq!(labels, ["mayor", "?"]);

    // Declared labels too: `Technical` was specialized because of the suppressed row alone.
    let tree = json!({"label": "any", "children": [
        {"label": "Medical", "children": [{"label": "doctor"}, {"label": "nurse"}]},
        {"label": "Technical", "children": [{"label": "mover"}, {"label": "driver"}]}]});
    let declared = encoded(
        json!({"name": "q", "role": "quasi_identifier", "taxonomy": tree}),
        &["doctor", "mover", "nurse"],
    );
    let specialized = cut(&["Medical", "mover", "driver"], &[0, 0, 1, 2]);
    let (labels, cells) = published(&declared, specialized, &[2, 0]);
    assert_eq!(
        (labels, cells),
        (vec!["Medical".to_owned()], vec!["Medical".to_owned(); 2])
    );
}

#[test]
fn a_release_without_rows_has_no_labels() {
    let grown = encoded(numeric(), &["3", "17"]);
    let (labels, cells) = published(&grown, cut(&["[3,17]"], &[0, 0]), &[]);
    assert!(labels.len() <= 1 && cells.is_empty());
    assert!(!labels.iter().any(|label| label.contains(['3', '1'])));
}

/// A numeric column with missing cells, a cut of it, and the rows that are suppressed.
#[derive(Clone, Debug)]
struct NumericCase {
    cells: Vec<Option<u8>>,
    /// Where the cut splits: indices into the distinct numbers.
    points: BTreeSet<usize>,
    suppressed: Vec<bool>,
    domain: Option<(i32, i32)>,
}

fn case() -> impl Strategy<Value = NumericCase> {
    let cell = prop_oneof![5 => (10..40u8).prop_map(Some), 1 => Just(None)];
    prop::collection::vec(cell, 1..20).prop_flat_map(|cells| {
        let rows = cells.len();
        let points = prop::collection::btree_set(0..rows, 0..4);
        let suppressed = prop::collection::vec(any::<bool>(), rows);
        let domain = prop_oneof![Just(None), Just(Some((0, 50)))];
        (points, suppressed, domain).prop_map(move |(points, suppressed, domain)| NumericCase {
            cells: cells.clone(),
            points,
            suppressed,
            domain,
        })
    })
}

/// The labels of the released rows from their cells alone: `part_of` gives the part of the cut that
/// a row is in, `None` for a part of missing cells.
fn labels_from_released_rows(
    rows: &[(Option<u8>, Option<usize>)],
    domain: Option<(i32, i32)>,
) -> Vec<String> {
    let mut parts: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (cell, part) in rows {
        if let (Some(number), Some(part)) = (cell, part) {
            parts.entry(*part).or_default().push(f64::from(*number));
        }
    }
    let starts: Vec<f64> = parts
        .values()
        .map(|numbers| numbers.iter().copied().fold(f64::INFINITY, f64::min))
        .collect();
    let greatest = parts
        .values()
        .flatten()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    let interval = |at: usize| {
        let lo = match (at, domain) {
            (0, Some((lo, _))) => f64::from(lo),
            _ => starts[at],
        };
        match starts.get(at + 1) {
            Some(&next) => Interval::half_open(lo, next),
            None => Interval::closed(lo, domain.map_or(greatest, |(_, hi)| f64::from(hi))),
        }
    };
    let order: Vec<usize> = parts.keys().copied().collect();
    let has_missing = |part: usize| rows.contains(&(None, Some(part)));
    let label = |(_, part): &(Option<u8>, Option<usize>)| match part {
        None => "?".to_owned(),
        Some(part) => match order.iter().position(|other| other == part) {
            // One number is not said of missing cells.
            Some(at) if has_missing(*part) && interval(at).lo == interval(at).hi => "*".to_owned(),
            Some(at) => interval(at).to_string(),
            None => domain.map_or("?".to_owned(), |(lo, hi)| format!("[{lo},{hi}]")),
        },
    };
    rows.iter().map(label).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_published_cut_depends_on_released_rows_alone(case in case()) {
        let NumericCase { cells, points, suppressed, domain } = case;
        let column = domain.map_or(numeric(), |(lo, hi)| numeric_within(lo, hi));
        let texts: Vec<String> = cells
            .iter()
            .map(|cell| cell.map_or(String::new(), |number| number.to_string()))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let encoded = encoded(column, &texts);
        let mut numbers: Vec<u8> = cells.iter().copied().flatten().collect();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.is_empty() || numbers.len() == 1 && domain.is_none() && cells.contains(&None) {
            // The column has no interval, or only where its domain is declared.
            return Ok(());
        }
        // The cut of the search: intervals that start at data values, and `?` below the topmost.
        let mut starts: Vec<u8> = points.iter().filter_map(|&at| numbers.get(at).copied()).collect();
        starts.retain(|start| *start != numbers[0]);
        starts.insert(0, numbers[0]);
        let (lo, hi) = domain.map_or(
            (f64::from(numbers[0]), f64::from(numbers[numbers.len() - 1])),
            |(lo, hi)| (f64::from(lo), f64::from(hi)),
        );
        let mut labels: Vec<String> = (0..starts.len())
            .map(|at| {
                let lo = if at == 0 { lo } else { f64::from(starts[at]) };
                match starts.get(at + 1) {
                    Some(&next) => Interval::half_open(lo, f64::from(next)).to_string(),
                    None => Interval::closed(lo, hi).to_string(),
                }
            })
            .collect();
        let part = |number: u8| starts.iter().rposition(|start| *start <= number).unwrap();
        let mut label_of: Vec<u32> = numbers.iter().map(|&number| part(number) as u32).collect();
        let is_topmost = starts.len() == 1;
        if cells.contains(&None) {
            label_of.push(if is_topmost { 0 } else { labels.len() as u32 });
            if !is_topmost {
                labels.push("?".to_owned());
            }
        }
        let rows: Vec<u32> = (0..cells.len() as u32).filter(|&row| !suppressed[row as usize]).collect();
        let released: Vec<(Option<u8>, Option<usize>)> = rows
            .iter()
            .map(|&row| {
                let cell = cells[row as usize];
                (cell, cell.map(part).or(is_topmost.then_some(0)))
            })
            .collect();
        let expected = labels_from_released_rows(&released, domain);
        let whole = Cut { labels: labels.clone(), label_of };
        let (found, cells_of) = published(&encoded, whole, &rows);
        prop_assert_eq!(&cells_of, &expected);
        if !rows.is_empty() {
            let found: BTreeSet<String> = found.into_iter().collect();
            prop_assert_eq!(found, expected.into_iter().collect::<BTreeSet<_>>());
        }
        if rows.len() == cells.len() {
            let all: BTreeSet<String> = labels.into_iter().collect();
            prop_assert_eq!(cells_of.into_iter().collect::<BTreeSet<_>>(), all);
        }
    }
}
