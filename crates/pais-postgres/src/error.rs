//! The errors of the embedded server. Each message says what to do.

use std::io;
use std::path::PathBuf;

/// Why the embedded PostgreSQL could not be found, prepared, started, reached or stopped.
///
/// No message contains a value from a table: the server is configured not to log statements,
/// parameters or failed queries, so the log lines quoted here contain none.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// Another pais process uses the data directory.
    #[error(
        "another pais ({holder}) is using the data directory {}; stop it first, or choose \
         another one with --data-dir",
        .data_dir.display()
    )]
    InUse {
        /// The data directory.
        data_dir: PathBuf,
        /// What the lock file says about the holder.
        holder: String,
    },

    /// A server that pais did not start uses the cluster.
    #[error(
        "a PostgreSQL server that pais did not start (process {pid}) runs on {}; stop it first",
        .cluster.display()
    )]
    ForeignServer {
        /// The database cluster.
        cluster: PathBuf,
        /// Process id of the other server.
        pid: i32,
    },

    /// The server cannot be used: why, and what to do.
    #[error("{0}")]
    Unusable(String),

    /// A statement that sets up the cluster failed.
    #[error("could not set up the role and the database of the service")]
    Setup(#[source] Box<sqlx::Error>),

    /// A file, directory or process could not be handled.
    #[error("could not {action} {}", .path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file or program concerned.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl PostgresError {
    /// For `map_err`: makes an error from an I/O error, the action and the path.
    pub(super) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
