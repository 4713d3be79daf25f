//! What the tests of several modules share: schemas, tables and the faults of refused jobs.

use std::sync::Arc;

use pais_core::definition::{DatasetDefinition, JobError, JobErrorKind};
use pais_core::read::csv;
use pais_core::rejection::Fault;
use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_core::taxonomy::TreeLimits;
use serde_json::{Value, json};

use crate::RunError;

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
        RunError::NotAnonymizable { fault, .. } => fault,
        other => panic!("an unmet condition is expected, not {other:?}"),
    }
}

/// The kind of a job's refusal, and the pointer into the job.
pub(crate) fn refusal<T>(checked: Result<T, JobError>) -> (JobErrorKind, String) {
    let error = checked.err().expect("the job is refused");
    let pointer = error.faults[0].pointer().unwrap().to_owned();
    (error.kind, pointer)
}
