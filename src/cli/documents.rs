//! The JSON documents that the commands on files read and write.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use pais::problem::{Code, Problem};
use pais_core::definition::{DatasetDefinition, JobDefinition, json, sweep};
use pais_core::schema::Schema;
use pais_core::taxonomy::TreeLimits;

use super::failure::Failure;

/// Bounds of taxonomies on the command line, where the user's own memory is at stake.
const LIMITS: TreeLimits = TreeLimits {
    leaves: 10_000_000,
    depth: 60,
};

/// Reads the body of `POST /v1/datasets` with inline taxonomies.
///
/// # Errors
/// For what does not make a schema, and an unreadable file.
pub fn schema(path: &Path) -> Result<Schema, Failure> {
    let definition: DatasetDefinition = parse(path)?;
    let resolved = Schema::resolve(&definition, LIMITS, |_| None);
    resolved.map_err(|problem| {
        let problem = if problem.code == Code::NotFound {
            let detail = "on the command line a taxonomy stands inline, not by id";
            Problem::with(Code::InvalidSchema, detail, problem.errors)
        } else {
            problem
        };
        in_file(path, problem).into()
    })
}

/// Reads the body of `POST /v1/jobs` without what names things of the service.
///
/// # Errors
/// For what is no such document, and an unreadable file.
pub fn job(path: &Path) -> Result<JobDefinition, Failure> {
    if let Some(pointer) = sweep::first_list(&parse(path)?) {
        let detail = "lists of values are tried by a job of the service; give one value here";
        let problem = Problem::at(Code::InvalidJob, pointer, detail);
        return Err(in_file(path, problem).into());
    }
    let job: JobDefinition = parse(path)?;
    for (given, field) in [
        (job.dataset_id.is_some(), "dataset_id"),
        (job.submissions.is_some(), "submissions"),
    ] {
        if given {
            let detail = format!("on the command line a job has no `{field}`; INPUT is the table");
            let problem = Problem::at(Code::InvalidShape, format!("/{field}"), detail);
            return Err(in_file(path, problem).into());
        }
    }
    Ok(job)
}

fn parse<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let body = std::fs::read(path).map_err(|error| Failure::file(path, &error))?;
    json::parse(&body).map_err(|problem| in_file(path, problem).into())
}

/// The same problem, told of which file it is.
pub fn in_file(path: &Path, problem: Problem) -> Problem {
    Problem {
        detail: format!("{}: {}", path.display(), problem.detail),
        ..problem
    }
}

/// Writes a document.
///
/// # Errors
/// For a file that cannot be written.
pub fn write(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::file(path, &error);
    let mut out = BufWriter::new(File::create(path).map_err(failed)?);
    serde_json::to_writer_pretty(&mut out, value).map_err(|error| failed(error.into()))?;
    out.write_all(b"\n")
        .and_then(|()| out.flush())
        .map_err(failed)
}
