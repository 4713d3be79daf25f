//! A worker: claims a job, makes an attempt at it, and writes the result.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::allocator::return_freed_pages;
use crate::db::audit::Actor;
use crate::db::claims::{self, Claim};
use crate::db::datasets::StoredDataset;
use crate::db::editions::EditionQueue;
use crate::db::key_ring::KeyRing;
use crate::db::queue::{self, EndResult, NewRunResults};
use crate::db::seal::SealedItem;
use crate::db::submissions::Which;
use crate::db::{Store, StoreError, datasets, editions, submissions};
use crate::executors::NamedExecutor;
use crate::ids::ReleaseId;
use crate::memory::MemoryReservation;
use crate::problem::{Code, Problem};
use crate::telemetry::traces::TraceSpan;
use pais_anonymize::{Observer, Phase};
use pais_core::definition::{JobDefinition, JobRelease, Sweep};
use pais_core::warning::by_code;

use super::heartbeats::Heartbeats;
use super::progress::{Progress, StopReason};
use super::slots::{WorkerSlot, WorkerSlots};
use super::{JobKey, Resources, WorkerPoolSettings};
use crate::engine::attempt::{self, PACKED, RunResults};
use crate::engine::edition_attempt::{EditionInput, EditionJob};
use crate::engine::locations::{self, NewReleaseFolder};
use crate::engine::release_packing::ReleaseOrigin;
#[cfg(feature = "scale")]
use crate::engine::scaled_attempt::ScaledAttempt;
use crate::engine::table_memory::{self, TableLimits};
use crate::engine::{WorkError, load_rows, on_thread};

/// A worker of the pool.
pub(super) struct Worker {
    pub(super) store: Store,
    pub(super) keys: Arc<KeyRing>,
    pub(super) resources: Resources,
    pub(super) settings: WorkerPoolSettings,
    pub(super) slots: Arc<WorkerSlots>,
    pub(super) heartbeats: Heartbeats,
    pub(super) wake: Arc<Notify>,
    pub(super) shutdown: CancellationToken,
}

