//! The search only, on Adult in memory.

use pais_test_support::adult;
use std::sync::Arc;

use pais_anonymize::{AnonymizationRun, Unobserved};
use pais_core::definition::{DatasetDefinition, JobDefinition};
use pais_core::schema::Schema;
use pais_core::taxonomy::TreeLimits;
use pais_io::chunk::Assembler;
use pais_io::read::{ReadLimits, csv};

fn main() {
    divan::main();
}

/// K = 20 and C = 100 %; the argument is L.
#[divan::bench(args = [2, 4, 6], sample_count = 20)]
fn adult_search(bencher: divan::Bencher<'_, '_>, l: u32) {
    let prepared = prepared(l);
    bencher.bench_local(|| {
        prepared
            .search(&Unobserved::default())
            .map(|steps| steps.steps().len())
    });
}

/// Panics if the files of the data set cannot be read.
fn prepared(l: u32) -> AnonymizationRun {
    const LIMITS: TreeLimits = TreeLimits {
        leaves: 10_000,
        depth: 20,
    };
    let dataset = adult::dataset("adult").expect("Adult's taxonomies");
    let definition: DatasetDefinition = serde_json::from_value(dataset).expect("a dataset");
    let schema = Schema::resolve(&definition, LIMITS, |_| None).expect("a schema");
    let job: JobDefinition = serde_json::from_value(adult::job(l)).expect("a job");
    let job = job.parse().expect("a job");
    let text = adult::csv().expect("Adult's records");
    let mut assembler = Assembler::default();
    csv::read(&schema, text.as_slice(), ReadLimits::default(), |chunk| {
        assembler.push(chunk)
    })
    .expect("rows");
    AnonymizationRun::new(
        Arc::new(schema),
        job,
        assembler.finish(),
        &Unobserved::default(),
    )
    .expect("a job that fits")
}
