//! Realistic tables of fictitious persons, for trying pais out and for measurements.
//!
//! Every sample writes its rows as a stream, in constant memory. The same seed gives the same rows.
//! The first *n* rows do not depend on how many rows follow.

#![forbid(unsafe_code)]

pub mod blood;
mod choice;
pub mod draw;
pub mod encounters;
mod labels;
pub mod receipts;
pub mod registry;

use std::io::Write;

use serde_json::Value;

/// The samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// Blood transfusions: 62 columns, 41 of them quasi-identifiers.
    Blood,
    /// Hospital encounters: several rows for many patients, who are the subjects.
    Encounters,
    /// Medical receipts: three relational columns, and two set-valued ones, diseases and drugs.
    Receipts,
    /// A cancer registry: four quasi-identifiers, seven sensitive columns.
    Registry,
}

impl Sample {
    /// All samples.
    pub const ALL: [Self; 4] = [
        Self::Blood,
        Self::Encounters,
        Self::Receipts,
        Self::Registry,
    ];

    /// Its name, which is also the name of its files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blood => "blood",
            Self::Encounters => "encounters",
            Self::Receipts => "receipts",
            Self::Registry => "registry",
        }
    }

    /// The number of rows if none is given.
    pub fn default_rows(self) -> u64 {
        match self {
            Self::Blood => 10_000,
            Self::Encounters | Self::Receipts => 100_000,
            Self::Registry => 72_194,
        }
    }

    /// Writes `rows` rows as CSV, with a header.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(self, rows: u64, seed: u64, out: &mut dyn Write) -> std::io::Result<()> {
        match self {
            Self::Blood => blood::write_csv(rows, seed, out),
            Self::Encounters => encounters::write_csv(rows, seed, out),
            Self::Receipts => receipts::write_csv(rows, seed, out),
            Self::Registry => registry::write_csv(rows, seed, out),
        }
    }

    /// The body of `POST /v1/datasets`, with inline taxonomies.
    pub fn schema(self) -> Value {
        match self {
            Self::Blood => blood::schema(),
            Self::Encounters => encounters::schema(),
            Self::Receipts => receipts::schema(),
            Self::Registry => registry::schema(),
        }
    }

    /// The body of `POST /v1/jobs`, without the dataset.
    pub fn job(self) -> Value {
        match self {
            Self::Blood => blood::job(),
            Self::Encounters => encounters::job(),
            Self::Receipts => receipts::job(),
            Self::Registry => registry::job(),
        }
    }
}
