//! Concurrent item disclosure on medical receipts in memory, at k = 10 as in the 2014 paper: seconds
//! and peak memory of the search for three relational columns with one (R3T1) or two (R3T2)
//! set-valued columns. On one set-valued column alone (R0T1) it is compared with the earlier method
//! that discloses one item of a class in a round (Itemset Recoding).
//!
//! The arguments are numbers of rows, by default 100,000 and 1,000,000. The earlier method is
//! measured at 100,000 rows.

use pais_test_support::{recoding, summary_file};
use std::fs;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use pais_anonymize::{AnonymizationRun, Unobserved};
use pais_core::definition::{DatasetDefinition, JobDefinition};
use pais_core::schema::Schema;
use pais_core::table::{EncodedTable, Table};
use pais_core::taxonomy::TreeLimits;
use pais_io::chunk::Assembler;
use pais_io::read::{ReadLimits, csv};
use pais_sample::receipts;
use serde_json::{Value, json};

/// *k* of the measurements in the paper.
const K: usize = 10;

/// Rows at which the earlier method is measured.
const COMPARED: u64 = 100_000;

fn main() -> anyhow::Result<()> {
    let asked: Vec<u64> = std::env::args().filter_map(|it| it.parse().ok()).collect();
    let sizes = match asked.is_empty() {
        true => vec![COMPARED, 1_000_000],
        false => asked,
    };
    let mut runs = Vec::new();
    println!("rows, columns, method, seconds, MiB at peak in addition to the table");
    for rows in sizes {
        for (name, dropped) in [
            ("R3T1", &["drugs"][..]),
            ("R3T2", &[]),
            (
                "R0T1",
                &["birth_year", "gender", "treatment_date", "diseases"],
            ),
        ] {
            let (schema, table) = read(rows, dropped)?;
            let baseline = (name == "R0T1" && rows == COMPARED).then(|| table.clone());
            let (seconds, bytes) = measure(&schema, table)?;
            println!("{rows}, {name}, disclosure, {seconds:.2}, {}", bytes >> 20);
            runs.push(json!({
                "rows": rows, "columns": name, "k": K,
                "seconds": seconds, "peak_bytes": bytes,
            }));
            if let Some(table) = baseline {
                let encoded = EncodedTable::new(&schema, table);
                let began = Instant::now();
                let classes = recoding::recode(&encoded.sets[0], K);
                let earlier = began.elapsed().as_secs_f64();
                println!("{rows}, {name}, one item a round, {earlier:.2}, -");
                runs.push(json!({
                    "rows": rows, "columns": name, "k": K,
                    "seconds_one_item_a_round": earlier,
                    "ratios": { "one item a round / disclosure": earlier / seconds },
                }));
                println!(
                    "  {:.1} times as long; {classes} equivalence classes",
                    earlier / seconds
                );
            }
        }
    }
    summary_file::put(&summary_file::folder()?, "items", runs.into())
}

/// Receipts without the dropped columns.
fn read(rows: u64, dropped: &[&str]) -> anyhow::Result<(Arc<Schema>, Table)> {
    let mut definition = receipts::schema();
    let columns = definition["columns"].as_array_mut().context("columns")?;
    for column in columns {
        if dropped.iter().any(|name| column["name"] == *name) {
            *column = json!({"name": column["name"], "role": "identifier"});
        }
    }
    let definition: DatasetDefinition = serde_json::from_value(definition)?;
    let limits = TreeLimits {
        leaves: 10_000,
        depth: 20,
    };
    let schema = Schema::resolve(&definition, limits, |_| None)?;
    let mut text = Vec::new();
    receipts::write_csv(rows, 1, &mut text)?;
    let mut assembler = Assembler::default();
    csv::read(&schema, text.as_slice(), ReadLimits::default(), |chunk| {
        assembler.push(chunk)
    })
    .map_err(|failure| anyhow::anyhow!("{failure:?}"))?;
    Ok((Arc::new(schema), assembler.finish()))
}

/// Seconds of the search, and its peak memory in bytes in addition to the memory before it.
fn measure(schema: &Arc<Schema>, table: Table) -> anyhow::Result<(f64, u64)> {
    let job: Value = json!({"privacy": {"model": "k_anonymity", "k": K}});
    let job: JobDefinition = serde_json::from_value(job)?;
    let job = job.parse()?;
    let prepared = AnonymizationRun::new(schema.clone(), job, table, &Unobserved::default())?;
    // Resets the peak, so that it is that of the search.
    fs::write("/proc/self/clear_refs", "5")
        .context("cannot reset the peak memory in /proc/self/clear_refs")?;
    let before = kilobytes("VmRSS:");
    let began = Instant::now();
    let found = prepared.search(&Unobserved::default())?;
    let seconds = began.elapsed().as_secs_f64();
    let bytes = kilobytes("VmHWM:").saturating_sub(before) * 1024;
    let release = prepared.release(&found, None, &Unobserved::default())?;
    let remain = &json!(release.report())["utility"]["information_remain_by_column"];
    println!(
        "  {} equivalence classes, information remain {remain}",
        json!(release.report())["utility"]["groups"]
    );
    Ok((seconds, bytes))
}

/// A field in kB of `/proc/self/status`; 0 if it cannot be read.
fn kilobytes(field: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}
