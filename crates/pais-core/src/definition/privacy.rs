//! `privacy` of a job: the requested model and its parameters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Number;
use serde_with::{As, Same, skip_serializing_none};

use super::whole::Whole;
use super::{JobError, JobErrorKind, OneOrMany, json};
use crate::model::{
    GroupModel, KmAnonymity, Lkc, MissingSensitive, ParameterError, PrivacyModel, SensitiveValues,
};

/// The word of a privacy model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ModelWord))]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// LKC-privacy.
    Lkc,
    /// k-anonymity over all quasi-identifiers.
    KAnonymity,
    /// Confidence bounding: LKC with L = number of quasi-identifiers, K = 1.
    ConfidenceBounding,
    /// (α,k)-anonymity: LKC with L = number of quasi-identifiers, C = α.
    AlphaK,
    /// l-diversity over several sensitive attributes.
    LDiversity,
    /// k^m-anonymity over the set-valued quasi-identifiers.
    KMAnonymity,
    /// Distinct l-diversity of one sensitive attribute.
    DistinctLDiversity,
    /// Entropy l-diversity of one sensitive attribute.
    EntropyLDiversity,
    /// Recursive (c,l)-diversity of one sensitive attribute.
    RecursiveClDiversity,
    /// t-closeness of one sensitive attribute, with equal ground distances.
    TCloseness,
}

impl ModelKind {
    /// All models.
    #[cfg(feature = "openapi")]
    pub(crate) const ALL: [Self; 10] = [
        Self::Lkc,
        Self::KAnonymity,
        Self::ConfidenceBounding,
        Self::AlphaK,
        Self::LDiversity,
        Self::KMAnonymity,
        Self::DistinctLDiversity,
        Self::EntropyLDiversity,
        Self::RecursiveClDiversity,
        Self::TCloseness,
    ];

    /// The parameters that the model takes.
    pub(crate) fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Lkc => &["l", "k", "c", "sensitive_values"],
            Self::KAnonymity => &["k"],
            Self::ConfidenceBounding => &["c", "sensitive_values"],
            Self::AlphaK => &["alpha", "k", "sensitive_values"],
            Self::LDiversity => &["k", "l", "column_limits", "min_range"],
            Self::KMAnonymity => &["k", "m"],
            Self::DistinctLDiversity | Self::EntropyLDiversity => &["k", "l", "min_range"],
            Self::RecursiveClDiversity => &["k", "c", "l", "min_range"],
            Self::TCloseness => &["k", "t"],
        }
    }

    /// The word of a job's `model`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lkc => "lkc",
            Self::KAnonymity => "k_anonymity",
            Self::ConfidenceBounding => "confidence_bounding",
            Self::AlphaK => "alpha_k",
            Self::LDiversity => "l_diversity",
            Self::KMAnonymity => "k_m_anonymity",
            Self::DistinctLDiversity => "distinct_l_diversity",
            Self::EntropyLDiversity => "entropy_l_diversity",
            Self::RecursiveClDiversity => "recursive_cl_diversity",
            Self::TCloseness => "t_closeness",
        }
    }
}

/// The parameters that a model takes without needing them.
pub(super) const OPTIONAL_PARAMETERS: [&str; 3] =
    ["sensitive_values", "column_limits", "min_range"];

/// `privacy` of a job, as requested. Which parameters a model takes is checked by
/// [`PrivacyDefinition::parse`].
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyDefinition {
    /// The model.
    pub model: ModelKind,
    /// Maximum number of known values (`lkc`), or the diversity; an integer except for `entropy_l_diversity`.
    pub l: Option<OneOrMany<Number>>,
    /// Minimum number of records that match the known values.
    pub k: Option<OneOrMany<i64>>,
    /// Maximum number of known items of a record (`k_m_anonymity`).
    #[serde(default, deserialize_with = "super::whole::option")]
    pub m: Option<i64>,
    /// Maximum confidence, in (0, 1]; for `recursive_cl_diversity` the factor *c*.
    pub c: Option<OneOrMany<f64>>,
    /// Maximum distance for `t_closeness`, in [0, 1].
    pub t: Option<f64>,
    /// Maximum confidence for (α,k)-anonymity, in (0, 1].
    pub alpha: Option<f64>,
    /// Which values are sensitive; every value of every sensitive column when omitted.
    pub sensitive_values: Option<SensitiveValues>,
    /// Column to its own L (Definition 7 of the multiple-sensitive-attribute paper).
    #[serde(
        default,
        deserialize_with = "As::<Option<BTreeMap<Same, Whole>>>::deserialize"
    )]
    pub column_limits: Option<BTreeMap<String, i64>>,
    /// By numeric sensitive column, the minimum difference between the largest and the smallest of its
    /// numbers in a group.
    pub min_range: Option<BTreeMap<String, f64>>,
}

