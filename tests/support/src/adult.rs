//! The Adult data set (`tests/data/adult`): 13 quasi-identifiers, marital-status is sensitive,
//! income is the class.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};

/// All columns, in the order of the file.
pub const COLUMNS: [&str; 15] = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
];

/// The columns of integers.
pub const NUMERIC: [&str; 6] = [
    "age",
    "fnlwgt",
    "education-num",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
];

/// Of the package that includes this file, or of the workspace around it.
fn folder() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = package.ancestors().map(|it| it.join("tests/data/adult"));
    folders.find(|it| it.is_dir()).unwrap_or_default()
}

/// The 45,222 complete records as CSV with a header.
pub fn csv() -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    MultiGzDecoder::new(File::open(folder().join("adult.csv.gz"))?).read_to_end(&mut text)?;
    Ok(text)
}

/// The body of `POST /v1/datasets`, with the taxonomies of the categorical columns.
pub fn dataset(name: &str) -> anyhow::Result<Value> {
    let mut columns = Vec::new();
    for column in COLUMNS {
        let mut declared = json!({"name": column, "role": match column {
            "marital-status" => "sensitive",
            "income" => "class",
            _ => "quasi_identifier",
        }});
        if NUMERIC.contains(&column) {
            declared["kind"] = "numeric".into();
        } else if declared["role"] == "quasi_identifier" {
            let file = folder().join(format!("taxonomies/{column}.json"));
            let tree: Value = serde_json::from_reader(File::open(file)?)?;
            declared["taxonomy"] = tree["root"].clone();
        }
        columns.push(declared);
    }
    Ok(json!({"name": name, "columns": columns}))
}

/// The body of `POST /v1/jobs` without `dataset_id`: LKC-privacy with K = 20, C = 100 %.
pub fn job(l: u32) -> Value {
    json!({
        "privacy": {
            "model": "lkc", "l": l, "k": 20, "c": 1.0,
            "sensitive_values": {"marital-status": ["Divorced", "Separated"]},
        },
        "utility": {"objective": "classification"},
        "release": true,
    })
}
