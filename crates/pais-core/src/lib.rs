//! The data model of `pais`: what a hospital declares, what it sends, and what is released.
//!
//! - [`definition`]: the JSON documents that describe a dataset and a job
//! - [`calendar`]: days and moments, and how they are written
//! - [`model`]: privacy models with their parameters in range
//! - [`taxonomy`]: trees of generalizations, and intervals of numbers and dates
//! - [`schema`]: declared columns, checked against one another
//! - [`table`]: dictionary-encoded tables, raw and released
//! - [`reimport`]: released tables that are read from files, of any tool
//! - [`column_name`]: the words of the name of a column
//! - [`name_meaning`]: what the name of a column says about it, in English and in German
//! - [`safe_harbor`]: the categories of identifiers of HIPAA, and which one a column probably is
//! - [`codebook`]: what a recipient needs to resolve the labels of a release
//! - [`look_alike`]: texts that a reader cannot tell apart
//! - [`missing_words`]: words that programs and people write for a missing cell
//! - [`similar_ids`]: whether a file may spell the id of one person in two ways
//! - [`risk`]: how far the rows of a table single out persons, before any run
//! - [`rejection`]: why an input is refused, and where
//! - [`warning`]: what a holder should know about an input that is not refused
//! - [`cancellation`]: a request to stop, shared between threads
//! - [`parallel`]: work shared among threads
//! - [`split_mix`]: pseudorandom numbers that stay the same
//! - [`subsets`]: the subsets of a fixed size, and how many there are
//!
//! Nothing here knows HTTP, a database or an async runtime.

#![forbid(unsafe_code)]

pub mod calendar;
pub mod cancellation;
mod canonical_text;
pub mod codebook;
pub mod column_name;
pub mod definition;
pub mod look_alike;
pub mod missing_words;
pub mod model;
pub mod name_meaning;
pub mod parallel;
pub mod reimport;
pub mod rejection;
pub mod risk;
pub mod safe_harbor;
pub mod schema;
pub mod similar_ids;
pub mod split_mix;
pub mod subsets;
pub mod table;
pub mod taxonomy;
pub mod warning;
