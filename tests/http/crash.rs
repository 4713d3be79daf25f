//! The program killed in the middle of a job, and started again on the same data directory.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

struct Service {
    program: Child,
    base: String,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn pais(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pais"));
    command
        .env_remove("DATABASE_URL")
        .env("PAIS__SERVER__DATA_DIR", data)
        .stdin(Stdio::null());
    command
}

async fn start(data: &Path) -> Service {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let listen = format!("127.0.0.1:{port}");
    let program = pais(data)
        .args(["serve", "--listen", &listen])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let service = Service {
        program,
        base: format!("http://{listen}"),
    };
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(120) {
        if let Ok(answer) = reqwest::get(format!("{}/readyz", service.base)).await
            && answer.status() == 200
        {
            return service;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the service did not become ready");
}

async fn call(request: reqwest::RequestBuilder, token: &str) -> Value {
    let answer = request.bearer_auth(token).send().await.unwrap();
    let status = answer.status();
    let body: Value = answer.json().await.unwrap();
    assert!(status.is_success(), "{status} {body}");
    body
}

fn columns() -> Value {
    let names = [
        "age",
        "workclass",
        "fnlwgt",
        "education",
        "education-num",
        "marital-status",
        "occupation",
        "relationship",
        "race",
        "sex",
        "capital-gain",
        "capital-loss",
        "hours-per-week",
        "native-country",
        "income",
    ];
    let column = |name: &str| match name {
        "income" => json!({"name": name, "role": "class"}),
        "marital-status" => json!({"name": name, "role": "sensitive"}),
        "workclass" | "education" | "occupation" | "relationship" | "race" | "sex"
        | "native-country" => json!({"name": name, "role": "quasi_identifier"}),
        _ => json!({"name": name, "role": "quasi_identifier", "kind": "numeric"}),
    };
    names.into_iter().map(column).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_a_crash_interrupts_is_finished_once() {
    const COPIES: u64 = 8;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = start(&data).await;
    let made = pais(&data)
        .args([
            "token",
            "create",
            "--organization",
            "hospital",
            "--role",
            "holder",
        ])
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let client = reqwest::Client::new();

    let definition = json!({"name": "adult", "columns": columns()});
    let dataset = call(
        client
            .post(format!("{}/v1/datasets", service.base))
            .json(&definition),
        &token,
    );
    let dataset = dataset.await["id"].as_str().unwrap().to_owned();
    let packed = include_bytes!("../data/adult/adult.csv.gz");
    let mut rows = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice())
        .read_to_end(&mut rows)
        .unwrap();
    for _ in 0..COPIES {
        let request = client
            .post(format!(
                "{}/v1/datasets/{dataset}/submissions",
                service.base
            ))
            .header("content-type", "text/csv")
            .body(rows.clone());
        call(request, &token).await;
    }
    let job = json!({
        "dataset_id": dataset,
        "privacy": {"model": "lkc", "l": 4, "k": 20, "c": 1.0},
        "utility": {"objective": "discernibility"},
        "release": true,
    });
    let job = call(
        client.post(format!("{}/v1/jobs", service.base)).json(&job),
        &token,
    )
    .await;
    let job = job["id"].as_str().unwrap().to_owned();
    let seen = |base: &str| call(client.get(format!("{base}/v1/jobs/{job}")), &token);
    loop {
        let seen = seen(&service.base).await;
        if seen["status"] == "running" {
            break;
        }
        assert_eq!(
            seen["status"], "queued",
            "the job ended before the crash: {seen}"
        );
    }
    // A drop kills with SIGKILL; the database server is left behind.
    drop(service);

    let service = start(&data).await;
    let began = Instant::now();
    let ended = loop {
        let seen = seen(&service.base).await;
        if !matches!(seen["status"].as_str(), Some("queued" | "running")) {
            break seen;
        }
        assert!(
            began.elapsed() < Duration::from_secs(300),
            "the job was not taken up: {seen}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(ended["status"], "succeeded", "{ended}");
    assert_eq!(ended["attempt"], 2);
    let releases = call(client.get(format!("{}/v1/releases", service.base)), &token).await;
    assert_eq!(releases["items"].as_array().unwrap().len(), 1);
    assert_eq!(releases["items"][0]["id"], ended["release_id"]);
    assert_eq!(releases["items"][0]["rows"], json!(COPIES * 45_222));
    stop(service);
}

/// Ends the service as an operator does, so that its database server ends too.
fn stop(mut service: Service) {
    let pid = rustix::process::Pid::from_child(&service.program);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(service.program.wait().unwrap().success());
}
