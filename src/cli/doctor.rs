//! `pais doctor`: whether the service can run with these settings, and what to do where it cannot.

use std::fmt::Display;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pais::api::tls::Tls;
use pais::config::Settings;
use pais::db::migration_state::MigrationState;
use pais::db::{Store, instances, service_keys};
use pais::storage::{Disk, secret_file};
use pais_postgres::EmbeddedOptions;
use rustix::fs::{Access, access};
use time::OffsetDateTime;

use super::data_dir::Home;
use super::database::{Database, SettingsArgs, connect_owner, embedded, key_directory};
use super::key_file::KeyPlace;
use super::output::print_line;
use super::process::{Stop, handle_signals};
use super::{block_on, keys, process};

/// The oldest major version of an external PostgreSQL.
const OLDEST_POSTGRES: i32 = 14;

/// The greatest difference between the clocks of this machine and of the database, in seconds.
const CLOCK_SECONDS: f64 = 5.0;

/// Connections of the owner of the tables and of short tasks, for each process.
const OTHER_CONNECTIONS: u32 = 4;

/// How a thing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// As it should be.
    Good,
    /// The service runs with it, but somebody should look at it.
    Doubtful,
    /// The service does not run with it.
    Bad,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Doubtful => "check",
            Self::Bad => "BAD",
        }
    }
}

/// The findings, which are printed as they are made.
#[derive(Default)]
struct Findings {
    bad: usize,
    doubtful: usize,
}

impl Findings {
    fn add(&mut self, verdict: Verdict, thing: &str, text: impl Display) {
        match verdict {
            Verdict::Good => {}
            Verdict::Doubtful => self.doubtful += 1,
            Verdict::Bad => self.bad += 1,
        }
        // A reader that has closed its end does not want the rest.
        let _ = print_line(format_args!("{:<5}  {thing:<14}  {text}", verdict.word()));
    }

    fn good(&mut self, thing: &str, text: impl Display) {
        self.add(Verdict::Good, thing, text);
    }

    fn doubtful(&mut self, thing: &str, text: impl Display) {
        self.add(Verdict::Doubtful, thing, text);
    }

    fn bad(&mut self, thing: &str, text: impl Display) {
        self.add(Verdict::Bad, thing, text);
    }
}

/// Checks and prints; exit status 1 if the service cannot run, else 0. Changes nothing: a database that no
/// process runs is started for the time of the check.
///
/// # Errors
/// If the runtime cannot start.
pub(crate) fn run(args: &SettingsArgs) -> anyhow::Result<ExitCode> {
    process::forbid_dumps();
    let mut findings = Findings::default();
    match args.start() {
        Ok(settings) => {
            findings.good("settings", "read and valid");
            let is_served = Home::is_served(&settings.server.data_dir);
            directory(&settings, is_served, &mut findings);
            ports(&settings, is_served, &mut findings);
            certificate(&settings, &mut findings);
            spool(&settings, &mut findings);
            disks(&settings, &mut findings);
            memory(&settings, &mut findings);
            traces(&settings, &mut findings);
            block_on(async {
                let stop = handle_signals()?;
                database(&settings, &stop, &mut findings).await;
                Ok(())
            })?;
        }
        Err(error) => findings.bad("settings", format_args!("{error:#}")),
    }
    let Findings { bad, doubtful } = findings;
    let checks = match doubtful {
        0 => String::new(),
        1 => "; one thing to look at".to_owned(),
        more => format!("; {more} things to look at"),
    };
    print_line(match bad {
        0 => format!("the service can run{checks}"),
        1 => format!("the service cannot run: one thing to repair{checks}"),
        more => format!("the service cannot run: {more} things to repair{checks}"),
    })?;
    Ok(ExitCode::from(u8::from(bad > 0)))
}

