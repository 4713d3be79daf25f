//! How long `GET /v1/jobs` takes while two jobs of a million rows run.

use std::path::Path;

use serde_json::{Value, json};

use crate::service::Service;
use crate::{adult, blow_up};

const ROWS: usize = 1_000_000;

/// Two jobs at once, the list of jobs asked for again and again until both have ended.
pub async fn measure(folder: &Path) -> anyhow::Result<Value> {
    let file = blow_up::file(folder, &adult::csv()?, ROWS)?;
    let mut service = Service::start().await?;
    let first = service.upload(&file).await?;
    let second = service.upload(&file).await?;
    let (jobs, mut waits) = tokio::try_join!(
        async {
            let job = adult::job(2);
            tokio::try_join!(
                service.job_seconds(&first, &job),
                service.job_seconds(&second, &job)
            )
        },
        service.waits_for_the_list_until_two_have_ended(),
    )?;
    let peak = service.peak();
    service.stop()?;
    waits.sort_by(f64::total_cmp);
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share).round() as usize] * 1000.0;
    let (median, ninety_ninth) = (at(0.5), at(0.99));
    println!(
        "\ntwo jobs of {ROWS} rows at L = 2: {:.1} s and {:.1} s, service's peak {} MiB",
        jobs.0,
        jobs.1,
        peak.service >> 20
    );
    println!(
        "GET /v1/jobs meanwhile, {} times: median {median:.1} ms, 99th percentile {ninety_ninth:.1} ms",
        waits.len()
    );
    Ok(json!({
        "rows": ROWS,
        "seconds": { "jobs": [jobs.0, jobs.1] },
        "list_milliseconds": { "count": waits.len(), "median": median, "p99": ninety_ninth },
        "peak_bytes": { "service": peak.service, "database": peak.database },
    }))
}
