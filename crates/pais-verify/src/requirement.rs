//! The requirement on a table: LKC-privacy with its parameters.

use pais_core::look_alike::visible_text;
use pais_core::model::{Confidence, Lkc, MissingSensitive};

/// LKC-privacy (KDD'09, Definition 3.1). Its special cases (Section 3.1) differ only in the
/// parameters: with `l` = number of quasi-identifiers it is k-anonymity (`c` = 1), confidence
/// bounding (`k` = 1) or (α,k)-anonymity (`c` = α).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LkcRequirement {
    /// *L*, the maximum number of quasi-identifiers whose values an adversary knows. A number above that of the
    /// quasi-identifiers means all of them.
    pub l: usize,
    /// *K*, the minimum number of records that may share the values that an adversary knows.
    pub k: u64,
    /// *C*, the maximum permitted confidence in a sensitive value.
    pub c: Confidence,
    /// *S*: the sensitive values of each column; columns not listed here have none.
    pub sensitive: Vec<SensitiveRequirement>,
    /// How the missing cells of a sensitive column count in the confidence in its values.
    pub missing_sensitive: MissingSensitive,
}

/// The sensitive values of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensitiveRequirement {
    /// The column's name in the released table.
    pub column: Box<str>,
    /// Which of its values are sensitive.
    pub values: SensitiveSet,
}

/// Which values of a column are sensitive. A missing cell (null, or one of the column's words
/// for missing) never is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SensitiveSet {
    /// All values.
    Every,
    /// Only these values, as they are visible ([`visible_text`]).
    Listed(Vec<Box<str>>),
}

impl LkcRequirement {
    /// The requirement of a job's model on a table with this number of quasi-identifiers and
    /// these sensitive columns.
    pub fn from_model(
        model: &Lkc,
        quasi_identifiers: usize,
        sensitive_columns: &[Box<str>],
    ) -> Self {
        let Lkc {
            l,
            k,
            c,
            sensitive_values,
            missing_sensitive,
        } = model;
        let sensitive = match sensitive_values {
            None => {
                let columns = sensitive_columns.iter();
                columns
                    .map(|column| SensitiveRequirement::every(column))
                    .collect()
            }
            Some(columns) => columns
                .iter()
                .map(|(column, values)| SensitiveRequirement {
                    column: column.as_str().into(),
                    values: SensitiveSet::Listed(
                        values
                            .iter()
                            .map(|value| visible_text(value).into())
                            .collect(),
                    ),
                })
                .collect(),
        };
        let all = u32::try_from(quasi_identifiers).unwrap_or(u32::MAX);
        let l = l.map_or(all, |l| l.get().min(all)) as usize;
        Self {
            l,
            k: k.get(),
            c: *c,
            sensitive,
            missing_sensitive: *missing_sensitive,
        }
    }
}

impl SensitiveRequirement {
    /// All values of a column.
    pub fn every(column: &str) -> Self {
        Self {
            column: column.into(),
            values: SensitiveSet::Every,
        }
    }
}

impl SensitiveSet {
    /// Whether it has a value. A column's words for missing are not distinguished here.
    pub(super) fn lists(&self, value: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Listed(values) => {
                let value = visible_text(value);
                values.iter().any(|listed| **listed == *value)
            }
        }
    }
}
