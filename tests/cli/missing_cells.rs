//! Tables with missing cells: jobs succeed, the verifier accepts the releases, and a missing cell
//! is released as `?` or as the root of its column.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::cli_dir::CliDir;
use pais_test_support::adult;
use pais_test_support::split_mix::SplitMix64;

const SYNTHEA: &str = include_str!("../data/synthea/patients_rt.csv");

/// The values of a column of a table in CSV.
fn values(csv: &str, column: &str) -> Vec<String> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    let position = header.iter().position(|name| name == column).unwrap();
    let cell = |row: Result<csv::StringRecord, _>| row.unwrap()[position].to_owned();
    reader.records().map(cell).collect()
}

#[test]
fn synthea_patients_with_missing_marital_status_or_zip_are_anonymized() {
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
        let dir = CliDir::new();
        dir.write("s.json", &schema.to_string());
        let job = json!({ "privacy": privacy, "utility": { "objective": "ncp" }, "suppression_limit": limit });
        dir.write("j.json", &job.to_string());
        dir.write("raw.csv", SYNTHEA);
        dir.anonymize("raw.csv", "o.csv");
        let (status, text) = dir.verify("o.csv", true);
        assert_eq!(status, Some(0), "{text}");
        let released = std::fs::read_to_string(dir.path().join("o.csv")).unwrap();
        let suppressed = dir.json("report.json")["suppressed_rows"].as_u64().unwrap();
        let rows = values(&released, "marital");
        assert_eq!(rows.len() as u64 + suppressed, 1000);
        for column in ["marital", "zip"] {
            let labels: BTreeSet<String> = values(&released, column).into_iter().collect();
            assert!(
                !labels.contains(""),
                "{column}: a quasi-identifier is never blank"
            );
            // The cut of a flat tree is its root or all its leaves; `?` is a leaf.
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

/// Adult with each cell but the class blanked with a probability of 2 %, and the number of blanked
/// cells.
fn blanked_adult() -> (String, usize) {
    let text = String::from_utf8(adult::csv().unwrap()).unwrap();
    let mut random = SplitMix64(2009);
    let mut blanked = 0;
    let mut out = String::with_capacity(text.len());
    for (line, row) in text.lines().enumerate() {
        for (position, cell) in row.split(',').enumerate() {
            if position > 0 {
                out.push(',');
            }
            // The last column is the class.
            if line > 0 && position < 14 && random.next_u64().is_multiple_of(50) {
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
    let mut schema = adult::dataset("adult").unwrap();
    let columns = schema["columns"].as_array_mut().unwrap();
    let weight = columns.iter_mut().find(|column| column["name"] == "fnlwgt");
    weight.unwrap()["role"] = "insensitive".into();
    schema
}

#[test]
fn adult_with_two_percent_of_its_cells_blanked_is_anonymized() {
    let (raw, blanked) = blanked_adult();
    assert!(
        (12_000..13_500).contains(&blanked),
        "{blanked} cells are blank"
    );
    let dir = CliDir::new();
    dir.write("s.json", &adult_schema().to_string());
    let privacy = json!({ "model": "lkc", "l": 2, "k": 20, "c": 0.2,
        "sensitive_values": { "marital-status": ["Divorced", "Separated"] } });
    dir.write("j.json", &json!({ "privacy": privacy }).to_string());
    dir.write("raw.csv", &raw);
    dir.anonymize("raw.csv", "o.csv");
    let (status, text) = dir.verify("o.csv", true);
    assert_eq!(status, Some(0), "{text}");
    let steps = dir.json("steps.json");
    let steps = steps["items"].as_array().unwrap();
    assert!(steps.len() > 5, "{} steps", steps.len());
    let released = std::fs::read_to_string(dir.path().join("o.csv")).unwrap();
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
            "{column}: once its root is specialized, every missing cell is released as ?"
        );
        specialized += 1;
    }
    assert!(
        specialized > 0,
        "no column with missing cells was specialized"
    );
    // Columns that are no quasi-identifiers are released unchanged.
    for column in ["fnlwgt", "marital-status"] {
        assert_eq!(
            missing(&released, column, ""),
            missing(&raw, column, ""),
            "{column}"
        );
    }
}

#[test]
fn a_question_mark_is_missing_in_a_hierarchy_that_is_made() {
    for made in [
        json!({ "generate": "prefix", "lengths": [1] }),
        json!({ "generate": "mask_left" }),
        json!({ "generate": "mask_right" }),
        json!({ "generate": "rare", "below": 2 }),
    ] {
        let dir = CliDir::new();
        let columns = json!([{ "name": "a", "role": "quasi_identifier", "taxonomy": made }]);
        dir.write(
            "s.json",
            &json!({ "name": "t", "columns": columns }).to_string(),
        );
        let job = json!({ "privacy": { "model": "k_anonymity", "k": 2 } });
        dir.write("j.json", &job.to_string());
        dir.write("raw.csv", "a\n?\nb1\n?\nb1\nc1\nc1\n");
        dir.anonymize("raw.csv", "o.csv");
        let released = std::fs::read_to_string(dir.path().join("o.csv")).unwrap();
        let missing = values(&released, "a")
            .iter()
            .filter(|it| *it == "?")
            .count();
        assert_eq!(missing, 2, "{made}: {released}");
        assert_eq!(dir.verify("o.csv", true).0, Some(0), "{made}");
    }
}
