//! Scores of specializations, and the split points of numeric intervals.
//!
//! Information gain and NCP are computed from an attribute's histogram, which specializations of
//! other attributes do not change. The discernibility scores depend on all attributes. The
//! histogram gives an upper bound for them, because splitting a partition never increases them.

use pais_core::definition::Objective;
use pais_core::table::Domain;

use super::attribute::{Attribute, Concept, Meaning};

/// Scores closer than this are a tie. Ties are resolved in favour of the first in order.
pub(super) const TIE: f64 = 1e-12;

/// The entropy *E(T\[x\])* of class counts (Eq. 3), in bits; 0 if there are no rows.
pub(super) fn entropy(counts: &[u64]) -> f64 {
    let total: u64 = counts.iter().sum();
    if total == 0 {
        return 0.0;
    }
    let total = total as f64;
    let term = |&count: &u64| {
        let share = count as f64 / total;
        if count == 0 {
            0.0
        } else {
            -share * share.log2()
        }
    };
    counts.iter().map(term).sum()
}

/// One partition's term of the [`Objective::Discernibility`] and [`Objective::DiscernibilityEq4`]
/// scores, from its size and the sum of its children's squared sizes.
#[inline]
pub(super) fn discernibility_term(objective: Objective, size: u64, squared_children: u128) -> u128 {
    match objective {
        Objective::DiscernibilityEq4 => squared_children,
        _ => u128::from(size) * u128::from(size) - squared_children,
    }
}

/// Whether the score must be summed over partitions instead of computed from the histogram.
pub(super) fn is_over_partitions(objective: Objective) -> bool {
    matches!(
        objective,
        Objective::Discernibility | Objective::DiscernibilityEq4
    )
}

/// *Score(v)* of a specialization from the histogram of its attribute: exact for
/// classification and NCP, an upper bound for the discernibility scores. `weight` is
/// 1 / (rows × quasi-identifiers), so that the NCP score is the decrease of the table's mean NCP.
pub(super) fn from_histogram(
    attribute: &Attribute<'_>,
    parent: &Concept,
    split: &[Concept],
    objective: Objective,
    weight: f64,
) -> f64 {
    match objective {
        Objective::Classification => info_gain(attribute, parent, split),
        Objective::Ncp => {
            let ncp_sum =
                |concept: &Concept| attribute.rows(concept) as f64 * attribute.ncp(concept);
            let after: f64 = split.iter().map(ncp_sum).sum();
            (ncp_sum(parent) - after) * weight
        }
        Objective::Discernibility | Objective::DiscernibilityEq4 => {
            let squared = |child| u128::from(attribute.rows(child)).pow(2);
            let children = split.iter().map(squared).sum();
            discernibility_term(objective, attribute.rows(parent), children) as f64
        }
    }
}

/// *InfoGain(v)* (Eq. 2).
fn info_gain(attribute: &Attribute<'_>, parent: &Concept, split: &[Concept]) -> f64 {
    let whole = class_counts(attribute, parent);
    let total: u64 = whole.iter().sum();
    if total == 0 {
        return 0.0;
    }
    let children: f64 = split
        .iter()
        .map(|child| {
            let counts = class_counts(attribute, child);
            counts.iter().sum::<u64>() as f64 / total as f64 * entropy(&counts)
        })
        .sum();
    entropy(&whole) - children
}

fn class_counts(attribute: &Attribute<'_>, concept: &Concept) -> Vec<u64> {
    let classes = attribute.classes;
    let mut counts = vec![0; classes];
    let range = concept.codes.start as usize * classes..concept.codes.end as usize * classes;
    for by_class in attribute.class_histogram[range].chunks(classes.max(1)) {
        for (sum, count) in counts.iter_mut().zip(by_class) {
            *sum += count;
        }
    }
    counts
}

/// The splits of a concept, best first: the one of the taxonomy, or for an interval each binary
/// split at a data value. Interval splits are ordered by InfoGain under classification and by
/// balance otherwise; ties are ordered by ascending point.
pub(super) struct SplitQueue {
    ordered: Vec<u32>,
    next: usize,
    taxonomy: Option<Vec<Concept>>,
}

