//! Property tests of top-down specialization on small random tables, against a brute-force check of
//! Definition 3.1. The check uses only the labels of the released table and the trees.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::random_tables::{SpecializationCase, case, person_role, prepared};
use crate::test_data::{steps, verified};
use crate::{RunError, VerifiedTables};

/// A generalized table as text: rows of labels by column.
pub(crate) type LabelRows = Vec<BTreeMap<String, String>>;

const QUASI_IDENTIFIERS: [&str; 4] = ["a", "b", "f", "n"];

fn labels(release: &VerifiedTables) -> LabelRows {
    let table = &release.tables()[0];
    let row = |row: usize| {
        let cell = |column: &pais_core::table::ReleasedColumn| {
            (
                column.name.to_string(),
                column.column.text(row).unwrap_or("").to_owned(),
            )
        };
        table.columns.iter().map(cell).collect()
    };
    (0..table.rows).map(row).collect()
}

/// Definition 3.1, implemented literally, with either reading of missing sensitive cells.
pub(crate) fn holds(
    table: &LabelRows,
    case: &SpecializationCase,
    quasi_identifiers: &[&str],
) -> bool {
    let privacy = &case.job["privacy"];
    let (l, k) = (
        privacy["l"].as_u64().unwrap() as u32,
        privacy["k"].as_u64().unwrap() as usize,
    );
    for subset in 1u32..1 << quasi_identifiers.len() {
        if subset.count_ones() > l {
            continue;
        }
        let mut groups: BTreeMap<Vec<&str>, Vec<&BTreeMap<String, String>>> = BTreeMap::new();
        for row in table {
            let known = quasi_identifiers.iter().enumerate();
            let known = known.filter(|(bit, _)| subset >> bit & 1 == 1);
            groups
                .entry(known.map(|(_, name)| row[*name].as_str()).collect())
                .or_default()
                .push(row);
        }
        for group in groups.values() {
            let persons = case.persons(group.iter().map(|row| row["row"].as_str()));
            if persons < k || !is_bounded(group, &case.job) {
                return false;
            }
        }
    }
    true
}

/// Whether a group is bounded by *C*.
pub(crate) fn is_bounded(group: &[&BTreeMap<String, String>], job: &Value) -> bool {
    let privacy = &job["privacy"];
    let percent = (privacy["c"].as_f64().unwrap() * 100.0).round() as usize;
    for (column, values) in privacy["sensitive_values"].as_object().unwrap() {
        let excluded = job["missing_sensitive"] != "counted";
        let has_value = |row: &&&BTreeMap<String, String>| !excluded || !row[column].is_empty();
        let of = group.iter().filter(has_value).count();
        for value in values.as_array().unwrap() {
            let value = value.as_str().unwrap();
            let holding = group.iter().filter(|row| row[column] == value).count();
            if holding * 100 > percent * of {
                return false;
            }
        }
    }
    true
}

/// The path of labels from the root to a leaf, the root first.
fn path(tree: &Value, leaf: &str) -> Option<Vec<String>> {
    let label = tree["label"].as_str().unwrap().to_owned();
    let Some(children) = tree["children"].as_array() else {
        return (label == leaf).then(|| vec![label]);
    };
    let below = children.iter().find_map(|child| path(child, leaf))?;
    Some([vec![label], below].concat())
}

/// All generalizations of a raw cell, the most general first.
pub(crate) fn generalizations(case: &SpecializationCase, column: &str, cell: &str) -> Vec<String> {
    let columns = case.columns.as_array().unwrap();
    let spec = columns.iter().find(|spec| spec["name"] == column).unwrap();
    let leaf = if cell.is_empty() { "?" } else { cell };
    match (column, spec.get("taxonomy")) {
        (_, Some(tree)) => path(tree, leaf)
            .unwrap_or_else(|| vec![tree["label"].as_str().unwrap().to_owned(), "?".to_owned()]),
        _ => vec!["*".to_owned(), leaf.to_owned()],
    }
}

fn interval_holds(label: &str, cell: &str) -> bool {
    if cell.is_empty() {
        return label == "?";
    }
    let interval = pais_core::taxonomy::Interval::parse(label);
    interval.is_some_and(|interval| interval.contains(cell.parse().unwrap()))
}

