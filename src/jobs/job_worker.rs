//! A worker: claims a job, makes an attempt at it, and writes the result.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::allocator::return_freed_pages;
use crate::db::audit::Actor;
use crate::db::claims::{self, Claim};
use crate::db::datasets::StoredDataset;
use crate::db::editions::EditionQueue;
use crate::db::queue::{self, EndResult, NewRunResults};
use crate::db::seal::{DataKey, SealedItem};
use crate::db::submissions::Which;
use crate::db::{Store, StoreError, datasets, editions, organizations, submissions};
use crate::executors::NamedExecutor;
use crate::ids::ReleaseId;
use crate::memory::MemoryReservation;
use crate::problem::{Code, Problem};
use crate::telemetry::traces::TraceSpan;
use pais_anonymize::{Observer, Phase};
use pais_core::definition::{JobDefinition, JobRelease, Sweep};
use pais_core::warning::{Warning, by_code};

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
    pub(super) resources: Resources,
    pub(super) settings: WorkerPoolSettings,
    pub(super) slots: Arc<WorkerSlots>,
    pub(super) heartbeats: Heartbeats,
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
                Err(error) => tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "no job could be claimed from the queue"
                ),
            }
            tokio::select! {
                () = self.resources.wake.notified() => {}
                () = tokio::time::sleep(self.settings.poll) => {}
                () = self.shutdown.cancelled() => {}
            }
        }
    }

    /// Claims the next job. It first waits for a slot in this process, so that the end of this process costs a
    /// waiting job no attempt.
    async fn claim(&self) -> Result<Option<(Claim, WorkerSlot)>, StoreError> {
        let rules = self.settings.claim_rules();
        let Resources { store, keys, .. } = &self.resources;
        end_exhausted(store, rules.max_attempts).await?;
        let queue = EditionQueue {
            store,
            keys,
            quotas: self.settings.quotas,
        };
        if let Err(error) = editions::settle(queue).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                error,
                "editions could not be brought on; this is tried again"
            );
        }
        let claimable = claims::claimable(store, &rules).await?;
        for isolation in self.slots.order(claimable) {
            let slot = tokio::select! {
                slot = self.slots.take(isolation) => slot,
                () = self.shutdown.cancelled() => return Ok(None),
            };
            let Some(slot) = slot else { continue };
            if let Some(claim) = claims::claim(store, &rules, isolation).await? {
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
        let outcome = self.run(&claim, &progress).await;
        let ended = self.end(&claim, outcome, &progress).await;
        self.resources.attempts.send_replace(Some(JobKey {
            organization: claim.organization,
            job: claim.job,
        }));
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

    /// Runs the attempt: reads, searches, verifies and packs. It writes only the warnings to the database.
    async fn run(&self, claim: &Claim, progress: &Arc<Progress>) -> Result<HeldResults, WorkError> {
        let job = self.load(claim, progress).await?;
        let memory = self.reserve(claim, &job, progress).await?;
        progress.begin();
        let origin = self.origin(claim, &job).await?;
        let of_rows = origin.row_warnings.clone();
        let (sender, warnings) = oneshot::channel();
        let (results, early) = tokio::join!(
            self.search(claim, job, origin, sender, progress),
            self.record_early_warnings(claim, of_rows, warnings),
        );
        let results = results?;
        if !early.are_recorded || !results.warnings.is_empty() {
            let warnings = [early.warnings, results.warnings.clone()].concat();
            queue::record_warnings(&self.resources.store, claim, &by_code(warnings)).await?;
        }
        Ok(HeldResults {
            results,
            _memory: memory,
        })
    }

    /// Loads what the job needs before its rows are read.
    async fn load(&self, claim: &Claim, progress: &Progress) -> Result<LoadedJob, WorkError> {
        let Resources {
            store,
            keys,
            storage,
            executors,
            ..
        } = &self.resources;
        let dataset = datasets::load(store, claim.organization, claim.dataset).await?;
        let dataset =
            dataset.ok_or_else(|| Problem::new(Code::DatasetDeleted, "the dataset was deleted"))?;
        locations::check_unchanged(store, storage, claim.organization, &dataset).await?;
        let key = dataset.open_key(keys)?;
        let item = SealedItem::Definition(claim.job);
        let definition = claim.definition.clone().open(&key, item)?;
        let (job, executor) = attempt::with_executor(&definition)?;
        let executor = executor.map(|name| executors.find(&name).cloned());
        let edition = match editions::plan(store, claim.job).await? {
            Some(plan) => {
                // Which releases are needed is known when their rows are, and then so is the memory for all.
                let read = Which::Listed(&claim.submissions);
                let rows = submissions::size(store, dataset.id, read).await?.rows;
                let bytes = EditionInput::source_bytes(&plan, rows);
                let _reserved = self.reserve_bytes(bytes, progress).await?;
                Some(EditionInput::load(store, &key, &dataset, claim, plan).await?)
            }
            None => {
                let mut connection = store.connection().await?;
                submissions::lock_current(&mut connection, &claim.submissions).await?;
                None
            }
        };
        Ok(LoadedJob {
            executor: executor.transpose()?,
            dataset,
            key,
            definition,
            job,
            edition,
        })
    }

    /// Reserves the memory of the run. Waits, under the lease, until it is free.
    async fn reserve(
        &self,
        claim: &Claim,
        loaded: &LoadedJob,
        progress: &Progress,
    ) -> Result<MemoryReservation, WorkError> {
        if let Some(executor) = &loaded.executor {
            return self.reserve_bytes(executor.memory, progress).await;
        }
        let (dataset, job) = (&loaded.dataset, &loaded.job);
        let plans = table_memory::plans(&dataset.schema, job, &Sweep::new(job)?)?;
        let read = Which::Listed(&claim.submissions);
        let size = submissions::size(&self.resources.store, dataset.id, read).await?;
        let limits = TableLimits::new(self.settings.job_bytes, &self.resources.memory);
        let edition = loaded.edition.as_ref();
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
            () = progress.stop_requested() => Err(stopped().into()),
        }
    }

    /// Where the release of the job comes from. A folder for its files, if the job requests one, is announced.
    async fn origin(&self, claim: &Claim, loaded: &LoadedJob) -> Result<ReleaseOrigin, WorkError> {
        let (store, storage) = (&self.resources.store, &self.resources.storage);
        let id = ReleaseId::new();
        let folder = match loaded.job.release.as_ref().and_then(JobRelease::location) {
            Some(location) => {
                let url = &location.url;
                Some(NewReleaseFolder::announce(store, storage, claim, id, url).await?)
            }
            None => None,
        };
        Ok(ReleaseOrigin {
            id,
            folder,
            organization: claim.organization,
            holder: organizations::holder(store, claim.organization).await?,
            job: claim.job,
            dataset: claim.dataset,
            submissions: claim.submissions.clone(),
            row_warnings: submissions::person_warnings(store, claim.dataset, &claim.submissions)
                .await?,
            definition: loaded.dataset.definition.clone(),
            name: loaded.edition.as_ref().map(EditionInput::name),
            by: Actor::SERVICE,
            created_at: store.now(),
            rows: None,
        })
    }

    /// Loads the rows, and searches, verifies and packs on a thread of its own. `warnings` receives what is known
    /// before the search.
    async fn search(
        &self,
        claim: &Claim,
        loaded: LoadedJob,
        origin: ReleaseOrigin,
        warnings: oneshot::Sender<Vec<Warning>>,
        progress: &Arc<Progress>,
    ) -> Result<RunResults, WorkError> {
        let Resources {
            store,
            keys,
            storage,
            ..
        } = &self.resources;
        let progress = progress.clone();
        let read = Which::Listed(&claim.submissions);
        #[cfg(feature = "scale")]
        if let Some(executor) = loaded.executor {
            let scaled = ScaledAttempt {
                definition: loaded.job,
                rows: load_rows::count_rows(store, &loaded.dataset, read).await?,
                dataset: loaded.dataset.clone(),
                key: loaded.key,
                executor,
                storage: storage.clone(),
            };
            let run = move |chunks| scaled.run(chunks, origin, warnings, &*progress);
            return load_rows::stream(store, keys, &loaded.dataset, read, run).await;
        }
        let LoadedJob {
            dataset,
            key,
            definition,
            mut edition,
            ..
        } = loaded;
        let table = load_rows::load(store, keys, &dataset, read, progress.clone()).await?;
        if let Some(edition) = &mut edition {
            edition.load_rows(store).await?;
        }
        let storage = storage.clone();
        // One thread prepares and runs: it reuses the memory that it frees.
        let run = on_thread(move || {
            let results = if let Some(edition) = edition {
                let job = EditionJob {
                    definition: &definition,
                    dataset: &dataset,
                    table: &table,
                    key: &key,
                };
                edition.run(&job, origin, &storage, &*progress)
            } else {
                let order_key = key.order_key();
                let prepared =
                    attempt::prepare(&definition, &dataset, table, order_key, &*progress)?;
                // The receiver is dropped only when the worker stops.
                let _ = warnings.send(prepared.warnings());
                prepared.run(&key, origin, &storage, &*progress)
            };
            return_freed_pages();
            results
        });
        run.await
    }

    /// Stores the warnings about the rows and those that a run sends before its end.
    async fn record_early_warnings(
        &self,
        claim: &Claim,
        of_rows: Vec<Warning>,
        warnings: oneshot::Receiver<Vec<Warning>>,
    ) -> EarlyWarnings {
        // A run that fails before its rows are read sends none.
        let of_run = warnings.await.unwrap_or_default();
        let warnings = by_code([of_rows, of_run].concat());
        let recorded = queue::record_warnings(&self.resources.store, claim, &warnings).await;
        if let Err(error) = &recorded {
            tracing::warn!(
                error = error as &dyn std::error::Error,
                "the warnings could not be stored; that is tried again when the run succeeds"
            );
        }
        EarlyWarnings {
            warnings,
            are_recorded: recorded.is_ok(),
        }
    }

    /// Writes the result of the attempt. Returns its outcome as a word for the log and the metrics.
    async fn end(
        &self,
        claim: &Claim,
        outcome: Result<HeldResults, WorkError>,
        progress: &Progress,
    ) -> Result<&'static str, StoreError> {
        let stored = match outcome {
            Ok(HeldResults { results, _memory }) => {
                let stored = self.store_results(claim, &results, progress).await;
                if let (Ok(EndResult::Written), Some(release)) = (&stored, &results.release) {
                    let storage = &self.resources.storage;
                    results.rendered.keep(release.id, storage).await;
                }
                stored
            }
            Err(error) => Err(error),
        };
        let problem = match stored {
            Ok(ending) => return Ok(ending.outcome("succeeded")),
            Err(error) => failure(error)?,
        };
        if problem.code == Code::Cancelled {
            return self.end_stopped(claim, progress).await;
        }
        let document = serde_json::to_value(problem.document())?;
        let store = &self.resources.store;
        let ending = queue::fail(store, claim, progress.counts(), &document).await?;
        Ok(ending.outcome("failed"))
    }

    /// Stores the results of a run.
    ///
    /// # Errors
    /// `cancelled` if the run is to stop first; when the database fails.
    async fn store_results(
        &self,
        claim: &Claim,
        results: &RunResults,
        progress: &Progress,
    ) -> Result<EndResult, WorkError> {
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
        let results = NewRunResults {
            steps: &results.steps,
            sweep: &results.sweep,
            release,
            edition: results.edition.as_ref(),
            written: &written,
        };
        // If the stop comes while the result is committed, the job has ended, and what is
        // written after it is refused: its lease is gone.
        let store = &self.resources.store;
        tokio::select! {
            ended = queue::succeed(store, claim, progress.counts(), results) => Ok(ended?),
            () = progress.stop_requested() => Err(stopped().into()),
        }
    }

    /// Writes the end of an attempt that was stopped. Returns its outcome as [`Self::end`] does.
    async fn end_stopped(
        &self,
        claim: &Claim,
        progress: &Progress,
    ) -> Result<&'static str, StoreError> {
        let (store, counts) = (&self.resources.store, progress.counts());
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

