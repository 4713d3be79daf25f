//! The service under measurement: the program itself, over HTTP.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::fs::File;
use tokio_util::io::ReaderStream;

use crate::poll::{pace, poll_async};
use crate::{adult, memory};

/// Bytes read from a file at a time by an upload.
pub const READ_BYTES: usize = 256 << 10;

/// Longest time until the service is ready.
const READY_WAIT: Duration = Duration::from_secs(60);

/// The time between two requests for the list of jobs: the rate of requests of a token is limited.
const LIST_PAUSE: Duration = Duration::from_millis(10);

/// The time between two requests for the state of a job.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running service on a new data directory.
pub struct Service {
    program: PathBuf,
    process: Child,
    data: tempfile::TempDir,
    address: String,
    pub token: String,
    pub client: reqwest::Client,
    datasets: usize,
    memory: memory::MemorySampler,
}

impl Service {
    /// Starts `program`, the `pais` under measurement.
    pub async fn start(program: &str) -> anyhow::Result<Self> {
        let data = tempfile::Builder::new().prefix("pais-bench-").tempdir()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = std::fs::File::create(data.path().join("service.log"))?;
        let process = Command::new(program)
            .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
            .arg("--data-dir")
            .arg(data.path())
            // The benchmark does not use a database of the caller.
            .env_remove("DATABASE_URL")
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        let mut service = Self {
            program: program.into(),
            memory: memory::MemorySampler::start(process.id()),
            process,
            data,
            address: format!("http://127.0.0.1:{port}"),
            token: String::new(),
            client: reqwest::Client::builder().no_proxy().build()?,
            datasets: 0,
        };
        service.wait_ready().await?;
        service.token = service.holder()?;
        Ok(service)
    }

    async fn wait_ready(&mut self) -> anyhow::Result<()> {
        let url = format!("{}/readyz", self.address);
        let ready = poll_async(READY_WAIT, async || {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Some(Err(status));
            }
            let answer = self.client.get(&url).send().await.ok()?;
            (answer.status() == 200).then_some(Ok(()))
        });
        match ready.await {
            Some(Ok(())) => Ok(()),
            Some(Err(status)) => bail!("the service ended: {status}\n{}", self.log()),
            None => bail!("the service did not become ready\n{}", self.log()),
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.data.path().join("service.log")).unwrap_or_default()
    }

    fn holder(&self) -> anyhow::Result<String> {
        let made = Command::new(&self.program)
            .args(["token", "create", "--organization", "hospital"])
            .args(["--role", "holder", "--data-dir"])
            .arg(self.data.path())
            .env_remove("DATABASE_URL")
            .stderr(Stdio::inherit())
            .output()?;
        ensure!(made.status.success(), "`pais token create` failed");
        Ok(String::from_utf8(made.stdout)?.trim().to_owned())
    }

    /// Declares a dataset with Adult's columns; returns its id.
    pub async fn declare(&mut self) -> anyhow::Result<String> {
        self.datasets += 1;
        let definition = adult::dataset(&format!("adult-{}", self.datasets))?;
        id(&self.post("/v1/datasets", &definition).await?)
    }

    /// Uploads a file to a dataset.
    pub async fn send(&self, dataset: &str, file: &Path) -> anyhow::Result<()> {
        let body = ReaderStream::with_capacity(File::open(file).await?, READ_BYTES);
        let sent = self
            .client
            .post(self.at(&format!("/v1/datasets/{dataset}/submissions")))
            .bearer_auth(&self.token)
            .header("content-type", "text/csv")
            .body(reqwest::Body::wrap_stream(body))
            .send();
        answer(sent.await?).await?;
        Ok(())
    }

    /// Waits for the end of a job; returns the job. An error unless it has succeeded.
    pub async fn ended(&self, job: &str) -> anyhow::Result<Value> {
        loop {
            let asked = self.client.get(self.at(&format!("/v1/jobs/{job}")));
            let found = answer(asked.bearer_auth(&self.token).send().await?).await?;
            match found["status"].as_str() {
                Some("succeeded") => return Ok(found),
                Some("queued" | "running") => pace(POLL_INTERVAL).await,
                _ => bail!("the job did not succeed: {found}\n{}", self.log()),
            }
        }
    }

    /// The URL of a path.
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    /// Posts a body; returns the answer. An error unless the status is 2xx.
    pub async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let sent = self.client.post(self.at(path)).bearer_auth(&self.token);
        answer(sent.json(body).send().await?).await
    }

    /// The peak memory so far, of the service and of its database server.
    pub fn peak(&self) -> memory::PeakMemory {
        self.memory.peak()
    }

    /// Stops the service and its database server, and waits for their end.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.terminate();
        let status = self.process.wait()?;
        ensure!(
            status.success(),
            "the service ended with {status}\n{}",
            self.log()
        );
        Ok(())
    }

    fn terminate(&self) {
        let pid = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Uploads the file to a new dataset; returns the id of the dataset.
    pub async fn upload(&mut self, file: &Path) -> anyhow::Result<String> {
        let dataset = self.declare().await?;
        self.send(&dataset, file).await?;
        Ok(dataset)
    }

    /// Seconds from the request for a job to its end.
    pub async fn job_seconds(&self, dataset: &str, job: &Value) -> anyhow::Result<f64> {
        let mut job = job.clone();
        job["dataset_id"] = dataset.into();
        let began = Instant::now();
        let job = id(&self.post("/v1/jobs", &job).await?)?;
        self.ended(&job).await?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Seconds of each request for the list of jobs, until two jobs have ended.
    pub async fn list_seconds_until_two_have_ended(&self) -> anyhow::Result<Vec<f64>> {
        let mut seconds = Vec::new();
        loop {
            let began = Instant::now();
            let asked = self
                .client
                .get(self.at("/v1/jobs"))
                .bearer_auth(&self.token);
            let list = answer(asked.send().await?).await?;
            seconds.push(began.elapsed().as_secs_f64());
            let items = list["items"].as_array();
            let ended = items
                .into_iter()
                .flatten()
                .filter(|job| !job["ended_at"].is_null());
            if ended.count() >= 2 {
                return Ok(seconds);
            }
            pace(LIST_PAUSE).await;
        }
    }
}

impl Drop for Service {
    /// After an error the service must be stopped, and must have ended before its directory is
    /// removed.
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            self.terminate();
            let _ = self.process.wait();
        }
    }
}

/// The JSON of an answer. An error unless the status is 2xx.
pub async fn answer(response: reqwest::Response) -> anyhow::Result<Value> {
    let status = response.status();
    let text = response.text().await?;
    ensure!(status.is_success(), "{status}: {text}");
    Ok(serde_json::from_str(&text)?)
}

/// The id of a document.
pub fn id(document: &Value) -> anyhow::Result<String> {
    Ok(document["id"].as_str().context("no id")?.to_owned())
}
