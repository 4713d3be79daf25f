//! Compares the suppression of a search with a plain implementation of the same rule.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::{Value, json};

use super::super::search::suppression_reference::with_reference;
use super::random_tables::{SpecializationCase, case, person_role, prepared};
use crate::test_data::steps;

const COLUMNS: usize = 6;

/// A value of a column, with a tree over four values.
fn column(name: &str) -> Value {
    let leaf = |value: u8| json!({"label": format!("v{value}")});
    let pair = |first: u8| json!({"label": format!("{name}-{first}"), "children": [leaf(first), leaf(first + 1)]});
    json!({"name": name, "role": "quasi_identifier",
           "taxonomy": {"label": format!("{name}-any"), "children": [pair(0), pair(2)]}})
}

/// More columns than an adversary knows, with rare values and room to suppress their rows.
pub(super) fn wide_case() -> impl Strategy<Value = SpecializationCase> {
    let row = prop::collection::vec(0..16u8, COLUMNS + 3);
    let rows = prop::collection::vec(row, 20..140);
    let objective = vec![
        "classification",
        "discernibility",
        "discernibility_eq4",
        "ncp",
    ];
    let model = (
        1..=COLUMNS as u32,
        2..7u32,
        prop::sample::select(vec![0.3, 0.5, 0.75, 1.0]),
        prop::sample::select(vec![0.05, 0.2, 0.5]),
    );
    let readings = (
        prop::sample::select(objective),
        prop::sample::select(vec!["size", "size_and_confidence"]),
        prop::sample::select(vec!["excluded", "counted"]),
        person_role(),
        prop::sample::select(vec!["fixed", "best_valid"]),
    );
    (rows, model, readings).prop_map(|(rows, (l, k, c, limit), readings)| {
        let (objective, suppression_for, missing, person, split) = readings;
        let names: Vec<String> = (0..COLUMNS).map(|column| format!("q{column}")).collect();
        let mut columns = vec![json!({"name": "row", "role": "insensitive"})];
        columns.extend(names[1..].iter().map(|name| column(name)));
        columns.push(json!({"name": "q0", "role": "quasi_identifier", "kind": "numeric"}));
        columns.push(json!({"name": "s", "role": "sensitive"}));
        columns.push(json!({"name": "class", "role": "class"}));
        columns.push(json!({"name": "person", "role": person}));
        let cells = |(row, drawn): (usize, Vec<u8>)| {
            let mut cells = vec![row.to_string()];
            // The values of a column are not equally frequent.
            let value = |&drawn: &u8| {
                format!(
                    "v{}",
                    [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3][drawn as usize]
                )
            };
            cells.extend(drawn[1..COLUMNS].iter().map(value));
            cells.push(drawn[0].to_string());
            cells.push(match drawn[COLUMNS] {
                0 => String::new(),
                drawn => format!("s{}", drawn % 4),
            });
            cells.push(format!("c{}", drawn[COLUMNS + 1] % 2));
            cells.push(format!(
                "p{}",
                row / 2 + usize::from(drawn[COLUMNS + 2] % 3)
            ));
            cells
        };
        SpecializationCase {
            columns: columns.into(),
            rows: rows.into_iter().enumerate().map(cells).collect(),
            job: json!({
                "privacy": {"model": "lkc", "l": l, "k": k, "c": c,
                            "sensitive_values": {"s": ["s0", "s1"]}},
                "utility": {"objective": objective, "split": split},
                "suppression_limit": limit, "suppression_for": suppression_for,
                "missing_sensitive": missing, "seed": 1,
            }),
        }
    })
}

/// Compares the steps with all their figures, and the suppressed rows.
fn agrees(case: &SpecializationCase) -> Result<(), TestCaseError> {
    let Ok(prepared) = prepared(case) else {
        return Ok(());
    };
    let found = steps(&prepared);
    let expected = with_reference(|| steps(&prepared));
    match (found, expected) {
        (Ok(found), Ok(expected)) => prop_assert_eq!(found, expected),
        (found, expected) => prop_assert_eq!(found.is_err(), expected.is_err()),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn small_tables_suppress_what_the_reference_suppresses(
        case in case(),
        limit in prop::sample::select(vec![0.1, 0.3, 0.6]),
    ) {
        let mut case = case;
        case.job["suppression_limit"] = json!(limit);
        agrees(&case)?;
    }

    #[test]
    fn wide_tables_suppress_what_the_reference_suppresses(case in wide_case()) {
        agrees(&case)?;
    }
}

/// The comparison above says nothing unless rows are suppressed in several steps.
#[test]
fn many_of_the_compared_searches_suppress_rows() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let suppresses = (0..60).filter(|_| {
        let case = wide_case().new_tree(&mut runner).unwrap().current();
        let steps = prepared(&case).and_then(|run| steps(&run));
        let steps = steps.unwrap_or_default();
        let suppressing = steps.iter().filter(|step| !step.suppressed.is_empty());
        suppressing.count() > 1
    });
    let number = suppresses.count();
    assert!(number >= 15, "{number} of 60");
}
