//! One quasi-identifier during a search: the concepts created so far and the current cut.
//!
//! Codes are numbered so that every concept is a range of codes: leaves from left to right,
//! numeric values in ascending order, the missing cell last. A specialization splits a range into
//! ranges.

use std::ops::Range;

use pais_core::table::codes::{Codes, RowCodes};
use pais_core::table::{ClassColumn, Domain, QuasiIdentifier};
use pais_core::taxonomy::{Interval, MISSING_LABEL, NodeId, Tree};
use pais_core::with_codes;

/// Index of a concept among those of its attribute; the topmost concept is 0.
pub(super) type ConceptId = u32;

/// The value that a concept represents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meaning {
    /// A node of the taxonomy.
    Node(NodeId),
    /// An interval of numbers. The topmost interval includes missing cells.
    Interval(Interval),
    /// Missing cells of a numeric column.
    Missing,
}

impl Meaning {
    /// The topmost value of a domain.
    pub(super) fn topmost(domain: &Domain) -> Self {
        match domain {
            Domain::Taxonomy(_) => Self::Node(NodeId::ROOT),
            Domain::Numeric { lo, hi, scale, .. } => {
                Self::Interval(Interval::closed(*lo, *hi).on(*scale))
            }
        }
    }
}

/// A value *v* of the generalized table.
#[derive(Clone, Debug)]
pub(super) struct Concept {
    /// The codes it generalizes.
    pub codes: Range<u32>,
    /// The value that it represents.
    pub meaning: Meaning,
}

impl Concept {
    /// A node of a taxonomy.
    pub(super) fn of_node(tree: &Tree, id: NodeId) -> Self {
        let node = tree.node(id);
        Self {
            codes: node.first_leaf..node.end_leaf,
            meaning: Meaning::Node(id),
        }
    }
}

/// A quasi-identifier with its histograms.
pub(super) struct Attribute<'a> {
    /// The encoded column.
    pub column: &'a QuasiIdentifier,
    /// The code of each row, or of each record of a frequency set.
    pub codes: Codes<'a>,
    /// The concepts created so far: those of the cut and their ancestors.
    pub concepts: Vec<Concept>,
    /// *Cut_i*, from left to right.
    pub cut: Vec<ConceptId>,
    /// Rows by code.
    pub histogram: Vec<u64>,
    /// Rows by code and class, `classes` entries per code; empty without a class.
    pub class_histogram: Vec<u64>,
    /// Number of classes, 0 when none are counted.
    pub classes: usize,
    /// By node of the taxonomy, its NCP, 0 to 1; empty for a column without a taxonomy.
    node_ncp: &'a [f64],
    /// By node of the taxonomy, whether it is above a cut that the search reaches first; empty without
    /// one.
    is_above: &'a [bool],
}

impl<'a> Attribute<'a> {
    /// The attribute at its topmost value. Makes one pass over its codes. `node_ncp` has the NCP of each
    /// node of its taxonomy.
    pub(super) fn new(
        column: &'a QuasiIdentifier,
        class: Option<&ClassColumn>,
        node_ncp: &'a [f64],
    ) -> Self {
        let count = column.domain.code_count();
        let histogram = Histogram::new(&column.codes, count, class);
        Self::with_histogram(column, column.codes.borrowed(), histogram, node_ncp)
    }

    /// The attribute at its topmost value, of records with these codes. Its rows are counted already.
    pub(super) fn with_histogram(
        column: &'a QuasiIdentifier,
        codes: Codes<'a>,
        histogram: Histogram,
        node_ncp: &'a [f64],
    ) -> Self {
        let topmost = Concept {
            codes: 0..column.domain.code_count() as u32,
            meaning: Meaning::topmost(&column.domain),
        };
        Self {
            column,
            codes,
            concepts: vec![topmost],
            cut: vec![0],
            histogram: histogram.rows,
            class_histogram: histogram.by_class,
            classes: histogram.classes,
            node_ncp,
            is_above: &[],
        }
    }

    /// The attribute whose nodes `is_above` are above a cut that the search reaches first.
    pub(super) fn with_first_cut(self, is_above: &'a [bool]) -> Self {
        Self { is_above, ..self }
    }

    /// Whether a concept is above a cut that the search reaches first.
    pub(super) fn is_above_first_cut(&self, concept: &Concept) -> bool {
        match concept.meaning {
            Meaning::Node(node) => self.is_above.get(node.index()).copied().unwrap_or(false),
            Meaning::Interval(_) => {
                let domain = &self.column.domain;
                domain.is_above_continued(self.numbers(concept))
            }
            Meaning::Missing => false,
        }
    }

    /// The concept with this index.
    #[inline]
    pub(super) fn concept(&self, id: ConceptId) -> &Concept {
        &self.concepts[id as usize]
    }

    /// Whether the attribute is at its topmost value, which gives an adversary no information.
    pub(super) fn is_topmost(&self) -> bool {
        self.cut.len() == 1 && self.cut[0] == 0
    }

    /// Number of rows generalized to a concept, *|T\[v\]|*.
    pub(super) fn rows(&self, concept: &Concept) -> u64 {
        self.histogram[concept.codes.start as usize..concept.codes.end as usize]
            .iter()
            .sum()
    }

    /// The codes of a concept that are numbers; empty unless the column is numeric.
    pub(super) fn numbers(&self, concept: &Concept) -> Range<u32> {
        let end = match &self.column.domain {
            Domain::Numeric { values, .. } => values.len() as u32,
            Domain::Taxonomy(_) => 0,
        };
        concept.codes.start.min(end)..concept.codes.end.min(end)
    }

