//! One PostgreSQL server for all tests of the process, with a database for each test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, mpsc};

use pais::clock::SystemClock;
use pais::db::Store;
use pais_postgres::{self, EmbeddedOptions};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

struct Server {
    options: PgConnectOptions,
    directory: PathBuf,
    /// Stops the server when the test process ends, even by a signal: its standard input is a pipe
    /// that is closed then.
    _janitor: Child,
}

static SERVER: LazyLock<Server> = LazyLock::new(start);
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Creates an empty, migrated database; returns how to connect to it.
pub(crate) async fn create() -> PgConnectOptions {
    let server = tokio::task::block_in_place(|| &*SERVER);
    let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let sql = format!("CREATE DATABASE {name} TEMPLATE migrated OWNER pais");
    execute(&server.options, &sql).await;
    server.options.clone().database(&name)
}

/// The data directory of the server, all of whose changes are on disk.
pub(crate) async fn written_directory() -> &'static Path {
    let server = tokio::task::block_in_place(|| &*SERVER);
    execute(&server.options, "CHECKPOINT").await;
    &server.directory
}

/// Runs statements as the superuser, outside the database of the test.
pub(crate) async fn execute(options: &PgConnectOptions, sql: &str) {
    let superuser = options.clone().username("postgres").database("postgres");
    let mut connection = superuser.connect().await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
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
    let (send, receive) = mpsc::channel();
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
            let options = server.connect_options();
            // Each test makes a database, whose pages are all written to the log: compressing them would be
            // a tenth of the work of the suite.
            for role in ["postgres", "pais"] {
                let sql = format!("ALTER ROLE {role} SET wal_compression = off");
                execute(&options, &sql).await;
            }
            execute(&options, "CREATE DATABASE migrated OWNER pais").await;
            let template = options.clone().database("migrated");
            let store = Store::new(template, 1, std::sync::Arc::new(SystemClock));
            store.migrate().await.unwrap();
            store.close().await;
            let janitor = janitor(&dir);
            send.send((options, dir, janitor)).unwrap();
            std::future::pending::<()>().await;
            drop(server);
        });
    });
    let (options, directory, janitor) = receive.recv().unwrap();
    Server {
        options,
        directory,
        _janitor: janitor,
    }
}
