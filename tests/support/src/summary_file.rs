//! `summary.json`: the results of the benchmarks, a field for each; and `benches/history.csv`: the
//! ratios of all runs.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};

/// The directory `bench` in the target directory, which is created if it does not exist.
pub fn folder() -> anyhow::Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let folder = target
        .unwrap_or_else(|| root().join("target"))
        .join("bench");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The directory of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Replaces the field of a benchmark, and keeps those of the others. Its ratios join the history.
pub fn put(folder: &Path, field: &str, value: Value) -> anyhow::Result<()> {
    let path = folder.join("summary.json");
    let before = fs::read(&path).ok();
    let before = before.and_then(|text| serde_json::from_slice::<Map<String, Value>>(&text).ok());
    let mut summary = before.unwrap_or_default();
    let cores = std::thread::available_parallelism()?.get();
    summary.insert("cores".to_owned(), json!(cores));
    summary.insert(field.to_owned(), value);
    fs::write(&path, serde_json::to_string_pretty(&summary)? + "\n")?;
    println!("written to {}", path.display());
    let mut lines = String::new();
    add_ratios(&summary[field], &mut |case, ratio, value| {
        // Writing to a string does not fail.
        let _ = writeln!(lines, "{field},{case},{ratio},{value:.3}");
    });
    add_to_history(&lines)
}

/// Calls `add` with each ratio in a result: its case, which consists of the scalars next to it, its name and
/// its value.
fn add_ratios(result: &Value, add: &mut impl FnMut(&str, &str, f64)) {
    if let Some(items) = result.as_array() {
        items.iter().for_each(|item| add_ratios(item, add));
    }
    let Some(fields) = result.as_object() else {
        return;
    };
    let ratios = fields.get("ratios").and_then(Value::as_object);
    let case = ["table", "rows", "l", "k"].iter().filter_map(|name| {
        let value = fields.get(*name)?;
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        Some(format!("{name} {text}"))
    });
    let case = case.collect::<Vec<_>>().join("; ");
    for (name, value) in ratios.into_iter().flatten() {
        if let Some(value) = value.as_f64() {
            add(&case, name, value);
        }
    }
    let inner = fields.iter().filter(|(name, _)| *name != "ratios");
    inner.for_each(|(_, value)| add_ratios(value, add));
}

/// Adds lines to `benches/history.csv`, each with the date and the commit of this run.
fn add_to_history(lines: &str) -> anyhow::Result<()> {
    let path = root().join("benches/history.csv");
    let (date, commit) = (
        said("date", &["+%F"])?,
        said("git", &["describe", "--always", "--dirty"])?,
    );
    let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
    if file.metadata()?.len() == 0 {
        writeln!(file, "date,commit,bench,case,ratio,value")?;
    }
    for line in lines.lines() {
        writeln!(file, "{date},{commit},{line}")?;
    }
    println!("ratios added to {}", path.display());
    Ok(())
}

/// The first line that a program prints.
fn said(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output();
    let output = output.with_context(|| format!("{program} cannot be run"))?;
    ensure!(output.status.success(), "{program} failed");
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
