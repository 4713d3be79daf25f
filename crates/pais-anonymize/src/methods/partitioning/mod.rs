//! Partitioning into groups of records: the k-d split under a group privacy model, and the
//! tables released from the groups (Gal, Chen, Gangopadhyay: *A Privacy Protection Model for
//! Patient Data with Multiple Sensitive Attributes*, 2008).
//!
//! Rows are never copied: one array of row numbers is split in place, and a group is a range of
//! that array. For *n* rows, *d* quasi-identifiers and *m* sensitive columns, one level of the
//! tree costs O(*n*(*d* + *m*)) where the fast check accepts, and there are O(log *n*) levels.

mod clusters;
mod condition;
mod confidence;
mod frequency;
mod loss;
mod method;
mod minimum_cover;
mod partition;
mod split;
mod split_progress;
mod tables;
mod valid_cuts;

pub(crate) use method::plan;

#[cfg(test)]
mod confidence_properties;
#[cfg(test)]
mod confidence_tests;
#[cfg(test)]
mod frequency_properties;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