/// Which splits of an interval are generated.
#[derive(Clone, Copy, Debug)]
pub(super) enum SplitSelection {
    /// Only the best one.
    Best,
    /// All splits whose two parts have at least `least` rows each.
    All {
        /// Minimum number of rows of a part.
        least: u64,
    },
}

impl SplitQueue {
    /// Finds the splits of a concept.
    pub(super) fn new(
        attribute: &Attribute<'_>,
        concept: &Concept,
        by_gain: bool,
        selection: SplitSelection,
    ) -> Self {
        let taxonomy = attribute.taxonomy_split(concept);
        let mut splits = Self {
            ordered: Vec::new(),
            next: 0,
            taxonomy,
        };
        let (Domain::Numeric { .. }, Meaning::Interval(_)) =
            (&attribute.column.domain, concept.meaning)
        else {
            return splits;
        };
        let numbers = attribute.numbers(concept);
        let least = match selection {
            SplitSelection::Best => 1,
            SplitSelection::All { least } => least,
        };
        let scored = points(attribute, numbers, by_gain, least);
        let Some(best) = scored.iter().map(|(score, _)| *score).reduce(f64::max) else {
            return splits;
        };
        if let SplitSelection::Best = selection {
            let best = scored.iter().find(|(score, _)| *score >= best - TIE);
            splits.ordered.extend(best.map(|(_, code)| code));
            return splits;
        }
        let mut scored = scored;
        scored.sort_by(|(a, p), (b, q)| b.total_cmp(a).then(p.cmp(q)));
        splits.ordered = scored.into_iter().map(|(_, code)| code).collect();
        splits
    }

    /// The split points of an interval that remain to be tried, best first.
    pub(super) fn remaining(&self) -> &[u32] {
        &self.ordered[self.next..]
    }

    /// Replaces the points that remain to be tried.
    pub(super) fn keep(&mut self, points: Vec<u32>) {
        self.ordered = points;
        self.next = 0;
    }

    /// The next best split, `None` when there is none left.
    pub(super) fn next(
        &mut self,
        attribute: &Attribute<'_>,
        concept: &Concept,
    ) -> Option<Vec<Concept>> {
        if let Some(split) = self.taxonomy.take() {
            return Some(split);
        }
        let point = *self.ordered.get(self.next)?;
        self.next += 1;
        attribute.interval_split(concept, point)
    }
}

/// The split points of a range of numbers for which both parts have at least `least` rows, each
/// with its score, in ascending order. A point is the code of a data value, the first one of the
/// upper part. Above a continued cut that the search goes below,
/// only ends of that cut are points.
fn points(
    attribute: &Attribute<'_>,
    codes: std::ops::Range<u32>,
    by_gain: bool,
    least: u64,
) -> Vec<(f64, u32)> {
    let rows = &attribute.histogram;
    let total: u64 = codes.clone().map(|code| rows[code as usize]).sum();
    let classes = attribute.classes;
    let mut below = vec![0u64; classes];
    let mut above = vec![0u64; classes];
    if by_gain {
        let concept = Concept {
            codes: codes.clone(),
            meaning: Meaning::Missing,
        };
        above = class_counts(attribute, &concept);
    }
    let whole = entropy(&above);
    let mut left = 0u64;
    let mut points = Vec::new();
    let domain = &attribute.column.domain;
    let is_above = domain.is_above_continued(codes.clone());
    for code in codes {
        let here = rows[code as usize];
        if here == 0 {
            continue;
        }
        let is_continued = || domain.is_above_continued(code.saturating_sub(1)..code + 1);
        let is_end = || domain.split_point(code).is_some() && (!is_above || is_continued());
        if left >= least && total - left >= least && is_end() {
            let right = total - left;
            let score = if by_gain {
                let part = |side: u64| side as f64 / total as f64;
                whole - (part(left) * entropy(&below) + part(right) * entropy(&above))
            } else {
                -(left.abs_diff(right) as f64)
            };
            points.push((score, code));
        }
        left += here;
        if by_gain {
            let counts = &attribute.class_histogram[code as usize * classes..][..classes];
            for (class, &count) in counts.iter().enumerate() {
                below[class] += count;
                above[class] -= count;
            }
        }
    }
    points
}