impl PrivacyDefinition {
    /// Checks which parameters the model takes and that they are in range.
    ///
    /// # Errors
    /// [`JobErrorKind::Shape`] for a missing parameter, one of another model, or a list where one
    /// value is needed; [`JobErrorKind::OutOfRange`] for a value out of range; both with a pointer
    /// below `/privacy`.
    pub fn parse(&self, missing_sensitive: MissingSensitive) -> Result<PrivacyModel, JobError> {
        let taken = self.model.parameters();
        let given = [
            ("l", self.l.is_some()),
            ("k", self.k.is_some()),
            ("m", self.m.is_some()),
            ("c", self.c.is_some()),
            ("t", self.t.is_some()),
            ("alpha", self.alpha.is_some()),
            ("sensitive_values", self.sensitive_values.is_some()),
            ("column_limits", self.column_limits.is_some()),
            ("min_range", self.min_range.is_some()),
        ];
        let word = self.model.as_str();
        for (parameter, given) in given {
            if given && !taken.contains(&parameter) {
                return Err(JobError::at(
                    JobErrorKind::Shape,
                    format!("/privacy/{parameter}"),
                    format!(
                        "`{parameter}` is not a parameter of `{word}`, which takes {}",
                        taken.join(", ")
                    ),
                ));
            }
            let optional = OPTIONAL_PARAMETERS.contains(&parameter);
            if !given && taken.contains(&parameter) && !optional {
                return Err(JobError::at(
                    JobErrorKind::Shape,
                    "/privacy",
                    format!("`{word}` needs `{parameter}`"),
                ));
            }
        }
        let k = || Ok::<_, JobError>(u64::try_from(*one("k", &self.k)?.unwrap_or(&0)).unwrap_or(0));
        let c = || Ok::<_, JobError>(*one("c", &self.c)?.unwrap_or(&0.0));
        let bounding = |model: Lkc| {
            PrivacyModel::Lkc(Lkc {
                sensitive_values: self.sensitive_values.clone(),
                missing_sensitive,
                ..model
            })
        };
        Ok(match self.model {
            ModelKind::Lkc => bounding(Lkc::new(self.whole_l()?, k()?, c()?)?),
            ModelKind::KAnonymity => Lkc::k_anonymity(k()?)?.into(),
            ModelKind::ConfidenceBounding => bounding(Lkc::confidence_bounding(c()?)?),
            ModelKind::AlphaK => bounding(Lkc::alpha_k(self.alpha.unwrap_or(0.0), k()?)?),
            ModelKind::LDiversity => self.with_min_range(self.l_diversity(k()?)?)?,
            ModelKind::KMAnonymity => {
                let m = self.m.and_then(|m| u32::try_from(m).ok());
                KmAnonymity::new(k()?, m.unwrap_or(0))?.into()
            }
            ModelKind::DistinctLDiversity => {
                self.with_min_range(GroupModel::distinct_l_diversity(k()?, self.whole_l()?)?)?
            }
            ModelKind::EntropyLDiversity => {
                let l = one("l", &self.l)?.and_then(Number::as_f64);
                self.with_min_range(GroupModel::entropy_l_diversity(k()?, l.unwrap_or(0.0))?)?
            }
            ModelKind::RecursiveClDiversity => {
                let model = GroupModel::recursive_cl_diversity(k()?, c()?, self.whole_l()?)?;
                self.with_min_range(model)?
            }
            ModelKind::TCloseness => GroupModel::t_closeness(k()?, self.t.unwrap_or(-1.0))?.into(),
        })
    }

    /// *L* of a model that takes a whole number; 0, which no model accepts, if it is out of range.
    fn whole_l(&self) -> Result<u32, JobError> {
        let l = one("l", &self.l)?;
        // A number beyond the 64-bit integers is read as a floating-point number.
        let has_fraction = |l: f64| l.fract() != 0.0;
        if l.and_then(Number::as_f64).is_some_and(has_fraction) {
            let detail = "`l` is a whole number";
            return Err(JobError::at(JobErrorKind::Shape, "/privacy/l", detail));
        }
        let l = l.and_then(Number::as_i64);
        Ok(l.and_then(|l| u32::try_from(l).ok()).unwrap_or(0))
    }

    fn with_min_range(&self, mut model: GroupModel) -> Result<PrivacyModel, JobError> {
        for (column, &least) in self.min_range.iter().flatten() {
            model = model.min_range(column, least).map_err(|error| {
                let pointer = format!("/privacy/min_range/{}", json::escape(column));
                JobError::at(JobErrorKind::OutOfRange, pointer, error.detail)
            })?;
        }
        Ok(model.into())
    }

    fn l_diversity(&self, k: u64) -> Result<GroupModel, JobError> {
        let mut model = GroupModel::l_diversity(k, self.whole_l()?)?;
        for (column, &limit) in self.column_limits.iter().flatten() {
            let limited = match u32::try_from(limit) {
                Ok(limit) => model.column_limit(column, limit),
                Err(_) => Err(model.limit_out_of_range()),
            };
            model = limited.map_err(|error| {
                let pointer = format!("/privacy/column_limits/{}", json::escape(column));
                JobError::at(JobErrorKind::OutOfRange, pointer, error.detail)
            })?;
        }
        Ok(model)
    }
}

impl From<ParameterError> for JobError {
    fn from(error: ParameterError) -> Self {
        let pointer = format!("/privacy/{}", error.parameter);
        Self::at(JobErrorKind::OutOfRange, pointer, error.detail)
    }
}

/// The one value of a parameter that may be a list.
fn one<'a, T>(parameter: &str, value: &'a Option<OneOrMany<T>>) -> Result<Option<&'a T>, JobError> {
    match value {
        None => Ok(None),
        Some(OneOrMany::One(value)) => Ok(Some(value)),
        Some(OneOrMany::Many(_)) => Err(JobError::at(
            JobErrorKind::Shape,
            format!("/privacy/{parameter}"),
            format!("`{parameter}` is a list; give one value here"),
        )),
    }
}
