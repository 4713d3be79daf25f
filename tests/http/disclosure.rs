//! What the database, its files and the spool directory disclose: nothing that no release shows.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use pais::roles::Role;
use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Answer, send, text};
use crate::dump::Planted;
use crate::hospital::{Hospital, id};
use crate::submissions::{NDJSON, PARQUET, parquet_file};

/// What every planted text begins with. No other test sends it.
const PREFIX: &str = "zzraw";

/// The rows of a table: a few common values, and two rows that are like no other.
const ROWS: usize = 44;

/// A table with a column of every kind, whose values are this table's own.
struct PlantedTable {
    name: &'static str,
    media_type: &'static str,
    /// What is added to every number, so that tables share none.
    offset: f64,
}

const TABLES: [PlantedTable; 3] = [
    PlantedTable {
        name: "csv",
        media_type: "text/csv",
        offset: 0.0,
    },
    PlantedTable {
        name: "ndjson",
        media_type: NDJSON,
        offset: 1000.0,
    },
    PlantedTable {
        name: "parquet",
        media_type: PARQUET,
        offset: 2000.0,
    },
];

const TEXT_COLUMNS: [&str; 7] = [
    "patient", "city", "drugs", "illness", "outcome", "note", "person",
];
const NUMBER_COLUMNS: [&str; 3] = ["income", "stay", "score"];

impl PlantedTable {
    fn text(&self, column: &str, value: impl std::fmt::Display) -> String {
        format!("{PREFIX}-{}-{column}-{value}", self.name)
    }

    /// The texts of a row, in the order of [`TEXT_COLUMNS`].
    fn texts(&self, row: usize) -> [String; 7] {
        let common = |column: &str, count: usize| match row {
            0 | 1 => self.text(column, format!("rare{row}")),
            _ => self.text(column, row % count),
        };
        let drug = |number: usize| common(&format!("drug{number}"), 2);
        [
            self.text("patient", row),
            common("city", 3),
            format!("{}|{}", drug(1), drug(2)),
            common("illness", 5),
            common("outcome", 2),
            common("note", 4),
            self.text("person", row),
        ]
    }

    /// The numbers of a row, in the order of [`NUMBER_COLUMNS`].
    fn numbers(&self, row: usize) -> [f64; 3] {
        let common = |first: f64, rare: f64, count| match row {
            0 | 1 => self.offset + rare + row as f64,
            _ => self.offset + first + (row % count) as f64,
        };
        [
            common(21_318.062_5, 73_194.062_5, 7),
            common(31_417.187_5, 83_195.187_5, 3),
            common(41_519.312_5, 93_196.312_5, 4),
        ]
    }

    fn body(&self) -> Vec<u8> {
        match self.media_type {
            PARQUET => {
                let texts = (0..7).map(|column| -> ArrayRef {
                    let cells = (0..ROWS).map(|row| self.texts(row)[column].clone());
                    Arc::new(StringArray::from_iter_values(cells))
                });
                let numbers = (0..3).map(|column| -> ArrayRef {
                    let cells = (0..ROWS).map(|row| self.numbers(row)[column]);
                    Arc::new(Float64Array::from_iter_values(cells))
                });
                let names = TEXT_COLUMNS.into_iter().chain(NUMBER_COLUMNS);
                let columns = names.zip(texts.chain(numbers));
                parquet_file(RecordBatch::try_from_iter(columns).unwrap())
            }
            NDJSON => {
                let records = (0..ROWS).map(|row| {
                    let texts = self.texts(row).map(Value::from);
                    let cells = texts.into_iter().chain(self.numbers(row).map(Value::from));
                    let names = TEXT_COLUMNS.into_iter().chain(NUMBER_COLUMNS);
                    let record: serde_json::Map<String, Value> =
                        names.map(str::to_owned).zip(cells).collect();
                    format!("{}\n", Value::Object(record))
                });
                records.collect::<String>().into_bytes()
            }
            _ => {
                let names: Vec<_> = TEXT_COLUMNS.into_iter().chain(NUMBER_COLUMNS).collect();
                let mut csv = names.join(",") + "\n";
                for row in 0..ROWS {
                    let numbers = self.numbers(row).map(|number| number.to_string());
                    let cells = [&self.texts(row)[..], &numbers[..]].concat();
                    writeln!(csv, "{}", cells.join(",")).unwrap();
                }
                csv.into_bytes()
            }
        }
    }

