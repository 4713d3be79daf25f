//! The data of a thorough search: the columns ([`Dimension`]), the distinct rows ([`Units`]), the requirement,
//! and the loss to minimize ([`Measure`]).
//!
//! A column with a taxonomy has every cut of its tree. The intervals of a numeric column without a taxonomy end
//! at a fixed set of points: those at which a greedy run split, quantiles, and those that lower the NCP most.
//! Rows that no cut distinguishes are counted together as one unit.

use std::ops::Range;

use rustc_hash::FxHashMap;

use pais_core::definition::Objective;
use pais_core::table::{ClassColumn, Domain, EncodedTable};
use pais_core::taxonomy::NodeId;

use super::super::attribute::{Attribute, Concept, Meaning};
use super::super::requirement::Requirement;
use super::super::score::entropy;
use crate::observer::Observer;

/// A table and what its cuts must meet.
pub(super) struct Space<'a> {
    pub(super) dimensions: Vec<Dimension<'a>>,
    pub(super) units: Units,
    pub(super) requirement: &'a Requirement<'a>,
    pub(super) measure: Measure,
    /// Rows that a cut may suppress because their classes have fewer than *K*; 0 unless the
    /// adversary knows all columns and no confidence is bounded.
    pub(super) budget: u64,
    /// Stops the search.
    pub(super) observer: &'a dyn Observer,
}

impl Space<'_> {
    /// Number of quasi-identifiers.
    pub(super) fn width(&self) -> usize {
        self.dimensions.len()
    }

    /// Whether the loss of a split follows from its column alone, whatever the other cuts are.
    pub(super) fn has_fixed_gains(&self) -> bool {
        !self.measure.is_over_classes() && self.budget == 0
    }
}

/// Maximum number of split points of a numeric column, in addition to those of greedy runs.
const POINTS: usize = 64;

/// Identifies a split of a value: its attribute, the value and the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ValueSplit {
    attribute: u32,
    start: u32,
    end: u32,
    point: u32,
}

impl ValueSplit {
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
    /// By code and one past the last, the number of the smallest range that any cut distinguishes.
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

    /// Number of ranges that cuts distinguish.
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
            return self.attribute.taxonomy_split(concept);
        };
        let children = self.attribute.interval_split(concept, point)?;
        let has_rows = |part: &Concept| self.rows(part) > 0;
        children[..2].iter().all(has_rows).then_some(children)
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
        Some(Concept::of_node(tree, id))
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

/// The unit of a row that was removed.
pub(super) const REMOVED: u32 = u32::MAX;

/// The distinct rows. Where *K* counts persons, each row is a unit.
pub(super) struct Units {
    /// Number of rows by unit.
    pub(super) weight: Vec<u32>,
    /// Class by unit; empty where none is counted.
    pub(super) class: Vec<u32>,
    /// Number of classes.
    pub(super) classes: usize,
    /// Person by unit; empty where *K* counts rows.
    pub(super) person: Vec<u32>,
    /// By row its unit, or [`REMOVED`].
    pub(super) of_row: Vec<u32>,
    /// Counted sensitive values, unit after unit.
    values: Vec<u32>,
    value_ends: Vec<u32>,
    /// By attribute, the units in ascending order of their codes.
    order: Vec<Vec<u32>>,
    /// By attribute, where the units of a range of codes start in `order`, and the end.
    starts: Vec<Vec<u32>>,
}

