//! The database cluster: its password, its creation by `initdb`, and the role and database that the
//! service uses in it.
//!
//! A new cluster is created in a staging directory and renamed when it is complete, so that an
//! interrupted start does not leave an incomplete cluster.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tokio::process::Command;

use super::account::{Account, PathAccess};
use super::error::PostgresError;
use super::layout::{Layout, sync_dir, write_private};
use super::locate::Binaries;

/// The role without rights of its own that the service changes to.
const RESTRICTED: &str = "pais_service";

/// The superuser, which only this module uses.
const SUPERUSER: &str = "postgres";
/// The role and the database of the service.
const SERVICE: &str = "pais";
/// The number in the name of the socket. The server has no TCP port.
pub(super) const PORT: u16 = 5432;
/// Length of a password in bytes. It is written as hexadecimal digits, two for each byte.
const PASSWORD_BYTES: usize = 32;

/// The password of both roles, hexadecimal.
#[derive(Clone)]
pub(super) struct Password(String);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password([REDACTED])")
    }
}

impl Password {
    /// Reads the password of an existing cluster.
    ///
    /// # Errors
    /// [`PostgresError::Unusable`] if the password file is missing or damaged.
    pub(super) fn read(layout: &Layout) -> Result<Self, PostgresError> {
        let path = layout.password();
        let damaged = || {
            PostgresError::Unusable(format!(
                "the database password {} is missing or damaged; restore it from the backup of the \
                 data directory",
                path.display()
            ))
        };
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(damaged()),
            Err(error) => return Err(PostgresError::io("read", &path)(error)),
        };
        let text = text.trim_end();
        let hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if text.len() != 2 * PASSWORD_BYTES || !hexadecimal {
            return Err(damaged());
        }
        Ok(Self(text.to_owned()))
    }

    /// Reads the password, or generates one if there is no cluster yet.
    fn read_or_generate(layout: &Layout) -> Result<Self, PostgresError> {
        if layout.cluster().exists() {
            return Self::read(layout);
        }
        let bytes: [u8; PASSWORD_BYTES] = rand::random();
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        write_private(&layout.password(), &format!("{text}\n"))?;
        Ok(Self(text))
    }

    /// The connection options of the service.
    pub(super) fn service_options(&self, socket_dir: &Path) -> PgConnectOptions {
        self.options(socket_dir).username(SERVICE).database(SERVICE)
    }

    /// The connection options of this module, which sets up the cluster. Statements are not logged: one of them
    /// contains the password.
    pub(super) fn superuser_options(&self, socket_dir: &Path) -> PgConnectOptions {
        self.options(socket_dir)
            .username(SUPERUSER)
            .database(SUPERUSER)
            .disable_statement_logging()
    }

    fn options(&self, socket_dir: &Path) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .socket(socket_dir)
            .port(PORT)
            .password(&self.0)
            // A local socket does not need TLS. Overrides PGSSLMODE.
            .ssl_mode(PgSslMode::Disable)
            .application_name(SERVICE)
    }
}

/// Creates the cluster if there is none. Returns its password.
pub(super) async fn prepare(
    layout: &Layout,
    account: &Account,
    access: &PathAccess,
    binaries: &Binaries,
) -> Result<Password, PostgresError> {
    for stale in layout.stagings() {
        sweep(&stale).await;
    }
    let password = Password::read_or_generate(layout)?;
    if layout.cluster().exists() {
        return Ok(password);
    }
    tracing::info!(cluster = %layout.cluster().display(), "creating a new database");
    let staging = layout.make_staging()?;
    let password_file = staging.join("password");
    write_private(&password_file, &format!("{}\n", password.0))?;
    account.make_owner_of(&password_file)?;
    // Change the owner of the directory last, so that nobody else can replace the file just
    // written by a link.
    account.make_owner_of(&staging)?;
    let new = staging.join("cluster");
    initdb(layout, account, access, binaries, &new, &password_file).await?;
    let into_place = || -> io::Result<()> {
        fs::rename(&new, layout.cluster())?;
        sync_dir(layout.base())?;
        fs::remove_dir_all(&staging)
    };
    into_place().map_err(PostgresError::io("move into place", &new))?;
    Ok(password)
}

/// How long the `initdb` of a killed pais may still write to its directory.
const INITDB_BUDGET: Duration = Duration::from_secs(10);

/// Time between two attempts to remove that directory.
const SWEEP_PAUSE: Duration = Duration::from_millis(50);

