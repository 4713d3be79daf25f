//! The embedded database server is killed while the service runs.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::hospital::definition;
use crate::process::{ServiceProcess, call};
use pais_test_support::poll::poll_async;

/// Longest time until a server runs again.
const AGAIN: Duration = Duration::from_secs(60);

/// Kills the server once it is another one than `before`.
async fn kill(data: &Path, before: Option<Pid>) -> Pid {
    let file = data.join("postgres/cluster/postmaster.pid");
    let found = poll_async(AGAIN, async || {
        let text = std::fs::read_to_string(&file).ok()?;
        let pid = Pid::from_raw(text.lines().next()?.parse().ok()?);
        // Its last line is written when it accepts connections.
        pid.filter(|&pid| Some(pid) != before && text.contains("ready"))
    });
    let pid = found.await.expect("no server runs");
    kill_process(pid, Signal::KILL).unwrap();
    pid
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_is_started_again_and_at_last_a_supervisor_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut service = ServiceProcess::start(&data, &[]).await;
    let token = service.token("hospital", "holder");
    let client = reqwest::Client::new();
    let datasets = format!("{}/v1/datasets", service.base);
    let mut killed = None;
    for round in 0..3 {
        killed = Some(kill(&data, killed).await);
        let made = poll_async(AGAIN, async || {
            let request = client.post(&datasets).bearer_auth(&token);
            let body = definition(&format!("patients {round}"));
            let status = request.json(&body).send().await.unwrap().status();
            // 409: the answer to an earlier attempt was lost.
            [201, 409].contains(&status.as_u16()).then_some(())
        });
        made.await.expect("the service does not work again");
        assert!(service.is_running());
    }
    let listed = call(client.get(&datasets), &token).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 3);

    kill(&data, killed).await;
    let status = poll_async(AGAIN, async || service.exit_status()).await;
    assert_eq!(status.expect("the service goes on").code(), Some(1));
    let log = service.log();
    assert!(log.contains("supervisor"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_log_has_the_password_of_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let create = ["token", "create", "--organization", "h", "--role", "holder"];
    let filter = [("PAIS__LOG__FILTER", "trace")];
    // The first start makes the role, and the second one looks whether it is there.
    for _ in 0..2 {
        let made = super::keys::run(&data, &create, &filter).await;
        let log = super::keys::errors(&made);
        assert!(made.status.success() && log.contains("sqlx"), "{log}");
        let password = std::fs::read_to_string(data.join("postgres/password")).unwrap();
        assert!(password.trim().len() >= 32);
        assert!(!log.contains(password.trim()));
    }
}