impl Worker {
    /// Claims and runs jobs until the pool shuts down.
    pub(super) async fn work(self) {
        while !self.shutdown.is_cancelled() {
            match self.claim().await {
                Ok(Some((claim, slot))) => {
                    self.attempt(claim).await;
                    drop(slot);
                    // The next turn settles the edition, if it was one.
                    continue;
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "no job could be claimed from the queue"),
            }
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(self.settings.poll) => {}
                () = self.shutdown.cancelled() => {}
            }
        }
    }

    /// Claims the next job. It first waits for a slot in this process, so that the end of this process costs a
    /// waiting job no attempt.
    async fn claim(&self) -> Result<Option<(Claim, WorkerSlot)>, StoreError> {
        let rules = self.settings.claim_rules();
        end_exhausted(&self.store, rules.max_attempts).await?;
        let queue = EditionQueue {
            store: &self.store,
            keys: &self.keys,
            quotas: self.settings.quotas,
        };
        if let Err(error) = editions::settle(queue).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                error,
                "editions could not be brought on; this is tried again"
            );
        }
        let claimable = claims::claimable(&self.store, &rules).await?;
        for isolation in self.slots.order(claimable) {
            let slot = tokio::select! {
                slot = self.slots.take(isolation) => slot,
                () = self.shutdown.cancelled() => return Ok(None),
            };
            let Some(slot) = slot else { continue };
            if let Some(claim) = claims::claim(&self.store, &rules, isolation).await? {
                self.slots.claimed(isolation);
                return Ok(Some((claim, slot)));
            }
        }
        Ok(None)
    }

    /// Makes an attempt, with its job in the log and in the trace.
    async fn attempt(&self, claim: Claim) {
        let trace = TraceSpan::of_job(claim.trace);
        trace.set("pais.job_id", claim.job);
        trace.set_number("pais.attempt", claim.attempt);
        let (job, attempt) = (claim.job, claim.attempt);
        let trace_id = trace.trace_id().map(tracing::field::display);
        // An error: `log.filter` must not leave out the ids of the lines that it keeps.
        let log = tracing::error_span!("job", %job, attempt, trace_id);
        let attempt = self.run_and_end(claim, &trace).instrument(log);
        trace.within(attempt).await;
    }

    async fn run_and_end(&self, claim: Claim, trace: &TraceSpan) {
        let started = Instant::now();
        tracing::info!("an attempt has started");
        let progress = Arc::new(Progress::new(&claim));
        let lease = self.heartbeats.keep(claim.clone(), progress.clone());
        let mut memory = None;
        let outcome = self.run(&claim, &progress, &mut memory).await;
        let ended = self.end(&claim, outcome, &progress).await;
        self.resources.attempts.send_replace(Some(JobKey {
            organization: claim.organization,
            job: claim.job,
        }));
        drop(memory);
        drop(lease);
        return_freed_pages();
        let seconds = started.elapsed().as_secs_f64();
        for phase in progress.phases() {
            let name = phase.phase.as_str();
            metrics::histogram!("pais_job_phase_seconds", "phase" => name).record(phase.took());
            trace.add_part(name, phase.from, phase.to);
        }
        match ended {
            Ok(outcome) => {
                trace.set("pais.outcome", outcome);
                tracing::info!(outcome, seconds, "an attempt has ended");
                metrics::counter!("pais_job_attempts_total", "outcome" => outcome).increment(1);
                metrics::histogram!("pais_job_attempt_seconds").record(seconds);
            }
            // The lease expires, and then the job is tried again.
            Err(error) => {
                trace.fail();
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the result of an attempt could not be written; its lease will expire"
                );
            }
        }
    }

    /// Runs the attempt: reads, searches, verifies and packs. It writes only the warnings to the database. Its
    /// results are in the memory that it reserves.
    async fn run(
        &self,
        claim: &Claim,
        progress: &Arc<Progress>,
        memory: &mut Option<MemoryReservation>,
    ) -> Result<RunResults, WorkError> {
        let dataset = datasets::load(&self.store, claim.organization, claim.dataset)
            .await?
            .ok_or_else(|| Problem::new(Code::DatasetDeleted, "the dataset was deleted"))?;
        locations::check_unchanged(
            &self.store,
            &self.resources.storage,
            claim.organization,
            &dataset,
        )
        .await?;
        let key = load_rows::open_key(&self.keys, &dataset)?;
        let item = SealedItem::Definition(claim.job);
        let definition = claim.definition.clone().open(&key, item)?;
        let (job, executor) = attempt::with_executor(&definition)?;
        let executor = executor.map(|name| self.resources.executors.find(&name).cloned());
        let executor = executor.transpose()?;
        let mut edition = match editions::plan(&self.store, claim.job).await? {
            Some(plan) => {
                // Which releases are needed is known when their rows are, and then so is the memory for all.
                let read = Which::Listed(&claim.submissions);
                let rows = submissions::size(&self.store, dataset.id, read).await?.rows;
                let bytes = EditionInput::source_bytes(&plan, rows);
                let _reserved = self.reserve_bytes(bytes, progress).await?;
                let loaded = EditionInput::load(&self.store, &key, &dataset, claim, plan);
                Some(loaded.await?)
            }
            None => {
                let mut connection = self.store.connection().await?;
                submissions::lock_current(&mut connection, &claim.submissions).await?;
                None
            }
        };
        let run = RunToReserve {
            job: &job,
            dataset: &dataset,
            edition: edition.as_ref(),
            executor: executor.as_ref(),
        };
        *memory = Some(self.reserve(claim, &run, progress).await?);
        progress.begin();
        let id = ReleaseId::new();
        let origin = ReleaseOrigin {
            id,
            folder: self.release_folder(claim, &job, id).await?,
            organization: claim.organization,
            holder: load_rows::holder(&self.store, claim.organization).await?,
            job: claim.job,
            dataset: claim.dataset,
            submissions: claim.submissions.clone(),
            definition: dataset.definition.clone(),
            name: edition.as_ref().map(EditionInput::name),
            by: Actor::SERVICE,
            created_at: self.store.now(),
            rows: None,
        };
        let order_key = key.order_key();
        let (sender, warnings) = oneshot::channel();
        let (progress, csv_bytes) = (progress.clone(), self.resources.storage.spool.limit());
        let read = Which::Listed(&claim.submissions);
        let running = async move {
            // Dropped when the run ends, whether it came to its warnings or not.
            let sender = sender;
            #[cfg(feature = "scale")]
            if let Some(executor) = executor {
                let scaled = ScaledAttempt {
                    definition: job,
                    rows: load_rows::count_rows(&self.store, &dataset, read).await?,
                    dataset: dataset.clone(),
                    key,
                    executor,
                    storage: self.resources.storage.clone(),
                };
                let run = move |chunks| scaled.run(chunks, origin, sender, &*progress);
                return load_rows::stream(&self.store, &self.keys, &dataset, read, run).await;
            }
            let loaded = load_rows::load(&self.store, &self.keys, &dataset, read, progress.clone());
            let table = loaded.await?;
            if let Some(edition) = &mut edition {
                edition.load_rows(&self.store).await?;
            }
            // One thread prepares and runs: it reuses the memory that it frees.
            let run = on_thread(move || {
                let results = if let Some(edition) = edition {
                    let job = EditionJob {
                        definition: &definition,
                        dataset: &dataset,
                        table: &table,
                        key: &key,
                    };
                    edition.run(&job, origin, csv_bytes, &*progress)
                } else {
                    let prepared =
                        attempt::prepare(&definition, &dataset, table, order_key, &*progress)?;
                    // The receiver is dropped only when the worker stops.
                    let _ = sender.send(prepared.warnings());
                    prepared.run(&key, origin, csv_bytes, &*progress)
                };
                return_freed_pages();
                results
            });
            run.await
        };
        let recording = async {
            // The run has failed before its rows were read.
            let Ok(warnings) = warnings.await else {
                return (Vec::new(), true);
            };
            let recorded = queue::record_warnings(&self.store, claim, &warnings).await;
            if let Err(error) = &recorded {
                tracing::warn!(%error, "the warnings could not be stored; that is tried again when the run succeeds");
            }
            (warnings, recorded.is_ok())
        };
        let (results, (mut warnings, are_recorded)) = tokio::join!(running, recording);
        let results = results?;
        if !are_recorded || !results.warnings.is_empty() {
            warnings.extend_from_slice(&results.warnings);
            queue::record_warnings(&self.store, claim, &by_code(warnings)).await?;
        }
        Ok(results)
    }

    /// The folder for the files of the release that a job requests; `None` if it requests none.
    async fn release_folder(
        &self,
        claim: &Claim,
        job: &JobDefinition,
        release: ReleaseId,
    ) -> Result<Option<NewReleaseFolder>, WorkError> {
        let Some(location) = job.release.as_ref().and_then(JobRelease::location) else {
            return Ok(None);
        };
        let (store, storage, url) = (&self.store, &self.resources.storage, &location.url);
        let announced = NewReleaseFolder::announce(store, storage, claim, release, url);
        announced.await.map(Some)
    }

    /// Reserves the memory of the run. Waits, under the lease, until it is free.
    async fn reserve(
        &self,
        claim: &Claim,
        run: &RunToReserve<'_>,
        progress: &Progress,
    ) -> Result<MemoryReservation, WorkError> {
        if let Some(executor) = run.executor {
            return self.reserve_bytes(executor.memory, progress).await;
        }
        let (dataset, job) = (run.dataset, run.job);
        let plans = table_memory::plans(&dataset.schema, job, &Sweep::new(job)?)?;
        let read = Which::Listed(&claim.submissions);
        let size = submissions::size(&self.store, dataset.id, read).await?;
        let limits = TableLimits::new(self.settings.job_bytes, &self.resources.memory);
        let edition = run.edition;
        let beside = edition.map_or(0, |edition| edition.bytes(&dataset.schema, size));
        let needed = limits.needed(&dataset.schema, &plans, size, beside)?;
        self.reserve_bytes(needed, progress).await
    }

    async fn reserve_bytes(
        &self,
        needed: u64,
        progress: &Progress,
    ) -> Result<MemoryReservation, WorkError> {
        progress.progress(Phase::Reading, 0.0);
        tokio::select! {
            reserved = self.resources.memory.reserve_in_turn(needed) => Ok(reserved?),
            () = progress.stop_requested() => {
                Err(Problem::new(Code::Cancelled, "the run was stopped").into())
            }
        }
    }

    /// Writes the result of the attempt. Returns its outcome as a word for the log and the metrics.
    async fn end(
        &self,
        claim: &Claim,
        outcome: Result<RunResults, WorkError>,
        progress: &Progress,
    ) -> Result<&'static str, StoreError> {
        let store = &self.store;
        let fail = async |problem: Problem| {
            let document = serde_json::to_value(problem.document())?;
            queue::fail(store, claim, progress.counts(), &document).await
        };
        let (label, ending) = match outcome {
            Ok(results) => {
                let release = results.release.as_ref();
                let tables = release.iter().flat_map(|release| &release.tables);
                let stored = tables.filter_map(|table| table.content.as_ref());
                let all: usize = stored.map(|content| content.chunks.len()).sum();
                let done = AtomicUsize::new(0);
                let written = || {
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    let share = done as f64 / all as f64;
                    progress.progress(Phase::Writing, PACKED + (1.0 - PACKED) * share);
                };
                let outcome = NewRunResults {
                    steps: &results.steps,
                    sweep: &results.sweep,
                    release,
                    edition: results.edition.as_ref(),
                    written: &written,
                };
                // If the stop comes while the result is committed, the job has ended, and what is
                // written after it is refused: its lease is gone.
                let ended = tokio::select! {
                    ended = queue::succeed(store, claim, progress.counts(), outcome) => ended,
                    () = progress.stop_requested() => return self.end_stopped(claim, progress).await,
                };
                match ended {
                    Ok(ending) => ("succeeded", ending),
                    Err(error) if error.is_storage_full() => {
                        ("failed", fail(storage_full()).await?)
                    }
                    Err(
                        StoreError::BelowPolicy(problem) | StoreError::SubmissionReplaced(problem),
                    ) => ("failed", fail(*problem).await?),
                    Err(error) => return Err(error),
                }
            }
            Err(WorkError::Problem(problem)) if problem.code == Code::Cancelled => {
                return self.end_stopped(claim, progress).await;
            }
            Err(WorkError::Problem(problem)) => {
                if problem.code.status() >= 500 {
                    let code = problem.code.as_str();
                    tracing::error!(code, "a job failed by a fault of the program");
                }
                ("failed", fail(problem).await?)
            }
            Err(WorkError::Store(
                error @ (StoreError::Damaged(_) | StoreError::Seal(_) | StoreError::Json(_)),
            )) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "a job failed because data cannot be read or written"
                );
                ("failed", fail(internal()).await?)
            }
            Err(WorkError::Store(StoreError::SubmissionReplaced(problem))) => {
                ("failed", fail(*problem).await?)
            }
            Err(WorkError::Store(error)) if error.is_storage_full() => {
                ("failed", fail(storage_full()).await?)
            }
            Err(WorkError::Store(error)) => return Err(error),
            Err(WorkError::Panicked) => {
                tracing::error!("a run panicked");
                ("failed", fail(internal()).await?)
            }
        };
        Ok(ending.outcome(label))
    }

    /// Writes the end of an attempt that was stopped. Returns its outcome as [`Self::end`] does.
    async fn end_stopped(
        &self,
        claim: &Claim,
        progress: &Progress,
    ) -> Result<&'static str, StoreError> {
        let (store, counts) = (&self.store, progress.counts());
        let (label, ending) = match progress.stopped() {
            Some(StopReason::LeaseLost) => ("lease_lost", EndResult::Lost),
            Some(StopReason::ShuttingDown) => ("put_back", queue::requeue(store, claim).await?),
            Some(StopReason::TimedOut) => {
                let document = serde_json::to_value(timed_out(self.settings.max_run).document())?;
                let ending = queue::fail(store, claim, counts, &document).await?;
                ("failed", ending)
            }
            Some(StopReason::Cancelled) | None => {
                ("cancelled", queue::cancelled(store, claim, counts).await?)
            }
        };
        Ok(ending.outcome(label))
    }
}

