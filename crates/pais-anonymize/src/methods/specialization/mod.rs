//! PAIS: LKC-privacy by top-down specialization (Mohammed, Fung, Hung, Lee: KDD'09, Section 4).
//!
//! The search starts from the topmost table and performs the best valid specialization until
//! none is left. It never copies rows: it keeps the number of each row's partition (TIPS,
//! Definition 4.1), or, once partitions are many, one permutation of row numbers in which every
//! partition is a range; and one histogram per attribute.
//!
//! What it costs, for *n* rows, *m* quasi-identifiers and *s* steps: beside the encoded columns
//! their codes again in 1 byte a cell (2 from 257 values on, none from 65,537), 1 byte a row for
//! its sensitive values (more where they are many), 4 for its partition or its place in the
//! permutation and 4 while rows are moved there, and 8 *m* + 12 bytes a partition; two passes over each column for its histogram;
//! for each candidate that reaches the top of the order one scan of the table or of `T[x]`, the
//! rows it would split, and a walk over the subsets of the attributes below their top, counted
//! over partitions. Threads share the scans and the walks; the steps are the same whatever their
//! number.

mod attribute;
mod bitmaps;
mod cut;
mod partition_order;
mod partitions;
mod points;
mod requirement;
mod scan;
mod score;
mod search;
mod sensitive;
mod state;
mod suppression;
mod table_order;
mod topmost;
mod validity;
mod walk;
mod weights;

pub use cut::{Cut, cuts_at};
pub use requirement::{Requirement, SensitiveBound};
pub use search::{SearchError, Settings, search};
pub use validity::subsets;

#[cfg(test)]
mod layout_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
pub(super) mod tests;
