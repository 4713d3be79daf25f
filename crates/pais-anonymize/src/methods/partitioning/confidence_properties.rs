//! LKC-privacy by local recoding on random small tables: every raw qid, of any length, matches at
//! least K released rows and none lets a bounded value be inferred with more than C.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::RunError;

use super::properties::split;
use super::tests::{lines, verified};

/// Raw cells: two quasi-identifiers with labels, one of numbers, two sensitive columns; 9 is
/// missing.
type RawRow = [usize; 5];

#[derive(Clone, Debug)]
struct Case {
    rows: Vec<RawRow>,
    k: usize,
    c: f64,
    /// Values of `x`, and of `y`; every value of both where `None`.
    listed: Option<(Vec<usize>, Vec<usize>)>,
    counted: bool,
    objective: &'static str,
}

const LEAVES: [&str; 5] = ["t0", "t1", "t2", "t3", "t4"];

fn columns() -> Value {
    json!([
        {"name": "t", "role": "quasi_identifier", "taxonomy": {"label": "any", "children": [
            {"label": "low", "children": [{"label": "t0"}, {"label": "t1"}]},
            {"label": "high", "children": [{"label": "t2"}, {"label": "t3"}, {"label": "t4"}]}]}},
        {"name": "f", "role": "quasi_identifier"},
        {"name": "n", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 100]},
        {"name": "x", "role": "sensitive"},
        {"name": "y", "role": "sensitive"},
        {"name": "c", "role": "class"},
    ])
}

fn case() -> impl Strategy<Value = Case> {
    let cell = |values: usize| prop_oneof![14 => 0..values, 1 => Just(9usize)];
    let row = [cell(5), cell(4), cell(9), cell(5), cell(4)];
    let values = || prop::collection::vec(0usize..4, 1..3);
    let models = (
        1usize..5,
        prop::sample::select(vec![0.3, 0.5, 0.6, 0.75, 1.0]),
        prop::option::of((values(), values())),
        any::<bool>(),
        prop::sample::select(vec!["ncp", "discernibility", "classification"]),
    );
    (prop::collection::vec(row, 4..70), models).prop_map(
        |(rows, (k, c, listed, counted, objective))| Case {
            rows,
            // A model that binds nothing is refused.
            k: if c == 1.0 { k.max(2) } else { k },
            c,
            listed,
            counted,
            objective,
        },
    )
}

impl Case {
    fn job(&self) -> Value {
        let mut privacy = json!({"model": "lkc", "l": 2, "k": self.k, "c": self.c});
        if let Some((x, y)) = &self.listed {
            let names = |column: &str, values: &[usize]| {
                let values: std::collections::BTreeSet<_> = values.iter().collect();
                let names = values.iter().map(|value| format!("{column}{value}"));
                names.collect::<Vec<_>>()
            };
            privacy["sensitive_values"] = json!({"x": names("x", x), "y": names("y", y)});
        }
        let reading = if self.counted { "counted" } else { "excluded" };
        let mut job = json!({"privacy": privacy, "recoding": "local",
            "utility": {"objective": self.objective}});
        // Without a bound there is nothing to count.
        if self.c < 1.0 {
            job["missing_sensitive"] = reading.into();
        }
        job
    }

    fn file(&self) -> String {
        let text = |column: usize, cell: usize| match (column, cell) {
            (_, 9) => String::new(),
            (0, cell) => LEAVES[cell].to_owned(),
            (2, cell) => (cell * cell).to_string(),
            (column, cell) => format!("{}{cell}", ["t", "f", "n", "x", "y"][column]),
        };
        let line = |(number, row): (usize, &RawRow)| {
            let cells: Vec<String> = (0..5).map(|column| text(column, row[column])).collect();
            format!("{},c{}\n", cells.join(","), number % 2)
        };
        let lines: String = self.rows.iter().enumerate().map(line).collect();
        format!("t,f,n,x,y,c\n{lines}")
    }

