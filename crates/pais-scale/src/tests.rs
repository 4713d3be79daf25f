//! Runs by DataFusion, compared with runs in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;

use pais_anonymize::{
    AnonymizationRun, ColumnParts, CountError, Observer, PartCounts, Phase, RowCounter, RunError,
    StepItem, Unobserved,
};
use pais_core::cancellation::Cancellation;
use pais_core::definition::{DatasetDefinition, Job, JobDefinition};
use pais_core::schema::Schema;
use pais_core::table::{ReleasedColumn, Table};
use pais_io::read::{csv, parquet};
use pais_test_support::split_mix::SplitMix64;
use pais_test_support::{adult, raw_rows};
use serde_json::{Value, json};

use crate::codes::{CodeFile, CodeWriter};
use crate::datafusion_counter::DataFusionCounter;
use crate::encoded_run::Engine;
use crate::error::ScaleError;
use crate::remote_counter::Resubmissions;
use crate::run::{ScaleTask, ScaledRelease};
use crate::sealed::Sealer;

fn schema_of(dataset: Value) -> Arc<Schema> {
    let dataset: DatasetDefinition = serde_json::from_value(dataset).unwrap();
    Arc::new(Schema::inline(&dataset).unwrap())
}

fn job_of(job: Value) -> Job {
    let job: JobDefinition = serde_json::from_value(job).unwrap();
    job.parse().unwrap()
}

/// Writes raw rows as Parquet files of `rows` rows each.
fn write_raw(schema: &Schema, table: &Table, rows: usize, folder: &Path) {
    let table = raw_rows::as_released(schema, table.clone());
    std::fs::create_dir(folder).unwrap();
    let files = pais_io::write::parquet_files(&table, rows).unwrap();
    for (number, file) in files.enumerate() {
        let path = folder.join(format!("part-{number:03}.parquet"));
        std::fs::write(path, file.unwrap().bytes).unwrap();
    }
}

/// A table in files, and a folder for its releases.
struct Raw {
    folder: tempfile::TempDir,
    schema: Arc<Schema>,
    table: Table,
}

impl Raw {
    fn new(dataset: Value, text: &[u8], rows_of_file: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let schema = schema_of(dataset);
        let table = csv::read_table(&schema, text).unwrap();
        write_raw(&schema, &table, rows_of_file, &folder.path().join("raw"));
        std::fs::create_dir(folder.path().join("out")).unwrap();
        Self {
            folder,
            schema,
            table,
        }
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("out/release")
    }

    fn task(&self, job: &Value) -> ScaleTask {
        ScaleTask {
            input: self.folder.path().join("raw"),
            output: self.output(),
            schema: Arc::clone(&self.schema),
            job: job_of(job.clone()),
            memory: 64 << 20,
            executors: None,
        }
    }

    fn steps_in_memory(&self, job: &Value) -> Vec<StepItem> {
        let (schema, table) = (Arc::clone(&self.schema), self.table.clone());
        let observer = Unobserved::default();
        let run = AnonymizationRun::new(schema, job_of(job.clone()), table, &observer).unwrap();
        let found = run.search(&observer).unwrap();
        found.steps().iter().map(|step| step.item.clone()).collect()
    }

    /// The rows of a release in memory, sorted.
    fn rows_in_memory(&self, job: &Value) -> Vec<Vec<String>> {
        let (schema, table) = (Arc::clone(&self.schema), self.table.clone());
        let observer = Unobserved::default();
        let run = AnonymizationRun::new(schema, job_of(job.clone()), table, &observer).unwrap();
        let found = run.search(&observer).unwrap();
        let release = run.release(&found, None, &observer).unwrap();
        let table = &release.tables()[0];
        let mut rows: Vec<Vec<String>> = (0..table.rows)
            .map(|row| {
                let columns = table.columns.iter();
                let cell = |it: &ReleasedColumn| it.column.text(row).unwrap_or("").to_owned();
                columns.map(cell).collect()
            })
            .collect();
        rows.sort();
        rows
    }

