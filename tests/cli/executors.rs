//! `pais anonymize --executor http://…` with executors as processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pais_core::schema::Schema;
use pais_io::read::csv;
use pais_test_support::poll::poll;
use pais_test_support::split_mix::SplitMix64;
use pais_test_support::{adult, enlarged, raw_rows};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::cli_dir::CliDir;

/// Killed runs are cleaned up within this time.
const CLEAN: Duration = Duration::from_secs(60);

/// An executor as a process.
struct ExecutorProcess {
    process: Child,
    /// `127.0.0.1:5051`.
    address: String,
    log: Arc<Mutex<String>>,
}

impl ExecutorProcess {
    /// Starts an executor; `None` if it ends at once.
    fn try_start(dir: &CliDir, arguments: &[&str]) -> Result<Self, String> {
        let mut process = Command::new(env!("CARGO_BIN_EXE_pais-scale"))
            .current_dir(dir.path())
            .args(["executor", "--spool", "spool", "--key-file", "key"])
            .args(arguments)
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
            let address = log.split("address=").nth(1);
            let found = address.and_then(|rest| rest.split_whitespace().next());
            match found {
                Some(address) => Some(Ok(address.to_owned())),
                None if process.try_wait().unwrap().is_some() && log.contains('\n') => {
                    Some(Err(log.clone()))
                }
                None => None,
            }
        });
        let address = address.expect("the executor listens, or ends")?;
        Ok(Self {
            process,
            address,
            log,
        })
    }

    fn start(dir: &CliDir, listen: &str) -> Self {
        Self::try_start(dir, &["--listen", listen, "--memory", "128MiB"]).unwrap()
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// The statements that it counts now; `None` if it does not answer.
    fn statements(&self) -> Option<u64> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let request = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n";
        stream.write_all(request).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str::<Value>(body).ok()?["statements"].as_u64()
    }

    /// Waits until it counts a statement.
    #[track_caller]
    fn wait_for_statement(&self) {
        let busy = || (self.statements()? > 0).then_some(());
        poll(Duration::from_secs(120), busy).expect("a statement is counted");
    }

    /// Its processor time so far, in ticks of the system.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

impl Drop for ExecutorProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A number from the environment.
fn setting(name: &str, default: usize) -> usize {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap())
}

/// A directory with Adult, enlarged to some rows, in `raw.parquet`, a schema, a job, a key and a spool
/// directory. Some values are planted.
fn directory(rows: usize) -> CliDir {
    let dir = CliDir::new();
    let text = String::from_utf8(adult::csv().unwrap()).unwrap();
    let planted = text.replace("Exec-managerial", "zz-planted-value");
    let text = enlarged::file(dir.path(), planted.as_bytes(), rows).unwrap();
    let dataset = adult::dataset("adult").unwrap().to_string();
    dir.write(
        "s.json",
        &dataset.replace("Exec-managerial", "zz-planted-value"),
    );
    let mut job = adult::job(4);
    job["privacy"]["k"] = json!(20.max(rows / 50_000));
    job["seed"] = json!(5);
    dir.write("j.json", &job.to_string());
    let definition = serde_json::from_value(dir.json("s.json")).unwrap();
    let schema = Schema::inline(&definition).unwrap();
    let table = csv::read_table(&schema, &std::fs::read(&text).unwrap()[..]).unwrap();
    let raw = raw_rows::as_released(&schema, table);
    let file = std::fs::File::create(dir.path().join("raw.parquet")).unwrap();
    pais_io::write::parquet(&raw, file).unwrap();
    std::fs::remove_file(text).unwrap();
    std::fs::create_dir(dir.path().join("spool")).unwrap();
    assert!(dir.run(&["keys", "generate", "key"]).status.success());
    dir
}

/// The names in the spool directory, but for its lock.
fn spooled(dir: &CliDir) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir.path().join("spool")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| !path.ends_with(".lock")).collect()
}

/// A run by executors.
struct ScaledRun {
    process: Child,
    output: String,
}

