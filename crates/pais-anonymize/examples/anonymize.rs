//! Table 1 of the KDD'09 paper as a library user handles it: read, anonymize, verify, write.
//!
//! `cargo run -p pais-anonymize --example anonymize`, from the root of the repository.

use std::{env::temp_dir, error::Error, fs::File, io};

use pais_anonymize::Anonymizer;
use pais_core::definition::{ColumnDefinition as Column, TaxonomyNode};
use pais_core::model::Lkc;
use pais_core::schema::Schema;
use pais_io::{read, write};

fn main() -> Result<(), Box<dyn Error>> {
    run(File::open("tests/data/kdd09/table1.csv")?, io::stdout())
}

/// Anonymizes a file, prints the loss of the release, and writes it.
pub(crate) fn run(file: File, mut out: impl io::Write) -> Result<(), Box<dyn Error>> {
    let schema = Schema::builder()
        .column(Column::identifier("ID"))
        .column(Column::quasi_identifier("Job"))
        .column(Column::quasi_identifier("Sex").taxonomy(TaxonomyNode::new("ANY", ["F", "M"])))
        .column(Column::quasi_identifier("Age").numeric(1.0, 99.0))
        .column(Column::class("Transfuse"))
        .column(Column::sensitive("Surgery"))
        .build()?;
    let table = read::csv::read_table(&schema, file)?;
    let model = Lkc::new(2, 2, 0.5)?.sensitive("Surgery", ["Transgender"]);
    let run = Anonymizer::new(model).run(&schema, &table)?;
    writeln!(out, "NCP {:.3}", run.report().utility.ncp)?;
    let file = &mut File::create(temp_dir().join("release.csv"))?;
    Ok(write::csv(&run.tables()[0], file)?)
}
