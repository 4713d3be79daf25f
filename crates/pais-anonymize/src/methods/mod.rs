//! The methods of anonymization, one folder each.

pub(crate) mod bounded_values;
mod item_disclosure;
pub(crate) mod partitioning;
pub(crate) mod specialization;

use pais_core::definition::{Job, JobError, JobErrorKind};
use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;

use crate::method::{Method, PlanMethod};

#[cfg(test)]
mod person_tests;
#[cfg(test)]
mod toy;

/// The registered methods. The first that takes a job runs it.
const METHODS: &[PlanMethod] = &[
    partitioning::plan,
    item_disclosure::plan,
    specialization::plan,
];

/// The method of a job, checked against the schema.
///
/// # Errors
/// A job that does not fit the schema.
pub(crate) fn plan(
    schema: &Schema,
    job: &Job,
    model: &PrivacyModel,
) -> Result<Box<dyn Method>, JobError> {
    plan_among(METHODS, schema, job, model)
}

fn plan_among(
    methods: &[PlanMethod],
    schema: &Schema,
    job: &Job,
    model: &PrivacyModel,
) -> Result<Box<dyn Method>, JobError> {
    for plan in methods {
        if let Some(method) = plan(schema, job, model)? {
            return Ok(method);
        }
    }
    let detail = "no method takes this privacy model with this `recoding` and these columns";
    Err(JobError::at(JobErrorKind::Unfit, "/privacy/model", detail))
}
