//! Releases of columns of dates: labels are intervals of dates that cover the raw ones.

use std::collections::HashMap;
use std::sync::Arc;

use pais_anonymize::{AnonymizationRun, RunError, Unobserved, VerifiedRelease};
use pais_core::cancellation::Cancellation;
use pais_core::definition::JobDefinition;
use pais_core::schema::Schema;
use pais_io::read::csv;
use pais_verify::{ReleaseTables, verify_release};
use proptest::prelude::*;
use serde_json::{Value, json};

fn schema(columns: Value) -> Schema {
    let definition = json!({"name": "t", "columns": columns});
    Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap()
}

/// Makes a release, which the gate has accepted, and has it verified beside the raw rows.
fn release(schema: &Schema, file: &str, job: &Value) -> Result<VerifiedRelease, RunError> {
    let job: JobDefinition = serde_json::from_value(job.clone()).unwrap();
    let mut job = job.parse()?;
    // The tests find raw rows again by their numbers.
    let columns = schema.columns.iter().map(|column| column.name());
    job.acknowledged = columns.map(|name| (name.into(), "a test".into())).collect();
    let raw = csv::read_table(schema, file.as_bytes()).unwrap();
    let observer = Unobserved::default();
    let shared = Arc::new(schema.clone());
    let run = AnonymizationRun::new(shared, job.clone(), raw.clone(), &observer)?;
    let steps = run.search(&observer)?;
    let release = run.release(&steps, None, &observer)?;
    let cancellation = Cancellation::new();
    let tables = match release.tables() {
        [data] => ReleaseTables::Generalized(data.clone()),
        [qit, counts @ ..] => ReleaseTables::Anatomized {
            qit: qit.clone(),
            counts: counts.to_vec(),
        },
        [] => panic!("a release has a table"),
    };
    let found = verify_release(schema, &job, &tables, Some(raw), &cancellation);
    assert!(found.unwrap().holds());
    Ok(release)
}

/// The released cells of each row, by the number in the column `row`.
fn rows(release: &VerifiedRelease) -> HashMap<usize, Vec<String>> {
    let table = &release.tables()[0];
    let text = |column: usize, row: usize| {
        let column = &table.columns[column].column;
        column.text(row).unwrap_or_default().to_owned()
    };
    let columns = table.columns.len();
    let cells = |row| (1..columns).map(|column| text(column, row)).collect();
    (0..table.rows)
        .map(|row| (text(0, row).parse().unwrap(), cells(row)))
        .collect()
}

/// Whether a label covers a raw cell of ISO 8601, decided from their texts alone: dates in one form
/// are ordered as their text is.
fn covers(label: &str, raw: &str) -> bool {
    let Some(range) = label.strip_prefix('[') else {
        return label == "*" || label == raw || (label == "?" && raw.is_empty());
    };
    let closed = range.ends_with(']');
    let (lo, hi) = range.trim_end_matches([']', ')']).split_once(',').unwrap();
    // A missing cell is covered by an interval that covers all others, as the verifier checks.
    raw.is_empty() || (lo <= raw && (raw < hi || (closed && raw == hi)))
}

/// Birth dates from 1930 to 2009, the same in every run.
fn birth_dates() -> Vec<String> {
    let mut state = 7u64;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    (0..500)
        .map(|_| {
            format!(
                "{:04}-{:02}-{:02}",
                1930 + draw(80),
                1 + draw(12),
                1 + draw(28)
            )
        })
        .collect()
}

