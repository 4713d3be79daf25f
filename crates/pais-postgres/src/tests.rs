//! Tests of the whole embedded server, with the installed PostgreSQL.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::{Pid, Signal, kill_process};
use sqlx::postgres::PgConnection;

use super::*;

async fn connect(server: &EmbeddedServer) -> PgConnection {
    server.connect_options().connect().await.unwrap()
}

async fn ask(connection: &mut PgConnection, sql: &'static str) -> String {
    sqlx::query_scalar(sql).fetch_one(connection).await.unwrap()
}

/// Leaves a server as a killed service does: the lock is released, the process still runs.
fn orphan(mut server: EmbeddedServer) {
    let OwnedServer { process, _lock, .. } = server.own.take().unwrap();
    drop(_lock);
    std::mem::forget(process);
}

#[tokio::test]
async fn starts_keeps_and_stops() {
    // If the test runs as root, the account of the server may not enter this directory.
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let data = dir.path().join("deep/data");
    let options = EmbeddedOptions::default();
    let server = start(&data, &options).await.unwrap();
    let mut connection = connect(&server).await;
    for (sql, answer) in [
        ("select current_user::text", "pais"),
        ("select current_database()::text", "pais"),
        ("show fsync", "on"),
        ("show listen_addresses", ""),
        ("show data_checksums", "on"),
        ("show server_encoding", "UTF8"),
        // PostgreSQL 16 removed `show lc_collate`.
        (
            "select datcollate::text from pg_database where datname = 'pais'",
            "C",
        ),
        ("show is_superuser", "off"),
        (
            "select rolname::text from pg_roles
             where pg_has_role(oid, 'member') and rolname like 'pais_%'",
            "pais_service",
        ),
        ("show log_parameter_max_length_on_error", "0"),
    ] {
        assert_eq!(ask(&mut connection, sql).await, answer, "{sql}");
    }
    sqlx::raw_sql("create table kept (word text); insert into kept values ('still here')")
        .execute(&mut connection)
        .await
        .unwrap();
    // A statement that fails must not leave its values in the log.
    let failing = "select 'canary-value-4711'::int";
    sqlx::raw_sql(failing)
        .execute(&mut connection)
        .await
        .unwrap_err();
    drop(connection);

    let layout = Layout::find(&data).unwrap();
    for private in [layout.cluster(), layout.run()] {
        let mode = fs::metadata(&private).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", private.display());
    }
    let mode = fs::metadata(layout.password())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    let refused = start(&data, &options).await.unwrap_err();
    assert!(matches!(refused, PostgresError::InUse { .. }), "{refused}");

    server.stop().await.unwrap();
    assert!(!layout.cluster().join("postmaster.pid").exists());
    assert!(!socket::socket(&layout.run()).exists());
    let log = fs::read_to_string(layout.log()).unwrap();
    assert!(log.contains("database system is shut down"), "{log}");
    assert!(!log.contains("canary"), "{log}");

    let server = start(&data, &options).await.unwrap();
    let mut connection = connect(&server).await;
    assert_eq!(
        ask(&mut connection, "select word from kept").await,
        "still here"
    );
    drop(connection);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_wrong_password_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), &EmbeddedOptions::default())
        .await
        .unwrap();
    let wrong = server.connect_options().password("wrong").connect().await;
    assert!(wrong.is_err());
    server.stop().await.unwrap();
}

#[tokio::test]
async fn commands_share_the_server_of_a_service() {
    let dir = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions::default();
    assert!(attach(&dir.path().join("nowhere")).await.unwrap().is_none());
    assert!(attach(dir.path()).await.unwrap().is_none());

    let service = start(dir.path(), &options).await.unwrap();
    let command = attach_or_start(dir.path(), &options).await.unwrap();
    assert!(service.is_own() && !command.is_own());
    drop(connect(&command).await);
    command.stop().await.unwrap();
    drop(connect(&service).await);
    service.stop().await.unwrap();
    assert!(attach(dir.path()).await.unwrap().is_none());

    // Without a service, two commands run one after the other.
    let first = attach_or_start(dir.path(), &options).await.unwrap();
    assert!(first.is_own());
    let (second, ()) = tokio::join!(attach_or_start(dir.path(), &options), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(connect(&first).await);
        first.stop().await.unwrap();
    });
    let second = second.unwrap();
    assert!(second.is_own());
    second.stop().await.unwrap();
}

#[tokio::test]
async fn the_server_of_a_killed_service_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions::default();
    let server = start(dir.path(), &options).await.unwrap();
    let mut connection = connect(&server).await;
    let before = ask(&mut connection, "select pg_postmaster_start_time()::text").await;
    orphan(server);
    let server = start(dir.path(), &options).await.unwrap();
    let mut connection = connect(&server).await;
    let after = ask(&mut connection, "select pg_postmaster_start_time()::text").await;
    assert_ne!(before, after);
    drop(connection);
    server.stop().await.unwrap();
}

