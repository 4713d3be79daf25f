//! Silent and slow connections.

use std::process::Command;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::process::{ServiceProcess, pais};
use pais_test_support::poll::poll_async;

/// How soon the service answers a probe, whatever its clients do.
const SOON: Duration = Duration::from_secs(1);

fn address(service: &ServiceProcess) -> String {
    service.base.trim_start_matches("http://").to_owned()
}

/// A probe on a connection of its own.
async fn probe(service: &ServiceProcess) {
    let request = reqwest::Client::new()
        .get(format!("{}/healthz", service.base))
        .timeout(SOON);
    let answer = request.send().await.expect("an answer within a second");
    assert_eq!(answer.status(), 200);
}

/// The program with a limit of open files.
fn with_open_files(data: &std::path::Path, limit: u32) -> Command {
    let program = pais(data);
    let mut command = Command::new("prlimit");
    command
        .arg(format!("--nofile={}:{limit}", limit / 2))
        .arg(program.get_program())
        .stdin(std::process::Stdio::null());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_do_not_lock_out_others() {
    // The clients of this test need open files, too.
    let mut files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    files.current = files.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, files).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let program = with_open_files(&data, 1024);
    let service = ServiceProcess::start_with(program, &data, &[]).await;
    let address = address(&service);
    let mut silent = Vec::new();
    for number in 0..1500 {
        silent.push(TcpStream::connect(&address).await.unwrap());
        if number % 100 == 99 {
            probe(&service).await;
        }
    }
    probe(&service).await;
    let metrics = reqwest::get(format!("{}/metrics", service.base)).await;
    let metrics = metrics.unwrap().text().await.unwrap();
    let open = metrics
        .lines()
        .find_map(|line| line.strip_prefix("http_connections_open "))
        .and_then(|number| number.parse::<u32>().ok());
    assert!(open.is_some_and(|open| open <= 1024 - 200), "{open:?}");
    drop(silent);
    probe(&service).await;
    // The database has not run out of files.
    let answer = reqwest::get(format!("{}/readyz", service.base)).await;
    assert_eq!(answer.unwrap().status(), 200);
    service.stop();
}

/// Reads until the service closes the connection, and returns what came.
async fn closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_heads_idle_connections_and_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let settings = [
        ("PAIS__SERVER__HEADER_TIMEOUT_SECONDS", "2"),
        ("PAIS__SERVER__KEEP_ALIVE_SECONDS", "3"),
        ("PAIS__SERVER__SHUTDOWN_GRACE_SECONDS", "60"),
        ("PAIS__SERVER__CONNECTIONS_PER_ADDRESS", "3"),
    ];
    let service = ServiceProcess::start(&data, &settings).await;
    let address = address(&service);

    // One byte of a head in half a second: closed, although it is never silent for long.
    let mut slow = TcpStream::connect(&address).await.unwrap();
    let began = Instant::now();
    let sending = poll_async(Duration::from_secs(60), async || {
        pais_test_support::poll::pace(Duration::from_millis(450)).await;
        slow.write_all(b"G").await.err()
    });
    sending.await.expect("the connection was not closed");
    assert!(began.elapsed() < Duration::from_secs(30));

    // A connection is kept between two requests, but not for longer than configured.
    let mut kept = TcpStream::connect(&address).await.unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    for _ in 0..2 {
        kept.write_all(request).await.unwrap();
        let mut answer = [0; 64];
        assert!(kept.read(&mut answer).await.unwrap() > 0);
    }
    let began = Instant::now();
    closed(&mut kept).await;
    assert!(began.elapsed() > Duration::from_secs(1));
    assert!(began.elapsed() < Duration::from_secs(30));

    // An answer to a body that was not read says that the connection ends; one to a body that was does not.
    let admin = service.token("ops", "admin");
    let with_token = format!("authorization: Bearer {admin}\r\n");
    for (token, status, is_closed) in [("", 401, true), (with_token.as_str(), 400, false)] {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        let head =
            "POST /v1/organizations HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";
        let request = format!("{head}{token}content-length: 10\r\n\r\n{{        }}");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let read = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..read]).to_lowercase();
        assert!(
            answer.starts_with(&format!("http/1.1 {status}")),
            "{answer}"
        );
        assert_eq!(answer.contains("connection: close"), is_closed, "{answer}");
    }

    // When all connections of an address have requests, a further one is refused.
    let upload =
        b"POST /v1/organizations HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
        content-length: 10\r\nauthorization: Bearer ";
    let head = [upload, admin.as_bytes(), b"\r\n\r\n"].concat();
    let refused = poll_async(Duration::from_secs(60), async || {
        let mut busy = Vec::new();
        for _ in 0..3 {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            stream.write_all(&head).await.unwrap();
            busy.push(stream);
        }
        // One whose head is not read yet would make room for a further one; then the probe is repeated.
        let mut refused = TcpStream::connect(&address).await.unwrap();
        refused.write_all(request).await.unwrap();
        let answer = String::from_utf8(closed(&mut refused).await).unwrap();
        answer.starts_with("HTTP/1.1 503").then_some(answer)
    });
    let refused = refused.await.expect("no connection was refused");
    assert!(refused.contains("retry-after: 5\r\n"), "{refused}");
    assert!(
        refused.contains("server.connections_per_address"),
        "{refused}"
    );

    // Neither a silent connection nor half a head holds up a stop.
    let silent = TcpStream::connect(&address).await.unwrap();
    let mut half = TcpStream::connect(&address).await.unwrap();
    half.write_all(b"GET /heal").await.unwrap();
    let began = Instant::now();
    service.stop();
    assert!(
        began.elapsed() < Duration::from_secs(40),
        "{:?}",
        began.elapsed()
    );
    drop(silent);
}

/// The attack: anybody who reaches a service sees from its metrics when other organizations submit rows.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_not_shown_to_clients_of_a_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let settings = [("PAIS__SERVER__BEHIND_PROXY", "true")];
    let service = ServiceProcess::start(&data, &settings).await;
    for (path, status) in [("/healthz", 200), ("/readyz", 200), ("/metrics", 404)] {
        let answer = reqwest::get(format!("{}{path}", service.base)).await;
        assert_eq!(answer.unwrap().status(), status, "{path}");
    }
    service.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_have_a_listener_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (main, operation) = (
        ServiceProcess::free_address(),
        ServiceProcess::free_address(),
    );
    let settings = [("PAIS__SERVER__OPERATION_LISTEN", operation.as_str())];
    let base = format!("http://{operation}");
    let service = ServiceProcess::start_at(pais(&data), &data, &settings, &main, &base).await;
    for path in ["/healthz", "/readyz", "/metrics"] {
        let status = async |base: &str| {
            let answer = reqwest::get(format!("{base}{path}")).await;
            answer.unwrap().status().as_u16()
        };
        assert_eq!(status(&base).await, 200, "{path}");
        assert_eq!(status(&service.base).await, 404, "{path}");
    }
    let answer = reqwest::get(format!("{base}/v1/datasets")).await.unwrap();
    assert_eq!(answer.status(), 401);
    service.stop();
}
