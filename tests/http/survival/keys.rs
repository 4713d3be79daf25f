//! One key for one database, and its rotation while the service runs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use serde_json::Value;

use crate::hospital::{TABLE, definition};
use crate::process::{ServiceProcess, call, pais};
use pais_test_support::key_file;
use pais_test_support::poll::poll_async;

pub(super) async fn run(data: &Path, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let mut command = pais(data);
    command.args(arguments).envs(settings.iter().copied());
    let output = tokio::task::spawn_blocking(move || command.output());
    output.await.unwrap().unwrap()
}

pub(super) fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Declares a dataset with rows; returns its path.
pub(super) async fn dataset(service: &ServiceProcess, token: &str, name: &str) -> String {
    let client = reqwest::Client::new();
    let request = client.post(format!("{}/v1/datasets", service.base));
    let made = call(request.json(&definition(name)), token).await;
    let path = format!(
        "{}/v1/datasets/{}",
        service.base,
        made["id"].as_str().unwrap()
    );
    let rows = client.post(format!("{path}/submissions"));
    call(rows.header("content-type", "text/csv").body(TABLE), token).await;
    path
}

/// The status of a new job on a dataset, when it has ended.
pub(super) async fn job(service: &ServiceProcess, token: &str, dataset: &str) -> Value {
    let client = reqwest::Client::new();
    let body = crate::hospital::job_on(dataset);
    let request = client.post(format!("{}/v1/jobs", service.base));
    let made = call(request.json(&body), token).await;
    let path = format!("{}/v1/jobs/{}", service.base, made["id"].as_str().unwrap());
    let ended = poll_async(Duration::from_secs(60), async || {
        let shown = call(client.get(&path), token).await;
        (!shown["ended_at"].is_null()).then(|| shown["status"].clone())
    });
    ended.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_rotated_while_the_service_runs() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = ServiceProcess::start(&data, &[]).await;
    let token = service.token("hospital", "holder");
    let before = dataset(&service, &token, "before").await;
    let file = data.join("key-encryption.key");
    let old = key_file::read(&file);
    let checked = run(&data, &["keys", "check"], &[]).await;
    assert!(checked.status.success(), "{}", errors(&checked));

    let rotated = run(&data, &["keys", "rotate"], &[]).await;
    assert!(rotated.status.success(), "{}", errors(&rotated));
    assert_ne!(key_file::read(&file), old);
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The running service goes on with new and old datasets; it has not read the new key yet.
    let after = dataset(&service, &token, "after").await;
    assert_eq!(job(&service, &token, &before).await, "succeeded");
    assert_eq!(job(&service, &token, &after).await, "succeeded");
    let checked = run(&data, &["keys", "check"], &[]).await;
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(
        checked.status.success() && text.contains(": 2 keys"),
        "{text}"
    );
    service.stop();

    // The old key opens nothing any more, and the service says so.
    use base64::Engine;
    let old = base64::engine::general_purpose::STANDARD.encode(old);
    let wrong = [("PAIS__ENCRYPTION__KEY_BASE64", old.as_str())];
    let checked = run(&data, &["keys", "check"], &wrong).await;
    assert_eq!(checked.status.code(), Some(1), "{}", errors(&checked));
    let refused = run(&data, &["serve", "--listen", "127.0.0.1:0"], &wrong).await;
    assert!(!refused.status.success());
    assert!(
        errors(&refused).contains("fingerprint"),
        "{}",
        errors(&refused)
    );
    let service = ServiceProcess::start(&data, &[]).await;
    assert_eq!(job(&service, &token, &before).await, "succeeded");
    service.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn services_of_one_external_database_need_the_same_key() {
    use sqlx::ConnectOptions;
    let database = crate::database::create().await;
    let url = database.to_url_lossy().to_string();
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let external = ("DATABASE_URL", url.as_str());

    // No key is invented for a database that others may use, too.
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let refused = run(&first, &serve, &[external]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        errors(&refused).contains("pais keys generate"),
        "{}",
        errors(&refused)
    );
    let key = folder.path().join("key");
    let key = key.to_str().unwrap();
    let made = run(&first, &["keys", "generate", key], &[]).await;
    assert!(made.status.success(), "{}", errors(&made));
    let key_file = ("PAIS__ENCRYPTION__KEY_FILE", key);
    let service = ServiceProcess::start(&first, &[external, key_file]).await;

    let other = folder.path().join("other");
    let other = other.to_str().unwrap();
    let made = run(&second, &["keys", "generate", other], &[]).await;
    assert!(made.status.success(), "{}", errors(&made));
    let other_file = ("PAIS__ENCRYPTION__KEY_FILE", other);
    let refused = run(&second, &serve, &[external, other_file]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        errors(&refused).contains("fingerprint"),
        "{}",
        errors(&refused)
    );
    let same = ServiceProcess::start(&second, &[external, key_file]).await;
    same.stop();
    // One data directory has one service, with an external database, too.
    let refused = run(&first, &serve, &[external, key_file]).await;
    assert!(
        errors(&refused).contains("another pais service"),
        "{}",
        errors(&refused)
    );

    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = run(&second, &serve, &[external, key_file]).await;
    assert!(errors(&refused).contains("0644"), "{}", errors(&refused));
    service.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_key_leaves_the_table_of_an_external_database() {
    use sqlx::ConnectOptions;
    let options = crate::database::create().await;
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let made = run(
        folder.path(),
        &["keys", "generate", key.to_str().unwrap()],
        &[],
    )
    .await;
    assert!(made.status.success());
    let url = options.to_url_lossy().to_string();
    let settings = [
        ("DATABASE_URL", url.as_str()),
        ("PAIS__ENCRYPTION__KEY_FILE", key.to_str().unwrap()),
    ];
    let data = folder.path().join("data");
    let service = ServiceProcess::start(&data, &settings).await;
    let made = run(
        &data,
        &["token", "create", "--organization", "h", "--role", "holder"],
        &settings,
    );
    let token = String::from_utf8(made.await.stdout).unwrap();
    let token = token.trim();
    let path = dataset(&service, token, "patients").await;
    let mut connection = options.connect().await.unwrap();
    let mut keys = async || -> i64 {
        let count = sqlx::query_scalar("SELECT count(*) FROM dataset_keys");
        count.fetch_one(&mut connection).await.unwrap()
    };
    // One of the dataset, one of its submission.
    assert_eq!(keys().await, 2);
    let deleted = reqwest::Client::new().delete(path).bearer_auth(token);
    assert_eq!(deleted.send().await.unwrap().status(), 204);
    assert_eq!(keys().await, 0);
    let mut dump = options.connect().await.unwrap();
    let bytes: i64 = sqlx::query_scalar("SELECT pg_relation_size('dataset_keys')")
        .fetch_one(&mut dump)
        .await
        .unwrap();
    assert_eq!(bytes, 0, "the table was not rewritten");

    // The attack: a deletion waited as long as a dump had the table, and all readers of keys behind it.
    let path = dataset(&service, token, "more patients").await;
    sqlx::raw_sql("BEGIN; LOCK TABLE dataset_keys IN ACCESS SHARE MODE")
        .execute(&mut dump)
        .await
        .unwrap();
    let deleted = reqwest::Client::new().delete(path).bearer_auth(token);
    let deleted = tokio::time::timeout(Duration::from_secs(60), deleted.send()).await;
    assert_eq!(deleted.unwrap().unwrap().status(), 204);
    assert_eq!(keys().await, 0);
    sqlx::raw_sql("COMMIT").execute(&mut dump).await.unwrap();
    rewritten(&mut dump).await;

    // The attack: rewritten while a snapshot could still see it, the key stayed in the table for good.
    let path = dataset(&service, token, "even more patients").await;
    sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM datasets")
        .execute(&mut dump)
        .await
        .unwrap();
    let deleted = reqwest::Client::new().delete(path).bearer_auth(token);
    assert_eq!(deleted.send().await.unwrap().status(), 204);
    sqlx::raw_sql("COMMIT").execute(&mut dump).await.unwrap();
    rewritten(&mut dump).await;

    // A backup of an external database, restored into an embedded one.
    dataset(&service, token, "patients").await;
    let (out, new) = (folder.path().join("out"), folder.path().join("new"));
    let made = run(&data, &["backup", out.to_str().unwrap()], &settings).await;
    assert!(made.status.success(), "{}", errors(&made));
    service.stop();
    let restore = [
        "restore",
        out.to_str().unwrap(),
        "--key",
        key.to_str().unwrap(),
    ];
    let restored = run(&new, &restore, &[]).await;
    assert!(restored.status.success(), "{}", errors(&restored));
    let checked = run(&new, &["keys", "check"], &[]).await;
    assert!(checked.status.success(), "{}", errors(&checked));
}

/// Two services with one file of settings.
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_another_database_are_not_destroyed() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    let service = ServiceProcess::start(&one, &[]).await;
    let token = service.token("hospital", "holder");
    let path = dataset(&service, &token, "patients").await;
    let keys = one.join("dataset-keys");
    let past = std::time::SystemTime::now() - Duration::from_secs(90 * 24 * 60 * 60);
    let age = |file: &Path| {
        let file = std::fs::File::options().write(true).open(file).unwrap();
        file.set_modified(past).unwrap();
    };
    let names = || {
        let files = std::fs::read_dir(&keys).unwrap();
        files
            .map(|file| file.unwrap().path())
            .collect::<std::collections::BTreeSet<_>>()
    };
    names().iter().for_each(|file| age(file));
    let before = names();
    let settings = [("PAIS__ENCRYPTION__DATA_KEY_DIR", keys.to_str().unwrap())];
    let second = ServiceProcess::start(&other, &settings).await;
    let foreign = second.token("hospital", "holder");
    dataset(&second, &foreign, "others").await;
    second.stop();
    names().difference(&before).for_each(|file| age(file));
    let with_both = names();
    assert_eq!(with_both.len(), before.len() + 2);
    let listen = ServiceProcess::free_address();
    let refused = run(&other, &["serve", "--listen", &listen], &settings).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        errors(&refused).contains("belongs to another database"),
        "{}",
        errors(&refused)
    );
    assert_eq!(names(), with_both);
    service.stop();
    let service = ServiceProcess::start(&one, &[]).await;
    let kept = path.rsplit('/').next().unwrap();
    let path = format!("{}/v1/datasets/{kept}", service.base);
    assert_eq!(job(&service, &token, &path).await, "succeeded");

    // The key of a submission is as needed as that of its dataset.
    let of_submission = before.iter().find(|file| {
        let name = file.file_name().unwrap().to_string_lossy();
        name.ends_with(".key") && !name.starts_with(kept)
    });
    std::fs::remove_file(of_submission.unwrap()).unwrap();
    // Waiting does not help.
    let answer = reqwest::Client::new().get(format!("{path}/profile"));
    let answer = answer.bearer_auth(&token).send().await.unwrap();
    assert_eq!(answer.status(), 500);
    service.stop();
    let checked = run(&one, &["keys", "check"], &[]).await;
    assert_eq!(checked.status.code(), Some(1));
    let named = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(named.contains(kept), "{named}");
}

