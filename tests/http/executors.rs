//! Jobs whose rows an executor counts, in the process of the service and in processes of their own.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use pais::engine::locations::remove_files;
use pais::executors::{ExecutorOptions, ExecutorSet};
use pais::roles::Role;
use pais::storage::object_stores::{LocationLimits, ObjectStoreOptions, ObjectStores};
use pais_core::reimport;
use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_io::read::{csv, parquet};
use pais_test_support::poll::{poll, poll_async};
use pais_test_support::{adult, raw_rows};
use serde_json::{Value, json};

use crate::app::{TestApp, send, text};
use crate::hospital::{Hospital, id, job_on};
use crate::process::{ServiceProcess, call};

/// A value that must be nowhere but in the release.
const PLANTED: &str = "zz-planted-value";

const LIMITS: LocationLimits = LocationLimits {
    files: 10,
    bytes: 1 << 30,
    rows: 1 << 20,
};

/// Memory of a job.
const MEMORY: &str = "64MiB";

/// The executor `big` of a service: `in-process`, or processes that share a directory with it.
fn executors(url: &str, shared: Option<&Path>) -> ExecutorSet {
    let of_shared = |name: &str| shared.map(|shared| shared.join(name));
    let options = ExecutorOptions {
        url: url.to_owned(),
        memory: MEMORY.parse().unwrap(),
        spool: of_shared("spool"),
        key_file: of_shared("key"),
        tls_certificate: None,
        tls_key: None,
        tls_authority: None,
    };
    ExecutorSet::open(&BTreeMap::from([("big".to_owned(), options)])).unwrap()
}

/// A hospital that may write below `out` of a directory, with the executor `big`.
struct Scaled {
    hospital: Hospital,
    directory: tempfile::TempDir,
}

impl Scaled {
    async fn new(url: &str, shared: Option<&Path>) -> Self {
        Self::with_job_bytes(url, shared, 1 << 30).await
    }

    async fn with_job_bytes(url: &str, shared: Option<&Path>, job_bytes: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("lake")).unwrap();
        let options = ObjectStoreOptions {
            url: format!("file://{}/lake", directory.path().display()),
            organizations: vec!["hospital".to_owned()],
            region: None,
            endpoint: None,
            access_key_id: None,
            secret_access_key: None,
            session_token: None,
        };
        let stores = ObjectStores::open(&[("lake".to_owned(), options)].into(), LIMITS).unwrap();
        let app = TestApp::builder().without_workers().object_stores(stores);
        let app = app.limits(|limits| limits.job_bytes = job_bytes);
        let app = app.executors(executors(url, shared)).start().await;
        Self {
            hospital: Hospital::with_app(app).await,
            directory,
        }
    }

    fn lake(&self, name: &str) -> PathBuf {
        self.directory.path().join("lake").join(name)
    }

    fn located(&self) -> Value {
        let url = format!("file://{}", self.lake("out").display());
        json!({ "location": { "url": url } })
    }

    /// The path of a dataset with the rows of Adult.
    async fn adult(&self) -> String {
        let made = self.hospital.post("/v1/datasets", &adult_columns()).await;
        let dataset = format!("/v1/datasets/{}", text(&made.json(201)["id"]));
        let sent = self.hospital.submit(&dataset, planted_rows()).await;
        sent.json(201);
        dataset
    }

    /// The path of a job over Adult.
    async fn job(&self, dataset: &str, extra: Value) -> String {
        let mut body = adult::job(4);
        body["dataset_id"] = json!(id(dataset));
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        let queued = self.hospital.post("/v1/jobs", &body).await;
        format!("/v1/jobs/{}", text(&queued.json(202)["id"]))
    }

    /// The job, when it has ended.
    async fn run(&self, job: &str) -> Value {
        let workers = self.hospital.work();
        let ended = poll_async(Duration::from_secs(300), async || {
            let document = self.hospital.get(job).await.json(200);
            (!document["ended_at"].is_null()).then_some(document)
        });
        let ended = ended.await.expect("the job ends");
        workers.stop().await;
        ended
    }

    async fn release_of(&self, job: &str) -> String {
        let ended = self.run(job).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        format!("/v1/releases/{}", text(&ended["release_id"]))
    }

    async fn json(&self, path: &str) -> Value {
        self.hospital.get(path).await.json(200)
    }

    /// The rows of the files of a release, sorted.
    async fn rows_of_files(&self, release: &str, token: &str) -> Vec<Vec<String>> {
        let app = &self.hospital.app;
        let listed = app.get(token, &format!("{release}/files")).await.json(200);
        let mut rows = Vec::new();
        for file in listed["items"].as_array().unwrap() {
            let path = format!("{release}/files/{}", text(&file["name"]));
            let request = app.request(reqwest::Method::GET, &path).bearer_auth(token);
            let bytes = request.send().await.unwrap().bytes().await.unwrap();
            assert_eq!(file["bytes"], bytes.len());
            let read = rows_of(bytes);
            assert_eq!(file["rows"], read.len());
            rows.extend(read);
        }
        rows.sort();
        rows
    }

    /// The files that are left in the spool directory and at the location of an attempt without a release,
    /// after the service has looked for them.
    async fn removed(&self) -> Vec<PathBuf> {
        let app = self.hospital.app.state.unscoped();
        remove_files(&app.db, &app.storage).await.unwrap();
        let mut left = files_below(self.hospital.app.spool.path());
        left.extend(files_below(&self.lake("out")));
        left
    }
}

