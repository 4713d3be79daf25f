//! Jobs: which privacy model, which utility, which output.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ColumnRole, DatasetId, JobError, JobErrorKind, PrivacyDefinition, SubmissionId};
use crate::model::{Decimal, MissingSensitive, PrivacyModel};

/// The body of `POST /v1/jobs`; on the command line the same without `dataset_id`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JobDefinition {
    /// Which dataset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = DatasetId, required = true))]
    pub dataset_id: Option<DatasetId>,
    /// Which privacy model.
    pub privacy: PrivacyDefinition,
    /// What the analyst needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utility: Option<UtilityDefinition>,
    /// Largest fraction of rows that may be suppressed; default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub suppression_limit: Option<f64>,
    /// What rows may be suppressed for; default `size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppression_for: Option<SuppressionFor>,
    /// How missing sensitive cells count; default `excluded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_sensitive: Option<MissingSensitive>,
    /// One cut for the whole table, or groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recoding: Option<Recoding>,
    /// What the released table contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// The analyst's wishes, applied first: column to level and exceptions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_generalization: Option<BTreeMap<String, PreGeneralization>>,
    /// Column to its role in this job, in place of the declared one; neither of the two may be
    /// `identifier` or `subject`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<BTreeMap<String, ColumnRole>>,
    /// Submissions to include; all when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_items = 1))]
    pub submissions: Option<Vec<SubmissionId>>,
    /// Whether to release the last step when the run ends well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<bool>,
    /// Makes the order of released rows repeatable; random when omitted.
    #[serde(
        default,
        deserialize_with = "super::whole::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "openapi", schema(maximum = 9007199254740991u64))]
    pub seed: Option<u64>,
}

impl JobDefinition {
    /// The privacy model with its parameters in range.
    ///
    /// # Errors
    /// As [`PrivacyDefinition::parse`].
    pub fn privacy_model(&self) -> Result<PrivacyModel, JobError> {
        self.privacy.parse(self.missing_sensitive())
    }

    /// How missing sensitive cells count.
    pub fn missing_sensitive(&self) -> MissingSensitive {
        self.missing_sensitive.unwrap_or_default()
    }

    /// What rows may be suppressed for.
    pub fn suppression_for(&self) -> SuppressionFor {
        self.suppression_for.unwrap_or_default()
    }

    /// The largest fraction of rows that may be suppressed; 0 if it was not given.
    ///
    /// # Errors
    /// [`JobErrorKind::InvalidValue`] outside [0, 1].
    pub fn suppression_limit(&self) -> Result<Decimal, JobError> {
        Decimal::fraction(self.suppression_limit.unwrap_or(0.0)).ok_or_else(|| {
            JobError::at(
                JobErrorKind::InvalidValue,
                "/suppression_limit",
                "`suppression_limit` must be a fraction of the rows, from 0 to 1",
            )
        })
    }
}

/// What the analyst needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct UtilityDefinition {
    /// What a specialization is chosen by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Objective>,
    /// How numeric intervals are split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitRule>,
    /// Quasi-identifier to its weight in the choice by NCP, greater than 0; 1 where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<BTreeMap<String, f64>>,
}

/// What a specialization is chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Greatest information gain on the class column (KDD'09, Eq. 1 and 2).
    Classification,
    /// Greatest reduction of the discernibility cost.
    Discernibility,
    /// Greatest sum of squared groups after the specialization (KDD'09, Eq. 4 as Example 3
    /// computes it).
    DiscernibilityEq4,
    /// Greatest decrease of the mean normalized certainty penalty.
    Ncp,
}

/// How a numeric interval without a taxonomy is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SplitRule {
    /// At the best point alone; where that is invalid the interval is finished.
    #[default]
    Fixed,
    /// At the best point that is valid.
    BestValid,
}

/// One cut for the whole table, or groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Recoding {
    /// One cut for the whole table.
    Global,
    /// Groups of a k-d split.
    Local,
}

/// What rows may be suppressed for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SuppressionFor {
    /// Only to remove groups of fewer than *K* rows.
    #[default]
    Size,
    /// To remove groups whose confidence is above *C* too. What is missing from the release was
    /// then sensitive, which the release says.
    SizeAndConfidence,
}

/// What the released table contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// Generalized quasi-identifiers.
    Generalized,
    /// Exact quasi-identifiers with a group, and a table of counts for each sensitive column.
    Anatomized,
}

/// One column's pre-generalization (*PGD* of the 2014 paper, Section 4.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PreGeneralization {
    /// Level of every value not named below, leaves being level 0.
    #[serde(default, deserialize_with = "super::whole::or_default")]
    #[cfg_attr(feature = "openapi", schema(maximum = 4294967295u64))]
    pub level: u32,
    /// Level to the values that are generalized to it.
    #[serde(
        default,
        deserialize_with = "super::json::or_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub values: BTreeMap<String, Vec<String>>,
}
