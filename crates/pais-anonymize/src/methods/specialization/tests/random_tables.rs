//! Small random tables, with jobs for them.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use pais_core::schema::Schema;
use pais_core::table::Table;

use crate::test_data::{job_with_keys, load, schema};
use crate::{AnonymizationRun, RunError, Unobserved};

/// A table, its columns and a job for it.
#[derive(Clone, Debug)]
pub(crate) struct SpecializationCase {
    pub(crate) columns: Value,
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) job: Value,
}

/// A tree over the leaves `prefix0`, `prefix1`, …, split into runs, some of which are split again.
fn tree(prefix: &'static str, leaves: usize) -> impl Strategy<Value = Value> {
    prop::collection::vec(any::<(bool, bool)>(), leaves).prop_map(move |cuts| {
        let mut top: Vec<Vec<Vec<String>>> = Vec::new();
        for (leaf, (outer, inner)) in cuts.into_iter().enumerate() {
            if outer || top.is_empty() {
                top.push(vec![Vec::new()]);
            }
            let run = top.last_mut().unwrap();
            if inner && !run.last().unwrap().is_empty() {
                run.push(Vec::new());
            }
            run.last_mut().unwrap().push(format!("{prefix}{leaf}"));
        }
        let mut inner = 0;
        let mut name = |children: Vec<Value>| {
            inner += 1;
            json!({"label": format!("{prefix}-inner{inner}"), "children": children})
        };
        let runs = top.into_iter().map(|run| {
            let parts = run.into_iter().map(|part| {
                let leaves = part
                    .into_iter()
                    .map(|leaf| json!({"label": leaf}))
                    .collect();
                name(leaves)
            });
            let parts: Vec<Value> = parts.collect();
            name(parts)
        });
        let runs: Vec<Value> = runs.collect();
        json!({"label": format!("{prefix}-any"), "children": runs})
    })
}

/// The role of the column `person`, the last one: *K* counts persons in half of the cases.
pub(crate) fn person_role() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["subject", "identifier"])
}

impl SpecializationCase {
    /// Number of persons, or of rows where *K* counts rows, of rows given by their numbers.
    pub(crate) fn persons<'a>(&self, rows: impl Iterator<Item = &'a str>) -> usize {
        let columns = self.columns.as_array().unwrap();
        let counts_persons = columns.last().unwrap()["role"] == "subject";
        let who = rows.map(|row| match counts_persons {
            true => self.rows[row.parse::<usize>().unwrap()]
                .last()
                .unwrap()
                .as_str(),
            false => row,
        });
        who.collect::<BTreeSet<&str>>().len()
    }
}

pub(crate) fn case() -> impl Strategy<Value = SpecializationCase> {
    let row = (
        0..4usize,
        0..5usize,
        0..4usize,
        0..7i32,
        0..3usize,
        0..3usize,
        0..2usize,
        0..12u8,
        (0..6u8, 0..9u8),
    );
    let rows = prop::collection::vec(row, 4..28);
    let objective = prop::sample::select(vec![
        "classification",
        "discernibility",
        "discernibility_eq4",
        "ncp",
    ]);
    let split = prop::sample::select(vec!["fixed", "best_valid"]);
    let model = (
        1..4u32,
        1..4u32,
        prop::sample::select(vec![0.34, 0.5, 0.75, 1.0]),
        any::<bool>(),
    );
    let readings = (
        prop::sample::select(vec!["excluded", "counted"]),
        prop::sample::select(vec!["size", "size_and_confidence"]),
        any::<u64>(),
        person_role(),
    );
    let limit = prop::sample::select(vec![0.0, 0.0, 0.1, 0.3]);
    let trees = (tree("a", 4), tree("b", 5));
    (trees, rows, objective, split, model, limit, readings).prop_map(
        |((a, b), rows, objective, split, (l, k, c, listed), limit, readings)| {
            let (missing, suppression_for, seed, person) = readings;
            // A job with K = 1 and C = 1 asks for nothing.
            let k = if c == 1.0 { k.max(2) } else { k };
            let rows = rows.into_iter().enumerate().map(|(row, (x, y, f, n, s, t, class, gap, (more, who)))| {
                let mut cells = vec![
                    row.to_string(),
                    format!("a{x}"),
                    format!("b{y}"),
                    format!("f{f}"),
                    (n * n).to_string(),
                    format!("s{s}"),
                    format!("t{t}"),
                    format!("c{class}"),
                    format!("p{who}"),
                ];
                if (1..=6).contains(&gap) {
                    cells[gap as usize].clear();
                }
                if more < 2 {
                    cells[5 + more as usize].clear();
                }
                cells
            });
            let sensitive = if listed {
                json!({"s": ["s0", "s2"], "t": ["t1"]})
            } else {
                json!({"s": ["s0", "s1", "s2"], "t": ["t0", "t1", "t2"]})
            };
            SpecializationCase {
                columns: json!([
                    {"name": "row", "role": "insensitive"},
                    {"name": "a", "role": "quasi_identifier", "taxonomy": a},
                    {"name": "b", "role": "quasi_identifier", "taxonomy": b},
                    {"name": "f", "role": "quasi_identifier"},
                    {"name": "n", "role": "quasi_identifier", "kind": "numeric"},
                    {"name": "s", "role": "sensitive"},
                    {"name": "t", "role": "sensitive"},
                    {"name": "class", "role": "class"},
                    {"name": "person", "role": person},
                ]),
                rows: rows.collect(),
                job: json!({
                    "privacy": {"model": "lkc", "l": l, "k": k, "c": c, "sensitive_values": sensitive},
                    "utility": {"objective": objective, "split": split},
                    "suppression_limit": limit,
                    "suppression_for": suppression_for,
                    "missing_sensitive": missing,
                    "seed": seed,
                }),
            }
        },
    )
}

fn file(case: &SpecializationCase) -> String {
    let names = case.columns.as_array().unwrap().iter();
    let header: Vec<&str> = names
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    let mut file = header.join(",") + "\n";
    for row in &case.rows {
        file += &(row.join(",") + "\n");
    }
    file
}

/// The rows of a case.
pub(crate) fn table_of(case: &SpecializationCase) -> (Arc<Schema>, Table) {
    let schema = schema(case.columns.clone());
    let table = load(&schema, file(case).as_bytes());
    (schema, table)
}

pub(crate) fn prepared(case: &SpecializationCase) -> Result<AnonymizationRun, RunError> {
    let (schema, table) = table_of(case);
    let job = job_with_keys(case.job.clone(), &schema)?;
    AnonymizationRun::new(schema, job, table, &Unobserved::default())
}
