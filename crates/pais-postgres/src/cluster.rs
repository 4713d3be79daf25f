//! The database cluster: its password, its making by `initdb`, and the role and database that
//! the service uses in it.
//!
//! A new cluster is made in a directory beside it and moved to its place when it is complete, so
//! that a start that was interrupted leaves nothing half made behind.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Stdio;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tokio::process::Command;

use super::account::{Account, Reach};
use super::error::PostgresError;
use super::layout::{Layout, sync_dir, write_private};
use super::locate::Binaries;

/// The superuser, which only this module uses.
const SUPERUSER: &str = "postgres";
/// The role and the database of the service.
const SERVICE: &str = "pais";
/// The number in the socket's name; there is no TCP port.
pub(super) const PORT: u16 = 5432;
/// Bytes of a password; written as twice as many hexadecimal digits.
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
    pub(super) fn read(layout: &Layout) -> Result<Self, PostgresError> {
        let path = layout.password();
        let damaged = || PostgresError::Password { path: path.clone() };
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

    /// Reads the password, or draws one where there is no cluster yet.
    fn read_or_draw(layout: &Layout) -> Result<Self, PostgresError> {
        if layout.cluster().exists() {
            return Self::read(layout);
        }
        let bytes: [u8; PASSWORD_BYTES] = rand::random();
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        write_private(&layout.password(), &format!("{text}\n"))?;
        Ok(Self(text))
    }

    /// How the service connects.
    pub(super) fn service_options(&self, socket_dir: &Path) -> PgConnectOptions {
        self.options(socket_dir).username(SERVICE).database(SERVICE)
    }

    /// How this module connects to set the cluster up.
    pub(super) fn superuser_options(&self, socket_dir: &Path) -> PgConnectOptions {
        self.options(socket_dir)
            .username(SUPERUSER)
            .database(SUPERUSER)
    }

    fn options(&self, socket_dir: &Path) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .socket(socket_dir)
            .port(PORT)
            .password(&self.0)
            // It is a local socket, whatever PGSSLMODE says.
            .ssl_mode(PgSslMode::Disable)
            .application_name(SERVICE)
    }
}

/// Makes the cluster where there is none; answers its password.
pub(super) async fn prepare(
    layout: &Layout,
    account: &Account,
    reach: &Reach,
    binaries: &Binaries,
) -> Result<Password, PostgresError> {
    for stale in layout.stagings() {
        // A killed pais's initdb may still be at work in it; then a later start removes it.
        if let Err(error) = fs::remove_dir_all(&stale) {
            tracing::debug!(%error, dir = %stale.display(), "staging directory left behind");
        }
    }
    let password = Password::read_or_draw(layout)?;
    if layout.cluster().exists() {
        return Ok(password);
    }
    tracing::info!(cluster = %layout.cluster().display(), "making a new database");
    let staging = layout.make_staging()?;
    let password_file = staging.join("password");
    write_private(&password_file, &format!("{}\n", password.0))?;
    account.give(&password_file)?;
    // Last, so that nobody else could plant a link under the name just written.
    account.give(&staging)?;
    let new = staging.join("cluster");
    initdb(layout, account, reach, binaries, &new, &password_file).await?;
    let into_place = || -> io::Result<()> {
        fs::rename(&new, layout.cluster())?;
        sync_dir(layout.base())?;
        fs::remove_dir_all(&staging)
    };
    into_place().map_err(PostgresError::io("move into place", &new))?;
    Ok(password)
}

async fn initdb(
    layout: &Layout,
    account: &Account,
    reach: &Reach,
    binaries: &Binaries,
    new: &Path,
    password_file: &Path,
) -> Result<(), PostgresError> {
    let mut command = bare(&binaries.initdb());
    command
        .arg("--pgdata")
        .arg(reach.path(new))
        .arg("--pwfile")
        .arg(reach.path(password_file))
        .args(["--username", SUPERUSER])
        .args(["--auth-local", "scram-sha-256", "--auth-host", "reject"])
        .args(["--encoding", "UTF8", "--no-locale", "--data-checksums"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // An initdb whose caller gave up would write into a directory about to be removed.
        .kill_on_drop(true);
    account.run(&mut command);
    let output = command
        .output()
        .await
        .map_err(PostgresError::io("run", binaries.initdb()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(PostgresError::Initdb {
        cluster: layout.cluster(),
        status: output.status.to_string(),
        output: last_lines(&said, 10),
    })
}

/// A command with none of this process's environment (no `PG…` variable may change what it does),
/// its own process group (an interrupt typed at the terminal is not for it), and no input.
pub(super) fn bare(program: &Path) -> Command {
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

/// The last `count` lines of a text, as they are.
pub(super) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Makes the service's role and database where they are missing. The role is no superuser: it
/// cannot read files or run programs through the database.
pub(super) async fn furnish(password: &Password, socket_dir: &Path) -> Result<(), PostgresError> {
    let failed = |action| {
        move |source| PostgresError::Setup {
            action,
            source: Box::new(source),
        }
    };
    let mut connection: PgConnection = password
        .superuser_options(socket_dir)
        .connect()
        .await
        .map_err(failed("connect to prepare the role"))?;
    let role: Option<i32> = sqlx::query_scalar("select 1 from pg_roles where rolname = $1")
        .bind(SERVICE)
        .fetch_optional(&mut connection)
        .await
        .map_err(failed("look for the role"))?;
    if role.is_none() {
        // Neither part can hold a quote: one is a constant, the other checked to be hexadecimal.
        let sql = format!("create role {SERVICE} login password '{}'", password.0);
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut connection)
            .await
            .map_err(failed("create the role"))?;
    }
    let database: Option<i32> = sqlx::query_scalar("select 1 from pg_database where datname = $1")
        .bind(SERVICE)
        .fetch_optional(&mut connection)
        .await
        .map_err(failed("look for the database"))?;
    if database.is_none() {
        sqlx::raw_sql("create database pais owner pais")
            .execute(&mut connection)
            .await
            .map_err(failed("create the database"))?;
    }
    connection
        .close()
        .await
        .map_err(failed("end the preparation"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_drawn_once_and_never_shown() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(dir.path()).unwrap();
        assert!(Password::read(&layout).is_err());
        let drawn = Password::read_or_draw(&layout).unwrap();
        assert_eq!(Password::read(&layout).unwrap().0, drawn.0);
        assert!(!format!("{drawn:?}").contains(&drawn.0));
        fs::create_dir(layout.cluster()).unwrap();
        assert_eq!(Password::read_or_draw(&layout).unwrap().0, drawn.0);
        fs::write(layout.password(), "it's not hexadecimal").unwrap();
        let text = Password::read_or_draw(&layout).unwrap_err().to_string();
        assert!(text.contains("restore it from the backup"), "{text}");
    }

    #[test]
    fn keeps_the_end_of_a_log() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("a", 5), "a");
        assert_eq!(last_lines("", 5), "");
    }
}
