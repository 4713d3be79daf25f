//! `summary.json`: the results of the benchmarks, a field for each.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// The directory `bench` in the target directory, which is created if it does not exist.
pub fn folder() -> anyhow::Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = target.unwrap_or_else(|| root.join("target")).join("bench");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Replaces the field of a benchmark, and keeps those of the others.
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
    Ok(())
}
