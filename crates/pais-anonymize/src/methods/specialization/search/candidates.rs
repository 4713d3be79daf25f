//! The candidates of a search, and the best one of them.

use std::ops::Deref;

use super::super::attribute::{Attribute, Concept, ConceptId};
use super::super::score::{SplitQueue, TIE};

/// A value of ∪Cut that may still be specialized.
pub(super) struct CutCandidate {
    pub(super) attribute: usize,
    pub(super) concept: ConceptId,
    /// The first code of the value.
    pub(super) start: u32,
    pub(super) splits: SplitQueue,
    pub(super) split: Vec<Concept>,
    pub(super) score: f64,
    /// Whether it is above a cut that the search reaches first.
    pub(super) is_above: bool,
    /// Number of steps performed when the score was last summed over partitions; `None` if it never
    /// was.
    pub(super) scored_at: Option<usize>,
}

/// The values of ∪Cut that may still be specialized, by number.
pub(super) struct Candidates {
    list: Vec<CutCandidate>,
    /// By attribute, the place of its first code. A candidate has the place of its first code.
    first: Vec<usize>,
    /// By place, the number of its candidate.
    numbers: Vec<u32>,
    /// The scores of the candidates above the first cut.
    above: ScoreTree,
    /// The scores of the others.
    others: ScoreTree,
}

impl Candidates {
    pub(super) fn new(attributes: &[Attribute]) -> Self {
        let mut places = 0;
        let first = attributes.iter().map(|attribute| {
            places += attribute.histogram.len();
            places - attribute.histogram.len()
        });
        Self {
            list: Vec::new(),
            first: first.collect(),
            numbers: vec![0; places],
            above: ScoreTree::new(places),
            others: ScoreTree::new(places),
        }
    }

    /// The candidate with the greatest score, of those above the first cut as long as there are any.
    /// Ties are broken by attribute order, then cut order.
    pub(super) fn best(&self) -> Option<usize> {
        let place = self.above.best().or_else(|| self.others.best())?;
        Some(self.numbers[place] as usize)
    }

    pub(super) fn push(&mut self, candidate: CutCandidate) {
        self.list.push(candidate);
        self.index(self.list.len() - 1);
    }

    /// Changes the split of a candidate, or its score.
    pub(super) fn change<R>(
        &mut self,
        number: usize,
        change: impl FnOnce(&mut CutCandidate) -> R,
    ) -> R {
        let result = change(&mut self.list[number]);
        self.index(number);
        result
    }

    /// Removes a candidate. The last one gets its number.
    pub(super) fn remove(&mut self, number: usize) -> CutCandidate {
        let removed = self.list.swap_remove(number);
        self.set_score(&removed, f64::NEG_INFINITY);
        if number < self.list.len() {
            self.index(number);
        }
        removed
    }

    pub(super) fn clear(&mut self) {
        for candidate in std::mem::take(&mut self.list) {
            self.set_score(&candidate, f64::NEG_INFINITY);
        }
    }

    fn index(&mut self, number: usize) {
        let candidate = &self.list[number];
        let place = self.place(candidate);
        self.numbers[place] = number as u32;
        let (is_above, score) = (candidate.is_above, candidate.score);
        self.scores(is_above).set(place, score);
    }

    fn set_score(&mut self, candidate: &CutCandidate, score: f64) {
        let place = self.place(candidate);
        self.scores(candidate.is_above).set(place, score);
    }

    fn scores(&mut self, are_above: bool) -> &mut ScoreTree {
        if are_above {
            &mut self.above
        } else {
            &mut self.others
        }
    }

    fn place(&self, candidate: &CutCandidate) -> usize {
        self.first[candidate.attribute] + candidate.start as usize
    }
}

impl Deref for Candidates {
    type Target = [CutCandidate];

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

/// Scores by place, −∞ where there is none.
struct ScoreTree {
    /// Number of places, rounded up to a power of two.
    leaves: usize,
    /// A binary heap in which each node has the greatest score below it: the root is 1, and the leaf of place *p* is
    /// `leaves` + *p*. Empty until a score is set.
    greatest: Vec<f64>,
}

impl ScoreTree {
    fn new(places: usize) -> Self {
        Self {
            leaves: places.next_power_of_two(),
            greatest: Vec::new(),
        }
    }

    fn set(&mut self, place: usize, score: f64) {
        self.greatest.resize(2 * self.leaves, f64::NEG_INFINITY);
        let mut node = self.leaves + place;
        self.greatest[node] = score;
        while node > 1 {
            node /= 2;
            self.greatest[node] = self.greatest[2 * node].max(self.greatest[2 * node + 1]);
        }
    }

    /// The first place whose score is the greatest one or a tie with it; `None` without scores.
    fn best(&self) -> Option<usize> {
        let greatest = *self.greatest.get(1)?;
        if greatest == f64::NEG_INFINITY {
            return None;
        }
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            if self.greatest[node] < greatest - TIE {
                node += 1;
            }
        }
        Some(node - self.leaves)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ScoreTree, TIE};

    proptest! {
        /// Scores are multiples of 0.4 `TIE`, so that a tie with the greatest one may be the lesser score.
        #[test]
        fn the_best_place_is_that_of_a_linear_search(
            places in 1usize..9,
            changes in prop::collection::vec((0usize..9, prop::option::of(0u32..6)), 0..40),
        ) {
            let mut tree = ScoreTree::new(places);
            let mut scores = vec![f64::NEG_INFINITY; places];
            for (place, score) in changes {
                let score = score.map_or(f64::NEG_INFINITY, |score| f64::from(score) * 0.4 * TIE);
                let place = place % places;
                tree.set(place, score);
                scores[place] = score;
                let greatest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let is_best = |score: &f64| *score > f64::NEG_INFINITY && *score >= greatest - TIE;
                prop_assert_eq!(tree.best(), scores.iter().position(is_best));
            }
        }
    }
}
