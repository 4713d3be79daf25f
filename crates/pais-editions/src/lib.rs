//! Editions of a publication: releases of new rows that fit the earlier ones, in labels and in privacy.
//!
//! [`decide_edition`] anonymizes the rows that no edition has, with no label below those of the newest base edition
//! or as a new one, and holds rows back until all that each recipient then has of the dataset meets the model
//! together, as [`pais_verify::compose`] decides it. [`common_labels`] are the finest labels that
//! cover those of several editions.
//!
//! The adversary has all releases of a recipient, can tell which of their rows are of one person, and knows
//! which of them have the victim, which do not, and the values of the victim that the model allows. Source:
//! Fung, Wang, Fu, Pei, *Anonymity for continuous data publishing* (EDBT 2008); Byun, Li, Bertino, Li, Sohn,
//! *Privacy-preserving incremental data dissemination* (2009).

#![forbid(unsafe_code)]

mod base;
mod common;
mod decision;
mod held_back;
mod known;
mod stack;

pub use base::EarlierEdition;
pub use common::{EditionLabels, LabelMap, common_labels};
pub use decision::{DecidedEdition, EditionError, EditionTask, connected, decide_edition};
pub use known::{KnownRelease, RawTable};
pub use stack::{NumberedTable, stacked};
