//! The errors of the embedded server. Each message says what to do.

use std::io;
use std::path::PathBuf;

/// Why the embedded PostgreSQL could not be found, prepared, started, reached or stopped.
///
/// No message contains a value from a table: the server is configured not to log statements,
/// parameters or failed queries, so the log lines quoted here contain none.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// No directory with both `postgres` and `initdb` was found.
    #[error(
        "no PostgreSQL server binaries found (searched in {}); install them (Debian, Ubuntu: \
         apt-get install postgresql; Fedora: dnf install postgresql-server), or point \
         postgres.bin_dir at the directory that holds `postgres` and `initdb`, or set \
         DATABASE_URL to use an outside server",
        .searched.join(", ")
    )]
    NoBinaries {
        /// The places that were searched, in order.
        searched: Vec<String>,
    },

    /// None of the binaries found can open the existing cluster.
    #[error(
        "the database in {} was created by PostgreSQL {wanted}, but only version {} is installed; \
         install the server binaries of version {wanted} (Debian: apt-get install \
         postgresql-{wanted}) or convert the database with pg_upgrade",
        .cluster.display(), .found.join(", ")
    )]
    WrongVersion {
        /// The database cluster.
        cluster: PathBuf,
        /// Major version that created the cluster.
        wanted: String,
        /// Versions of the binaries found.
        found: Vec<String>,
    },

    /// All binaries found are older than the oldest supported version.
    #[error(
        "PostgreSQL {} is too old; install version {oldest} or newer", .found.join(", ")
    )]
    TooOld {
        /// Versions of the binaries found.
        found: Vec<String>,
        /// Oldest supported major version.
        oldest: u32,
    },

    /// Started as root on a machine without an account for PostgreSQL.
    #[error(
        "PostgreSQL refuses to run as root and there is no `{account}` account to run it as; \
         install the distribution's postgresql package, which creates the account, or start pais \
         as an ordinary user"
    )]
    NoAccount {
        /// Name of the missing account.
        account: &'static str,
    },

    /// The account that PostgreSQL runs as cannot access the data directory, and there is no
    /// `/proc` to give it access through an open descriptor.
    #[error(
        "the operating-system user {uid}, which PostgreSQL runs as, may not enter {}; allow it \
         with chmod o+x, or choose a data directory elsewhere, such as /var/lib/pais",
        .dir.display()
    )]
    Unreachable {
        /// The first directory it may not enter.
        dir: PathBuf,
        /// The account's user id.
        uid: u32,
    },

    /// The cluster belongs to another user, and this process may not switch to that user.
    #[error(
        "the database in {} belongs to operating-system user {owner}; start pais as that user",
        .cluster.display()
    )]
    ForeignCluster {
        /// The database cluster.
        cluster: PathBuf,
        /// Its owner's user id.
        owner: u32,
    },

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

    /// Processes of an earlier server still use the cluster.
    #[error(
        "processes of an earlier PostgreSQL server still use {} (process {pid}); wait for them to \
         end, or end them",
        .cluster.display()
    )]
    Lingering {
        /// The database cluster.
        cluster: PathBuf,
        /// Process id of one of them.
        pid: i32,
    },

    /// The cluster exists, but its password file is missing or damaged.
    #[error(
        "the database password {} is missing or damaged; restore it from the backup of the data \
         directory",
        .path.display()
    )]
    Password {
        /// The password file.
        path: PathBuf,
    },

    /// No directory with a path short enough for a socket could be created.
    #[error(
        "no directory for the database socket: a socket's path may have {limit} bytes at most; \
         choose a data directory with a shorter path, or make /run or /tmp writable"
    )]
    NoSocketDir {
        /// The operating system's limit, in bytes.
        limit: usize,
    },

    /// `initdb` failed.
    #[error("initdb could not create the database in {} ({status}): {output}", .cluster.display())]
    Initdb {
        /// The cluster to create.
        cluster: PathBuf,
        /// How `initdb` ended.
        status: String,
        /// The end of its error output.
        output: String,
    },

    /// The server ended before it accepted connections.
    #[error(
        "PostgreSQL did not start ({status}); its log {} ends with:\n{tail}", .log.display()
    )]
    NotStarted {
        /// How the server ended.
        status: String,
        /// The server's log file.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },

    /// The server runs but does not accept connections.
    #[error(
        "PostgreSQL did not accept connections within {seconds} seconds; its log {} ends \
         with:\n{tail}",
        .log.display()
    )]
    NotReady {
        /// How long pais waited, in seconds.
        seconds: u64,
        /// The server's log file.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
        /// The error of the last attempt to connect.
        source: Option<Box<sqlx::Error>>,
    },

    /// The server ended while the service was running.
    #[error("PostgreSQL ended unexpectedly ({status}); its log is {}", .log.display())]
    Ended {
        /// How the server ended.
        status: String,
        /// The server's log file.
        log: PathBuf,
    },

    /// The server did not stop when asked to.
    #[error("PostgreSQL (process {pid}) did not stop within {seconds} seconds; end the process")]
    NotStopped {
        /// Process id of the server.
        pid: i32,
        /// How long pais waited, in seconds.
        seconds: u64,
    },

    /// A statement that sets up the cluster failed.
    #[error("could not {action} in the embedded database")]
    Setup {
        /// What was being done.
        action: &'static str,
        /// The error of the server.
        source: Box<sqlx::Error>,
    },

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
