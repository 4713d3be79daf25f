//! Anonymizes tables of patients: from a raw table to a release that the verifier accepted.
//!
//! Three published methods: LKC-privacy by top-down specialization (PAIS; Mohammed, Fung, Hung,
//! Lee: KDD'09), k-anonymity of relational and set-valued columns by concurrent item disclosure
//! (Takahashi, Sobataka, Mori: KDD-DSSG 2014), and l-diversity over several sensitive columns by
//! k-d split and anatomy (Gal, Chen, Gangopadhyay 2008). The job selects the method.
//!
//! [`Anonymizer`] does everything at once. [`AnonymizationRun`] keeps the encoded table between the
//! search and its releases; [`run_sweep`] searches under several privacy parameters.
//!
//! ```
//! use pais_anonymize::Anonymizer;
//! use pais_core::definition::ColumnDefinition;
//! use pais_core::model::Lkc;
//! use pais_io::read::csv;
//! use pais_core::schema::Schema;
//!
//! let schema = Schema::builder()
//!     .column(ColumnDefinition::quasi_identifier("age").numeric(0.0, 99.0))
//!     .column(ColumnDefinition::sensitive("diagnosis"))
//!     .build()?;
//! let file = "age,diagnosis\n21,flu\n25,cold\n71,flu\n78,cold\n";
//! let table = csv::read_table(&schema, file.as_bytes())?;
//!
//! let release = Anonymizer::new(Lkc::new(1, 2, 0.5)?).run(&schema, &table)?;
//! let mut released = Vec::new();
//! pais_io::write::csv(&release.tables()[0], &mut released)?;
//! let released = String::from_utf8(released)?;
//! assert_eq!(released.matches("\"[0,71)\"").count(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod counted_run;
mod error;
mod gate;
mod job_checks;
mod memory;
mod method;
mod methods;
mod observer;
mod outcome_warnings;
mod plan;
mod pre_generalization;
mod prepared;
mod progress;
mod published_cut;
mod recodings;
mod redrawn;
mod released_table;
#[cfg(test)]
mod report_tests;
mod row_counter;
mod row_order;
mod run;
mod step;
mod sweep;
#[cfg(test)]
mod test_data;

pub use pais_core;
pub use pais_measure;
pub use pais_verify;

pub use counted_run::{ColumnValues, CountedRun, DistinctValues, RecodedValues};
pub use error::RunError;
pub use gate::{VerifiedRelease, VerifiedTables};
pub use method::SearchOutcome;
pub use observer::{Count, Observer, Phase, Unobserved};
pub use plan::{JobPlan, memory_needed};
pub use progress::{RunProgress, RunStatus};
pub use recodings::{
    RecodingComparison, SuggestedPrivacy, Suggestion, SuggestionSample, Suggestions,
};
pub use row_counter::{ColumnParts, CountError, PartCounts, RowCounter};
pub use row_order::RowDraw;
pub use run::{AnonymizationRun, Anonymizer};
pub use step::{StepItem, StepRecord};
pub use sweep::{SweepOutcome, run_sweep};
