//! Heavy loads: searches over 41 quasi-identifiers, tables of ten million rows, a sweep compared
//! with the longest of its jobs, and the response time of the service while two large jobs run.

#[path = "../tests/support/adult.rs"]
mod adult;
#[path = "load/binary_columns.rs"]
mod binary_columns;
#[path = "load/busy.rs"]
mod busy;
#[path = "end_to_end/enlarged.rs"]
mod enlarged;
#[path = "load/long.rs"]
mod long;
#[path = "end_to_end/median.rs"]
mod median;
#[path = "end_to_end/memory.rs"]
mod memory;
#[path = "load/requests.rs"]
mod requests;
#[path = "end_to_end/service.rs"]
mod service;
#[path = "../tests/support/split_mix.rs"]
mod split_mix;
mod summary_file;
#[path = "load/sweep.rs"]
mod sweep;
#[path = "load/wide.rs"]
mod wide;

use serde_json::json;

/// Bytes read from a file at a time by an upload.
pub(crate) const READ_BYTES: usize = 256 << 10;

fn main() -> anyhow::Result<()> {
    let folder = summary_file::folder()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let wide = wide::measure()?;
    let long = long::measure(&folder)?;
    let sweep = runtime.block_on(sweep::measure(&folder))?;
    let busy = runtime.block_on(busy::measure(&folder))?;
    let measured = json!({ "wide": wide, "long": long, "sweep": sweep, "busy": busy });
    summary_file::put(&folder, "load", measured)
}
