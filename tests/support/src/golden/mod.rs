//! Expected results for Table 1 of the KDD'09 paper, derived from the paper. The command
//! line and the HTTP interface must give the same.

pub mod records;

use serde_json::{Value, json};

const RUNS: &str = include_str!("../../../data/kdd09/runs.json");

/// A job on Table 1 and its expected result.
pub struct GoldenRun {
    pub name: String,
    /// The body of `POST /v1/datasets`.
    pub schema: Value,
    /// The body of `POST /v1/jobs` without its dataset.
    pub job: Value,
    expected: Value,
}

/// The three runs of `tests/data/kdd09/runs.json`.
pub fn runs() -> Vec<GoldenRun> {
    let document: Value = serde_json::from_str(RUNS).unwrap();
    let runs = document["runs"].as_array().unwrap();
    let run = |expected: &Value| {
        let name = expected["name"].as_str().unwrap().to_owned();
        let mut schema = document["schema"].clone();
        schema["name"] = json!(name);
        if expected["age"] == "figure 2" {
            schema["columns"][3] = document["age_of_figure_2"].clone();
        }
        GoldenRun {
            name,
            schema,
            job: json!({ "privacy": document["privacy"], "utility": expected["utility"] }),
            expected: expected.clone(),
        }
    };
    let runs: Vec<GoldenRun> = runs.iter().map(run).collect();
    assert_eq!(runs.len(), 3);
    runs
}

impl GoldenRun {
    /// Compares the items of `GET /v1/jobs/{id}/steps` with the expected steps.
    #[track_caller]
    pub fn assert_steps(&self, items: &Value) {
        let items = items.as_array().unwrap();
        assert_eq!(items[0]["step"], 0);
        assert_eq!(items[0]["dr"], 1.0);
        let discernibility = self.expected["discernibility"].as_f64().unwrap();
        let dr = items.last().unwrap()["dr"].as_f64().unwrap();
        assert!((dr * 121.0 - discernibility).abs() < 1e-9, "{}", self.name);
        let Some(expected) = self.expected["steps"].as_array() else {
            return;
        };
        let values: Vec<&Value> = items[1..].iter().map(|item| &item["value"]).collect();
        let wanted: Vec<&Value> = expected.iter().map(|step| &step[0]).collect();
        assert_eq!(values, wanted, "{}", self.name);
        for (item, step) in items[1..].iter().zip(expected) {
            let (score, wanted) = (item["score"].as_f64(), step[1].as_f64());
            let off = (score.unwrap() - wanted.unwrap()).abs();
            assert!(off < 5e-7, "{}: {item} is not {step}", self.name);
        }
    }

    /// The expected cut: an object from column to labels.
    pub fn cut(&self) -> &Value {
        &self.expected["cut"]
    }

    /// Compares the columns Job, Sex and Age of a released table in CSV with the expected cut.
    #[track_caller]
    pub fn assert_labels(&self, csv: &str) {
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let header = reader.headers().unwrap().clone();
        assert_eq!(header, ["Job", "Sex", "Age", "Transfuse", "Surgery"][..]);
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 11);
        for (position, column) in ["Job", "Sex", "Age"].into_iter().enumerate() {
            let labels = self.cut()[column].as_array().unwrap();
            for label in labels {
                let found = rows.iter().any(|row| &row[position] == label);
                assert!(found, "{}: no row has {label}", self.name);
            }
            let known =
                |row: &csv::StringRecord| labels.iter().any(|label| row[position] == *label);
            assert!(rows.iter().all(known), "{}: {column}", self.name);
        }
    }
}
