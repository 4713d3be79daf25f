//! Searches over the 41 quasi-identifiers of the blood sample, in memory.

use std::sync::Arc;
use std::time::Instant;

use anyhow::anyhow;
use pais::domain::{DatasetDefinition, JobDefinition};
use pais::engine::{Prepared, Unobserved};
use pais::sample::blood;
use pais::table::chunk::Assembler;
use pais::table::{Schema, Table, csv};
use pais::taxonomy::TreeLimits;
use serde_json::{Value, json};

/// Rows, L, K, C and objective of each search.
const SEARCHES: [(u64, u32, u32, f64, &str); 12] = [
    (10_000, 2, 20, 0.2, "classification"),
    (10_000, 2, 20, 0.2, "ncp"),
    (10_000, 2, 20, 1.0, "ncp"),
    (10_000, 4, 20, 0.2, "classification"),
    (10_000, 4, 20, 0.2, "ncp"),
    (10_000, 4, 100, 0.2, "ncp"),
    (10_000, 6, 20, 0.2, "classification"),
    (10_000, 6, 20, 0.2, "ncp"),
    (10_000, 6, 20, 1.0, "ncp"),
    (100_000, 4, 20, 0.2, "classification"),
    (100_000, 4, 20, 0.2, "ncp"),
    (100_000, 4, 20, 1.0, "ncp"),
];

/// Measures every search once.
pub fn measure() -> anyhow::Result<Value> {
    println!("Blood, 41 quasi-identifiers: the search alone");
    println!(
        "{:>8} {:>2} {:>4} {:>5} {:<15} {:>9} {:>6} {:>7}",
        "rows", "L", "K", "C", "objective", "seconds", "steps", "groups"
    );
    let mut measured = Vec::new();
    let mut read: Option<(u64, Table)> = None;
    let schema = schema()?;
    for (rows, l, k, c, objective) in SEARCHES {
        let table = match &read {
            Some((of, table)) if *of == rows => table.clone(),
            _ => table(&schema, rows)?,
        };
        read = Some((rows, table.clone()));
        let mut job = blood::job();
        job["privacy"] = json!({ "model": "lkc", "l": l, "k": k, "c": c });
        job["utility"] = json!({ "objective": objective });
        let job: JobDefinition = serde_json::from_value(job)?;
        let prepared = Prepared::new(schema.clone(), job, table, &Unobserved)?;
        let began = Instant::now();
        let steps = prepared.run(&Unobserved)?;
        let seconds = began.elapsed().as_secs_f64();
        let (count, groups) = steps
            .last()
            .map_or((0, 0), |last| (last.item.step, last.item.groups));
        println!(
            "{rows:>8} {l:>2} {k:>4} {c:>5} {objective:<15} {seconds:>9.3} {count:>6} {groups:>7}"
        );
        measured.push(json!({
            "rows": rows, "l": l, "k": k, "c": c, "objective": objective,
            "seconds": seconds, "steps": count, "groups": groups,
        }));
    }
    Ok(measured.into())
}

fn schema() -> anyhow::Result<Arc<Schema>> {
    let limits = TreeLimits {
        leaves: 10_000,
        depth: 20,
    };
    let definition: DatasetDefinition = serde_json::from_value(blood::schema())?;
    Ok(Arc::new(Schema::resolve(&definition, limits, |_| None)?))
}

fn table(schema: &Schema, rows: u64) -> anyhow::Result<Table> {
    let mut text = Vec::new();
    blood::write_csv(rows, 1, &mut text)?;
    let mut assembler = Assembler::default();
    csv::read(schema, text.as_slice(), |chunk| assembler.push(chunk))
        .map_err(|failure| anyhow!("the sample was refused: {failure:?}"))?;
    Ok(assembler.finish())
}
