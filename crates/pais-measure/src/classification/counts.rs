//! How the classes of a node are distributed over the codes of an attribute.

use std::ops::Range;

use super::examples::{AttributeCodes, Examples, MOST_CLASSES, MOST_PLACES, PlaceBlock};
use super::features::MOST_VALUES;
use super::learnt::{LearntExample, NodeExamples};

/// Maximum size of the array of all codes and classes of a wide attribute, in places for each example of the
/// node. If it would be larger, the examples are sorted instead, so that a node of few examples does not read
/// all codes of a column with many.
const MOST_PLACES_AN_EXAMPLE: usize = 4;

/// Nodes of at most this many examples note the places that they weigh; others look at all places. Lower in tests,
/// which have small tables.
const FEW_EXAMPLES: usize = if cfg!(test) { 8 } else { 256 };

/// What the array of weights of narrow attributes has.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum NarrowState {
    /// Zeros.
    #[default]
    Empty,
    /// The weights of a node of few examples, which are taken out as they are read.
    Few,
    /// The weights of a node.
    Whole,
    /// The weights of the node that is counted next.
    Next,
}

/// The weight of the examples of a class.
#[derive(Clone, Copy)]
pub(super) struct ClassWeight {
    pub(super) class: u32,
    pub(super) weight: u32,
}

/// Class counts of the codes of an attribute at a node; kept between nodes for its memory.
#[derive(Default)]
pub(super) struct CodeCounts {
    /// The codes that occur, ascending.
    codes: Vec<u32>,
    /// Where the classes of each code end in `classes`.
    ends: Vec<u32>,
    /// The classes that occur with a code, code after code.
    classes: Vec<ClassWeight>,
    /// Weights by place of [`Examples::places`].
    narrow: Vec<u32>,
    state: NarrowState,
    /// One bit for each place that has weight, in nodes of few examples. 0 between uses.
    weighed: Vec<u64>,
    /// The narrow attributes of the node.
    counted: Vec<usize>,
    /// Weights by code and class of a wide attribute. 0 between uses.
    wide: Vec<u32>,
    /// Code and class of each example in one number, which sorts faster than two, and weight.
    sorted: Vec<(u64, u32)>,
}

/// Bytes that a tree of this many examples with this many attributes needs in addition to them: twice what
/// moves between nodes, branches, a node for each, the totals of a node, the weights below each threshold, and
/// what [`CodeCounts`] keeps.
pub(super) fn growth_bytes(examples: u64, attributes: u64) -> u64 {
    const NODE: u64 = 96;
    const MOVED: u64 = size_of::<LearntExample>() as u64;
    const EXAMPLE: u64 = 2 * MOVED + 4 + 8 + (4 + 4 + 8) + 16 + NODE;
    const TOTALS: u64 = 8 * MOST_CLASSES as u64;
    const MOST_TOTALS: u64 = (MOST_VALUES as u64 + 2) * TOTALS;
    const NARROW: u64 = MOST_PLACES as u64 * 4 + MOST_PLACES as u64 / 8;
    const BLOCK: u64 = size_of::<PlaceBlock>() as u64;
    let places = 2 * attributes.saturating_mul(2).next_multiple_of(BLOCK);
    let wide = 4 * MOST_PLACES_AN_EXAMPLE as u64;
    examples
        .saturating_mul(EXAMPLE + places + wide)
        .saturating_add(NARROW)
        .saturating_add(examples.saturating_mul(TOTALS).min(MOST_TOTALS))
}

