//! `privacy` of a job: the model that is asked for and its parameters.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::{JobError, JobErrorKind, OneOrMany, json};
use crate::model::{
    Confidence, Decimal, Diversity, GroupModel, KmAnonymity, Lkc, MinimumAnonymity,
    MissingSensitive, PriorKnowledge, PrivacyModel, SensitiveValues,
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
    pub const ALL: [Self; 10] = [
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
    pub fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Lkc => &["l", "k", "c", "sensitive_values"],
            Self::KAnonymity => &["k"],
            Self::ConfidenceBounding => &["c", "sensitive_values"],
            Self::AlphaK => &["alpha", "k", "sensitive_values"],
            Self::LDiversity => &["k", "l", "column_limits"],
            Self::KMAnonymity => &["k", "m"],
            Self::DistinctLDiversity | Self::EntropyLDiversity => &["k", "l"],
            Self::RecursiveClDiversity => &["k", "c", "l"],
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
pub(super) const OPTIONAL_PARAMETERS: [&str; 2] = ["sensitive_values", "column_limits"];

/// `privacy` of a job, as it is asked for. Which parameters a model takes is checked by
/// [`PrivacyDefinition::parse`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyDefinition {
    /// Which model.
    pub model: ModelKind,
    /// Most known values (`lkc`), or diversity; whole but for `entropy_l_diversity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l: Option<OneOrMany<Number>>,
    /// Fewest records that share what is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<OneOrMany<i64>>,
    /// Most known items of a record's sets (`k_m_anonymity`).
    #[serde(
        default,
        deserialize_with = "super::whole::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub m: Option<i64>,
    /// Greatest confidence, in (0, 1]; the factor of `recursive_cl_diversity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub c: Option<OneOrMany<f64>>,
    /// Greatest distance of `t_closeness`, in [0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t: Option<f64>,
    /// Greatest confidence of (α,k)-anonymity, in (0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Which values are sensitive; every value of every sensitive column when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitive_values: Option<SensitiveValues>,
    /// Column to its own L (Definition 7 of the multiple-sensitive-attribute paper).
    #[serde(
        default,
        deserialize_with = "super::whole::by_name",
        skip_serializing_if = "Option::is_none"
    )]
    pub column_limits: Option<BTreeMap<String, i64>>,
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
        let sensitive_values = self.sensitive_values.clone();
        Ok(match self.model {
            ModelKind::Lkc => PrivacyModel::Lkc(Lkc {
                l: Some(self.whole_l()?),
                k: self.anonymity()?,
                c: confidence("c", one("c", &self.c)?)?,
                sensitive_values,
                missing_sensitive,
            }),
            ModelKind::KAnonymity => PrivacyModel::Lkc(Lkc {
                l: None,
                k: self.anonymity()?,
                c: Confidence::UNBOUNDED,
                sensitive_values: Some(SensitiveValues::new()),
                missing_sensitive,
            }),
            ModelKind::ConfidenceBounding => PrivacyModel::Lkc(Lkc {
                l: None,
                k: MinimumAnonymity::MIN,
                c: confidence("c", one("c", &self.c)?)?,
                sensitive_values,
                missing_sensitive,
            }),
            ModelKind::AlphaK => PrivacyModel::Lkc(Lkc {
                l: None,
                k: self.anonymity()?,
                c: confidence("alpha", self.alpha.as_ref())?,
                sensitive_values,
                missing_sensitive,
            }),
            ModelKind::LDiversity => {
                let l = self.whole_l()?;
                let column_limits = self.limits(l)?;
                PrivacyModel::Groups(GroupModel {
                    k: self.anonymity()?,
                    diversity: Diversity::MinimumCover { l, column_limits },
                })
            }
            ModelKind::KMAnonymity => PrivacyModel::KmAnonymity(KmAnonymity {
                k: self.anonymity()?,
                m: known_items(self.m)?,
            }),
            ModelKind::DistinctLDiversity => {
                let l = self.whole_l()?;
                self.groups(Diversity::Distinct { l })?
            }
            ModelKind::EntropyLDiversity => {
                let l = one("l", &self.l)?.and_then(Number::as_f64);
                let l = l.filter(|l| (1.0..=1e9).contains(l)).ok_or_else(|| {
                    out_of_range("l", "`l` is a number from 1 on; it need not be whole")
                })?;
                self.groups(Diversity::Entropy { l })?
            }
            ModelKind::RecursiveClDiversity => {
                let l = self.whole_l()?;
                let c = one("c", &self.c)?
                    .copied()
                    .and_then(Decimal::factor)
                    .ok_or_else(|| {
                        out_of_range("c", "`c` is a number above 0 with at most six decimals")
                    })?;
                self.groups(Diversity::Recursive { c, l })?
            }
            ModelKind::TCloseness => {
                let t = self.t.and_then(Decimal::fraction).ok_or_else(|| {
                    out_of_range("t", "`t` is a distance from 0 to 1, such as 0.2")
                })?;
                self.groups(Diversity::Closeness { t })?
            }
        })
    }

    fn anonymity(&self) -> Result<MinimumAnonymity, JobError> {
        anonymity(one("k", &self.k)?)
    }

    fn groups(&self, diversity: Diversity) -> Result<PrivacyModel, JobError> {
        Ok(PrivacyModel::Groups(GroupModel {
            k: self.anonymity()?,
            diversity,
        }))
    }

    /// *L* of a model that takes whole ones.
    fn whole_l(&self) -> Result<PriorKnowledge, JobError> {
        let l = one("l", &self.l)?;
        if l.is_some_and(Number::is_f64) {
            let detail = "`l` is a whole number";
            return Err(JobError::at(JobErrorKind::Shape, "/privacy/l", detail));
        }
        prior_knowledge(l.and_then(Number::as_i64))
    }

    fn limits(&self, l: PriorKnowledge) -> Result<BTreeMap<String, u32>, JobError> {
        let limits = self.column_limits.iter().flatten();
        limits
            .map(|(column, &limit)| match u32::try_from(limit) {
                Ok(limit) if limit <= l.get() => Ok((column.clone(), limit)),
                _ => Err(JobError::at(
                    JobErrorKind::OutOfRange,
                    format!("/privacy/column_limits/{}", json::escape(column)),
                    format!("a column's limit is a whole number from 0 to `l`, {l}"),
                )),
            })
            .collect()
    }
}

