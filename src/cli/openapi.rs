//! `pais openapi`.

use std::io::Write;

/// Prints the OpenAPI document to standard output.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn run() -> anyhow::Result<()> {
    std::io::stdout().write_all(pais::http::document_text()?.as_bytes())?;
    Ok(())
}