    /// The rows of the release in files, in their order.
    fn rows_of_files(&self, release: &ScaledRelease) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for file in &release.manifest.files {
            let path = self.output().join(&file.name);
            let opened = std::fs::File::open(&path).unwrap();
            let names = parquet::names(&opened).unwrap();
            let read_by = pais_core::reimport::columns(&self.schema, &names);
            let read = parquet::read(&read_by, opened, Default::default(), |chunk: Table| {
                for row in 0..chunk.rows {
                    let cells = chunk.columns.iter();
                    let cell =
                        |it: &pais_core::table::Column| it.text(row).unwrap_or("").to_owned();
                    rows.push(cells.map(cell).collect());
                }
                Ok::<(), std::convert::Infallible>(())
            });
            assert_eq!(read.ok(), Some(file.rows));
            assert_eq!(std::fs::metadata(&path).unwrap().len(), file.bytes);
        }
        rows
    }

    /// The names next to a release.
    fn left(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path().join("out")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.collect()
    }
}

/// A counter that sees each statement before its engine does.
struct Watched<'a> {
    engine: DataFusionCounter,
    before: &'a (dyn Fn(usize) + Sync),
    statements: &'a Mutex<usize>,
}

impl RowCounter for Watched<'_> {
    fn expected_combinations(
        &self,
        columns: &[ColumnParts],
        observer: &dyn Observer,
    ) -> Result<u64, CountError> {
        self.engine.expected_combinations(columns, observer)
    }

    fn count(
        &self,
        columns: &[ColumnParts],
        most: Option<usize>,
        observer: &dyn Observer,
    ) -> Result<PartCounts, CountError> {
        let mut statements = self.statements.lock().unwrap();
        (self.before)(*statements);
        *statements += 1;
        drop(statements);
        self.engine.count(columns, most, observer)
    }
}

/// Runs with sets of at most `budget` records; returns the number of statements begun too.
fn run(
    task: &ScaleTask,
    budget: usize,
    observer: &dyn Observer,
    before: &(dyn Fn(usize) + Sync),
) -> (Result<ScaledRelease, ScaleError>, usize) {
    let statements = Mutex::new(0);
    let engine = Engine {
        counter: Some(&|rows, memory, sealer| {
            Ok(Box::new(Watched {
                engine: DataFusionCounter::new(rows, memory, sealer)?,
                before,
                statements: &statements,
            }))
        }),
        budget: Some(budget),
    };
    let done = engine.anonymize(task, observer);
    (done, statements.into_inner().unwrap())
}

#[test]
fn adult_has_the_steps_and_rows_that_it_has_in_memory() {
    let raw = Raw::new(
        adult::dataset("adult").unwrap(),
        &adult::csv().unwrap(),
        20_000,
    );
    for (l, budget) in [(4, 300), (2, 10_000)] {
        let job = adult::job(l);
        let (found, statements) = run(&raw.task(&job), budget, &Unobserved::default(), &|_| ());
        let found = found.unwrap();
        let expected = serde_json::to_string(&raw.steps_in_memory(&job)).unwrap();
        assert_eq!(serde_json::to_string(&found.steps).unwrap(), expected);
        // 13 histograms by class, and several rounds.
        assert!(statements >= 13 + 3, "{statements} statements");
        let mut rows = raw.rows_of_files(&found);
        rows.sort();
        assert!(rows == raw.rows_in_memory(&job));
        assert!(found.verification.holds());
        assert_eq!(raw.left(), ["release"]);
        std::fs::remove_dir_all(raw.output()).unwrap();
    }
}

/// Columns of each kind, with missing cells.
fn random_table(seed: u64) -> (Value, String, Value) {
    let mut random = SplitMix64(seed);
    let objective = ["classification", "ncp", "discernibility"][random.below(3)];
    let dataset = json!({"name": "t", "columns": [
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "day", "role": "quasi_identifier", "kind": "date"},
        {"name": "city", "role": "quasi_identifier"},
        {"name": "load", "role": "insensitive", "kind": "numeric", "missing": ["", "NA"]},
        {"name": "disease", "role": "sensitive"},
        {"name": "second", "role": "sensitive"},
        {"name": "class", "role": "class"}]});
    let mut text = "age,day,city,load,disease,second,class\n".to_owned();
    for _ in 0..60 + random.below(300) {
        let age = match random.below(12) {
            0 => String::new(),
            _ => random.below(40).to_string(),
        };
        let load = ["NA", "", "1.5", "2", "100"][random.below(5)];
        text += &format!(
            "{age},2024-01-{:02},c{},{load},d{},e{},{}\n",
            1 + random.below(28),
            random.below(5),
            random.below(9),
            random.below(9),
            random.below(2),
        );
    }
    let job = json!({
        "privacy": {"model": "lkc", "l": 1 + random.below(3), "k": 2 + random.below(6), "c": 0.9},
        "utility": {"objective": objective}});
    (dataset, text, job)
}

