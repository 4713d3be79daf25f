//! The JSON documents that the file commands (`anonymize`, `verify`, `sample`) read and write.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use pais::problem::{Code, Problem};
use pais_core::definition::{DatasetDefinition, JobDefinition, first_list, json};
use pais_core::schema::{Schema, SchemaErrorKind};
use pais_core::taxonomy::TreeLimits;

use super::failure::Failure;

/// Limits of taxonomies on the command line. They are high, because only the user's own memory is
/// used.
const LIMITS: TreeLimits = TreeLimits {
    leaves: 10_000_000,
    depth: 60,
};

/// Reads a schema from a file: the body of `POST /v1/datasets`, with inline taxonomies.
///
/// # Errors
/// If the file cannot be read or is not a valid schema.
pub(crate) fn schema(path: &Path) -> Result<Schema, Failure> {
    let definition: DatasetDefinition = parse(path)?;
    let resolved = Schema::resolve(&definition, LIMITS, |_| None);
    resolved.map_err(|error| {
        let problem = if error.kind == SchemaErrorKind::UnknownTaxonomy {
            let detail = "on the command line a taxonomy must be given inline, not by id";
            Problem::with(Code::InvalidSchema, detail, error.faults)
        } else {
            error.into()
        };
        in_file(path, problem).into()
    })
}

/// The schema under the roles that a job, which was read from `path`, gives the columns.
///
/// # Errors
/// If the roles do not fit the schema.
pub(crate) fn schema_of_job(
    schema: Schema,
    job: &JobDefinition,
    path: &Path,
) -> Result<Schema, Failure> {
    let schema = schema
        .with_roles(job)
        .map_err(|error| in_file(path, error))?;
    Ok(schema.into_owned())
}

/// Reads a job from a file, whose parameters are single values.
///
/// # Errors
/// As [`job`], and if the job gives a list of values for a parameter.
pub(crate) fn single_job(path: &Path) -> Result<JobDefinition, Failure> {
    let job = job(path)?;
    match first_list(&job) {
        None => Ok(job),
        Some(pointer) => {
            let detail = "a release was made under one value of each parameter; give one here";
            let problem = Problem::at(Code::InvalidJob, pointer, detail);
            Err(in_file(path, problem).into())
        }
    }
}

/// Reads a job from a file: the body of `POST /v1/jobs`, without the fields that refer to resources
/// of the service (`dataset_id`, `submissions`).
///
/// # Errors
/// If the file cannot be read or is not a valid job.
pub(crate) fn job(path: &Path) -> Result<JobDefinition, Failure> {
    let job: JobDefinition = parse(path)?;
    for (given, field) in [
        (job.dataset_id.is_some(), "dataset_id"),
        (job.submissions.is_some(), "submissions"),
    ] {
        if given {
            let detail = format!(
                "on the command line a job has no `{field}`; remove it, the table is INPUT"
            );
            let problem = Problem::at(Code::InvalidShape, format!("/{field}"), detail);
            return Err(in_file(path, problem).into());
        }
    }
    Ok(job)
}

fn parse<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let body = std::fs::read(path).map_err(|error| Failure::file(path, &error))?;
    json::parse(&body).map_err(|error| in_file(path, error).into())
}

/// An error as a problem, with the path of the file in front of its detail.
pub(crate) fn in_file(path: &Path, error: impl Into<Problem>) -> Problem {
    let problem = error.into();
    Problem {
        detail: format!("{}: {}", path.display(), problem.detail),
        ..problem
    }
}

/// Writes a document to a file as indented JSON.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::file(path, &error);
    let mut out = BufWriter::new(File::create(path).map_err(failed)?);
    serde_json::to_writer_pretty(&mut out, value).map_err(|error| failed(error.into()))?;
    out.write_all(b"\n")
        .and_then(|()| out.flush())
        .map_err(failed)
}
