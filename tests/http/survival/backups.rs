//! A backup of a running service, and its restore into a new data directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::keys::{dataset, errors, job, run};
use crate::process::{ServiceProcess, call};
use pais_test_support::poll::poll_async;

/// A release of the last step of a new job on a dataset.
pub(super) async fn release(service: &ServiceProcess, token: &str, dataset: &str) -> Value {
    let client = reqwest::Client::new();
    let mut body = crate::hospital::job_on(dataset);
    body["release"] = true.into();
    let made = call(
        client.post(format!("{}/v1/jobs", service.base)).json(&body),
        token,
    )
    .await;
    let path = format!("{}/v1/jobs/{}", service.base, made["id"].as_str().unwrap());
    let released = poll_async(Duration::from_secs(60), async || {
        let shown = call(client.get(&path), token).await;
        shown["release_id"].as_str().map(str::to_owned)
    });
    let id = released.await.expect("the job makes a release");
    call(
        client.get(format!("{}/v1/releases/{id}", service.base)),
        token,
    )
    .await
}

async fn backup(data: &Path, out: &Path, more: &[&str]) {
    let arguments = [&["backup", out.to_str().unwrap()], more].concat();
    let made = run(data, &arguments, &[]).await;
    assert!(made.status.success(), "{}", errors(&made));
}