impl CodeCounts {
    /// Counts the narrow ones of some attributes over the examples of a node, in one pass. [`Self::count`] has the
    /// counts of each.
    ///
    /// An example adds to as many places as there are attributes. So an addition that waits for the previous
    /// one at the same place, as with attributes of which most examples have one code, does not delay the
    /// others.
    pub(super) fn count_narrow(
        &mut self,
        examples: &Examples,
        attributes: &[usize],
        node: NodeExamples<'_>,
    ) {
        let places = examples.place_count().next_multiple_of(64);
        self.narrow.resize(places, 0);
        self.weighed.resize(places / 64, 0);
        self.counted.clear();
        let narrow =
            attributes
                .iter()
                .filter_map(|&position| match examples.attributes[position].codes {
                    AttributeCodes::Narrow(number) => Some(number),
                    AttributeCodes::Wide(_) => None,
                });
        self.counted.extend(narrow);
        if self.state == NarrowState::Next {
            self.state = NarrowState::Whole;
        } else if node.learnt.len() <= FEW_EXAMPLES {
            self.state = NarrowState::Few;
            let weights = &mut self.narrow[..];
            for (weight, places) in node.weighted_places() {
                for &number in &self.counted {
                    let place = usize::from(places[number]);
                    weights[place] += weight;
                    self.weighed[place / 64] |= 1 << (place % 64);
                }
            }
        } else {
            self.state = NarrowState::Whole;
            self.change_narrow(examples, node, |sum, weight| sum + weight);
        }
    }

    /// Changes the weights of the places of a node.
    fn change_narrow(
        &mut self,
        examples: &Examples,
        node: NodeExamples<'_>,
        change: impl Fn(u32, u32) -> u32,
    ) {
        let weights = &mut self.narrow[..];
        let width = examples.starts.len();
        if self.counted.len() == width {
            for (weight, places) in node.weighted_places() {
                for &place in &places[..width] {
                    let sum = &mut weights[usize::from(place)];
                    *sum = change(*sum, weight);
                }
            }
        } else {
            for (weight, places) in node.weighted_places() {
                for &number in &self.counted {
                    let sum = &mut weights[usize::from(places[number])];
                    *sum = change(*sum, weight);
                }
            }
        }
    }