/// All tables that result from one more specialization of a column. The intervals of `n` are split
/// at every data value.
fn specialized(case: &SpecializationCase, table: &LabelRows, column: &str) -> Vec<LabelRows> {
    let raw = |row: &BTreeMap<String, String>| {
        let at = case
            .columns
            .as_array()
            .unwrap()
            .iter()
            .position(|spec| spec["name"] == column);
        case.rows[row["row"].parse::<usize>().unwrap()][at.unwrap()].clone()
    };
    let current: BTreeSet<String> = table.iter().map(|row| row[column].clone()).collect();
    let mut tables = Vec::new();
    for value in current {
        let replaced = |new: &dyn Fn(&str) -> String| -> LabelRows {
            let replace = |row: &BTreeMap<String, String>| {
                let mut row = row.clone();
                if row[column] == value {
                    row.insert(column.to_owned(), new(&raw(&row)));
                }
                row
            };
            table.iter().map(replace).collect()
        };
        if column == "n" {
            let cells = table.iter().filter(|row| row[column] == value).map(raw);
            let numbers: BTreeSet<i64> = cells.filter_map(|cell| cell.parse().ok()).collect();
            for point in numbers.into_iter().skip(1) {
                tables.push(replaced(&|cell| match cell.parse::<i64>() {
                    Err(_) => "?".to_owned(),
                    Ok(number) if number < point => format!("{value} below {point}"),
                    Ok(_) => format!("{value} from {point}"),
                }));
            }
        } else {
            let next = |cell: &str| {
                let path = generalizations(case, column, cell);
                let at = path.iter().position(|label| *label == value).unwrap();
                path.get(at + 1).unwrap_or(&value).clone()
            };
            let table = replaced(&next);
            tables.extend(
                table
                    .iter()
                    .any(|row| !row[column].is_empty())
                    .then_some(table),
            );
        }
    }
    tables.retain(|changed| changed != table);
    tables
}

fn run(case: &SpecializationCase) -> Result<VerifiedTables, RunError> {
    let prepared = prepared(case)?;
    verified(&prepared, &steps(&prepared)?, None)
}

const WIDE: [&str; 8] = ["q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7"];