/// The exit status and the messages of `pais restore`.
async fn restore(backup: &Path, into: &Path, more: &[&str]) -> (Option<i32>, String) {
    let arguments = [&["restore", backup.to_str().unwrap()], more].concat();
    let done = run(into, &arguments, &[]).await;
    (done.status.code(), errors(&done))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_running_service_is_restored_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let data = at("data");
    let service = ServiceProcess::start(&data, &[]).await;
    let token = service.token("hospital", "holder");
    let client = reqwest::Client::new();
    let kept = dataset(&service, &token, "kept").await;
    let deleted = dataset(&service, &token, "deleted").await;
    let released = release(&service, &token, &kept).await;
    backup(&data, &at("before"), &[]).await;
    let gone = client.delete(&deleted).bearer_auth(&token);
    assert_eq!(gone.send().await.unwrap().status(), 204);
    backup(&data, &at("after"), &[]).await;
    backup(&data, &at("whole"), &["--with-key"]).await;

    // The key of the deleted dataset is in no later backup.
    let key = format!("dataset-keys/{}.key", deleted.rsplit('/').next().unwrap());
    assert!(at("before").join(&key).exists());
    assert!(!at("after").join(&key).exists());
    let again = run(&data, &["backup", at("after").to_str().unwrap()], &[]).await;
    assert_eq!(
        again.status.code(),
        Some(1),
        "an existing directory is kept"
    );

    // Without its key, or with another one, it is refused before anything is made.
    let new = at("new");
    let (status, said) = restore(&at("after"), &new, &[]).await;
    assert_eq!(status, Some(1));
    assert!(
        said.contains("--key FILE") && said.contains("fingerprint"),
        "{said}"
    );
    let other = at("other.key");
    let made = run(&data, &["keys", "generate", other.to_str().unwrap()], &[]).await;
    assert!(made.status.success());
    let (status, said) = restore(&at("after"), &new, &["--key", other.to_str().unwrap()]).await;
    assert_eq!(status, Some(1));
    assert!(said.contains("not that of the backup"), "{said}");
    assert!(!new.exists());

    // With it everything is there, on another port, while the original goes on.
    let own = data.join("key-encryption.key");
    let (status, said) = restore(&at("after"), &new, &["--key", own.to_str().unwrap()]).await;
    assert_eq!(status, Some(0), "{said}");
    let (status, _) = restore(&at("whole"), &at("second"), &[]).await;
    assert_eq!(status, Some(0));
    service.stop();
    for directory in [&new, &at("second")] {
        let restored = ServiceProcess::start(directory, &[]).await;
        let id = released["id"].as_str().unwrap();
        let path = format!("{}/v1/releases/{id}", restored.base);
        let found = call(client.get(&path), &token).await;
        assert_eq!(found["sha256"], released["sha256"]);
        let table = client.get(format!("{path}/data")).bearer_auth(&token);
        let table = table.send().await.unwrap().bytes().await.unwrap();
        assert_eq!(sha256(&table), released["sha256"].as_str().unwrap());
        let kept = kept.rsplit('/').next().unwrap();
        let here = format!("{}/v1/datasets/{kept}", restored.base);
        assert_eq!(
            job(&restored, &token, &here).await,
            "succeeded",
            "the raw rows open"
        );
        for check in [&["keys", "check"], &["audit", "verify"]] {
            let checked = run(directory, check, &[]).await;
            assert!(checked.status.success(), "{check:?}: {}", errors(&checked));
        }
        restored.stop();
    }
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    hex::encode(Sha256::digest(bytes))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_backup_is_found_and_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (data, out) = (folder.path().join("data"), folder.path().join("out"));
    // Of a service that is stopped.
    let service = ServiceProcess::start(&data, &[]).await;
    let token = service.token("hospital", "holder");
    dataset(&service, &token, "patients").await;
    service.stop();
    backup(&data, &out, &["--with-key"]).await;
    let verify = ["backup", "verify", out.to_str().unwrap()];
    assert_eq!(run(&data, &verify, &[]).await.status.code(), Some(0));
    let dump = out.join("database.dump");
    let mut bytes = fs::read(&dump).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&dump, bytes).unwrap();
    let found = run(&data, &verify, &[]).await;
    assert_eq!(found.status.code(), Some(1));
    assert!(errors(&found).contains("database.dump was changed"));
    let new = folder.path().join("new");
    let (status, said) = restore(&out, &new, &[]).await;
    assert_eq!(status, Some(1));
    assert!(said.contains("damaged") && !new.exists(), "{said}");
    let (status, said) = restore(&out, &data, &[]).await;
    assert_eq!(status, Some(1));
    assert!(said.contains("is not empty"), "{said}");
    // The attack: a restore that failed removed what was in its directories.
    let whole = folder.path().join("whole");
    backup(&data, &whole, &["--with-key"]).await;
    let (keys, nowhere) = (folder.path().join("keys"), folder.path().join("nowhere"));
    fs::create_dir(&keys).unwrap();
    fs::write(keys.join("another.key"), "kept").unwrap();
    let restore_with = async |variable: &str, value: &Path| {
        let settings = [(variable, value.to_str().unwrap())];
        let done = run(&new, &["restore", whole.to_str().unwrap()], &settings).await;
        (done.status.code(), errors(&done))
    };
    let (status, said) = restore_with("PAIS__ENCRYPTION__DATA_KEY_DIR", &keys).await;
    assert_eq!(status, Some(1));
    assert!(said.contains("encryption.data_key_dir"), "{said}");
    assert!(keys.join("another.key").exists() && !new.exists());
    let (status, said) = restore_with("PAIS__POSTGRES__BIN_DIR", &nowhere).await;
    assert_eq!(status, Some(1));
    assert!(
        said.contains("no PostgreSQL server binaries") && !new.exists(),
        "{said}"
    );
    // The directory of the keys may be read by others, which is found last.
    fs::remove_file(keys.join("another.key")).unwrap();
    let (status, said) = restore_with("PAIS__ENCRYPTION__DATA_KEY_DIR", &keys).await;
    assert_eq!(status, Some(1));
    assert!(said.contains("chmod go=") && !new.exists(), "{said}");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o700)).unwrap();
    let (status, said) = restore_with("PAIS__ENCRYPTION__DATA_KEY_DIR", &keys).await;
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(fs::read_dir(&keys).unwrap().count(), 2);
    assert!(!new.join("dataset-keys").exists());
    let again = fs::read_dir(&new)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut again: Vec<_> = again.collect();
    again.sort();
    assert_eq!(again, ["instance", "key-encryption.key", "postgres"]);

    fs::remove_file(out.join("manifest.json")).unwrap();
    assert_eq!(run(&data, &verify, &[]).await.status.code(), Some(2));
    let nothing = run(&folder.path().join("nothing"), &["backup", "x"], &[]).await;
    assert_eq!(nothing.status.code(), Some(1));
    assert!(errors(&nothing).contains("there is no database"));
    assert!(!folder.path().join("nothing").exists());
}
