//! Checks that the settings are valid, each alone and in combination.

use pais_core::definition::json::TREE_DEPTH;
use secrecy::ExposeSecret;

use crate::oidc::is_safe_address;

use super::Settings;

/// A setting that is invalid.
pub(super) struct InvalidSetting {
    pub(super) key: &'static str,
    /// Another setting, which it does not fit.
    pub(super) beside: Option<&'static str>,
    /// What is wrong and what is expected.
    pub(super) reason: String,
}

fn invalid(key: &'static str, reason: impl Into<String>) -> Result<(), InvalidSetting> {
    Err(InvalidSetting {
        key,
        beside: None,
        reason: reason.into(),
    })
}

/// A setting that does not fit another one.
fn unfit(key: &'static str, other: &'static str, reason: String) -> Result<(), InvalidSetting> {
    Err(InvalidSetting {
        key,
        beside: Some(other),
        reason,
    })
}

/// Connections in addition to those of the pool: two are for heartbeats, three are reserved for the superuser,
/// and a command that runs while the service runs needs some.
const SPARE_CONNECTIONS: u32 = 8;

/// The minimum memory of a process, 64 MiB. A smaller number was probably meant in another unit.
const LEAST_PROCESS_BYTES: u64 = 64 << 20;

/// Maximum lifetime of a token in days, if there is one.
const MOST_TOKEN_DAYS: u32 = 3650;

/// Maximum clock skew in seconds: an expired token stays valid for this long.
const MOST_LEEWAY_SECONDS: u64 = 300;

/// Maximum number of threads, and of what has a task or a connection of its own. A larger one exhausts the machine
/// before it is reached.
const MOST_AT_ONCE: usize = 1024;

/// Checks what the types do not check.
///
/// # Errors
/// The first invalid setting.
pub(super) fn check(settings: &Settings) -> Result<(), InvalidSetting> {
    if settings.server.data_dir.as_os_str().is_empty() {
        return invalid("server.data_dir", "is empty; name a directory");
    }
    not_zero(settings)?;
    durations(settings)?;
    not_too_many(settings)?;
    limits(settings)?;
    connections(settings)?;
    addresses(settings)?;
    transport(settings)?;
    oidc(settings)?;
    if let Err(reason) = settings.log.targets() {
        return invalid("log.filter", reason);
    }
    if let Err(reason) = settings.telemetry.endpoint() {
        return invalid("telemetry.otlp_endpoint", reason);
    }
    if let Err(reason) = settings.object_stores() {
        return invalid("object_stores", format!("cannot be used: {reason}"));
    }
    for (name, options) in &settings.executors {
        if let Err(reason) = options.check(name, settings.memory.job_bytes) {
            return invalid(
                "executors",
                format!("cannot be used: executors.{name} {reason}"),
            );
        }
    }
    if settings.encryption.key_file.is_some() && settings.encryption.key_base64.is_some() {
        let reason = "and encryption.key_base64 are both set; leave one out";
        return invalid("encryption.key_file", reason);
    }
    Ok(())
}

/// The names of settings, each with whether its value is invalid.
macro_rules! wrong {
    ($settings:ident $comparison:tt $value:expr => $($section:ident.$key:ident),+ $(,)?) => {
        [$((
            concat!(stringify!($section), ".", stringify!($key)),
            $settings.$section.$key $comparison $value,
        )),+]
    };
}

/// Longest duration of a setting, 10 years, so that no moment computed with it is out of the clock's range.
const MOST_SECONDS: u64 = 315_360_000;

fn durations(settings: &Settings) -> Result<(), InvalidSetting> {
    let too_long = wrong![settings > MOST_SECONDS =>
        server.request_timeout_seconds,
        server.shutdown_grace_seconds,
        server.header_timeout_seconds,
        server.body_timeout_seconds,
        server.keep_alive_seconds,
        limits.upload_wait_seconds,
        limits.upload_seconds,
        workers.lease_seconds,
        workers.heartbeat_seconds,
        workers.poll_seconds,
        workers.max_run_seconds,
        memory.wait_seconds,
        database.silence_seconds,
    ];
    match too_long.into_iter().find(|(_, is_too_long)| *is_too_long) {
        Some((key, _)) => invalid(key, format!("must be at most {MOST_SECONDS}, ten years")),
        None => Ok(()),
    }
}

