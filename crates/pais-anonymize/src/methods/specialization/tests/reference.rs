//! Compares the search with a naive implementation of Algorithm 1 on labels: each candidate is
//! tried on a copy of the table, and Definition 3.1 is checked row by row.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::properties::{LabelRows, generalizations, holds, is_bounded};
use super::random_tables::{SpecializationCase, case, prepared};
use crate::test_data::steps;

const COLUMNS: [&str; 3] = ["a", "b", "f"];

/// Scores closer than this are a tie.
const TIE: f64 = 1e-12;

/// A value of a column's tree.
#[derive(Clone, Debug)]
struct TreeValue {
    first_leaf: usize,
    leaves: usize,
    has_children: bool,
}

/// What a step of the reference records.
#[derive(Clone, Debug)]
struct ReferenceStep {
    performed: Option<(String, String, f64)>,
    groups: u64,
    smallest_group: u64,
    greatest_confidence: f64,
    dr: f64,
    suppressed_rows: u64,
}

struct Reference<'a> {
    case: &'a SpecializationCase,
    /// By column, the values of its tree.
    values: Vec<BTreeMap<String, TreeValue>>,
    /// The rows that are left, with their labels.
    table: LabelRows,
    suppressed: usize,
}

fn add_values(values: &mut BTreeMap<String, TreeValue>, node: &Value, next_leaf: &mut usize) {
    let first_leaf = *next_leaf;
    let children = node["children"].as_array();
    for child in children.into_iter().flatten() {
        add_values(values, child, next_leaf);
    }
    *next_leaf += usize::from(children.is_none());
    let value = TreeValue {
        first_leaf,
        leaves: *next_leaf - first_leaf,
        has_children: children.is_some(),
    };
    values.insert(node["label"].as_str().unwrap().to_owned(), value);
}

/// The values of a column's tree, with the leaf `?` if a cell is missing.
fn values(case: &SpecializationCase, at: usize) -> BTreeMap<String, TreeValue> {
    let cells: BTreeSet<&str> = case.rows.iter().map(|row| row[at].as_str()).collect();
    let mut root = match case.columns[at].get("taxonomy") {
        Some(tree) => tree.clone(),
        None => {
            let present = cells.iter().filter(|cell| !cell.is_empty());
            let leaves: Vec<Value> = present.map(|cell| json!({"label": cell})).collect();
            json!({"label": "*", "children": leaves})
        }
    };
    if cells.contains("") {
        let children = root["children"].as_array_mut().unwrap();
        children.push(json!({"label": "?"}));
    }
    let mut values = BTreeMap::new();
    add_values(&mut values, &root, &mut 0);
    values
}

impl<'a> Reference<'a> {
    fn new(case: &'a SpecializationCase) -> Self {
        let names: Vec<&str> = (case.columns.as_array().unwrap().iter())
            .map(|column| column["name"].as_str().unwrap())
            .collect();
        let row = |cells: &Vec<String>| {
            let cell = |(name, cell): (&&str, &String)| {
                let label = match COLUMNS.contains(name) {
                    true => generalizations(case, name, cell)[0].clone(),
                    false => cell.clone(),
                };
                ((*name).to_owned(), label)
            };
            names.iter().zip(cells).map(cell).collect()
        };
        Self {
            case,
            values: (1..=COLUMNS.len()).map(|at| values(case, at)).collect(),
            table: case.rows.iter().map(row).collect(),
            suppressed: 0,
        }
    }

    fn k(&self) -> usize {
        self.case.job["privacy"]["k"].as_u64().unwrap() as usize
    }

    /// The table with one value specialized.
    fn specialized(&self, column: &str, label: &str) -> LabelRows {
        let specialize = |row: &BTreeMap<String, String>| {
            let mut row = row.clone();
            if row[column] == label {
                let raw = &self.case.rows[row["row"].parse::<usize>().unwrap()];
                let at = 1 + COLUMNS.iter().position(|name| *name == column).unwrap();
                let path = generalizations(self.case, column, &raw[at]);
                let depth = path.iter().position(|value| value == label).unwrap();
                row.insert(column.to_owned(), path[depth + 1].clone());
            }
            row
        };
        self.table.iter().map(specialize).collect()
    }

    /// The values of the cut that some row has and that have children, in the order of the columns
    /// and of the cut.
    fn candidates(&self) -> Vec<(usize, String)> {
        let mut candidates = Vec::new();
        for (at, column) in COLUMNS.iter().enumerate() {
            let labels: BTreeSet<&String> = self.table.iter().map(|row| &row[*column]).collect();
            let mut labels: Vec<&String> = labels.into_iter().collect();
            labels.sort_by_key(|label| self.values[at][*label].first_leaf);
            let open = labels
                .into_iter()
                .filter(|label| self.values[at][*label].has_children);
            candidates.extend(open.map(|label| (at, label.clone())));
        }
        candidates
    }