/// The columns of Adult.
fn adult_columns() -> Value {
    adult::dataset("adult").unwrap()
}

/// Its rows, with a planted sensitive value, which is released unchanged.
fn planted_rows() -> String {
    let rows = String::from_utf8(adult::csv().unwrap()).unwrap();
    rows.replace("Never-married", PLANTED)
}

/// The rows of a Parquet file of a release of Adult, sorted.
fn rows_of(file: Bytes) -> Vec<Vec<String>> {
    let schema = schema();
    let names = parquet::names(&file).unwrap();
    let read_by = reimport::columns(&schema, &names);
    let mut rows = Vec::new();
    let read = parquet::read(&read_by, file, Default::default(), |chunk: Table| {
        rows.extend((0..chunk.rows).map(|row| {
            let cells = chunk.columns.iter();
            let cells = cells.map(|column| column.text(row).unwrap_or("").to_owned());
            cells.collect::<Vec<_>>()
        }));
        Ok::<(), Infallible>(())
    });
    assert_eq!(read.ok(), Some(rows.len() as u64));
    rows.sort();
    rows
}

fn schema() -> Schema {
    Schema::inline(&serde_json::from_value(adult_columns()).unwrap()).unwrap()
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// The bytes of the files below a directory, and of those of this process there that have no name.
fn bytes_below(directory: &Path) -> Vec<u8> {
    let mut found = Vec::new();
    for path in files_below(directory) {
        // It may be removed meanwhile.
        found.extend(std::fs::read(path).unwrap_or_default());
    }
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        if target.starts_with(directory) && target.to_string_lossy().contains("(deleted)") {
            found.extend(std::fs::read(entry.path()).unwrap_or_default());
        }
    }
    found
}

fn has_planted(bytes: &[u8]) -> bool {
    bytes
        .windows(10)
        .any(|part| part == &PLANTED.as_bytes()[..10])
}

/// An executor as a process. It is killed when dropped.
struct ExecutorProcess {
    process: Child,
    url: String,
    log: Arc<Mutex<String>>,
}

