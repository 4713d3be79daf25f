//! End to end: seconds from the first byte of an upload to the last byte of the download, with
//! PostgreSQL's COPY of the same CSV in the same run as the reference.
//!
//! Adult, and Adult enlarged to `PAIS_BENCH_ROWS` rows (default 1,000,000), at L = 4 and L = 2,
//! over HTTP against the program itself. Nothing is measured in parallel, since everything runs on
//! one machine. Results are medians of three runs.

mod client;
mod copy;
mod engine;
mod summary;

use pais_test_support::{adult, enlarged, summary_file};
use std::fs;
use std::path::Path;

use anyhow::Context;
use client::EndToEnd;
use pais_test_support::median::median;
use pais_test_support::service::Service;
use summary::Measurement;

/// Runs of each measurement; the median is the result.
pub(crate) const REPEATS: usize = 3;

/// Bytes read from a file at a time, by the upload and by COPY.
pub(crate) const READ_BYTES: usize = 256 << 10;

/// L of each run. The peak memory of the first is not affected by others.
const KNOWN_VALUES: [u32; 2] = [4, 2];

fn main() -> anyhow::Result<()> {
    let enlarged = match std::env::var("PAIS_BENCH_ROWS") {
        Ok(rows) => rows
            .parse()
            .context("PAIS_BENCH_ROWS: expected a number of rows")?,
        Err(_) => 1_000_000,
    };
    let folder = summary_file::folder()?;
    let adult = adult::csv()?;
    let records = adult.iter().filter(|&&byte| byte == b'\n').count() - 1;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut measured = Vec::new();
    for rows in [records, enlarged] {
        let file = enlarged::file(&folder, &adult, rows)?;
        measured.extend(runtime.block_on(measure(&file, rows))?);
    }
    summary::print(&measured);
    summary_file::put(&folder, "end_to_end", summary::json(&measured))
}

async fn measure(file: &Path, rows: usize) -> anyhow::Result<Vec<Measurement>> {
    let bytes = fs::metadata(file)?.len();
    println!("{rows} rows: COPY");
    let copy = copy::measure(file).await?;
    let mut measured = Vec::new();
    for l in KNOWN_VALUES {
        println!("{rows} rows, L = {l}: the engine only");
        let engine = engine::measure(file, l)?;
        println!("{rows} rows, L = {l}: the service");
        let mut service = Service::start(env!("CARGO_BIN_EXE_pais")).await?;
        let mut runs = Vec::new();
        for _ in 0..REPEATS {
            runs.push(client::end_to_end(&mut service, file, l).await?);
        }
        let peak = service.peak();
        service.stop()?;
        measured.push(Measurement {
            rows,
            bytes,
            l,
            copy,
            end_to_end: medians(&runs),
            engine,
            peak,
        });
    }
    Ok(measured)
}

/// The median of each phase.
fn medians(runs: &[EndToEnd]) -> EndToEnd {
    let of = |phase: fn(&EndToEnd) -> f64| median(&runs.iter().map(phase).collect::<Vec<_>>());
    EndToEnd {
        upload: of(|run| run.upload),
        job: of(|run| run.job),
        download: of(|run| run.download),
        downloaded_bytes: runs[0].downloaded_bytes,
    }
}
