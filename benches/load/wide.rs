//! Searches over 41 quasi-identifiers, in memory: the blood sample and binary columns.

use std::sync::Arc;
use std::time::Instant;

use anyhow::anyhow;
use pais_anonymize::{AnonymizationRun, Unobserved};
use pais_core::definition::{DatasetDefinition, JobDefinition};
use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_core::taxonomy::TreeLimits;
use pais_io::chunk::Assembler;
use pais_io::read::{ReadLimits, csv};
use pais_sample::blood;
use serde_json::{Value, json};

use crate::binary_columns;

/// Table, rows, L, K, C and objective of each search.
const SEARCHES: [(&str, u64, u32, u32, f64, &str); 21] = [
    ("blood", 10_000, 2, 20, 0.2, "classification"),
    ("blood", 10_000, 2, 20, 0.2, "ncp"),
    ("blood", 10_000, 2, 100, 0.2, "classification"),
    ("blood", 10_000, 2, 20, 1.0, "ncp"),
    ("blood", 10_000, 4, 20, 0.2, "classification"),
    ("blood", 10_000, 4, 20, 0.2, "ncp"),
    ("blood", 10_000, 4, 100, 0.2, "classification"),
    ("blood", 10_000, 4, 20, 1.0, "ncp"),
    ("blood", 10_000, 6, 20, 0.2, "classification"),
    ("blood", 10_000, 6, 20, 0.2, "ncp"),
    ("blood", 10_000, 6, 100, 0.2, "classification"),
    ("blood", 10_000, 6, 20, 1.0, "ncp"),
    ("blood", 100_000, 4, 20, 0.2, "classification"),
    ("blood", 100_000, 4, 20, 0.2, "ncp"),
    ("blood", 100_000, 4, 20, 1.0, "ncp"),
    ("binary", 10_000, 2, 20, 0.2, "ncp"),
    ("binary", 10_000, 4, 20, 0.2, "ncp"),
    ("binary", 10_000, 6, 20, 0.2, "ncp"),
    ("binary", 10_000, 6, 20, 1.0, "ncp"),
    ("binary", 100_000, 4, 20, 0.2, "ncp"),
    ("binary", 100_000, 4, 20, 1.0, "ncp"),
];

/// Measures every search once.
pub(crate) fn measure() -> anyhow::Result<Value> {
    println!("41 quasi-identifiers: the search only");
    println!(
        "{:<6} {:>8} {:>2} {:>4} {:>5} {:<15} {:>9} {:>6} {:>7}",
        "table", "rows", "L", "K", "C", "objective", "seconds", "steps", "groups"
    );
    let mut measured = Vec::new();
    let mut read: Option<((&str, u64), Arc<Schema>, Table)> = None;
    for (name, rows, l, k, c, objective) in SEARCHES {
        let (schema, table) = match read.take() {
            Some((of, schema, table)) if of == (name, rows) => (schema, table),
            _ => load(name, rows)?,
        };
        read = Some(((name, rows), schema.clone(), table.clone()));
        let job: JobDefinition = serde_json::from_value(json!({
            "privacy": { "model": "lkc", "l": l, "k": k, "c": c },
            "utility": { "objective": objective },
        }))?;
        let job = job.parse()?;
        let prepared = AnonymizationRun::new(schema, job, table, &Unobserved::default())?;
        let began = Instant::now();
        let steps = prepared.search(&Unobserved::default())?;
        let seconds = began.elapsed().as_secs_f64();
        let (count, groups) = steps
            .steps()
            .last()
            .map_or((0, 0), |last| (last.item.step, last.item.groups));
        println!(
            "{name:<6} {rows:>8} {l:>2} {k:>4} {c:>5} {objective:<15} {seconds:>9.3} {count:>6} \
             {groups:>7}"
        );
        measured.push(json!({
            "table": name, "rows": rows, "l": l, "k": k, "c": c, "objective": objective,
            "seconds": seconds, "steps": count, "groups": groups,
        }));
    }
    Ok(measured.into())
}

fn load(name: &str, rows: u64) -> anyhow::Result<(Arc<Schema>, Table)> {
    let limits = TreeLimits {
        leaves: 10_000,
        depth: 20,
    };
    let (definition, text) = match name {
        "binary" => (
            binary_columns::schema(),
            binary_columns::csv(rows).into_bytes(),
        ),
        _ => {
            let mut text = Vec::new();
            blood::write_csv(rows, 1, &mut text)?;
            (blood::schema(), text)
        }
    };
    let definition: DatasetDefinition = serde_json::from_value(definition)?;
    let schema = Arc::new(Schema::resolve(&definition, limits, |_| None)?);
    let mut assembler = Assembler::default();
    csv::read(&schema, text.as_slice(), ReadLimits::default(), |chunk| {
        assembler.push(chunk)
    })
    .map_err(|failure| anyhow!("the sample was refused: {failure:?}"))?;
    Ok((schema, assembler.finish()))
}
