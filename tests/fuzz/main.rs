//! Every parser of untrusted bytes on random changes of the samples in `tests/fuzz/corpus`.
//!
//! A target fails on a panic, on an abort, when one input takes too long, and when the process takes
//! too much memory. `PAIS_FUZZ_SECONDS` sets the time for each target; `PAIS_FUZZ_SEED` repeats a
//! run. The input that is being parsed is in `target/tmp/fuzz-<target>.input`, so it is known even
//! after an abort; add it to the corpus together with the fix.

mod targets;

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pais_test_support::mutations::Mutations;
use pais_test_support::split_mix::SplitMix64;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Maximum size of an input, in bytes.
const INPUT_BYTES: usize = 256 << 10;

/// Longest time for one input. A test build on a loaded machine is slow.
const INPUT_TIME: Duration = Duration::from_secs(10);

/// Maximum resident memory of the process, in KiB, with all targets at the same time.
const RESIDENT_KIB: u64 = 1536 << 10;

/// Maximum address space of the process, in bytes: a claim beyond it aborts the test, although its
/// memory would never be touched.
const ADDRESS_BYTES: u64 = 16 << 30;

/// Time for each target, if nothing else is set.
const SECONDS: u64 = 2;

/// Runs a target on its corpus, and then on changes of it until its time is over.
fn fuzz(target: &str, tokens: &[&[u8]], parse: impl Fn(&[u8])) {
    bound_address_space();
    let samples = corpus(target);
    let input = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{target}.input"));
    let check = |bytes: &[u8], what: &str| {
        fs::write(&input, bytes).unwrap();
        let started = Instant::now();
        let parsed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| parse(bytes)));
        let (taken, resident) = (started.elapsed(), peak_resident_kib());
        let report = format!("{target}, {what}: {}", input.display());
        assert!(parsed.is_ok(), "a panic: {report}");
        assert!(taken < INPUT_TIME, "{taken:?}: {report}");
        assert!(resident < RESIDENT_KIB, "{resident} KiB: {report}");
    };
    for sample in &samples {
        check(sample, "a sample of the corpus");
    }
    let time = Duration::from_secs(variable("PAIS_FUZZ_SECONDS").unwrap_or(SECONDS));
    let seed = *seed();
    let started = Instant::now();
    let mut round = 0;
    while started.elapsed() < time {
        let mut random = SplitMix64(seed ^ round);
        let mut mutations = Mutations::new(random.next_u64(), &samples, tokens, INPUT_BYTES);
        let what = format!("round {round} of PAIS_FUZZ_SEED={seed}");
        check(&mutations.mutated(), &what);
        round += 1;
    }
    assert!(round > 0, "no time for {target}");
    let _ = fs::remove_file(&input);
}

/// The seed of this run: a new one, unless it is set.
fn seed() -> &'static u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    SEED.get_or_init(|| {
        variable("PAIS_FUZZ_SEED").unwrap_or_else(|| RandomState::new().hash_one("seed"))
    })
}

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} must be a number")),
    )
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    let files = fs::read_dir(directory.join(target)).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

fn bound_address_space() {
    let now = getrlimit(Resource::As);
    let bound = now
        .maximum
        .map_or(ADDRESS_BYTES, |most| most.min(ADDRESS_BYTES));
    let limits = Rlimit {
        current: Some(bound),
        maximum: now.maximum,
    };
    setrlimit(Resource::As, limits).unwrap();
}

/// The most memory that the process has had so far.
fn peak_resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
