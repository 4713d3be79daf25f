//! Checks that the settings are valid, each alone and in combination.

use pais_core::definition::json::TREE_DEPTH;

use crate::oidc::is_safe_address;

use super::Settings;

/// The key of an invalid setting, and what is wrong with it.
type InvalidSetting = (&'static str, String);

/// Connections in addition to those of the pool: two are for heartbeats, three are reserved for the
/// superuser, and a command that runs beside the service needs some.
const SPARE_CONNECTIONS: u32 = 8;

/// Most seconds by which clocks may differ: an expired token works on for so long.
const MOST_LEEWAY_SECONDS: u64 = 300;

/// Checks what the types do not check.
///
/// # Errors
/// The first invalid setting.
pub(super) fn check(settings: &Settings) -> Result<(), InvalidSetting> {
    not_zero(settings)?;
    limits(settings)?;
    connections(settings)?;
    addresses(settings)?;
    transport(settings)?;
    oidc(settings)?;
    if settings.encryption.key_file.is_some() && settings.encryption.key_base64.is_some() {
        let reason = "and encryption.key_base64 are both set; leave one out";
        return Err(("encryption.key_file", reason.to_owned()));
    }
    Ok(())
}

/// The names of settings, each with whether it is 0.
macro_rules! zeros {
    ($settings:ident: $($section:ident.$key:ident),+ $(,)?) => {
        [$((
            concat!(stringify!($section), ".", stringify!($key)),
            $settings.$section.$key == 0,
        )),+]
    };
}

fn not_zero(settings: &Settings) -> Result<(), InvalidSetting> {
    let zeros = zeros![settings:
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
        workers.jobs,
        workers.heartbeat_seconds,
        workers.poll_seconds,
        workers.max_attempts,
        workers.max_run_seconds,
        storage.spool_bytes,
        memory.job_bytes,
        database.connections,
    ];
    match zeros.into_iter().find(|(_, is_zero)| *is_zero) {
        Some((key, _)) => Err((key, "must be at least 1".to_owned())),
        None => Ok(()),
    }
}

fn limits(settings: &Settings) -> Result<(), InvalidSetting> {
    let (limits, workers) = (&settings.limits, &settings.workers);
    if workers.heartbeat_seconds >= workers.lease_seconds {
        let lease = workers.lease_seconds;
        let reason = format!("must be less than workers.lease_seconds, which is {lease}");
        return Err(("workers.heartbeat_seconds", reason));
    }
    if limits.taxonomy_depth > TREE_DEPTH {
        let reason =
            format!("must be at most {TREE_DEPTH}, because deeper JSON documents are rejected");
        return Err(("limits.taxonomy_depth", reason));
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
        return Err(("postgres.max_connections", reason));
    }
    Ok(())
}

fn addresses(settings: &Settings) -> Result<(), InvalidSetting> {
    if let Some(url) = &settings.server.public_url
        && host(url).is_none()
    {
        let reason = "must be a URL like https://pais.example.org".to_owned();
        return Err(("server.public_url", reason));
    }
    // An origin is a URL that ends after its host and port.
    let is_origin = |url: &str| host(url).is_some_and(|host| !host.contains(['/', ' ', '*']));
    match settings.server.cors_origins.iter().find(|o| !is_origin(o)) {
        Some(origin) => {
            let reason =
                format!("has {origin:?}, which is not an origin like https://app.example.org");
            Err(("server.cors_origins", reason))
        }
        None => Ok(()),
    }
}

/// Tokens and tables do not pass a network in clear.
fn transport(settings: &Settings) -> Result<(), InvalidSetting> {
    let server = &settings.server;
    let is_local = server.listen.ip().to_canonical().is_loopback();
    match (&server.tls_certificate, &server.tls_key) {
        (Some(_), Some(_)) => Ok(()),
        (Some(_), None) => Err((
            "server.tls_certificate",
            "needs its private key in server.tls_key".to_owned(),
        )),
        (None, Some(_)) => Err((
            "server.tls_key",
            "needs the certificate in server.tls_certificate".to_owned(),
        )),
        (None, None) if is_local || server.behind_proxy => Ok(()),
        (None, None) => Err((
            "server.listen",
            format!(
                "is {}, where tokens and tables would pass the network in clear; set \
                 server.tls_certificate and server.tls_key, or server.behind_proxy = true if a \
                 proxy that terminates TLS is in front of the service",
                server.listen
            ),
        )),
    }
}

fn oidc(settings: &Settings) -> Result<(), InvalidSetting> {
    let oidc = &settings.oidc;
    let reason = match (&oidc.issuer, &oidc.audience) {
        (None, None) => return Ok(()),
        (Some(_), None) => (
            "oidc.issuer",
            "needs oidc.audience: tokens for others are refused",
        ),
        (None, Some(_)) => ("oidc.audience", "needs oidc.issuer"),
        (Some(issuer), Some(_)) if is_safe_address(issuer) => {
            return if oidc.leeway_seconds <= MOST_LEEWAY_SECONDS {
                Ok(())
            } else {
                Err((
                    "oidc.leeway_seconds",
                    format!("must be at most {MOST_LEEWAY_SECONDS}"),
                ))
            };
        }
        (Some(_), Some(_)) => ("oidc.issuer", "must begin with https://"),
    };
    Err((reason.0, reason.1.to_owned()))
}

/// The part of an HTTP URL after the scheme; `None` if it is not an HTTP URL.
fn host(url: &str) -> Option<&str> {
    let host = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))?;
    (!host.is_empty() && !host.starts_with('/')).then_some(host)
}
