//! The settings, their sources, and their validation.
//!
//! The sources in order, of which a later one overrides an earlier one: `config/default.toml`
//! (built in), a file, `DATABASE_URL`, variables `PAIS__SECTION__KEY`, flags. Every error names the
//! key and the source. Neither `Debug` nor an error shows a secret.

mod check;
mod source;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::{Format, Toml};
use secrecy::SecretString;
use serde::Deserialize;
use tracing_subscriber::filter::{LevelFilter, Targets};

use crate::executors::ExecutorOptions;
use crate::oidc::{OidcSettings, SignIn};
use crate::secret;
use crate::storage::object_stores::{LocationLimits, ObjectStoreOptions, ObjectStores};
use crate::telemetry::otlp::OtlpEndpoint;

/// The built-in settings, as documented for users.
pub(crate) const DEFAULTS: &str = include_str!("../../config/default.toml");

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file that is named on the command line or by a variable cannot be read.
    #[error("could not read {what} {}", .path.display())]
    File {
        /// What it is.
        what: String,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },

    /// A value is invalid or has the wrong type, a key is unknown, or the file is not valid TOML. The
    /// message names the setting and where it comes from.
    #[error("{0}")]
    Invalid(String),
}

/// All settings, complete and checked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The HTTP service and its directory.
    pub server: ServerSettings,
    /// Limits of requests.
    pub limits: LimitSettings,
    /// Limits of each organization.
    pub organizations: OrganizationSettings,
    /// The job queue and its threads.
    pub workers: WorkerSettings,
    /// Memory limits.
    pub memory: MemorySettings,
    /// Files outside the database.
    pub storage: StorageSettings,
    /// The embedded database server.
    pub postgres: PostgresSettings,
    /// The database connection.
    pub database: DatabaseSettings,
    /// The key that wraps the datasets' keys.
    pub encryption: EncryptionSettings,
    /// Tokens.
    pub security: SecuritySettings,
    /// People who sign in with an OpenID Connect issuer.
    pub oidc: OidcSection,
    /// The log.
    pub log: LogSettings,
    /// Traces.
    pub telemetry: TelemetrySettings,
    /// Prefixes of Parquet files that organizations may use, by a name for the operator.
    #[serde(default)]
    pub object_stores: BTreeMap<String, ObjectStoreOptions>,
    /// The executors that count the rows of large tables, by the name that jobs use.
    #[serde(default)]
    pub executors: BTreeMap<String, ExecutorOptions>,
}

/// Section `server`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// Directory of the embedded database, the key file and temporary files.
    pub data_dir: PathBuf,
    /// The chain of certificates for TLS, PEM. Without it the service speaks plain HTTP.
    pub tls_certificate: Option<PathBuf>,
    /// The private key of the first certificate, PEM.
    pub tls_key: Option<PathBuf>,
    /// Whether a proxy that terminates TLS is in front of the service, so that it may speak plain
    /// HTTP on other addresses than loopback.
    pub behind_proxy: bool,
    /// The URL at which clients reach the service, without a trailing slash.
    pub public_url: Option<String>,
    /// Longest time a request may take, in seconds.
    pub request_timeout_seconds: u64,
    /// Longest time running requests and jobs have to end after SIGTERM, in seconds.
    pub shutdown_grace_seconds: u64,
    /// Address and port of `/healthz`, `/readyz` and `/metrics`. If absent, that of `listen`, where other
    /// machines get no metrics.
    pub operation_listen: Option<SocketAddr>,
    /// Longest time until the head of a request is complete, in seconds.
    pub header_timeout_seconds: u64,
    /// Longest time until a JSON body is complete, in seconds.
    pub body_timeout_seconds: u64,
    /// Longest time that a connection stays open without a request, in seconds.
    pub keep_alive_seconds: u64,
    /// Maximum number of open connections.
    pub connections: usize,
    /// Maximum number of open connections from one address.
    pub connections_per_address: usize,
    /// Origins of web pages that may call the service from a browser.
    #[serde(default)]
    pub cors_origins: Vec<String>,
}

impl ServerSettings {
    /// Whether only clients on this machine reach the service.
    pub fn is_local(&self) -> bool {
        self.listen.ip().to_canonical().is_loopback() && !self.behind_proxy
    }
}