/// The NCP of 500 birth dates is far below that of releasing a century for everybody.
#[test]
fn birth_dates_are_released_as_intervals_of_some_months() {
    let dates = birth_dates();
    let rows_of = |(row, date): (usize, &String)| format!("{row},{date}\n");
    let lines: String = dates.iter().enumerate().map(rows_of).collect();
    let file = format!("row,born\n{lines}");
    let schema = schema(json!([
        {"name": "row", "role": "insensitive"},
        {"name": "born", "role": "quasi_identifier", "kind": "date"},
    ]));
    for recoding in ["global", "local"] {
        let job = json!({"privacy": {"model": "k_anonymity", "k": 5}, "recoding": recoding,
            "utility": {"objective": "ncp"}, "seed": 1});
        let release = release(&schema, &file, &job).unwrap();
        let released = rows(&release);
        assert_eq!(released.len(), 500);
        let mut classes: HashMap<&str, usize> = HashMap::new();
        for (row, cells) in &released {
            assert!(
                covers(&cells[0], &dates[*row]),
                "{} {}",
                cells[0],
                dates[*row]
            );
            *classes.entry(&cells[0]).or_default() += 1;
        }
        assert!(classes.values().all(|rows| *rows >= 5));
        // At best a class of 5 of 500 dates over 80 years spans ten months, which is 0.01.
        let ncp = json!(release.report())["utility"]["ncp"].as_f64().unwrap();
        assert!((0.005..0.03).contains(&ncp), "{recoding} {ncp}");
        assert!(classes.len() > 50, "{recoding} {}", classes.len());
    }
}

/// Of four dates two years apart each half is released: computed by hand.
#[test]
fn intervals_of_dates_are_half_open_and_the_last_is_closed() {
    let schema = schema(json!([
        {"name": "row", "role": "insensitive"},
        {"name": "born", "role": "quasi_identifier", "kind": "date", "format": "%d.%m.%Y"},
        {"name": "seen", "role": "quasi_identifier", "kind": "datetime",
         "domain": ["2020-01-01", "2020-12-31T23:59:59"]},
    ]));
    let file = "row,born,seen\n0,03.09.1987,2020-05-01T10:00\n1,24.12.1987,2020-05-01T10:00\n\
                2,29.02.1988,2020-05-01T10:00\n3,1.1.1990,2020-05-01T10:00\n";
    let labels = |recoding: &str| {
        let job = json!({"privacy": {"model": "k_anonymity", "k": 2}, "recoding": recoding});
        let released = rows(&release(&schema, file, &job).unwrap());
        [released[&0].clone(), released[&3].clone()]
    };
    let whole = "[2020-01-01T00:00:00,2020-12-31T23:59:59]";
    assert_eq!(
        labels("global"),
        [
            ["[1987-09-03,1988-02-29)", whole],
            ["[1988-02-29,1990-01-01]", whole],
        ]
    );
    let moment = "2020-05-01T10:00:00";
    assert_eq!(
        labels("local"),
        [
            ["[1987-09-03,1987-12-24]", moment],
            ["[1988-02-29,1990-01-01]", moment],
        ]
    );
}

/// NCP is measured by width: over the declared domain, else over the released range.
#[test]
fn ncp_of_dates_is_by_width() {
    let file = "row,born\n0,1987-01-01\n1,1987-01-11\n2,1987-01-21\n3,1987-04-01\n4,1987-04-11\n";
    for (domain, expected) in [
        // Two dates in [01-01,01-21), 20 of 100 days, and three in [01-21,04-11].
        (json!(null), (2.0 * 0.2 + 3.0 * 0.8) / 5.0),
        // 30 and 170 of the 200 days of the domain.
        (
            json!(["1986-12-22", "1987-07-10"]),
            (2.0 * 0.15 + 3.0 * 0.85) / 5.0,
        ),
    ] {
        let schema = schema(json!([
            {"name": "row", "role": "insensitive"},
            {"name": "born", "role": "quasi_identifier", "kind": "date", "domain": domain},
        ]));
        let job = json!({"privacy": {"model": "k_anonymity", "k": 2}});
        let release = release(&schema, file, &job).unwrap();
        let ncp = json!(release.report())["utility"]["ncp"].as_f64().unwrap();
        assert!((ncp - expected).abs() < 1e-12, "{ncp} {expected}");
    }
}

#[test]
fn a_rounded_range_of_dates_is_of_whole_years() {
    let schema = schema(json!([
        {"name": "row", "role": "insensitive"},
        {"name": "born", "role": "quasi_identifier", "kind": "date", "round_range": true},
        {"name": "seen", "role": "quasi_identifier", "kind": "datetime", "round_range": true},
    ]));
    let file = "row,born,seen\n0,1987-09-03,2020-05-01T10:00\n1,1990-01-01,2020-06-01T10:00\n";
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}, "recoding": "global"});
    let released = rows(&release(&schema, file, &job).unwrap());
    let expected = [
        "[1987-01-01,1990-12-31]",
        "[2020-01-01T00:00:00,2020-12-31T23:59:59.999]",
    ];
    assert_eq!(released[&0], expected);
}

