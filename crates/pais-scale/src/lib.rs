//! Anonymizes a table that does not fit into the memory of one job, with the same steps as in memory.
//!
//! 1. Each cell becomes the number of its value. The distinct values stay in memory, and the rows of
//!    numbers are spooled into a sealed file (`values`).
//! 2. The search asks an engine for counts of these rows ([`pais_anonymize::CountedRun`]). Each answer is
//!    compared with what is known about the table.
//! 3. Values are replaced by their labels, and the rows are written in a random order as several files
//!    (`release`).
//! 4. The files are read back and verified against the model and the raw rows (`files`). Only then does the
//!    release get its final name.
//!
//! `ScaledJob` does that step by step, for rows of any `RowSource` and files in any `ReleaseTarget`;
//! `anonymize` does all of it, from files into a directory.
//!
//! The engine is Apache DataFusion, in this process (`datafusion_counter`) or in executors, which each count
//! a share of the rows (`remote_counter`, `executor`). The crate is empty without the feature `datafusion`.

#![forbid(unsafe_code)]
#![cfg(feature = "datafusion")]

mod codes;
mod datafusion_counter;
mod encoded_run;
mod engine;
mod error;
mod executor;
mod files;
#[cfg(test)]
mod guard_tests;
mod keys;
mod release;
mod remote_counter;
#[cfg(test)]
mod remote_tests;
mod run;
mod sealed;
mod share;
mod spool;
#[cfg(test)]
mod tests;
mod tls;
mod values;

pub use encoded_run::{CountedSearch, EncodedRun, ScaledJob, VerifiedFiles};
pub use error::ScaleError;
pub use executor::{Executor, ExecutorError, ExecutorSettings};
pub use release::{FILE_ROWS, MANIFEST, Manifest, ManifestFile, ReleaseTarget};
pub use remote_counter::{ExecutorUrl, Executors, Resubmissions};
pub use run::{ScaleTask, ScaledRelease, anonymize};
pub use spool::ExecutorKey;
pub use tls::{TlsError, TlsFiles};
pub use values::RowSource;
