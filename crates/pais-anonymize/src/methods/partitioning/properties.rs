//! Properties of groups on random small tables: a group is accepted exactly where an exhaustive
//! search over all sets of values accepts it, and released tables are truthful to the raw table.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use pais_core::table::NULL_CODE;

use crate::RunError;

use super::condition::tests::accepts;
use super::tests::{lines, text, verified};

/// Whether fewer than `l` permitted values delete all records, found by trying every set of
/// values.
fn deletable(records: &[[u32; 3]], l: u32, limits: &[u32; 3]) -> bool {
    let columns: Vec<usize> = (0..3).filter(|&column| limits[column] > 0).collect();
    let is_whole = |record: &&[u32; 3]| columns.iter().all(|&column| record[column] != NULL_CODE);
    let whole: Vec<&[u32; 3]> = records.iter().filter(is_whole).collect();
    let values: BTreeSet<(usize, u32)> = whole
        .iter()
        .flat_map(|record| columns.iter().map(|&column| (column, record[column])))
        .collect();
    let values: Vec<_> = values.into_iter().collect();
    (0u32..1 << values.len()).any(|set| {
        let chosen: Vec<_> = (0..values.len())
            .filter(|value| set & 1 << value != 0)
            .collect();
        let of = |column| {
            chosen
                .iter()
                .filter(|&&value| values[value].0 == column)
                .count()
        };
        let permitted = columns
            .iter()
            .all(|&column| of(column) <= limits[column] as usize);
        let deletes = |record: &&[u32; 3]| {
            chosen
                .iter()
                .any(|&value| record[values[value].0] == values[value].1)
        };
        chosen.len() < l as usize && permitted && whole.iter().all(deletes)
    })
}

fn group() -> impl Strategy<Value = (Vec<[u32; 3]>, u32, [u32; 3])> {
    let cell = || prop_oneof![9 => 0u32..4, 1 => Just(NULL_CODE)];
    let record = [cell(), cell(), cell()];
    (
        prop::collection::vec(record, 1..14),
        1u32..6,
        [0u32..6, 0u32..6, 0u32..6],
    )
        .prop_map(|(records, l, limits)| (records, l, limits.map(|limit| limit.min(l))))
}

#[derive(Clone, Debug)]
struct GroupCase {
    rows: Vec<[usize; 6]>,
    privacy: Value,
    output: &'static str,
    objective: &'static str,
}

fn columns() -> Value {
    json!([
        {"name": "row", "role": "insensitive"},
        {"name": "t", "role": "quasi_identifier", "taxonomy": {"label": "any", "children": [
            {"label": "low", "children": [{"label": "t0"}, {"label": "t1"}]},
            {"label": "high", "children": [{"label": "t2"}, {"label": "t3"}, {"label": "t4"}]}]}},
        {"name": "f", "role": "quasi_identifier"},
        {"name": "n", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 100]},
        {"name": "x", "role": "sensitive"},
        {"name": "y", "role": "sensitive"},
    ])
}

const TREE: [(&str, &[&str]); 3] = [
    ("low", &["t0", "t1"]),
    ("high", &["t2", "t3", "t4"]),
    ("any", &["t0", "t1", "t2", "t3", "t4", ""]),
];

/// The cells of an uploaded row; 9 is missing.
fn cells(number: usize, row: &[usize; 6]) -> [String; 6] {
    let cell = |column: usize, text: String| match row[column] {
        9 => String::new(),
        _ => text,
    };
    [
        number.to_string(),
        cell(1, format!("t{}", row[1])),
        cell(2, format!("f{}", row[2])),
        cell(3, (row[3] * row[3]).to_string()),
        cell(4, format!("x{}", row[4])),
        cell(5, format!("y{}", row[5])),
    ]
}

fn case() -> impl Strategy<Value = GroupCase> {
    let cell = |values: usize| prop_oneof![12 => 0..values, 1 => Just(9usize)];
    let row = [cell(1), cell(5), cell(4), cell(9), cell(6), cell(5)];
    let model = (2u32..5, 1u32..4, prop::option::of(0u32..4), any::<bool>());
    let shape = prop::sample::select(vec![
        ("anatomized", "discernibility"),
        ("generalized", "discernibility"),
        ("generalized", "ncp"),
    ]);
    (prop::collection::vec(row, 3..60), model, shape).prop_map(
        |(rows, (k, l, limit, alone), (output, objective))| {
            // Anatomized output needs a diversity that binds.
            let (l, alone) = match output {
                "anatomized" => (l.max(2), false),
                _ => (l, alone),
            };
            let limits = limit.map(|limit| json!({"y": limit.min(l)}));
            let privacy = match (alone, limits) {
                (true, _) => json!({"model": "k_anonymity", "k": k}),
                (false, None) => json!({"model": "l_diversity", "k": k, "l": l}),
                (false, Some(limits)) => {
                    json!({"model": "l_diversity", "k": k, "l": l, "column_limits": limits})
                }
            };
            GroupCase {
                rows,
                privacy,
                output,
                objective,
            }
        },
    )
}

