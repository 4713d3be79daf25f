//! The three questions of opinion 05/2014 on anonymisation techniques (WP216): singling out,
//! linkability and inference.

use pais_core::definition::ColumnRole;
use pais_core::model::{Diversity, PrivacyModel};
use pais_core::table::GROUP_COLUMN;
use pais_verify::{CountedTable, EquivalenceClasses, LkcRequirement, SensitiveSet, VerifyError};
use serde::{Deserialize, Serialize};

use crate::release::MeasuredRelease;
use crate::utility::{Risk, rounded};

/// An answer to one of the questions. None says that a risk is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RiskAnswer {
    /// The release permits it.
    Possible,
    /// The privacy model limits it for a part of what could be asked.
    PartlyLimited,
    /// The privacy model limits it, for an adversary as the model assumes.
    Limited,
    /// The declarations do not say what would have to be protected.
    Unknown,
}

/// The answers to the three questions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Opinion {
    /// Whether records can be isolated that are of one person.
    pub singling_out: SinglingOut,
    /// Whether records of one person, or of a group of persons, can be linked.
    pub linkability: Linkability,
    /// Whether the value of an attribute can be deduced with significant probability.
    pub inference: Inference,
}

/// Whether records can be isolated that are of one person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SinglingOut {
    /// `possible` where a record is unique by the columns of `unique_share`, or a person is alone in a
    /// group of equal quasi-identifiers; else `limited`.
    pub answer: RiskAnswer,
    /// Share of the released rows that are unique by the quasi-identifiers together, from 0 to 1; of the persons, in
    /// a dataset with a subject column, as the next two. These are for the holder only.
    #[serde(default)]
    pub unique_by_quasi_identifiers: f64,
    /// Share of the released rows that are unique by all columns together that are not sensitive.
    #[serde(default)]
    pub unique_share: f64,
    /// Share of the released rows that are unique by all columns of their table together.
    #[serde(default)]
    pub unique_by_all_columns: f64,
    /// Minimum number of records, or persons, that share what an adversary of the privacy model knows.
    pub smallest_known_group: u64,
}

/// Whether records of one person, or of a group of persons, can be linked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Linkability {
    /// Always `possible`: models of groups do not exclude it (WP216, section 5, table 6). Records are
    /// linked to groups, and what other releases and databases contain is not known here.
    pub answer: RiskAnswer,
    /// Minimum number of records, or persons, that a record of another table with the same quasi-identifiers is
    /// linked to.
    pub smallest_group: u64,
    /// Columns that are released unchanged and have a value in one row, or of one person, only: it links that row
    /// exactly. Of persons for the holder only.
    #[serde(default)]
    pub exact_links: Vec<String>,
}

/// Whether the value of an attribute can be deduced with significant probability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Inference {
    /// `limited` where the model bounds the confidence in every value of every sensitive column,
    /// `partly_limited` where it bounds some of them or asks for their diversity, `possible` where it
    /// does not or a value is certain, and `unknown` without sensitive columns.
    pub answer: RiskAnswer,
    /// Greatest confidence in a sensitive value for an adversary of the privacy model, as verified.
    pub greatest_confidence: f64,
    /// Sensitive columns that the model does not protect at all.
    pub unprotected: Vec<String>,
    /// Sensitive columns in which the model protects only the listed values.
    pub listed_only: Vec<String>,
}

/// The shares of unique released rows, or of persons who have one, and the group sizes.
pub(crate) struct UniqueRows<'a> {
    /// Sizes of the groups of equal quasi-identifiers, in rows.
    groups: &'a [u32],
    unique_by_quasi_identifiers: f64,
    unique_share: f64,
    unique_by_all_columns: f64,
}

impl<'a> UniqueRows<'a> {
    /// `classes` are those of [`MeasuredRelease::classes`].
    ///
    /// # Errors
    /// As [`EquivalenceClasses::new`].
    pub(crate) fn new(
        release: &MeasuredRelease,
        classes: &'a EquivalenceClasses<'_>,
    ) -> Result<Self, VerifyError> {
        let table = release.table;
        let known = release.schema.names(ColumnRole::QuasiIdentifier);
        let sensitive = release.schema.names(ColumnRole::Sensitive);
        let is_in = |names: &[Box<str>], name: &str| names.iter().any(|it| **it == *name);
        let names = table.columns.iter().map(|column| &*column.name);
        let all: Vec<&str> = names
            .filter(|name| *name != GROUP_COLUMN && !is_in(&known, name))
            .collect();
        let others = all.iter().copied();
        let others: Vec<&str> = others.filter(|name| !is_in(&sensitive, name)).collect();
        let groups = classes.sizes();
        let subjects = release.subjects();
        let counted = CountedTable {
            table,
            subjects: subjects.as_deref(),
        };
        let alone_by = |names: &[&str]| -> Result<f64, VerifyError> {
            let share = classes.share_alone_by(counted, names, release.cancellation)?;
            Ok(match subjects {
                Some(_) => rounded(share),
                None => share,
            })
        };
        let unique_by_quasi_identifiers = match subjects {
            Some(_) => alone_by(&[])?,
            None => share_below(groups, 2),
        };
        let unique_share = if others.is_empty() {
            unique_by_quasi_identifiers
        } else {
            alone_by(&others)?
        };
        let unique_by_all_columns = if all.len() == others.len() {
            unique_share
        } else {
            alone_by(&all)?
        };
        Ok(Self {
            groups,
            unique_by_quasi_identifiers,
            unique_share,
            unique_by_all_columns,
        })
    }

