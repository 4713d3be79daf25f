//! The fault suite. Hospitals send requests while a fault occurs. Afterwards every acknowledged submission
//! must be complete, every acknowledged job must have ended exactly once, every release must verify, the
//! audit log must have each operation once, and no part of an operation that failed may be visible.
//!
//! The seed of a round determines the operations of the hospitals, the fault and its time. It is printed:
//! `PAIS_FAULT_SEED` repeats a round. `PAIS_FAULT_ROUNDS` and `PAIS_FAULT_JOBS` set the length of the tests,
//! as `make faults` does.

mod check;
mod client;
mod clock;
mod cluster;
mod drain;
mod fault;

use std::hash::{BuildHasher, RandomState};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use futures_util::FutureExt;

use check::{Checked, check_database};
use client::{Admission, Answers, Hospital};
use cluster::Cluster;
use fault::Fault;
use pais_test_support::split_mix::SplitMix64;

/// Number of rounds, if `PAIS_FAULT_ROUNDS` is not set. Consecutive seeds have consecutive faults.
const ROUNDS: u64 = 4;

/// Number of hospitals that work at the same time.
const HOSPITALS: u64 = 3;

/// The value of an environment variable, which must be a number.
fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} must be a number")))
}

fn first_seed() -> u64 {
    let drawn = || RandomState::new().hash_one("seed") >> 20;
    variable("PAIS_FAULT_SEED").unwrap_or_else(drawn)
}

/// Runs the work of a seed. If it fails, the command that repeats it is printed.
async fn seeded<T>(seed: u64, work: impl Future<Output = T>) -> T {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(done) => done,
        Err(failure) => {
            println!("repeat it with PAIS_FAULT_SEED={seed} PAIS_FAULT_ROUNDS=1");
            std::panic::resume_unwind(failure)
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_doubled_or_half_done() {
    let (first, rounds) = (
        first_seed(),
        variable("PAIS_FAULT_ROUNDS").unwrap_or(ROUNDS),
    );
    let mut cluster = Cluster::start().await;
    let administrator = cluster.administrator().await;
    for number in 0..rounds {
        let seed = first + number;
        println!("round {} of {rounds}: PAIS_FAULT_SEED={seed}", number + 1);
        let round = seeded(seed, round(&mut cluster, &administrator, seed)).await;
        println!("    {round}");
    }
    cluster.stop().await;
}

/// Runs one round and returns a summary.
async fn round(cluster: &mut Cluster, administrator: &str, seed: u64) -> String {
    let began = Instant::now();
    let mut random = SplitMix64(seed);
    let fault = Fault::ALL[(seed % Fault::ALL.len() as u64) as usize];
    let urls = cluster.urls();
    let admission = Admission {
        urls: &urls,
        administrator,
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let mut working = Vec::new();
    for number in 0..HOSPITALS {
        let name = format!("hospital-{seed}-{number}");
        let hospital = Hospital::join(&admission, name, random.next_u64()).await;
        let is_over = is_over.clone();
        working.push(tokio::spawn(async move { hospital.work(&is_over).await }));
    }
    let hit = fault.happen(cluster, &mut random).await;
    is_over.store(true, Ordering::Relaxed);
    let mut hospitals = Vec::new();
    for hospital in working {
        // A panic in the task of a hospital fails the round.
        let hospital = hospital.await.map_err(tokio::task::JoinError::into_panic);
        hospitals.push(hospital.unwrap_or_else(|failure| std::panic::resume_unwind(failure)));
    }
    let worked = began.elapsed();
    cluster.heal().await;
    let healed = began.elapsed();
    let (mut all, mut checked) = (Answers::default(), Checked::default());
    for hospital in &mut hospitals {
        hospital.settle().await;
    }
    let settled = began.elapsed();
    for hospital in &mut hospitals {
        let of_one = hospital.check(cluster, fault.error()).await;
        checked.jobs += of_one.jobs;
        checked.releases += of_one.releases;
        let answers = hospital.answers;
        all.good += answers.good;
        all.refused += answers.refused;
        all.unable += answers.unable;
        all.none += answers.none;
    }
    check_database(cluster).await;
    if fault == Fault::RollingRestart {
        assert_eq!(
            all.unable, 0,
            "a request failed during a rolling restart: {all:?}"
        );
    }
    let Answers {
        good,
        refused,
        unable,
        none,
    } = all;
    let Checked { jobs, releases } = checked;
    format!(
        "{fault:?} {hit}: {good} requests were answered, {refused} refused, {unable} not possible, {none} cut \
         off; {jobs} jobs and {releases} releases hold; {:.1} s of work, healed in {:.1} s, settled in {:.1} s, \
         checked in {:.1} s",
        worked.as_secs_f32(),
        (healed - worked).as_secs_f32(),
        (settled - healed).as_secs_f32(),
        (began.elapsed() - settled).as_secs_f32(),
    )
}