/// Many quasi-identifiers with two to four values, and an adversary who knows many of them.
fn wide_case() -> impl Strategy<Value = SpecializationCase> {
    let row = prop::collection::vec(0..12u8, WIDE.len() + 2);
    let rows = prop::collection::vec(row, 8..120);
    let bound = prop::sample::select(vec![0.4, 0.5, 0.75, 1.0]);
    let reading = prop::sample::select(vec!["excluded", "counted"]);
    let model = (3..8u32, 1..4u32, bound, reading, person_role());
    (rows, model).prop_map(|(rows, (l, k, c, reading, person))| {
        let declared = |name: &&str| json!({"name": name, "role": "quasi_identifier"});
        let mut columns = vec![json!({"name": "row", "role": "insensitive"})];
        columns.extend(WIDE.iter().map(declared));
        columns.push(json!({"name": "s", "role": "sensitive"}));
        columns.push(json!({"name": "person", "role": person}));
        let rows = rows.into_iter().enumerate().map(|(row, drawn)| {
            let mut cells = vec![row.to_string()];
            let (who, drawn) = drawn.split_last().unwrap();
            let person = format!("p{}", row / 2 + usize::from(*who));
            for (column, drawn) in drawn.iter().enumerate() {
                // Each of the last columns has a rare value.
                let value = match column {
                    0..=4 => drawn % (2 + column as u8 % 3),
                    5..=7 => drawn / 9,
                    _ => drawn % 4,
                };
                let is_missing = column == WIDE.len() && value == 3;
                cells.push(if is_missing {
                    String::new()
                } else {
                    format!("v{value}")
                });
            }
            cells.push(person);
            cells
        });
        SpecializationCase {
            columns: columns.into(),
            rows: rows.collect(),
            job: json!({
                "privacy": {"model": "lkc", "l": l, "k": k, "c": c,
                            "sensitive_values": {"s": ["v0", "v1"]}},
                "utility": {"objective": "ncp"},
                "missing_sensitive": reading,
            }),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn wide_tables_are_private_and_not_too_general_on_any_number_of_threads(case in wide_case()) {
        let Ok(prepared) = prepared(&case).and_then(|prepared| {
            steps(&prepared)?;
            Ok(prepared)
        }) else {
            return Ok(());
        };
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| steps(&prepared)).unwrap()
        };
        let performed = on(1);
        prop_assert_eq!(&performed, &on(4), "the result depends on the number of threads");
        let table = labels(&verified(&prepared, &performed, None).unwrap());
        prop_assert!(holds(&table, &case, &WIDE));
        for column in WIDE {
            for more in specialized(&case, &table, column) {
                prop_assert!(!holds(&more, &case, &WIDE), "{} could be specialized", column);
            }
        }
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads(case in case()) {
        let Ok(prepared) = prepared(&case) else { return Ok(()) };
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| steps(&prepared))
        };
        match (on(1), on(4)) {
            (Ok(one), Ok(four)) => prop_assert_eq!(one, four),
            (one, four) => prop_assert_eq!(one.is_err(), four.is_err()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn releases_are_private_truthful_and_not_too_general(case in case()) {
        let limit = case.job["suppression_limit"].as_f64().unwrap();
        let release = match run(&case) {
            Ok(release) => release,
            Err(error) => {
                prop_assert!(matches!(error, RunError::NotAnonymizable { .. }), "{}", error);
                // Only a table whose topmost values violate the requirement is refused.
                let topmost = |(row, cells): (usize, &Vec<String>)| {
                    let mut labels: BTreeMap<String, String> =
                        QUASI_IDENTIFIERS.iter().map(|name| ((*name).to_owned(), "*".to_owned())).collect();
                    labels.insert("row".to_owned(), row.to_string());
                    labels.insert("s".to_owned(), cells[5].clone());
                    labels.insert("t".to_owned(), cells[6].clone());
                    labels
                };
                let topmost: LabelRows = case.rows.iter().enumerate().map(topmost).collect();
                prop_assert!(!holds(&topmost, &case, &QUASI_IDENTIFIERS));
                return Ok(());
            }
        };
        let table = labels(&release);

        prop_assert!(holds(&table, &case, &QUASI_IDENTIFIERS));

        let rows: BTreeSet<usize> = table.iter().map(|row| row["row"].parse().unwrap()).collect();
        prop_assert_eq!(rows.len(), table.len(), "a row is duplicated");
        prop_assert_eq!(table.len() as u64 + release.suppressed_rows, case.rows.len() as u64);
        prop_assert!(release.suppressed_rows as f64 <= limit * case.rows.len() as f64 + 1e-9);

        for row in &table {
            let raw = &case.rows[row["row"].parse::<usize>().unwrap()];
            for (column, cell) in [("a", &raw[1]), ("b", &raw[2]), ("f", &raw[3])] {
                prop_assert!(generalizations(&case, column, cell).contains(&row[column]));
            }
            let whole = release.cut().unwrap()["n"].len() == 1;
            prop_assert!(whole || interval_holds(&row["n"], &raw[4]), "{} in {}", raw[4], row["n"]);
            for (column, at) in [("s", 5), ("t", 6), ("class", 7)] {
                prop_assert_eq!(&row[column], &raw[at]);
            }
        }

        // Each column has one cut: exactly one generalization of each raw value is in the column.
        for (column, at) in [("a", 1), ("b", 2), ("f", 3)] {
            let released: BTreeSet<&String> = table.iter().map(|row| &row[column]).collect();
            for row in &table {
                let cell = &case.rows[row["row"].parse::<usize>().unwrap()][at];
                let path = generalizations(&case, column, cell);
                prop_assert_eq!(path.iter().filter(|label| released.contains(label)).count(), 1);
            }
        }

        let best_valid = case.job["utility"]["split"] == "best_valid";
        for column in QUASI_IDENTIFIERS.into_iter().filter(|column| *column != "n" || best_valid) {
            for more in specialized(&case, &table, column) {
                prop_assert!(!holds(&more, &case, &QUASI_IDENTIFIERS), "{} could be specialized", column);
            }
        }
    }
}