impl ExecutorProcess {
    /// Starts one over the directory `spool` and the file `key` of a directory.
    fn start(shared: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_pais-scale"))
            .current_dir(shared)
            .args(["executor", "--spool", "spool", "--key-file", "key"])
            .args(["--listen", "127.0.0.1:0", "--memory", "128MiB"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                *kept.lock().unwrap() += &(line + "\n");
            }
        });
        let address = poll(Duration::from_secs(30), || {
            let log = log.lock().unwrap();
            let address = log.split("address=").nth(1)?;
            address.split_whitespace().next().map(str::to_owned)
        });
        let url = format!("http://{}", address.expect("the executor listens"));
        Self { process, url, log }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for ExecutorProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A directory with a spool directory and a key.
fn shared() -> tempfile::TempDir {
    let shared = tempfile::tempdir().unwrap();
    std::fs::create_dir(shared.path().join("spool")).unwrap();
    let made = Command::new(env!("CARGO_BIN_EXE_pais"))
        .current_dir(shared.path())
        .args(["keys", "generate", "key"])
        .output();
    assert!(made.unwrap().status.success());
    shared
}

/// The steps of a job, without the time of a page.
async fn steps(scaled: &Scaled, job: &str) -> Value {
    scaled.json(&format!("{job}/steps?limit=200")).await["items"].clone()
}

/// The release of an executor is that of the service itself: its steps, labels, rows and figures.
#[tokio::test(flavor = "multi_thread")]
async fn an_executor_makes_the_release_of_the_service_itself() {
    let scaled = Scaled::new("in-process", None).await;
    let dataset = scaled.adult().await;
    let local = scaled.job(&dataset, json!({ "release": true })).await;
    let local_release = scaled.release_of(&local).await;
    let job = scaled
        .job(
            &dataset,
            json!({ "executor": "big", "release": scaled.located() }),
        )
        .await;
    let release = scaled.release_of(&job).await;
    assert_eq!(steps(&scaled, &job).await, steps(&scaled, &local).await);

    let [found, expected] = [
        scaled.json(&release).await,
        scaled.json(&local_release).await,
    ];
    for name in [
        "cut",
        "step",
        "rows",
        "suppressed_rows",
        "privacy",
        "verification",
        "codebook",
        "verdict",
        "warnings",
    ] {
        assert_eq!(found[name], expected[name], "{name}");
    }
    let data = format!("{local_release}/data?format=parquet");
    let app = &scaled.hospital.app;
    let request = app.request(reqwest::Method::GET, &data);
    let request = request.bearer_auth(&scaled.hospital.token);
    let local_rows = rows_of(request.send().await.unwrap().bytes().await.unwrap());
    let rows = scaled.rows_of_files(&release, &scaled.hospital.token).await;
    assert_eq!(rows.len(), 45_222);
    assert!(rows == local_rows);

    // What distinct rows give is exact; what reads row by row is left out.
    let [report, local_report] = [
        scaled.json(&format!("{release}/report")).await,
        scaled.json(&format!("{local_release}/report")).await,
    ];
    for pointer in [
        "/utility/groups",
        "/utility/smallest_group",
        "/utility/smallest_known_group",
        "/utility/dr",
        "/utility/discernibility",
        "/utility/ncp_by_column",
        "/utility/ncp",
        "/utility/group_sizes",
        "/utility/greatest_confidence",
        "/risk/highest",
        "/risk/average",
        "/risk/share_above",
        "/risk/by_length",
        "/risk/by_length_exact",
        "/risk/qid_sizes",
        "/risk/qid_confidences",
        "/risk/attribute",
        "/risk/unchanged",
        "/rows",
        "/verdict",
    ] {
        let (found, expected) = (report.pointer(pointer), local_report.pointer(pointer));
        assert_eq!(found, expected, "{pointer}");
        assert!(found.is_some(), "{pointer}");
    }
    for pointer in [
        "/utility/query_error",
        "/utility/classification_error",
        "/guidelines",
    ] {
        assert!(
            report.pointer(pointer).is_none_or(Value::is_null),
            "{pointer}"
        );
        assert!(local_report.pointer(pointer).is_some(), "{pointer}");
    }
    let path = format!("{release}/report");
    let page = app
        .request(reqwest::Method::GET, &path)
        .header("accept", "text/html");
    let page = send(page.bearer_auth(&scaled.hospital.token)).await;
    assert!(page.text.starts_with("<!DOCTYPE html>"), "{}", page.text);
    // Nothing that was spooled is left.
    let spool = files_below(app.spool.path());
    assert!(
        spool.iter().all(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.contains(id(&release)) || name.contains(id(&local_release))
        }),
        "{spool:?}"
    );
}