    /// Whether these sensitive cells meet the model.
    fn holds(&self, matching: &[(&str, &str)]) -> bool {
        let columns: [Vec<&str>; 2] = [
            matching.iter().map(|(x, _)| *x).collect(),
            matching.iter().map(|(_, y)| *y).collect(),
        ];
        let bounded = |column: usize, value: usize| match &self.listed {
            None => true,
            Some((x, y)) => [x, y][column].contains(&value),
        };
        let within = |column: usize| {
            let cells = &columns[column];
            let known = cells.iter().filter(|cell| !cell.is_empty()).count();
            let of = if self.counted { cells.len() } else { known };
            (0..5).filter(|&value| bounded(column, value)).all(|value| {
                let name = format!("{}{value}", ["x", "y"][column]);
                let holding = cells.iter().filter(|cell| **cell == name).count();
                // As decimals: the bounds have at most two digits.
                holding * 100 <= (self.c * 100.0).round() as usize * of
            })
        };
        matching.len() >= self.k && within(0) && within(1)
    }
}

/// Whether a released label covers a raw value, from their texts alone.
fn covers(column: usize, label: &str, raw: &str) -> bool {
    match (column, label) {
        (0, "any") | (1, "*") | (2, "[0,100]") => true,
        (0, "low") => ["t0", "t1"].contains(&raw),
        (0, "high") => ["t2", "t3", "t4"].contains(&raw),
        (2, label) if raw != "?" && label.starts_with('[') => {
            let number = |text: &str| text.parse::<f64>().unwrap();
            let (lo, hi) = label.trim_matches(['[', ']']).split_once(',').unwrap();
            number(lo) <= number(raw) && number(raw) <= number(hi)
        }
        _ => label == raw,
    }
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let release = match verified(&columns(), &case.file(), &case.job()) {
        Ok(release) => release,
        Err(error) => {
            let unmet = matches!(error, RunError::NotAnonymizable { .. });
            prop_assert!(unmet, "{}", error);
            let cell = |column: &str, cell: usize| match cell {
                9 => String::new(),
                cell => format!("{column}{cell}"),
            };
            let cells = case
                .rows
                .iter()
                .map(|row| (cell("x", row[3]), cell("y", row[4])));
            let cells: Vec<_> = cells.collect();
            let cells: Vec<_> = cells
                .iter()
                .map(|(x, y)| (x.as_str(), y.as_str()))
                .collect();
            prop_assert!(!case.holds(&cells), "the whole table meets the model");
            return Ok(());
        }
    };
    let released: Vec<Vec<String>> = lines(&release.tables()[0])
        .iter()
        .map(|line| split(line))
        .collect();
    prop_assert_eq!(released.len(), case.rows.len());
    let raw: [Vec<String>; 3] = [
        LEAVES
            .iter()
            .map(|&leaf| leaf.to_owned())
            .chain(["?".to_owned()])
            .collect(),
        (0..4)
            .map(|value| format!("f{value}"))
            .chain(["?".to_owned()])
            .collect(),
        // The numbers of the table and one between each two of them.
        (0..129)
            .map(|half| (half as f64 / 2.0).to_string())
            .chain(["?".to_owned()])
            .collect(),
    ];
    // By column and raw value, the released rows that it matches.
    let matches: [Vec<Vec<bool>>; 3] = [0, 1, 2].map(|column| {
        let of_raw = |raw: &String| {
            released
                .iter()
                .map(|row| covers(column, &row[column], raw))
                .collect()
        };
        raw[column].iter().map(of_raw).collect()
    });
    let all = vec![true; released.len()];
    let choices = |column: usize| std::iter::once(&all).chain(&matches[column]);
    for t in choices(0) {
        for f in choices(1) {
            for n in choices(2) {
                let matching = (0..released.len()).filter(|&row| t[row] && f[row] && n[row]);
                let cell = |row: usize| (released[row][3].as_str(), released[row][4].as_str());
                let matching: Vec<_> = matching.map(cell).collect();
                prop_assert!(matching.is_empty() || case.holds(&matching));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn no_raw_qid_of_any_length_violates_a_local_release(case in case()) {
        check(&case)?;
    }
}
