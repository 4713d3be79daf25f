//! Attempts that are stopped in each of their phases.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use pais_anonymize::{Observer, Phase};
use pais_core::cancellation::Cancellation;
use pais_core::codebook::CodebookOrganization;
use pais_core::definition::{DatasetDefinition, DatasetId};
use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_io::read::csv;
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{RunResults, prepare};
use crate::db::audit::Actor;
use crate::db::dataset_revisions::DatasetRevision;
use crate::db::datasets::StoredDataset;
use crate::db::key_ring::KeyRing;
use crate::engine::WorkError;
use crate::engine::release_packing::ReleaseOrigin;
use crate::engine::rendering::RenderedTables;
use crate::ids::{JobId, OrganizationId, ReleaseId};
use crate::problem::Code;
use crate::storage::{Storage, StorageLimits};

/// Number of rows. A report of progress is at most a small part of the work on them.
const ROWS: usize = 3_000;

/// Asks to stop at a report of progress, and counts the reports.
#[derive(Default)]
struct StopAt {
    report: usize,
    reports: AtomicUsize,
    /// Reports that began when the attempt was already asked to stop.
    late_reports: AtomicUsize,
    phase: OnceLock<Phase>,
    asked: OnceLock<Instant>,
    cancellation: Cancellation,
}

impl Observer for StopAt {
    fn progress(&self, phase: Phase, _: f64) {
        // Counted before the request: its thread may wait for a processor before it asks.
        if self.cancellation.is_cancelled() {
            self.late_reports.fetch_add(1, Ordering::SeqCst);
        }
        if self.reports.fetch_add(1, Ordering::SeqCst) == self.report {
            let _ = self.phase.set(phase);
            let _ = self.asked.set(Instant::now());
            self.cancellation.cancel();
        }
    }

    fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }
}

/// A dataset of persons with a sensitive column, a class and a note.
struct Hospital {
    dataset: StoredDataset,
    keys: KeyRing,
    table: Table,
}

impl Hospital {
    fn new(codes: bool) -> Self {
        let mut columns = json!([
            { "name": "patient", "role": "subject" },
            { "name": "age", "role": "quasi_identifier", "kind": "numeric" },
            { "name": "zip", "role": "quasi_identifier", "taxonomy": { "generate": "mask_right" } },
            { "name": "disease", "role": "sensitive" },
            { "name": "outcome", "role": "class" },
            { "name": "note", "role": "insensitive" },
        ]);
        if codes {
            columns.as_array_mut().unwrap().push(json!({
                "name": "codes", "role": "quasi_identifier", "kind": "set",
            }));
        }
        let mut file = "patient,age,zip,disease,outcome,note,codes\n".to_owned();
        for row in 0..ROWS {
            file += &format!(
                "{},{},{},d{},o{},n{row},{}\n",
                row / 2,
                20 + row * 7 % 60,
                1000 + row * 13 % 100,
                row % 7,
                row % 3,
                ["a|b", "a", "b|c", "c"][row % 4],
            );
        }
        if !codes {
            file = file
                .lines()
                .map(|line| line.rsplit_once(',').unwrap().0.to_owned() + "\n")
                .collect();
        }
        let definition = json!({ "name": "patients", "columns": columns });
        let definition: DatasetDefinition = serde_json::from_value(definition).unwrap();
        let schema = Arc::new(Schema::inline(&definition).unwrap());
        let keys = KeyRing::new(&[7; 32]);
        let id = DatasetId(Uuid::nil());
        Self {
            table: csv::read_table(&schema, file.as_bytes()).unwrap(),
            dataset: StoredDataset {
                id,
                definition,
                schema,
                wrapped_key: keys.new_data_key(id).unwrap(),
                revision: DatasetRevision::default(),
                columns_revision: DatasetRevision::default(),
            },
            keys,
        }
    }