#[test]
fn random_tables_have_the_steps_and_rows_that_they_have_in_memory() {
    let seed: u64 = std::process::id().into();
    for case in 0..20 {
        let (dataset, text, job) = random_table(seed * 1_000 + case);
        let raw = Raw::new(dataset, text.as_bytes(), 100);
        let (found, _) = run(&raw.task(&job), 20, &Unobserved::default(), &|_| ());
        let found = found.unwrap_or_else(|error| panic!("{error}, seed {seed}, case {case}"));
        assert_eq!(
            found.steps,
            raw.steps_in_memory(&job),
            "seed {seed}, case {case}"
        );
        let mut rows = raw.rows_of_files(&found);
        rows.sort();
        let mut expected = raw.rows_in_memory(&job);
        // Parquet has null for these words.
        for cell in expected.iter_mut().flatten().filter(|cell| *cell == "NA") {
            cell.clear();
        }
        expected.sort();
        assert_eq!(rows, expected, "seed {seed}, case {case}");
    }
}

/// An engine that counts a row too many in its third and its fifth statement.
struct ErringCounter {
    engine: DataFusionCounter,
    statements: Mutex<usize>,
}

impl RowCounter for ErringCounter {
    fn expected_combinations(
        &self,
        columns: &[ColumnParts],
        observer: &dyn Observer,
    ) -> Result<u64, CountError> {
        self.engine.expected_combinations(columns, observer)
    }

    fn count(
        &self,
        columns: &[ColumnParts],
        most: Option<usize>,
        observer: &dyn Observer,
    ) -> Result<PartCounts, CountError> {
        let mut counts = self.engine.count(columns, most, observer)?;
        let mut statements = self.statements.lock().unwrap();
        *statements += 1;
        if [3, 5].contains(&*statements) {
            counts.rows[0] += 1;
        }
        Ok(counts)
    }
}

#[test]
fn statements_that_are_asked_for_again_are_counted() {
    let (dataset, text, mut job) = random_table(11);
    job["utility"] = json!({"objective": "classification"});
    let raw = Raw::new(dataset, text.as_bytes(), 100);
    let engine = Engine {
        counter: Some(&|rows, memory, sealer| {
            Ok(Box::new(ErringCounter {
                engine: DataFusionCounter::new(rows, memory, sealer)?,
                statements: Mutex::default(),
            }))
        }),
        budget: Some(20),
    };
    let found = engine.anonymize(&raw.task(&job), &Unobserved::default());
    let found = found.unwrap();
    assert_eq!(found.steps, raw.steps_in_memory(&job));
    let expected = Resubmissions {
        guard: 2,
        ..Resubmissions::default()
    };
    assert_eq!(found.resubmissions, expected);
}

/// An observer that stops the run in a phase, or at a statement.
#[derive(Default)]
struct Stopping {
    cancellation: Cancellation,
    in_phase: Option<Phase>,
}

impl Observer for Stopping {
    fn progress(&self, phase: Phase, fraction: f64) {
        if Some(phase) == self.in_phase && fraction > 0.0 {
            self.cancellation.cancel();
        }
    }

    fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }
}

