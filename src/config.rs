//! Settings: what they are, where they come from, and that they make sense.
//!
//! Later sources win: `config/default.toml` (built in), a file, `DATABASE_URL`, variables
//! `PAIS__SECTION__KEY`, flags. Every error names the key and the source. Secrets are neither
//! shown by `Debug` nor quoted by an error.

mod check;
mod source;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use figment::Figment;
use figment::providers::{Format, Toml};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// The built-in settings, as documented for users.
pub const DEFAULTS: &str = include_str!("../config/default.toml");

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file named on the command line cannot be read.
    #[error("could not read the configuration file {}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },

    /// Values are of the wrong type, keys unknown, or a file is no TOML.
    #[error("settings: {}", .0.join("; "))]
    Form(Vec<String>),

    /// A value is of the right type and makes no sense.
    #[error("setting {key} {reason} (set by {set_by})")]
    Value {
        /// The setting, as `section.key`.
        key: &'static str,
        /// What is wrong and what would be right.
        reason: String,
        /// Where the value comes from.
        set_by: String,
    },
}

/// All settings, complete and checked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The HTTP service and its directory.
    pub server: ServerSettings,
    /// What a client may ask for.
    pub limits: LimitSettings,
    /// The job queue and the threads behind it.
    pub workers: WorkerSettings,
    /// How much memory may be used.
    pub memory: MemorySettings,
    /// The embedded database server.
    pub postgres: PostgresSettings,
    /// The database connection.
    pub database: DatabaseSettings,
    /// The key that wraps the datasets' keys.
    pub encryption: EncryptionSettings,
    /// The log.
    pub log: LogSettings,
}

/// Section `server`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// Directory of the embedded database, the key file and temporary files.
    pub data_dir: PathBuf,
    /// How clients reach the service, without a closing slash.
    pub public_url: Option<String>,
    /// Longest time a request may take, in seconds.
    pub request_timeout_seconds: u64,
    /// Longest time running requests and jobs have to end after SIGTERM, in seconds.
    pub shutdown_grace_seconds: u64,
    /// Origins of web pages that may call the service from a browser.
    #[serde(default)]
    pub cors_origins: Vec<String>,
}

/// Section `limits`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// Longest submission after decompression, in bytes.
    pub upload_bytes: u64,
    /// Longest JSON body, in bytes.
    pub json_bytes: usize,
    /// Requests each token may make a second; 0 for no bound.
    pub requests_per_second: u32,
    /// Most leaves of one taxonomy.
    pub taxonomy_leaves: usize,
    /// Most levels of one taxonomy.
    pub taxonomy_depth: usize,
    /// Most columns of one dataset.
    pub columns: usize,
}

/// Section `workers`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerSettings {
    /// Anonymization jobs at a time.
    pub jobs: usize,
    /// Threads of the computing pool; 0 means one for each core.
    pub threads: usize,
    /// How long a silent worker keeps its job, in seconds.
    pub lease_seconds: u64,
    /// How often a worker renews its lease, in seconds; shorter than the lease.
    pub heartbeat_seconds: u64,
    /// How often an idle worker looks for work, in seconds.
    pub poll_seconds: u64,
    /// How often a job is begun before it is given up.
    pub max_attempts: u32,
}

/// Section `memory`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemorySettings {
    /// Most memory the tables of one job may take, in bytes.
    pub job_bytes: u64,
}

/// Section `postgres`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostgresSettings {
    /// Directory of the server's programs; searched for when absent.
    pub bin_dir: Option<PathBuf>,
    /// Most connections to the embedded server.
    pub max_connections: u32,
}

/// Section `database`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// An outside PostgreSQL; absent, the embedded one is used.
    #[serde(default, deserialize_with = "source::secret")]
    pub url: Option<SecretString>,
    /// Most connections this process keeps.
    pub connections: u32,
}

/// Section `encryption`. At most one of the two is set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncryptionSettings {
    /// A file with the key.
    pub key_file: Option<PathBuf>,
    /// The key itself, 32 bytes as base64.
    #[serde(default, deserialize_with = "source::secret")]
    pub key_base64: Option<SecretString>,
}

/// Section `log`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// How a line looks.
    pub format: LogFormat,
    /// What is logged, in the words of `tracing`'s `EnvFilter`.
    pub filter: String,
}

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What the command line sets; absent flags leave a setting as it is.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--listen`, for `server.listen`.
    pub listen: Option<SocketAddr>,
    /// `--data-dir`, for `server.data_dir`.
    pub data_dir: Option<PathBuf>,
}

impl Settings {
    /// Reads the settings of this process: built-in, `file`, environment, `flags`.
    ///
    /// # Errors
    /// [`ConfigError`], with the key and the source of what is wrong.
    pub fn load(file: Option<&Path>, flags: &Flags) -> Result<Self, ConfigError> {
        let environment = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::load_from(file, environment, flags)
    }

    /// As [`Settings::load`], from a given environment.
    ///
    /// # Errors
    /// As [`Settings::load`].
    pub fn load_from(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: &Flags,
    ) -> Result<Self, ConfigError> {
        let mut figment = Figment::from(source::Named::new(
            "the built-in config/default.toml",
            Toml::string(DEFAULTS),
        ));
        if let Some(path) = file {
            let text = std::fs::read_to_string(path).map_err(|source| ConfigError::File {
                path: path.to_path_buf(),
                source,
            })?;
            let name = format!("the file {}", path.display());
            figment = figment.merge(source::Named::new(name, Toml::string(&text)));
        }
        for variable in source::variables(environment) {
            figment = figment.merge(variable);
        }
        for flag in source::flags(flags) {
            figment = figment.merge(flag);
        }
        let mut settings: Self = figment.extract().map_err(source::explain)?;
        settings.tidy();
        check::check(&settings).map_err(|(key, reason)| ConfigError::Value {
            key,
            reason,
            set_by: source::set_by(&figment, key),
        })?;
        Ok(settings)
    }

    /// An empty secret is one that is not set, as shells and compose files write it.
    fn tidy(&mut self) {
        for secret in [&mut self.database.url, &mut self.encryption.key_base64] {
            if secret
                .as_ref()
                .is_some_and(|s| s.expose_secret().is_empty())
            {
                *secret = None;
            }
        }
        if let Some(url) = &mut self.server.public_url {
            url.truncate(url.trim_end_matches('/').len());
        }
    }
}

impl ServerSettings {
    /// Longest time a request may take.
    pub fn request_timeout(&self) -> Duration {
        Duration::from_secs(self.request_timeout_seconds)
    }

    /// Longest time running work has to end after SIGTERM.
    pub fn shutdown_grace(&self) -> Duration {
        Duration::from_secs(self.shutdown_grace_seconds)
    }
}

impl WorkerSettings {
    /// How long a silent worker keeps its job.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_seconds)
    }

    /// How often a worker renews its lease.
    pub fn heartbeat(&self) -> Duration {
        Duration::from_secs(self.heartbeat_seconds)
    }

    /// How often an idle worker looks for work.
    pub fn poll(&self) -> Duration {
        Duration::from_secs(self.poll_seconds)
    }
}

#[cfg(test)]
mod tests;
