//! Privacy models of groups of records: what each group of a partition has to meet.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Serialize;

use super::lkc::{minimum_anonymity, whole};
use super::{Decimal, MinimumAnonymity, ParameterError};

/// What every group of a partition has to meet.
///
/// ```
/// use pais_core::model::GroupModel;
///
/// let model = GroupModel::l_diversity(5, 3)?.column_limit("Diagnosis", 2)?;
/// assert_eq!(model.k.get(), 5);
/// let error = model.column_limit("Surgery", 4).unwrap_err();
/// assert_eq!(error.parameter, "column_limits");
/// # Ok::<(), pais_core::model::ParameterError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupModel {
    /// *K*, the minimum number of records of a group.
    pub k: MinimumAnonymity,
    /// What the sensitive values of a group have to meet.
    pub diversity: Diversity,
    /// By numeric sensitive column, the minimum difference between the largest and the smallest number in a
    /// group: diversity counts distinct numbers, however close they are.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub min_range: BTreeMap<String, f64>,
}

/// What the sensitive values of a group have to meet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Diversity {
    /// Nothing: k-anonymity alone.
    None,
    /// Definition 6 of *A Privacy Protection Model for Patient Data with Multiple Sensitive Attributes* (Gal,
    /// Chen, Gangopadhyay 2008): an adversary who eliminates sensitive values one by one, and with each the
    /// records that have it, has to eliminate at least *L* before no record of the group is left. The smallest
    /// such number is the group's minimum cover.
    MinimumCover {
        /// *L*.
        l: NonZeroU32,
        /// *L_i*, the maximum number of values of a sensitive column that may be eliminated (Definition 7); *L*
        /// for a column that is not named.
        column_limits: BTreeMap<String, u32>,
    },
    /// At least *l* distinct values of the one sensitive column (Machanavajjhala et al., ACM
    /// TKDD 2007, Section 4).
    Distinct {
        /// *l*.
        l: NonZeroU32,
    },
    /// The entropy of the sensitive column's values is at least that of *l* equally frequent values (ibid.,
    /// Definition 4.1).
    Entropy {
        /// *l*, at least 1; it need not be whole.
        l: f64,
    },
    /// The frequency of the most frequent value is less than *c* times the sum of the frequencies from the *l*-th
    /// most frequent value on (ibid., Definition 4.2).
    Recursive {
        /// *c*.
        c: Decimal,
        /// *l*.
        l: NonZeroU32,
    },
    /// The frequencies of the sensitive column's values differ from those in the whole table by at most *t*,
    /// half the sum of the absolute differences: the earth mover's distance with equal ground distances (Li,
    /// Li, Venkatasubramanian, ICDE 2007, Section 4.2).
    Closeness {
        /// *t*.
        t: Decimal,
    },
}

impl GroupModel {
    /// l-diversity over several sensitive columns: a minimum cover of at least `l` values.
    ///
    /// # Errors
    /// [`ParameterError`] for `k` or `l` below 1.
    pub fn l_diversity(k: u64, l: u32) -> Result<Self, ParameterError> {
        let l = whole("l", l)?;
        let column_limits = BTreeMap::new();
        Self::new(k, Diversity::MinimumCover { l, column_limits })
    }

    /// The model with a maximum number of values of a sensitive column that may be eliminated.
    ///
    /// # Errors
    /// [`ParameterError`] for a limit above *L*, and a model other than l-diversity over several
    /// columns.
    pub fn column_limit(
        mut self,
        column: impl Into<String>,
        limit: u32,
    ) -> Result<Self, ParameterError> {
        match &mut self.diversity {
            Diversity::MinimumCover { l, column_limits } if limit <= l.get() => {
                column_limits.insert(column.into(), limit);
                Ok(self)
            }
            _ => Err(self.limit_out_of_range()),
        }
    }

    /// The model with a minimum range of a numeric sensitive column in each group.
    ///
    /// # Errors
    /// [`ParameterError`] for a range that is not above 0, and a model without an *l*.
    pub fn min_range(
        mut self,
        column: impl Into<String>,
        least: f64,
    ) -> Result<Self, ParameterError> {
        let has_l = !matches!(
            self.diversity,
            Diversity::None | Diversity::Closeness { .. }
        );
        if !has_l || !least.is_finite() || least <= 0.0 {
            let detail = "the least range of a column is a number above 0, beside `l`";
            return Err(ParameterError::new("min_range", detail));
        }
        self.min_range.insert(column.into(), least);
        Ok(self)
    }