/// A run whose memory is reserved.
struct RunToReserve<'a> {
    job: &'a JobDefinition,
    dataset: &'a StoredDataset,
    /// Its input as an edition.
    edition: Option<&'a EditionInput>,
    /// The executor that counts its rows; `None` if they are in memory.
    executor: Option<&'a NamedExecutor>,
}

impl EndResult {
    /// The outcome of an attempt, where `label` is the outcome of an attempt whose end was written.
    fn outcome(self, label: &'static str) -> &'static str {
        match self {
            Self::Written => label,
            Self::Cancelled => "cancelled",
            Self::Lost => "lease_lost",
        }
    }
}

/// Ends jobs that no worker may take any more: those without an attempt left as failed with
/// `attempts_exhausted`, those that were to be cancelled as cancelled.
pub async fn end_exhausted(store: &Store, max_attempts: u32) -> Result<(), StoreError> {
    let problem = Problem::new(
        Code::AttemptsExhausted,
        format!(
            "the worker of the job died in each of {max_attempts} attempts; check the service's log \
             and its memory limit"
        ),
    );
    let document = serde_json::to_value(problem.document())?;
    claims::end_exhausted(store, max_attempts, &document).await
}

fn storage_full() -> Problem {
    Problem::new(
        Code::StorageFull,
        "the disk of the database is full, so the result could not be stored; run the job again when \
         there is space",
    )
}

fn timed_out(limit: Duration) -> Problem {
    let limit = limit.as_secs();
    let detail = format!(
        "the job has run for {limit} s, which is workers.max_run_seconds, and was stopped; choose \
         fewer submissions or columns, or have the limit raised"
    );
    Problem::new(Code::LimitExceeded, detail)
}

fn internal() -> Problem {
    Problem::new(
        Code::Internal,
        "internal error; the service's log has the details under this job's id",
    )
}
