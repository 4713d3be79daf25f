//! What a thorough search works on: the columns, the distinct rows, the requirement and the loss.

use super::super::requirement::Requirement;
use super::dimension::Dimension;
use super::measure::Measure;
use super::units::Units;
use crate::observer::Observer;

/// A table and what its cuts must meet.
pub(super) struct Space<'a> {
    pub(super) dimensions: Vec<Dimension<'a>>,
    pub(super) units: Units,
    pub(super) requirement: &'a Requirement<'a>,
    pub(super) measure: Measure,
    /// Rows that a cut may suppress because their classes have fewer than *K*; 0 unless the
    /// adversary knows all columns and no confidence is bounded.
    pub(super) budget: u64,
    /// Stops the search.
    pub(super) observer: &'a dyn Observer,
}

impl Space<'_> {
    /// Number of quasi-identifiers.
    pub(super) fn width(&self) -> usize {
        self.dimensions.len()
    }

    /// Whether the loss of a split follows from its column alone, whatever the other cuts are.
    pub(super) fn has_fixed_gains(&self) -> bool {
        !self.measure.is_over_classes() && self.budget == 0
    }
}
