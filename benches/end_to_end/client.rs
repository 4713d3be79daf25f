//! A client of the service: upload, job and download of one table.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, ensure};

use pais_test_support::adult;
use pais_test_support::service::{Service, id};

/// Seconds of each phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndToEnd {
    pub upload: f64,
    pub job: f64,
    /// The first download, which includes rendering the table.
    pub download: f64,
    pub downloaded_bytes: u64,
}

impl EndToEnd {
    /// Seconds of all phases together.
    pub(crate) fn total(&self) -> f64 {
        self.upload + self.job + self.download
    }
}

/// Declares a dataset, uploads the file, runs the job, downloads the release, deletes the
/// dataset.
pub(crate) async fn end_to_end(
    service: &mut Service,
    file: &Path,
    l: u32,
) -> anyhow::Result<EndToEnd> {
    let dataset = service.declare().await?;
    let began = Instant::now();
    service.send(&dataset, file).await?;
    let upload = began.elapsed().as_secs_f64();

    let mut job = adult::job(l);
    job["dataset_id"] = dataset.as_str().into();
    let began = Instant::now();
    let job = id(&service.post("/v1/jobs", &job).await?)?;
    let release = service.ended(&job).await?;
    let release = release["release_id"].as_str();
    let release = release.context("the job has no release")?.to_owned();
    let job = began.elapsed().as_secs_f64();

    let began = Instant::now();
    let asked = service
        .client
        .get(service.at(&format!("/v1/releases/{release}/data")));
    let mut table = asked.bearer_auth(&service.token).send().await?;
    ensure!(table.status() == 200, "the download failed");
    let mut downloaded_bytes = 0;
    while let Some(part) = table.chunk().await? {
        downloaded_bytes += part.len() as u64;
    }
    let download = began.elapsed().as_secs_f64();

    let path = service.at(&format!("/v1/datasets/{dataset}"));
    let deleted = service.client.delete(path).bearer_auth(&service.token);
    ensure!(
        deleted.send().await?.status() == 204,
        "the dataset was not deleted"
    );
    Ok(EndToEnd {
        upload,
        job,
        download,
        downloaded_bytes,
    })
}
