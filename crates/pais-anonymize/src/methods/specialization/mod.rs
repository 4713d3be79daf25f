//! Top-down specialization (TDS, PAIS in the KDD'09 paper) for LKC-privacy (Mohammed, Fung, Hung,
//! Lee: KDD'09, Section 4).
//!
//! The search starts from the topmost table and performs the best valid specialization until
//! none is left. It never copies rows. It keeps the partition number of each row (TIPS,
//! Definition 4.1) or, once there are many partitions, one permutation of row numbers in which
//! every partition is a range. It also keeps one histogram per attribute.
//!
//! Memory, for *n* rows and *m* quasi-identifiers, in addition to the encoded columns:
//!  - 1 byte per row for its sensitive values (more if there are many);
//!  - 4 bytes per row for its partition or its position in the permutation, and 4 more while
//!    rows are moved in the permutation;
//!  - 8 *m* + 20 bytes per partition;
//!  - once rows are suppressed, 4 bytes per partition and subset of *L* attributes and 17 per group
//!    of such a subset, for at most 2^24 pairs of a partition and a subset at a time, and
//!    4 (*m* + *L*) + 64 bytes per partition.
//!
//! A table whose codes have few combinations for its rows is counted once instead: the search then
//! works on the distinct combinations, each with its number of rows ([`frequencies`]).
//!
//! Time: one pass over each column for its histogram. Each candidate that becomes the best one
//! costs one scan of the table or of `T[x]` (the rows it would split), and a depth-first traversal
//! of the subsets of the attributes below their topmost value, counted over partitions. Threads
//! share the scans and the traversals. The steps do not depend on the number of threads.

mod attribute;
mod counted;
mod frequencies;
mod group_index;
mod interval_splits;
mod known_group;
mod method;
mod partitions;
mod persons;
mod replay;
mod requirement;
mod score;
mod search;
mod sensitive;
mod suppression;
mod thorough;
mod topmost;
mod validity;

pub(crate) use method::plan;

#[cfg(test)]
mod tests;
