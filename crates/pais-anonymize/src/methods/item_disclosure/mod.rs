//! Concurrent item disclosure: k-anonymity of rows with relational and set-valued attributes
//! (2014 paper, Sections 3 and 5).
//!
//! The search starts with every relational column at its topmost value and every item hidden
//! (Algorithm 1). Each step takes the column with the greatest expected decrease of NCP. A
//! relational column moves one level down, as a whole or not at all. In a set-valued column each
//! equivalence class discloses items, one per row, where no class becomes smaller than k.
//!
//! A small table is then refined (`refine`): with other levels of the relational columns, with items
//! disclosed one at a time, and with rows that change classes (`settle`). A thorough search
//! (`thorough`) tries more of each.
//!
//! Under k^m-anonymity (`km`) and LKC-privacy (`facts`) an item is disclosed for all rows of a class,
//! or of the table, that have it, so that disclosure divides no class.
//!
//! Memory: 4 bytes per row, and for each set-valued column 4 bytes per row and 4 bytes per item
//! that may still be disclosed; twice that while a class is divided. A round of disclosure passes
//! over those items a few times, with the classes in parallel.

mod class;
mod disclosure;
mod facts;
mod hierarchy;
mod km;
mod labels;
mod method;
mod outcome;
mod refine;
mod search;
mod settle;
mod thorough;
mod vocabulary;

pub(crate) use method::plan;

#[cfg(test)]
mod fact_properties;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod refinement_tests;
#[cfg(test)]
mod tests;