    /// Why a column cannot have a limit.
    pub(crate) fn limit_out_of_range(&self) -> ParameterError {
        let detail = match &self.diversity {
            Diversity::MinimumCover { l, .. } => {
                format!("a column's limit is a whole number from 0 to `l`, {l}")
            }
            _ => "only `l_diversity` has limits of columns".to_owned(),
        };
        ParameterError::new("column_limits", detail)
    }

    /// Distinct l-diversity of one sensitive column.
    ///
    /// # Errors
    /// [`ParameterError`] for `k` or `l` below 1.
    pub fn distinct_l_diversity(k: u64, l: u32) -> Result<Self, ParameterError> {
        let l = whole("l", l)?;
        Self::new(k, Diversity::Distinct { l })
    }

    /// Entropy l-diversity of one sensitive column.
    ///
    /// # Errors
    /// [`ParameterError`] for `k` below 1, and `l` below 1 or above 10^9.
    pub fn entropy_l_diversity(k: u64, l: f64) -> Result<Self, ParameterError> {
        if !(1.0..=1e9).contains(&l) {
            let detail = "`l` is a number from 1 on; it need not be whole";
            return Err(ParameterError::new("l", detail));
        }
        Self::new(k, Diversity::Entropy { l })
    }

    /// Recursive (c,l)-diversity of one sensitive column.
    ///
    /// # Errors
    /// [`ParameterError`] for `k` or `l` below 1, and `c` not above 0 or with more than six decimals.
    pub fn recursive_cl_diversity(k: u64, c: f64, l: u32) -> Result<Self, ParameterError> {
        let l = whole("l", l)?;
        let detail = "`c` is a number above 0 with at most six decimals";
        let c = Decimal::factor(c).ok_or_else(|| ParameterError::new("c", detail))?;
        Self::new(k, Diversity::Recursive { c, l })
    }

    /// t-closeness of one sensitive column.
    ///
    /// # Errors
    /// [`ParameterError`] for `k` below 1, and `t` outside [0, 1].
    pub fn t_closeness(k: u64, t: f64) -> Result<Self, ParameterError> {
        let detail = "`t` is a distance from 0 to 1, such as 0.2";
        let t = Decimal::fraction(t).ok_or_else(|| ParameterError::new("t", detail))?;
        Self::new(k, Diversity::Closeness { t })
    }

    fn new(k: u64, diversity: Diversity) -> Result<Self, ParameterError> {
        let k = minimum_anonymity(k)?;
        let min_range = BTreeMap::new();
        Ok(Self {
            k,
            diversity,
            min_range,
        })
    }
}

/// Whether numbers from `least` to `greatest` span at least `range`. A shortfall of up to 1e-12 of it
/// is rounding.
pub fn spans(least: f64, greatest: f64, range: f64) -> bool {
    (greatest - least) * (1.0 + 1e-12) >= range
}

impl Diversity {
    /// Whether a group of records can violate it. Sensitive columns are given by name; without any, nothing is
    /// bounded.
    pub(crate) fn binds(&self, sensitive: &[Box<str>]) -> bool {
        let some = !sensitive.is_empty();
        match self {
            Self::None => false,
            Self::MinimumCover { l, column_limits } => {
                let may_be_eliminated =
                    |name: &str| column_limits.get(name).is_none_or(|&limit| limit > 0);
                l.get() > 1 && sensitive.iter().any(|name| may_be_eliminated(name))
            }
            Self::Distinct { l } => some && l.get() > 1,
            Self::Entropy { l } => some && *l > 1.0,
            // With l = 1 the tail is the whole group, and no value has more records than that.
            Self::Recursive { c, l } => some && (l.get() > 1 || !c.times_exceeds(1, 1)),
            Self::Closeness { t } => some && !t.is_one(),
        }
    }

    /// Whether the model is defined for exactly one sensitive column.
    pub fn is_of_one_column(&self) -> bool {
        match self {
            Self::None | Self::MinimumCover { .. } => false,
            Self::Distinct { .. }
            | Self::Entropy { .. }
            | Self::Recursive { .. }
            | Self::Closeness { .. } => true,
        }
    }
}