#[test]
fn a_stopped_run_leaves_nothing() {
    let raw = Raw::new(
        adult::dataset("adult").unwrap(),
        &adult::csv().unwrap(),
        50_000,
    );
    let task = raw.task(&adult::job(4));
    let phases = [
        Phase::Reading,
        Phase::Searching,
        Phase::Writing,
        Phase::Verifying,
    ];
    for phase in phases {
        let observer = Stopping {
            in_phase: Some(phase),
            ..Stopping::default()
        };
        let (stopped, _) = run(&task, 1_000, &observer, &|_| ());
        let is_cancelled = matches!(stopped, Err(ScaleError::Run(RunError::Cancelled)));
        assert!(is_cancelled, "{phase:?}: {:?}", stopped.err());
        assert_eq!(raw.left(), Vec::<String>::new());
    }
    let observer = Stopping::default();
    let stop_in = |statement| {
        if statement == 14 {
            observer.cancellation.cancel();
        }
    };
    let (stopped, statements) = run(&task, 1_000, &observer, &stop_in);
    assert!(matches!(stopped, Err(ScaleError::Run(RunError::Cancelled))));
    assert_eq!((statements, raw.left().len()), (15, 0));
}

/// The bytes of the open files in a directory that have no name.
pub(crate) fn nameless_files(directory: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        if target.starts_with(directory) && target.to_string_lossy().contains("(deleted)") {
            found.push(std::fs::read(entry.path()).unwrap());
        }
    }
    found
}

#[test]
fn no_value_is_in_a_temporary_file_in_clear() {
    let (dataset, text, job) = random_table(7);
    let text = text
        .replace(",c1,", ",zz-planted-city,")
        .replace(",d1,", ",zz-planted-disease,");
    let raw = Raw::new(dataset, text.as_bytes(), 1_000);
    let directory = raw.folder.path().join("out").canonicalize().unwrap();
    let seen = Mutex::new(0);
    let look = |_| {
        for bytes in nameless_files(&directory) {
            assert!(!bytes.windows(10).any(|part| part == b"zz-planted"));
            *seen.lock().unwrap() += bytes.len();
        }
        // Nothing has a name until it is a release.
        assert_eq!(raw.left(), Vec::<String>::new());
    };
    let (found, _) = run(&raw.task(&job), 30, &Unobserved::default(), &look);
    let found = found.unwrap();
    assert!(seen.into_inner().unwrap() > 100);
    let rows = raw.rows_of_files(&found);
    assert!(
        rows.iter()
            .flatten()
            .any(|cell| cell == "zz-planted-disease")
    );
    assert!(nameless_files(&directory).is_empty());
}

/// A table of distinct rows, each with its number as an insensitive value.
fn numbered_rows(rows: usize) -> Raw {
    let dataset = json!({"name": "t", "columns": [
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "row", "role": "insensitive"}]});
    let mut text = "age,row\n".to_owned();
    for row in 0..rows {
        text += &format!("{},r{row}\n", row % 7);
    }
    Raw::new(dataset, text.as_bytes(), 1_000)
}

#[test]
fn each_row_is_equally_often_in_each_place() {
    const ROWS: usize = 40;
    const RELEASES: u64 = 200;
    let raw = numbered_rows(ROWS);
    // By row, how often it was in each fifth of the release.
    let mut counts = BTreeMap::<String, [u32; 5]>::new();
    let mut orders = Vec::new();
    for seed in 0..RELEASES {
        let mut job = json!({"privacy": {"model": "k_anonymity", "k": 5}, "seed": seed});
        job["acknowledge_unchanged"] = json!({"row": "the test finds rows by it"});
        let (found, _) = run(&raw.task(&job), 100, &Unobserved::default(), &|_| ());
        let rows = raw.rows_of_files(&found.unwrap());
        let order: Vec<String> = rows.into_iter().map(|row| row[1].clone()).collect();
        for (place, row) in order.iter().enumerate() {
            counts.entry(row.clone()).or_default()[place * 5 / ROWS] += 1;
        }
        if seed == 0 {
            std::fs::remove_dir_all(raw.output()).unwrap();
            // The seed decides.
            let (again, _) = run(&raw.task(&job), 3, &Unobserved::default(), &|_| ());
            let again = raw.rows_of_files(&again.unwrap()).into_iter();
            assert_eq!(order, again.map(|row| row[1].clone()).collect::<Vec<_>>());
        }
        orders.push(order);
        std::fs::remove_dir_all(raw.output()).unwrap();
    }
    assert_eq!(counts.len(), ROWS);
    let expected = RELEASES as f64 / 5.0;
    let statistic = |counts: &[u32; 5]| -> f64 {
        let terms = counts.iter();
        terms
            .map(|&count| (f64::from(count) - expected).powi(2) / expected)
            .sum()
    };
    // The sum over the rows has 4 degrees of freedom for each of 39 independent ones: the 99.9th
    // percentile of chi-square with 156 is 217.
    let sum: f64 = counts.values().map(statistic).sum();
    assert!(sum < 217.0, "{sum}");
    orders.sort();
    orders.dedup();
    assert_eq!(orders.len(), RELEASES as usize);
}