impl ScaledRun {
    fn start(dir: &CliDir, executors: &str, output: &str, more: &[&str]) -> Self {
        let [report, steps] = ["report", "steps"].map(|name| format!("{output}.{name}.json"));
        let process = Command::new(env!("CARGO_BIN_EXE_pais"))
            .current_dir(dir.path())
            .args(["anonymize", "--schema", "s.json", "--job", "j.json"])
            .args(["--executor", executors, "--memory", "64MiB"])
            .args(["--spool", "spool", "--executor-key", "key"])
            .args(["--report", &report, "--steps", &steps])
            .args(["raw.parquet", "-o", output])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            process,
            output: output.to_owned(),
        }
    }

    /// Exit status and standard error.
    fn end(self) -> (Option<i32>, String) {
        let ran = self.process.wait_with_output().unwrap();
        (ran.status.code(), String::from_utf8(ran.stderr).unwrap())
    }

    /// The number of statements that were submitted again, by reason.
    #[track_caller]
    fn succeed(self, dir: &CliDir) -> Value {
        let output = self.output.clone();
        let (status, text) = self.end();
        assert_eq!(status, Some(0), "{text}");
        assert!(!text.contains("zz-planted"), "{text}");
        dir.json(&format!("{output}.report.json"))["resubmissions"].clone()
    }
}

/// The steps of the table, and the manifest of its release, by the engine in one process.
fn expected(dir: &CliDir) -> (Value, Value) {
    let ran = dir.run(&[
        "anonymize",
        "--schema",
        "s.json",
        "--job",
        "j.json",
        "--executor",
        "in-process",
        "--steps",
        "expected.json",
        "raw.parquet",
        "-o",
        "expected",
    ]);
    let text = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{text}");
    (
        dir.json("expected.json"),
        dir.json("expected/manifest.json"),
    )
}

/// A release by executors, with its seed, has the bytes of one in process.
#[track_caller]
fn assert_same(dir: &CliDir, output: &str, expected: &(Value, Value)) {
    assert_eq!(dir.json(&format!("{output}.steps.json")), expected.0);
    assert_eq!(dir.json(&format!("{output}/manifest.json")), expected.1);
}

fn bytes_below(directory: &Path) -> Vec<u8> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(bytes_below(&path));
        } else {
            // The run may have removed it.
            found.extend(std::fs::read(path).unwrap_or_default());
        }
    }
    found
}

fn has_planted(bytes: &[u8]) -> bool {
    bytes.windows(10).any(|part| part == b"zz-planted")
}

#[test]
fn two_executors_find_the_steps_and_rows_of_one_process() {
    let dir = directory(60_000);
    let expected = expected(&dir);
    let [one, other] = ["127.0.0.1:0"; 2].map(|listen| ExecutorProcess::start(&dir, listen));
    let executors = format!("{},{}", one.url(), other.url());
    let run = ScaledRun::start(&dir, &executors, "out", &[]);
    one.wait_for_statement();
    let spool = dir.path().join("spool");
    let bytes = bytes_below(&spool);
    assert!(bytes.len() > 60_000 && !has_planted(&bytes));
    let resubmissions = run.succeed(&dir);
    assert_eq!(
        resubmissions,
        json!({"guard": 0, "deadline": 0, "lost_executor": 0, "failed": 0})
    );
    assert_same(&dir, "out", &expected);
    assert!(spooled(&dir).is_empty());
    for executor in [&one, &other] {
        assert!(!executor.log.lock().unwrap().contains("zz-planted"));
    }
    // SIGTERM ends an executor.
    let mut one = one;
    kill_process(Pid::from_child(&one.process), Signal::TERM).unwrap();
    let ended = poll(Duration::from_secs(10), || one.process.try_wait().unwrap());
    assert_eq!(ended.unwrap().code(), Some(0));
}