/// As after a restart of a container: everything was killed, and other processes have the process
/// ids in the files of the server.
#[tokio::test]
async fn reused_process_ids_do_not_prevent_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions::default();
    let server = start(dir.path(), &options).await.unwrap();
    let layout = Layout::find(dir.path()).unwrap();
    let pid_file = layout.cluster().join("postmaster.pid");
    let socket_lock = layout.run().join(".s.PGSQL.5432.lock");
    let left = [&pid_file, &socket_lock].map(|file| fs::read_to_string(file).unwrap());
    server.stop().await.unwrap();

    // Run it as the account of the server, because PostgreSQL ignores processes of other accounts.
    let mut other = tokio::process::Command::new("sleep");
    Account::choose(&layout.cluster())
        .unwrap()
        .apply_to(&mut other);
    let mut other = other.arg("60").kill_on_drop(true).spawn().unwrap();
    for (file, text) in [&pid_file, &socket_lock].into_iter().zip(left) {
        let (_, rest) = text.split_once('\n').unwrap();
        fs::write(file, format!("{}\n{rest}", other.id().unwrap())).unwrap();
    }
    let server = start(dir.path(), &options).await.unwrap();
    assert!(other.try_wait().unwrap().is_none());
    server.stop().await.unwrap();
    other.kill().await.unwrap();
}

#[tokio::test]
async fn an_interrupted_creation_starts_again() {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::create(dir.path()).unwrap();
    let incomplete = layout.make_staging().unwrap().join("cluster");
    fs::create_dir(&incomplete).unwrap();
    fs::write(incomplete.join("PG_VERSION"), "15\n").unwrap();
    let server = start(dir.path(), &EmbeddedOptions::default())
        .await
        .unwrap();
    assert!(layout.stagings().is_empty());
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_failed_start_shows_the_log_and_leaves_nothing_running() {
    let dir = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions::default();
    start(dir.path(), &options)
        .await
        .unwrap()
        .stop()
        .await
        .unwrap();
    let layout = Layout::find(dir.path()).unwrap();
    let conf = layout.cluster().join("postgresql.conf");
    let good = fs::read(&conf).unwrap();
    fs::write(&conf, "no_such_setting = 1\n").unwrap();
    let error = start(dir.path(), &options).await.unwrap_err().to_string();
    assert!(error.contains("no_such_setting"), "{error}");
    fs::write(&conf, good).unwrap();
    start(dir.path(), &options)
        .await
        .unwrap()
        .stop()
        .await
        .unwrap();
}

#[tokio::test]
async fn a_long_data_directory_works() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("d".repeat(130));
    let server = start(&data, &EmbeddedOptions::default()).await.unwrap();
    let socket_dir = server.own.as_ref().unwrap().launch.socket_dir.clone();
    assert!(!socket_dir.starts_with(&data));
    let mode = fs::metadata(&socket_dir).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let shared = attach(&data).await.unwrap().unwrap();
    drop(shared.connect().await.unwrap());
    server.stop().await.unwrap();
    assert!(!socket_dir.exists());
}

/// The process id of the server, once it is another one than `before` and accepts connections.
async fn next_server(layout: &Layout, options: &PgConnectOptions, before: Option<Pid>) -> Pid {
    loop {
        let pid = fs::read_to_string(layout.cluster().join("postmaster.pid"));
        let pid = pid.ok().and_then(|text| text.lines().next()?.parse().ok());
        let pid = pid
            .and_then(Pid::from_raw)
            .filter(|&pid| Some(pid) != before);
        if let Some(pid) = pid
            && let Ok(connection) = options.connect().await
        {
            connection.close().await.unwrap();
            return pid;
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

#[tokio::test]
async fn a_server_that_is_killed_is_started_again_three_times() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = start(dir.path(), &EmbeddedOptions::default())
        .await
        .unwrap();
    let options = server.connect_options();
    sqlx::raw_sql("create table kept (word text); insert into kept values ('still here')")
        .execute(&mut connect(&server).await)
        .await
        .unwrap();
    let layout = Layout::find(dir.path()).unwrap();
    let killing = async {
        let mut killed = None;
        for _ in 0..=RESTARTS {
            let pid = next_server(&layout, &options, killed).await;
            let mut connection = options.connect().await.unwrap();
            let kept = ask(&mut connection, "select word from kept").await;
            assert_eq!(kept, "still here");
            kill_process(pid, Signal::KILL).unwrap();
            killed = Some(pid);
        }
    };
    let (why, ()) = tokio::join!(server.ended(), killing);
    // It was killed at work, or before it accepted connections.
    let why = why.to_string();
    assert!(why.contains("started again 3 times"), "{why}");
    assert!(why.contains("supervisor"), "{why}");
    server.stop().await.unwrap();
}

/// The `initdb` of a start that was killed continues until it finds that its directory is gone.
#[tokio::test]
async fn the_directory_of_a_killed_creation_is_removed_while_it_is_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let staging = Layout::create(dir.path()).unwrap().make_staging().unwrap();
    let written = staging.join("cluster");
    fs::create_dir(&written).unwrap();
    let (begin, begun) = std::sync::mpsc::channel();
    let writing = std::thread::spawn(move || {
        for number in 0..20_000 {
            if fs::write(written.join(number.to_string()), "").is_err() {
                return;
            }
            let _ = begin.send(());
        }
    });
    begun.recv().unwrap();
    cluster::sweep(&staging).await;
    writing.join().unwrap();
    assert!(!staging.exists());
}