/// An anatomized table has the exact dates of quasi-identifiers, in their one form.
#[test]
fn anatomized_dates_are_exact() {
    let schema = schema(json!([
        {"name": "row", "role": "insensitive"},
        {"name": "born", "role": "quasi_identifier", "kind": "date", "format": "%d.%m.%Y"},
        {"name": "illness", "role": "sensitive"},
    ]));
    let file = "row,born,illness\n0,3.9.1987,a\n1,24.12.1987,b\n2,29.02.1988,a\n3,1.1.1990,b\n";
    let job = json!({"privacy": {"model": "l_diversity", "k": 2, "l": 2}});
    let released = rows(&release(&schema, file, &job).unwrap());
    let dates: Vec<&str> = (0..4).map(|row| released[&row][0].as_str()).collect();
    let expected = ["1987-09-03", "1987-12-24", "1988-02-29", "1990-01-01"];
    assert_eq!(dates, expected);
}

/// An interval of one date is written as that date, which would be said of missing cells too.
#[test]
fn the_only_date_is_not_said_of_missing_cells() {
    let schema = schema(json!([
        {"name": "row", "role": "insensitive"},
        {"name": "born", "role": "quasi_identifier", "kind": "date"},
    ]));
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}, "recoding": "global"});
    let released = |file| rows(&release(&schema, file, &job).unwrap());
    let one = released("row,born\n0,\n1,1980-01-01\n2,\n3,\n");
    assert!((0..4).all(|row| one[&row] == ["*"]));
    let two = released("row,born\n0,\n1,1980-01-01\n2,\n3,1980-01-01\n");
    assert!([0, 2].iter().all(|row| two[row] == ["?"]));
    assert!([1, 3].iter().all(|row| two[row] == ["1980-01-01"]));
}

fn day() -> impl Strategy<Value = String> {
    let day = (1980i32..1984, 1u32..13, 1u32..29);
    let day = day.prop_map(|(year, month, day)| format!("{year}-{month:02}-{day:02}"));
    prop_oneof![1 => Just(String::new()), 9 => day]
}

fn moment() -> impl Strategy<Value = String> {
    let moment = (1u32..4, 0u32..3, 0u32..3);
    let moment =
        moment.prop_map(|(day, hour, second)| format!("2020-02-0{day}T0{hour}:00:0{second}"));
    prop_oneof![1 => Just(String::new()), 9 => moment]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn random_dates_are_covered_in_classes_of_k(
        cells in prop::collection::vec((day(), moment(), "[ab]"), 4..40),
        k in 2usize..5,
        local in any::<bool>(),
        with_set in any::<bool>(),
    ) {
        let schema = schema(json!([
            {"name": "row", "role": "insensitive"},
            {"name": "born", "role": "quasi_identifier", "kind": "date"},
            {"name": "seen", "role": "quasi_identifier", "kind": "datetime"},
            {"name": "items", "kind": "set",
             "role": if with_set && !local { "quasi_identifier" } else { "insensitive" }},
        ]));
        let line = |(row, (born, seen, item)): (usize, &(String, String, String))| {
            format!("{row},{born},{seen},{item}\n")
        };
        let lines: String = cells.iter().enumerate().map(line).collect();
        let recoding = if local { "local" } else { "global" };
        let job = json!({"privacy": {"model": "k_anonymity", "k": k}, "recoding": recoding});
        let release = match release(&schema, &format!("row,born,seen,items\n{lines}"), &job) {
            Err(RunError::NotAnonymizable { .. }) => return Ok(()),
            release => release.unwrap(),
        };
        let released = rows(&release);
        prop_assert_eq!(released.len(), cells.len());
        let mut classes: HashMap<&[String], usize> = HashMap::new();
        for (row, labels) in &released {
            let (born, seen, _) = &cells[*row];
            prop_assert!(covers(&labels[0], born), "{} {}", labels[0], born);
            prop_assert!(covers(&labels[1], seen), "{} {}", labels[1], seen);
            *classes.entry(&labels[..2]).or_default() += 1;
        }
        prop_assert!(classes.values().all(|rows| *rows >= k));
    }
}
