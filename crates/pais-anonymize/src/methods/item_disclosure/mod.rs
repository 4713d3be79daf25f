//! Concurrent item disclosure: k-anonymity of rows with relational and set-valued attributes
//! (2014 paper, Sections 3 and 5).
//!
//! The run starts with every relational column at its topmost value and every set hidden
//! (Algorithm 1). The column that promises the greatest decrease of NCP goes next: a relational
//! one moves a level down, the whole column or not at all; of a set-valued one each class of
//! equal rows discloses items, one a row, where that leaves no class smaller than k.
//!
//! What it costs, for *n* rows: 4 bytes a row, and for each set 4 bytes a row and 4 an item that
//! may still be disclosed, twice while a class is divided; a round of disclosure passes over
//! those items a few times, classes in parallel.

mod class;
mod disclosure;
mod hierarchy;
mod itemsets;
mod km;
mod outcome;
mod round;
mod search;
mod vocabulary;

pub use km::search_km;
pub use outcome::{DisclosedSet, Outcome};
pub use search::{SearchError, Settings, search};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
