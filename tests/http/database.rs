//! One PostgreSQL server for all tests of the process, with a database for each test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use pais::clock::SystemClock;
use pais::db::Store;
use pais_postgres::{self, EmbeddedOptions};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, PgPool};
use tokio::sync::{mpsc, oneshot};

struct Server {
    options: PgConnectOptions,
    directory: PathBuf,
    /// Executes statements as the superuser.
    statements: mpsc::UnboundedSender<Statement>,
    /// Stops the server when the test process ends, even by a signal: its standard input is a pipe
    /// that is closed then.
    _janitor: Child,
}

/// A statement, and who waits for its end.
type Statement = (String, oneshot::Sender<()>);

/// The password of the roles, and its verifier with one round of hashing in place of 4,096, which
/// a test build computes without optimization for each connection.
const PASSWORD: &str = "test";
const VERIFIER: &str = "SCRAM-SHA-256$1:c2FsdCBvZiB0aGUgdGVzdA==$IVKe96NgK8FGdw0NjojrpmkLA11tIT7Lw5PZlAfGhow=:BWppTiELy2kWRfBzGCgsK1LumkwaFDCgplPNWrQYTiI=";

static SERVER: LazyLock<Server> = LazyLock::new(start);
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Creates an empty, migrated database; returns how to connect to it.
pub(crate) async fn create() -> PgConnectOptions {
    let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let sql = format!("CREATE DATABASE {name} TEMPLATE migrated OWNER pais");
    execute(&sql).await;
    server().options.clone().database(&name)
}

/// The data directory of the server, all of whose changes are on disk.
pub(crate) async fn written_directory() -> &'static Path {
    execute("CHECKPOINT").await;
    &server().directory
}

fn server() -> &'static Server {
    tokio::task::block_in_place(|| &*SERVER)
}

/// Runs statements as the superuser, outside the database of the test.
pub(crate) async fn execute(sql: &str) {
    let (done, ended) = oneshot::channel();
    let statements = &server().statements;
    statements.send((sql.to_owned(), done)).unwrap();
    ended.await.expect("the statement is executed");
}

/// Stops the server in a directory, and removes the directory, when its standard input is closed: at the
/// latest when this process ends.
pub(crate) fn janitor(directory: &Path) -> Child {
    Command::new("sh")
        .arg("-c")
        .arg(
            "cat >/dev/null; pid=$(head -n 1 \"$0/postgres/cluster/postmaster.pid\"); \
             kill -INT $pid; while kill -0 $pid 2>/dev/null; do sleep 0.1; done; rm -rf \"$0\"",
        )
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Starts the server on a thread with its own runtime, since each test's runtime ends with the
/// test.
fn start() -> Server {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap().keep();
            let options = EmbeddedOptions {
                max_connections: 100,
                ..EmbeddedOptions::default()
            };
            let server = pais_postgres::start(&dir, &options).await.unwrap();
            let options = server.connect_options().password(PASSWORD);
            let superuser = server.connect_options().username("postgres");
            let mut superuser = superuser.database("postgres").connect().await.unwrap();
            let mut execute = async |sql: String| {
                let statement = sqlx::raw_sql(AssertSqlSafe(sql));
                statement.execute(&mut superuser).await.unwrap();
            };
            // Each test makes a database, whose pages are all written to the log: compressing them would be
            // a tenth of the work of the suite. Nor need commits wait for the disk: this server is never
            // killed while tests use it. The first plan of a statement is kept: a test runs it a few times, each of
            // which would be planned anew.
            for role in ["postgres", "pais"] {
                for setting in [
                    "wal_compression = off",
                    "synchronous_commit = off",
                    "plan_cache_mode = force_generic_plan",
                ] {
                    execute(format!("ALTER ROLE {role} SET {setting}")).await;
                }
                execute(format!("ALTER ROLE {role} PASSWORD '{VERIFIER}'")).await;
            }
            // This session began before.
            execute("SET wal_compression = off".to_owned()).await;
            execute("CREATE DATABASE migrated OWNER pais".to_owned()).await;
            let template = options.clone().database("migrated");
            let store = Store::new(template, 1, std::sync::Arc::new(SystemClock));
            store.migrate().await.unwrap();
            store.close().await;
            let (statements, mut received) = mpsc::unbounded_channel::<Statement>();
            send.send(Server {
                options,
                _janitor: janitor(&dir),
                directory: dir,
                statements,
            })
            .unwrap();
            while let Some((sql, done)) = received.recv().await {
                execute(sql).await;
                // Its test may have ended.
                let _ = done.send(());
            }
            drop(server);
        });
    });
    receive.recv().unwrap()
}

/// How many statements of the tested database wait for a lock. Not in a transaction, which sees the sessions of its
/// first look until its end.
pub(crate) async fn lock_waits(pool: &PgPool) -> i64 {
    sqlx::query_scalar(
        "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'",
    )
    .fetch_one(pool)
    .await
    .unwrap()
}