/// A claimed job with what it needs before its rows are read.
struct LoadedJob {
    dataset: StoredDataset,
    key: DataKey,
    /// As it was sent.
    definition: Value,
    job: JobDefinition,
    /// The executor that counts its rows; `None` if they are in memory.
    executor: Option<NamedExecutor>,
    /// Its input as an edition.
    edition: Option<EditionInput>,
}

/// The results of a run, with the memory that they are in.
struct HeldResults {
    results: RunResults,
    _memory: MemoryReservation,
}

/// The warnings that a run has sent before its end.
struct EarlyWarnings {
    warnings: Vec<Warning>,
    are_recorded: bool,
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

/// The problem of a job whose attempt ended with this error.
///
/// # Errors
/// An error after which another attempt may succeed.
fn failure(error: WorkError) -> Result<Problem, StoreError> {
    match error {
        WorkError::Problem(problem) => {
            if problem.code != Code::Cancelled && problem.code.status() >= 500 {
                let code = problem.code.as_str();
                tracing::error!(code, "a job failed by a fault of the program");
            }
            Ok(problem)
        }
        WorkError::Store(
            StoreError::BelowPolicy(problem) | StoreError::SubmissionReplaced(problem),
        ) => Ok(*problem),
        WorkError::Store(error) if error.is_storage_full() => Ok(storage_full()),
        WorkError::Store(error) if error.is_permanent() => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a job failed because data cannot be read or written"
            );
            Ok(internal())
        }
        WorkError::Store(error) => Err(error),
        WorkError::Panicked => {
            tracing::error!("a run panicked");
            Ok(internal())
        }
    }
}

fn stopped() -> Problem {
    Problem::new(Code::Cancelled, "the run was stopped")
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