fn directory(settings: &Settings, is_served: bool, findings: &mut Findings) {
    let (thing, dir) = ("data directory", &settings.server.data_dir);
    let name = dir.display();
    if !dir.exists() {
        let parent = dir.ancestors().skip(1).find(|parent| parent.exists());
        let parent = parent.unwrap_or(Path::new("."));
        if access(parent, Access::WRITE_OK).is_err() {
            let parent = parent.display();
            findings.bad(
                thing,
                format_args!(
                    "{name} does not exist, and {parent} cannot be written; make it for the user of the \
                     service: install -d -m 700 -o USER {name}"
                ),
            );
        } else {
            findings.good(
                thing,
                format_args!("{name} does not exist; the first start makes it"),
            );
        }
        return;
    }
    match secret_file::check_mode(dir) {
        // The group of the database may enter where root runs the service.
        Err(secret_file::KeyFileError::Mode { mode, .. }) if mode & 0o067 != 0 => findings
            .doubtful(
                thing,
                format_args!(
                    "{name} has mode {mode:04o}; others should not read it: chmod go= {name}"
                ),
            ),
        Err(secret_file::KeyFileError::Io { source, .. }) => {
            findings.bad(thing, format_args!("{name}: {source}"));
            return;
        }
        _ => {}
    }
    if access(dir, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        findings.bad(
            thing,
            format_args!("{name} cannot be written; run as the user that the service runs as"),
        );
    } else if is_served {
        findings.good(thing, format_args!("{name}, used by a running service"));
    } else {
        findings.good(thing, format_args!("{name}, no service runs"));
    }
}

fn ports(settings: &Settings, is_served: bool, findings: &mut Findings) {
    let server = &settings.server;
    let operation = server
        .operation_listen
        .map(|address| ("server.operation_listen", address));
    for (key, address) in [("server.listen", server.listen)]
        .into_iter()
        .chain(operation)
    {
        port(key, address, is_served, findings);
    }
}

fn port(key: &str, address: SocketAddr, is_served: bool, findings: &mut Findings) {
    match TcpListener::bind(address) {
        Ok(_) if is_served => findings.doubtful(
            "port",
            format_args!(
                "{address} ({key}) is free, although a service runs: it listens elsewhere, or is starting"
            ),
        ),
        Ok(_) => findings.good("port", format_args!("{address} ({key}) is free")),
        Err(error) if is_served && error.kind() == std::io::ErrorKind::AddrInUse => findings.good(
            "port",
            format_args!("{address} ({key}) is in use while the service runs"),
        ),
        Err(error) => findings.bad(
            "port",
            format_args!("cannot listen on {address}: {error}; choose another {key}"),
        ),
    }
}

fn certificate(settings: &Settings, findings: &mut Findings) {
    let server = &settings.server;
    match (&server.tls_certificate, &server.tls_key) {
        (Some(certificate), Some(key)) => match Tls::open(certificate, key) {
            Ok(_) => findings.good("TLS", format_args!("{}", certificate.display())),
            Err(error) => findings.bad("TLS", format_args!("server.tls_certificate: {error:#}")),
        },
        _ if server.behind_proxy => {
            findings.good(
                "TLS",
                "none; a proxy is said to be in front (server.behind_proxy)",
            );
        }
        // Without TLS other addresses than loopback are refused with the settings.
        _ => findings.good("TLS", "none; only this machine can reach the service"),
    }
}

