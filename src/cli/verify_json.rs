//! The document that `pais verify --json` prints.

use std::io::Write;

use pais_core::definition::{JobDefinition, PrivacyDefinition};
use pais_core::warning::Warning;
use pais_verify::{
    FoundRecoding, GroupVerification, PrivacyFinding, RawFinding, ReleaseVerification, Verification,
};
use serde::Serialize;

use super::failure::Failure;
use super::streams;

/// What was found, as JSON.
#[derive(Serialize)]
struct FindingDocument<'a> {
    /// Whether everything that was checked holds, and nothing is open.
    holds: bool,
    /// Whether something does not hold; the exit status is then 1.
    fails: bool,
    /// What could not be decided without the raw table.
    undecided: Option<String>,
    /// The model, as the job asks for it.
    privacy: &'a PrivacyDefinition,
    /// Persons of the released rows, where these are counted.
    subjects: Option<u64>,
    /// The figures of the model; null where they could not be found.
    verification: Option<Figures<'a>>,
    /// The comparison with the raw table; null without it.
    raw: Option<RawDocument>,
    /// What is worth knowing.
    warnings: &'a [Warning],
}

#[derive(Serialize)]
#[serde(untagged)]
enum Figures<'a> {
    Subsets(&'a Verification),
    Groups(&'a GroupVerification),
}

#[derive(Serialize)]
struct RawDocument {
    holds: bool,
    rows: u64,
    made_up: u64,
    lost: u64,
    may_be_lost: u64,
    /// `global`, `local` or `anatomized`.
    recoding: &'static str,
    /// Whether the sensitive tables count the records of each group.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts_match: Option<bool>,
}

/// Prints what was found on standard output.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn print(found: &ReleaseVerification, job: &JobDefinition) -> Result<(), Failure> {
    let document = FindingDocument {
        holds: found.holds(),
        fails: found.fails(),
        undecided: found.undecided.map(|undecided| undecided.to_string()),
        privacy: &job.privacy,
        subjects: found.subjects,
        verification: found.privacy.as_ref().map(|privacy| match privacy {
            PrivacyFinding::Subsets(found) => Figures::Subsets(found),
            PrivacyFinding::Groups(found) => Figures::Groups(found),
        }),
        raw: found.raw.as_ref().map(RawDocument::from),
        warnings: &found.warnings,
    };
    streams::print(|out| {
        serde_json::to_writer_pretty(&mut *out, &document)?;
        writeln!(out)
    })
}

impl From<&RawFinding> for RawDocument {
    fn from(found: &RawFinding) -> Self {
        let (recoding, counts_match) = match found.recoding {
            FoundRecoding::Global => ("global", None),
            FoundRecoding::Local => ("local", None),
            FoundRecoding::Anatomized { counts_match } => ("anatomized", Some(counts_match)),
        };
        Self {
            holds: found.holds(),
            rows: found.rows,
            made_up: found.made_up,
            lost: found.lost,
            may_be_lost: found.may_be_lost,
            recoding,
            counts_match,
        }
    }
}