    /// The label of a concept in the released table.
    pub(super) fn label(&self, concept: &Concept) -> String {
        label(&self.column.domain, concept.meaning)
    }

    /// NCP of a concept, 0 to 1: that of the node, or the share of the domain's width. 0 for missing
    /// cells.
    pub(super) fn ncp(&self, concept: &Concept) -> f64 {
        match (&self.column.domain, concept.meaning) {
            (Domain::Taxonomy(_), Meaning::Node(node)) => self.node_ncp[node.index()],
            (Domain::Numeric { lo, hi, .. }, Meaning::Interval(interval)) if hi > lo => {
                interval.width() / (hi - lo)
            }
            _ => 0.0,
        }
    }

    /// *child(v)* of a concept in the taxonomy, from left to right. `None` for a leaf, and for
    /// intervals, whose split points are chosen during the search (see [`super::score`]).
    pub(super) fn taxonomy_split(&self, concept: &Concept) -> Option<Vec<Concept>> {
        let (Domain::Taxonomy(tree), Meaning::Node(node)) = (&self.column.domain, concept.meaning)
        else {
            return None;
        };
        let children = tree.node(node).children.iter();
        let children: Vec<_> = children.map(|&id| Concept::of_node(tree, id)).collect();
        (!children.is_empty()).then_some(children)
    }

    /// *child(v)* of an interval that is split at a point, the code of a data value: the part below
    /// it, the part from it on, and the missing cells if the interval has codes for any. `None`
    /// for a node, and where no interval may end.
    pub(super) fn interval_split(&self, concept: &Concept, point: u32) -> Option<Vec<Concept>> {
        let (Domain::Numeric { values, .. }, Meaning::Interval(interval)) =
            (&self.column.domain, concept.meaning)
        else {
            return None;
        };
        let at = self.column.domain.split_point(point)?;
        let count = values.len() as u32;
        let below = Interval {
            hi: at,
            closed: false,
            ..interval
        };
        let above = Interval { lo: at, ..interval };
        let part = |codes: Range<u32>, meaning| Concept { codes, meaning };
        let end = concept.codes.end;
        let mut children = vec![
            part(concept.codes.start..point, Meaning::Interval(below)),
            part(point..end.min(count), Meaning::Interval(above)),
        ];
        if end > count {
            children.push(part(count..end, Meaning::Missing));
        }
        Some(children)
    }

    /// By code, the concept of the cut that generalizes it.
    pub(super) fn concept_of_code(&self) -> Vec<ConceptId> {
        let concepts = self.cut.iter().flat_map(|&id| {
            let codes = self.concept(id).codes.clone();
            codes.map(move |_| id)
        });
        concepts.collect()
    }

    /// Removes a suppressed row from the histograms.
    pub(super) fn remove_row(&mut self, row: usize, class: Option<u32>) {
        let code = self.column.codes.at(row) as usize;
        self.histogram[code] -= 1;
        if let Some(class) = class {
            self.class_histogram[code * self.classes + class as usize] -= 1;
        }
    }

    /// Replaces a concept of the cut by its children. Returns the ids of the children, in order.
    pub(super) fn specialize(&mut self, parent: ConceptId, split: &[Concept]) -> Range<ConceptId> {
        let first = self.concepts.len() as ConceptId;
        self.concepts.extend_from_slice(split);
        let ids = first..self.concepts.len() as ConceptId;
        let start = self.concept(parent).codes.start;
        let before = |&id: &ConceptId| self.concept(id).codes.start < start;
        let position = self.cut.partition_point(before);
        if self.cut.get(position) == Some(&parent) {
            self.cut.splice(position..=position, ids.clone());
        }
        ids
    }
}

/// The rows of an attribute by code.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Histogram {
    /// Rows by code.
    pub rows: Vec<u64>,
    /// Rows by code and class, `classes` entries per code; empty without a class.
    pub by_class: Vec<u64>,
    /// Number of classes, 0 when none are counted.
    pub classes: usize,
}

impl Histogram {
    /// Counts the rows by code (of `count` codes), and by class if there is one. One pass.
    pub(super) fn new(codes: &Codes<'_>, count: usize, class: Option<&ClassColumn>) -> Self {
        match class {
            None => Self {
                rows: codes.counts(count),
                by_class: Vec::new(),
                classes: 0,
            },
            Some(class) => {
                let (by_class, classes) = (counts(codes, count, class), class.classes);
                let by_code = by_class.chunks(classes).map(|counts| counts.iter().sum());
                Self {
                    rows: by_code.collect(),
                    by_class,
                    classes,
                }
            }
        }
    }
}

/// Counts the rows by code (of `count` codes) and class.
fn counts(codes: &Codes<'_>, count: usize, class: &ClassColumn) -> Vec<u64> {
    let (rows, classes) = (codes.rows(), class.classes);
    let mut counts = vec![0; count * classes];
    with_codes!(codes, codes => with_codes!(&class.codes, class => for row in 0..rows {
        counts[codes.at(row) as usize * classes + class.at(row) as usize] += 1;
    }));
    counts
}

/// The label of a concept's value.
pub(super) fn label(domain: &Domain, meaning: Meaning) -> String {
    match (domain, meaning) {
        (Domain::Taxonomy(tree), Meaning::Node(node)) => tree.node(node).label.to_string(),
        (_, Meaning::Interval(interval)) => interval.to_string(),
        (_, Meaning::Missing | Meaning::Node(_)) => MISSING_LABEL.to_owned(),
    }
}
