//! Verification while rows are read: it finds what the one with all rows in memory finds, in true releases
//! and in others.

use std::fmt::Write;

use pais_core::cancellation::Cancellation;
use pais_core::definition::{DatasetDefinition, Job, JobDefinition, json};
use pais_core::reimport;
use pais_core::schema::Schema;
use pais_core::table::ReleasedTable;
use pais_io::read::{TextFormat, csv};
use proptest::prelude::*;
use proptest::sample::Index;

use super::{
    FoundRecoding, ReleaseError, ReleaseTables, ReleaseVerification, StreamedVerification,
    verify_release,
};

/// The columns of a record, raw or released.
const COLUMNS: usize = 7;

/// Their names.
const HEADER: &str = "job,age,city,ill,class,cost,ward";

/// Place of the sensitive column.
const ILL: usize = 3;

type Record = [String; COLUMNS];

/// Jobs in the order of the taxonomy: two blue, two white.
const JOBS: [&str; 4] = ["Mover", "Janitor", "Doctor", "Lawyer"];

fn schema(declared: bool) -> Schema {
    let domain = if declared {
        r#", "domain": [0, 30]"#
    } else {
        ""
    };
    let text = r#"{"name": "t", "columns": [
        {"name": "job", "role": "quasi_identifier", "taxonomy": {"label": "ANY", "children": [
            {"label": "Blue", "children": [{"label": "Mover"}, {"label": "Janitor"}]},
            {"label": "White", "children": [{"label": "Doctor"}, {"label": "Lawyer"}]}]}},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"DOMAIN},
        {"name": "city", "role": "quasi_identifier"},
        {"name": "ill", "role": "sensitive", "missing": ["", "NA"]},
        {"name": "class", "role": "class"},
        {"name": "cost", "role": "insensitive", "kind": "numeric"},
        {"name": "ward", "role": "insensitive"}]}"#;
    let dataset: DatasetDefinition =
        json::parse(text.replace("DOMAIN", domain).as_bytes()).unwrap();
    Schema::inline(&dataset).unwrap()
}

/// A raw record; the last number of a column is a missing cell.
fn raw_record() -> impl Strategy<Value = Record> {
    let numbers = (
        0..5usize,
        0..13u32,
        0..4usize,
        0..5usize,
        0..3usize,
        0..8u32,
        0..4usize,
    );
    numbers.prop_map(|(job, age, city, ill, class, cost, ward)| {
        let number = |value: u32, missing: u32| match value {
            value if value == missing => String::new(),
            value => value.to_string(),
        };
        [
            JOBS.get(job).copied().unwrap_or_default().to_owned(),
            number(age * 2, 24),
            ["Rome", "Bonn", "Oslo", ""][city].to_owned(),
            ["flu", "hiv", "cold", "NA", ""][ill].to_owned(),
            ["yes", "no", ""][class].to_owned(),
            number(cost, 7),
            ["a", "b", "c", ""][ward].to_owned(),
        ]
    })
}

/// A cut of the three quasi-identifiers.
#[derive(Clone, Debug)]
struct Cut {
    /// 0: jobs; 1: Blue and White; 2: ANY.
    job: u8,
    /// Where ages are split, ascending.
    ages: Vec<u32>,
    is_city_hidden: bool,
}

impl Cut {
    fn label(&self, record: &Record, ages: Option<(u32, u32)>) -> Record {
        let mut released = record.clone();
        let is_blue = JOBS[..2].contains(&&*record[0]);
        released[0] = match self.job {
            2 => "ANY",
            _ if record[0].is_empty() => "?",
            1 if is_blue => "Blue",
            1 => "White",
            _ => &record[0],
        }
        .to_owned();
        released[1] = self.age(&record[1], ages);
        if self.is_city_hidden {
            released[2] = "*".to_owned();
        } else if record[2].is_empty() {
            released[2] = "?".to_owned();
        }
        released
    }

