//! Partitioning into groups of records: the k-d split under a group privacy model, and the
//! tables released from the groups (Gal, Chen, Gangopadhyay: *A Privacy Protection Model for
//! Patient Data with Multiple Sensitive Attributes*, 2008).
//!
//! Rows are never copied: one array of row numbers is split in place, and a group is a range of
//! that array. For *n* rows, *d* quasi-identifiers and *m* sensitive columns, one level of the
//! tree costs O(*n*(*d* + *m*)) where the fast check accepts, and there are O(log *n*) levels.

mod cell;
mod condition;
mod dimension;
mod disjoint;
mod failure;
mod frequency;
mod frequent;
mod loss;
mod partition;
mod plan;
mod queries;
mod ranks;
mod release;
mod split;
mod strikes;
mod tables;

pub use failure::problem;
pub use partition::{PartitionError, partition};
pub use plan::{GroupPlan, Guide};
pub use release::{Grouped, release};
pub use split::Partition;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
