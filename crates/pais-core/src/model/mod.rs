//! Privacy models with their parameters in range.

mod decimal;
mod group_model;
mod lkc;

use serde::Serialize;
use thiserror::Error;

pub use decimal::{Confidence, Decimal};
pub use group_model::{Diversity, GroupModel, spans};
pub use lkc::{
    KmAnonymity, Lkc, MinimumAnonymity, MissingSensitive, PriorKnowledge, SensitiveValues,
};

/// A privacy model with its parameters in range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum PrivacyModel {
    /// k^m-anonymity.
    KmAnonymity(KmAnonymity),
    /// LKC-privacy and its special cases.
    Lkc(Lkc),
    /// A model of groups of records, such as l-diversity over several sensitive attributes.
    Groups(GroupModel),
}

impl PrivacyModel {
    /// *K*.
    pub fn k(&self) -> MinimumAnonymity {
        match self {
            Self::KmAnonymity(model) => model.k,
            Self::Lkc(model) => model.k,
            Self::Groups(model) => model.k,
        }
    }
}

impl From<KmAnonymity> for PrivacyModel {
    fn from(model: KmAnonymity) -> Self {
        Self::KmAnonymity(model)
    }
}

impl From<Lkc> for PrivacyModel {
    fn from(model: Lkc) -> Self {
        Self::Lkc(model)
    }
}

impl From<GroupModel> for PrivacyModel {
    fn from(model: GroupModel) -> Self {
        Self::Groups(model)
    }
}

/// A parameter of a privacy model that is out of range.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{detail}")]
pub struct ParameterError {
    /// The name of the parameter, such as `k`.
    pub parameter: &'static str,
    /// What its range is.
    pub detail: String,
}

impl ParameterError {
    fn new(parameter: &'static str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { parameter, detail }
    }
}
