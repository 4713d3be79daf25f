//! A table of hospital stays, 1 to 30 for each patient: whatever the model, an adversary is left with
//! at least K patients. Counted over the released rows, which an unchanged column leads back to
//! their raw rows.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::cli_dir::CliDir;

const QUASI_IDENTIFIERS: [&str; 6] = ["sex", "age", "region", "ward", "admission_type", "year"];

/// The columns of a CSV file by their names.
fn columns(path: &Path) -> HashMap<String, Vec<String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let names: Vec<String> = reader
        .headers()
        .unwrap()
        .iter()
        .map(str::to_owned)
        .collect();
    let mut columns = vec![Vec::new(); names.len()];
    for record in reader.records() {
        for (column, cell) in columns.iter_mut().zip(&record.unwrap()) {
            column.push(cell.to_owned());
        }
    }
    names.into_iter().zip(columns).collect()
}

/// The fewest patients that share the values of at most `l` quasi-identifiers.
fn fewest(released: &HashMap<String, Vec<String>>, patients: &[usize], l: usize) -> usize {
    let coded = QUASI_IDENTIFIERS.map(|name| {
        let mut codes: HashMap<&str, u64> = HashMap::new();
        let cells = released[name].iter().map(|cell| {
            let next = codes.len() as u64;
            *codes.entry(cell).or_insert(next)
        });
        cells.collect::<Vec<u64>>()
    });
    let mut fewest = usize::MAX;
    for known in 1u32..1 << QUASI_IDENTIFIERS.len() {
        // A qid of fewer values has more rows.
        if known.count_ones() as usize != l {
            continue;
        }
        let mut groups: HashMap<u128, HashSet<usize>> = HashMap::new();
        for (row, &patient) in patients.iter().enumerate() {
            let values = coded.iter().enumerate();
            let of_known = values.filter(|(at, _)| known >> at & 1 == 1);
            let key = of_known.fold(0u128, |key, (_, codes)| key << 20 | u128::from(codes[row]));
            groups.entry(key).or_default().insert(patient);
        }
        fewest = fewest.min(groups.values().map(HashSet::len).min().unwrap());
    }
    fewest
}

#[test]
fn no_model_leaves_fewer_than_k_patients_of_a_hundred_thousand_stays() {
    let dir = CliDir::new();
    let ran = dir.run(&["sample", "encounters", "--rows", "100000", "-o", "."]);
    assert!(ran.status.success());
    let mut schema = dir.json("encounters.schema.json");
    for column in schema["columns"].as_array_mut().unwrap() {
        if column["name"] == "encounter_id" {
            column["role"] = json!("insensitive");
        }
    }
    dir.write("s.json", &schema.to_string());
    let raw = columns(&dir.path().join("encounters.csv"));
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let patients = raw["patient_id"].iter().map(|patient| {
        let next = numbers.len();
        *numbers.entry(patient).or_insert(next)
    });
    let of_stay: HashMap<&str, usize> = raw["encounter_id"]
        .iter()
        .map(String::as_str)
        .zip(patients.collect::<Vec<_>>())
        .collect();

    let k = 10;
    let jobs: [(Value, usize); 7] = [
        (
            json!({"privacy": {"model": "lkc", "l": 2, "k": k, "c": 0.5}}),
            2,
        ),
        (
            json!({"privacy": {"model": "lkc", "l": 2, "k": k, "c": 0.5}, "recoding": "local"}),
            6,
        ),
        (json!({"privacy": {"model": "k_anonymity", "k": k}}), 6),
        (
            json!({"privacy": {"model": "alpha_k", "k": k, "alpha": 0.5}}),
            6,
        ),
        (
            json!({"privacy": {"model": "k_anonymity", "k": k}, "recoding": "local"}),
            6,
        ),
        (
            json!({"privacy": {"model": "distinct_l_diversity", "k": k, "l": 3}, "recoding": "local"}),
            6,
        ),
        (
            json!({"privacy": {"model": "l_diversity", "k": k, "l": 3}, "output": "generalized"}),
            6,
        ),
    ];
    for (mut job, l) in jobs {
        job["acknowledge_unchanged"] = json!({"encounter_id": "finds the patient of each stay"});
        dir.write("j.json", &job.to_string());
        dir.anonymize("encounters.csv", "out.csv");
        let released = columns(&dir.path().join("out.csv"));
        let stays = released["encounter_id"].iter();
        let patients: Vec<usize> = stays.map(|stay| of_stay[stay.as_str()]).collect();
        assert_eq!(patients.len(), 100_000);
        let found = fewest(&released, &patients, l);
        assert!(found >= k, "{job}: {found} patients");
    }
}

#[test]
fn a_run_on_stays_says_that_they_are_not_patients() {
    let dir = CliDir::new();
    let ran = dir.run(&["sample", "encounters", "--rows", "2000", "-o", "."]);
    assert!(ran.status.success());
    dir.write(
        "j.json",
        &json!({"privacy": {"model": "k_anonymity", "k": 5}}).to_string(),
    );
    for (patient, stay, is_warned) in [
        ("subject", "identifier", false),
        ("identifier", "identifier", true),
        ("identifier", "subject", true),
    ] {
        let mut schema = dir.json("encounters.schema.json");
        for column in schema["columns"].as_array_mut().unwrap() {
            match column["name"].as_str().unwrap() {
                "patient_id" => column["role"] = json!(patient),
                "encounter_id" => column["role"] = json!(stay),
                _ => {}
            }
        }
        dir.write("s.json", &schema.to_string());
        dir.anonymize("encounters.csv", "out.csv");
        let report = dir.json("report.json");
        let warnings = report["warnings"].as_array().unwrap();
        let found = warnings
            .iter()
            .find(|warning| warning["code"] == "repeated_identifier");
        assert_eq!(
            found.is_some(),
            is_warned,
            "{patient}, {stay}: {warnings:?}"
        );
        if let Some(warning) = found {
            assert_eq!(warning["columns"], json!(["patient_id"]));
        }
    }
}
