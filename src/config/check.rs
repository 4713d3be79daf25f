//! Whether the settings make sense, each alone and together.

use pais_core::definition::json::TREE_DEPTH;

use super::Settings;

/// A setting and what is wrong with it.
type Wrong = (&'static str, String);

/// Connections beyond those of the service: three are kept for the superuser, and a command
/// beside the service needs some.
const SPARE_CONNECTIONS: u32 = 5;

/// Checks everything that types alone do not.
pub(super) fn check(settings: &Settings) -> Result<(), Wrong> {
    not_zero(settings)?;
    limits(settings)?;
    connections(settings)?;
    addresses(settings)?;
    if settings.encryption.key_file.is_some() && settings.encryption.key_base64.is_some() {
        let reason = "and encryption.key_base64 are both set; leave one out";
        return Err(("encryption.key_file", reason.to_owned()));
    }
    Ok(())
}

fn not_zero(settings: &Settings) -> Result<(), Wrong> {
    let (limits, workers) = (&settings.limits, &settings.workers);
    let request = settings.server.request_timeout_seconds;
    let zero = [
        ("server.request_timeout_seconds", request == 0),
        ("limits.upload_bytes", limits.upload_bytes == 0),
        ("limits.json_bytes", limits.json_bytes == 0),
        ("limits.taxonomy_leaves", limits.taxonomy_leaves == 0),
        ("limits.taxonomy_depth", limits.taxonomy_depth == 0),
        ("limits.columns", limits.columns == 0),
        ("workers.jobs", workers.jobs == 0),
        ("workers.heartbeat_seconds", workers.heartbeat_seconds == 0),
        ("workers.poll_seconds", workers.poll_seconds == 0),
        ("workers.max_attempts", workers.max_attempts == 0),
        ("memory.job_bytes", settings.memory.job_bytes == 0),
        ("database.connections", settings.database.connections == 0),
    ];
    match zero.into_iter().find(|(_, is_zero)| *is_zero) {
        Some((key, _)) => Err((key, "must be at least 1".to_owned())),
        None => Ok(()),
    }
}

fn limits(settings: &Settings) -> Result<(), Wrong> {
    let (limits, workers) = (&settings.limits, &settings.workers);
    if workers.heartbeat_seconds >= workers.lease_seconds {
        let lease = workers.lease_seconds;
        let reason = format!("must be less than workers.lease_seconds, which is {lease}");
        return Err(("workers.heartbeat_seconds", reason));
    }
    if limits.taxonomy_depth > TREE_DEPTH {
        let reason = format!("must be at most {TREE_DEPTH}, the levels that JSON has room for");
        return Err(("limits.taxonomy_depth", reason));
    }
    Ok(())
}

fn connections(settings: &Settings) -> Result<(), Wrong> {
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

fn addresses(settings: &Settings) -> Result<(), Wrong> {
    if let Some(url) = &settings.server.public_url
        && host(url).is_none()
    {
        let reason = "must be like https://pais.example.org".to_owned();
        return Err(("server.public_url", reason));
    }
    // An origin is a URL that ends with its host and port.
    let is_origin = |url: &str| host(url).is_some_and(|host| !host.contains(['/', ' ', '*']));
    match settings.server.cors_origins.iter().find(|o| !is_origin(o)) {
        Some(origin) => {
            let reason = format!("has {origin:?}, which is no origin like https://app.example.org");
            Err(("server.cors_origins", reason))
        }
        None => Ok(()),
    }
}

/// What follows the scheme of a web address.
fn host(url: &str) -> Option<&str> {
    let host = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))?;
    (!host.is_empty() && !host.starts_with('/')).then_some(host)
}
