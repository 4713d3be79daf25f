//! Signals, and stops beside work that takes long.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::two_hospitals::{Hub, Tenant, has_ended, quick, slow};
use crate::process::{ServiceProcess, has_database_server, pais};
use pais_test_support::poll::poll_async;

/// Starts releases and profiles, which go on beside the test.
async fn begin_long_requests(hub: &Hub, tenant: &Tenant, job: &str) {
    let url = hub.url("/v1/releases");
    let profile = hub.url(&format!("/v1/datasets/{}/profile", tenant.dataset));
    for number in 0..4 {
        let request = match number % 2 {
            0 => hub.client.post(&url).json(&json!({ "job_id": job })),
            _ => hub.client.get(&profile),
        };
        tokio::spawn(request.bearer_auth(&tenant.token).send());
    }
    let before = processor_ticks(hub.service.pid());
    let begun = poll_async(Duration::from_secs(30), async || {
        (processor_ticks(hub.service.pid()) > before + 10).then_some(())
    });
    begun.await.expect("the service works on the requests");
}

/// Processor time of a process, in clock ticks.
fn processor_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields = fields.split_whitespace().skip(11).take(2);
    fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_does_not_wait_for_a_long_release() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let settings = [("PAIS__SERVER__SHUTDOWN_GRACE_SECONDS", "1")];
    let mut hub = Hub::start(&data, &settings).await;
    let tenant = hub.tenant("hospital", 6).await;
    let job = hub.job(&tenant, &quick()).await;
    let ended = hub
        .wait(&tenant, &job, Duration::from_secs(60), has_ended)
        .await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    begin_long_requests(&hub, &tenant, &job).await;
    hub.service.signal(Signal::TERM);
    let time = hub.service.ended(Duration::from_secs(30)).await;
    eprintln!("stopped in {time:?}");
    assert!(time < Duration::from_secs(8), "{time:?}");
    assert!(!hub.service.has_database_server());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_waits_for_a_silent_database_can_be_stopped_and_ends() {
    // Connections are accepted by the kernel, and nobody reads them.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let url = format!("postgres://pais:pais@{address}/pais");
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let made = pais(folder.path())
        .args(["keys", "generate"])
        .arg(&key)
        .status();
    assert!(made.unwrap().success());
    let settings = [
        ("DATABASE_URL", url.as_str()),
        ("PAIS__ENCRYPTION__KEY_FILE", key.to_str().unwrap()),
    ];
    let data = folder.path().join("data");
    let mut service = ServiceProcess::begin(&data, &settings);
    // It has the listener, and asks the database.
    let _asked = silent.accept().unwrap();
    service.signal(Signal::TERM);
    let time = service.ended(Duration::from_secs(30)).await;
    assert!(time < Duration::from_secs(5), "{time:?}");

    let migrated = pais(&data).arg("migrate").envs(settings).output().unwrap();
    assert_eq!(migrated.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&migrated.stderr);
    let reason = format!("the database at {address} cannot be reached: it does not answer");
    assert!(errors.contains(&reason), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_end_the_service_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    // So that only a stop without waiting ends in time.
    let settings = [("PAIS__SERVER__SHUTDOWN_GRACE_SECONDS", "120")];
    let mut hub = Hub::start(&data, &settings).await;
    let tenant = hub.tenant("hospital", 6).await;
    hub.service.signal(Signal::HUP);
    // Longer than a fast machine takes to stop and start the service three times.
    let mut longer = slow();
    longer["k"] = json!(Vec::from_iter(10..42));
    let job = hub.job(&tenant, &longer).await;
    let running = |job: &Value| job["status"] == "running" && job["rows_read"] != 0;
    let longest = Duration::from_secs(60);
    hub.wait(&tenant, &job, longest, running).await;
    assert!(hub.service.is_running());

    // SIGQUIT, and a second SIGTERM: the job returns to the queue and loses no attempt.
    let max_run = [("PAIS__WORKERS__MAX_RUN_SECONDS", "1")];
    for (signals, settings) in [
        (&[Signal::QUIT][..], &settings),
        (&[Signal::TERM, Signal::TERM], &max_run),
    ] {
        for signal in signals {
            hub.service.signal(*signal);
            // A second signal of a kind is lost while the first is pending.
            let seen = poll_async(Duration::from_secs(10), async || {
                let asked = reqwest::Client::new().get(hub.url("/healthz")).send();
                asked.await.is_err().then_some(())
            });
            seen.await.expect("the service accepts no connection");
        }
        let time = hub.service.ended(Duration::from_secs(30)).await;
        eprintln!("{signals:?}: stopped in {time:?}");
        assert!(time < Duration::from_secs(10), "{time:?}");
        assert!(!hub.service.has_database_server());
        hub = Hub::start(&data, settings).await;
        let seen = hub.wait(&tenant, &job, longest, |job| job["status"] != "queued");
        assert_eq!(seen.await["attempt"], 1);
        hub.wait(&tenant, &job, longest, |job| job["rows_read"] != 0)
            .await;
    }
    // Now it takes longer than a job may.
    let ended = hub.wait(&tenant, &job, longest, has_ended).await;
    assert_eq!(ended["status"], "failed", "{ended}");
    assert_eq!(ended["error"]["code"], "limit_exceeded");
    let detail = ended["error"]["detail"].as_str().unwrap();
    assert!(detail.contains("workers.max_run_seconds"), "{detail}");
    hub.service.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_stopped_leaves_no_database_server() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    ServiceProcess::start(&data, &[]).await.stop();
    for (arguments, signal) in [
        (&["keys", "check"][..], Signal::INT),
        (&["audit", "verify"], Signal::TERM),
        (&["migrate"], Signal::INT),
        (&["doctor"], Signal::TERM),
    ] {
        let mut command = pais(&data);
        let output = std::fs::File::create(folder.path().join("output")).unwrap();
        let mut process = command.args(arguments).stdout(output).spawn().unwrap();
        let started = poll_async(Duration::from_secs(60), async || {
            has_database_server(&data).then_some(())
        });
        started.await.expect("the command starts the server");
        let pid = rustix::process::Pid::from_child(&process);
        rustix::process::kill_process(pid, signal).unwrap();
        let status = process.wait().unwrap();
        // Not the end by a signal.
        assert!(status.code().is_some(), "{arguments:?}: {status}");
        assert!(!has_database_server(&data), "{arguments:?}: {status}");
    }
}
