//! Decision trees in the manner of C4.5 (Quinlan, *C4.5: Programs for Machine Learning*, 1993, with
//! the thresholds of Release 8: Quinlan, *Improved Use of Continuous Attributes in C4.5*, JAIR 4,
//! 1996), and their error on held-out rows.
//!
//! - A test is chosen by gain ratio among those with at least average gain.
//! - A nominal attribute has a branch for each value that occurs; an ordered attribute has two, at
//!   a threshold, whose gain is lowered by what it takes to tell which threshold it is.
//! - Missing is a value of its own: a branch of its own, also of an ordered attribute. A tree
//!   learns from released labels, where `?` is a label; C4.5 itself would divide such an example
//!   among the branches.
//! - At least two branches have two examples each.
//! - A subtree is replaced by a leaf where its pessimistic error, at a confidence of 25 %, is not
//!   lower. Subtrees are not raised.
//!
//! A tree is the same for the same examples in the same order, has nodes on the heap alone, and
//! grows in time *O(examples · attributes · depth)* with a bounded depth.
//!
//! ```
//! use pais_classify::{Attribute, Examples, Tree};
//!
//! // Six examples of two classes; the second attribute decides.
//! let attributes = vec![
//!     Attribute::nominal(2, vec![0, 1, 0, 1, 0, 1]),
//!     Attribute::ordered(vec![1.0, 2.0, 5.0], vec![0, 0, 1, 1, 2, 2]),
//! ];
//! let examples = Examples::new(attributes, vec![0, 0, 0, 0, 1, 1], 2)?;
//! let tree = Tree::learn(&examples, &|| false).expect("nobody stops it");
//! assert_eq!((tree.node_count(), tree.wrong(&examples)), (3, 0));
//! assert_eq!(tree.class(|attribute| [1, 2][attribute]), 1);
//! # Ok::<(), pais_classify::ExamplesError>(())
//! ```

mod choice;
mod examples;
mod gain;
mod holdout;
mod threshold;
mod tree;

pub use examples::{Attribute, Domain, Examples, ExamplesError};
pub use holdout::{held_out_error, two_thirds};
pub use tree::{Tree, pessimistic_errors};

#[cfg(test)]
mod choice_tests;
#[cfg(test)]
mod tests;