/// The key that one rotation makes would be lost if another one wrote its own over it.
#[tokio::test(flavor = "multi_thread")]
async fn one_rotation_runs_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    ServiceProcess::start(&data, &[]).await.stop();
    let rotate = async || run(&data, &["keys", "rotate"], &[]).await;
    let rotations = futures_util::future::join_all((0..4).map(|_| rotate())).await;
    let done = rotations.iter().filter(|it| it.status.success()).count();
    assert!(done >= 1);
    for refused in rotations.iter().filter(|it| !it.status.success()) {
        assert!(errors(refused).contains("another"), "{}", errors(refused));
    }
    let checked = run(&data, &["keys", "check"], &[]).await;
    assert!(checked.status.success(), "{}", errors(&checked));

    // A rotation that was killed left the old key, which the next one removes.
    let left = data.join(".new-key-encryption.key.killed");
    std::fs::write(&left, "a key").unwrap();
    assert!(rotate().await.status.success());
    assert!(!left.exists());
}

/// Waits until the table of keys, which has no rows, is empty.
async fn rewritten(connection: &mut sqlx::PgConnection) {
    let rewritten = poll_async(Duration::from_secs(60), async || {
        let bytes: i64 = sqlx::query_scalar("SELECT pg_relation_size('dataset_keys')")
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        (bytes == 0).then_some(())
    });
    rewritten.await.expect("the table is not rewritten");
}

