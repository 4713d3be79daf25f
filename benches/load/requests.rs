//! Further requests to the service.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use pais_test_support::service::{Service, answer, id};

/// The time between two requests for the list of jobs.
const PAUSE: Duration = Duration::from_millis(10);

impl Service {
    /// Uploads the file to a new dataset; returns the id of the dataset.
    pub(crate) async fn upload(&mut self, file: &Path) -> anyhow::Result<String> {
        let dataset = self.declare().await?;
        self.send(&dataset, file).await?;
        Ok(dataset)
    }

    /// Seconds from the request for a job to its end.
    pub(crate) async fn job_seconds(&self, dataset: &str, job: &Value) -> anyhow::Result<f64> {
        let mut job = job.clone();
        job["dataset_id"] = dataset.into();
        let began = Instant::now();
        let job = id(&self.post("/v1/jobs", &job).await?)?;
        self.ended(&job).await?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Seconds of each request for the list of jobs, until two jobs have ended.
    pub(crate) async fn list_seconds_until_two_have_ended(&self) -> anyhow::Result<Vec<f64>> {
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
            // The rate of requests of a token is limited.
            tokio::time::sleep(PAUSE).await;
        }
    }
}
