//! The greedy and the thorough search against plain readings of the paper, on public tables.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use pais_core::definition::Job;
use pais_core::model::{MinimumAnonymity, PrivacyModel};
use pais_core::schema::Schema;
use pais_core::table::EncodedTable;

use super::method::settings;
use super::reference::{self, Reading};
use super::refine::greedy;
use super::search::{DisclosureSettings, ThoroughSearch, search};
use super::search::{DisclosureTask, Found};
use super::thorough::improve;
use crate::Unobserved;
use crate::test_data::{DATA_FOLDER, job_of, load, schema};

const READINGS: [Reading; 3] = [
    Reading::NextStep,
    Reading::NextStepOfCandidates,
    Reading::Current,
];

/// A table, and the settings of a k-anonymous job over it.
struct Case {
    table: EncodedTable,
    settings: DisclosureSettings,
    columns: usize,
}

impl Case {
    fn new(schema: &Schema, file: &[u8], job: Value) -> Self {
        let job = job_of(job).unwrap();
        let table = EncodedTable::new(schema, load(schema, file));
        let k = k_of(&job);
        let settings = settings(schema, &job, k).unwrap();
        Self {
            columns: table.quasi_identifiers.len() + table.sets.len(),
            table,
            settings,
        }
    }

    fn task(&self) -> DisclosureTask<'_> {
        let observer = Box::leak(Box::new(Unobserved::default()));
        DisclosureTask::new(&self.table, |_| None, &self.settings, observer).unwrap()
    }

    /// The mean NCP over the columns.
    fn ncp(&self, found: &Found) -> f64 {
        found.loss / self.columns as f64
    }
}

fn k_of(job: &Job) -> MinimumAnonymity {
    let PrivacyModel::Lkc(model) = &job.model else {
        panic!("k-anonymity");
    };
    model.k
}

fn k_anonymity(k: u64) -> Value {
    json!({"privacy": {"model": "k_anonymity", "k": k}})
}

/// Synthetic patients with these relational quasi-identifiers and both sets.
fn patients(relational: &[&str], k: u64) -> Case {
    let columns = [
        "patient_id",
        "birth_year",
        "gender",
        "race",
        "ethnicity",
        "marital",
        "city",
        "state",
        "zip",
        "deceased",
        "conditions",
        "medications",
    ];
    let columns = columns.map(|name| {
        let is_set = ["conditions", "medications"].contains(&name);
        let role = if is_set || relational.contains(&name) {
            "quasi_identifier"
        } else {
            "identifier"
        };
        let mut column = json!({"name": name, "role": role});
        if is_set {
            column["kind"] = json!("set");
            column["separator"] = json!(" ");
        }
        if name == "birth_year" {
            column["kind"] = json!("numeric");
        }
        column
    });
    let path = format!("{DATA_FOLDER}/synthea/patients_rt.csv");
    let file = std::fs::read(path).unwrap();
    Case::new(&schema(json!(columns)), &file, k_anonymity(k))
}

/// Medical receipts, their sets without taxonomies.
fn receipts(rows: u64, k: u64) -> Case {
    let mut columns = pais_sample::receipts::schema()["columns"].clone();
    for column in columns.as_array_mut().unwrap() {
        if column["kind"] == "set" {
            column.as_object_mut().unwrap().remove("taxonomy");
        }
    }
    let mut file = Vec::new();
    pais_sample::receipts::write_csv(rows, 1, &mut file).unwrap();
    Case::new(&schema(columns), &file, k_anonymity(k))
}

/// Every row is in one class of at least k rows, has what its class discloses, and has the same
/// relational values as the others of its class.
fn assert_anonymous(task: &DisclosureTask, found: &Found) {
    let mut rows: Vec<u32> = Vec::new();
    for class in &found.classes {
        assert!(class.len() >= task.anonymity.k);
        assert_eq!(task.group(&found.levels, &class.rows).groups, 1);
        for (set, vocabulary) in class.sets.iter().zip(&task.vocabularies) {
            for &row in &class.rows {
                let mut items = Vec::new();
                vocabulary.push_row(row as usize, &mut items);
                assert!(set.disclosed.iter().all(|item| items.contains(item)));
            }
        }
        rows.extend(&class.rows);
    }
    rows.sort_unstable();
    assert_eq!(rows, (0..task.table.rows as u32).collect::<Vec<_>>());
}

const FOUR: [&str; 4] = ["birth_year", "gender", "race", "marital"];

#[test]
fn no_plain_reading_of_the_paper_loses_less_than_the_greedy_search() {
    let cases = [2, 5, 10, 20].into_iter().flat_map(|k| {
        [
            ("patients, 3 relational", patients(&FOUR[..3], k)),
            ("patients, 4 relational", patients(&FOUR, k)),
            ("receipts", receipts(1000, k)),
        ]
        .map(|(name, case)| (name, k, case))
    });
    for (name, k, case) in cases {
        let task = case.task();
        let published = case.ncp(&search(&task).unwrap());
        let found = greedy(&task).unwrap();
        assert_anonymous(&task, &found);
        for reading in READINGS {
            let loss = reference::loss(&task, reading);
            assert!(found.loss <= loss + 1e-9, "{name}, k = {k}: {reading:?}");
        }
        let ncp = case.ncp(&found);
        assert!(ncp <= published + 1e-9, "{name}, k = {k}");
    }
}

