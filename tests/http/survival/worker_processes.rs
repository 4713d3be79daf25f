//! A service that runs no jobs, and processes that run nothing else, on one data directory.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use pais_test_support::poll::{pace, poll_async};
use serde_json::Value;

use super::keys::{dataset, job};
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

/// Makes a file older than what is left over.
fn age(file: &Path) {
    let old = std::time::SystemTime::now() - Duration::from_secs(90 * 24 * 60 * 60);
    let opened = std::fs::File::options().write(true).open(file).unwrap();
    opened.set_modified(old).unwrap();
}

/// A process that has looked for leftover keys: one of nobody is gone.
async fn after_a_look_for_leftovers(data: &Path) -> WorkerProcess {
    let name = format!("{}.key", uuid::Uuid::now_v7());
    let nobodys = data.join("dataset-keys").join(name);
    std::fs::write(&nobodys, "key").unwrap();
    age(&nobodys);
    let worker = WorkerProcess::start(data, &[]);
    let gone = poll_async(Duration::from_secs(60), async || {
        (!nobodys.exists()).then_some(())
    });
    gone.await.expect("the key of nobody is destroyed");
    worker
}

/// The key of rows that are being sent is on the disk before their submission is there, however long they take.
#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_an_upload_under_way_survives_the_start_of_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = ServiceProcess::start(&data, &[]).await;
    let token = service.token("hospital", "holder");
    let dataset = dataset(&service, &token, "patients").await;
    let keys = || -> Vec<std::path::PathBuf> {
        let files = std::fs::read_dir(data.join("dataset-keys")).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    };
    // Of two chunks, so that the first is stored before the last row comes.
    let rows = "1,Mover,M,34,Y,Plastic\n".repeat(20_000);
    let head = "ID,Job,Sex,Age,Transfuse,Surgery\n".to_owned() + &rows;
    let begin = || {
        let (goes_on, waits) = tokio::sync::oneshot::channel::<()>();
        let rest = stream::once(async {
            let _ = waits.await;
            Ok("1,Mover,M,34,Y,Plastic\n".to_owned())
        });
        let parts = stream::once(std::future::ready(Ok::<_, std::io::Error>(head.clone())));
        let body = reqwest::Body::wrap_stream(parts.chain(rest).boxed());
        let request =
            reqwest::Client::new().post(format!("{dataset}/submissions?allow_duplicate=true"));
        let request = request
            .header("content-type", "text/csv")
            .bearer_auth(&token);
        (goes_on, tokio::spawn(request.body(body).send()))
    };
    let aged = async |before: Vec<std::path::PathBuf>| {
        // A key has another name until it is complete.
        let sent_later = |file: &std::path::PathBuf| {
            file.extension().is_some_and(|ending| ending == "key") && !before.contains(file)
        };
        let file = poll_async(Duration::from_secs(30), async || {
            keys().into_iter().find(sent_later)
        });
        let file = file.await.expect("the upload has a key");
        age(&file);
        file
    };
    let before = keys();
    let (goes_on, sent) = begin();
    let file = aged(before).await;
    let worker = after_a_look_for_leftovers(&data).await;
    assert!(file.exists(), "the key was destroyed");
    drop(goes_on);
    assert_eq!(sent.await.unwrap().unwrap().status(), 201);
    assert_eq!(job(&service, &token, &dataset).await, "succeeded");
    worker.terminate();

    // That of an upload that was broken off is a leftover.
    let kept = keys();
    let (_goes_on, sent) = begin();
    let file = aged(kept).await;
    sent.abort();
    // The transaction of the upload ends soon after.
    let destroyed = poll_async(Duration::from_secs(60), async || {
        after_a_look_for_leftovers(&data).await.terminate();
        (!file.exists()).then_some(())
    });
    destroyed.await.expect("the key is destroyed");
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
