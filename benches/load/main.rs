//! Heavy loads: searches over 41 quasi-identifiers, tables of ten million rows, a sweep compared
//! with the longest of its jobs, and the response time of the service while two large jobs run.

mod binary_columns;
mod busy;
mod long;
mod sweep;
mod wide;

use pais_test_support::summary_file;
use serde_json::json;

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
