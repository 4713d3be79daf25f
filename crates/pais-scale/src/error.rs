//! Why a run with an executor ends without a release.

use std::io;
use std::path::{Path, PathBuf};

use pais_anonymize::RunError;
use pais_core::cancellation::Stopped;
use pais_core::definition::JobError;
use pais_core::table::ReadError;
use thiserror::Error;

/// Why a run with an executor ends without a release.
#[derive(Debug, Error)]
pub enum ScaleError {
    /// The search, or the gate, refused.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The rows of a file do not fit the schema.
    #[error("{}: {error}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        error: ReadError,
    },
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The encrypted temporary files failed.
    #[error("the temporary files of the run: {0}")]
    Spool(io::Error),
    /// The written files were not verified.
    #[error("the verifier did not accept the written files, and nothing was released: {0}")]
    NotVerified(String),
    /// The engine could not be started.
    #[error("the engine: {0}")]
    Engine(String),
}

impl From<Stopped> for ScaleError {
    fn from(stopped: Stopped) -> Self {
        Self::Run(stopped.into())
    }
}

impl From<JobError> for ScaleError {
    fn from(error: JobError) -> Self {
        Self::Run(error.into())
    }
}

impl ScaleError {
    /// A file that cannot be read or written.
    pub(crate) fn file(path: &Path, error: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            error,
        }
    }
}