    fn score(&self, (at, label): &(usize, String), after: &LabelRows) -> f64 {
        let column = COLUMNS[*at];
        let rows = || (0..after.len()).filter(|&row| self.table[row][column] == *label);
        match self.case.job["utility"]["objective"].as_str().unwrap() {
            "discernibility" => squares(&self.table) - squares(after),
            "discernibility_eq4" => squares(&rows().map(|row| after[row].clone()).collect()),
            "ncp" => {
                let values = &self.values[*at];
                let all = values.values().map(|value| value.leaves).max().unwrap() as f64;
                let ncp = |label: &String| match &values[label] {
                    value if value.has_children && all > 1.0 => value.leaves as f64 / all,
                    _ => 0.0,
                };
                let gain = |row: usize| ncp(label) - ncp(&after[row][column]);
                let cells = (self.case.rows.len() * COLUMNS.len()) as f64;
                rows().map(gain).sum::<f64>() / cells
            }
            _ => {
                let entropy = |rows: &[usize]| {
                    let mut classes: BTreeMap<&str, f64> = BTreeMap::new();
                    for &row in rows {
                        *classes.entry(&after[row]["class"]).or_default() += 1.0;
                    }
                    let shares = classes.values().map(|count| count / rows.len() as f64);
                    -shares.map(|share| share * share.log2()).sum::<f64>()
                };
                let mut parts: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
                for row in rows() {
                    parts.entry(&after[row][column]).or_default().push(row);
                }
                let all: Vec<usize> = rows().collect();
                let part = |part: &Vec<usize>| part.len() as f64 / all.len() as f64 * entropy(part);
                entropy(&all) - parts.values().map(part).sum::<f64>()
            }
        }
    }

    /// What is left of a table if every group of fewer than *K* rows is suppressed until there is
    /// none.
    fn without_small_groups(&self, mut table: LabelRows) -> LabelRows {
        let l = self.case.job["privacy"]["l"].as_u64().unwrap() as u32;
        loop {
            let before = table.len();
            for subset in (1u32..8).filter(|subset| subset.count_ones() <= l) {
                let key = |row: &BTreeMap<String, String>| -> Vec<String> {
                    let known = (0..3).filter(|bit| subset >> bit & 1 == 1);
                    known.map(|bit| row[COLUMNS[bit]].clone()).collect()
                };
                let mut groups: BTreeMap<Vec<String>, Vec<_>> = BTreeMap::new();
                for row in &table {
                    groups.entry(key(row)).or_default().push(row);
                }
                let sizes = groups.into_iter();
                let sizes = sizes.map(|(key, group)| (key, persons(self.case, &group)));
                let sizes: BTreeMap<_, _> = sizes.collect();
                table.retain(|row| sizes[&key(row)] >= self.k());
            }
            if table.len() == before {
                return table;
            }
        }
    }

    fn step(&self, performed: Option<(String, String, f64)>) -> ReferenceStep {
        let groups = groups(&self.table);
        let shares = groups.values().map(|group| self.greatest_share(group));
        let rows = self.table.len() as f64;
        ReferenceStep {
            performed,
            groups: groups.len() as u64,
            smallest_group: (groups.values().map(|group| persons(self.case, group)))
                .min()
                .unwrap() as u64,
            greatest_confidence: shares.fold(0.0, f64::max),
            dr: squares(&self.table) / (rows * rows),
            suppressed_rows: self.suppressed as u64,
        }
    }

    fn greatest_share(&self, group: &[&BTreeMap<String, String>]) -> f64 {
        let mut greatest = 0.0f64;
        for (column, values) in self.case.job["privacy"]["sensitive_values"]
            .as_object()
            .unwrap()
        {
            let has_value = group.iter().filter(|row| !row[column].is_empty()).count();
            let of = match self.case.job["missing_sensitive"] == "counted" {
                true => group.len(),
                false => has_value,
            };
            for value in values.as_array().unwrap() {
                let holding = group.iter().filter(|row| row[column] == *value).count();
                greatest = greatest.max(holding as f64 / of.max(1) as f64);
            }
        }
        greatest
    }

