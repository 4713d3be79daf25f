//! Anonymizes tables of patients: from a raw table to a release that the verifier accepted.
//!
//! Three published methods: LKC-privacy by top-down specialization (PAIS; Mohammed, Fung, Hung,
//! Lee: KDD'09), k-anonymity of relational and set-valued columns by concurrent item disclosure
//! (Takahashi, Sobataka, Mori: KDD-DSSG 2014), and l-diversity over several sensitive columns by
//! k-d split and anatomy (Gal, Chen, Gangopadhyay 2008). The job selects the method.
//!
//! [`anonymize`] does everything at once. [`AnonymizationRun`] keeps the encoded table between the
//! search and its releases; [`run_sweep`] searches under several privacy parameters.
//!
//! ```
//! use pais_anonymize::{Unobserved, anonymize};
//! use pais_core::definition::{DatasetDefinition, JobDefinition, json};
//! use pais_core::read::csv;
//! use pais_core::schema::Schema;
//!
//! let dataset: DatasetDefinition = json::parse(
//!     br#"{"name": "visits", "columns": [
//!         {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]},
//!         {"name": "diagnosis", "role": "sensitive"}]}"#,
//! )?;
//! let schema = Schema::inline(&dataset)?;
//! let job: JobDefinition = json::parse(
//!     br#"{"privacy": {"model": "lkc", "l": 1, "k": 2, "c": 0.5}}"#,
//! )?;
//! let file = "age,diagnosis\n21,flu\n25,cold\n71,flu\n78,cold\n";
//! let table = csv::read_table(&schema, file.as_bytes())?;
//!
//! let release = anonymize(schema, job, table, &Unobserved::default())?;
//! let mut released = Vec::new();
//! release.tables()[0].write_csv(&mut released)?;
//! let released = String::from_utf8(released)?;
//! assert_eq!(released.matches("\"[0,71)\"").count(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod cut;
mod error;
mod estimate;
mod gate;
mod job_checks;
mod memory;
mod method;
mod methods;
mod observer;
mod plan;
mod pre_generalization;
mod prepared;
mod progress;
mod published_cut;
mod range_ncp;
mod released_table;
mod roles;
mod row_order;
mod run;
mod step;
mod sweep;
mod table_figures;
#[cfg(test)]
mod test_data;
mod top_warnings;
pub mod utility;
mod verdict;

pub use pais_core;
pub use pais_verify;

pub use error::RunError;
pub use gate::VerifiedRelease;
pub use memory::release_bytes;
pub use method::SearchOutcome;
pub use observer::{Count, Observer, Phase, Unobserved};
pub use plan::{JobPlan, PARALLEL_SEARCHES, memory_needed};
pub use progress::{RunProgress, RunStatus};
pub use run::{AnonymizationRun, anonymize};
pub use step::{StepItem, StepRecord};
pub use sweep::{SweepOutcome, run_sweep};
pub use table_figures::TableFigures;
