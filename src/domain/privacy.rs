//! Privacy models: as they are requested, and as they are enforced.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};
use serde_json::Number;
use utoipa::ToSchema;

use super::{Code, Diversity, Factor, Fraction, GroupModel, Problem};

/// *L*, the maximum number of quasi-identifier values that an adversary knows (KDD'09,
/// Definition 3.1).
pub type PriorKnowledge = NonZeroU32;

/// *K*, the minimum number of records that share the values an adversary knows (KDD'09,
/// Definition 3.1).
pub type MinimumAnonymity = NonZeroU64;

/// *C*, the maximum confidence in a sensitive value, in (0, 1] (KDD'09, Definition 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confidence(Fraction);

impl Confidence {
    /// No bound: a confidence of 1.
    pub const UNBOUNDED: Self = Self(Fraction::ONE);

    /// `None` outside (0, 1].
    pub fn new(value: f64) -> Option<Self> {
        if value <= 0.0 {
            return None;
        }
        Fraction::from_decimal(value).map(Self)
    }

    /// Whether a group of `group` records, of which `holding` have the sensitive value, exceeds the
    /// bound. The comparison is exact.
    #[inline]
    pub fn is_exceeded_by(self, holding: u64, group: u64) -> bool {
        self.0.is_exceeded_by(holding, group)
    }

    /// The smallest group in which `holding` records with the sensitive value do not exceed the
    /// bound; [`u64::MAX`] if there is none.
    pub fn least_group(self, holding: u64) -> u64 {
        self.0.smallest_whole(holding)
    }

    /// Whether the bound is 1, which no group exceeds.
    pub fn is_unbounded(self) -> bool {
        self.0.is_one()
    }

    /// For display.
    pub fn as_f64(self) -> f64 {
        self.0.as_f64()
    }
}

/// The word of a privacy model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelWord {
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

/// Sensitive column to its sensitive values.
pub type SensitiveValuesByColumn = BTreeMap<String, Vec<String>>;

/// `privacy` of a job, as it is asked for. Which parameters a model takes is checked by
/// [`PrivacyDefinition::parse`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PrivacyDefinition {
    /// Which model.
    pub model: ModelWord,
    /// Most known values (`lkc`), or diversity; whole but for `entropy_l_diversity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = super::sweep::fraction_or_list)]
    pub l: Option<Number>,
    /// Fewest records that share what is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = super::sweep::whole_or_list)]
    pub k: Option<i64>,
    /// Most known items of a record's sets (`k_m_anonymity`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub m: Option<i64>,
    /// Greatest confidence, in (0, 1]; the factor of `recursive_cl_diversity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = super::sweep::fraction_or_list)]
    pub c: Option<f64>,
    /// Greatest distance of `t_closeness`, in [0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t: Option<f64>,
    /// Greatest confidence of (α,k)-anonymity, in (0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Which values are sensitive; every value of every sensitive column when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Vec<String>>>)]
    pub sensitive_values: Option<SensitiveValuesByColumn>,
    /// Column to its own L (Definition 7 of the multiple-sensitive-attribute paper).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column_limits: Option<BTreeMap<String, i64>>,
}

/// LKC-privacy (KDD'09, Definition 3.1) with its parameters in range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lkc {
    /// *L*; `None` means the number of quasi-identifiers.
    pub l: Option<PriorKnowledge>,
    /// *K*.
    pub k: MinimumAnonymity,
    /// *C*.
    pub c: Confidence,
    /// *S*; `None` means every value of every sensitive column.
    pub sensitive_values: Option<SensitiveValuesByColumn>,
}

/// k^m-anonymity (Terrovitis, Mamoulis, Kalnis: VLDB 2008; 2014 paper, Section 2) with its
/// parameters in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KmAnonymity {
    /// Minimum number of records that contain the known items.
    pub k: MinimumAnonymity,
    /// Maximum number of items of a record that an adversary knows.
    pub m: NonZeroU32,
}

/// A privacy model with its parameters in range.
#[derive(Clone, Debug, PartialEq)]
pub enum PrivacyModel {
    /// k^m-anonymity.
    KmAnonymity(KmAnonymity),
    /// LKC-privacy and its special cases.
    Lkc(Lkc),
    /// A model of groups of records, such as l-diversity over several sensitive attributes.
    Groups(GroupModel),
}

