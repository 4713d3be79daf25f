//! Datasets whose rows are in Parquet files at a location, and releases that are written as files.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use pais::engine::locations::remove_files;
use pais::roles::Role;
use pais::storage::object_stores::{LocationLimits, ObjectStoreOptions, ObjectStores};
use pais_test_support::hex::hex;
use pais_test_support::poll::poll_async;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::app::{TestApp, text};
use crate::hospital::{Hospital, TABLE, definition, id};
use crate::process::{ServiceProcess, call};
use crate::s3_server::{ACCESS_KEY, Bucket, SECRET_KEY};
use crate::submissions::{parquet, parquet_file};

const LIMITS: LocationLimits = LocationLimits {
    files: 3,
    bytes: 1 << 20,
    rows: 40,
};

fn granted(url: String) -> ObjectStores {
    let options = ObjectStoreOptions {
        url,
        organizations: vec!["hospital".to_owned()],
        region: None,
        endpoint: None,
        access_key_id: None,
        secret_access_key: None,
        session_token: None,
    };
    ObjectStores::open(&[("lake".to_owned(), options)].into(), LIMITS).unwrap()
}

/// A hospital to which the folder `lake` of a directory is granted.
struct Lake {
    hospital: Hospital,
    directory: tempfile::TempDir,
}

impl Lake {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("lake")).unwrap();
        let url = format!("file://{}/lake", directory.path().display());
        let app = TestApp::builder().without_workers();
        let app = app.object_stores(granted(url)).start().await;
        Self {
            hospital: Hospital::with_app(app).await,
            directory,
        }
    }

    /// The path of a file in the folder.
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("lake").join(name)
    }

    /// The URL of a place in the folder.
    fn url(&self, name: &str) -> String {
        format!("file://{}", self.path(name).display())
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// The path of a dataset of the two files in the folder `patients`.
    async fn dataset(&self) -> String {
        self.write("patients/part-1.parquet", parquet());
        self.write("patients/part-2.parquet", parquet());
        let made = self.declare("patients", &self.url("patients")).await;
        format!("/v1/datasets/{}", text(&made.json(201)["id"]))
    }

    async fn declare(&self, name: &str, url: &str) -> crate::app::Answer {
        self.hospital
            .post("/v1/datasets", &located(name, url))
            .await
    }

    /// The job, when it has ended.
    async fn run(&self, dataset: &str, extra: Value) -> Value {
        let job = self.hospital.job(dataset, extra).await;
        let workers = self.hospital.work();
        let ended = self.hospital.ended(&job).await;
        workers.stop().await;
        ended
    }

    /// The path of a release whose files are in the folder `out`, and its files.
    async fn released(&self) -> (String, Vec<Value>) {
        let dataset = self.dataset().await;
        let release = json!({ "location": { "url": self.url("out") } });
        let ended = self.run(&dataset, json!({ "release": release })).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        let release = format!("/v1/releases/{}", text(&ended["release_id"]));
        let files = self
            .hospital
            .get(&format!("{release}/files"))
            .await
            .json(200);
        assert_eq!(files["next_cursor"], Value::Null);
        (release, files["items"].as_array().unwrap().clone())
    }
}

/// The definition of a dataset at a location.
fn located(name: &str, url: &str) -> Value {
    let mut definition = definition(name);
    definition["location"] = json!({ "url": url, "format": "parquet" });
    definition
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The rows of a Parquet file as text.
fn rows_of(file: Vec<u8>) -> Vec<String> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file)).unwrap();
    let batches = reader.build().unwrap();
    let texts = batches.map(|batch| {
        let batch = batch.unwrap();
        let rows = (0..batch.num_rows()).map(|row| format!("{:?}", batch.slice(row, 1)));
        rows.collect::<Vec<_>>()
    });
    texts.flatten().collect()
}

/// The files below a directory.
fn files_below(directory: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.insert(path);
        }
    }
    found
}

