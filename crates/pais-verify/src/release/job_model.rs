//! The privacy model of a job as a requirement on a finished table.

use pais_core::definition::json::escape;
use pais_core::definition::{ColumnRole, JobDefinition, JobError, JobErrorKind, ModelKind};
use pais_core::model::{Diversity, GroupModel, Lkc, PrivacyModel};
use pais_core::read::reimport;
use pais_core::schema::Schema;

use super::names;
use crate::{LkcRequirement, SensitiveSet};

/// The model of a job, which may name only sensitive columns of the schema.
pub(super) fn parse(schema: &Schema, job: &JobDefinition) -> Result<PrivacyModel, JobError> {
    let model = job.privacy.parse()?;
    let sensitive = names(schema, ColumnRole::Sensitive);
    let (field, named): (_, Vec<&String>) = match &model {
        PrivacyModel::Lkc(model) => {
            let listed = model.sensitive_values.iter().flatten();
            let columns = listed.map(|(column, _)| column);
            ("sensitive_values", columns.collect())
        }
        PrivacyModel::Groups(model) => match &model.diversity {
            Diversity::MinimumCover { column_limits, .. } => {
                ("column_limits", column_limits.keys().collect())
            }
            _ => ("", Vec::new()),
        },
        PrivacyModel::KmAnonymity(_) => ("", Vec::new()),
    };
    let mut named = named.into_iter();
    match named.find(|column| !sensitive.iter().any(|name| **name == ***column)) {
        None => Ok(model),
        Some(column) => Err(JobError::at(
            JobErrorKind::Unfit,
            format!("/privacy/{field}/{}", escape(column)),
            "the dataset has no column of this name and the role `sensitive`",
        )),
    }
}

/// The model of a job as one of groups, which an anatomized release can meet.
pub(super) fn parse_groups(schema: &Schema, job: &JobDefinition) -> Result<GroupModel, JobError> {
    match parse(schema, job)? {
        PrivacyModel::Groups(model) => Ok(model),
        PrivacyModel::Lkc(model) if job.privacy.model == ModelKind::KAnonymity => Ok(GroupModel {
            k: model.k,
            diversity: Diversity::None,
        }),
        PrivacyModel::Lkc(_) | PrivacyModel::KmAnonymity(_) => Err(JobError::at(
            JobErrorKind::Unfit,
            "/privacy/model",
            "an anatomized release has groups and no cut: `k_anonymity` and the models of groups \
             can be verified on it",
        )),
    }
}

/// The requirement of LKC-privacy, its listed values in the canonical form of the table's.
pub(super) fn requirement(schema: &Schema, model: &Lkc, width: usize) -> LkcRequirement {
    let sensitive = names(schema, ColumnRole::Sensitive);
    let mut requirement = LkcRequirement::from_model(model, width, &sensitive);
    for column in &mut requirement.sensitive {
        let spec = schema.stored().find(|spec| spec.name == column.column);
        if let (Some(spec), SensitiveSet::Listed(values)) = (spec, &mut column.values) {
            for value in values {
                if let Some(canonical) = reimport::plain(spec, value) {
                    *value = canonical.into();
                }
            }
        }
    }
    requirement
}