/// Section `limits`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// Maximum size of a submission after decompression, in bytes.
    pub upload_bytes: u64,
    /// Maximum size of a cell of a submission, in bytes of text.
    pub cell_bytes: usize,
    /// Number of submissions that are read at the same time.
    pub uploads: usize,
    /// Longest wait of a submission for its place, in seconds.
    pub upload_wait_seconds: u64,
    /// Longest time until a submission is complete, in seconds.
    pub upload_seconds: u64,
    /// Minimum average rate of a submission, in bytes per second.
    pub upload_bytes_per_second: u64,
    /// Maximum size of a JSON body, in bytes.
    pub json_bytes: usize,
    /// Maximum size of the JSON body of a job, in bytes.
    pub job_json_bytes: usize,
    /// Requests per second for each token; 0 for no limit.
    pub requests_per_second: u32,
    /// Maximum number of event streams of one token.
    pub streams_per_token: usize,
    /// Requests with a refused token per minute for each address.
    pub refused_tokens_per_minute: u32,
    /// Maximum number of leaves of one taxonomy.
    pub taxonomy_leaves: usize,
    /// Maximum number of levels of one taxonomy.
    pub taxonomy_depth: usize,
    /// Maximum number of columns of one dataset.
    pub columns: usize,
    /// Maximum number of files of a located dataset.
    pub location_files: usize,
    /// Maximum size of its files together, and of each one decoded, in bytes.
    pub location_bytes: u64,
    /// Maximum number of its rows.
    pub location_rows: u64,
}

/// Section `organizations`: limits of each organization; 0 for no limit.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrganizationSettings {
    /// Number of submissions that are read at the same time.
    pub uploads: usize,
    /// Number of jobs that wait.
    pub queued_jobs: u32,
    /// Number of jobs that run at the same time.
    pub running_jobs: u32,
    /// Size of all submissions, decoded, in bytes.
    pub stored_bytes: u64,
    /// Number of rows of all submissions.
    pub stored_rows: u64,
    /// Number of open event streams.
    pub streams: usize,
}

/// Section `workers`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerSettings {
    /// Number of anonymization jobs that run at the same time.
    pub jobs: usize,
    /// Threads of the computing pool; 0 means one for each core.
    pub threads: usize,
    /// Duration of a lease, in seconds: how long a worker keeps its job without a heartbeat.
    pub lease_seconds: u64,
    /// Longest time between two heartbeats, in seconds; shorter than the lease.
    pub heartbeat_seconds: u64,
    /// How often an idle worker checks the queue, in seconds.
    pub poll_seconds: u64,
    /// Number of attempts at a job before it fails.
    pub max_attempts: u32,
    /// Longest time a job may run, in seconds.
    pub max_run_seconds: u64,
}

/// Section `memory`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemorySettings {
    /// Maximum memory for everything that grows with what clients send, in bytes; 0 means three
    /// quarters of the memory of the machine or of the container.
    pub process_bytes: u64,
    /// Longest wait of a request for memory, in seconds.
    pub wait_seconds: u64,
    /// Maximum memory for the tables of one job, in bytes.
    pub job_bytes: u64,
}

/// Section `storage`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageSettings {
    /// Free space of the data directory's disk below which uploads and jobs are refused, in bytes.
    pub min_free_bytes: u64,
    /// Size of the file that is removed when the disk is full, in bytes.
    pub reserve_bytes: u64,
    /// Directory of rendered releases and temporary files. If absent, `spool` in the data directory.
    pub spool_dir: Option<PathBuf>,
    /// Maximum size of the files in it, in bytes.
    pub spool_bytes: u64,
}

/// Section `postgres`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostgresSettings {
    /// Directory of the server's programs. If absent, pais searches for it.
    pub bin_dir: Option<PathBuf>,
    /// Maximum number of connections to the embedded server.
    pub max_connections: u32,
}

/// Section `database`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// URL of an external PostgreSQL. If absent, the embedded one is used.
    #[serde(default, deserialize_with = "secret::optional")]
    pub url: Option<SecretString>,
    /// Maximum number of connections of this process.
    pub connections: u32,
    /// How long a session may be silent while a new one answers, in seconds; then the process ends.
    pub silence_seconds: u64,
}

/// Section `encryption`. At most one of the two is set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncryptionSettings {
    /// A file with the key.
    pub key_file: Option<PathBuf>,
    /// The key itself, 32 bytes as base64.
    #[serde(default, deserialize_with = "secret::optional")]
    pub key_base64: Option<SecretString>,
    /// Directory of the datasets' wrapped keys. If absent, `dataset-keys` in the data directory, or a
    /// table of an external database.
    pub data_key_dir: Option<PathBuf>,
}

/// Section `security`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecuritySettings {
    /// Longest lifetime of a token, and that of a token without `expires_at`, in days; 0 for no
    /// limit.
    pub token_max_days: u32,
    /// Whether an administrator who issues a token gets a code instead of the secret, which the organization
    /// redeems.
    pub enrolment: bool,
}

/// Section `oidc`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcSection {
    /// The issuer of the tokens of people, as in their claim `iss`; absent for none.
    pub issuer: Option<String>,
    /// The audience that the claim `aud` must name.
    pub audience: Option<String>,
    /// The id of the console as a client of the issuer; absent where people do not sign in to the
    /// console with it.
    pub console_client_id: Option<String>,
    /// The claim with the name or id of the organization.
    pub organization_claim: String,
    /// The claim with the role, as a text or in a list.
    pub role_claim: String,
    /// The claim that names the person.
    pub subject_claim: String,
    /// Maximum difference of clocks, in seconds.
    pub leeway_seconds: u64,
}

