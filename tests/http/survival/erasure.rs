//! After a dataset is deleted, no file in the data directory opens its rows.

use std::path::Path;

use memchr::memmem::Finder;
use pais::db::key_ring::KeyRing;
use pais::db::seal::{DataKey, SealedItem};
use pais_core::definition::{DatasetId, SubmissionId};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, Row};

use crate::process::{ServiceProcess, call};
use pais_test_support::key_file;

/// Length of a wrapped key: version, id of the key, nonce, key, tag.
const WRAPPED_BYTES: usize = 1 + 8 + 12 + 32 + 16;

/// A sealed chunk and where it belongs, as someone copied them before the deletion.
struct Copy {
    dataset: DatasetId,
    submission: SubmissionId,
    /// The key of the submission, as it is stored.
    sealed_key: Vec<u8>,
    sealed: Vec<u8>,
}

impl Copy {
    /// Whether the key of the dataset opens the key of the submission, and that the chunk.
    fn opens_with(&self, key: &DataKey) -> bool {
        let submission = self.submission;
        let place = SealedItem::Chunk {
            submission,
            index: 0,
        };
        let key = key.open_submission_key(submission, &self.sealed_key);
        key.is_ok_and(|key| key.open(place, &self.sealed).is_ok())
    }
}

/// Connects to the embedded database of a running service.
async fn connect(data: &Path) -> PgConnection {
    let postgres = data.join("postgres");
    let password = std::fs::read_to_string(postgres.join("password")).unwrap();
    let connection = std::fs::read_to_string(postgres.join("connection")).unwrap();
    let options = PgConnectOptions::new()
        .socket(connection.lines().last().unwrap())
        .username("pais")
        .password(password.trim())
        .database("pais");
    options.connect().await.unwrap()
}

async fn copy(data: &Path) -> Copy {
    let mut connection = connect(data).await;
    let row = sqlx::query(
        "SELECT s.dataset_id, c.submission_id, c.sealed
         FROM submission_chunks c JOIN submissions s ON s.id = c.submission_id",
    );
    let row = row.fetch_one(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let submission = SubmissionId(row.get(1));
    let file = data.join(format!("dataset-keys/{}.key", submission.0));
    Copy {
        dataset: DatasetId(row.get(0)),
        submission,
        sealed_key: std::fs::read(file).unwrap(),
        sealed: row.get(2),
    }
}

/// All files below a directory that have content.
fn files(directory: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}

/// Tries everything in the files below a directory that has the form of a wrapped key; returns the
/// data keys that open the copied chunk.
fn keys_that_open(data: &Path, copy: &Copy) -> Vec<DataKey> {
    let ring = KeyRing::new(&key_file::read(&data.join("key-encryption.key")));
    let mut prefix = vec![1];
    prefix.extend(hex::decode(ring.current().to_string()).unwrap());
    let finder = Finder::new(&prefix);
    let mut all = Vec::new();
    files(data, &mut all);
    assert!(
        all.len() > 500,
        "the files of the database were not searched"
    );
    let mut opening = Vec::new();
    for path in all {
        // The server may have removed a file of its log meanwhile.
        let Ok(bytes) = std::fs::read(&path) else {
            continue;
        };
        for at in finder.find_iter(&bytes) {
            let Some(wrapped) = bytes.get(at..at + WRAPPED_BYTES) else {
                continue;
            };
            let key = ring.open(copy.dataset, wrapped);
            opening.extend(key.ok().filter(|key| copy.opens_with(key)));
        }
    }
    opening
}

/// Declares a dataset; returns its id.
async fn declared(client: &reqwest::Client, service: &ServiceProcess, token: &str) -> String {
    let dataset = crate::hospital::definition("patients");
    let request = client.post(format!("{}/v1/datasets", service.base));
    let made = call(request.json(&dataset), token).await;
    made["id"].as_str().unwrap().to_owned()
}

/// The attack: a key file that could not be overwritten made a deletion fail that was committed.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_be_destroyed_at_once_is_destroyed_later() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = ServiceProcess::start(&data, &[]).await;
    let token = service.token("hospital", "holder");
    let client = reqwest::Client::new();
    let id = declared(&client, &service, &token).await;
    let path = format!("{}/v1/datasets/{id}", service.base);
    let keys = data.join("dataset-keys");
    let (key, obstacle) = (
        keys.join(format!("{id}.key")),
        keys.join(format!("{id}.destroyed")),
    );
    assert!(key.exists());
    std::fs::create_dir(&obstacle).unwrap();
    let deleted = client.delete(&path).bearer_auth(&token).send().await;
    assert_eq!(deleted.unwrap().status(), 204);
    assert!(key.exists());
    service.stop();
    std::fs::remove_dir(&obstacle).unwrap();
    ServiceProcess::start(&data, &[]).await.stop();
    assert!(!key.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_opens_a_deleted_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = ServiceProcess::start(&data, &[]).await;
    let token = service.token("hospital", "holder");
    let client = reqwest::Client::new();
    let id = declared(&client, &service, &token).await;
    let path = format!("{}/v1/datasets/{id}", service.base);
    let rows = client.post(format!("{path}/submissions"));
    let rows = rows.header("content-type", "text/csv");
    call(rows.body(crate::hospital::TABLE), &token).await;

    let copy = copy(&data).await;
    let before = keys_that_open(&data, &copy);
    assert_eq!(before.len(), 1, "the search finds the key while it exists");
    let deleted = client.delete(&path).bearer_auth(&token).send().await;
    assert_eq!(deleted.unwrap().status(), 204);
    let mut connection = connect(&data).await;
    let chunks: i64 = sqlx::query_scalar("SELECT count(*) FROM submission_chunks")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    assert_eq!(chunks, 0);
    assert_eq!(keys_that_open(&data, &copy).len(), 0);
    let left = std::fs::read_dir(data.join("dataset-keys")).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["database"], "the mark of the directory");
    service.stop();
    // Neither does a file that was written at the end.
    assert_eq!(keys_that_open(&data, &copy).len(), 0);
}
