//! The response time of `GET /v1/jobs` while two jobs on a million rows run.

use std::path::Path;

use serde_json::{Value, json};

use pais_test_support::service::Service;
use pais_test_support::{adult, enlarged};

const ROWS: usize = 1_000_000;

/// Runs two jobs at once and requests the list of jobs until both have ended.
pub(crate) async fn measure(folder: &Path) -> anyhow::Result<Value> {
    let file = enlarged::file(folder, &adult::csv()?, ROWS)?;
    let mut service = Service::start(env!("CARGO_BIN_EXE_pais")).await?;
    let first = service.upload(&file).await?;
    let second = service.upload(&file).await?;
    let (jobs, mut seconds) = tokio::try_join!(
        async {
            let job = adult::job(2);
            tokio::try_join!(
                service.job_seconds(&first, &job),
                service.job_seconds(&second, &job)
            )
        },
        service.list_seconds_until_two_have_ended(),
    )?;
    let peak = service.peak();
    service.stop()?;
    seconds.sort_by(f64::total_cmp);
    let at = |share: f64| seconds[((seconds.len() - 1) as f64 * share).round() as usize] * 1000.0;
    let (median, ninety_ninth) = (at(0.5), at(0.99));
    println!(
        "\ntwo jobs of {ROWS} rows at L = 2: {:.1} s and {:.1} s, peak memory of the service {} MiB",
        jobs.0,
        jobs.1,
        peak.service >> 20
    );
    println!(
        "GET /v1/jobs during the jobs, {} times: median {median:.1} ms, 99th percentile {ninety_ninth:.1} ms",
        seconds.len()
    );
    Ok(json!({
        "rows": ROWS,
        "seconds": { "jobs": [jobs.0, jobs.1] },
        "list_milliseconds": { "count": seconds.len(), "median": median, "p99": ninety_ninth },
        "peak_bytes": { "service": peak.service, "database": peak.database },
    }))
}