    /// The interval of an age between the outermost ends, which are those of the domain or else of the
    /// raw ages; `None` if there are none.
    fn age(&self, age: &str, ends: Option<(u32, u32)>) -> String {
        let Some((least, greatest)) = ends else {
            return "?".to_owned();
        };
        let splits = self.ages.iter().copied();
        let splits: Vec<u32> = splits.filter(|at| *at > least && *at < greatest).collect();
        if least == greatest {
            // Missing cells may occur in addition to the only age, which does not cover them.
            return match age {
                _ if self.ages.is_empty() => "*".to_owned(),
                "" => "?".to_owned(),
                age => age.to_owned(),
            };
        }
        let Ok(age) = age.parse::<u32>() else {
            return if splits.is_empty() {
                format!("[{least},{greatest}]")
            } else {
                "?".to_owned()
            };
        };
        let from = splits.iter().rev().find(|at| **at <= age).unwrap_or(&least);
        match splits.iter().find(|at| **at > age) {
            Some(to) => format!("[{from},{to})"),
            None => format!("[{from},{greatest}]"),
        }
    }
}

fn cut() -> impl Strategy<Value = Cut> {
    let ages = prop::collection::btree_set(1..29u32, 0..3);
    (0..3u8, ages, any::<bool>()).prop_map(|(job, ages, is_city_hidden)| Cut {
        job,
        ages: ages.into_iter().collect(),
        is_city_hidden,
    })
}

/// How somebody changes a release.
#[derive(Clone, Copy, Debug)]
enum Attack {
    None,
    Lost,
    Doubled,
    /// One row takes the place of another.
    Replaced,
    /// A row gets the quasi-identifiers of another.
    Moved,
    /// One cell of the row gets that of another.
    Changed(usize),
    /// Two rows exchange their sensitive values.
    Swapped,
    /// The label of a cell is that of its whole column, beside the others.
    Overlapping,
}

fn attack() -> impl Strategy<Value = Attack> {
    prop_oneof![
        3 => Just(Attack::None),
        1 => Just(Attack::Lost),
        1 => Just(Attack::Doubled),
        1 => Just(Attack::Replaced),
        1 => Just(Attack::Moved),
        2 => (0..COLUMNS).prop_map(Attack::Changed),
        2 => Just(Attack::Swapped),
        1 => Just(Attack::Overlapping),
    ]
}

fn change(rows: &mut Vec<Record>, attack: Attack, one: Index, other: Index) {
    let (one, other) = (one.index(rows.len()), other.index(rows.len()));
    let with = rows[other].clone();
    match attack {
        Attack::None => {}
        Attack::Lost => drop(rows.remove(one)),
        Attack::Doubled => rows.push(with),
        Attack::Replaced => rows[one] = with,
        Attack::Moved => rows[one][..ILL].clone_from_slice(&with[..ILL]),
        Attack::Changed(column) => rows[one][column].clone_from(&with[column]),
        Attack::Swapped => {
            rows[other][ILL] = std::mem::replace(&mut rows[one][ILL], with[ILL].clone());
        }
        Attack::Overlapping => rows[one][0] = "ANY".to_owned(),
    }
}

