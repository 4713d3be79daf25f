//! LKC-privacy and k^m-anonymity.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};

use super::{Confidence, ParameterError};

/// *L*, the maximum number of quasi-identifier values that an adversary knows (KDD'09, Definition 3.1).
pub type PriorKnowledge = NonZeroU32;

/// *K*, the minimum number of records that share what an adversary knows (KDD'09, Definition 3.1).
pub type MinimumAnonymity = NonZeroU64;

/// Sensitive column to its sensitive values.
pub type SensitiveValues = BTreeMap<String, Vec<String>>;

/// LKC-privacy (KDD'09, Definition 3.1) with its parameters in range.
///
/// ```
/// use pais_core::model::Lkc;
///
/// let model = Lkc::new(4, 20, 0.2)?.sensitive("Surgery", ["Transgender"]);
/// assert!(!model.is_k_anonymity());
/// assert_eq!(Lkc::new(4, 20, 0.0).unwrap_err().parameter, "c");
/// # Ok::<(), pais_core::model::ParameterError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lkc {
    /// *L*; `None` is the number of quasi-identifiers.
    pub l: Option<PriorKnowledge>,
    /// *K*.
    pub k: MinimumAnonymity,
    /// *C*.
    pub c: Confidence,
    /// *S*; `None` is every value of every sensitive column.
    pub sensitive_values: Option<SensitiveValues>,
    /// How missing sensitive cells count.
    pub missing_sensitive: MissingSensitive,
}

/// How the missing cells of a sensitive column count in *P(s|qid)*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MissingSensitive {
    /// The confidence in a value is its share among the rows of the group that have a value in
    /// its column: a missing cell protects nobody.
    #[default]
    Excluded,
    /// The confidence in a value is its share among all rows of the group, the literal reading of
    /// Definition 3.1.
    Counted,
}

impl Lkc {
    /// LKC-privacy: an adversary who knows at most `l` values of a patient is left with at least `k`
    /// records, and infers no sensitive value with a confidence above `c`.
    ///
    /// # Errors
    /// [`ParameterError`] for `l` or `k` below 1, and `c` outside (0, 1].
    pub fn new(l: u32, k: u64, c: f64) -> Result<Self, ParameterError> {
        let l = Some(whole("l", l)?);
        Ok(Self {
            l,
            ..Self::bounding(k, "c", c)?
        })
    }

    /// k-anonymity over all quasi-identifiers.
    ///
    /// # Errors
    /// [`ParameterError`] for `k` below 1.
    pub fn k_anonymity(k: u64) -> Result<Self, ParameterError> {
        Ok(Self {
            sensitive_values: Some(SensitiveValues::new()),
            ..Self::bounding(k, "c", 1.0)?
        })
    }

    /// Confidence bounding: LKC-privacy with *L* = number of quasi-identifiers, *K* = 1.
    ///
    /// # Errors
    /// [`ParameterError`] for `c` outside (0, 1].
    pub fn confidence_bounding(c: f64) -> Result<Self, ParameterError> {
        Self::bounding(1, "c", c)
    }

    /// (α,k)-anonymity: LKC-privacy with *L* = number of quasi-identifiers, *C* = α.
    ///
    /// # Errors
    /// [`ParameterError`] for `k` below 1, and `alpha` outside (0, 1].
    pub fn alpha_k(alpha: f64, k: u64) -> Result<Self, ParameterError> {
        Self::bounding(k, "alpha", alpha)
    }

    fn bounding(k: u64, parameter: &'static str, c: f64) -> Result<Self, ParameterError> {
        let k = minimum_anonymity(k)?;
        let c = Confidence::new(c).ok_or_else(|| {
            let detail = format!(
                "`{parameter}` is a fraction greater than 0 and at most 1, such as 0.2 for 20 %"
            );
            ParameterError::new(parameter, detail)
        })?;
        Ok(Self {
            l: None,
            k,
            c,
            sensitive_values: None,
            missing_sensitive: MissingSensitive::default(),
        })
    }

    /// The model with the sensitive values of a column; columns that are not named have none.
    pub fn sensitive<V: Into<String>>(
        mut self,
        column: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        let listed = self.sensitive_values.get_or_insert_default();
        listed.insert(column.into(), values);
        self
    }

    /// Whether only the size of groups is bounded, over all quasi-identifiers.
    pub fn is_k_anonymity(&self) -> bool {
        let lists_none = self
            .sensitive_values
            .as_ref()
            .is_some_and(BTreeMap::is_empty);
        self.l.is_none() && self.c.is_unbounded() && lists_none
    }

    /// Whether every table meets the model: *K* = 1 and *C* = 1.
    pub(crate) fn asks_nothing(&self) -> bool {
        self.k == MinimumAnonymity::MIN && self.c.is_unbounded()
    }
}

/// k^m-anonymity (Terrovitis, Mamoulis, Kalnis: VLDB 2008; 2014 paper, Section 2) with its
/// parameters in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KmAnonymity {
    /// Minimum number of records that hold what is known.
    pub k: MinimumAnonymity,
    /// Maximum number of items that are known of a record.
    pub m: NonZeroU32,
}

impl KmAnonymity {
    /// k^m-anonymity: an adversary who knows at most `m` items of a record's sets is left with at
    /// least `k` records.
    ///
    /// # Errors
    /// [`ParameterError`] for `k` or `m` below 1.
    pub fn new(k: u64, m: u32) -> Result<Self, ParameterError> {
        Ok(Self {
            k: minimum_anonymity(k)?,
            m: whole("m", m)?,
        })
    }
}

/// *K* of a model.
pub(super) fn minimum_anonymity(k: u64) -> Result<MinimumAnonymity, ParameterError> {
    let detail = "`k` is a whole number from 1 on";
    MinimumAnonymity::new(k).ok_or_else(|| ParameterError::new("k", detail))
}

/// A whole number of at least 1.
pub(super) fn whole(parameter: &'static str, value: u32) -> Result<NonZeroU32, ParameterError> {
    let detail = || format!("`{parameter}` is a whole number from 1 to {}", u32::MAX);
    NonZeroU32::new(value).ok_or_else(|| ParameterError::new(parameter, detail()))
}
