//! What one run of the whole way does not show: searches over 41 quasi-identifiers, tables of ten
//! million rows, a sweep beside the longest of its runs, and how the service answers while two
//! large jobs run.

mod adult;
#[path = "whole_way/blow_up.rs"]
mod blow_up;
#[path = "breadth/busy.rs"]
mod busy;
#[path = "breadth/coins.rs"]
mod coins;
#[path = "breadth/long.rs"]
mod long;
mod median;
#[path = "whole_way/memory.rs"]
mod memory;
#[path = "breadth/requests.rs"]
mod requests;
#[path = "whole_way/service.rs"]
mod service;
mod summary_file;
#[path = "breadth/sweep.rs"]
mod sweep;
#[path = "breadth/wide.rs"]
mod wide;

use serde_json::json;

/// Bytes read of a file at a time by an upload.
pub const READ_BYTES: usize = 256 << 10;

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
    summary_file::put(&folder, "breadth", measured)
}