#[test]
fn the_loss_of_the_patients_and_the_receipts_has_an_upper_bound() {
    for (case, bound) in [
        (patients(&FOUR[..3], 10), 0.546),
        (patients(&FOUR, 5), 0.480),
        (patients(&FOUR, 10), 0.582),
        (receipts(1000, 10), 0.613),
        (receipts(5000, 5), 0.445),
        (receipts(5000, 10), 0.462),
    ] {
        let found = greedy(&case.task()).unwrap();
        assert!(
            case.ncp(&found) <= bound,
            "{:.4} > {bound}",
            case.ncp(&found)
        );
    }
}

#[test]
fn a_thorough_search_loses_less_and_is_the_same_for_a_seed() {
    let case = patients(&FOUR, 10);
    let task = case.task();
    let found = greedy(&task).unwrap();
    let search = |seed: u64| {
        let limit = Duration::from_secs(3600);
        let found = improve(&task, found.clone(), ThoroughSearch { limit, seed }).unwrap();
        assert_anonymous(&task, &found);
        found
    };
    let one = search(7);
    let again = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let again = again.unwrap().install(|| search(7));
    let rows = |found: &Found| -> Vec<Vec<u32>> {
        let classes = found.classes.iter();
        classes.map(|class| class.rows.clone()).collect()
    };
    assert_eq!((&one.levels, rows(&one)), (&again.levels, rows(&again)));
    assert_eq!(one.loss.to_bits(), again.loss.to_bits());
    let (before, after) = (case.ncp(&found), case.ncp(&one));
    assert!(after < before - 0.005, "{after:.4} instead of {before:.4}");
}

#[test]
fn a_thorough_search_ends_at_its_limit() {
    let case = receipts(5000, 5);
    let task = case.task();
    let found = greedy(&task).unwrap();
    let limit = Duration::from_millis(50);
    let began = std::time::Instant::now();
    let ended = improve(&task, found.clone(), ThoroughSearch { limit, seed: 1 }).unwrap();
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(ended.loss <= found.loss + 1e-9);
    assert_anonymous(&task, &ended);
}

fn cancelled() -> &'static Unobserved {
    let observer = Box::leak(Box::new(Unobserved::default()));
    crate::Observer::cancellation(observer).cancel();
    observer
}

#[test]
fn a_thorough_search_can_be_cancelled() {
    let case = patients(&FOUR[..3], 5);
    let found = greedy(&case.task()).unwrap();
    let observer = cancelled();
    let task = DisclosureTask::new(&case.table, |_| None, &case.settings, observer).unwrap();
    let limit = Duration::from_secs(3600);
    assert!(improve(&task, found, ThoroughSearch { limit, seed: 1 }).is_err());
    assert!(greedy(&task).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn each_search_loses_no_more_than_the_one_before(
        rows in prop::collection::vec((0..3u8, 0..9u8, prop::collection::btree_set(0..7u8, 0..5),
            prop::collection::btree_set(0..4u8, 0..4)), 6..40),
        k in 2..5u64,
        limit in prop::sample::select(vec![0.0, 0.2]),
        weight in prop::sample::select(vec![0.3, 1.0, 4.0]),
        seed: u64,
    ) {
        let set = |items: &std::collections::BTreeSet<u8>| {
            let items: Vec<String> = items.iter().map(u8::to_string).collect();
            items.join("|")
        };
        let rows = rows.iter().map(|(a, n, s, t)| format!("{a},{n},{},{}\n", set(s), set(t)));
        let file = format!("a,n,s,t\n{}", rows.collect::<String>());
        let quasi = |name: &str, kind: &str| {
            json!({"name": name, "role": "quasi_identifier", "kind": kind})
        };
        let schema = schema(json!([quasi("a", "categorical"), quasi("n", "numeric"),
            quasi("s", "set"), quasi("t", "set")]));
        let mut job = k_anonymity(k);
        job["suppression_limit"] = json!(limit);
        job["utility"] = json!({"weights": {"s": weight}});
        let case = Case::new(&schema, file.as_bytes(), job);
        let task = case.task();
        let published = search(&task).unwrap();
        let greedy = greedy(&task).unwrap();
        let search = ThoroughSearch { limit: Duration::from_secs(3600), seed };
        let thorough = improve(&task, greedy.clone(), search).unwrap();
        prop_assert!(greedy.loss <= published.loss + 1e-9);
        prop_assert!(thorough.loss <= greedy.loss + 1e-9);
        for found in [&greedy, &thorough] {
            let mut rows = 0;
            for class in &found.classes {
                prop_assert!(class.len() as u64 >= k);
                rows += class.len();
            }
            let suppressed = case.table.rows - rows;
            prop_assert!(suppressed as f64 <= limit * case.table.rows as f64 + 1e-9);
        }
    }
}