fn not_too_many(settings: &Settings) -> Result<(), InvalidSetting> {
    const CONNECTIONS: u32 = MOST_AT_ONCE as u32;
    let counts = wrong![settings > MOST_AT_ONCE => limits.uploads, workers.jobs, workers.threads];
    let connections = wrong![settings > CONNECTIONS =>
        database.connections,
        postgres.max_connections,
    ];
    let mut numbers = counts.into_iter().chain(connections);
    match numbers.find(|(_, is_too_many)| *is_too_many) {
        Some((key, _)) => invalid(key, format!("must be at most {MOST_AT_ONCE}")),
        None => Ok(()),
    }
}

fn not_zero(settings: &Settings) -> Result<(), InvalidSetting> {
    let zeros = wrong![settings == 0 =>
        server.request_timeout_seconds,
        server.header_timeout_seconds,
        server.body_timeout_seconds,
        server.keep_alive_seconds,
        server.connections,
        server.connections_per_address,
        limits.upload_bytes,
        limits.cell_bytes,
        limits.uploads,
        limits.upload_seconds,
        limits.job_json_bytes,
        limits.streams_per_token,
        limits.refused_tokens_per_minute,
        limits.json_bytes,
        limits.taxonomy_leaves,
        limits.taxonomy_depth,
        limits.columns,
        limits.location_files,
        limits.location_bytes,
        limits.location_rows,
        workers.jobs,
        workers.heartbeat_seconds,
        workers.poll_seconds,
        workers.max_attempts,
        workers.max_run_seconds,
        storage.spool_bytes,
        memory.job_bytes,
        database.connections,
        database.silence_seconds,
    ];
    match zeros.into_iter().find(|(_, is_zero)| *is_zero) {
        Some((key, _)) => invalid(key, "must be at least 1"),
        None => Ok(()),
    }
}

fn limits(settings: &Settings) -> Result<(), InvalidSetting> {
    let (limits, workers) = (&settings.limits, &settings.workers);
    if workers.heartbeat_seconds >= workers.lease_seconds {
        let lease = workers.lease_seconds;
        let reason = format!("must be less than workers.lease_seconds, which is {lease}");
        return unfit("workers.heartbeat_seconds", "workers.lease_seconds", reason);
    }
    if limits.taxonomy_depth > TREE_DEPTH {
        let reason =
            format!("must be at most {TREE_DEPTH}, because deeper JSON documents are rejected");
        return invalid("limits.taxonomy_depth", reason);
    }
    if settings.security.token_max_days > MOST_TOKEN_DAYS {
        let reason = format!("must be at most {MOST_TOKEN_DAYS}, ten years, or 0 for no limit");
        return invalid("security.token_max_days", reason);
    }
    if (1..LEAST_PROCESS_BYTES).contains(&settings.memory.process_bytes) {
        let reason = format!("must be 0, or at least {LEAST_PROCESS_BYTES}; it is in bytes");
        return invalid("memory.process_bytes", reason);
    }
    Ok(())
}

fn connections(settings: &Settings) -> Result<(), InvalidSetting> {
    let least = settings
        .database
        .connections
        .saturating_add(SPARE_CONNECTIONS);
    if settings.database.url.is_none() && settings.postgres.max_connections < least {
        let reason = format!(
            "must be at least {least}, which is database.connections and {SPARE_CONNECTIONS} more"
        );
        return unfit("postgres.max_connections", "database.connections", reason);
    }
    Ok(())
}