/// `PAIS_SCALE_KILLS` kills, over `PAIS_SCALE_ROWS` rows.
#[test]
fn a_run_survives_the_loss_of_an_executor_in_a_statement() {
    let dir = directory(setting("PAIS_SCALE_ROWS", 100_000));
    let expected = expected(&dir);
    let seed: u64 = std::process::id().into();
    let mut random = SplitMix64(seed);
    let kills = setting("PAIS_SCALE_KILLS", 3);
    let mut reasons = [0; 4];
    let mut interrupted = 0;
    for kill in 0..kills {
        let kept = ExecutorProcess::start(&dir, "127.0.0.1:0");
        let mut lost = ExecutorProcess::start(&dir, "127.0.0.1:0");
        let executors = format!("{},{}", kept.url(), lost.url());
        let start = Instant::now();
        let run = ScaledRun::start(&dir, &executors, "out", &[]);
        lost.wait_for_statement();
        // Spread over the first statements.
        let delay =
            Duration::from_millis(random.below(setting("PAIS_SCALE_SPREAD_MS", 400)) as u64);
        let passed = Instant::now();
        poll(delay, || (passed.elapsed() >= delay).then_some(()));
        let in_statement = lost.statements() == Some(1);
        lost.kill();
        let found = run.succeed(&dir);
        let seconds = start.elapsed().as_secs_f64();
        assert!(seconds < 120.0, "{seconds} s, seed {seed}, kill {kill}");
        assert_same(&dir, "out", &expected);
        assert!(spooled(&dir).is_empty());
        let names = ["guard", "deadline", "lost_executor", "failed"];
        let found = names.map(|name| found[name].as_u64().unwrap());
        for (sum, number) in reasons.iter_mut().zip(found) {
            *sum += number;
        }
        interrupted += u32::from(found != [0; 4]);
        println!(
            "kill {kill} after {delay:?}, in a statement: {in_statement}, {seconds:.1} s, {found:?}"
        );
        std::fs::remove_dir_all(dir.path().join("out")).unwrap();
    }
    println!(
        "{kills} kills, {interrupted} runs with a void answer: guard, deadline, lost, failed {reasons:?}"
    );
    assert!(interrupted > 0, "no kill was in a statement");
}

#[test]
fn without_executors_a_run_fails_and_the_next_one_works() {
    let dir = directory(60_000);
    let [mut one, mut other] =
        ["127.0.0.1:0"; 2].map(|listen| ExecutorProcess::start(&dir, listen));
    let executors = format!("{},{}", one.url(), other.url());
    let run = ScaledRun::start(&dir, &executors, "out", &[]);
    one.wait_for_statement();
    one.kill();
    other.kill();
    let start = Instant::now();
    let (status, text) = run.end();
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("no executor answers"), "{text}");
    assert!(start.elapsed() < Duration::from_secs(60));
    assert!(!dir.path().join("out").exists() && spooled(&dir).is_empty());
    let _again = [&one, &other].map(|gone| ExecutorProcess::start(&dir, &gone.address));
    ScaledRun::start(&dir, &executors, "out", &[]).succeed(&dir);
}

#[test]
fn a_killed_run_leaves_no_work_and_no_file() {
    let dir = directory(300_000);
    let executor = ExecutorProcess::start(&dir, "127.0.0.1:0");
    let mut run = ScaledRun::start(&dir, &executor.url(), "out", &[]);
    executor.wait_for_statement();
    assert_eq!(spooled(&dir).len(), 1);
    run.process.kill().unwrap();
    run.process.wait().unwrap();
    let free = || (executor.statements() == Some(0)).then_some(());
    poll(Duration::from_secs(5), free).expect("the statement ends");
    let clean = poll(CLEAN, || spooled(&dir).is_empty().then_some(()));
    clean.expect("the directory of the run is removed");
    // It has nothing to do: at most a tenth of a second of work in a second.
    let (ticks, start) = (executor.ticks(), Instant::now());
    poll(Duration::from_secs(1), || {
        (start.elapsed() > Duration::from_secs(1)).then_some(())
    });
    assert!(executor.ticks() - ticks < 10);
}

