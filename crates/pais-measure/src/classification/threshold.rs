//! The best threshold of an ordered attribute at a node.

use super::choice::{Candidate, LEAST, Test, TestedNode};
use super::counts::CodeCounts;
use super::gain::{Logs, bits};

/// A part of a threshold has at most this many examples at least.
const MOST_LEAST: f64 = 25.0;

/// Class counts of some examples, with the sum of their *x · log2 x*.
#[derive(Default)]
struct Side {
    counts: Vec<u64>,
    total: u64,
    sum: i64,
}

impl Side {
    fn clear(&mut self, classes: usize) {
        self.counts.clear();
        self.counts.resize(classes, 0);
        (self.total, self.sum) = (0, 0);
    }

    fn change(&mut self, by: &[(u32, u32)], logs: &Logs, change: impl Fn(u64, u64) -> u64) {
        for &(class, by) in by {
            let by = u64::from(by);
            let count = &mut self.counts[class as usize];
            let after = change(*count, by);
            self.sum += logs.of(after) - logs.of(*count);
            self.total = change(self.total, by);
            *count = after;
        }
    }

    fn information(&self, logs: &Logs) -> i64 {
        (logs.of(self.total) - self.sum).max(0)
    }
}

/// The examples of a node below a threshold, above it, and without a value; kept between nodes for their
/// memory.
#[derive(Default)]
pub(super) struct Sides {
    low: Side,
    high: Side,
    missing: Side,
}

impl Sides {
    /// All known values are above.
    fn start(&mut self, counts: &CodeCounts, missing_code: u32, class_counts: &[u64], logs: &Logs) {
        for side in [&mut self.low, &mut self.high, &mut self.missing] {
            side.clear(class_counts.len());
        }
        if let Some(classes) = counts.last(missing_code) {
            self.missing.change(classes, logs, |count, by| count + by);
        }
        let known = class_counts.iter().zip(&self.missing.counts);
        for (count, (all, missing)) in self.high.counts.iter_mut().zip(known) {
            *count = all - missing;
            self.high.total += *count;
            self.high.sum += logs.of(*count);
        }
    }
}

/// The threshold of the greatest gain, the lowest one of equals, with what is left of its gain
/// after the cost of its name. `None` where there is none. `values` are those of the codes, and `counts`
/// the classes of the codes at the node.
pub(super) fn best_threshold(
    position: usize,
    values: &[f64],
    counts: &CodeCounts,
    node: TestedNode<'_>,
    sides: &mut Sides,
) -> Option<Candidate> {
    let TestedNode {
        classes,
        information,
        logs,
    } = node;
    let missing_code = values.len() as u32;
    sides.start(counts, missing_code, classes, logs);
    let Sides { low, high, missing } = sides;
    let known_total = high.total;
    let (of_known, of_missing) = (high.information(logs), missing.information(logs));
    let share = 0.1 * known_total as f64 / classes.len() as f64;
    let least = share.clamp(LEAST as f64, MOST_LEAST);
    let mut best: Option<(i64, u32, u32, i64)> = None;
    let mut tried = 0u64;
    let mut known = counts.iter().take_while(|(code, _)| *code < missing_code);
    let mut current = known.next();
    while let Some((code, of_code)) = current {
        let next = known.next();
        low.change(of_code, logs, |count, by| count + by);
        high.change(of_code, logs, |count, by| count - by);
        current = next;
        let Some((above, _)) = next else { break };
        if (low.total as f64) < least {
            continue;
        }
        if (high.total as f64) < least {
            break;
        }
        tried += 1;
        let gain = information - low.information(logs) - high.information(logs) - of_missing;
        if best.is_none_or(|(most, ..)| gain > most) {
            let split = logs.information(&[low.total, high.total, missing.total]);
            best = Some((gain, code, above, split));
        }
    }
    let at_threshold = best.map(|(gain, below, above, split)| {
        let middle = f64::midpoint(values[below as usize], values[above as usize]);
        // The greatest value of the attribute that is not above the middle.
        let last_low = (values.partition_point(|&value| value <= middle) as u32).max(below + 1) - 1;
        Candidate {
            // To name the threshold takes log2(tried) bits (Release 8).
            gain: bits(gain) - (tried as f64).log2(),
            split: bits(split),
            test: Test {
                position,
                last_low: Some(last_low),
            },
        }
    });
    // What is known beside what is missing needs no threshold.
    let is_divided = known_total >= LEAST && missing.total >= LEAST;
    let beside_missing = is_divided.then(|| Candidate {
        gain: bits(information - of_known - of_missing),
        split: bits(logs.information(&[known_total, missing.total])),
        test: Test {
            position,
            last_low: Some(missing_code - 1),
        },
    });
    let candidates = at_threshold.into_iter().chain(beside_missing);
    candidates.reduce(|one, other| if other.gain > one.gain { other } else { one })
}
