//! What was measured: one table for people, one file for programs.

use serde_json::{Value, json};

use crate::copy::Copy;
use crate::engine::Parts;
use crate::memory::Peak;
use crate::way::Way;

/// All that was measured of one table at one L.
pub struct Row {
    pub rows: usize,
    pub bytes: u64,
    pub l: u32,
    pub copy: Copy,
    pub way: Way,
    pub parts: Parts,
    pub peak: Peak,
}

impl Row {
    fn ratios(&self) -> [(&'static str, f64); 5] {
        let Copy { copy_in, copy_out } = self.copy;
        [
            ("upload / COPY in", self.way.upload / copy_in),
            ("search / COPY in", self.parts.search / copy_in),
            ("download / COPY out", self.way.download / copy_out),
            (
                "whole / (2 COPY in + 2 COPY out)",
                self.way.whole() / (2.0 * copy_in + 2.0 * copy_out),
            ),
            (
                "service's peak / CSV",
                self.peak.service as f64 / self.bytes as f64,
            ),
        ]
    }

    fn json(&self) -> Value {
        let ratios: serde_json::Map<String, Value> = self
            .ratios()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        json!({
            "rows": self.rows,
            "csv_bytes": self.bytes,
            "l": self.l, "k": 20, "c": 1.0,
            "steps": self.parts.steps,
            "seconds": {
                "copy_in": self.copy.copy_in,
                "copy_out": self.copy.copy_out,
                "upload": self.way.upload,
                "job": self.way.job,
                "download": self.way.download,
                "whole": self.way.whole(),
            },
            "engine_seconds": {
                "read_csv": self.parts.read,
                "encode": self.parts.encode,
                "search": self.parts.search,
                "release_and_verify": self.parts.release,
            },
            "release_csv_bytes": self.way.downloaded_bytes,
            "peak_bytes": {"service": self.peak.service, "database": self.peak.database},
            "ratios": ratios,
        })
    }
}

/// Prints the table, a column for each row measured.
pub fn print(rows: &[Row]) {
    let line = |name: &str, value: &dyn Fn(&Row) -> String| {
        let cells: String = rows
            .iter()
            .map(|row| format!("{:>14}", value(row)))
            .collect();
        println!("{name:<36}{cells}");
    };
    let seconds = |value: f64| format!("{value:.3} s");
    let mebibytes = |value: u64| format!("{:.0} MiB", value as f64 / f64::from(1 << 20));
    println!();
    line("rows", &|row| row.rows.to_string());
    line("L (K = 20, C = 100 %)", &|row| row.l.to_string());
    line("CSV", &|row| mebibytes(row.bytes));
    println!();
    line("PostgreSQL COPY in", &|row| seconds(row.copy.copy_in));
    line("PostgreSQL COPY out", &|row| seconds(row.copy.copy_out));
    println!();
    line("upload", &|row| seconds(row.way.upload));
    line("job", &|row| seconds(row.way.job));
    line("first download", &|row| seconds(row.way.download));
    line("whole way", &|row| seconds(row.way.whole()));
    println!();
    line("engine: CSV to columns", &|row| seconds(row.parts.read));
    line("engine: encode", &|row| seconds(row.parts.encode));
    line("engine: search alone", &|row| seconds(row.parts.search));
    line("engine: release, verify, report", &|row| {
        seconds(row.parts.release)
    });
    line("steps", &|row| row.parts.steps.to_string());
    println!();
    line("service's peak memory", &|row| mebibytes(row.peak.service));
    line("database's peak memory", &|row| {
        mebibytes(row.peak.database)
    });
    println!();
    for place in 0..5 {
        let name = rows[0].ratios()[place].0;
        line(name, &|row| format!("{:.2}", row.ratios()[place].1));
    }
    println!();
}

/// The summary for programs.
pub fn json(rows: &[Row]) -> Value {
    json!({
        "repeats": crate::REPEATS,
        "runs": rows.iter().map(Row::json).collect::<Vec<_>>(),
    })
}
