//! One quasi-identifier of a thorough search: which cuts it can have.
//!
//! A column with a taxonomy has every cut of its tree. The intervals of a numeric column without
//! one end at a fixed set of points: those at which a greedy run split, quantiles, and those that
//! lower the NCP most.

use std::ops::Range;

use pais_core::table::Domain;
use pais_core::taxonomy::{Interval, NodeId};

use super::super::attribute::{Attribute, Concept, Meaning};

/// Most points of a numeric column beside those of greedy runs.
const POINTS: usize = 64;

/// Which split of a value: its attribute, the value and the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SplitKey {
    attribute: u32,
    start: u32,
    end: u32,
    point: u32,
}

impl SplitKey {
    pub(super) fn new(attribute: usize, concept: &Concept, point: Option<u32>) -> Self {
        let (start, end) = match concept.meaning {
            Meaning::Node(node) => (node.0, u32::MAX),
            _ => (concept.codes.start, concept.codes.end),
        };
        Self {
            attribute: attribute as u32,
            start,
            end,
            point: point.unwrap_or(u32::MAX),
        }
    }
}

/// A quasi-identifier, the points of its intervals, and its rows by range of codes.
pub(super) struct Dimension<'a> {
    pub(super) attribute: Attribute<'a>,
    /// Codes at which an interval may be split, ascending.
    pub(super) points: Vec<u32>,
    /// By code and one past the last, the number of the smallest range that any cut tells apart.
    base_of_code: Vec<u32>,
    /// By code and one past the last, the rows with a smaller code.
    rows_before: Vec<u64>,
}

impl<'a> Dimension<'a> {
    /// `split_at` are points that intervals of other runs have.
    pub(super) fn new(attribute: Attribute<'a>, split_at: &[u32]) -> Self {
        let codes = attribute.histogram.len();
        let mut rows_before = Vec::with_capacity(codes + 1);
        let mut sum = 0;
        rows_before.push(0);
        for rows in &attribute.histogram {
            sum += rows;
            rows_before.push(sum);
        }
        let mut dimension = Self {
            attribute,
            points: Vec::new(),
            base_of_code: (0..=codes as u32).collect(),
            rows_before,
        };
        if let Domain::Numeric { values, .. } = &dimension.attribute.column.domain {
            let count = values.len();
            dimension.points = dimension.choose_points(split_at, count as u32);
            let mut is_start = vec![false; codes + 1];
            is_start[count] = true;
            is_start[codes] = true;
            for &point in &dimension.points {
                is_start[point as usize] = true;
            }
            let mut base = 0;
            let later = dimension.base_of_code.iter_mut().zip(is_start).skip(1);
            for (of_code, is_start) in later {
                base += u32::from(is_start);
                *of_code = base;
            }
        }
        dimension
    }

    /// Number of ranges that cuts tell apart.
    pub(super) fn base_count(&self) -> usize {
        self.base_of_code.last().map_or(0, |&count| count as usize)
    }

    /// The range of a code.
    pub(super) fn base(&self, code: u32) -> u32 {
        self.base_of_code[code as usize]
    }

    /// The ranges of a concept.
    pub(super) fn bases(&self, concept: &Concept) -> Range<usize> {
        self.base(concept.codes.start) as usize..self.base(concept.codes.end) as usize
    }

    /// The topmost value.
    pub(super) fn topmost(&self) -> Concept {
        self.attribute.concept(0).clone()
    }

    /// Number of rows with a value.
    pub(super) fn rows(&self, concept: &Concept) -> u64 {
        self.rows_before[concept.codes.end as usize]
            - self.rows_before[concept.codes.start as usize]
    }

    /// The points at which an interval can be split; none for a node.
    pub(super) fn points_in(&self, concept: &Concept) -> &[u32] {
        let numbers = self.attribute.numbers(concept);
        let start = self.points.partition_point(|&point| point <= numbers.start);
        let end = self.points.partition_point(|&point| point < numbers.end);
        &self.points[start.min(end)..end]
    }