/// The rows are in the files alone. They are served with a grant, and decided with nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn rows_in_files_are_granted_alone() {
    let scaled = Scaled::new("in-process", None).await;
    let hospital = &scaled.hospital;
    let dataset = hospital.filled_dataset().await;
    let release_of = async |extra: Value| {
        let job = hospital.job(&dataset, extra).await;
        scaled.release_of(&job).await
    };
    let release = release_of(json!({ "executor": "big", "release": scaled.located() })).await;
    let other = release_of(json!({ "release": true })).await;
    for part in ["data", "data?format=parquet", "tables/data", "package"] {
        let refused = hospital.get(&format!("{release}/{part}")).await;
        let problem = refused.problem(409, "release_in_files");
        assert!(text(&problem["detail"]).contains("/files"), "{problem}");
    }
    let document = scaled.json(&release).await;
    assert_eq!(document["tables"][0]["rows"], 11);
    assert_eq!(document["tables"][0]["sha256"], Value::Null);
    assert_eq!(document["sha256"], Value::Null);

    let app = &hospital.app;
    let bts = app.token("bts", Role::Recipient).await;
    let file = format!("{release}/files/data-00000.parquet");
    app.get(&bts, &file).await.problem(404, "not_found");
    let grant = json!({ "recipient": "bts", "purpose": "blood usage" });
    let granted = hospital.post(&format!("{release}/grants"), &grant).await;
    granted.json(201);
    assert_eq!(app.get(&bts, &file).await.status, 200);
    app.get(&bts, &format!("{release}/data"))
        .await
        .problem(409, "release_in_files");

    // With another release of the dataset it cannot be decided, whichever is granted first.
    let refused = hospital.post(&format!("{other}/grants"), &grant).await;
    let problem = refused.problem(409, "composition_risk");
    assert!(
        text(&problem["detail"]).contains("in its files alone"),
        "{problem}"
    );
    let path = format!("{release}/composition?recipient=bts");
    let alone = scaled.json(&path).await;
    assert_eq!(alone["holds"], true);
    app.token("lab", Role::Recipient).await;
    let to_lab = json!({ "recipient": "lab", "purpose": "blood usage" });
    let granted = hospital.post(&format!("{other}/grants"), &to_lab).await;
    granted.json(201);
    let refused = hospital.post(&format!("{release}/grants"), &to_lab).await;
    refused.problem(409, "composition_risk");
    let path = format!("{release}/composition?recipient=lab");
    let undecided = scaled.json(&path).await;
    assert_eq!(undecided["holds"], false);

    let withdrawal = json!({ "reason": "an error" });
    let withdrawn = hospital
        .post(&format!("{release}/withdrawal"), &withdrawal)
        .await;
    assert!(withdrawn.status.is_success(), "{}", withdrawn.text);
    app.get(&bts, &file).await.problem(410, "withdrawn");
    hospital
        .get(&format!("{release}/data"))
        .await
        .problem(410, "withdrawn");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_executor_does_not_take_is_refused_when_the_job_is_sent() {
    let scaled = Scaled::new("in-process", None).await;
    let hospital = &scaled.hospital;
    let dataset = hospital.filled_dataset().await;
    let refused = async |extra: Value, what: &str| {
        let mut body = job_on(&dataset);
        body["executor"] = json!("big");
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        let problem = hospital
            .post("/v1/jobs", &body)
            .await
            .problem(422, "invalid_job");
        assert!(text(&problem["detail"]).contains(what), "{problem}");
        let errors = problem["errors"].as_array().unwrap();
        assert!(
            errors.iter().any(|it| it["pointer"] == "/executor"),
            "{problem}"
        );
    };
    refused(json!({ "release": true }), "`location`").await;
    refused(json!({ "suppression_limit": 0.1 }), "set it to 0").await;
    refused(json!({ "recoding": "local" }), "choose `global`").await;
    let groups = json!({ "model": "l_diversity", "k": 2, "l": 2 });
    refused(json!({ "privacy": groups }), "choose `lkc`").await;
    let sweep = json!({ "model": "k_anonymity", "k": [2, 3] });
    refused(json!({ "privacy": sweep }), "one value").await;

    let mut body = job_on(&dataset);
    body["executor"] = json!("spark");
    let problem = hospital
        .post("/v1/jobs", &body)
        .await
        .problem(422, "invalid_value");
    assert_eq!(problem["errors"][0]["pointer"], "/executor");
    let publication = json!({ "name": "p", "dataset_id": id(&dataset), "recipients": [],
        "job": { "privacy": { "model": "k_anonymity", "k": 2 }, "executor": "big" } });
    let problem = hospital.post("/v1/publications", &publication).await;
    let problem = problem.problem(422, "invalid_value");
    assert!(
        text(&problem["errors"][0]["pointer"]).ends_with("/executor"),
        "{problem}"
    );
}