fn out_of_range(parameter: &str, detail: &str) -> JobError {
    JobError::at(
        JobErrorKind::OutOfRange,
        format!("/privacy/{parameter}"),
        detail,
    )
}

fn prior_knowledge(value: Option<i64>) -> Result<NonZeroU32, JobError> {
    let value = value
        .and_then(|value| u32::try_from(value).ok())
        .and_then(NonZeroU32::new);
    value.ok_or_else(|| {
        JobError::at(
            JobErrorKind::OutOfRange,
            "/privacy/l",
            "`l` is a whole number from 1 on",
        )
    })
}

fn known_items(value: Option<i64>) -> Result<NonZeroU32, JobError> {
    let value = value.and_then(|value| u32::try_from(value).ok());
    value.and_then(NonZeroU32::new).ok_or_else(|| {
        JobError::at(
            JobErrorKind::OutOfRange,
            "/privacy/m",
            "`m` is a whole number from 1 on",
        )
    })
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

fn anonymity(value: Option<&i64>) -> Result<MinimumAnonymity, JobError> {
    let value = value
        .and_then(|&value| u64::try_from(value).ok())
        .and_then(NonZeroU64::new);
    value.ok_or_else(|| {
        JobError::at(
            JobErrorKind::OutOfRange,
            "/privacy/k",
            "`k` is a whole number from 1 on",
        )
    })
}

fn confidence(parameter: &str, value: Option<&f64>) -> Result<Confidence, JobError> {
    value.copied().and_then(Confidence::new).ok_or_else(|| {
        JobError::at(
            JobErrorKind::OutOfRange,
            format!("/privacy/{parameter}"),
            format!(
                "`{parameter}` is a fraction greater than 0 and at most 1, such as 0.2 for 20 %"
            ),
        )
    })
}
