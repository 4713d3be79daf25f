//! Privacy models with their parameters in range.

mod confidence;
mod decimal;
mod group_model;
mod lkc;
mod privacy_model;

pub use confidence::Confidence;
pub use decimal::Decimal;
pub use group_model::{Diversity, GroupModel};
pub use lkc::{
    KmAnonymity, Lkc, MinimumAnonymity, MissingSensitive, PriorKnowledge, SensitiveValues,
};
pub use privacy_model::PrivacyModel;
