//! The JSON documents that the file commands write, and problems in the files they read.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::Serialize;

use pais::problem::Problem;

use super::failure::Failure;

/// An error as a problem, with the name of the file in front of its detail.
pub(crate) fn in_file(file: impl Display, error: impl Into<Problem>) -> Problem {
    let problem = error.into();
    Problem {
        detail: format!("{file}: {}", problem.detail),
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
