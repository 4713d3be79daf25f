//! Adult with more rows: all records, then copies of them in which one to four values are replaced
//! by other values of the same column. The file is the same on every machine.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::split_mix::SplitMix64;

/// The path of a file with `rows` rows, which is created if it does not exist.
pub fn file(folder: &Path, adult: &[u8], rows: usize) -> anyhow::Result<PathBuf> {
    let path = folder.join(format!("adult-{rows}.csv"));
    if path.exists() {
        return Ok(path);
    }
    let text = std::str::from_utf8(adult)?;
    let (header, body) = text.split_once('\n').context("Adult has a header")?;
    let records: Vec<Vec<&str>> = body
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>())
        .collect();
    let columns = header.split(',').count();
    ensure!(
        records.iter().all(|record| record.len() == columns),
        "Adult has no commas inside its values"
    );

    // The next run must not use an incomplete file.
    let unfinished = path.with_extension("unfinished");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&unfinished)?);
    let mut random = SplitMix64(20_091_128);
    writeln!(out, "{header}")?;
    for record in records.iter().take(rows) {
        writeln!(out, "{}", record.join(","))?;
    }
    for row in records.len()..rows {
        let mut record = records[row % records.len()].clone();
        for _ in 0..=random.below(4) {
            let column = random.below(columns);
            record[column] = records[random.below(records.len())][column];
        }
        writeln!(out, "{}", record.join(","))?;
    }
    out.flush()?;
    fs::rename(&unfinished, &path)?;
    Ok(path)
}