    /// Columns with flat trees and without domains, whose labels and ends are raw values.
    fn definition(&self, name: &str) -> Value {
        let column = |name: &str, role: &str, kind: &str| -> Value {
            json!({ "name": name, "role": role, "kind": kind })
        };
        let set_role = match name {
            "sets" => "quasi_identifier",
            _ => "insensitive",
        };
        json!({ "name": format!("{name} {}", self.name), "columns": [
            column("patient", "identifier", "categorical"),
            column("city", "quasi_identifier", "categorical"),
            column("drugs", set_role, "set"),
            column("illness", "sensitive", "categorical"),
            column("outcome", "class", "categorical"),
            column("note", "insensitive", "categorical"),
            column("person", "subject", "categorical"),
            column("income", "quasi_identifier", "numeric"),
            column("stay", "sensitive", "numeric"),
            column("score", "insensitive", "numeric"),
        ] })
    }

    /// A job that lists values of rows, and one that no row has.
    fn job(&self, listed: &str) -> Value {
        json!({
            "privacy": { "model": "lkc", "l": 2, "k": 4, "c": 0.9, "sensitive_values": {
                "illness": [self.text("illness", "rare0"), self.text("illness", listed)],
                "stay": [self.numbers(1)[1].to_string()],
            } },
            "suppression_limit": 0.1,
        })
    }

    /// A job on sets that lists a raw item to be kept.
    fn set_job(&self) -> Value {
        json!({
            "privacy": { "model": "k_anonymity", "k": 4 },
            "pre_generalization": {
                "drugs": { "level": 1, "values": { "0": [self.text("drug1", "1")] } },
            },
            "suppression_limit": 0.1,
            "release": true,
        })
    }
}

fn planted() -> Planted {
    let mut texts = BTreeSet::new();
    let mut numbers = Vec::new();
    for table in &TABLES {
        for row in 0..ROWS {
            let cells = table.texts(row);
            texts.extend(
                cells
                    .iter()
                    .flat_map(|cell| cell.split('|'))
                    .map(str::to_owned),
            );
            numbers.extend(table.numbers(row));
        }
        texts.extend(["listed", "unreleased"].map(|value| table.text("illness", value)));
    }
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    Planted::new(texts, numbers)
}

async fn filled(hospital: &Hospital, table: &PlantedTable, name: &str) -> String {
    let made = hospital.post("/v1/datasets", &table.definition(name)).await;
    let dataset = format!("/v1/datasets/{}", text(&made.json(201)["id"]));
    let headers = [
        ("content-type", table.media_type),
        ("idempotency-key", name),
    ];
    hospital
        .submit_with(&dataset, &headers, table.body())
        .await
        .json(201);
    dataset
}

/// The path of a job that has ended, created under an idempotency key.
async fn run(hospital: &Hospital, dataset: &str, mut job: Value, key: &str) -> String {
    job["dataset_id"] = id(dataset).into();
    let request = hospital.app.request(Method::POST, "/v1/jobs");
    let request = request.bearer_auth(&hospital.token).json(&job);
    let queued = send(request.header("idempotency-key", key)).await;
    let job = format!("/v1/jobs/{}", text(&queued.json(202)["id"]));
    hospital.ended(&job).await;
    job
}

