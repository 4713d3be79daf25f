//! LKC-privacy with sets on random small tables, checked by brute force over the released labels,
//! the raw rows and the persons.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use pais_core::definition::JobErrorKind;

use crate::test_data::{job_of, job_with_keys, load, refusal, schema, unmet};
use crate::{AnonymizationRun, JobPlan, RunError, Unobserved, VerifiedTables};

const SETS: [(&str, usize); 2] = [("s", 4), ("t", 5)];

fn columns() -> Value {
    json!([
        {"name": "row", "role": "insensitive"},
        {"name": "person", "role": "subject"},
        {"name": "a", "role": "quasi_identifier", "taxonomy": {"label": "A", "children": [
            {"label": "A1", "children": [{"label": "a0"}, {"label": "a1"}]}, {"label": "a2"}]}},
        {"name": "n", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "s", "role": "quasi_identifier", "kind": "set"},
        {"name": "t", "role": "quasi_identifier", "kind": "set", "taxonomy":
            {"label": "any", "children": [
                {"label": "T", "children": [{"label": "t0"}, {"label": "t1"}]},
                {"label": "t2"}, {"label": "t3"}]}},
        {"name": "illness", "role": "sensitive"},
    ])
}

fn run(rows: &[Vec<String>], job: &Value) -> Result<VerifiedTables, RunError> {
    let schema = schema(columns());
    let mut file = "row,person,a,n,s,t,illness\n".to_owned();
    for row in rows {
        file += &(row.join(",") + "\n");
    }
    let table = load(&schema, file.as_bytes());
    let job = job_with_keys(job.clone(), &schema)?;
    let prepared = AnonymizationRun::new(schema, job, table, &Unobserved::default())?;
    let found = prepared.search(&Unobserved::default())?;
    prepared.verify(&found, None, &Unobserved::default())
}

fn set(prefix: &'static str) -> impl Strategy<Value = String> {
    let item = (0..4u8, 0..4u8).prop_map(|(one, other)| one.min(other));
    prop::collection::btree_set(item, 0..4).prop_map(move |items| {
        let items: Vec<String> = items.iter().map(|item| format!("{prefix}{item}")).collect();
        items.join("|")
    })
}

fn rows() -> impl Strategy<Value = Vec<Vec<String>>> {
    let row = (0..12u8, 0..4usize, 0..5i32, set("s"), set("t"), 0..5u8);
    prop::collection::vec(row, 6..40).prop_map(|rows| {
        let rows = rows.into_iter().enumerate();
        let cells = rows.map(|(row, (person, a, n, s, t, illness))| {
            let a = ["a0", "a1", "a2", ""][a].to_owned();
            let illness = ["", "i1", "i2", "i3", "i4"][illness as usize].to_owned();
            vec![
                row.to_string(),
                format!("p{person}"),
                a,
                n.to_string(),
                s,
                t,
                illness,
            ]
        });
        cells.collect()
    })
}

fn items(cell: &str) -> BTreeSet<String> {
    let items = cell.split('|').filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
}

