//! The privacy model of a job as a requirement on a finished table.

use pais_core::definition::{JobDefinition, JobError, JobErrorKind};
use pais_core::model::{GroupModel, PrivacyModel};
use pais_core::schema::Schema;

/// The model of a job as one of groups, which an anatomized release can meet.
pub(super) fn parse_groups(schema: &Schema, job: &JobDefinition) -> Result<GroupModel, JobError> {
    let anatomized = JobDefinition {
        output: Some(pais_core::definition::Output::Anatomized),
        ..job.clone()
    };
    match schema.privacy_model(&anatomized)? {
        PrivacyModel::Groups(model) => Ok(model),
        PrivacyModel::Lkc(_) | PrivacyModel::KmAnonymity(_) => Err(JobError::at(
            JobErrorKind::Unfit,
            "/privacy/model",
            "an anatomized release has groups and no cut: models of diversity can be verified on \
             it",
        )),
    }
}