/// A job takes the memory of its executor, whatever its table needs.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_does_not_fit_the_memory_of_a_job_is_run_by_an_executor() {
    const ROWS: u32 = 500_000;
    const COLUMNS: usize = 12;
    let scaled = Scaled::with_job_bytes("in-process", None, 64 << 20).await;
    let columns: Vec<Value> = (0..COLUMNS)
        .map(|column| {
            json!({ "name": format!("q{column}"), "role": "quasi_identifier", "kind": "numeric",
                "domain": [0, 9] })
        })
        .collect();
    let definition = json!({ "name": "many rows", "columns": columns });
    let made = scaled.hospital.post("/v1/datasets", &definition).await;
    let dataset = format!("/v1/datasets/{}", text(&made.json(201)["id"]));
    let names: Vec<String> = (0..COLUMNS).map(|column| format!("q{column}")).collect();
    let mut rows = names.join(",") + "\n";
    for row in 0..ROWS {
        rows += &format!("{},{}", row % 10, row / 10 % 5);
        rows += &",5".repeat(COLUMNS - 2);
        rows.push('\n');
    }
    scaled.hospital.submit(&dataset, rows).await.json(201);
    let mut job = json!({ "dataset_id": id(&dataset), "release": scaled.located(),
        "privacy": { "model": "k_anonymity", "k": 1_000 } });
    let refused = scaled.hospital.post("/v1/jobs", &job).await;
    refused.problem(422, "limit_exceeded");
    job["executor"] = json!("big");
    let queued = scaled.hospital.post("/v1/jobs", &job).await.json(202);
    let release = scaled
        .release_of(&format!("/v1/jobs/{}", text(&queued["id"])))
        .await;
    let document = scaled.json(&release).await;
    assert_eq!(document["rows"], ROWS);
    assert_eq!(document["verification"]["smallest_group"], 10_000);
    let files = scaled.json(&format!("{release}/files")).await;
    assert_eq!(files["items"][0]["rows"], ROWS);
}

