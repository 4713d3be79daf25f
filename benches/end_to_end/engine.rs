//! The engine without the service: seconds of each phase.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::anyhow;
use pais_anonymize::{AnonymizationRun, Unobserved};
use pais_core::definition::{DatasetDefinition, JobDefinition};
use pais_core::schema::Schema;
use pais_core::taxonomy::TreeLimits;
use pais_io::chunk::Assembler;
use pais_io::read::{ReadLimits, csv};

use crate::REPEATS;
use pais_test_support::adult;
use pais_test_support::median::median;

/// Seconds of each phase.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EngineSeconds {
    /// CSV to columns.
    pub read: f64,
    /// Columns to codes of the search.
    pub encode: f64,
    /// The search.
    pub search: f64,
    /// Released table and verification.
    pub verify: f64,
    /// The report.
    pub report: f64,
    /// Number of steps of the search.
    pub steps: u32,
}

/// Runs a job on a file in memory, several times; the medians.
pub(crate) fn measure(file: &Path, l: u32) -> anyhow::Result<EngineSeconds> {
    let runs = (0..REPEATS)
        .map(|_| run(file, l))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let medians = |of: fn(&EngineSeconds) -> f64| median(&runs.iter().map(of).collect::<Vec<_>>());
    Ok(EngineSeconds {
        read: medians(|run| run.read),
        encode: medians(|run| run.encode),
        search: medians(|run| run.search),
        verify: medians(|run| run.verify),
        report: medians(|run| run.report),
        steps: runs[0].steps,
    })
}

fn run(file: &Path, l: u32) -> anyhow::Result<EngineSeconds> {
    const LIMITS: TreeLimits = TreeLimits {
        leaves: 10_000,
        depth: 20,
    };
    let definition: DatasetDefinition = serde_json::from_value(adult::dataset("adult")?)?;
    let schema = Arc::new(Schema::resolve(&definition, LIMITS, |_| None)?);
    let job: JobDefinition = serde_json::from_value(adult::job(l))?;
    let job = job.parse()?;

    let began = Instant::now();
    let mut assembler = Assembler::default();
    csv::read(&schema, File::open(file)?, ReadLimits::default(), |chunk| {
        assembler.push(chunk)
    })
    .map_err(|failure| anyhow!("the file was refused: {failure:?}"))?;
    let table = assembler.finish();
    let read = began.elapsed().as_secs_f64();

    let began = Instant::now();
    let prepared = AnonymizationRun::new(schema, job, table, &Unobserved::default())?;
    let encode = began.elapsed().as_secs_f64();

    let began = Instant::now();
    let steps = prepared.search(&Unobserved::default())?;
    let search = began.elapsed().as_secs_f64();

    let began = Instant::now();
    let verified = prepared.verify(&steps, None, &Unobserved::default())?;
    let verify = began.elapsed().as_secs_f64();

    let began = Instant::now();
    let report = prepared.measure(&steps, &verified, &Unobserved::default())?;
    Ok(EngineSeconds {
        read,
        encode,
        search,
        verify,
        report: began.elapsed().as_secs_f64(),
        steps: verified.with_report(report).step.unwrap_or(0),
    })
}
