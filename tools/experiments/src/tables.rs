//! The tables of the experiments: a schema, and a CSV file that is made when it is first needed.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use pais_core::definition::DatasetDefinition;
use pais_core::schema::Schema;
use pais_core::taxonomy::TreeLimits;
use pais_sample::Sample;
use serde_json::{Value, json};
use tempfile::TempDir;

use pais_test_support::{adult, enlarged};

/// The seed of generated rows.
const SEED: u64 = 1;

/// Files above this size are removed when their figure is done, in bytes.
const LARGE: u64 = 50_000_000;

/// A table with the roles of its columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TableSpec {
    /// Adult: 13 quasi-identifiers, marital status is sensitive, income is the class. More rows
    /// than it has are variations of them.
    Adult { rows: usize },
    /// A generated table, with these columns only.
    Generated {
        /// The name of the sample.
        sample: &'static str,
        rows: usize,
        /// Columns that are read and dropped.
        dropped: Vec<&'static str>,
    },
}

impl TableSpec {
    pub(crate) fn blood(rows: usize) -> Self {
        Self::generated("blood", rows, &[])
    }

    pub(crate) fn generated(sample: &'static str, rows: usize, dropped: &[&'static str]) -> Self {
        Self::Generated {
            sample,
            rows,
            dropped: dropped.to_vec(),
        }
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Adult { rows } | Self::Generated { rows, .. } => *rows,
        }
    }

    /// The schema of the table.
    pub(crate) fn schema(&self) -> anyhow::Result<Arc<Schema>> {
        const LIMITS: TreeLimits = TreeLimits {
            leaves: 1_000_000,
            depth: 20,
        };
        let definition = match self {
            Self::Adult { .. } => adult::dataset("adult")?,
            Self::Generated {
                sample, dropped, ..
            } => without(named(sample)?.schema(), dropped),
        };
        let definition: DatasetDefinition = serde_json::from_value(definition)?;
        Ok(Arc::new(Schema::resolve(&definition, LIMITS, |_| None)?))
    }
}

fn named(name: &str) -> anyhow::Result<Sample> {
    let mut all = Sample::ALL.into_iter();
    all.find(|sample| sample.name() == name)
        .with_context(|| format!("no sample is named {name}"))
}

/// The definition with some columns as identifiers, which are dropped when rows are read. Sets are
/// without taxonomies: the 2014 paper discloses items or hides them (Section 5).
fn without(mut definition: Value, dropped: &[&str]) -> Value {
    for column in definition["columns"].as_array_mut().into_iter().flatten() {
        if column["kind"] == "set" {
            column["taxonomy"] = Value::Null;
        }
        if dropped.iter().any(|name| column["name"] == *name) {
            *column = json!({"name": column["name"], "role": "identifier"});
        }
    }
    definition
}

/// The CSV files, in a directory that is removed at the end.
pub(crate) struct TableFiles {
    folder: TempDir,
}

impl TableFiles {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("a directory for the tables")?;
        Ok(Self { folder })
    }

    /// The CSV file of a table.
    pub(crate) fn file(&self, table: &TableSpec) -> anyhow::Result<PathBuf> {
        match table {
            TableSpec::Adult { rows } => enlarged::file(self.folder.path(), &adult::csv()?, *rows),
            TableSpec::Generated { sample, rows, .. } => {
                let path = self.folder.path().join(format!("{sample}-{rows}.csv"));
                if !path.exists() {
                    let mut out = BufWriter::with_capacity(1 << 20, File::create(&path)?);
                    named(sample)?.write_csv(*rows as u64, SEED, &mut out)?;
                    out.flush()?;
                }
                Ok(path)
            }
        }
    }

    /// Where a release is written.
    pub(crate) fn release(&self) -> PathBuf {
        self.folder.path().join("release.csv")
    }

    /// Removes large files, which the next figure does not need.
    pub(crate) fn remove_large(&self) -> anyhow::Result<()> {
        for entry in fs::read_dir(self.folder.path())? {
            let entry = entry?;
            if entry.metadata()?.len() > LARGE {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

fn remove(file: &Path) -> anyhow::Result<()> {
    fs::remove_file(file).with_context(|| format!("{} cannot be removed", file.display()))
}