    /// *child(v)*, at a point where the value is an interval; `None` where the split would change
    /// nothing.
    pub(super) fn children(&self, concept: &Concept, point: Option<u32>) -> Option<Vec<Concept>> {
        if self.rows(concept) == 0 {
            return None;
        }
        let Some(point) = point else {
            return Some(self.attribute.taxonomy_split(concept)?.children);
        };
        let (Domain::Numeric { values, .. }, Meaning::Interval(interval)) =
            (&self.attribute.column.domain, concept.meaning)
        else {
            return None;
        };
        let at = self.attribute.column.domain.split_point(point)?;
        let count = values.len() as u32;
        let part = |codes: Range<u32>, meaning| Concept { codes, meaning };
        let below = Interval {
            hi: at,
            closed: false,
            ..interval
        };
        let above = Interval { lo: at, ..interval };
        let mut children = vec![
            part(concept.codes.start..point, Meaning::Interval(below)),
            part(
                point..concept.codes.end.min(count),
                Meaning::Interval(above),
            ),
        ];
        if children.iter().any(|child| self.rows(child) == 0) {
            return None;
        }
        if concept.codes.end > count {
            children.push(part(count..concept.codes.end, Meaning::Missing));
        }
        Some(children)
    }

    /// By how much a split decreases the NCP summed over rows.
    pub(super) fn ncp_gain(&self, concept: &Concept, children: &[Concept]) -> f64 {
        let sum = |concept: &Concept| self.rows(concept) as f64 * self.attribute.ncp(concept);
        sum(concept) - children.iter().map(sum).sum::<f64>()
    }

    /// A node above a value of the cut, `up` levels or as far as there are any.
    pub(super) fn ancestor(&self, concept: &Concept, up: usize) -> Option<Concept> {
        let (Domain::Taxonomy(tree), Meaning::Node(node)) =
            (&self.attribute.column.domain, concept.meaning)
        else {
            return None;
        };
        let mut id = node;
        for _ in 0..up {
            id = tree.node(id).parent.unwrap_or(NodeId::ROOT);
        }
        let node = tree.node(id);
        Some(Concept {
            codes: node.first_leaf..node.end_leaf,
            meaning: Meaning::Node(id),
        })
    }

    /// The cut whose intervals are split at these points, ascending.
    pub(super) fn intervals(&self, points: &[u32]) -> Vec<Concept> {
        let mut cut = vec![self.topmost()];
        for &point in points {
            let of_point = |concept: &Concept| concept.codes.contains(&point);
            let Some(at) = cut.iter().position(of_point) else {
                continue;
            };
            if let Some(children) = self.children(&cut[at], Some(point)) {
                cut.splice(at..=at, children);
            }
        }
        cut
    }

    fn choose_points(&self, split_at: &[u32], count: u32) -> Vec<u32> {
        let is_end = |&code: &u32| {
            self.attribute.histogram[code as usize] > 0
                && self.attribute.column.domain.split_point(code).is_some()
        };
        let ends: Vec<u32> = (1..count).filter(is_end).collect();
        let mut points = split_at.to_vec();
        if ends.len() <= POINTS {
            points.extend(&ends);
        } else {
            points.extend(self.quantiles(&ends));
            self.of_least_ncp(&ends, &mut points);
        }
        points.sort_unstable();
        points.dedup();
        points
    }

    fn quantiles<'p>(&self, ends: &'p [u32]) -> impl Iterator<Item = &'p u32> {
        let rows = self.rows_before.last().copied().unwrap_or(0);
        let parts = POINTS as u64 / 2;
        (1..parts).filter_map(move |part| {
            let wanted = rows * part / parts;
            ends.get(ends.partition_point(|&end| self.rows_before[end as usize] < wanted))
        })
    }

    /// Splits the interval whose split lowers the NCP most, again and again.
    fn of_least_ncp(&self, ends: &[u32], points: &mut Vec<u32>) {
        let best = |concept: &Concept| {
            let start = ends.partition_point(|&end| end <= concept.codes.start);
            let inside = ends[start..]
                .iter()
                .take_while(|&&end| end < concept.codes.end);
            let scored = inside.filter_map(|&end| {
                let children = self.children(concept, Some(end))?;
                Some((self.ncp_gain(concept, &children), end, children))
            });
            scored.max_by(|one, other| one.0.total_cmp(&other.0))
        };
        let mut open: Vec<_> = best(&self.topmost()).into_iter().collect();
        for _ in 0..POINTS / 2 {
            let greatest = (0..open.len()).max_by(|&a, &b| open[a].0.total_cmp(&open[b].0));
            let Some(greatest) = greatest else {
                return;
            };
            let (_, point, children) = open.swap_remove(greatest);
            points.push(point);
            open.extend(children.iter().filter_map(best));
        }
    }
}