    /// Ends the node that was counted: `others` are all of its examples except those of the node that is
    /// counted next. If they are fewer, they are subtracted from the counts, and the next node need not be
    /// counted.
    pub(super) fn keep<'a>(
        &mut self,
        examples: &Examples,
        next: usize,
        others: impl Iterator<Item = NodeExamples<'a>> + Clone,
    ) {
        let count: usize = others.clone().map(|it| it.learnt.len()).sum();
        if self.state != NarrowState::Whole || next <= FEW_EXAMPLES || count >= next {
            self.clear();
            return;
        }
        for other in others {
            self.change_narrow(examples, other, |sum, weight| sum - weight);
        }
        self.state = NarrowState::Next;
    }

    /// Ends a node, after which another one is counted from the start.
    pub(super) fn clear(&mut self) {
        if matches!(self.state, NarrowState::Whole | NarrowState::Next) {
            self.narrow.fill(0);
        }
        self.state = NarrowState::Empty;
    }

    /// The counts of an attribute, which [`Self::count_narrow`] was given. Reads its places, or, for an
    /// attribute that is not narrow, reads each example in order, or sorts the examples.
    pub(super) fn count(&mut self, examples: &Examples, position: usize, node: NodeExamples<'_>) {
        let attribute = &examples.attributes[position];
        self.codes.clear();
        self.ends.clear();
        self.classes.clear();
        let classes = examples.class_count as usize;
        let places = attribute.domain.code_count() * classes;
        match &attribute.codes {
            AttributeCodes::Narrow(number) => {
                let start = examples.starts[*number];
                self.read_narrow(examples, start..start + places);
            }
            AttributeCodes::Wide(codes) => {
                let is_ascending = examples.ascending == Some(position);
                let most = node.learnt.len().saturating_mul(MOST_PLACES_AN_EXAMPLE);
                if places <= most && !is_ascending {
                    self.count_wide(codes, places, classes, node.learnt);
                } else {
                    self.count_sorted(codes, is_ascending, node.learnt);
                }
            }
        }
    }

    /// Reads the weights of a narrow attribute, which are at some places.
    fn read_narrow(&mut self, examples: &Examples, places: Range<usize>) {
        let classes = examples.class_count;
        let is_noted = self.state == NarrowState::Few;
        let words = places.start / 64..places.end.div_ceil(64);
        let weights = self.narrow[words.start * 64..words.end * 64].chunks_exact_mut(64);
        let words = self.weighed[words].iter_mut().zip(weights);
        for ((weighed, weights), from) in words.zip((places.start..).step_by(64)) {
            let mut left = if is_noted {
                std::mem::take(weighed)
            } else {
                let bits = weights.iter().zip(0..);
                bits.fold(0, |bits, (&weight, place)| {
                    bits | u64::from(weight > 0) << place
                })
            };
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                let code = examples.code_at((from + bit) as u16);
                let class = (from + bit - places.start) as u32 - code * classes;
                let weight = weights[bit];
                self.classes.push(ClassWeight { class, weight });
                if is_noted {
                    weights[bit] = 0;
                }
                if self.codes.last() != Some(&code) {
                    self.codes.push(code);
                    self.ends.push(0);
                }
                if let Some(end) = self.ends.last_mut() {
                    *end = self.classes.len() as u32;
                }
            }
        }
    }

    fn count_wide(
        &mut self,
        codes: &[u32],
        places: usize,
        classes: usize,
        learnt: &[LearntExample],
    ) {
        self.wide.resize(places.max(self.wide.len()), 0);
        for example in learnt {
            let code = codes[example.number as usize];
            self.wide[code as usize * classes + example.class as usize] += example.weight;
        }
        let codes = self.wide[..places].chunks_exact_mut(classes);
        for (code, weights) in (0..).zip(codes) {
            let before = self.classes.len();
            for (class, weight) in (0..).zip(weights) {
                let weight = std::mem::take(weight);
                if weight > 0 {
                    self.classes.push(ClassWeight { class, weight });
                }
            }
            if self.classes.len() > before {
                self.codes.push(code);
                self.ends.push(self.classes.len() as u32);
            }
        }
    }

    fn count_sorted(&mut self, codes: &[u32], is_ascending: bool, learnt: &[LearntExample]) {
        let keyed = learnt.iter().map(|example| {
            let code = codes[example.number as usize];
            (
                u64::from(code) << 32 | u64::from(example.class),
                example.weight,
            )
        });
        if is_ascending {
            self.add_ascending(keyed);
        } else {
            let mut sorted = std::mem::take(&mut self.sorted);
            sorted.extend(keyed);
            sorted.sort_unstable_by_key(|&(key, _)| key);
            self.add_ascending(sorted.drain(..));
            self.sorted = sorted;
        }
    }

    /// Adds examples whose codes and classes ascend, in one number, with their weights.
    fn add_ascending(&mut self, examples: impl Iterator<Item = (u64, u32)>) {
        let mut last_key = None;
        for (key, weight) in examples {
            let (code, class) = ((key >> 32) as u32, key as u32);
            match self.classes.last_mut() {
                Some(last) if last_key == Some(key) => last.weight += weight,
                _ => self.classes.push(ClassWeight { class, weight }),
            }
            last_key = Some(key);
            if self.codes.last() != Some(&code) {
                self.codes.push(code);
                self.ends.push(0);
            }
            if let Some(end) = self.ends.last_mut() {
                *end = self.classes.len() as u32;
            }
        }
    }

    /// A code that occurs, by its number among these in ascending order.
    pub(super) fn code(&self, place: usize) -> u32 {
        self.codes[place]
    }

    /// The classes that occur with it.
    #[inline]
    pub(super) fn classes(&self, place: usize) -> &[ClassWeight] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.classes[start as usize..self.ends[place] as usize]
    }

    /// The classes of `code`, where it is the last code that occurs.
    pub(super) fn last(&self, code: u32) -> Option<&[ClassWeight]> {
        let is_last = self.codes.last() == Some(&code);
        is_last.then(|| self.classes(self.len() - 1))
    }

    /// Number of codes that occur.
    pub(super) fn len(&self) -> usize {
        self.codes.len()
    }
}
