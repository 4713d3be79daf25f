//! The whole way, from the upload's first byte to the download's last, beside PostgreSQL's own
//! COPY of the same CSV in the same run.
//!
//! Adult as it is and blown up to `PAIS_BENCH_ROWS` rows (1,000,000), at L = 4 and L = 2, through
//! the program itself over HTTP. One thing after the other, since all share the machine; figures
//! are medians of three.

mod adult;
#[path = "whole_way/blow_up.rs"]
mod blow_up;
#[path = "whole_way/copy.rs"]
mod copy;
#[path = "whole_way/engine.rs"]
mod engine;
mod median;
#[path = "whole_way/memory.rs"]
mod memory;
#[path = "whole_way/service.rs"]
mod service;
#[path = "whole_way/summary.rs"]
mod summary;
mod summary_file;
#[path = "whole_way/way.rs"]
mod way;

use std::fs;
use std::path::Path;

use anyhow::Context;
use median::median;
use service::Service;
use summary::Row;
use way::Way;

/// How often each thing is done.
pub const REPEATS: usize = 3;

/// Bytes read of a file at a time, by the upload and by COPY alike.
pub const READ_BYTES: usize = 256 << 10;

/// L of each run, the one the memory is measured at first.
const KNOWN_VALUES: [u32; 2] = [4, 2];

fn main() -> anyhow::Result<()> {
    let blown_up = match std::env::var("PAIS_BENCH_ROWS") {
        Ok(rows) => rows
            .parse()
            .context("PAIS_BENCH_ROWS is a number of rows")?,
        Err(_) => 1_000_000,
    };
    let folder = summary_file::folder()?;
    let adult = adult::csv()?;
    let records = adult.iter().filter(|&&byte| byte == b'\n').count() - 1;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut measured = Vec::new();
    for rows in [records, blown_up] {
        let file = blow_up::file(&folder, &adult, rows)?;
        measured.extend(runtime.block_on(measure(&file, rows))?);
    }
    summary::print(&measured);
    summary_file::put(&folder, "whole_way", summary::json(&measured))
}

async fn measure(file: &Path, rows: usize) -> anyhow::Result<Vec<Row>> {
    let bytes = fs::metadata(file)?.len();
    println!("{rows} rows: COPY");
    let copy = copy::measure(file).await?;
    let mut measured = Vec::new();
    for l in KNOWN_VALUES {
        println!("{rows} rows, L = {l}: the engine alone");
        let parts = engine::measure(file, l)?;
        println!("{rows} rows, L = {l}: the service");
        let mut service = Service::start().await?;
        let mut ways = Vec::new();
        for _ in 0..REPEATS {
            ways.push(service.whole_way(file, l).await?);
        }
        let peak = service.peak();
        service.stop()?;
        measured.push(Row {
            rows,
            bytes,
            l,
            copy,
            way: middle(&ways),
            parts,
            peak,
        });
    }
    Ok(measured)
}

/// Each part's median.
fn middle(ways: &[Way]) -> Way {
    let of = |part: fn(&Way) -> f64| median(&ways.iter().map(part).collect::<Vec<_>>());
    Way {
        upload: of(|way| way.upload),
        job: of(|way| way.job),
        download: of(|way| way.download),
        downloaded_bytes: ways[0].downloaded_bytes,
    }
}
