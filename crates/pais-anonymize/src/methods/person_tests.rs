//! Where persons have several rows, every method counts persons: a group of any release has rows
//! of at least *K* of them, checked by brute force on random tables.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::test_data::{job_of, job_with_keys, load, schema};
use crate::{AnonymizationRun, RunError, Unobserved, VerifiedTables};

#[derive(Clone, Debug)]
struct PersonCase {
    columns: Value,
    /// `row`, the person, and cells.
    rows: Vec<Vec<String>>,
    job: Value,
}

/// The models and methods, and the quasi-identifiers that an adversary knows together.
fn jobs() -> Vec<(Value, bool)> {
    let relational = |job: Value| (job, false);
    let sets = |job: Value| (job, true);
    vec![
        relational(json!({"privacy": {"model": "k_anonymity", "k": 2}})),
        relational(json!({"privacy": {"model": "k_anonymity", "k": 3}, "recoding": "local"})),
        relational(
            json!({"privacy": {"model": "k_anonymity", "k": 3}, "recoding": "local",
                          "utility": {"objective": "ncp"}}),
        ),
        relational(json!({"privacy": {"model": "k_anonymity", "k": 2}, "suppression_limit": 0.3})),
        relational(json!({"privacy": {"model": "l_diversity", "k": 3, "l": 2}})),
        relational(json!({"privacy": {"model": "l_diversity", "k": 3, "l": 2},
                          "output": "generalized"})),
        relational(
            json!({"privacy": {"model": "distinct_l_diversity", "k": 2, "l": 2},
                          "output": "generalized"}),
        ),
        relational(json!({"privacy": {"model": "alpha_k", "alpha": 0.8, "k": 2}})),
        sets(json!({"privacy": {"model": "k_anonymity", "k": 2}})),
        sets(json!({"privacy": {"model": "k_anonymity", "k": 3}, "suppression_limit": 0.2})),
        sets(json!({"privacy": {"model": "k_m_anonymity", "k": 2, "m": 2}})),
    ]
}

fn case() -> impl Strategy<Value = PersonCase> {
    let row = (
        0..7u8,
        0..4u8,
        0..6u8,
        0..4u8,
        prop::collection::btree_set(0..5u8, 0..4),
    );
    let rows = prop::collection::vec(row, 6..40);
    (rows, prop::sample::select(jobs())).prop_map(|(rows, (job, has_sets))| {
        let last = if has_sets {
            json!({"name": "items", "role": "quasi_identifier", "kind": "set"})
        } else {
            json!({"name": "items", "role": "sensitive"})
        };
        let columns = json!([
            {"name": "row", "role": "insensitive"},
            {"name": "person", "role": "subject"},
            {"name": "a", "role": "quasi_identifier"},
            {"name": "n", "role": "quasi_identifier", "kind": "numeric"},
            last,
        ]);
        let rows = rows.into_iter().enumerate();
        let rows = rows.map(|(row, (person, a, n, value, items))| {
            let items: Vec<String> = items.iter().map(|item| format!("i{item}")).collect();
            let last = if has_sets {
                items.join("|")
            } else {
                format!("v{value}")
            };
            vec![
                row.to_string(),
                format!("p{person}"),
                format!("a{a}"),
                n.to_string(),
                last,
            ]
        });
        PersonCase {
            columns,
            rows: rows.collect(),
            job,
        }
    })
}

fn run(case: &PersonCase) -> Result<VerifiedTables, RunError> {
    let schema = schema(case.columns.clone());
    let mut file = "row,person,a,n,items\n".to_owned();
    for row in &case.rows {
        file += &(row.join(",") + "\n");
    }
    let table = load(&schema, file.as_bytes());
    let job = job_with_keys(case.job.clone(), &schema)?;
    let run = AnonymizationRun::new(schema, job, table, &Unobserved::default())?;
    let steps = run.search(&Unobserved::default())?;
    run.verify(&steps, None, &Unobserved::default())
}