fn spool(settings: &Settings, findings: &mut Findings) {
    let Some(dir) = &settings.storage.spool_dir else {
        return;
    };
    let existing = dir.ancestors().find(|dir| dir.exists());
    let existing = existing.unwrap_or(Path::new("."));
    let is_usable =
        existing.is_dir() && access(existing, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    if !is_usable {
        findings.bad(
            "spool",
            format_args!(
                "no file can be made in {} (storage.spool_dir); name a directory that the user of the service may \
                 write",
                dir.display()
            ),
        );
    }
}

fn disks(settings: &Settings, findings: &mut Findings) {
    let (server, storage) = (&settings.server, &settings.storage);
    let spool = storage
        .spool_dir
        .clone()
        .unwrap_or_else(|| server.data_dir.join("spool"));
    let mut seen: Vec<u64> = Vec::new();
    for (key, dir) in [
        ("server.data_dir", &server.data_dir),
        ("storage.spool_dir", &spool),
    ] {
        let Some(existing) = dir.ancestors().find(|dir| dir.exists()) else {
            continue;
        };
        let (Ok(metadata), Ok(disk)) = (existing.metadata(), Disk::of(existing)) else {
            continue;
        };
        if seen.contains(&metadata.dev()) {
            continue;
        }
        seen.push(metadata.dev());
        let free = disk.free >> 20;
        let needed = disk.min_free(storage.min_free_bytes).div_ceil(1 << 20);
        let text = format!("{free} MiB free for {} ({key})", dir.display());
        if free < needed {
            findings.bad(
                "disk",
                format_args!("{text}; storage.min_free_bytes asks for {needed}: enlarge it"),
            );
        } else if free < 4 * needed {
            findings.doubtful(
                "disk",
                format_args!("{text}; below {needed} nothing is stored (storage.min_free_bytes)"),
            );
        } else {
            findings.good("disk", text);
        }
    }
}

fn memory(settings: &Settings, findings: &mut Findings) {
    let budget = process::process_budget(settings.memory.process_bytes) >> 20;
    let job = settings.memory.job_bytes >> 20;
    if budget < job {
        findings.doubtful(
            "memory",
            format_args!(
                "{budget} MiB for this process, but one job may take {job} (memory.job_bytes): greater jobs \
                 are refused at {budget} MiB"
            ),
        );
    } else {
        findings.good(
            "memory",
            format_args!("{budget} MiB for this process, {job} for one job"),
        );
    }
}

fn traces(settings: &Settings, findings: &mut Findings) {
    let Ok(Some(endpoint)) = settings.telemetry.endpoint() else {
        return;
    };
    match endpoint.probe() {
        Ok(()) => findings.good("traces", "the collector takes them"),
        Err(error) => findings.doubtful(
            "traces",
            format_args!(
                "the collector does not take them: {error:#}; check telemetry.otlp_endpoint, or leave it out"
            ),
        ),
    }
}

async fn database(settings: &Settings, stop: &Stop, findings: &mut Findings) {
    let dir = &settings.server.data_dir;
    if settings.database.url.is_none() && !pais_postgres::has_cluster(dir) {
        no_cluster(settings, &embedded(settings), findings).await;
        return;
    }
    let database = match Database::open_unmigrated(settings).await {
        Ok(database) => database,
        Err(error) => {
            findings.bad("database", format_args!("{error:#}"));
            return;
        }
    };
    let looked = tokio::select! {
        looked = inside(settings, &database.store, findings) => looked,
        // An embedded server that was started for the check is stopped.
        () = stop.shutdown.cancelled() => Err(anyhow::anyhow!("stopped by a signal")),
    };
    if let Err(error) = looked {
        let hint = match settings.database.url {
            Some(_) => "; check database.url (or DATABASE_URL), and that the server runs",
            None => "",
        };
        findings.bad("database", format_args!("{error:#}{hint}"));
    }
    if let Err(error) = database.close().await {
        findings.bad("database", format_args!("{error:#}"));
    }
}

/// Before the first start with an embedded database.
async fn no_cluster(settings: &Settings, options: &EmbeddedOptions, findings: &mut Findings) {
    let dir = &settings.server.data_dir;
    match pais_postgres::client("postgres", Some(dir), options).await {
        Ok(server) => {
            let program = PathBuf::from(server.as_std().get_program());
            findings.good(
                "database",
                format_args!(
                    "none yet; the first start makes it with {}",
                    program.display()
                ),
            );
        }
        Err(error) => findings.bad("database", error),
    }
    match KeyPlace::of(settings).and_then(|place| place.has_keys_for_new()) {
        Ok(true) => findings.good("key", "there is one, which the new database will belong to"),
        Ok(false) => findings.good("key", "none yet; the first start makes it"),
        Err(error) => findings.bad("key", format_args!("{error:#}")),
    }
}

async fn inside(settings: &Settings, store: &Store, findings: &mut Findings) -> anyhow::Result<()> {
    let mut connection = connect_owner(store).await?;
    let version: String = sqlx::query_scalar("SHOW server_version_num")
        .fetch_one(&mut *connection)
        .await?;
    let major = version.parse::<i32>().unwrap_or_default() / 10_000;
    if major < OLDEST_POSTGRES {
        findings.bad(
            "database",
            format_args!("PostgreSQL {major} is too old; {OLDEST_POSTGRES} or newer is needed"),
        );
    } else {
        findings.good("database", format_args!("PostgreSQL {major} answers"));
    }
    let before = OffsetDateTime::now_utc();
    let (there, allowed): (OffsetDateTime, i32) = sqlx::query_as(
        "SELECT clock_timestamp(), current_setting('max_connections')::integer
                - current_setting('superuser_reserved_connections')::integer",
    )
    .fetch_one(&mut *connection)
    .await?;
    // The clock of the database was read between two looks at that of this machine.
    let ahead = (there - OffsetDateTime::now_utc()).as_seconds_f64();
    let behind = (before - there).as_seconds_f64();
    let apart = ahead.max(behind).max(0.0);
    if apart > CLOCK_SECONDS {
        findings.bad(
            "clock",
            format_args!(
                "this machine and the database differ by {apart:.0} s; synchronize both (NTP): tokens, \
                 grants and retention go by them"
            ),
        );
    } else {
        findings.good("clock", "this machine and the database agree");
    }
    let needed = settings.database.connections + OTHER_CONNECTIONS;
    if i64::from(allowed) < i64::from(needed) {
        findings.bad(
            "connections",
            format_args!(
                "the database permits {allowed}, this process needs up to {needed}; raise its \
                 max_connections, or lower database.connections"
            ),
        );
    }
    let state = MigrationState::of(&mut connection).await?;
    let has_tables: bool = sqlx::query_scalar("SELECT to_regclass('service_keys') IS NOT NULL")
        .fetch_one(&mut *connection)
        .await?;
    drop(connection);
    let this = env!("CARGO_PKG_VERSION");
    let others = instances::others(store).await?;
    let other = others.iter().find(|other| other.version != this);
    match (state, other) {
        (MigrationState::Unfit(reason), _) => findings.bad("migrations", reason),
        (MigrationState::Applied, _) => findings.good("migrations", "all are applied"),
        (MigrationState::Missing, None) => findings.good(
            "migrations",
            "some are missing; the next start applies them",
        ),
        (MigrationState::Missing, Some(other)) => findings.bad(
            "migrations",
            format_args!(
                "some are missing, and a service of version {} uses the database; stop it first",
                other.version
            ),
        ),
    }
    if state == MigrationState::Applied {
        open_keys(settings, store, findings).await;
    } else if !has_tables {
        match KeyPlace::of(settings).and_then(|place| place.keys()) {
            Ok(_) => findings.good("key", "there is one, which the new database will belong to"),
            Err(error) => findings.bad("key", format_args!("{error:#}")),
        }
    }
    Ok(())
}

async fn open_keys(settings: &Settings, store: &Store, findings: &mut Findings) {
    let opened: anyhow::Result<Option<service_keys::KeyCheck>> = async {
        if service_keys::is_new(store).await? {
            // A look must not make the key.
            KeyPlace::of(settings)?.has_keys_for_new()?;
            return Ok(None);
        }
        let ring = keys::open(settings, store).await?;
        Ok(Some(service_keys::check(store, &ring).await?))
    }
    .await;
    match opened {
        Ok(None) => findings.good("key", "the database has none yet; the first start sets it"),
        Ok(Some(checked)) if checked.bad.is_empty() => findings.good(
            "key",
            format_args!("the keys of all datasets open: {}", checked.good),
        ),
        Ok(Some(checked)) => findings.bad(
            "key",
            format_args!(
                "the keys of {} datasets are missing or do not open; `pais keys check` names them: \
                 restore {} from the backup",
                checked.bad.len(),
                place_of_keys(settings)
            ),
        ),
        Err(error) => findings.bad("key", format_args!("{error:#}")),
    }
}

/// Where the wrapped keys are, in words.
fn place_of_keys(settings: &Settings) -> String {
    match key_directory(settings) {
        Some(dir) => fs::canonicalize(&dir).unwrap_or(dir).display().to_string(),
        None => "the database".to_owned(),
    }
}
