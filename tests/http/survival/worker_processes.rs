//! A service that runs no jobs, and processes that run nothing else, on one data directory.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use pais_test_support::poll::{pace, poll_async};
use serde_json::Value;

use super::keys::dataset;
use crate::process::{ServiceProcess, call, pais};

/// A process that runs jobs; it is killed when dropped.
pub(super) struct WorkerProcess(Child);

impl WorkerProcess {
    pub(super) fn start(data: &Path, settings: &[(&str, &str)]) -> Self {
        let mut command = pais(data);
        command.arg("work").envs(settings.iter().copied());
        Self(command.stderr(Stdio::null()).spawn().unwrap())
    }

    pub(super) fn terminate(mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_run_by_other_processes_and_none_is_lost_when_one_is_killed() {
    const JOBS: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    // A process that runs jobs waits for the service.
    let first = WorkerProcess::start(&data, &[]);
    let service = ServiceProcess::start_without_workers(&data, &[]).await;
    let token = service.token("hospital", "holder");
    let client = reqwest::Client::new();
    let dataset = dataset(&service, &token, "patients").await;
    first.terminate();

    let mut jobs = Vec::new();
    for _ in 0..JOBS {
        let body = crate::hospital::job_on(&dataset);
        let request = client.post(format!("{}/v1/jobs", service.base)).json(&body);
        let made = call(request, &token).await;
        jobs.push(format!(
            "{}/v1/jobs/{}",
            service.base,
            made["id"].as_str().unwrap()
        ));
    }
    // The service itself runs none.
    pace(Duration::from_secs(3)).await;
    for job in &jobs {
        assert_eq!(call(client.get(job), &token).await["status"], "queued");
    }
    let killed = WorkerProcess::start(&data, &[]);
    let other = WorkerProcess::start(&data, &[]);
    let ended = async || {
        let mut shown: Vec<Value> = Vec::new();
        for job in &jobs {
            shown.push(call(client.get(job), &token).await);
        }
        shown
    };
    let begun = poll_async(Duration::from_secs(60), async || {
        let shown = ended().await;
        shown
            .iter()
            .any(|job| job["status"] == "succeeded")
            .then_some(())
    });
    begun.await.expect("the processes run jobs");
    drop(killed);
    let all = poll_async(Duration::from_secs(120), async || {
        let shown = ended().await;
        shown
            .iter()
            .all(|job| !job["ended_at"].is_null())
            .then_some(shown)
    });
    let all = all.await.expect("every job ends");
    assert!(all.iter().all(|job| job["status"] == "succeeded"));
    other.terminate();
    service.stop();
}
