//! The settings of a search.

use pais_core::definition::{Objective, SplitRule, SuppressionFor};
use pais_core::model::Decimal;

/// The settings of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpecializationSettings {
    /// The score that selects the next specialization.
    pub objective: Objective,
    /// How numeric intervals are split.
    pub split: SplitRule,
    /// Largest fraction of rows that may be suppressed.
    pub suppression_limit: Decimal,
    /// What rows may be suppressed for.
    pub suppression_for: SuppressionFor,
}