impl Units {
    /// Collapses the rows of a table that are not `removed`. `class` keeps classes apart.
    pub(super) fn new(
        table: &EncodedTable,
        dimensions: &[Dimension<'_>],
        requirement: &Requirement<'_>,
        removed: &[bool],
        class: Option<&ClassColumn>,
    ) -> Self {
        let mut units = Self {
            weight: Vec::new(),
            class: Vec::new(),
            classes: class.map_or(0, |it| it.classes),
            person: Vec::new(),
            of_row: vec![REMOVED; table.rows],
            values: Vec::new(),
            value_ends: Vec::new(),
            order: Vec::new(),
            starts: Vec::new(),
        };
        let mut found: FxHashMap<Box<[u32]>, u32> = FxHashMap::default();
        let mut first_row = Vec::new();
        let mut key = Vec::new();
        for row in (0..table.rows).filter(|&row| !removed[row]) {
            key.clear();
            let columns = dimensions.iter();
            key.extend(columns.map(|it| it.base(it.attribute.column.codes.at(row))));
            key.extend(class.map(|it| it.codes.at(row)));
            if requirement.subjects.is_some() {
                key.push(row as u32);
            }
            let before = key.len();
            if requirement.bounds_confidence() {
                requirement.for_each_counted_value(row, |value| key.push(value as u32));
            }
            let next = units.weight.len() as u32;
            let unit = match found.get(key.as_slice()) {
                Some(&unit) => unit,
                None => {
                    found.insert(key.as_slice().into(), next);
                    units.weight.push(0);
                    units.class.extend(class.map(|it| it.codes.at(row)));
                    let person = requirement.subjects.map(|it| it.of_row()[row]);
                    units.person.extend(person);
                    units.values.extend(&key[before..]);
                    units.value_ends.push(units.values.len() as u32);
                    first_row.push(row);
                    next
                }
            };
            units.weight[unit as usize] += 1;
            units.of_row[row] = unit;
        }
        for dimension in dimensions {
            let codes = &dimension.attribute.column.codes;
            let base = |unit: usize| dimension.base(codes.at(first_row[unit])) as usize;
            let mut starts = vec![0u32; dimension.base_count() + 1];
            (0..first_row.len()).for_each(|unit| starts[base(unit) + 1] += 1);
            for at in 1..starts.len() {
                starts[at] += starts[at - 1];
            }
            let mut next = starts.clone();
            let mut order = vec![0; first_row.len()];
            for unit in 0..first_row.len() {
                let at = &mut next[base(unit)];
                order[*at as usize] = unit as u32;
                *at += 1;
            }
            units.order.push(order);
            units.starts.push(starts);
        }
        units
    }

    /// Number of units.
    pub(super) fn count(&self) -> usize {
        self.weight.len()
    }

    /// The units with these ranges of codes of an attribute.
    pub(super) fn with(&self, attribute: usize, bases: std::ops::Range<usize>) -> &[u32] {
        let starts = &self.starts[attribute];
        &self.order[attribute][starts[bases.start] as usize..starts[bases.end] as usize]
    }

    /// The counted sensitive values of a unit.
    #[inline]
    pub(super) fn values(&self, unit: usize) -> &[u32] {
        let start = unit
            .checked_sub(1)
            .map_or(0, |before| self.value_ends[before]);
        &self.values[start as usize..self.value_ends[unit] as usize]
    }
}

/// Sums over the equivalence classes of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ClassSums {
    /// The sum of [`Measure::term`] over the classes that are not suppressed.
    pub(super) sum: f64,
    /// Number of rows that are not suppressed.
    pub(super) kept: u64,
}

/// The loss of a table under an objective. Lower is better.
///
/// - `ncp`: the mean NCP, where a suppressed row counts 1 in each column;
/// - `discernibility`: the sum of squared class sizes over the square of the released rows;
/// - `classification`: the entropy of the class within equivalence classes, in bits per row. The
///   information gain that is kept is the entropy of the whole table minus it, so that the least
///   loss is the greatest gain. A suppressed row counts the entropy of the whole table.
#[derive(Clone, Debug)]
pub(super) struct Measure {
    objective: Objective,
    rows: f64,
    width: f64,
    whole_entropy: f64,
}

impl Measure {
    /// For a table of `rows` rows, suppressed ones included, and `width` quasi-identifiers.
    pub(super) fn new(
        objective: Objective,
        rows: usize,
        width: usize,
        class: Option<&ClassColumn>,
    ) -> Self {
        let whole_entropy = class.map_or(0.0, |it| entropy(&it.codes.counts(it.classes)));
        Self {
            objective,
            rows: (rows as f64).max(1.0),
            width: width as f64,
            whole_entropy,
        }
    }

    pub(super) fn objective(&self) -> Objective {
        self.objective
    }

    /// Whether the loss depends on classes of rows rather than on each column alone.
    pub(super) fn is_over_classes(&self) -> bool {
        self.objective != Objective::Ncp
    }

    /// The part of an equivalence class. `ncp` is the sum of the NCP of a row over the columns.
    pub(super) fn term(&self, size: u32, by_class: &[u64], ncp: f64) -> f64 {
        let size = f64::from(size);
        match self.objective {
            Objective::Ncp => size * ncp,
            Objective::Classification => size * entropy(by_class),
            Objective::Discernibility | Objective::DiscernibilityEq4 => size * size,
        }
    }

    /// The loss of a table.
    pub(super) fn loss(&self, tally: ClassSums) -> f64 {
        let kept = tally.kept as f64;
        let suppressed = self.rows - kept;
        match self.objective {
            Objective::Ncp => {
                (tally.sum + suppressed * self.width) / (self.rows * self.width.max(1.0))
            }
            Objective::Classification => (tally.sum + suppressed * self.whole_entropy) / self.rows,
            Objective::Discernibility | Objective::DiscernibilityEq4 => {
                tally.sum / (kept * kept).max(1.0)
            }
        }
    }

    /// By how much a decrease of the NCP summed over rows decreases the loss under `ncp`.
    pub(super) fn of_ncp_sum(&self, decrease: f64) -> f64 {
        decrease / (self.rows * self.width.max(1.0))
    }
}
