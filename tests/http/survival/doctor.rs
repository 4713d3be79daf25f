//! `pais doctor` before the first start, beside a running service, and where something is wrong.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use sqlx::{AssertSqlSafe, ConnectOptions};

use super::keys::{dataset, run};
use crate::process::ServiceProcess;
use crate::small_disk::SmallDisk;

/// The exit status and the findings.
async fn doctor(data: &Path, settings: &[(&str, &str)]) -> (Option<i32>, String) {
    let output = run(data, &["doctor"], settings).await;
    let findings = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), findings)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_what_keeps_the_service_from_running() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let free = ServiceProcess::free_address();
    let listen = [("PAIS__SERVER__LISTEN", free.as_str())];
    let (status, found) = doctor(&data, &listen).await;
    assert_eq!(status, Some(0), "{found}");
    assert!(found.contains("the first start makes it"), "{found}");
    assert!(!data.exists(), "a look changes nothing");

    let service = ServiceProcess::start(&data, &[]).await;
    let token = service.token("hospital", "holder");
    dataset(&service, &token, "patients").await;
    let address = service.base.trim_start_matches("http://").to_owned();
    let own = [("PAIS__SERVER__LISTEN", address.as_str())];
    let (status, found) = doctor(&data, &own).await;
    assert_eq!(status, Some(0), "{found}");
    assert!(found.contains("in use while the service runs"), "{found}");
    assert!(
        found.contains("the keys of all datasets open: 1"),
        "{found}"
    );
    service.stop();

    // Without a service: a foreign listener, settings that are wrong, a key that is gone.
    let (status, found) = doctor(&data, &listen).await;
    assert_eq!(status, Some(0), "{found}");
    let listener = TcpListener::bind(&address).unwrap();
    let (status, found) = doctor(&data, &own).await;
    assert_eq!(status, Some(1), "{found}");
    assert!(found.contains("choose another server.listen"), "{found}");
    drop(listener);
    let wrong = [("PAIS__WORKERS__JOBS", "0")];
    let (status, found) = doctor(&data, &wrong).await;
    assert_eq!(status, Some(1), "{found}");
    assert!(found.contains("workers.jobs"), "{found}");
    let keys = folder.path().join("keys");
    let nowhere = [
        ("DATABASE_URL", "postgres://pais:pais@127.0.0.1:1/pais"),
        ("PAIS__ENCRYPTION__DATA_KEY_DIR", keys.to_str().unwrap()),
    ];
    let (status, found) = doctor(&folder.path().join("other"), &nowhere).await;
    assert_eq!(status, Some(1), "{found}");
    assert!(found.contains("database.url"), "{found}");
    assert!(found.contains("127.0.0.1:1 cannot be reached"), "{found}");
    assert!(!keys.exists(), "a look changes nothing");
    let refused = run(&folder.path().join("other"), &["migrate"], &nowhere).await;
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(
        errors.contains("127.0.0.1:1 cannot be reached: ") && errors.contains("refused"),
        "{errors}"
    );
    fs::remove_file(data.join("key-encryption.key")).unwrap();
    let (status, found) = doctor(&data, &listen).await;
    assert_eq!(status, Some(1), "{found}");
    assert!(found.contains("restore it"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_version_is_not_used() {
    // A new database has all migrations.
    let options = crate::database::create().await;
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let key = key.to_str().unwrap();
    let made = run(folder.path(), &["keys", "generate", key], &[]).await;
    assert!(made.status.success());
    let url = options.to_url_lossy().to_string();
    let settings = [
        ("DATABASE_URL", url.as_str()),
        ("PAIS__ENCRYPTION__KEY_FILE", key),
    ];
    let data = folder.path().join("data");
    let migrated = run(&data, &["migrate"], &settings).await;
    assert!(migrated.status.success());
    // The service does not make the key of an external database.
    for command in [&["doctor"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let refused = run(&data, command, &settings[..1]).await;
        let said = [refused.stdout, refused.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains("pais keys generate"), "{said}");
    }
    let (status, found) = doctor(&data, &settings).await;
    assert_eq!(status, Some(0), "{found}");
    let mut connection = options.connect().await.unwrap();
    for (change, words) in [
        (
            "UPDATE _sqlx_migrations SET success = false WHERE version = 11",
            "failed halfway",
        ),
        (
            "UPDATE _sqlx_migrations SET success = true, checksum = '' WHERE version = 11",
            "not that of this program",
        ),
        (
            "UPDATE _sqlx_migrations SET version = 999 WHERE version = 11",
            "newer version",
        ),
    ] {
        sqlx::raw_sql(AssertSqlSafe(change))
            .execute(&mut connection)
            .await
            .unwrap();
        let (status, found) = doctor(&data, &settings).await;
        assert_eq!(status, Some(1), "{change}: {found}");
        assert!(found.contains(words), "{change}: {found}");
        for command in [&["migrate"][..], &["serve", "--listen", "127.0.0.1:0"]] {
            let refused = run(&data, command, &settings).await;
            let errors = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(refused.status.code(), Some(1), "{change}: {errors}");
            assert!(errors.contains(words), "{change}: {errors}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_how_much_of_the_disk_is_free() {
    for (free, verdict, words) in [
        (80, "good ", "MiB free for"),
        (
            20,
            "check",
            "below 10 nothing is stored (storage.min_free_bytes)",
        ),
        (5, "BAD  ", "storage.min_free_bytes asks for 10: enlarge it"),
    ] {
        let Some(disk) = SmallDisk::mount(100) else {
            println!("not run: this process may not mount a file system");
            return;
        };
        disk.leave(free);
        let address = ServiceProcess::free_address();
        let settings = [("PAIS__SERVER__LISTEN", &*address)];
        let (status, text) = doctor(&disk.path().join("data"), &settings).await;
        let line = text.lines().find(|line| line.contains("  disk  "));
        let line = line.expect("a line for the disk");
        assert!(line.starts_with(verdict) && line.contains(words), "{text}");
        assert_eq!(status == Some(0), verdict != "BAD  ", "{text}");
    }
}
