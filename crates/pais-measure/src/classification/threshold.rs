//! The best threshold of an ordered attribute at a node.

use std::ops::Range;

use super::choice::{Candidate, LEAST, LEAST_GAIN, TestedNode};
use super::counts::{ClassWeight, CodeCounts};
use super::examples::Test;
use super::gain::{Logs, bits, parts};

/// Maximum of the required number of examples of a part of a threshold.
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

    fn change(&mut self, by: &[ClassWeight], logs: &Logs, change: impl Fn(u64, u64) -> u64) {
        for &ClassWeight { class, weight } in by {
            let by = u64::from(weight);
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
    /// Of two classes, the weights up to each code.
    low_of_two: Vec<[u32; 2]>,
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

/// The thresholds of an ordered attribute at a node: each is after a code of `places`, by its number among
/// the codes that occur.
struct Thresholds<'a> {
    counts: &'a CodeCounts,
    places: Range<usize>,
    /// Information of the node less that of its examples without a value.
    information: i64,
    logs: &'a Logs,
}

/// A threshold and its gain, in parts of a bit.
#[derive(Clone, Copy)]
struct Best {
    gain: i64,
    /// The code that the threshold is after; `None` before there is one.
    place: Option<usize>,
    /// Weight of the examples below.
    low: u64,
}

impl Thresholds<'_> {
    /// The places between codes that have at least `least` examples on both sides.
    fn places(counts: &CodeCounts, known: usize, least: f64) -> Range<usize> {
        let (mut sum, mut first) = (0u64, 0);
        while first < known && (sum as f64) < least {
            sum += weight(counts.classes(first));
            first += 1;
        }
        let (mut sum, mut end) = (0u64, known);
        while end > first && (sum as f64) < least {
            end -= 1;
            sum += weight(counts.classes(end));
        }
        let start = first.saturating_sub(1);
        if (sum as f64) < least {
            start..start
        } else {
            start..end
        }
    }

    /// The threshold of the greatest gain above `best`, ties go to the lowest one.
    fn best(&self, sides: &mut Sides, mut best: Best) -> Best {
        let Sides { low, high, .. } = sides;
        for place in 0..self.places.end {
            let classes = self.counts.classes(place);
            low.change(classes, self.logs, |count, by| count + by);
            high.change(classes, self.logs, |count, by| count - by);
            if place >= self.places.start {
                let parts = low.information(self.logs) + high.information(self.logs);
                best.take(self.information - parts, place, low.total);
            }
        }
        best
    }

    /// [`Self::best`] of two classes, without a look at thresholds that cannot be better.
    fn best_of_two(&self, sides: &mut Sides, mut best: Best) -> Best {
        let low = &mut sides.low_of_two;
        low.clear();
        let mut sum = [0; 2];
        low.extend((0..self.places.end).map(|place| {
            for &ClassWeight { class, weight } in self.counts.classes(place) {
                sum[class as usize] += weight;
            }
            sum
        }));
        let all = [sides.high.counts[0], sides.high.counts[1]];
        self.best_between(low, all, self.places.clone(), &mut best);
        best
    }

    /// Looks for a better threshold among some.
    ///
    /// The information of both sides is a concave function of the weights below: in the rectangle between the
    /// first threshold and the last one, it is minimal at a corner.
    fn best_between(&self, low: &[[u32; 2]], all: [u64; 2], places: Range<usize>, best: &mut Best) {
        /// Fewer thresholds are looked at one by one.
        const FEW: usize = 8;
        /// Rounding of one threshold and of one corner, six terms each by at most half a part.
        const ROUNDING: i64 = 8;
        let side = |[one, other]: [u64; 2]| {
            let parts = self.logs.of(one) + self.logs.of(other);
            (self.logs.of(one + other) - parts).max(0)
        };
        let gain = |one: u32, other: u32| {
            let (one, other) = (u64::from(one), u64::from(other));
            self.information - side([one, other]) - side([all[0] - one, all[1] - other])
        };
        if places.len() <= FEW {
            for place in places {
                let [one, other] = low[place];
                best.take(gain(one, other), place, u64::from(one) + u64::from(other));
            }
            return;
        }
        let [first, last] = [low[places.start], low[places.end - 1]];
        let corners = [first[0], last[0]].map(|one| {
            let gains = [first[1], last[1]].map(|other| gain(one, other));
            gains[0].max(gains[1])
        });
        if corners[0].max(corners[1]) + ROUNDING <= best.gain {
            return;
        }
        let middle = places.start.midpoint(places.end);
        self.best_between(low, all, places.start..middle, best);
        self.best_between(low, all, middle..places.end, best);
    }
}

impl Best {
    fn take(&mut self, gain: i64, place: usize, low: u64) {
        if gain > self.gain {
            *self = Self {
                gain,
                place: Some(place),
                low,
            };
        }
    }
}

fn weight(classes: &[ClassWeight]) -> u64 {
    classes.iter().map(|it| u64::from(it.weight)).sum()
}

/// The threshold of the greatest gain (ties go to the lowest one), with what is left of its gain after the cost
/// of naming it. `None` if none has a gain. `values` are those of the codes, and `counts` the classes of the
/// codes at the node.
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
    let (known_total, missing_total) = (sides.high.total, sides.missing.total);
    let of_known = sides.high.information(logs);
    let of_missing = sides.missing.information(logs);
    let share = 0.1 * known_total as f64 / classes.len() as f64;
    let least = share.clamp(LEAST as f64, MOST_LEAST);
    let known = counts.len() - usize::from(counts.last(missing_code).is_some());
    let thresholds = Thresholds {
        counts,
        places: Thresholds::places(counts, known, least),
        information: information - of_missing,
        logs,
    };
    // Naming the threshold takes log2(tried) bits (Release 8). A threshold whose gain does not exceed that and
    // the minimum is never chosen.
    let cost = (thresholds.places.len().max(1) as f64).log2();
    let none = Best {
        gain: parts(cost + LEAST_GAIN) - 1,
        place: None,
        low: 0,
    };
    let best = match classes.len() {
        2 => thresholds.best_of_two(sides, none),
        _ => thresholds.best(sides, none),
    };
    let at_threshold = best.place.map(|place| {
        let (below, above) = (counts.code(place), counts.code(place + 1));
        let middle = f64::midpoint(values[below as usize], values[above as usize]);
        // The greatest value of the attribute that is not above the middle.
        let last_low = (values.partition_point(|&value| value <= middle) as u32).max(below + 1) - 1;
        let split = [best.low, known_total - best.low, missing_total];
        Candidate {
            gain: bits(best.gain) - cost,
            split: bits(logs.information(&split)),
            test: Test {
                position,
                last_low: Some(last_low),
            },
        }
    });
    // Separating known from missing values needs no threshold.
    let is_divided = known_total >= LEAST && missing_total >= LEAST;
    let beside_missing = is_divided.then(|| Candidate {
        gain: bits(information - of_known - of_missing),
        split: bits(logs.information(&[known_total, missing_total])),
        test: Test {
            position,
            last_low: Some(missing_code - 1),
        },
    });
    let candidates = at_threshold.into_iter().chain(beside_missing);
    candidates.reduce(|one, other| if other.gain > one.gain { other } else { one })
}
