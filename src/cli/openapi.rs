//! `pais openapi`.

use std::io::Write;

use pais::problem::{Code, Problem};

use super::failure::Failure;
use super::streams;

/// Prints the OpenAPI document to standard output.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn run() -> Result<(), Failure> {
    let text = pais::api::document_text()
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    streams::print(|out| out.write_all(text.as_bytes()))
}
