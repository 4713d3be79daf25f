//! A worker: takes a job, makes an attempt at it, and writes what became of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::problem::{Code, Problem};
use pais_anonymize::{Observer, Phase};
use crate::store::queue::{self, Claim, Ending, Outcome};
use crate::store::releases::NewRelease;
use crate::store::seal::KeyRing;
use crate::store::{Store, StoreError, datasets};

use super::attempt::{self, PACKED, Results};
use super::finished::Origin;
use super::lease::Lease;
use super::progress::{Progress, Stop};
use super::{Failure, WorkerSettings, on_thread, source};

/// One of the pool's workers.
pub(super) struct Worker {
    pub(super) store: Store,
    pub(super) keys: Arc<KeyRing>,
    pub(super) settings: WorkerSettings,
    pub(super) wake: Arc<Notify>,
    pub(super) shutdown: CancellationToken,
    pub(super) interrupt: CancellationToken,
}

impl Worker {
    /// Works until the pool shuts down.
    pub(super) async fn work(self) {
        while !self.shutdown.is_cancelled() {
            let settings = &self.settings;
            match queue::claim(&self.store, settings.lease, settings.max_attempts).await {
                Ok(Some(claim)) => {
                    self.attempt(claim).await;
                    continue;
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "no job could be taken from the queue"),
            }
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(settings.poll) => {}
                () = self.shutdown.cancelled() => {}
            }
        }
    }

    async fn attempt(&self, claim: Claim) {
        let began = Instant::now();
        tracing::info!(job = %claim.job, attempt = claim.attempt, "a job begins");
        let progress = Arc::new(Progress::of(&claim));
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
        let seconds = began.elapsed().as_secs_f64();
        match ended {
            Ok(word) => {
                tracing::info!(job = %claim.job, outcome = word, seconds, "an attempt has ended");
                metrics::counter!("pais_job_attempts_total", "outcome" => word).increment(1);
                metrics::histogram!("pais_job_attempt_seconds").record(seconds);
            }
            // The lease runs out, and the job is tried again.
            Err(error) => tracing::error!(
                job = %claim.job,
                error = &error as &dyn std::error::Error,
                "an attempt ended without a word in the database"
            ),
        }
    }

    /// Reads, searches, verifies and packs; writes nothing.
    async fn run(&self, claim: &Claim, progress: Arc<Progress>) -> Result<Results, Failure> {
        let dataset = datasets::load(&self.store, claim.organization, claim.dataset)
            .await?
            .ok_or_else(|| Problem::new(Code::DatasetDeleted, "the dataset was deleted"))?;
        let table = source::load(
            &self.store,
            &self.keys,
            &dataset,
            Some(&claim.submissions),
            progress.clone(),
        )
        .await?;
        let key = source::open_key(&self.keys, &dataset)?;
        let origin = Origin {
            organization: claim.organization,
            job: claim.job,
            dataset: claim.dataset,
            name: None,
            by: None,
            created_at: self.store.now(),
        };
        let definition = claim.definition.clone();
        on_thread(move || attempt::run(&definition, &dataset, table, &key, origin, &*progress))
            .await
    }

    /// Writes what became of the attempt; the word for it.
    async fn end(
        &self,
        claim: &Claim,
        outcome: Result<Results, Failure>,
        progress: &Progress,
    ) -> Result<&'static str, StoreError> {
        let store = &self.store;
        let fail = async |problem| {
            let counts = progress.counts();
            queue::fail(store, claim, counts, &problem).await
        };
        let (word, ending) = match outcome {
            Ok(results) => {
                let release = results.release.as_ref();
                let rows = AtomicU64::new(0);
                let written = |more| {
                    let rows = rows.fetch_add(more, Ordering::Relaxed) + more;
                    let share = rows as f64 / release.map_or(1, rows_of).max(1) as f64;
                    progress.progress(Phase::Writing, PACKED + (1.0 - PACKED) * share);
                };
                let outcome = Outcome {
                    steps: &results.steps,
                    sweep: &results.sweep,
                    release,
                    written: &written,
                };
                let ending = queue::succeed(store, claim, progress.counts(), outcome).await?;
                ("succeeded", ending)
            }
            Err(Failure::Problem(problem)) if problem.code == Code::Cancelled => {
                match progress.stopped() {
                    Some(Stop::LeaseLost) => ("lease_lost", Ending::Lost),
                    Some(Stop::ShuttingDown) => ("put_back", queue::put_back(store, claim).await?),
                    Some(Stop::Cancelled) | None => (
                        "cancelled",
                        queue::cancelled(store, claim, progress.counts()).await?,
                    ),
                }
            }
            Err(Failure::Problem(problem)) => ("failed", fail(problem).await?),
            Err(Failure::Store(error @ (StoreError::Damaged { .. } | StoreError::Seal(_)))) => {
                tracing::error!(
                    job = %claim.job,
                    error = &error as &dyn std::error::Error,
                    "a run cannot go on"
                );
                ("failed", fail(internal()).await?)
            }
            Err(Failure::Store(error)) => return Err(error),
            Err(Failure::Panicked) => {
                tracing::error!(job = %claim.job, "a run ended in a panic");
                ("failed", fail(internal()).await?)
            }
        };
        Ok(match ending {
            Ending::Written => word,
            Ending::Cancelled => "cancelled",
            Ending::Lost => "lease_lost",
        })
    }
}

/// Rows of all tables of a release.
fn rows_of(release: &NewRelease) -> u64 {
    release.tables.iter().map(|table| table.rows).sum()
}

fn internal() -> Problem {
    Problem::new(
        Code::Internal,
        "something went wrong on our side; the log has it under this job's id",
    )
}
