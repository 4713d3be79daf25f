//! A long table and one with a tenth of its rows: time and memory should grow linearly with the
//! rows.
//!
//! *K* grows with the rows, so that the same specializations are valid and both searches perform
//! the same steps.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use pais_anonymize::{AnonymizationRun, Unobserved};
use pais_core::definition::{DatasetDefinition, JobDefinition};
use pais_core::schema::Schema;
use pais_core::taxonomy::TreeLimits;
use pais_io::chunk::Assembler;
use pais_io::read::{ReadLimits, csv};
use serde_json::{Value, json};

use pais_test_support::median::median;
use pais_test_support::{adult, enlarged, memory};

/// Rows and K of each table.
const TABLES: [(usize, u32); 2] = [(1_000_000, 20), (10_000_000, 200)];

/// The number of values that the adversary knows.
const L: u32 = 4;

/// Runs of each measurement; the median is the result.
const RUNS: usize = 3;

/// The results of a table: seconds and bytes of each run.
#[derive(Default)]
struct LongTable {
    steps: u32,
    search: Vec<f64>,
    file_to_file: Vec<f64>,
    peak: Vec<f64>,
}

/// Measures both tables in turn, so that other load of the machine affects both: the search in this
/// process, and file to file by `pais anonymize`.
pub(crate) fn measure(folder: &Path) -> anyhow::Result<Value> {
    let mut measured = [LongTable::default(), LongTable::default()];
    let mut tables = Vec::new();
    for (rows, k) in TABLES {
        let file = enlarged::file(folder, &adult::csv()?, rows)?;
        let mut job = adult::job(L);
        job["privacy"]["k"] = k.into();
        tables.push((file, job));
    }
    let prepared: Vec<_> = tables
        .iter()
        .map(|(file, job)| prepare(file, job))
        .collect::<Result<_, _>>()?;
    for _ in 0..RUNS {
        for (prepared, measured) in prepared.iter().zip(&mut measured) {
            let began = Instant::now();
            let steps = prepared.search(&Unobserved::default())?;
            measured.search.push(began.elapsed().as_secs_f64());
            measured.steps = steps.steps().last().map_or(0, |last| last.item.step);
        }
    }
    drop(prepared);
    for _ in 0..RUNS {
        for ((file, job), measured) in tables.iter().zip(&mut measured) {
            let (seconds, peak) = file_to_file(folder, file, job)?;
            measured.file_to_file.push(seconds);
            measured.peak.push(peak as f64);
        }
    }
    println!("Adult, L = {L}: long tables");
    println!(
        "{:>10} {:>4} {:>9} {:>6} {:>13} {:>9}",
        "rows", "K", "search", "steps", "file to file", "peak MiB"
    );
    let mut results = Vec::new();
    for ((rows, k), measured) in TABLES.into_iter().zip(&measured) {
        let search = median(&measured.search);
        let file_to_file = median(&measured.file_to_file);
        let (steps, peak) = (measured.steps, median(&measured.peak));
        println!(
            "{rows:>10} {k:>4} {search:>9.3} {steps:>6} {file_to_file:>13.2} {:>9}",
            peak as u64 >> 20
        );
        results.push(json!({
            "rows": rows, "l": L, "k": k, "search_seconds": search, "steps": steps,
            "file_to_file_seconds": file_to_file, "peak_bytes": peak as u64,
        }));
    }
    let ratio = |of: fn(&LongTable) -> f64| of(&measured[1]) / of(&measured[0]);
    let ratios = json!({
        "search": ratio(|table| median(&table.search)),
        "search_per_step": ratio(|table| median(&table.search) / f64::from(table.steps.max(1))),
        "file_to_file": ratio(|table| median(&table.file_to_file)),
        "peak": ratio(|table| median(&table.peak)),
    });
    println!("ratios {ratios}");
    Ok(json!({ "tables": results, "ratios": ratios }))
}

/// Reads the table of a file and prepares its job.
fn prepare(file: &Path, job: &Value) -> anyhow::Result<AnonymizationRun> {
    const LIMITS: TreeLimits = TreeLimits {
        leaves: 10_000,
        depth: 20,
    };
    let definition: DatasetDefinition = serde_json::from_value(adult::dataset("adult")?)?;
    let schema = Arc::new(Schema::resolve(&definition, LIMITS, |_| None)?);
    let job: JobDefinition = serde_json::from_value(job.clone())?;
    let job = job.parse()?;
    let mut assembler = Assembler::default();
    csv::read(&schema, File::open(file)?, ReadLimits::default(), |chunk| {
        assembler.push(chunk)
    })
    .map_err(|failure| anyhow!("the file was refused: {failure:?}"))?;
    Ok(AnonymizationRun::new(
        schema,
        job,
        assembler.finish(),
        &Unobserved::default(),
    )?)
}

/// Seconds and peak memory in bytes of `pais anonymize` from CSV to CSV.
fn file_to_file(folder: &Path, file: &Path, job: &Value) -> anyhow::Result<(f64, u64)> {
    let written = |name: &str, value: &Value| -> anyhow::Result<_> {
        let path = folder.join(name);
        std::fs::write(&path, serde_json::to_vec(value)?)?;
        Ok(path)
    };
    let schema = written("long.schema.json", &adult::dataset("adult")?)?;
    let job = written("long.job.json", job)?;
    let out = folder.join("long.csv");
    let began = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_pais"))
        .arg("anonymize")
        .arg("--schema")
        .arg(schema)
        .arg("--job")
        .arg(job)
        .arg(file)
        .arg("-o")
        .arg(&out)
        .stderr(Stdio::null())
        .spawn()?;
    let mut peak = 0;
    let status = loop {
        peak = peak.max(memory::peak_of(child.id()));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let seconds = began.elapsed().as_secs_f64();
    ensure!(status.success(), "pais anonymize failed");
    std::fs::remove_file(out)?;
    Ok((seconds, peak))
}
