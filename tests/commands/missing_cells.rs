//! Tables with missing cells: they run, the verifier accepts them, and a missing cell stands as
//! `?` or under its root.

use std::collections::BTreeSet;
use std::io::Read;

use serde_json::{Value, json};

use crate::desk::Desk;

const SYNTHEA: &str = include_str!("../data/synthea/patients_rt.csv");
const ADULT: &[u8] = include_bytes!("../data/adult/adult.csv.gz");

/// The values of a column of a table in CSV.
fn values(csv: &str, column: &str) -> Vec<String> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    let position = header.iter().position(|name| name == column).unwrap();
    let cell = |row: Result<csv::StringRecord, _>| row.unwrap()[position].to_owned();
    reader.records().map(cell).collect()
}

/// Numbers drawn from a seed (SplitMix64), so that the same cells are blanked on every machine.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[test]
fn synthea_patients_without_marital_status_or_zip_run_and_verify() {
    let quasi = |name: &str| json!({ "name": name, "role": "quasi_identifier" });
    let schema = json!({ "name": "synthea", "columns": [
        { "name": "patient_id", "role": "identifier" },
        { "name": "birth_year", "role": "quasi_identifier", "kind": "numeric" },
        quasi("gender"), quasi("race"), quasi("ethnicity"), quasi("marital"),
        quasi("city"), quasi("state"), quasi("zip"),
        { "name": "deceased", "role": "sensitive" },
        { "name": "conditions", "role": "identifier" },
        { "name": "medications", "role": "identifier" },
    ] });
    let missing = |column: &str| {
        values(SYNTHEA, column)
            .iter()
            .filter(|cell| cell.is_empty())
            .count()
    };
    assert_eq!((missing("marital"), missing("zip")), (373, 5));
    let models = [
        (json!({ "model": "k_anonymity", "k": 5 }), 0.05),
        (json!({ "model": "lkc", "l": 1, "k": 5, "c": 1 }), 0.0),
    ];
    for (privacy, limit) in models {
        let desk = Desk::new();
        desk.write("s.json", &schema.to_string());
        let job = json!({ "privacy": privacy, "utility": { "objective": "ncp" }, "suppression_limit": limit });
        desk.write("j.json", &job.to_string());
        desk.write("raw.csv", SYNTHEA);
        desk.anonymize("raw.csv", "o.csv");
        let (status, text) = desk.verify("o.csv", true);
        assert_eq!(status, Some(0), "{text}");
        let released = std::fs::read_to_string(desk.path().join("o.csv")).unwrap();
        let suppressed = desk.json("report.json")["suppressed_rows"]
            .as_u64()
            .unwrap();
        let rows = values(&released, "marital");
        assert_eq!(rows.len() as u64 + suppressed, 1000);
        for column in ["marital", "zip"] {
            let labels: BTreeSet<String> = values(&released, column).into_iter().collect();
            assert!(
                !labels.contains(""),
                "{column}: a quasi-identifier is never blank"
            );
            // A flat tree is at its root or at its leaves, `?` being one of them.
            assert!(
                labels.len() == 1 && labels.contains("*") || labels.contains("?"),
                "{column}: {labels:?}"
            );
        }
        if limit == 0.0 {
            assert_eq!(rows.iter().filter(|label| *label == "?").count(), 373);
        }
    }
}

/// Adult with each cell of a quasi-identifier blanked with a chance of 2 %.
fn blanked_adult() -> (String, usize) {
    let mut text = String::new();
    flate2::read::GzDecoder::new(ADULT)
        .read_to_string(&mut text)
        .unwrap();
    let mut draws = Draws(2009);
    let mut blanked = 0;
    let mut out = String::with_capacity(text.len());
    for (line, row) in text.lines().enumerate() {
        for (position, cell) in row.split(',').enumerate() {
            if position > 0 {
                out.push(',');
            }
            // The last column is the class.
            if line > 0 && position < 14 && draws.next().is_multiple_of(50) {
                blanked += 1;
            } else {
                out.push_str(cell);
            }
        }
        out.push('\n');
    }
    (out, blanked)
}

fn adult_schema() -> Value {
    let tree = |name: &str| -> Value {
        let path = format!(
            "{}/tests/data/adult/taxonomies/{name}.json",
            env!("CARGO_MANIFEST_DIR")
        );
        let document: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        document["root"].clone()
    };
    let numeric =
        |name: &str| json!({ "name": name, "role": "quasi_identifier", "kind": "numeric" });
    let categorical =
        |name: &str| json!({ "name": name, "role": "quasi_identifier", "taxonomy": tree(name) });
    json!({ "name": "adult", "columns": [
        numeric("age"), categorical("workclass"),
        { "name": "fnlwgt", "role": "insensitive", "kind": "numeric" },
        categorical("education"), numeric("education-num"),
        { "name": "marital-status", "role": "sensitive" },
        categorical("occupation"), categorical("relationship"), categorical("race"), categorical("sex"),
        numeric("capital-gain"), numeric("capital-loss"), numeric("hours-per-week"),
        categorical("native-country"),
        { "name": "income", "role": "class" },
    ] })
}

#[test]
fn adult_with_two_percent_of_its_cells_blanked_runs_and_verifies() {
    let (raw, blanked) = blanked_adult();
    assert!(
        (12_000..13_500).contains(&blanked),
        "{blanked} cells are blank"
    );
    let desk = Desk::new();
    desk.write("s.json", &adult_schema().to_string());
    let privacy = json!({ "model": "lkc", "l": 2, "k": 20, "c": 0.2,
        "sensitive_values": { "marital-status": ["Divorced", "Separated"] } });
    desk.write("j.json", &json!({ "privacy": privacy }).to_string());
    desk.write("raw.csv", &raw);
    desk.anonymize("raw.csv", "o.csv");
    let (status, text) = desk.verify("o.csv", true);
    assert_eq!(status, Some(0), "{text}");
    let steps = desk.json("steps.json");
    let steps = steps["items"].as_array().unwrap();
    assert!(steps.len() > 5, "{} steps", steps.len());
    let released = std::fs::read_to_string(desk.path().join("o.csv")).unwrap();
    let missing = |csv: &str, column: &str, word: &str| {
        values(csv, column)
            .iter()
            .filter(|cell| *cell == word)
            .count()
    };
    let mut specialized = 0;
    for step in steps
        .iter()
        .filter(|step| step["children"].to_string().contains("\"?\""))
    {
        let column = step["attribute"].as_str().unwrap();
        assert_eq!(
            missing(&released, column, "?"),
            missing(&raw, column, ""),
            "{column}: once its root is specialized, every missing cell stands as ?"
        );
        specialized += 1;
    }
    assert!(
        specialized > 0,
        "no column with missing cells was specialized"
    );
    // Untouched cells are released as they came.
    for column in ["fnlwgt", "marital-status"] {
        assert_eq!(
            missing(&released, column, ""),
            missing(&raw, column, ""),
            "{column}"
        );
    }
}
