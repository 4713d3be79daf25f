//! Table 1 of the KDD'09 paper as a library user handles it: read, anonymize, verify, write.
//!
//! `cargo run -p pais-anonymize --example anonymize`, from the root of the repository.

use std::error::Error;
use std::fs::{self, File};
use std::sync::Arc;

use pais_anonymize::pais_core::cancellation::Cancellation;
use pais_anonymize::pais_core::definition::{DatasetDefinition, JobDefinition, json};
use pais_anonymize::pais_core::read::csv;
use pais_anonymize::pais_core::schema::Schema;
use pais_anonymize::pais_verify::{ReleaseTables, verify_release};
use pais_anonymize::utility::Report;
use pais_anonymize::{AnonymizationRun, Unobserved};

fn main() -> Result<(), Box<dyn Error>> {
    let dataset: DatasetDefinition = json::parse(&fs::read("examples/table1/dataset.json")?)?;
    let job: JobDefinition = json::parse(&fs::read("examples/table1/job.json")?)?;
    let schema = Arc::new(Schema::inline(&dataset)?);
    let table = csv::read_table(&schema, File::open("tests/data/kdd09/table1.csv")?)?;

    let observer = Unobserved::default();
    let run = AnonymizationRun::new(schema.clone(), job.clone(), table.clone(), &observer)?;
    let steps = run.search(&observer)?;
    for step in steps.iter().skip(1).map(|record| &record.item) {
        let column = step.attribute.as_deref().unwrap_or_default();
        let children = step.children.join(", ");
        println!("{column}: {} -> {children}", step.value.as_deref().unwrap_or_default());
    }

    let release = run.release(&steps, None, &observer)?;
    let report: Report = serde_json::from_value(release.report.clone())?;
    let groups = &report.utility.groups;
    println!("{} groups, DR {:.3}, NCP {:.3}", groups.groups, groups.dr, report.utility.ncp);

    let [released] = release.tables() else {
        return Err("a generalized release has one table".into());
    };
    let tables = ReleaseTables::Generalized(released.clone());
    let found = verify_release(&schema, &job, &tables, Some(table), &Cancellation::new())?;
    println!("verified against the raw table: {}", found.holds());

    released.write_csv(&mut File::create(std::env::temp_dir().join("released.csv"))?)?;
    Ok(())
}