/// As when a dump is about to be restored: the keys of its datasets are there, and their rows are not yet.
#[tokio::test(flavor = "multi_thread")]
async fn the_keys_beside_a_new_database_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    let service = ServiceProcess::start(&old, &[]).await;
    let token = service.token("hospital", "holder");
    dataset(&service, &token, "patients").await;
    service.stop();
    let keys = |data: &Path| {
        let files = std::fs::read_dir(data.join("dataset-keys")).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = keys(&old);
    assert!(!before.is_empty());
    std::fs::create_dir(&new).unwrap();
    for name in ["key-encryption.key", "dataset-keys"] {
        std::fs::rename(old.join(name), new.join(name)).unwrap();
    }
    ServiceProcess::start(&new, &[]).await.stop();
    assert_eq!(keys(&new), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistyped_data_directory_is_no_new_database() {
    let folder = tempfile::tempdir().unwrap();
    let typo = folder.path().join("typo");
    for arguments in [["audit", "verify"], ["keys", "check"], ["keys", "rotate"]] {
        let checked = run(&typo, &arguments, &[]).await;
        let said = errors(&checked);
        let cannot_be_read = if arguments[1] == "rotate" { 1 } else { 2 };
        assert_eq!(checked.status.code(), Some(cannot_be_read), "{said}");
        assert!(said.contains("there is no database in"), "{said}");
        assert!(!typo.exists(), "{arguments:?}");
    }
}