/// Every combination of at most `most` of the facts.
fn combinations(facts: &[(usize, String)], most: u32) -> Vec<Vec<&(usize, String)>> {
    let all = (0u32..1 << facts.len()).filter(|chosen| chosen.count_ones() <= most);
    let combination = |chosen: u32| {
        let facts = facts.iter().enumerate();
        facts
            .filter(|(at, _)| chosen >> at & 1 == 1)
            .map(|(_, fact)| fact)
            .collect()
    };
    all.map(combination).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn no_combination_of_l_facts_is_rare_or_reveals_a_value(
        rows in rows(),
        (l, k) in (1..4u32, 1..4usize),
        c in prop::sample::select(vec![0.5, 0.8, 1.0]),
        is_generalized in any::<bool>(),
        counted in any::<bool>(),
    ) {
        prop_assume!(k > 1 || c < 1.0);
        let mut job = json!({"privacy": {"model": "lkc", "l": l, "k": k, "c": c}});
        if counted {
            job["missing_sensitive"] = json!("counted");
        }
        if is_generalized {
            job["pre_generalization"] = json!({"t": {"level": 1}});
        }
        let release = match run(&rows, &job) {
            Ok(release) => release,
            Err(error) => {
                prop_assert!(matches!(error, RunError::NotAnonymizable { .. }), "{}", error);
                let persons: BTreeSet<&String> = rows.iter().map(|row| &row[1]).collect();
                let of = |value: &str| rows.iter().filter(|row| row[6] == value).count();
                let whole = if counted { rows.len() } else { rows.len() - of("") };
                let most = ["i1", "i2", "i3", "i4"].map(of).into_iter().max().unwrap();
                let is_frequent = most > 0 && most as f64 / whole as f64 > c;
                prop_assert!(persons.len() < k || is_frequent);
                return Ok(());
            }
        };
        let table = &release.tables()[0];
        let cell = |row: usize, name: &str| {
            let mut columns = table.columns.iter();
            let column = columns.find(|column| &*column.name == name).unwrap();
            column.column.text(row).unwrap_or_default().to_owned()
        };
        prop_assert_eq!(table.rows, rows.len(), "no row is suppressed");
        let mut holding: BTreeMap<Vec<(usize, String)>, Vec<&Vec<String>>> = BTreeMap::new();
        let mut disclosed = [BTreeSet::new(), BTreeSet::new()];
        let mut hidden = [BTreeSet::new(), BTreeSet::new()];
        for row in 0..table.rows {
            let raw = &rows[cell(row, "row").parse::<usize>().unwrap()];
            let mut facts = vec![(0, cell(row, "a")), (1, cell(row, "n"))];
            for (at, (name, position)) in SETS.into_iter().enumerate() {
                let label = |item: &String| match (is_generalized, item.as_str()) {
                    (true, "t0" | "t1") => "T".to_owned(),
                    _ => item.clone(),
                };
                let whole: BTreeSet<String> = items(&raw[position]).iter().map(label).collect();
                let shown = items(&cell(row, name));
                prop_assert!(shown.is_subset(&whole));
                hidden[at].extend(whole.difference(&shown).cloned());
                disclosed[at].extend(shown.iter().cloned());
                facts.extend(shown.into_iter().map(|item| (at + 2, item)));
            }
            for known in combinations(&facts, l) {
                let known = known.into_iter().cloned().collect();
                holding.entry(known).or_default().push(raw);
            }
        }
        for at in 0..2 {
            prop_assert!(disclosed[at].is_disjoint(&hidden[at]), "disclosed for all or for none");
        }
        for rows in holding.values() {
            let persons: BTreeSet<&String> = rows.iter().map(|row| &row[1]).collect();
            prop_assert!(persons.len() >= k);
            let of = |value: &str| rows.iter().filter(|row| row[6] == value).count();
            let whole = if counted { rows.len() } else { rows.len() - of("") };
            let most = ["i1", "i2", "i3", "i4"].map(of).into_iter().max().unwrap();
            prop_assert!(most == 0 || most as f64 / whole as f64 <= c);
        }
    }
}

fn lkc(c: f64) -> Value {
    json!({"model": "lkc", "l": 2, "k": 2, "c": c})
}

#[test]
fn a_value_that_is_too_frequent_in_the_whole_table_is_named_by_its_column() {
    let rows: Vec<Vec<String>> = (0..4)
        .map(|at| {
            let cells = [at.to_string(), format!("p{at}")].into_iter();
            cells
                .chain(["a0", "1", "s0", "t0", "i1"].map(str::to_owned))
                .collect()
        })
        .collect();
    let error = run(&rows, &json!({"privacy": lkc(0.5)})).err().unwrap();
    let fault = unmet(&error);
    assert_eq!(fault.pointer(), Some("/privacy/c"));
    assert!(fault.detail.contains("`illness`"));
    // The job lists no values, so there is none to take out; and all rows have it, so no bound below 1 holds.
    let remedy = "can meet it; list only the values to be bounded in `sensitive_values`";
    assert!(fault.detail.ends_with(remedy), "{}", fault.detail);
    let release = run(&rows, &json!({"privacy": lkc(1.0)})).unwrap();
    assert_eq!(release.source_rows().len(), 4);
}

#[test]
fn lkc_with_sets_suppresses_no_row_and_is_global() {
    let refused = |extra: Value| {
        let mut job = json!({"privacy": lkc(0.5)});
        for (name, value) in extra.as_object().unwrap() {
            job[name] = value.clone();
        }
        let job = job_of(job).unwrap();
        refusal(JobPlan::new(&schema(columns()), &job))
    };
    for (extra, pointer) in [
        (json!({"suppression_limit": 0.1}), "/suppression_limit"),
        (json!({"recoding": "local"}), "/recoding"),
        (
            json!({"utility": {"objective": "discernibility"}}),
            "/utility/objective",
        ),
    ] {
        assert_eq!(refused(extra), (JobErrorKind::Unfit, pointer.to_owned()));
    }
}
