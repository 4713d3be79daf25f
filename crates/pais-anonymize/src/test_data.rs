//! What the tests of several modules share: schemas, tables and the faults of refused jobs.

use std::sync::Arc;

use pais_core::definition::{DatasetDefinition, Job, JobDefinition, JobError, JobErrorKind};
use pais_core::rejection::Fault;
use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_core::taxonomy::TreeLimits;
use pais_io::read::csv;
use serde_json::{Value, json};

use crate::{
    AnonymizationRun, RunError, SearchOutcome, StepRecord, Unobserved, VerifiedRelease,
    VerifiedTables,
};

/// The files that the tests of all crates read.
pub(crate) const DATA_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data");

/// The schema with these columns.
pub(crate) fn schema(columns: Value) -> Arc<Schema> {
    let definition: DatasetDefinition =
        serde_json::from_value(json!({"name": "t", "columns": columns})).unwrap();
    let limits = TreeLimits {
        leaves: 100_000,
        depth: 60,
    };
    Arc::new(Schema::resolve(&definition, limits, |_| None).unwrap())
}

/// The rows of a CSV file.
pub(crate) fn load(schema: &Schema, file: &[u8]) -> Table {
    csv::read_table(schema, file).unwrap()
}

/// The condition that no generalization meets.
pub(crate) fn unmet(error: &RunError) -> &Fault {
    match error {
        RunError::NotAnonymizable { faults, .. } => &faults[0],
        other => panic!("an unmet condition is expected, not {other:?}"),
    }
}

/// The steps of a search.
pub(crate) fn steps(run: &AnonymizationRun) -> Result<Vec<StepRecord>, RunError> {
    let found = run.search(&Unobserved::default())?;
    Ok(found.into_steps())
}

/// The verified tables after a recorded step, the last one when `None`.
pub(crate) fn verified(
    run: &AnonymizationRun,
    steps: &[StepRecord],
    step: Option<u32>,
) -> Result<VerifiedTables, RunError> {
    let recorded = SearchOutcome::new(steps.to_vec());
    run.verify(&recorded, step, &Unobserved::default())
}

/// The release after a recorded step, the last one when `None`.
pub(crate) fn released(
    run: &AnonymizationRun,
    steps: &[StepRecord],
    step: Option<u32>,
) -> Result<VerifiedRelease, RunError> {
    let recorded = SearchOutcome::new(steps.to_vec());
    run.release(&recorded, step, &Unobserved::default())
}

/// The job of a document.
pub(crate) fn job_of(document: Value) -> Result<Job, JobError> {
    let document: JobDefinition = serde_json::from_value(document).unwrap();
    document.parse()
}

/// The job of a document, for a test that finds raw rows again by keys which are released unchanged.
pub(crate) fn job_with_keys(document: Value, schema: &Schema) -> Result<Job, JobError> {
    let columns = schema.columns.iter();
    let reason = |name: &str| (name.to_owned(), "the test finds rows by it".to_owned());
    Ok(Job {
        acknowledged: columns.map(|column| reason(column.name())).collect(),
        ..job_of(document)?
    })
}

/// The kind of a job's refusal, and the pointer into the job.
pub(crate) fn refusal<T>(checked: Result<T, JobError>) -> (JobErrorKind, String) {
    let error = checked.err().expect("the job is refused");
    let pointer = error.faults[0].pointer().unwrap().to_owned();
    (error.kind, pointer)
}

/// Adult, with the default taxonomies and a role for each column.
pub(crate) fn adult_with(role: impl Fn(&str) -> &'static str) -> (Arc<Schema>, Table) {
    use std::io::Read;
    let folder = format!("{DATA_FOLDER}/adult");
    let tree = |name: &str| {
        let file = std::fs::read(format!("{folder}/taxonomies/{name}.json")).unwrap();
        serde_json::from_slice::<Value>(&file).unwrap()["root"].take()
    };
    let columns: Vec<Value> = [
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
    ]
    .into_iter()
    .map(|name| {
        let mut column = json!({"name": name, "role": role(name)});
        match name {
            "workclass" | "education" | "marital-status" | "occupation" | "relationship"
            | "race" | "sex" | "native-country" => column["taxonomy"] = tree(name),
            "income" => {}
            _ => column["kind"] = json!("numeric"),
        }
        column
    })
    .collect();
    let schema = schema(Value::Array(columns));
    let packed = std::fs::read(format!("{folder}/adult.csv.gz")).unwrap();
    let mut file = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice())
        .read_to_end(&mut file)
        .unwrap();
    let table = load(&schema, &file);
    (schema, table)
}