impl PrivacyDefinition {
    /// Checks that the parameters are those of the model and that they are in range.
    ///
    /// # Errors
    /// `invalid_shape` for a missing parameter or a parameter of another model, `invalid_privacy`
    /// for a parameter that is out of range; both with a pointer to or below `/privacy`.
    pub fn parse(&self) -> Result<PrivacyModel, Problem> {
        let taken: &[&str] = match self.model {
            ModelWord::Lkc => &["l", "k", "c", "sensitive_values"],
            ModelWord::KAnonymity => &["k"],
            ModelWord::ConfidenceBounding => &["c", "sensitive_values"],
            ModelWord::AlphaK => &["alpha", "k", "sensitive_values"],
            ModelWord::LDiversity => &["k", "l", "column_limits"],
            ModelWord::KMAnonymity => &["k", "m"],
            ModelWord::DistinctLDiversity | ModelWord::EntropyLDiversity => &["k", "l"],
            ModelWord::RecursiveClDiversity => &["k", "c", "l"],
            ModelWord::TCloseness => &["k", "t"],
        };
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
        let model = self.model_name();
        for (parameter, given) in given {
            if given && !taken.contains(&parameter) {
                return Err(Problem::at(
                    Code::InvalidShape,
                    format!("/privacy/{parameter}"),
                    format!(
                        "`{parameter}` is not a parameter of `{model}`; its parameters are {}",
                        taken.join(", ")
                    ),
                ));
            }
            let optional = ["sensitive_values", "column_limits"].contains(&parameter);
            if !given && taken.contains(&parameter) && !optional {
                return Err(Problem::at(
                    Code::InvalidShape,
                    "/privacy",
                    format!("`{model}` needs `{parameter}`"),
                ));
            }
        }
        let sensitive_values = self.sensitive_values.clone();
        Ok(match self.model {
            ModelWord::Lkc => PrivacyModel::Lkc(Lkc {
                l: Some(self.whole_l()?),
                k: anonymity(self.k)?,
                c: confidence("c", self.c)?,
                sensitive_values,
            }),
            ModelWord::KAnonymity => PrivacyModel::Lkc(Lkc {
                l: None,
                k: anonymity(self.k)?,
                c: Confidence::UNBOUNDED,
                sensitive_values: Some(SensitiveValuesByColumn::new()),
            }),
            ModelWord::ConfidenceBounding => PrivacyModel::Lkc(Lkc {
                l: None,
                k: MinimumAnonymity::MIN,
                c: confidence("c", self.c)?,
                sensitive_values,
            }),
            ModelWord::AlphaK => PrivacyModel::Lkc(Lkc {
                l: None,
                k: anonymity(self.k)?,
                c: confidence("alpha", self.alpha)?,
                sensitive_values,
            }),
            ModelWord::LDiversity => {
                let l = self.whole_l()?;
                let column_limits = self.limits(l)?;
                PrivacyModel::Groups(GroupModel {
                    k: anonymity(self.k)?,
                    diversity: Diversity::Strikes { l, column_limits },
                })
            }
            ModelWord::KMAnonymity => PrivacyModel::KmAnonymity(KmAnonymity {
                k: anonymity(self.k)?,
                m: known_items(self.m)?,
            }),
            ModelWord::DistinctLDiversity => {
                let l = self.whole_l()?;
                self.groups(Diversity::Distinct { l })?
            }
            ModelWord::EntropyLDiversity => {
                let l = self.l.as_ref().and_then(Number::as_f64);
                let l = l.filter(|l| (1.0..=1e9).contains(l)).ok_or_else(|| {
                    out_of_range(
                        "l",
                        "`l` must be a number, 1 or greater; it can be fractional",
                    )
                })?;
                self.groups(Diversity::Entropy { l })?
            }
            ModelWord::RecursiveClDiversity => {
                let l = self.whole_l()?;
                let c = self.c.and_then(Factor::new).ok_or_else(|| {
                    out_of_range(
                        "c",
                        "`c` must be a number above 0 with at most six decimals",
                    )
                })?;
                self.groups(Diversity::Recursive { c, l })?
            }
            ModelWord::TCloseness => {
                let t = self.t.and_then(Fraction::from_decimal).ok_or_else(|| {
                    out_of_range("t", "`t` must be a distance from 0 to 1, such as 0.2")
                })?;
                self.groups(Diversity::Closeness { t })?
            }
        })
    }

