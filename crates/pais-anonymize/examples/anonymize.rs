//! Table 1 of the KDD'09 paper as a library user handles it: read, anonymize, verify, write.
//!
//! `cargo run -p pais-anonymize --example anonymize`, from the root of the repository.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use pais_anonymize::pais_core::cancellation::Cancellation;
use pais_anonymize::pais_core::definition::{DatasetDefinition, JobDefinition, json};
use pais_anonymize::pais_core::read::csv;
use pais_anonymize::pais_core::schema::Schema;
use pais_anonymize::pais_verify::{ReleaseTables, verify_release};
use pais_anonymize::utility::Report;
use pais_anonymize::{AnonymizationRun, Unobserved};

fn main() -> Result<(), Box<dyn Error>> {
    run(Path::new("."), &mut io::stdout())
}

/// Anonymizes `tests/data/kdd09/table1.csv` below `root`, and prints what happens.
pub(crate) fn run(root: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let dataset: DatasetDefinition =
        json::parse(&fs::read(root.join("examples/table1/dataset.json"))?)?;
    let job: JobDefinition = json::parse(&fs::read(root.join("examples/table1/job.json"))?)?;
    let schema = Arc::new(Schema::inline(&dataset)?);
    let table = csv::read_table(
        &schema,
        File::open(root.join("tests/data/kdd09/table1.csv"))?,
    )?;

    let observer = Unobserved::default();
    let run = AnonymizationRun::new(schema.clone(), job.clone(), table.clone(), &observer)?;
    let steps = run.search(&observer)?;
    for step in steps.steps().iter().skip(1).map(|record| &record.item) {
        let (column, value) = (step.attribute.as_deref(), step.value.as_deref());
        let (column, value) = (column.unwrap_or_default(), value.unwrap_or_default());
        writeln!(out, "{column}: {value} -> {}", step.children.join(", "))?;
    }

    let release = run.release(&steps, None, &observer)?;
    let report: Report = serde_json::from_value(release.report.clone())?;
    let (groups, ncp) = (&report.utility.groups, report.utility.ncp);
    writeln!(
        out,
        "{} groups, DR {:.3}, NCP {ncp:.3}",
        groups.groups, groups.dr
    )?;

    let [released] = release.tables() else {
        return Err("a generalized release has one table".into());
    };
    let tables = ReleaseTables::Generalized(released.clone());
    let found = verify_release(&schema, &job, &tables, Some(table), &Cancellation::new())?;
    writeln!(out, "verified against the raw table: {}", found.holds())?;

    let mut csv = Vec::new();
    released.write_csv(&mut csv)?;
    writeln!(out, "{} bytes of CSV", csv.len())?;
    Ok(())
}
