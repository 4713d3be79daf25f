//! What the gate accepts, the verifier accepts: of random tables, models, formats and spellings,
//! every release that a run makes is written to a file, read back, and verified against the raw
//! file as `pais verify --raw` does it.
//!
//! Every run draws new cases. A failure prints the number of its case; `PAIS_CASE=<number>` runs
//! that case alone.

mod case;
mod dice;
mod files;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pais_anonymize::{AnonymizationRun, JobPlan, RunError, Unobserved, VerifiedRelease};
use pais_core::cancellation::Cancellation;
use pais_core::definition::Job;
use pais_verify::verify_release;
use rand::TryRng;

use case::Case;
use dice::Dice;

/// Releases that are made and verified.
const RELEASES: usize = 2_000;

/// What became of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Outcome {
    /// The raw file or the job is refused.
    Refused,
    /// No generalization meets the model.
    NotAnonymizable,
    /// A release was made and verified; whether it is anatomized.
    Released { anatomized: bool },
}

#[test]
fn what_anonymize_releases_verify_accepts() {
    if let Ok(case) = std::env::var("PAIS_CASE") {
        let outcome = run(case.parse().expect("PAIS_CASE is a whole number"));
        println!("{outcome:?}");
        return;
    }
    let first = rand::rngs::SysRng.try_next_u64().unwrap() >> 16;
    let next = AtomicU64::new(first);
    let counts = Mutex::new(HashMap::new());
    let search = || {
        loop {
            let case = next.fetch_add(1, Ordering::Relaxed);
            let outcome = std::panic::catch_unwind(|| run(case)).unwrap_or_else(|panic| {
                eprintln!("run this case alone by PAIS_CASE={case}");
                std::panic::resume_unwind(panic)
            });
            let mut counts = counts.lock().unwrap();
            *counts.entry(outcome).or_insert(0) += 1;
            let released = releases(&counts);
            if released >= RELEASES {
                break;
            }
            assert!(
                counts.values().sum::<usize>() < 200 + 20 * released,
                "few cases end in a release: {counts:?}"
            );
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(search);
        }
    });
    let counts = counts.into_inner().unwrap();
    println!("cases from {first} on: {counts:?}");
    assert!(
        counts[&Outcome::Released { anatomized: true }] > 50,
        "{counts:?}"
    );
}

/// How many cases ended in a release.
fn releases(counts: &HashMap<Outcome, usize>) -> usize {
    let releases = counts
        .iter()
        .filter(|(outcome, _)| matches!(outcome, Outcome::Released { .. }));
    releases.map(|(_, count)| count).sum()
}

fn run(number: u64) -> Outcome {
    let mut dice = Dice::new(number);
    let case = Case::draw(&mut dice);
    let Ok(raw) = files::read_raw(&case) else {
        return Outcome::Refused;
    };
    let Ok(job) = &case.job else {
        return Outcome::Refused;
    };
    let Ok(plan) = JobPlan::new(&case.schema, job) else {
        return Outcome::Refused;
    };
    let output = plan.output();
    let release = match release(&case, job, raw.clone()) {
        Ok(release) => release,
        Err(RunError::NotAnonymizable { .. }) => return Outcome::NotAnonymizable,
        Err(RunError::Job(_)) => return Outcome::Refused,
        Err(error) => panic!("{error}\n{case:#?}"),
    };
    let format = files::draw_format(&mut dice);
    let tables = files::through(&case.schema, release.tables(), output, format);
    let cancellation = Cancellation::new();
    let found = verify_release(&case.schema, job, &tables, Some(raw), &cancellation);
    let found = found.unwrap_or_else(|error| panic!("{error}\n{format:?} {release:#?}\n{case:#?}"));
    assert!(
        found.holds(),
        "{found:#?}\n{format:?} {release:#?}\n{case:#?}"
    );
    let confidence = found.privacy.as_ref().unwrap().greatest_confidence();
    for stated in [
        release.verification().greatest_confidence(),
        release.report().utility.greatest_confidence,
    ] {
        assert_eq!(stated, confidence, "{release:#?}\n{case:#?}");
    }
    Outcome::Released {
        anatomized: release.tables().len() > 1,
    }
}

fn release(
    case: &Case,
    job: &Job,
    raw: pais_core::table::Table,
) -> Result<VerifiedRelease, RunError> {
    let observer = Unobserved::default();
    let schema = Arc::new(case.schema.clone());
    let run = AnonymizationRun::new(schema, job.clone(), raw, &observer)?;
    let found = run.search(&observer)?;
    let step = match found.steps().len() {
        0 => None,
        count => Some(case.step % count as u32),
    };
    run.release(&found, step, &observer)
}
