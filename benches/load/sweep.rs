//! A sweep of 18 combinations on Adult, compared with a separate job for each.

use std::path::Path;

use serde_json::{Value, json};

use pais_test_support::service::Service;
use pais_test_support::{adult, enlarged};

const L: [u32; 3] = [2, 4, 6];
const K: [u32; 3] = [20, 50, 100];
const C: [f64; 2] = [0.2, 1.0];

/// Seconds from the request to the end of the job, for the sweep and for the longest job.
pub(crate) async fn measure(folder: &Path) -> anyhow::Result<Value> {
    let csv = adult::csv()?;
    let rows = csv.iter().filter(|&&byte| byte == b'\n').count() - 1;
    let file = enlarged::file(folder, &csv, rows)?;
    let mut service = Service::start(env!("CARGO_BIN_EXE_pais")).await?;
    let dataset = service.upload(&file).await?;
    let mut longest: f64 = 0.0;
    let mut sum = 0.0;
    for l in L {
        for k in K {
            for c in C {
                let seconds = service
                    .job_seconds(&dataset, &job(&json!(l), &json!(k), &json!(c)))
                    .await?;
                longest = longest.max(seconds);
                sum += seconds;
            }
        }
    }
    let sweep = service
        .job_seconds(&dataset, &job(&json!(L), &json!(K), &json!(C)))
        .await?;
    service.stop()?;
    println!(
        "\nAdult, {rows} rows, 18 combinations: sweep {sweep:.3} s, longest job {longest:.3} s, all jobs {sum:.3} s"
    );
    println!("sweep / longest job {:.2}", sweep / longest);
    Ok(json!({
        "combinations": L.len() * K.len() * C.len(),
        "seconds": { "sweep": sweep, "longest_job": longest, "all_jobs": sum },
        "ratios": { "sweep / longest job": sweep / longest },
    }))
}

fn job(l: &Value, k: &Value, c: &Value) -> Value {
    let mut job = adult::job(2);
    job["privacy"]["l"] = l.clone();
    job["privacy"]["k"] = k.clone();
    job["privacy"]["c"] = c.clone();
    job["release"] = json!(false);
    job
}
