//! A worker: claims a job, makes an attempt at it, and writes the result.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::Notify;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::problem::{Code, Problem};
use crate::store::queue::{self, Claim, EndResult, NewRunResults};
use crate::store::releases::NewRelease;
use crate::store::seal::KeyRing;
use crate::store::{Store, StoreError, datasets};
use pais_anonymize::{Observer, Phase};

use super::attempt::{self, PACKED, RunResults};
use super::lease::Lease;
use super::progress::{Progress, StopReason};
use super::release_packing::ReleaseOrigin;
use super::{WorkError, WorkerPoolSettings, load_rows, on_thread};

/// A worker of the pool.
pub(super) struct Worker {
    pub(super) store: Store,
    pub(super) keys: Arc<KeyRing>,
    pub(super) settings: WorkerPoolSettings,
    pub(super) wake: Arc<Notify>,
    pub(super) shutdown: CancellationToken,
    pub(super) interrupt: CancellationToken,
}

impl Worker {
    /// Claims and runs jobs until the pool shuts down.
    pub(super) async fn work(self) {
        while !self.shutdown.is_cancelled() {
            let settings = &self.settings;
            match queue::claim(&self.store, settings.lease, settings.max_attempts).await {
                Ok(Some(claim)) => {
                    self.attempt(claim).await;
                    continue;
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "no job could be claimed from the queue"),
            }
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(settings.poll) => {}
                () = self.shutdown.cancelled() => {}
            }
        }
    }

    async fn attempt(&self, claim: Claim) {
        let started = Instant::now();
        tracing::info!(job = %claim.job, attempt = claim.attempt, "an attempt has started");
        let progress = Arc::new(Progress::new(&claim));
        let lease = Lease::keep(
            self.store.clone(),
            claim.clone(),
            self.settings,
            progress.clone(),
            self.interrupt.clone(),
        );
        let outcome = self.run(&claim, progress.clone()).await;
        let ended = self.end(&claim, outcome, &progress).await;
        drop(lease);
        let seconds = started.elapsed().as_secs_f64();
        match ended {
            Ok(outcome) => {
                tracing::info!(job = %claim.job, outcome, seconds, "an attempt has ended");
                metrics::counter!("pais_job_attempts_total", "outcome" => outcome).increment(1);
                metrics::histogram!("pais_job_attempt_seconds").record(seconds);
            }
            // The lease expires, and then the job is tried again.
            Err(error) => tracing::error!(
                job = %claim.job,
                error = &error as &dyn std::error::Error,
                "the result of an attempt could not be written; its lease will expire"
            ),
        }
    }

    /// Runs the attempt: reads, searches, verifies and packs. Of what it finds, it writes only the
    /// warnings to the database.
    async fn run(&self, claim: &Claim, progress: Arc<Progress>) -> Result<RunResults, WorkError> {
        let dataset = datasets::load(&self.store, claim.organization, claim.dataset)
            .await?
            .ok_or_else(|| Problem::new(Code::DatasetDeleted, "the dataset was deleted"))?;
        let table = load_rows::load(
            &self.store,
            &self.keys,
            &dataset,
            Some(&claim.submissions),
            progress.clone(),
        )
        .await?;
        let key = load_rows::open_key(&self.keys, &dataset)?;
        let origin = ReleaseOrigin {
            organization: claim.organization,
            job: claim.job,
            dataset: claim.dataset,
            name: None,
            by: None,
            created_at: self.store.now(),
        };
        let definition = claim.definition.clone().open(&key, claim.job)?;
        let order_key = key.order_key();
        let (sender, warnings) = oneshot::channel();
        // One thread prepares and runs: what it frees first, it allocates again.
        let running = on_thread(move || {
            let prepared = attempt::prepare(&definition, &dataset, table, order_key, &*progress)?;
            // The receiver is dropped only when the worker stops.
            let _ = sender.send(prepared.warnings());
            prepared.run(&key, origin, &*progress)
        });
        let recording = async {
            match warnings.await {
                Ok(warnings) => queue::record_warnings(&self.store, claim, &warnings).await,
                // The run has failed before its rows were read.
                Err(_) => Ok(()),
            }
        };
        let (results, recorded) = tokio::join!(running, recording);
        let results = results?;
        recorded?;
        Ok(results)
    }

    /// Writes the result of the attempt. Returns its outcome as a word for the log and the metrics.
    async fn end(
        &self,
        claim: &Claim,
        outcome: Result<RunResults, WorkError>,
        progress: &Progress,
    ) -> Result<&'static str, StoreError> {
        let store = &self.store;
        let fail = async |problem| {
            let counts = progress.counts();
            queue::fail(store, claim, counts, &problem).await
        };
        let (label, ending) = match outcome {
            Ok(results) => {
                let release = results.release.as_ref();
                let rows = AtomicU64::new(0);
                let written = |more| {
                    let rows = rows.fetch_add(more, Ordering::Relaxed) + more;
                    let share = rows as f64 / release.map_or(1, rows_of).max(1) as f64;
                    progress.progress(Phase::Writing, PACKED + (1.0 - PACKED) * share);
                };
                let outcome = NewRunResults {
                    steps: &results.steps,
                    sweep: &results.sweep,
                    release,
                    written: &written,
                };
                match queue::succeed(store, claim, progress.counts(), outcome).await {
                    Ok(ending) => ("succeeded", ending),
                    // Another attempt would end in the same way.
                    Err(error) if error.is_storage_full() => {
                        ("failed", fail(storage_full()).await?)
                    }
                    Err(error) => return Err(error),
                }
            }
            Err(WorkError::Problem(problem)) if problem.code == Code::Cancelled => {
                match progress.stopped() {
                    Some(StopReason::LeaseLost) => ("lease_lost", EndResult::Lost),
                    Some(StopReason::ShuttingDown) => {
                        ("put_back", queue::requeue(store, claim).await?)
                    }
                    Some(StopReason::Cancelled) | None => (
                        "cancelled",
                        queue::cancelled(store, claim, progress.counts()).await?,
                    ),
                }
            }
            Err(WorkError::Problem(problem)) => {
                if problem.code.status() >= 500 {
                    let code = problem.code.as_str();
                    tracing::error!(job = %claim.job, code, "a job failed by a fault of the program");
                }
                ("failed", fail(problem).await?)
            }
            Err(WorkError::Store(
                error @ (StoreError::Damaged { .. } | StoreError::Seal(_) | StoreError::Json(_)),
            )) => {
                tracing::error!(
                    job = %claim.job,
                    error = &error as &dyn std::error::Error,
                    "a job failed because data cannot be read or written"
                );
                ("failed", fail(internal()).await?)
            }
            Err(WorkError::Store(error)) => return Err(error),
            Err(WorkError::Panicked) => {
                tracing::error!(job = %claim.job, "a run panicked");
                ("failed", fail(internal()).await?)
            }
        };
        Ok(match ending {
            EndResult::Written => label,
            EndResult::Cancelled => "cancelled",
            EndResult::Lost => "lease_lost",
        })
    }
}

/// Number of rows in all tables of a release.
fn rows_of(release: &NewRelease) -> u64 {
    release.tables.iter().map(|table| table.rows).sum()
}

fn storage_full() -> Problem {
    Problem::new(
        Code::StorageFull,
        "the result does not fit on the disk of the database; have data deleted or the disk \
         enlarged, and send the job again",
    )
}

fn internal() -> Problem {
    Problem::new(
        Code::Internal,
        "internal error; the service's log has the details under this job's id",
    )
}
