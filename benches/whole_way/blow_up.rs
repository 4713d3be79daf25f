//! Adult with more rows: all records, then variations of them that replace one to four values by
//! values of the same column. The same every time.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

/// The file of the first `rows` rows; made unless it is there.
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

    // A part of a file must not be taken for the whole one by the next run.
    let unfinished = path.with_extension("unfinished");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&unfinished)?);
    let mut random = Random(20_091_128);
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

/// SplitMix64: the same numbers whatever version of whatever crate.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * bound as u128) >> 64) as usize
    }
}