#[test]
fn wrong_keys_and_arguments_are_refused() {
    let dir = directory(2_000);
    let executor = ExecutorProcess::start(&dir, "127.0.0.1:0");
    assert!(dir.run(&["keys", "generate", "other"]).status.success());
    let refused = |executors: &str, more: &[&str]| {
        let (status, text) = ScaledRun::start(&dir, executors, "out", more).end();
        assert_ne!(status, Some(0));
        assert!(!dir.path().join("out").exists() && spooled(&dir).is_empty());
        text
    };
    std::fs::rename(dir.path().join("key"), dir.path().join("first")).unwrap();
    std::fs::rename(dir.path().join("other"), dir.path().join("key")).unwrap();
    assert!(refused(&executor.url(), &[]).contains("has another key"));
    assert!(refused("http://192.0.2.1:5051", &[]).contains("https"));
    assert!(refused("https://192.0.2.1:5051", &[]).contains("needs a certificate"));
    assert!(refused("in-process,http://127.0.0.1:1", &[]).contains("in-process"));
    assert!(refused("http://127.0.0.1", &[]).contains("not the address"));

    for (listen, reason) in [
        ("0.0.0.0:0", "not a loopback address"),
        ("[::]:0", "not a loopback"),
    ] {
        let refused = ExecutorProcess::try_start(&dir, &["--listen", listen])
            .err()
            .unwrap();
        assert!(refused.contains(reason), "{refused}");
    }
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o644);
    std::fs::set_permissions(dir.path().join("key"), mode).unwrap();
    let refused = ExecutorProcess::try_start(&dir, &["--listen", "127.0.0.1:0"])
        .err()
        .unwrap();
    assert!(refused.contains("0644"), "{refused}");
}

/// Writes a certificate for `localhost`, which is its own authority, and its key.
fn certificate(dir: &CliDir, name: &str) {
    let names = vec!["localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    dir.write(&format!("{name}.pem"), &cert.pem());
    dir.write(&format!("{name}.key"), &signing_key.serialize_pem());
}

/// What an executor answers to a client without a certificate.
fn ask_without_certificate(dir: &CliDir, address: &str) -> String {
    let trusted = CertificateDer::from_pem_file(dir.path().join("executor.pem")).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(client, TcpStream::connect(address).unwrap());
    let mut answer = Vec::new();
    let _ = stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn with_tls_both_sides_show_certificates() {
    let dir = directory(5_000);
    for name in ["executor", "run", "stranger"] {
        certificate(&dir, name);
    }
    let tls = [
        "--listen",
        "127.0.0.1:0",
        "--tls-certificate",
        "executor.pem",
        "--tls-key",
        "executor.key",
        "--tls-authority",
        "run.pem",
    ];
    let executor = ExecutorProcess::try_start(&dir, &tls).unwrap();
    let port = executor.address.rsplit_once(':').unwrap().1;
    let url = format!("https://localhost:{port}");
    let client = |name: &str, authority| {
        [
            "--executor-tls-certificate".to_owned(),
            format!("{name}.pem"),
            "--executor-tls-key".to_owned(),
            format!("{name}.key"),
            "--executor-tls-authority".to_owned(),
            format!("{authority}.pem"),
        ]
    };
    let run = |url: &str, client: &[String]| {
        let client: Vec<&str> = client.iter().map(String::as_str).collect();
        ScaledRun::start(&dir, url, "out", &client)
    };
    run(&url, &client("run", "executor")).succeed(&dir);
    std::fs::remove_dir_all(dir.path().join("out")).unwrap();
    // A certificate that the executor does not know, one that it does not have, and none.
    for client in [client("stranger", "executor"), client("run", "stranger")] {
        let (status, text) = run(&url, &client).end();
        assert_eq!(status, Some(1), "{text}");
        assert!(text.contains("no executor answers"), "{text}");
    }
    assert!(!ask_without_certificate(&dir, &executor.address).contains("200"));
    let (status, _) = run(&format!("http://{}", executor.address), &[]).end();
    assert_eq!(status, Some(1));
    // It is there for its client.
    run(&url, &client("run", "executor")).succeed(&dir);
    assert!(!executor.log.lock().unwrap().contains("PRIVATE"));
}