/// It behaves as one with a submission, and takes no other.
#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_a_folder_are_the_submission_of_a_dataset() {
    let lake = Lake::new().await;
    lake.write("patients/_temporary/0.parquet", "not finished");
    lake.write("patients/.part-1.parquet.crc", "no table");
    lake.write("patients/README.txt", "no table");
    let dataset = lake.dataset().await;
    let document = lake.hospital.get(&dataset).await.json(200);
    let expected = json!({ "url": lake.url("patients"), "format": "parquet" });
    assert_eq!(document["location"], expected);
    assert_eq!(document["rows"], 22);
    let both = [parquet(), parquet()].concat();
    let submission = &document["submissions"][0];
    assert_eq!(submission["sha256"], sha256(&both));
    assert_eq!(submission["bytes"], both.len());

    let profile = lake
        .hospital
        .get(&format!("{dataset}/profile"))
        .await
        .json(200);
    assert_eq!(profile["rows"], 22);
    let refused = lake.hospital.submit(&dataset, TABLE).await;
    refused.problem(409, "located_dataset");
    let job = lake
        .run(&dataset, json!({ "release": true, "executor": "local" }))
        .await;
    assert_eq!(job["status"], "succeeded", "{job}");
    let release = format!("/v1/releases/{}", text(&job["release_id"]));
    let data = lake.hospital.get(&format!("{release}/data")).await;
    assert_eq!(data.text.lines().count(), 23);
    // It has no files, and every release has its tables.
    let files = lake
        .hospital
        .get(&format!("{release}/files"))
        .await
        .json(200);
    assert_eq!(files["items"], json!([]));
    let file = lake
        .hospital
        .get(&format!("{release}/files/data-00000.parquet"))
        .await;
    file.problem(404, "not_found");

    let deleted = lake
        .hospital
        .app
        .delete(&lake.hospital.token, &dataset)
        .await;
    assert_eq!(deleted.status, 204);
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM located_objects")
        .fetch_one(lake.hospital.app.state.unscoped().db.owner())
        .await
        .unwrap();
    assert_eq!(left, 0);
}