    fn model_name(&self) -> &'static str {
        match self.model {
            ModelWord::Lkc => "lkc",
            ModelWord::KAnonymity => "k_anonymity",
            ModelWord::ConfidenceBounding => "confidence_bounding",
            ModelWord::AlphaK => "alpha_k",
            ModelWord::LDiversity => "l_diversity",
            ModelWord::KMAnonymity => "k_m_anonymity",
            ModelWord::DistinctLDiversity => "distinct_l_diversity",
            ModelWord::EntropyLDiversity => "entropy_l_diversity",
            ModelWord::RecursiveClDiversity => "recursive_cl_diversity",
            ModelWord::TCloseness => "t_closeness",
        }
    }

    fn groups(&self, diversity: Diversity) -> Result<PrivacyModel, Problem> {
        Ok(PrivacyModel::Groups(GroupModel {
            k: anonymity(self.k)?,
            diversity,
        }))
    }

    /// *L* of a model that takes only a whole number.
    fn whole_l(&self) -> Result<PriorKnowledge, Problem> {
        let l = self.l.as_ref();
        if l.is_some_and(Number::is_f64) {
            let detail = "`l` must be a whole number";
            return Err(Problem::at(Code::InvalidShape, "/privacy/l", detail));
        }
        prior_knowledge(l.and_then(Number::as_i64))
    }

    fn limits(&self, l: PriorKnowledge) -> Result<BTreeMap<String, u32>, Problem> {
        let limits = self.column_limits.iter().flatten();
        limits
            .map(|(column, &limit)| match u32::try_from(limit) {
                Ok(limit) if limit <= l.get() => Ok((column.clone(), limit)),
                _ => Err(Problem::at(
                    Code::InvalidPrivacy,
                    format!("/privacy/column_limits/{}", super::json::escape(column)),
                    format!("a column's limit must be a whole number from 0 to `l`, which is {l}"),
                )),
            })
            .collect()
    }
}

fn out_of_range(parameter: &str, detail: &str) -> Problem {
    Problem::at(
        Code::InvalidPrivacy,
        format!("/privacy/{parameter}"),
        detail,
    )
}

fn prior_knowledge(value: Option<i64>) -> Result<NonZeroU32, Problem> {
    let value = value
        .and_then(|value| u32::try_from(value).ok())
        .and_then(NonZeroU32::new);
    value.ok_or_else(|| {
        Problem::at(
            Code::InvalidPrivacy,
            "/privacy/l",
            "`l` must be a whole number, 1 or greater",
        )
    })
}

fn known_items(value: Option<i64>) -> Result<NonZeroU32, Problem> {
    let value = value.and_then(|value| u32::try_from(value).ok());
    value.and_then(NonZeroU32::new).ok_or_else(|| {
        Problem::at(
            Code::InvalidPrivacy,
            "/privacy/m",
            "`m` must be a whole number, 1 or greater",
        )
    })
}

fn anonymity(value: Option<i64>) -> Result<MinimumAnonymity, Problem> {
    let value = value
        .and_then(|value| u64::try_from(value).ok())
        .and_then(NonZeroU64::new);
    value.ok_or_else(|| {
        Problem::at(
            Code::InvalidPrivacy,
            "/privacy/k",
            "`k` must be a whole number, 1 or greater",
        )
    })
}

fn confidence(parameter: &str, value: Option<f64>) -> Result<Confidence, Problem> {
    value.and_then(Confidence::new).ok_or_else(|| {
        Problem::at(
            Code::InvalidPrivacy,
            format!("/privacy/{parameter}"),
            format!("`{parameter}` must be a fraction above 0 and at most 1, such as 0.2 for 20 %"),
        )
    })
}
