//! The document of a release in place of a schema and a job.

use pais::problem::{Code, Problem};
use pais_core::codebook::{Codebook, ReleaseTerms};

use super::document_source::DocumentSource;
use super::documents::in_file;
use super::failure::Failure;

/// A release as its document describes it.
pub(crate) struct ReleaseDocument {
    /// The terms of the release.
    pub(crate) terms: ReleaseTerms,
    /// What resolves its labels.
    pub(crate) codebook: Codebook,
}

/// Reads the answer of `GET /v1/releases/{id}`.
///
/// # Errors
/// If the document cannot be read, is not that of a release, or has no codebook.
pub(crate) fn load(source: &DocumentSource) -> Result<ReleaseDocument, Failure> {
    let terms = ReleaseTerms::parse(&source.read()?);
    let mut terms = terms.map_err(|error| in_file(source, error))?;
    match terms.codebook.take() {
        Some(codebook) => Ok(ReleaseDocument { terms, codebook }),
        None => {
            let detail = "the release has no codebook: an earlier version made it, or this is an item \
                          of a list; fetch /v1/releases/{id}, or make the release again";
            let problem = Problem::at(Code::InvalidShape, "/codebook", detail);
            Err(in_file(source, problem).into())
        }
    }
}