/// Removes the staging directory of a start that was killed. Its `initdb` may still write to it, which
/// fails once a part of it is gone.
pub(super) async fn sweep(staging: &Path) {
    let begun = Instant::now();
    while let Err(error) = fs::remove_dir_all(staging) {
        if error.kind() == io::ErrorKind::NotFound {
            return;
        }
        if begun.elapsed() >= INITDB_BUDGET {
            tracing::warn!(%error, dir = %staging.display(), "cannot remove the directory");
            return;
        }
        tokio::time::sleep(SWEEP_PAUSE).await;
    }
}

async fn initdb(
    layout: &Layout,
    account: &Account,
    access: &PathAccess,
    binaries: &Binaries,
    new: &Path,
    password_file: &Path,
) -> Result<(), PostgresError> {
    let mut command = isolated_command(&binaries.initdb());
    command
        .arg("--pgdata")
        .arg(access.path(new))
        .arg("--pwfile")
        .arg(access.path(password_file))
        .args(["--username", SUPERUSER])
        .args(["--auth-local", "scram-sha-256", "--auth-host", "reject"])
        .args(["--encoding", "UTF8", "--no-locale", "--data-checksums"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Without its caller, initdb would go on writing to a directory that is about to be
        // removed.
        .kill_on_drop(true);
    account.apply_to(&mut command);
    let output = command
        .output()
        .await
        .map_err(PostgresError::io("run", binaries.initdb()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(PostgresError::Unusable(format!(
        "initdb could not create the database in {} ({}): {}",
        layout.cluster().display(),
        output.status,
        last_lines(&said, 10)
    )))
}

/// A command without the environment of this process (a `PG…` variable must not change what it
/// does), in its own process group (it must not receive an interrupt from the terminal), and
/// without input.
pub(super) fn isolated_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C")
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null());
    if let Some(libraries) = std::env::var_os("LD_LIBRARY_PATH") {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    command
}

/// The last `count` lines of a text.
pub(super) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Creates the roles and the database of the service if they are missing.
pub(super) async fn create_role_and_database(
    password: &Password,
    socket_dir: &Path,
) -> Result<(), PostgresError> {
    let created = create_missing(password, socket_dir).await;
    created.map_err(|error| PostgresError::Setup(Box::new(error)))
}

/// The service's role is not a superuser, so it cannot read files or run programs through the database.
/// For its work it changes to a restricted role, which owns nothing. It may write checkpoints, which it
/// does while it deletes rows on a full disk; only PostgreSQL 15 and newer have the right.
async fn create_missing(password: &Password, socket_dir: &Path) -> Result<(), sqlx::Error> {
    let options = password.superuser_options(socket_dir);
    let mut connection: PgConnection = options.connect().await?;
    // No part can contain a quote: the names are constants, and the password is known to be hexadecimal.
    let roles = format!(
        "do $$ begin
             if not exists (select from pg_roles where rolname = '{SERVICE}') then
                 create role {SERVICE} login password '{}';
             end if;
             if not exists (select from pg_roles where rolname = '{RESTRICTED}') then
                 create role {RESTRICTED} nologin;
                 grant {RESTRICTED} to {SERVICE};
             end if;
             if exists (select from pg_roles where rolname = 'pg_checkpoint'
                        and not pg_has_role('{SERVICE}', oid, 'usage')) then
                 grant pg_checkpoint to {SERVICE};
             end if;
         end $$",
        password.0
    );
    let roles = sqlx::raw_sql(AssertSqlSafe(roles));
    roles.execute(&mut connection).await?;
    let has_database: bool =
        sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
            .bind(SERVICE)
            .fetch_one(&mut connection)
            .await?;
    if !has_database {
        let create = format!("create database {SERVICE} owner {SERVICE}");
        let create = sqlx::raw_sql(AssertSqlSafe(create));
        create.execute(&mut connection).await?;
    }
    connection.close().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_generated_once_and_never_shown() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(dir.path()).unwrap();
        assert!(Password::read(&layout).is_err());
        let generated = Password::read_or_generate(&layout).unwrap();
        assert_eq!(Password::read(&layout).unwrap().0, generated.0);
        assert!(!format!("{generated:?}").contains(&generated.0));
        fs::create_dir(layout.cluster()).unwrap();
        assert_eq!(Password::read_or_generate(&layout).unwrap().0, generated.0);
        fs::write(layout.password(), "it's not hexadecimal").unwrap();
        let text = Password::read_or_generate(&layout).unwrap_err().to_string();
        assert!(text.contains("restore it from the backup"), "{text}");
    }

    #[test]
    fn keeps_the_end_of_a_log() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("a", 5), "a");
        assert_eq!(last_lines("", 5), "");
    }
}