/// Whether a label covers a raw cell, decided from their texts alone.
fn covers(column: usize, label: &str, raw: &str) -> bool {
    let inner = |label: &str| {
        TREE.iter()
            .find(|(inner, _)| *inner == label)
            .map(|it| it.1)
    };
    match (column, raw) {
        (_, "") if label == "?" => true,
        (1, raw) => label == raw || inner(label).is_some_and(|leaves| leaves.contains(&raw)),
        (2, raw) => label == raw || label == "*",
        (_, "") => label == "[0,100]",
        (_, raw) => {
            let number = |text: &str| text.parse::<f64>().unwrap();
            match label.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
                Some(range) => {
                    let (lo, hi) = range.split_once(',').unwrap();
                    number(lo) <= number(raw) && number(raw) <= number(hi)
                }
                None => label == raw,
            }
        }
    }
}

/// The cells of a CSV line in which only ranges are quoted.
pub(super) fn split(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            letter => cells.last_mut().unwrap().push(letter),
        }
    }
    cells
}

/// The records of a group as numbers.
fn records(raw: &[&[String; 6]]) -> Vec<[u32; 3]> {
    let number = |text: &str| {
        text.get(1..)
            .map_or(NULL_CODE, |number| number.parse().unwrap())
    };
    raw.iter()
        .map(|raw| [number(&raw[4]), number(&raw[5]), 0])
        .collect()
}

fn check(case: &GroupCase) -> Result<(), TestCaseError> {
    let raw: Vec<[String; 6]> = case
        .rows
        .iter()
        .enumerate()
        .map(|(number, row)| cells(number, row))
        .collect();
    let text_of_rows: String = raw.iter().map(|row| row.join(",") + "\n").collect();
    let job = json!({"privacy": case.privacy, "recoding": "local", "output": case.output,
        "utility": {"objective": case.objective}});
    let found = verified(
        &columns(),
        &("row,t,f,n,x,y\n".to_owned() + &text_of_rows),
        &job,
    );
    let k = case.privacy["k"].as_u64().unwrap() as usize;
    let l = case.privacy["l"].as_u64().map(|l| l as u32);
    let limit = case.privacy["column_limits"]["y"].as_u64();
    let limits = |l: u32| [l, limit.map_or(l, |limit| limit as u32), 0];
    let holds = |group: &[&[String; 6]]| {
        group.len() >= k && l.is_none_or(|l| !deletable(&records(group), l, &limits(l)))
    };
    let release = match found {
        Ok(release) => release,
        Err(error) => {
            prop_assert!(
                matches!(error, RunError::NotAnonymizable { .. }),
                "{}",
                error
            );
            prop_assert!(!holds(&raw.iter().collect::<Vec<_>>()));
            return Ok(());
        }
    };
    let qit = &release.tables()[0];
    let mut groups: BTreeMap<Vec<String>, Vec<&[String; 6]>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for line in lines(qit) {
        let released = split(&line);
        let number: usize = released[0].parse().unwrap();
        prop_assert!(seen.insert(number), "row {} twice", number);
        let raw = &raw[number];
        if case.output == "anatomized" {
            prop_assert_eq!(&released[..4], &raw[..4]);
            groups
                .entry(vec![released[4].clone()])
                .or_default()
                .push(raw);
        } else {
            for column in 1..4 {
                let (label, cell) = (&released[column], &raw[column]);
                prop_assert!(
                    covers(column, label, cell),
                    "{} does not cover {}",
                    label,
                    cell
                );
            }
            prop_assert_eq!(&released[4..], &raw[4..]);
            groups.entry(released[1..4].to_vec()).or_default().push(raw);
        }
    }
    prop_assert_eq!(seen.len(), raw.len());
    for (group, members) in &groups {
        prop_assert!(holds(members), "{:?} does not hold", group);
    }
    if case.output == "anatomized" {
        for (table, column) in release.tables()[1..].iter().zip([4, 5]) {
            let mut expected: BTreeMap<(u32, String), usize> = BTreeMap::new();
            for (group, members) in &groups {
                for raw in members {
                    let key = (group[0].parse().unwrap(), raw[column].clone());
                    *expected.entry(key).or_insert(0) += 1;
                }
            }
            let counted = text(table);
            let counted: Vec<&str> = counted.lines().skip(1).collect();
            let expected = expected.iter();
            let expected: Vec<String> = expected
                .map(|((group, value), count)| format!("{group},{value},{count}"))
                .collect();
            prop_assert_eq!(counted, expected);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn a_group_is_accepted_where_fewer_values_do_not_delete_it((records, l, limits) in group()) {
        prop_assert_eq!(accepts(&records, l, &limits), !deletable(&records, l, &limits));
    }

    #[test]
    fn releases_are_truthful_to_the_raw_table(case in case()) {
        check(&case)?;
    }
}