/// The rows of a job are nowhere in clear while executors count them, and nothing of them is left.
#[tokio::test(flavor = "multi_thread")]
async fn two_executors_make_the_release_of_one_process() {
    let shared = shared();
    let [one, other] = [(), ()].map(|()| ExecutorProcess::start(shared.path()));
    let url = format!("{}, {}", one.url, other.url);
    let scaled = Scaled::new(&url, Some(shared.path())).await;
    let dataset = scaled.adult().await;
    // Without a release, which would be kept in the spool directory for its first download.
    let local = scaled.job(&dataset, json!({ "release": false })).await;
    let ended = scaled.run(&local).await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    let job = scaled
        .job(
            &dataset,
            json!({ "executor": "big", "release": scaled.located() }),
        )
        .await;
    let (spool, service) = (
        shared.path().join("spool"),
        scaled.hospital.app.spool.path(),
    );
    let (seen, done) = (Mutex::new(0), Mutex::new(false));
    let release = std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            while !*done.lock().unwrap() {
                for directory in [&*spool, service] {
                    let bytes = bytes_below(directory);
                    assert!(!has_planted(&bytes), "{}", directory.display());
                    *seen.lock().unwrap() += bytes.len();
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let running = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(scaled.release_of(&job))
        });
        *done.lock().unwrap() = true;
        looking.join().unwrap();
        running
    });
    assert!(seen.into_inner().unwrap() > 100_000);
    assert_eq!(steps(&scaled, &job).await, steps(&scaled, &local).await);
    let rows = scaled.rows_of_files(&release, &scaled.hospital.token).await;
    assert!(rows.iter().flatten().any(|cell| cell == PLANTED));
    let left = files_below(&spool);
    assert!(left.iter().all(|path| path.ends_with(".lock")), "{left:?}");
    for executor in [&one, &other] {
        let log = executor.log.lock().unwrap();
        assert!(!log.contains("zz-planted"), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_executors_fails_within_a_minute_and_leaves_nothing() {
    let shared = shared();
    let mut executor = ExecutorProcess::start(shared.path());
    let scaled = Scaled::new(&executor.url, Some(shared.path())).await;
    let dataset = scaled.adult().await;
    let extra = json!({ "executor": "big", "release": scaled.located() });
    let job = scaled.job(&dataset, extra).await;
    executor.kill();
    let begun = Instant::now();
    let ended = scaled.run(&job).await;
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(ended["status"], "failed", "{ended}");
    assert_eq!(ended["error"]["code"], "executor_unavailable", "{ended}");
    assert!(!ended.to_string().contains("127.0.0.1"), "{ended}");
    assert_eq!(scaled.removed().await, Vec::<PathBuf>::new());
    let left = files_below(&shared.path().join("spool"));
    assert!(left.iter().all(|path| path.ends_with(".lock")), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_leaves_nothing() {
    let scaled = Scaled::new("in-process", None).await;
    let dataset = scaled.adult().await;
    let phases = ["reading", "searching", "verifying"];
    for (at, phase) in phases.into_iter().enumerate() {
        let extra = json!({ "executor": "big", "release": scaled.located() });
        let job = scaled.job(&dataset, extra).await;
        let workers = scaled.hospital.work();
        // A short phase may be over before it is seen.
        let reached = poll_async(Duration::from_secs(120), async || {
            let document = scaled.json(&job).await;
            phases[at..]
                .iter()
                .any(|later| document["phase"] == *later)
                .then_some(())
        });
        reached.await.expect("the job comes to the phase");
        scaled
            .hospital
            .app
            .delete(&scaled.hospital.token, &job)
            .await;
        let ended = scaled.hospital.ended(&job).await;
        workers.stop().await;
        assert_eq!(ended["status"], "cancelled", "{phase}: {ended}");
        assert_eq!(scaled.removed().await, Vec::<PathBuf>::new(), "{phase}");
        let nameless = bytes_below(scaled.hospital.app.spool.path());
        assert!(nameless.is_empty(), "{phase}");
    }
}

/// The program with its settings, over files of raw rows: nothing of a row is in its log.
#[tokio::test(flavor = "multi_thread")]
async fn the_program_runs_located_rows_by_its_settings() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path().join("lake");
    std::fs::create_dir_all(lake.join("raw")).unwrap();
    let schema = schema();
    let table = csv::read_table(&schema, planted_rows().as_bytes()).unwrap();
    let file = std::fs::File::create(lake.join("raw/adult.parquet")).unwrap();
    pais_io::write::parquet(&raw_rows::as_released(&schema, table), file).unwrap();
    let url = |name: &str| format!("file://{}", lake.join(name).display());
    let data = folder.path().join("data");
    let granted = url("");
    let settings = [
        ("PAIS__OBJECT_STORES__LAKE__URL", &*granted),
        ("PAIS__OBJECT_STORES__LAKE__ORGANIZATIONS", "[hospital]"),
        ("PAIS__EXECUTORS__BIG__URL", "in-process"),
        ("PAIS__EXECUTORS__BIG__MEMORY", "256MiB"),
    ];
    let service = ServiceProcess::start(&data, &settings).await;
    let token = service.token("hospital", "holder");
    let client = reqwest::Client::new();
    let at = |path: &str| format!("{}{path}", service.base);
    let mut definition = adult_columns();
    definition["location"] = json!({ "url": url("raw"), "format": "parquet" });
    let made = call(client.post(at("/v1/datasets")).json(&definition), &token).await;
    let mut job = adult::job(4);
    job["dataset_id"] = made["id"].clone();
    job["executor"] = json!("big");
    job["release"] = json!({ "location": { "url": url("out") } });
    let job = call(client.post(at("/v1/jobs")).json(&job), &token).await;
    let job = format!("/v1/jobs/{}", text(&job["id"]));
    let ended = poll_async(Duration::from_secs(300), async || {
        let answer = client.get(at(&job)).bearer_auth(&token).send().await;
        let answer = answer.unwrap_or_else(|error| panic!("{error}\n{}", service.log()));
        let document: Value = answer.json().await.unwrap();
        (!document["ended_at"].is_null()).then_some(document)
    });
    let ended = ended.await.expect("the job ends");
    assert_eq!(ended["status"], "succeeded", "{ended}");
    let written = files_below(&lake.join("out"));
    let rows: Vec<Vec<String>> = written
        .iter()
        .flat_map(|path| rows_of(std::fs::read(path).unwrap().into()))
        .collect();
    assert_eq!(rows.len(), 45_222);
    let log = service.log();
    assert!(log.contains("an executor has counted"), "{log}");
    assert!(!log.contains("zz-planted"), "{log}");
    service.stop();
}
