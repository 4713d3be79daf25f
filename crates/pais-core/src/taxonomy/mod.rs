//! Trees of generalizations: categorical taxonomies, intervals of numbers and dates, and cuts through them.

pub mod interval;
mod multiples;
pub mod pre_generalization;
mod round_range;
mod scale;
pub mod tree;

pub use interval::Interval;
pub use multiples::Multiples;
pub use pre_generalization::{MinimumLevels, PreGeneralizationError};
pub use round_range::round_range;
pub use scale::Scale;
pub use tree::{
    MISSING_LABEL, MOST_LABEL_BYTES, Node, NodeId, SUPPRESSED_LABEL, Tree, TreeError, TreeLimits,
};