    fn attempt(&self, job: &Value, observer: &StopAt) -> Result<RunResults, WorkError> {
        let key = self.keys.open(self.dataset.id, &self.dataset.wrapped_key);
        let origin = ReleaseOrigin {
            id: ReleaseId::new(),
            folder: None,
            organization: OrganizationId(Uuid::nil()),
            holder: CodebookOrganization {
                name: "hospital".to_owned(),
                display_name: None,
            },
            job: JobId(Uuid::nil()),
            dataset: self.dataset.id,
            submissions: Vec::new(),
            row_warnings: Vec::new(),
            definition: self.dataset.definition.clone(),
            name: None,
            by: Actor::SERVICE,
            created_at: OffsetDateTime::UNIX_EPOCH,
            rows: None,
        };
        let prepared = prepare(
            job,
            &self.dataset,
            self.table.clone(),
            [3; 32].into(),
            observer,
        )?;
        let spool = tempfile::tempdir().unwrap();
        let limits = StorageLimits {
            min_free: 0,
            reserve: 0,
            spool: u64::MAX,
        };
        let storage = Storage::new(spool.path(), spool.path(), limits);
        let ended = prepared.run(&key.unwrap(), origin, &storage, observer);
        // Rendered tables are kept only when the release is stored.
        let left = || std::fs::read_dir(spool.path()).unwrap().count();
        let rendered = ended.as_ref().map_or(0, |it| it.rendered.files.len());
        assert_eq!(left(), rendered);
        let ended = ended.map(|it| RunResults {
            rendered: RenderedTables::default(),
            ..it
        });
        assert_eq!(left(), 0);
        ended
    }
}

/// Whether an attempt ended because it was stopped.
fn is_stopped(ended: &Result<RunResults, WorkError>) -> bool {
    matches!(ended, Err(WorkError::Problem(problem)) if problem.code == Code::Cancelled)
}

#[test]
fn an_attempt_ends_wherever_it_is_stopped() {
    let lkc = json!({ "privacy": { "model": "lkc", "l": 2, "k": 5, "c": 0.9 }, "release": true, "seed": 7 });
    let local = json!({ "privacy": { "model": "lkc", "l": 2, "k": 5, "c": 0.9 }, "recoding": "local", "release": true });
    let anatomized = json!({ "privacy": { "model": "l_diversity", "k": 2, "l": 2 }, "output": "anatomized", "release": true });
    let sweep = json!({ "privacy": { "model": "k_anonymity", "k": [2, 5, 9] } });
    // The column has a value of its own in each row.
    let [lkc, local, anatomized, sweep] = [lkc, local, anatomized, sweep].map(|mut job| {
        job["acknowledge_unchanged"] = json!({ "note": "a long table is wanted" });
        job
    });
    let (plain, with_sets) = (Hospital::new(false), Hospital::new(true));
    for (hospital, job) in [
        (&plain, &lkc),
        (&plain, &local),
        (&plain, &anatomized),
        (&plain, &sweep),
        (&with_sets, &lkc),
    ] {
        let whole = StopAt {
            report: usize::MAX,
            ..StopAt::default()
        };
        hospital.attempt(job, &whole).unwrap();
        let reports = whole.reports.into_inner();
        let mut phases = Vec::new();
        let mut slow_stops = Vec::new();
        // All reports of a short run, some hundred of a long one, and the last ones.
        let step = (reports / 100).max(1);
        let stops = (0..reports).step_by(step);
        for report in stops.chain(reports.saturating_sub(10)..reports) {
            let observer = StopAt {
                report,
                ..StopAt::default()
            };
            let ended = hospital.attempt(job, &observer);
            // A search of another length, since threads share it.
            let Some(asked) = observer.asked.get() else {
                continue;
            };
            let after = observer.late_reports.load(Ordering::SeqCst);
            // The last report of an attempt is that its results are there.
            let is_last = ended.is_ok() && after == 0;
            assert!(
                is_stopped(&ended) || is_last,
                "{job}: {report} of {reports}"
            );
            // The reports of threads that were about to make them.
            assert!(
                after <= 4,
                "{job}: {after} reports after {report} of {reports}"
            );
            if asked.elapsed() > Duration::from_secs(1) {
                slow_stops.push(report);
            }
            phases.extend(observer.phase.get().copied());
        }
        // Another program may have the processor during one of them. A slow phase has many stops.
        assert!(slow_stops.len() <= 1, "{job}: {slow_stops:?} of {reports}");
        phases.sort();
        phases.dedup();
        let expected = if job.get("release").is_some() { 4 } else { 2 };
        assert!(phases.len() >= expected, "{job}: {phases:?}");
    }
}