fn spooled(rows: &[[u32; 3]], sealer: &Sealer) -> CodeFile {
    let mut writer = CodeWriter::new(sealer.file().unwrap(), 3, 1_000);
    rows.iter()
        .for_each(|row| writer.push(row.iter().copied()).unwrap());
    writer.finish(&mut |_| ()).unwrap()
}

/// By combination of parts, its rows and the sum of their numbers.
pub(crate) type Counts = BTreeMap<Vec<u32>, (u64, u64)>;

pub(crate) fn counted(counts: &PartCounts) -> Counts {
    let records = counts.rows.iter().zip(&counts.number_sums).enumerate();
    let records = records.map(|(record, (&rows, &sum))| {
        let parts = counts.parts.iter().map(|parts| parts[record]).collect();
        (parts, (rows, sum))
    });
    records.collect()
}

#[test]
fn combinations_are_counted_with_spills_and_with_several_keys() {
    let directory = tempfile::tempdir().unwrap();
    let sealer = Sealer::new(directory.path().to_owned()).unwrap();
    let mut random = SplitMix64(3);
    let values = 1 << 16;
    let rows: Vec<[u32; 3]> = (0..200_000)
        .map(|_| [0, 1, 2].map(|_| random.below(values) as u32))
        .collect();
    let file = Arc::new(spooled(&rows, &sealer));
    // Of up to 2^40 parts each, so that three columns take two keys.
    let sparse: Vec<u32> = (0..values as u32)
        .map(|value| value.wrapping_mul(65_521))
        .collect();
    let columns: Vec<ColumnParts> = (0..3)
        .map(|column| ColumnParts {
            column,
            part_of: sparse.clone(),
            parts: u32::MAX,
        })
        .collect();
    let mut expected = Counts::new();
    for (number, row) in rows.iter().enumerate() {
        let parts = row.iter().map(|&value| sparse[value as usize]).collect();
        let (rows, sum) = expected.entry(parts).or_default();
        *rows += 1;
        *sum += number as u64;
    }
    let counter = DataFusionCounter::new(Arc::clone(&file), 12 << 20, sealer.clone()).unwrap();
    let files = sealer.count();
    let found = counter
        .count(&columns, None, &Unobserved::default())
        .unwrap();
    assert!(counted(&found) == expected);
    assert!(sealer.count() > files, "nothing was spilled");
    let most = Some(expected.len() - 1);
    let refused = counter.count(&columns, most, &Unobserved::default());
    assert_eq!(refused.err(), Some(CountError::MoreThan));
    // Without columns there is one combination, of all rows.
    let all = counter.count(&[], None, &Unobserved::default()).unwrap();
    let rows = rows.len() as u64;
    assert_eq!(
        (all.rows, all.number_sums),
        (vec![rows], vec![rows * (rows - 1) / 2])
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn an_output_directory_that_is_not_empty_is_refused_and_kept() {
    let raw = numbered_rows(30);
    std::fs::create_dir(raw.output()).unwrap();
    std::fs::write(raw.output().join("kept"), "text").unwrap();
    let job = json!({"privacy": {"model": "k_anonymity", "k": 5}});
    let (refused, _) = run(&raw.task(&job), 100, &Unobserved::default(), &|_| ());
    assert!(matches!(refused, Err(ScaleError::File { .. })));
    assert_eq!(std::fs::read(raw.output().join("kept")).unwrap(), b"text");
}