/// What an adversary may know of each released row together, with the row's number.
fn known(case: &PersonCase, release: &VerifiedTables) -> Vec<(Vec<String>, String)> {
    let table = &release.tables()[0];
    let text = |name: &str, row: usize| {
        let column = table.columns.iter().find(|column| &*column.name == name);
        column.map(|column| column.column.text(row).unwrap_or_default().to_owned())
    };
    let knows_items = case.job["privacy"]["model"] == "k_anonymity"
        && case.columns[4]["role"] == "quasi_identifier";
    let is_anatomized = text("group_id", 0).is_some();
    let names: &[&str] = match (is_anatomized, knows_items) {
        (true, _) => &["group_id"],
        (false, true) => &["a", "n", "items"],
        (false, false) => &["a", "n"],
    };
    let row = |row: usize| {
        let known = names.iter().map(|name| text(name, row).unwrap());
        (known.collect(), text("row", row).unwrap())
    };
    (0..table.rows).map(row).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_group_of_any_release_has_rows_of_k_persons(case in case()) {
        let k = case.job["privacy"]["k"].as_u64().unwrap() as usize;
        let persons: BTreeSet<&str> = case.rows.iter().map(|row| &*row[1]).collect();
        let release = match run(&case) {
            Ok(release) => release,
            Err(RunError::NotAnonymizable { .. }) => {
                let bounds_values = case.job["privacy"]["model"] != "k_anonymity"
                    && case.job["privacy"]["model"] != "k_m_anonymity";
                prop_assert!(persons.len() < k || bounds_values, "{persons:?}");
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let mut groups: BTreeMap<Vec<String>, Vec<usize>> = BTreeMap::new();
        for (known, row) in known(&case, &release) {
            groups.entry(known).or_default().push(row.parse().unwrap());
        }
        let persons_of = |rows: &[usize]| {
            let persons = rows.iter().map(|&row| &*case.rows[row][1]);
            persons.collect::<BTreeSet<&str>>().len()
        };
        for (known, rows) in &groups {
            prop_assert!(persons_of(rows) >= k, "{known:?} has {} persons", persons_of(rows));
        }
        if case.job["privacy"]["model"] == "k_m_anonymity" {
            let table = &release.tables()[0];
            let items = table.columns.iter().find(|column| &*column.name == "items").unwrap();
            let number = table.columns.iter().find(|column| &*column.name == "row").unwrap();
            let mut sets: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
            for row in 0..table.rows {
                let cell = items.column.text(row).unwrap_or_default();
                let cell = cell.split('|').filter(|item| !item.is_empty());
                sets.insert(number.column.text(row).unwrap().parse().unwrap(), cell.collect());
            }
            for rows in groups.values() {
                let all: BTreeSet<&str> = rows.iter().flat_map(|row| sets[row].clone()).collect();
                for one in &all {
                    for other in &all {
                        let holds = |row: &&usize| sets[*row].contains(one) && sets[*row].contains(other);
                        let holding: Vec<usize> = rows.iter().filter(holds).copied().collect();
                        let found = persons_of(&holding);
                        prop_assert!(found == 0 || found >= k, "{one} and {other}: {found} persons");
                    }
                }
            }
        }
        let names = release.tables().iter().flat_map(|table| &table.columns);
        let discloses = names.map(|column| &*column.name).any(|name| name == "person");
        prop_assert!(!discloses, "the release has the subject column");
    }
}

/// Six rows of three persons: a K of six could not be met either.
#[test]
fn the_greatest_k_of_a_table_is_its_number_of_persons() {
    let columns = json!([
        {"name": "p", "role": "subject"},
        {"name": "q", "role": "quasi_identifier"},
        {"name": "items", "role": "quasi_identifier", "kind": "set"},
    ]);
    for recoding in ["global", "local"] {
        let mut columns = columns.clone();
        if recoding == "local" {
            columns[2] = json!({"name": "items", "role": "insensitive"});
        }
        let schema = schema(columns);
        let table = load(
            &schema,
            b"p,q,items\n1,a,x\n1,a,x\n2,b,x\n2,b,y\n3,a,x\n3,b,y\n",
        );
        let job = json!({"privacy": {"model": "k_anonymity", "k": 25}, "recoding": recoding});
        let observer = Unobserved::default();
        let run = AnonymizationRun::new(schema, job_of(job).unwrap(), table, &observer).unwrap();
        let Err(RunError::NotAnonymizable { detail, .. }) = run.search(&observer) else {
            panic!("three persons are no group of 25");
        };
        assert!(detail.contains("3 persons"), "{detail}");
    }
}
