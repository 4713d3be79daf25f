//! Figures on Adult.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use pais_core::definition::{Objective, SplitRule};
use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::table::{EncodedTable, Table};

use super::super::super::method::node_ncp;
use super::super::super::requirement::Requirement;
use super::super::super::search::{SpecializationSettings, SpecializationTask};
use super::super::{Effort, search};
use crate::Unobserved;
use crate::test_data::{DATA_FOLDER, job_of, load, schema};

const COLUMNS: [&str; 15] = [
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

fn adult(role: impl Fn(&str) -> &'static str) -> (Arc<Schema>, Table) {
    let column = |name: &str| {
        let mut column = json!({"name": name, "role": role(name)});
        match name {
            "workclass" | "education" | "marital-status" | "occupation" | "relationship"
            | "race" | "sex" | "native-country" => {
                let path = format!("{DATA_FOLDER}/adult/taxonomies/{name}.json");
                if let Ok(file) = std::fs::read(path) {
                    let tree = serde_json::from_slice::<Value>(&file).unwrap()["root"].take();
                    column["taxonomy"] = tree;
                }
            }
            "income" => {}
            _ => column["kind"] = json!("numeric"),
        }
        column
    };
    let schema = schema(COLUMNS.into_iter().map(column).collect());
    let packed = std::fs::read(format!("{DATA_FOLDER}/adult/adult.csv.gz")).unwrap();
    let mut file = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(packed.as_slice());
    reader.read_to_end(&mut file).unwrap();
    let table = load(&schema, &file);
    (schema, table)
}

fn nine() -> (Arc<Schema>, Table) {
    adult(|name| match name {
        "age" | "workclass" | "education" | "marital-status" | "occupation" | "race" | "sex"
        | "native-country" | "income" => "quasi_identifier",
        _ => "identifier",
    })
}

/// ARX's nine columns under 5-anonymity: greedy runs end at 0.66 under `ncp`.
#[test]
fn few_iterations_are_far_below_the_greedy_loss_on_adult() {
    let (schema, table) = nine();
    let job = json!({"privacy": {"model": "k_anonymity", "k": 5}});
    let job = job_of(job).unwrap();
    let PrivacyModel::Lkc(model) = job.model.clone() else {
        panic!("k-anonymity is LKC-privacy");
    };
    let table = EncodedTable::new(&schema, table);
    let requirement = Requirement::of_model(&model, &table);
    let settings = SpecializationSettings {
        objective: Objective::Ncp,
        split: SplitRule::Fixed,
        suppression_limit: job.suppression_limit,
        suppression_for: job.suppression_for(),
    };
    let effort = Effort {
        limit: Duration::from_secs(3600),
        iterations: 48,
        seed: 0,
    };
    let task = SpecializationTask {
        table: &table,
        requirement: &requirement,
        settings,
        node_ncp: &node_ncp(&schema, &table),
        above_first_cut: &[],
        observer: &Unobserved::default(),
    };
    let steps = search(task, None, effort).unwrap();
    let last = &steps.last().unwrap().item;
    assert!(last.smallest_group >= 5);
    assert!(last.ncp <= 0.6, "{}", last.ncp);
}
