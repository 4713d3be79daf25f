//! The error of a classifier on a release, together with those on raw rows (KDD'09, Section 5.1).
//!
//! Decision trees in the manner of C4.5 (Quinlan, *C4.5: Programs for Machine Learning*, 1993, with
//! the thresholds of Release 8: Quinlan, *Improved Use of Continuous Attributes in C4.5*, JAIR 4,
//! 1996), and their error on held-out rows.
//!
//! - A test is chosen by gain ratio among those with at least average gain.
//! - A nominal attribute has a branch for each value that occurs; an ordered attribute has two, at a threshold.
//!   The gain of a threshold is reduced by the cost of encoding which threshold it is.
//! - Missing is a value of its own: a branch of its own, also of an ordered attribute. A tree
//!   learns from released labels, where `?` is a label; C4.5 itself would divide such an example
//!   among the branches.
//! - At least two branches have two examples each.
//! - A subtree is replaced by a leaf where its pessimistic error, at a confidence of 25 %, is not
//!   lower. Subtrees are not raised.
//!
//! A tree is the same for the same examples in the same order, has nodes on the heap alone, and
//! grows in time *O(examples · log examples · attributes · depth)* with a bounded depth.

mod choice;
mod counts;
mod error;
mod examples;
mod features;
mod gain;
mod holdout;
mod learnt;
mod rows;
mod run;
mod threshold;
mod tree;

#[cfg(test)]
mod adult_tests;
#[cfg(test)]
mod choice_tests;
#[cfg(test)]
mod tests;

pub use error::ClassificationError;
pub use rows::classification_bytes;

pub(crate) use run::classification_error;
