//! The results: a table on standard output and JSON for `summary.json`.

use serde_json::{Value, json};

use crate::client::EndToEnd;
use crate::copy::CopySeconds;
use crate::engine::EngineSeconds;
use pais_test_support::memory::PeakMemory;

/// The results for one table at one L.
pub(crate) struct Measurement {
    pub rows: usize,
    pub bytes: u64,
    pub l: u32,
    pub copy: CopySeconds,
    pub end_to_end: EndToEnd,
    pub engine: EngineSeconds,
    pub peak: PeakMemory,
}

impl Measurement {
    fn ratios(&self) -> [(&'static str, f64); 6] {
        let CopySeconds { copy_in, copy_out } = self.copy;
        [
            ("upload / COPY in", self.end_to_end.upload / copy_in),
            ("search / COPY in", self.engine.search / copy_in),
            ("report / COPY in", self.engine.report / copy_in),
            ("download / COPY out", self.end_to_end.download / copy_out),
            (
                "end to end / (2 COPY in + 2 COPY out)",
                self.end_to_end.total() / (2.0 * copy_in + 2.0 * copy_out),
            ),
            (
                "peak of the service / CSV",
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
            "steps": self.engine.steps,
            "seconds": {
                "copy_in": self.copy.copy_in,
                "copy_out": self.copy.copy_out,
                "upload": self.end_to_end.upload,
                "job": self.end_to_end.job,
                "download": self.end_to_end.download,
                "end_to_end": self.end_to_end.total(),
            },
            "engine_seconds": {
                "read_csv": self.engine.read,
                "encode": self.engine.encode,
                "search": self.engine.search,
                "release_and_verify": self.engine.verify,
                "report": self.engine.report,
            },
            "release_csv_bytes": self.end_to_end.downloaded_bytes,
            "peak_bytes": {"service": self.peak.service, "database": self.peak.database},
            "ratios": ratios,
        })
    }
}

/// Prints the table, a column for each measurement.
pub(crate) fn print(rows: &[Measurement]) {
    let line = |name: &str, value: &dyn Fn(&Measurement) -> String| {
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
    line("upload", &|row| seconds(row.end_to_end.upload));
    line("job", &|row| seconds(row.end_to_end.job));
    line("first download", &|row| seconds(row.end_to_end.download));
    line("end to end", &|row| seconds(row.end_to_end.total()));
    println!();
    line("engine: CSV to columns", &|row| seconds(row.engine.read));
    line("engine: encode", &|row| seconds(row.engine.encode));
    line("engine: search", &|row| seconds(row.engine.search));
    line("engine: release, verify", &|row| seconds(row.engine.verify));
    line("engine: report", &|row| seconds(row.engine.report));
    line("steps", &|row| row.engine.steps.to_string());
    println!();
    line("peak memory, service", &|row| mebibytes(row.peak.service));
    line("peak memory, database", &|row| mebibytes(row.peak.database));
    println!();
    for place in 0..6 {
        let name = rows[0].ratios()[place].0;
        line(name, &|row| format!("{:.2}", row.ratios()[place].1));
    }
    println!();
}

/// The results as JSON.
pub(crate) fn json(rows: &[Measurement]) -> Value {
    json!({
        "repeats": crate::REPEATS,
        "runs": rows.iter().map(Measurement::json).collect::<Vec<_>>(),
    })
}
