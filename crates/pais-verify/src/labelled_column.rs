//! The raw codes and the finished labels of a quasi-identifier, whose rows are in an unknown order.

use std::ops::Range;

use hashbrown::HashMap;

use pais_core::table::{Domain, NULL_CODE, ReleasedColumn};
use pais_core::taxonomy::SUPPRESSED_LABEL;
use pais_core::taxonomy::{Interval, MISSING_LABEL, Scale};

use super::cover::outermost;
use super::fit::Need;
use super::original::OriginalQuasiIdentifier;

/// Which labels cover missing cells in a column with the label `?` and an interval that encloses
/// all others of the column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingCells {
    /// Only `?`: the interval is what suppression left of the parts of a greater one.
    OwnLabel,
    /// Both: the interval is that of a group with missing cells.
    EveryLabel,
}

/// The raw codes that a label covers. In a numeric column, missing cells have a separate code.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    codes: Range<u32>,
    missing: Option<u32>,
}

impl Span {
    /// Parses a label of a column with this outermost interval; `None` if it is not a label of the
    /// domain.
    fn parse(label: &str, domain: &Domain, outermost: Option<Interval>) -> Option<Self> {
        match domain {
            Domain::Taxonomy(tree) => {
                let node = tree.node(tree.find(label)?);
                Some(Self {
                    codes: node.first_leaf..node.end_leaf,
                    missing: None,
                })
            }
            Domain::Numeric { values, scale, .. } => {
                let (whole, missing) = (values.len() as u32, Some(values.len() as u32));
                if label == MISSING_LABEL {
                    return Some(Self {
                        codes: 0..0,
                        missing,
                    });
                }
                if label == SUPPRESSED_LABEL {
                    return Some(Self {
                        codes: 0..whole,
                        missing,
                    });
                }
                let interval = Interval::parse_on(label, *scale)?;
                let start = values.partition_point(|&value| value < interval.lo);
                let end = values
                    .partition_point(|&value| value < interval.lo || interval.contains(value));
                let covers = outermost.is_some_and(|outermost| interval.encloses(&outermost));
                Some(Self {
                    codes: start as u32..end as u32,
                    missing: missing.filter(|_| covers),
                })
            }
        }
    }

    fn contains(&self, code: u32) -> bool {
        self.codes.contains(&code) || self.missing == Some(code)
    }
}

/// The raw codes and the finished labels of a quasi-identifier.
pub(super) struct LabelledColumn<'a> {
    pub(super) raw: &'a OriginalQuasiIdentifier<'a>,
    /// For each finished row, the number of its label.
    pub(super) labels: Vec<u32>,
    /// The codes that each label covers. The last entry is for cells without a label.
    spans: Vec<Option<Span>>,
    /// The text of each label. The last entry, for cells without a label, is empty.
    texts: Vec<Box<str>>,
    /// In a column without a declared domain, the interval that encloses all others, if `?` is a
    /// label too: both may cover missing cells.
    ambiguous: Option<u32>,
}

impl<'a> LabelledColumn<'a> {
    pub(super) fn new(raw: &'a OriginalQuasiIdentifier, finished: &ReleasedColumn) -> Self {
        let mut known: HashMap<&str, u32> = HashMap::new();
        let dictionary = &finished.column.dictionary;
        let numbers: Vec<u32> = dictionary
            .iter()
            .map(|text| {
                let fresh = known.len() as u32;
                *known.entry(text).or_insert(fresh)
            })
            .collect();
        let mut spans = vec![None; known.len() + 1];
        let mut texts = vec![Box::<str>::default(); known.len() + 1];
        let outermost = outermost(raw, finished);
        let has_missing_label = known.contains_key(MISSING_LABEL);
        let mut ambiguous = None;
        let scale = match raw.domain {
            Domain::Numeric { scale, .. } => *scale,
            Domain::Taxonomy(_) => Scale::Number,
        };
        let is_interval = |label: &str| Interval::parse_on(label, scale).is_some();
        for (label, number) in known {
            let span = Span::parse(label, raw.domain, outermost);
            let covers_missing = span.as_ref().is_some_and(|span| span.missing.is_some());
            if has_missing_label && is_interval(label) && covers_missing {
                ambiguous = Some(number);
            }
            spans[number as usize] = span;
            texts[number as usize] = label.into();
        }
        let none = spans.len() as u32 - 1;
        let codes = finished.column.codes.iter();
        let labels = codes.map(|&code| match code {
            NULL_CODE => none,
            code => numbers.get(code as usize).copied().unwrap_or(none),
        });
        Self {
            raw,
            labels: labels.collect(),
            spans,
            texts,
            ambiguous,
        }
    }

    /// Number of labels, with the one of cells without a label.
    pub(super) fn label_count(&self) -> usize {
        self.spans.len()
    }

    /// Whether more than one label may cover missing cells.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.ambiguous.is_some()
    }

    /// The raw codes that a label may cover; `None` if it is not a label of the domain.
    pub(super) fn need(&self, label: u32) -> Option<Need> {
        let span = self.spans[label as usize].as_ref()?;
        Some(Need::Codes(span.codes.clone(), span.missing))
    }

    /// Whether a label covers a raw code.
    pub(super) fn covers(&self, label: u32, code: u32) -> bool {
        let span = &self.spans[label as usize];
        span.as_ref().is_some_and(|span| span.contains(code))
            && self.raw.admits(&self.texts[label as usize], code)
    }

    /// The number of the label that covers each raw code, or the number of entries in `spans` if
    /// none does; `None` if two labels cover the same code.
    pub(super) fn cut(&self, missing: MissingCells) -> Option<Vec<u32>> {
        let none = self.spans.len() as u32;
        let mut label_of = vec![none; self.raw.domain.code_count()];
        let mut occurs = vec![false; self.spans.len()];
        self.labels
            .iter()
            .for_each(|&label| occurs[label as usize] = true);
        for (label, span) in self
            .spans
            .iter()
            .enumerate()
            .filter(|(label, _)| occurs[*label])
        {
            let Some(span) = span else { continue };
            let is_ambiguous = self.ambiguous == Some(label as u32);
            let covers_missing = !is_ambiguous || missing == MissingCells::EveryLabel;
            let missing_code = span.missing.filter(|_| covers_missing);
            for code in span.codes.clone().chain(missing_code) {
                // The code for missing is out of range in a column without missing cells.
                let Some(over) = label_of.get_mut(code as usize) else {
                    continue;
                };
                if !self.raw.admits(&self.texts[label], code) {
                    continue;
                }
                if *over != none {
                    return None;
                }
                *over = label as u32;
            }
        }
        Some(label_of)
    }
}
