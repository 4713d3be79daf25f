//! The test of a node: gain ratio among the tests with at least average gain.

use super::examples::{Attribute, Examples};
use super::gain::{Logs, bits};

/// Fewest examples that at least two branches have.
pub(super) const LEAST: u64 = 2;

/// A gain of less is none, in bits over all examples of a node; rounding errors are far below it.
pub(super) const LEAST_GAIN: f64 = 1e-3;

/// A nominal attribute with at least this share of values among the examples does not count in the
/// average gain, unless all do.
const MANY_VALUES: f64 = 0.3;

/// A test of one attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) position: usize,
    /// The last code below the threshold of an ordered attribute; `None` where each value of a
    /// nominal one has a branch.
    pub(super) last_low: Option<u32>,
}

impl Test {
    /// The branch of a code: the code, or at a threshold 0 up to it, 1 above it, 2 for missing.
    pub(super) fn branch(self, code: u32, missing: u32) -> u32 {
        match self.last_low {
            None => code,
            Some(_) if code == missing => 2,
            Some(last_low) => u32::from(code > last_low),
        }
    }
}

/// A test with what it is worth, in bits over all examples of the node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    /// What the classes lose of their information.
    pub(super) gain: f64,
    /// Information of the branches.
    pub(super) split: f64,
    pub(super) test: Test,
}

/// Class counts of the values of a nominal attribute; kept between nodes.
#[derive(Default)]
pub(super) struct ValueCounts {
    /// Classes of value after value, in the order in which values were met.
    counts: Vec<u64>,
    /// Where the counts of a code are; `u32::MAX` for one that was not met.
    slots: Vec<u32>,
    met: Vec<u32>,
}

impl ValueCounts {
    /// The test by the values that occur in some examples; `None` where fewer than two of them
    /// have [`LEAST`] examples.
    pub(super) fn test(
        &mut self,
        examples: &Examples,
        (position, attribute): (usize, &Attribute),
        rows: &[u32],
        base: i64,
        logs: &Logs,
    ) -> Option<Candidate> {
        let classes = examples.class_count as usize;
        let codes = attribute.domain.code_count();
        if self.slots.len() < codes {
            self.slots.resize(codes, u32::MAX);
        }
        self.counts.clear();
        for &row in rows {
            let row = row as usize;
            let code = attribute.codes[row];
            let slot = &mut self.slots[code as usize];
            if *slot == u32::MAX {
                *slot = self.met.len() as u32;
                self.met.push(code);
                self.counts.resize(self.met.len() * classes, 0);
            }
            let at = *slot as usize * classes + examples.classes[row] as usize;
            self.counts[at] += u64::from(examples.weights[row]);
        }
        let (mut large, mut total, mut within, mut parts) = (0, 0, 0, 0);
        for &code in &self.met {
            let start = self.slots[code as usize] as usize * classes;
            let counts = &self.counts[start..start + classes];
            let weight: u64 = counts.iter().sum();
            large += usize::from(weight >= LEAST);
            total += weight;
            within += logs.information(counts);
            parts += logs.of(weight);
        }
        for code in self.met.drain(..) {
            self.slots[code as usize] = u32::MAX;
        }
        (large >= 2).then(|| Candidate {
            gain: bits(base - within),
            split: bits(logs.of(total) - parts),
            test: Test {
                position,
                last_low: None,
            },
        })
    }
}

/// The test of the greatest gain ratio among those with at least average gain; the first of equals.
/// `all` is the weight of the examples of the whole tree.
pub(super) fn choose(examples: &Examples, candidates: &[Candidate], all: u64) -> Option<Candidate> {
    let gaining = || {
        candidates
            .iter()
            .filter(|candidate| candidate.gain > LEAST_GAIN)
    };
    let has_many_values = |candidate: &&Candidate| {
        let Test { position, last_low } = candidate.test;
        let values = examples.attributes[position].domain.code_count();
        last_low.is_none() && values as f64 >= MANY_VALUES * all as f64
    };
    let mean = |gains: &mut dyn Iterator<Item = &Candidate>| {
        let (count, sum) = gains.fold((0u32, 0.0), |(count, sum), it| (count + 1, sum + it.gain));
        (count > 0).then(|| sum / f64::from(count))
    };
    let mean = mean(&mut gaining().filter(|it| !has_many_values(it))).or(mean(&mut gaining()))?;
    let mut best: Option<(f64, Candidate)> = None;
    for candidate in gaining() {
        if candidate.gain < mean - LEAST_GAIN || candidate.split <= LEAST_GAIN {
            continue;
        }
        let ratio = candidate.gain / candidate.split;
        if best.is_none_or(|(most, _)| ratio > most) {
            best = Some((ratio, *candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}
