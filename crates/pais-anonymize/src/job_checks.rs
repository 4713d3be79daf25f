//! Checks of a job that several methods share.

use pais_core::definition::{
    ColumnKind, ColumnRole, Job, JobError, JobErrorKind, Output, Recoding,
};
use pais_core::schema::{Schema, SchemaColumn};

/// A job that does not fit the dataset, with a pointer into it.
pub(crate) fn unfit(pointer: impl Into<String>, detail: impl Into<String>) -> JobError {
    JobError::at(JobErrorKind::Unfit, pointer, detail)
}

/// Refuses what only local recoding provides.
pub(crate) fn check_global(job: &Job) -> Result<(), JobError> {
    if job.recoding == Some(Recoding::Local) {
        return Err(unfit(
            "/recoding",
            "this model takes global recoding only; `recoding: local` takes `k_anonymity`, `lkc` and \
             its special cases, and the models of groups",
        ));
    }
    if job.output == Some(Output::Anatomized) {
        return Err(unfit(
            "/output",
            "anatomized output needs `recoding: local`",
        ));
    }
    Ok(())
}

/// Refuses weights, which only tables with sets have.
pub(crate) fn check_no_weights(job: &Job) -> Result<(), JobError> {
    if job.weights.is_some() {
        return Err(unfit(
            "/utility/weights",
            "weights are for tables with a set-valued quasi-identifier; leave `weights` out",
        ));
    }
    Ok(())
}

/// Refuses a thorough search by a method that has only one.
pub(crate) fn check_greedy(job: &Job) -> Result<(), JobError> {
    if job.thorough.is_some() {
        return Err(unfit(
            "/utility/search",
            "a thorough search is for global recoding of `lkc` without sets and of `k_anonymity`; \
             leave `search` out",
        ));
    }
    Ok(())
}

/// Refuses a dataset that has no quasi-identifiers, or has none under the roles of the job.
pub(crate) fn check_some(quasi_identifiers: &[Box<str>], job: &Job) -> Result<(), JobError> {
    if !quasi_identifiers.is_empty() {
        return Ok(());
    }
    let (pointer, what) = if job.roles.is_empty() {
        ("/dataset_id", "the dataset has no column")
    } else {
        ("/roles", "under these roles no column is")
    };
    let detail = format!("{what} of the role `quasi_identifier`, so there is nothing to anonymize");
    Err(unfit(pointer, detail))
}

/// Whether a column is a set-valued quasi-identifier.
pub(crate) fn is_set(column: &SchemaColumn) -> bool {
    column.role() == ColumnRole::QuasiIdentifier && column.kind() == ColumnKind::Set
}

/// The first set-valued quasi-identifier.
pub(crate) fn first_set(schema: &Schema) -> Option<&SchemaColumn> {
    schema.stored().find(|column| is_set(column))
}