fn job() -> impl Strategy<Value = Job> {
    let c = || (1..10u32).prop_map(|c| f64::from(c) / 10.0);
    let listed = prop_oneof![
        Just(""),
        Just(r#", "sensitive_values": {"ill": ["hiv", "pox"]}"#)
    ];
    let privacy = prop_oneof![
        (1..4u32, 2..6u32, c())
            .prop_map(|(l, k, c)| { format!(r#""model": "lkc", "l": {l}, "k": {k}, "c": {c}"#) }),
        (2..9u32).prop_map(|k| format!(r#""model": "k_anonymity", "k": {k}"#)),
        (2..6u32, c()).prop_map(|(k, c)| format!(r#""model": "alpha_k", "k": {k}, "alpha": {c}"#)),
        c().prop_map(|c| format!(r#""model": "confidence_bounding", "c": {c}"#)),
    ];
    (privacy, listed, any::<bool>(), any::<bool>()).prop_map(
        |(privacy, listed, counted, suppresses)| {
            let bounds = !privacy.contains("k_anonymity");
            let listed = if bounds { listed } else { "" };
            let missing = if counted && bounds {
                r#", "missing_sensitive": "counted""#
            } else {
                ""
            };
            let limit = if suppresses { 0.2 } else { 0.0 };
            let job = format!(
                r#"{{"privacy": {{{privacy}{listed}}}{missing}, "suppression_limit": {limit}}}"#
            );
            let job: JobDefinition = json::parse(job.as_bytes()).unwrap();
            job.parse().unwrap()
        },
    )
}

fn file(records: &[Record]) -> String {
    let mut text = format!("{HEADER}\n");
    for record in records {
        let cells = record.iter().map(|cell| format!("\"{cell}\""));
        writeln!(text, "{}", cells.collect::<Vec<_>>().join(",")).unwrap();
    }
    text
}

fn released(schema: &Schema, records: &[Record]) -> ReleasedTable {
    let file = file(records);
    let names: Vec<String> = csv::names(file.as_bytes(), TextFormat::CSV).unwrap();
    let read_by = reimport::columns(schema, &names);
    let table = csv::read_table(&read_by, file.as_bytes()).unwrap();
    reimport::released(schema, &read_by, table, 2).unwrap()
}

/// The finding while rows are read, in chunks of this many.
fn streamed(
    (schema, job): (&Schema, &Job),
    rows: &[Record],
    raw: Option<&[Record]>,
    chunk: usize,
) -> Option<ReleaseVerification> {
    let none = Cancellation::new();
    let mut verification = StreamedVerification::new(schema, job, 1 << 20).unwrap();
    for rows in rows.chunks(chunk) {
        verification.add(&released(schema, rows), &none).unwrap();
    }
    let Some(raw) = raw else {
        return Some(verification.finish(&none).unwrap());
    };
    let mut comparison = verification.compare().unwrap();
    for rows in raw.chunks(chunk) {
        let rows = csv::read_table(schema, file(rows).as_bytes()).unwrap();
        comparison.add(rows, &none).unwrap();
    }
    comparison.finish(&none).unwrap()
}

fn in_memory(
    (schema, job): (&Schema, &Job),
    rows: &[Record],
    raw: Option<&[Record]>,
) -> ReleaseVerification {
    let release = ReleaseTables::Generalized(released(schema, rows));
    let raw = raw.map(|raw| csv::read_table(schema, file(raw).as_bytes()).unwrap());
    verify_release(schema, job, &release, raw, &Cancellation::new()).unwrap()
}

/// The least and the greatest raw age.
fn range(raw: &[Record]) -> Option<(u32, u32)> {
    let ages = raw
        .iter()
        .filter_map(|record| record[1].parse::<u32>().ok());
    let ages: Vec<u32> = ages.collect();
    Some((*ages.iter().min()?, *ages.iter().max()?))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_finding_is_that_of_the_verification_in_memory(
        raw in prop::collection::vec(raw_record(), 1..40),
        cut in cut(),
        declared in any::<bool>(),
        job in job(),
        attack in attack(),
        (one, other) in any::<(Index, Index)>(),
        (shift, chunk) in (any::<Index>(), 1..50usize),
    ) {
        let schema = schema(declared);
        let ends = if declared { Some((0, 30)) } else { range(&raw) };
        let mut rows: Vec<Record> = raw.iter().map(|record| cut.label(record, ends)).collect();
        let truth = { let mut rows = rows.clone(); rows.sort(); rows };
        change(&mut rows, attack, one, other);
        prop_assume!(!rows.is_empty());
        let shift = shift.index(rows.len());
        rows.rotate_left(shift);
        let is_true = { let mut rows = rows.clone(); rows.sort(); rows == truth };

        let asked = (&schema, &job);
        let found = streamed(asked, &rows, None, chunk).unwrap();
        prop_assert_eq!(format!("{found:?}"), format!("{:?}", in_memory(asked, &rows, None)));

        let expected = in_memory(asked, &rows, Some(&raw));
        let compared = expected.raw.as_ref().unwrap();
        let is_image = compared.made_up == 0
            && compared.lost == 0
            && compared.recoding == FoundRecoding::Global;
        match streamed(asked, &rows, Some(&raw), chunk) {
            Some(found) => {
                prop_assert!(is_image, "{:?}", compared);
                prop_assert_eq!(format!("{found:?}"), format!("{expected:?}"));
            }
            None => prop_assert!(!is_image, "{:?}", compared),
        }
        // Null and each word for missing are one value.
        if is_true {
            prop_assert!(is_image, "{:?}", compared);
        }
    }
}

/// Four patients, and their release in halves.
fn patients() -> (Schema, Vec<Record>, Vec<Record>) {
    let record = |cells: &str| -> Record {
        let cells: Vec<String> = cells.split(' ').map(str::to_owned).collect();
        cells.try_into().unwrap()
    };
    let raw = [
        "Mover 1 Rome flu yes 1 a",
        "Janitor 2 Rome hiv yes 2 a",
        "Doctor 20 Rome flu no 3 b",
        "Lawyer 24 Rome cold no 4 b",
    ];
    let raw: Vec<Record> = raw.map(record).to_vec();
    let cut = Cut {
        job: 1,
        ages: vec![10],
        is_city_hidden: true,
    };
    let rows = raw.iter().map(|record| cut.label(record, Some((0, 30))));
    (schema(true), rows.collect(), raw)
}

fn k_anonymity() -> Job {
    let job: JobDefinition =
        json::parse(br#"{"privacy": {"model": "k_anonymity", "k": 2}}"#).unwrap();
    job.parse().unwrap()
}

/// A change of released rows.
type Change = fn(&mut Vec<Record>);

#[test]
fn each_attack_is_refused() {
    let (schema, rows, raw) = patients();
    let asked = (&schema, &k_anonymity());
    let found = streamed(asked, &rows, Some(&raw), 3).unwrap();
    assert!(found.holds(), "{found:?}");
    let attacks: [(&str, Change); 8] = [
        ("a row is lost", |rows| drop(rows.pop())),
        ("a row is doubled", |rows| rows.push(rows[0].clone())),
        ("a row takes the place of another", |rows| {
            rows[0] = rows[1].clone()
        }),
        ("a row is in another group", |rows| {
            let other = rows[3].clone();
            rows[0][..ILL].clone_from_slice(&other[..ILL]);
        }),
        ("a label does not cover the raw value", |rows| {
            rows[0][0] = "White".into()
        }),
        ("a label is of no raw value", |rows| rows[0][1] = "?".into()),
        ("a cell is changed", |rows| rows[0][5] = "9".into()),
        ("sensitive values of two groups are exchanged", |rows| {
            let ill = rows[1][ILL].clone();
            rows[1][ILL] = std::mem::replace(&mut rows[2][ILL], ill);
        }),
    ];
    for (what, attack) in attacks {
        let mut rows = rows.clone();
        attack(&mut rows);
        assert!(streamed(asked, &rows, Some(&raw), 3).is_none(), "{what}");
    }
}

#[test]
fn an_interval_is_not_true_of_a_column_of_missing_cells() {
    let (_, mut rows, mut raw) = patients();
    let schema = schema(false);
    for (row, label) in rows.iter_mut().zip(["[0,30]"; 4]) {
        row[1] = label.to_owned();
    }
    raw.iter_mut().for_each(|record| record[1].clear());
    let asked = (&schema, &k_anonymity());
    assert!(streamed(asked, &rows, Some(&raw), 2).is_none());
    rows.iter_mut().for_each(|row| row[1] = "?".to_owned());
    let found = streamed(asked, &rows, Some(&raw), 2).unwrap();
    let expected = in_memory(asked, &rows, Some(&raw));
    assert_eq!(format!("{found:?}"), format!("{expected:?}"));
}

#[test]
fn raw_rows_can_be_codes_of_texts_that_all_chunks_share() {
    let (schema, rows, raw) = patients();
    let none = Cancellation::new();
    let table = csv::read_table(&schema, file(&raw).as_bytes()).unwrap();
    let (texts, codes): (Vec<_>, Vec<_>) = table
        .columns
        .into_iter()
        .map(|column| (column.dictionary, column.codes))
        .unzip();
    for (changes, holds) in [(false, true), (true, false)] {
        let mut codes: Vec<Vec<u32>> = codes.clone();
        if changes {
            codes[ILL].rotate_left(1);
        }
        let job = k_anonymity();
        let mut verification = StreamedVerification::new(&schema, &job, 1 << 20).unwrap();
        verification.add(&released(&schema, &rows), &none).unwrap();
        let mut comparison = verification.compare().unwrap();
        let texts = comparison.texts(texts.clone()).unwrap();
        for rows in [0..3, 3..4] {
            let rows: Vec<&[u32]> = codes.iter().map(|codes| &codes[rows.clone()]).collect();
            comparison.add_codes(&texts, &rows, &none).unwrap();
        }
        assert_eq!(comparison.finish(&none).unwrap().is_some(), holds);
    }
}

#[test]
fn distinct_rows_beyond_the_limit_are_refused_by_its_name() {
    let (schema, rows, _) = patients();
    let mut verification = StreamedVerification::new(&schema, &k_anonymity(), 500).unwrap();
    let added = verification.add(&released(&schema, &rows), &Cancellation::new());
    let Err(error @ ReleaseError::TooManyDistinctRows { most: 500 }) = added else {
        panic!("{added:?}");
    };
    let detail = error.to_string();
    assert!(detail.contains("`verification_bytes`"), "{detail}");
}

#[test]
fn what_needs_all_rows_is_refused() {
    let (schema, rows, _) = patients();
    for privacy in [
        r#"{"model": "l_diversity", "k": 2, "l": 2}"#,
        r#"{"model": "distinct_l_diversity", "k": 2, "l": 2}"#,
    ] {
        let job: JobDefinition =
            json::parse(format!("{{\"privacy\": {privacy}}}").as_bytes()).unwrap();
        let refused = StreamedVerification::new(&schema, &job.parse().unwrap(), 500).err();
        assert!(
            matches!(refused, Some(ReleaseError::NeedsAllRows(_))),
            "{privacy}"
        );
    }
    let mut verification = StreamedVerification::new(&schema, &k_anonymity(), 1 << 20).unwrap();
    let mut released = released(&schema, &rows);
    released.columns.retain(|column| *column.name != *"ward");
    verification.add(&released, &Cancellation::new()).unwrap();
    assert!(matches!(
        verification.compare().err(),
        Some(ReleaseError::NeedsAllRows(_))
    ));
}

#[test]
fn parts_with_other_columns_are_refused() {
    let (schema, rows, _) = patients();
    let none = Cancellation::new();
    let whole = released(&schema, &rows);
    let mut fewer = whole.clone();
    fewer.columns.pop();
    for (first, second) in [(&whole, &fewer), (&fewer, &whole)] {
        let mut verification = StreamedVerification::new(&schema, &k_anonymity(), 1 << 20).unwrap();
        verification.add(first, &none).unwrap();
        assert!(matches!(
            verification.add(second, &none),
            Err(ReleaseError::Malformed(_))
        ));
    }
}

#[test]
fn a_verification_can_be_cancelled() {
    let (schema, rows, raw) = patients();
    let (none, cancelled) = (Cancellation::new(), Cancellation::new());
    cancelled.cancel();
    let mut verification = StreamedVerification::new(&schema, &k_anonymity(), 1 << 20).unwrap();
    let rows = released(&schema, &rows);
    assert_eq!(
        verification.add(&rows, &cancelled),
        Err(ReleaseError::Cancelled)
    );
    let mut verification = StreamedVerification::new(&schema, &k_anonymity(), 1 << 20).unwrap();
    verification.add(&rows, &none).unwrap();
    let mut comparison = verification.compare().unwrap();
    let raw = csv::read_table(&schema, file(&raw).as_bytes()).unwrap();
    assert_eq!(
        comparison.add(raw, &cancelled),
        Err(ReleaseError::Cancelled)
    );
}