/// Everything that the releases show to a recipient, in every format.
async fn shown(hospital: &Hospital) -> String {
    let recipient = hospital.app.token("bts", Role::Recipient).await;
    let releases = hospital.get("/v1/releases").await.json(200);
    let grant = json!({ "recipient": "bts", "purpose": "a study" });
    let mut shown = String::new();
    for release in releases["items"].as_array().unwrap() {
        let path = format!("/v1/releases/{}", text(&release["id"]));
        hospital
            .post(&format!("{path}/grants"), &grant)
            .await
            .json(201);
        let get = async |below: &str| -> Answer {
            let answer = hospital
                .app
                .get(&recipient, &format!("{path}{below}"))
                .await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            answer
        };
        for below in [
            "",
            "/report",
            "/data",
            "/data?format=ndjson",
            "/data?intervals=bounds",
        ] {
            shown += &get(below).await.text;
        }
        get("/data?format=parquet").await;
    }
    shown
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_of_the_database_discloses_no_raw_value() {
    let hospital = Hospital::new().await;
    let workers = hospital.work();
    let planted = planted();
    let mut deleted = String::new();
    for table in &TABLES {
        let dataset = filled(&hospital, table, "patients").await;
        let mut released = table.job("listed");
        released["release"] = json!(true);
        let job = run(&hospital, &dataset, released, &format!("{} 1", table.name)).await;
        let ended = hospital.get(&job).await.json(200);
        assert_eq!(ended["status"], "succeeded", "{ended}");
        let key = format!("{} 2", table.name);
        let unreleased = run(&hospital, &dataset, table.job("unreleased"), &key).await;
        let ended = hospital.get(&unreleased).await;
        assert_eq!(ended.json(200)["status"], "succeeded", "{}", ended.text);
        assert!(ended.text.contains("illness-unreleased"), "{}", ended.text);
        // The steps that the holder sees have raw labels.
        let steps = hospital.get(&format!("{unreleased}/steps")).await;
        assert!(steps.text.contains(PREFIX), "{}", steps.text);
        // Errors of jobs name no value either.
        let mut failing = table.job("unreleased");
        failing["privacy"]["k"] = json!(ROWS + 1);
        let key = format!("{} 3", table.name);
        let failed = run(&hospital, &dataset, failing, &key).await;
        let failed = hospital.get(&failed).await.json(200);
        assert_eq!(failed["error"]["code"], "not_anonymizable", "{failed}");

        let sets = filled(&hospital, table, "sets").await;
        let key = format!("{} 4", table.name);
        let job = run(&hospital, &sets, table.set_job(), &key).await;
        let ended = hospital.get(&job).await.json(200);
        assert_eq!(ended["status"], "succeeded", "{ended}");
        hospital.get(&format!("{dataset}/profile")).await.json(200);
        deleted = dataset;
    }
    // A refused submission leaves nothing, its first rows neither.
    let table = &TABLES[0];
    let refused = filled(&hospital, table, "refused").await;
    let mut body = table.body();
    body.extend_from_slice(b"too,few,cells\n");
    let answer = hospital.submit(&refused, body).await;
    answer.problem(422, "invalid_cells");
    hospital.app.delete(&hospital.token, &deleted).await;
    workers.stop().await;

    let shown = shown(&hospital).await;
    let shown = planted.found_in(shown.as_bytes());
    let identifier = TABLES[0].text("patient", 7);
    let unreleased = TABLES[0].text("illness", "unreleased");
    assert!(!shown.contains(&identifier) && !shown.contains(&unreleased));
    let persons = |table: &PlantedTable| (0..ROWS).map(|row| table.text("person", row)).collect();
    let persons: Vec<Vec<String>> = TABLES.iter().map(persons).collect();
    assert!(
        !persons
            .iter()
            .flatten()
            .any(|person| shown.contains(person))
    );

    let store = &hospital.app.state.unscoped().db;
    let places = [
        ("tables", planted.found_in_tables(store).await),
        ("files", planted.found_in_files(store).await),
        ("spool", planted.found_below(hospital.app.spool.path())),
    ];
    for (place, found) in places {
        let disclosed: Vec<_> = found.difference(&shown).collect();
        assert!(disclosed.is_empty(), "{place}: {disclosed:?}");
        // The search finds what is there: released values are in every place.
        assert!(!found.is_empty(), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_dataset_leaves_no_value_of_its_jobs() {
    let hospital = Hospital::new().await;
    let workers = hospital.work();
    let table = &TABLES[0];
    let dataset = filled(&hospital, table, "patients").await;
    let job = run(&hospital, &dataset, table.job("unreleased"), "job").await;
    workers.stop().await;
    let before = hospital.get(&job).await.json(200);
    let listed = before.pointer("/definition/privacy/sensitive_values/illness");
    assert_eq!(listed.unwrap()[1], table.text("illness", "unreleased"));

    hospital.app.delete(&hospital.token, &dataset).await;
    let mut expected = before;
    expected["definition"]["privacy"]["sensitive_values"] = json!({});
    assert_eq!(hospital.get(&job).await.json(200), expected);
    let steps = hospital.get(&format!("{job}/steps")).await.json(200);
    assert_eq!(steps["items"], json!([]));
    let store = &hospital.app.state.unscoped().db;
    let answers = sqlx::query_scalar("SELECT count(*) FROM idempotent_answers");
    let answers: i64 = answers.fetch_one(store.owner()).await.unwrap();
    assert_eq!(answers, 0);
    assert!(planted().found_in_tables(store).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_digest_in_the_database_does_not_confirm_a_guessed_body() {
    use sha2::{Digest, Sha256};

    let hospital = Hospital::new().await;
    let table = &TABLES[0];
    let guessed = pais_test_support::hex::hex(&Sha256::digest(table.body()));
    let dataset = filled(&hospital, table, "patients").await;
    let shown = hospital.get(&dataset).await.json(200);
    assert_eq!(shown["submissions"][0]["sha256"], guessed);
    let store = &hospital.app.state.unscoped().db;
    for table in ["submissions", "idempotent_answers"] {
        let query = sqlx::AssertSqlSafe(format!("SELECT t::text FROM {table} t"));
        let rows: Vec<String> = sqlx::query_scalar(query)
            .fetch_all(store.owner())
            .await
            .unwrap();
        let as_text: String = guessed.bytes().map(|byte| format!("{byte:02x}")).collect();
        for digest in [&guessed, &as_text] {
            assert!(!rows.iter().any(|row| row.contains(digest)), "{table}");
        }
    }
}