    /// Share of the rows in groups of equal quasi-identifiers with fewer rows than this.
    pub(super) fn share_in_groups_below(&self, rows: u64) -> f64 {
        share_below(self.groups, rows)
    }
}

/// Share of the rows that are in groups of fewer rows; 0 without rows.
fn share_below(sizes: &[u32], rows: u64) -> f64 {
    let sum = |sizes: &mut dyn Iterator<Item = u64>| sizes.sum::<u64>() as f64;
    let sizes = || sizes.iter().map(|&size| u64::from(size));
    let all = sum(&mut sizes());
    if all == 0.0 {
        return 0.0;
    }
    sum(&mut sizes().filter(|&size| size < rows)) / all
}

impl Opinion {
    pub(super) fn new(release: &MeasuredRelease, risk: &Risk, groups: &UniqueRows<'_>) -> Self {
        let is_alone = groups.unique_share > 0.0 || risk.highest >= 1.0;
        Self {
            singling_out: SinglingOut {
                answer: if is_alone {
                    RiskAnswer::Possible
                } else {
                    RiskAnswer::Limited
                },
                unique_by_quasi_identifiers: groups.unique_by_quasi_identifiers,
                unique_share: groups.unique_share,
                unique_by_all_columns: groups.unique_by_all_columns,
                smallest_known_group: release.finding.smallest_group(),
            },
            linkability: Linkability {
                answer: RiskAnswer::Possible,
                smallest_group: risk.smallest_group(),
                exact_links: risk.insensitive_singled_out.clone(),
            },
            inference: Inference::new(release),
        }
    }
}

/// How far a model protects one sensitive column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protection {
    None,
    Listed,
    Diverse,
    Bounded,
}

impl Inference {
    fn new(release: &MeasuredRelease) -> Self {
        let columns = release.schema.names(ColumnRole::Sensitive);
        let protections = columns
            .iter()
            .map(|column| protection(release.model, column));
        let protections: Vec<Protection> = protections.collect();
        let with = |wanted: Protection| {
            let pairs = columns.iter().zip(&protections);
            let found = pairs.filter(|(_, protection)| **protection == wanted);
            found
                .map(|(column, _)| column.to_string())
                .collect::<Vec<_>>()
        };
        let greatest_confidence = release.finding.greatest_confidence();
        let all = |wanted: Protection| protections.iter().all(|it| *it == wanted);
        let answer = if columns.is_empty() {
            RiskAnswer::Unknown
        } else if greatest_confidence >= 1.0 || all(Protection::None) {
            RiskAnswer::Possible
        } else if all(Protection::Bounded) {
            RiskAnswer::Limited
        } else {
            RiskAnswer::PartlyLimited
        };
        Self {
            answer,
            greatest_confidence,
            unprotected: with(Protection::None),
            listed_only: with(Protection::Listed),
        }
    }
}

fn protection(model: &PrivacyModel, column: &str) -> Protection {
    match model {
        PrivacyModel::KmAnonymity(_) => Protection::None,
        PrivacyModel::Groups(model) => match model.diversity {
            Diversity::None => Protection::None,
            _ => Protection::Diverse,
        },
        PrivacyModel::Lkc(model) if model.c.is_unbounded() => Protection::None,
        PrivacyModel::Lkc(model) => {
            let requirement = LkcRequirement::from_model(model, 0, &[column.into()]);
            let mut sensitive = requirement.sensitive.iter();
            match sensitive
                .find(|it| *it.column == *column)
                .map(|it| &it.values)
            {
                None => Protection::None,
                Some(SensitiveSet::Every) => Protection::Bounded,
                Some(SensitiveSet::Listed(_)) => Protection::Listed,
            }
        }
    }
}