    /// The steps; `None` if the topmost table does not meet the requirement.
    fn search(mut self) -> Option<Vec<ReferenceStep>> {
        let whole: Vec<_> = self.table.iter().collect();
        if persons(self.case, &whole) < self.k() || !is_bounded(&whole, &self.case.job) {
            return None;
        }
        let limit = self.case.job["suppression_limit"].as_f64().unwrap();
        let budget = (limit * self.case.rows.len() as f64 + 1e-9) as usize;
        let mut steps = vec![self.step(None)];
        let mut invalid: BTreeSet<(usize, String)> = BTreeSet::new();
        loop {
            let candidates = self.candidates();
            let scored: Vec<_> = (candidates.into_iter())
                .map(|candidate| {
                    let after = self.specialized(COLUMNS[candidate.0], &candidate.1);
                    (self.score(&candidate, &after), candidate, after)
                })
                .collect();
            let open = || {
                scored
                    .iter()
                    .filter(|(_, candidate, _)| !invalid.contains(candidate))
            };
            let greatest = open()
                .map(|(score, ..)| *score)
                .fold(f64::NEG_INFINITY, f64::max);
            let best = open().find(|(score, ..)| *score >= greatest - TIE).cloned();
            if let Some((score, candidate, after)) = best {
                if holds(&after, self.case, &COLUMNS) {
                    self.table = after;
                    let column = COLUMNS[candidate.0].to_owned();
                    steps.push(self.step(Some((column, candidate.1, score))));
                } else {
                    invalid.insert(candidate);
                }
                continue;
            }
            let mut best: Option<(f64, _)> = None;
            for (score, candidate, after) in scored {
                let left = self.without_small_groups(after);
                let removed = self.table.len() - left.len();
                let is_possible = self.suppressed + removed <= budget
                    && persons(self.case, &left.iter().collect::<Vec<_>>()) >= self.k()
                    && holds(&left, self.case, &COLUMNS);
                let rate = score / removed.max(1) as f64;
                let is_better = best.as_ref().is_none_or(|(greatest, _)| rate > *greatest);
                if is_possible && score > 0.0 && is_better {
                    best = Some((rate, (score, candidate, left)));
                }
            }
            let Some((_, (score, candidate, left))) = best.filter(|_| self.suppressed < budget)
            else {
                return Some(steps);
            };
            self.suppressed += self.table.len() - left.len();
            self.table = left;
            invalid.clear();
            let column = COLUMNS[candidate.0].to_owned();
            steps.push(self.step(Some((column, candidate.1, score))));
        }
    }
}

/// Number of persons of some rows, or of rows where *K* counts rows.
fn persons(case: &SpecializationCase, rows: &[&BTreeMap<String, String>]) -> usize {
    case.persons(rows.iter().map(|row| row["row"].as_str()))
}

/// The groups of equal labels.
fn groups(table: &LabelRows) -> BTreeMap<Vec<&str>, Vec<&BTreeMap<String, String>>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in table {
        let labels = COLUMNS.iter().map(|column| row[*column].as_str());
        groups.entry(labels.collect()).or_default().push(row);
    }
    groups
}

/// Σ|T\[qid\]|².
fn squares(table: &LabelRows) -> f64 {
    let sizes = groups(table).into_values().map(|group| group.len());
    sizes.map(|size| (size * size) as f64).sum()
}

/// Cases in which every score is exact where rows are suppressed, so that no tie is broken by
/// rounding.
fn reference_case() -> impl Strategy<Value = SpecializationCase> {
    case().prop_map(|mut case| {
        // The intervals of a numeric column have no labels that a reference could know.
        case.columns[4]["role"] = json!("insensitive");
        case.job["suppression_for"] = json!("size");
        if case.job["suppression_limit"] != 0.0
            && case.job["utility"]["objective"] != "discernibility_eq4"
        {
            case.job["utility"]["objective"] = json!("discernibility");
        }
        case
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_steps_are_those_of_a_naive_search(case in reference_case()) {
        let found = steps(&prepared(&case).unwrap()).ok();
        let expected = Reference::new(&case).search();
        prop_assert_eq!(found.is_some(), expected.is_some());
        let (Some(found), Some(expected)) = (found, expected) else {
            return Ok(());
        };
        for (found, expected) in found.iter().zip(&expected) {
            let (item, expected_item) = (&found.item, expected.performed.as_ref());
            let performed = expected_item.map(|(column, value, _)| (column, value));
            prop_assert_eq!(item.attribute.as_ref().zip(item.value.as_ref()), performed);
            // The score of a step that suppresses rows is an upper bound.
            let score = expected_item.map(|(.., score)| *score);
            if let (Some(found), Some(score), []) = (item.score, score, &*found.suppressed) {
                prop_assert!((found - score).abs() < 1e-9);
            }
            prop_assert_eq!(item.groups, expected.groups);
            prop_assert_eq!(item.smallest_group, expected.smallest_group);
            prop_assert_eq!(item.suppressed_rows, expected.suppressed_rows);
            prop_assert!((item.dr - expected.dr).abs() < 1e-12);
            if let Some(confidence) = item.greatest_confidence {
                prop_assert!((confidence - expected.greatest_confidence).abs() < 1e-12);
            }
        }
        prop_assert_eq!(found.len(), expected.len());
    }
}