/// Nothing tells what is at a place that was not granted.
#[tokio::test(flavor = "multi_thread")]
async fn a_location_that_is_not_granted_is_refused_alike_whatever_is_there() {
    let lake = Lake::new().await;
    let outside = lake.directory.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("a.parquet"), parquet()).unwrap();
    std::fs::create_dir(lake.directory.path().join("lake-2")).unwrap();
    std::fs::write(lake.directory.path().join("lake-2/a.parquet"), parquet()).unwrap();
    lake.write("a.parquet", parquet());
    symlink(&outside, lake.path("folder")).unwrap();
    lake.write("links/b.parquet", parquet());
    symlink(outside.join("a.parquet"), lake.path("links/a.parquet")).unwrap();
    symlink(outside.join("a.parquet"), lake.path("file.parquet")).unwrap();
    // One that is opened for reading waits for a writer.
    let pipe = Command::new("mkfifo")
        .arg(lake.path("pipe.parquet"))
        .status();
    assert!(pipe.unwrap().success());
    let below = |name: &str| format!("file://{}/{name}", lake.directory.path().display());
    let mut answers = BTreeSet::new();
    for url in [
        below("outside"),
        below("absent"),
        below("lake-2/a.parquet"),
        below("lake-2/absent.parquet"),
        below("lake/../outside"),
        below("lake/../absent"),
        below("lake/%2e%2e/outside"),
        below("lake/a.parquet?x=1"),
        below("lake/a.parquet#x"),
        below("lake//a.parquet"),
        lake.path("a.parquet").display().to_string(),
        lake.url("a.parquet").replace("file://", "file://localhost"),
        lake.url("a.parquet").replace("file://", "FILE://"),
        lake.url("folder"),
        lake.url("folder/a.parquet"),
        lake.url("file.parquet"),
        lake.url("links"),
        lake.url("pipe.parquet"),
        "s3://lake/a".to_owned(),
        "s3://key:secret@lake/a".to_owned(),
        "https://example.org/a.parquet".to_owned(),
        String::new(),
    ] {
        let refused = lake.declare("refused", &url).await;
        let mut problem = refused.problem(422, "location_not_granted");
        // Found when a file is opened, not by the URL.
        problem.as_object_mut().unwrap().remove("errors");
        answers.insert(problem.to_string());
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
    let other = lake.hospital.app.token("other", Role::Holder).await;
    for name in ["a.parquet", "absent.parquet"] {
        let body = located("refused", &lake.url(name));
        let refused = lake.hospital.app.post(&other, "/v1/datasets", &body).await;
        let problem = refused.problem(422, "location_not_granted");
        assert_eq!(problem["errors"][0]["pointer"], "/location/url");
    }
    let dataset = lake.hospital.filled_dataset().await;
    let mut job = crate::hospital::job_on(&dataset);
    job["release"] = json!({ "location": { "url": below("outside") } });
    let refused = lake.hospital.post("/v1/jobs", &job).await;
    let problem = refused.problem(422, "location_not_granted");
    assert_eq!(problem["errors"][0]["pointer"], "/release/location/url");
    assert_eq!(files_below(&outside).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_at_a_location_is_named_and_nothing_is_stored() {
    let lake = Lake::new().await;
    let refused = async |code: &str, status: u16| {
        let answer = lake.declare("patients", &lake.url("patients")).await;
        let problem = answer.problem(status, code);
        text(&problem["detail"]).to_owned()
    };
    let detail = refused("empty_submission", 422).await;
    assert!(detail.contains("no Parquet file"), "{detail}");
    lake.write("patients/part-1.parquet", parquet());
    lake.write("patients/part-2.parquet", "PAR1 is not enough");
    let detail = refused("malformed_body", 400).await;
    assert!(detail.starts_with("part-2.parquet: "), "{detail}");
    let ages = TABLE.replace(",63,", ",old,");
    lake.write("patients/part-2.parquet", text_file(&ages));
    let answer = lake.declare("patients", &lake.url("patients")).await;
    let problem = answer.problem(422, "invalid_cells");
    assert!(
        text(&problem["detail"]).starts_with("part-2.parquet: "),
        "{problem}"
    );
    assert_eq!(problem["errors"][0]["line"], 10);
    assert_eq!(problem["errors"][0]["column"], "Age");
    assert_eq!(problem["errors_by_column"]["Age"], 2);

    lake.write("patients/part-2.parquet", parquet());
    lake.write("patients/part-3.parquet", parquet());
    lake.write("patients/part-4.parquet", parquet());
    let detail = refused("limit_exceeded", 422).await;
    assert!(detail.contains("limits.location_files"), "{detail}");
    std::fs::remove_file(lake.path("patients/part-4.parquet")).unwrap();
    let rows = format!("{TABLE}{}", TABLE.split_once('\n').unwrap().1.repeat(2));
    lake.write("patients/part-2.parquet", text_file(&rows));
    let detail = refused("limit_exceeded", 422).await;
    assert!(detail.contains("limits.location_rows"), "{detail}");
    lake.write("patients/part-3.parquet", vec![0; 1 << 20]);
    let detail = refused("limit_exceeded", 422).await;
    assert!(detail.contains("limits.location_bytes"), "{detail}");
    for table in [
        "datasets",
        "submissions",
        "submission_chunks",
        "located_objects",
    ] {
        let count = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        let rows: i64 = sqlx::query_scalar(count)
            .fetch_one(lake.hospital.app.state.unscoped().db.owner())
            .await
            .unwrap();
        assert_eq!(rows, 0, "{table}");
    }
    // The name is free.
    std::fs::remove_dir_all(lake.path("patients")).unwrap();
    lake.dataset().await;
    let taken = lake.declare("patients", &lake.url("patients")).await;
    taken.problem(409, "name_taken");
}

/// A table in CSV as Parquet of text.
fn text_file(csv: &str) -> Vec<u8> {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};

    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let rows: Vec<_> = lines.collect();
    let columns = names.iter().enumerate().map(|(index, name)| {
        let cells = StringArray::from_iter_values(rows.iter().map(|row| row[index]));
        (*name, Arc::new(cells) as ArrayRef)
    });
    parquet_file(RecordBatch::try_from_iter(columns).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_released_of_objects_that_have_changed() {
    let lake = Lake::new().await;
    let dataset = lake.dataset().await;
    let job = lake.run(&dataset, json!({})).await;
    assert_eq!(job["status"], "succeeded", "{job}");
    let rows = parquet();
    let changes: [&dyn Fn(); 3] = [
        // The same bytes, written again, are another file.
        &|| {
            std::fs::remove_file(lake.path("patients/part-1.parquet")).unwrap();
            lake.write("patients/part-1.parquet", &rows);
        },
        &|| lake.write("patients/part-3.parquet", &rows),
        &|| std::fs::remove_dir_all(lake.path("patients")).unwrap(),
    ];
    for change in changes {
        change();
        let failed = lake.run(&dataset, json!({ "release": true })).await;
        assert_eq!(failed["status"], "failed", "{failed}");
        assert_eq!(failed["error"]["code"], "location_changed", "{failed}");
        let body = json!({ "job_id": job["id"] });
        let refused = lake.hospital.post("/v1/releases", &body).await;
        refused.problem(409, "location_changed");
        lake.write("patients/part-3.parquet", &rows);
    }
    let releases = lake.hospital.get("/v1/releases").await.json(200);
    assert_eq!(releases["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verified_release_is_written_as_files_with_a_manifest() {
    let lake = Lake::new().await;
    let (release, files) = lake.released().await;
    let [file] = &files[..] else {
        panic!("{files:?}");
    };
    assert_eq!(file["name"], "data-00000.parquet");
    assert_eq!(file["rows"], 22);
    let folder = lake.path("out").join(id(&release));
    let written = std::fs::read(folder.join("data-00000.parquet")).unwrap();
    assert_eq!(files_below(&lake.path("out")).len(), 1);
    assert_eq!(file["bytes"], written.len());
    assert_eq!(file["sha256"], sha256(&written));
    let served = lake
        .hospital
        .get(&format!("{release}/data?format=parquet"))
        .await;
    assert_eq!(rows_of(written.clone()), rows_of(served.bytes.to_vec()));

    let path = format!("{release}/files/data-00000.parquet");
    let fetched = lake.hospital.get(&path).await;
    assert_eq!(fetched.status, 200, "{}", fetched.text);
    assert_eq!(fetched.bytes, written);
    assert_eq!(fetched.header("etag"), format!("\"{}\"", sha256(&written)));
    assert_eq!(
        lake.hospital
            .get(&format!("{release}/package"))
            .await
            .status,
        200
    );

    // With a grant, and not before.
    let app = &lake.hospital.app;
    let bts = app.token("bts", Role::Recipient).await;
    app.get(&bts, &path).await.problem(404, "not_found");
    app.get(&bts, &format!("{release}/files"))
        .await
        .problem(404, "not_found");
    let grant = json!({ "recipient": "bts", "purpose": "blood usage" });
    lake.hospital
        .post(&format!("{release}/grants"), &grant)
        .await
        .json(201);
    let fetched = app.get(&bts, &path).await;
    assert_eq!(fetched.bytes, written);
    let listed = app.get(&bts, &format!("{release}/files")).await;
    assert!(!listed.text.contains("lake"), "{}", listed.text);
    let document = app.get(&bts, &release).await;
    assert!(!document.text.contains("lake"), "{}", document.text);
    let auditor = app.token("hospital", Role::Auditor).await;
    let events = app
        .get(&auditor, "/v1/audit?action=release.fetched")
        .await
        .json(200);
    let events = events["items"].as_array().unwrap();
    let is_file = |event: &&Value| event["detail"]["part"] == "files/data-00000.parquet";
    assert_eq!(events.iter().filter(is_file).count(), 2, "{events:?}");
}

/// The service serves no other bytes than those of the manifest.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_changed_is_not_served() {
    let lake = Lake::new().await;
    let (release, _) = lake.released().await;
    let path = format!("{release}/files/data-00000.parquet");
    let on_disk = lake
        .path("out")
        .join(id(&release))
        .join("data-00000.parquet");
    let written = std::fs::read(&on_disk).unwrap();
    let mut changed = written.clone();
    changed[written.len() / 2] ^= 1;
    std::fs::write(&on_disk, &changed).unwrap();
    lake.hospital
        .get(&path)
        .await
        .problem(409, "location_changed");
    std::fs::remove_file(&on_disk).unwrap();
    lake.hospital
        .get(&path)
        .await
        .problem(409, "location_changed");
    std::fs::write(&on_disk, &written).unwrap();
    assert_eq!(lake.hospital.get(&path).await.bytes, written);
    // The tables are served from the database.
    assert_eq!(
        lake.hospital.get(&format!("{release}/data")).await.status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_a_withdrawn_release_are_removed() {
    let lake = Lake::new().await;
    let (release, _) = lake.released().await;
    lake.write("out/of-somebody-else.parquet", "kept");
    // The attack: a link that leads out of the granted prefix, and what a killed attempt leaves.
    let outside = tempfile::tempdir().unwrap();
    let kept = outside.path().join("of-another-hospital");
    std::fs::write(&kept, "kept").unwrap();
    let folder = lake.path("out").join(id(&release));
    symlink(outside.path(), folder.join("link")).unwrap();
    std::fs::write(folder.join("data-00000.parquet#1"), "half").unwrap();
    let reason = json!({ "reason": "the consent was withdrawn" });
    lake.hospital
        .post(&format!("{release}/withdrawal"), &reason)
        .await
        .json(201);
    assert_eq!(
        files_below(&lake.path("out")),
        BTreeSet::from([lake.path("out/of-somebody-else.parquet")])
    );
    assert!(!folder.exists());
    assert!(kept.exists(), "a link was followed");
    for path in [
        format!("{release}/files"),
        format!("{release}/files/data-00000.parquet"),
    ] {
        lake.hospital.get(&path).await.problem(410, "withdrawn");
    }
}

/// The attack: the process ends after the files are written and before the transaction that ends the job.
#[tokio::test(flavor = "multi_thread")]
async fn no_file_is_left_of_an_attempt_without_a_release() {
    let lake = Lake::new().await;
    let dataset = lake.dataset().await;
    let store = &lake.hospital.app.state.unscoped().db;
    // The transaction that ends the job waits for this one.
    let mut blocking = store.owner().begin().await.unwrap();
    sqlx::raw_sql("LOCK TABLE release_files IN EXCLUSIVE MODE")
        .execute(&mut *blocking)
        .await
        .unwrap();
    let release = json!({ "location": { "url": lake.url("out") } });
    let job = lake
        .hospital
        .job(&dataset, json!({ "release": release }))
        .await;
    let workers = lake.hospital.work();
    let out = lake.path("out");
    let written = poll_async(Duration::from_secs(60), async || {
        (files_below(&out).len() == 1).then_some(())
    });
    written.await.expect("the file was not written");
    let storage = &lake.hospital.app.state.unscoped().storage;
    // Not while the job runs.
    remove_files(store, storage).await.unwrap();
    assert_eq!(files_below(&out).len(), 1);
    let stopping = workers.stop();
    let unblocking = async {
        let returned = poll_async(Duration::from_secs(60), async || {
            let job = lake.hospital.get(&job).await.json(200);
            (job["status"] == "queued").then_some(())
        });
        returned.await.expect("the job did not return to the queue");
        blocking.rollback().await.unwrap();
    };
    tokio::join!(stopping, unblocking);
    remove_files(store, storage).await.unwrap();
    assert_eq!(files_below(&out), BTreeSet::new());
    // The next attempt writes its own.
    let workers = lake.hospital.work();
    let ended = lake.hospital.ended(&job).await;
    workers.stop().await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    remove_files(store, storage).await.unwrap();
    assert_eq!(files_below(&out).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_that_the_program_does_not_have_is_refused() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let mut job = crate::hospital::job_on(&dataset);
    job["executor"] = json!("spark");
    let refused = hospital.post("/v1/jobs", &job).await;
    let problem = refused.problem(422, "invalid_value");
    assert_eq!(problem["errors"][0]["pointer"], "/executor");
    let is_named = text(&problem["detail"]).contains("built without `scale`");
    assert_eq!(is_named, !cfg!(feature = "scale"), "{problem}");
}

/// The whole path over a bucket, by a process with its settings; its credentials are nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_is_read_and_written_with_credentials_that_are_nowhere_else() {
    let bucket = Bucket::start().await;
    bucket.put("pais/patients/part-1.parquet", parquet());
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let settings = [
        ("PAIS__OBJECT_STORES__LAKE__URL", "s3://lake/pais"),
        ("PAIS__OBJECT_STORES__LAKE__ORGANIZATIONS", "[hospital]"),
        ("PAIS__OBJECT_STORES__LAKE__REGION", "eu-central-1"),
        ("PAIS__OBJECT_STORES__LAKE__ENDPOINT", &bucket.endpoint),
        ("PAIS__OBJECT_STORES__LAKE__ACCESS_KEY_ID", ACCESS_KEY),
        ("PAIS__OBJECT_STORES__LAKE__SECRET_ACCESS_KEY", SECRET_KEY),
        ("PAIS__LOG__FILTER", "debug"),
    ];
    let service = ServiceProcess::start(&data, &settings).await;
    let token = service.token("hospital", "holder");
    let client = reqwest::Client::new();
    let post = async |path: &str, body: &Value| {
        let url = format!("{}{path}", service.base);
        call(client.post(url).json(body), &token).await
    };
    let dataset = post(
        "/v1/datasets",
        &located("patients", "s3://lake/pais/patients"),
    )
    .await;
    assert_eq!(dataset["rows"], 11, "{dataset}");
    let mut job = crate::hospital::job_on(text(&dataset["id"]));
    job["release"] = json!({ "location": { "url": "s3://lake/pais/out/" } });
    let run = async |job: &Value| {
        let queued = post("/v1/jobs", job).await;
        let url = format!("{}/v1/jobs/{}", service.base, text(&queued["id"]));
        let ended = poll_async(Duration::from_secs(60), async || {
            let job = call(client.get(&url), &token).await;
            (!job["ended_at"].is_null()).then_some(job)
        });
        ended.await.expect("the job has not ended")
    };
    let ended = run(&job).await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    let release = text(&ended["release_id"]);
    let name = format!("pais/out/{release}/data-00000.parquet");
    assert_eq!(
        bucket.names(),
        [name.clone(), "pais/patients/part-1.parquet".to_owned()]
    );
    let path = format!(
        "{}/v1/releases/{release}/files/data-00000.parquet",
        service.base
    );
    let fetched = client.get(path).bearer_auth(&token).send().await.unwrap();
    assert_eq!(fetched.bytes().await.unwrap(), bucket.get(&name));

    let withdrawal = json!({ "reason": "a fault in the source" });
    post(&format!("/v1/releases/{release}/withdrawal"), &withdrawal).await;
    assert_eq!(bucket.names(), ["pais/patients/part-1.parquet"]);
    bucket.put("pais/patients/part-1.parquet", text_file(TABLE));
    let failed = run(&job).await;
    assert_eq!(failed["error"]["code"], "location_changed", "{failed}");
    assert!(bucket.requests() > 5);

    let documents = [dataset, ended, failed]
        .map(|document| document.to_string())
        .concat();
    let log = service.log();
    service.stop();
    for secret in [ACCESS_KEY, SECRET_KEY] {
        assert!(!documents.contains(secret) && !log.contains(secret));
        // The database, its write-ahead log, and everything else of the service.
        let files = files_below(folder.path());
        let has_secret = |file: &&PathBuf| {
            let bytes = std::fs::read(file).unwrap();
            memchr::memmem::find(&bytes, secret.as_bytes()).is_some()
        };
        assert_eq!(files.iter().find(has_secret), None);
    }
}

/// A store that refuses the service is named by its kind of error alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_does_not_answer_is_not_an_empty_one() {
    let bucket = Bucket::start().await;
    let options = ObjectStoreOptions {
        url: "s3://lake".to_owned(),
        organizations: vec!["hospital".to_owned()],
        region: Some("eu-central-1".to_owned()),
        endpoint: Some(bucket.endpoint.clone()),
        access_key_id: Some("AKIDWRONG".to_owned()),
        secret_access_key: Some("wrong".into()),
        session_token: None,
    };
    let stores = ObjectStores::open(&[("lake".to_owned(), options)].into(), LIMITS).unwrap();
    let app = TestApp::builder().without_workers().object_stores(stores);
    let hospital = Hospital::with_app(app.start().await).await;
    let body = located("patients", "s3://lake/patients");
    let refused = hospital.post("/v1/datasets", &body).await;
    let problem = refused.problem(503, "location_unavailable");
    assert!(!problem.to_string().contains("AKIDWRONG"), "{problem}");
}
