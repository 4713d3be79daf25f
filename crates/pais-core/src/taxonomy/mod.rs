//! Trees of generalizations: categorical taxonomies, numeric intervals, and cuts through them.

pub mod hierarchy;
pub mod interval;
pub mod pre_generalization;
mod round_range;
pub mod tree;

pub use interval::Interval;
pub use pre_generalization::{MinimumLevels, PreGeneralizationError};
pub use round_range::round_range;
pub use tree::{MISSING_LABEL, Node, NodeId, Tree, TreeError, TreeLimits};