fn addresses(settings: &Settings) -> Result<(), InvalidSetting> {
    let server = &settings.server;
    if server.operation_listen == Some(server.listen) && server.listen.port() != 0 {
        let reason =
            "is the address of server.listen; choose another port, or leave it out".to_owned();
        return unfit("server.operation_listen", "server.listen", reason);
    }
    let url = settings.server.public_url.as_deref();
    // It appears in documents and links that others read.
    let is_public = |url: &str| host(url).is_some() && !url.contains(['@', '?', '#', ' ']);
    if url.is_some_and(|url| !is_public(url)) {
        let reason =
            "must be a URL like https://pais.example.org, without user, query and fragment";
        return invalid("server.public_url", reason);
    }
    let url = settings.database.url.as_ref();
    let is_of_postgres = |url: &str| {
        let mut schemes = ["postgres://", "postgresql://"].into_iter();
        schemes.any(|scheme| url.starts_with(scheme))
    };
    if url.is_some_and(|url| !is_of_postgres(url.expose_secret())) {
        return invalid(
            "database.url",
            "must begin with postgres:// or postgresql://",
        );
    }
    // An origin is a URL that ends after its host and port.
    let is_origin = |url: &str| host(url).is_some_and(|host| !host.contains(['/', ' ', '*']));
    let mut origins = settings.server.cors_origins.iter();
    match origins.find(|origin| !is_origin(origin)) {
        Some(origin) => invalid(
            "server.cors_origins",
            format!("has {origin:?}, which is not an origin like https://app.example.org"),
        ),
        None => Ok(()),
    }
}

/// Tokens and tables must not cross a network in plain text.
fn transport(settings: &Settings) -> Result<(), InvalidSetting> {
    let server = &settings.server;
    let is_local = server.listen.ip().to_canonical().is_loopback();
    match (&server.tls_certificate, &server.tls_key) {
        (Some(_), Some(_)) => Ok(()),
        (Some(_), None) => invalid(
            "server.tls_certificate",
            "needs its private key in server.tls_key",
        ),
        (None, Some(_)) => invalid(
            "server.tls_key",
            "needs the certificate in server.tls_certificate",
        ),
        (None, None) if is_local || server.behind_proxy => Ok(()),
        (None, None) => invalid(
            "server.listen",
            format!(
                "is {}, where tokens and tables would pass the network in clear; set \
                 server.tls_certificate and server.tls_key, or server.behind_proxy = true if a \
                 proxy that terminates TLS is in front of the service",
                server.listen
            ),
        ),
    }
}

fn oidc(settings: &Settings) -> Result<(), InvalidSetting> {
    let oidc = &settings.oidc;
    let claims = [
        ("oidc.organization_claim", &oidc.organization_claim),
        ("oidc.role_claim", &oidc.role_claim),
        ("oidc.subject_claim", &oidc.subject_claim),
    ];
    if let Some((key, _)) = claims.into_iter().find(|(_, name)| name.is_empty()) {
        return invalid(key, "is empty; name a claim");
    }
    match (&oidc.issuer, &oidc.audience) {
        (None, None) if oidc.console_client_id.is_some() => {
            invalid("oidc.console_client_id", "needs oidc.issuer")
        }
        (None, None) => Ok(()),
        (Some(_), None) => invalid(
            "oidc.issuer",
            "needs oidc.audience: tokens for others are refused",
        ),
        (None, Some(_)) => invalid("oidc.audience", "needs oidc.issuer"),
        (Some(issuer), Some(_)) if !is_safe_address(issuer) => invalid(
            "oidc.issuer",
            "must be a URL like https://login.example.org, without a user",
        ),
        (Some(_), Some(_)) if oidc.leeway_seconds > MOST_LEEWAY_SECONDS => invalid(
            "oidc.leeway_seconds",
            format!("must be at most {MOST_LEEWAY_SECONDS}"),
        ),
        (Some(_), Some(_)) => Ok(()),
    }
}

/// The part of an HTTP URL after the scheme; `None` if it is not an HTTP URL.
fn host(url: &str) -> Option<&str> {
    let host = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))?;
    (!host.is_empty() && !host.starts_with('/')).then_some(host)
}
