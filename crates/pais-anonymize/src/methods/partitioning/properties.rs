//! Properties of groups on random small tables: a group is accepted exactly where an exhaustive
//! search over all sets of values accepts it, and released tables are truthful to the raw table.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use pais_core::table::NULL_CODE;

use crate::RunError;

use super::condition::tests::accepts;
use super::tests::{lines, run, text};

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
fn split(line: &str) -> Vec<String> {
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
    let found = run(
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

/// Whether the values of a group in a table with these values meet a model of one column.
fn meets_model(model: &Value, group: &[&str], table: &[&str]) -> bool {
    let share = |values: &[&str], value: &str| {
        let holding = values.iter().filter(|it| **it == value).count();
        holding as f64 / values.len() as f64
    };
    let known: Vec<&str> = group
        .iter()
        .copied()
        .filter(|value| !value.is_empty())
        .collect();
    let distinct: BTreeSet<&str> = known.iter().copied().collect();
    let mut shares: Vec<f64> = distinct.iter().map(|value| share(&known, value)).collect();
    shares.sort_by(|one, other| other.total_cmp(one));
    let number = |name: &str| model[name].as_f64().unwrap_or(f64::NAN);
    let l = number("l");
    match model["model"].as_str().unwrap() {
        "distinct_l_diversity" => distinct.len() as f64 >= l,
        "entropy_l_diversity" => {
            let entropy: f64 = shares.iter().map(|share| -share * share.ln()).sum();
            !known.is_empty() && entropy >= l.ln() - 1e-6
        }
        "recursive_cl_diversity" => {
            let tail: f64 = shares.iter().skip(l as usize - 1).sum();
            !known.is_empty() && shares[0] < number("c") * tail + 1e-9
        }
        _ => {
            let distance = |group: &[&str], table: &[&str]| {
                let values: BTreeSet<&str> = table.iter().copied().collect();
                let differences = values
                    .iter()
                    .map(|value| (share(group, value) - share(table, value)).abs());
                differences.sum::<f64>() / 2.0
            };
            let t = number("t") + 1e-9;
            let is_known = |value: &&str| !value.is_empty();
            let table_known: Vec<&str> = table.iter().copied().filter(is_known).collect();
            distance(group, table) <= t && (known.is_empty() || distance(&known, &table_known) <= t)
        }
    }
}

fn one_column() -> impl Strategy<Value = (Vec<(usize, usize)>, Value, &'static str)> {
    let row = (0..30usize, prop_oneof![9 => 0..4usize, 1 => Just(9usize)]);
    let l = prop::sample::select(vec![1u32, 2, 3]);
    let model = (2u32..5, l, 0..4usize).prop_map(|(k, l, model)| match model {
        0 => json!({"model": "distinct_l_diversity", "k": k, "l": l}),
        1 => json!({"model": "entropy_l_diversity", "k": k, "l": f64::from(l) * 0.8 + 0.2}),
        2 => json!({"model": "recursive_cl_diversity", "k": k, "c": 1.7, "l": l}),
        _ => json!({"model": "t_closeness", "k": k, "t": 0.15 * f64::from(l)}),
    });
    let output = prop::sample::select(vec!["anatomized", "generalized"]);
    (prop::collection::vec(row, 5..70), model, output).prop_map(|(rows, model, output)| {
        // Anatomized output needs a diversity that binds.
        let output = match model["l"].as_f64().is_some_and(|l| l <= 1.0) {
            true => "generalized",
            false => output,
        };
        (rows, model, output)
    })
}

fn check_one_column(
    rows: &[(usize, usize)],
    privacy: &Value,
    output: &str,
) -> Result<(), TestCaseError> {
    let columns = json!([
        {"name": "row", "role": "insensitive"},
        {"name": "n", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "s", "role": "sensitive"},
    ]);
    let value = |&(_, value): &(usize, usize)| match value {
        9 => String::new(),
        value => format!("s{value}"),
    };
    let values: Vec<String> = rows.iter().map(value).collect();
    let all: Vec<&str> = values.iter().map(String::as_str).collect();
    let lines_of_rows = rows.iter().zip(&all).enumerate();
    let text: String = lines_of_rows
        .map(|(number, ((n, _), value))| format!("{number},{n},{value}\n"))
        .collect();
    let job = json!({"privacy": privacy, "output": output});
    let release = match run(&columns, &("row,n,s\n".to_owned() + &text), &job) {
        Ok(release) => release,
        Err(error) => {
            prop_assert!(
                matches!(error, RunError::NotAnonymizable { .. }),
                "{}",
                error
            );
            let k = privacy["k"].as_u64().unwrap() as usize;
            prop_assert!(rows.len() < k || !meets_model(privacy, &all, &all));
            return Ok(());
        }
    };
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for line in lines(&release.tables()[0]) {
        let cells = split(&line);
        let group = if output == "anatomized" {
            &cells[2]
        } else {
            &cells[1]
        };
        groups
            .entry(group.clone())
            .or_default()
            .push(all[cells[0].parse::<usize>().unwrap()]);
    }
    for (group, members) in &groups {
        prop_assert!(
            meets_model(privacy, members, &all),
            "{} does not hold",
            group
        );
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
    fn groups_meet_the_frequency_models((rows, privacy, output) in one_column()) {
        check_one_column(&rows, &privacy, output)?;
    }

    #[test]
    fn releases_are_truthful_to_the_raw_table(case in case()) {
        check(&case)?;
    }
}