impl OidcSection {
    /// The settings of the verification; `None` if no issuer is configured.
    pub fn settings(&self) -> Option<OidcSettings> {
        Some(OidcSettings {
            issuer: self.issuer.clone()?,
            audience: self.audience.clone()?,
            organization_claim: self.organization_claim.clone(),
            role_claim: self.role_claim.clone(),
            subject_claim: self.subject_claim.clone(),
            leeway_seconds: self.leeway_seconds,
        })
    }

    /// Where people sign in to the console; `None` where they cannot.
    pub fn console(&self) -> Option<SignIn> {
        Some(SignIn {
            issuer: self.issuer.clone()?,
            client_id: self.console_client_id.clone()?,
        })
    }
}

impl Settings {
    /// The clients of the object stores.
    ///
    /// # Errors
    /// The name of the section that cannot be used, and what is wrong.
    pub fn object_stores(&self) -> Result<ObjectStores, String> {
        let limits = &self.limits;
        let limits = LocationLimits {
            files: limits.location_files,
            bytes: limits.location_bytes,
            rows: limits.location_rows,
        };
        ObjectStores::open(&self.object_stores, limits)
    }
}

/// Section `log`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// Format of a line.
    pub format: LogFormat,
    /// What is logged, in the syntax of `tracing_subscriber`'s `Targets`.
    pub filter: String,
}

impl LogSettings {
    /// What is logged.
    ///
    /// # Errors
    /// What is expected of the filter, as the rest of a sentence.
    pub fn targets(&self) -> Result<Targets, String> {
        let text = &self.filter;
        // An empty directive would mean the level of errors, and replace the previous one.
        let directives = text.split(',').map(str::trim).filter(|it| !it.is_empty());
        let directives: Vec<&str> = directives.collect();
        // A mistyped level would be taken for a module, and a span for a part of a module's name.
        let is_level = |it: &&str| it.contains('=') || it.parse::<LevelFilter>().is_ok();
        let is_plain = directives.iter().all(is_level) && !text.contains('[');
        let targets = directives.join(",").parse::<Targets>().ok();
        targets.filter(|_| is_plain).ok_or_else(|| {
            format!("is {text:?}; expected a level such as info, or levels by module: info,pais::jobs=debug")
        })
    }
}

/// Format of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Plain text, for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Section `telemetry`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TelemetrySettings {
    /// The URL of a collector of traces (OTLP over HTTP), without `/v1/traces`. If absent, there are no
    /// traces.
    pub otlp_endpoint: Option<String>,
}

impl TelemetrySettings {
    /// Where traces are sent; `None` for nowhere.
    ///
    /// # Errors
    /// What is expected of the setting, as the rest of a sentence.
    pub fn endpoint(&self) -> Result<Option<OtlpEndpoint>, &'static str> {
        let url = self.otlp_endpoint.as_deref();
        url.map(OtlpEndpoint::parse).transpose()
    }
}

/// The settings given on the command line. An absent flag does not change its setting.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--listen`, for `server.listen`.
    pub listen: Option<SocketAddr>,
    /// `--data-dir`, for `server.data_dir`.
    pub data_dir: Option<PathBuf>,
}

impl Settings {
    /// Reads the settings of this process from the built-in defaults, `file`, the environment and
    /// `flags`.
    ///
    /// # Errors
    /// [`ConfigError`], with the key and the source of what is wrong.
    pub fn load(file: Option<&Path>, flags: &Flags) -> Result<Self, ConfigError> {
        let environment = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::load_from(file, environment, flags)
    }

    /// Like [`Settings::load`], with a given environment.
    ///
    /// # Errors
    /// As [`Settings::load`].
    pub(crate) fn load_from(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: &Flags,
    ) -> Result<Self, ConfigError> {
        let defaults = Figment::from(source::NamedSource::new(
            "the built-in config/default.toml",
            Toml::string(DEFAULTS),
        ));
        let mut figment = defaults.clone();
        if let Some(path) = file {
            let text = std::fs::read_to_string(path).map_err(|source| ConfigError::File {
                what: "the configuration file".to_owned(),
                path: path.to_path_buf(),
                source,
            })?;
            let name = format!("the file {}", path.display());
            figment = figment.merge(source::NamedSource::new(name, Toml::string(&text)));
        }
        for variable in source::variables(environment, &defaults)? {
            figment = figment.merge(variable);
        }
        for flag in source::flags(flags) {
            figment = figment.merge(flag);
        }
        let mut settings: Self = figment.extract().map_err(source::explain)?;
        if let Some(url) = &mut settings.server.public_url {
            url.truncate(url.trim_end_matches('/').len());
        }
        check::check(&settings).map_err(|found| {
            let check::InvalidSetting {
                key,
                beside,
                reason,
            } = found;
            let mut set_by = source::set_by(&figment, key);
            if let Some(other) = beside {
                set_by += &format!("; {other} by {}", source::set_by(&figment, other));
            }
            ConfigError::Invalid(format!("setting {key} {reason} (set by {set_by})"))
        })?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests;
