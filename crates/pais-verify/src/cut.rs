//! Check that the labels of a column form one cut of its domain (global recoding).

use thiserror::Error;

use pais_core::table::{Domain, NULL_CODE, ReleasedColumn};
use pais_core::taxonomy::{Interval, MISSING_LABEL};

/// The part of the domain that a label of a released column covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cover {
    /// Leaves `first..end` of the taxonomy, by number.
    Leaves {
        /// First leaf.
        first: u32,
        /// One past the last leaf.
        end: u32,
    },
    /// Numbers in an interval. The interval of the whole domain also covers missing cells.
    Numbers(Interval),
    /// Only missing cells, in a numeric column.
    Missing,
}

impl Cover {
    /// Parses a label; `None` if it is not a label of the domain.
    pub(super) fn parse(label: &str, domain: &Domain) -> Option<Self> {
        match domain {
            Domain::Taxonomy(tree) => {
                let node = tree.node(tree.find(label)?);
                Some(Self::Leaves {
                    first: node.first_leaf,
                    end: node.end_leaf,
                })
            }
            Domain::Numeric { .. } if label == MISSING_LABEL => Some(Self::Missing),
            Domain::Numeric { lo, hi, .. } => {
                let interval = Interval::parse(label)?;
                Interval::closed(*lo, *hi)
                    .encloses(&interval)
                    .then_some(Self::Numbers(interval))
            }
        }
    }

    /// Whether the label covers a cell with this code.
    pub(super) fn contains(&self, code: u32, domain: &Domain) -> bool {
        match (self, domain) {
            (Self::Leaves { first, end }, _) => (*first..*end).contains(&code),
            (Self::Missing, Domain::Numeric { values, .. }) => code as usize == values.len(),
            (Self::Numbers(interval), Domain::Numeric { values, lo, hi, .. }) => {
                match values.get(code as usize) {
                    Some(&value) => interval.contains(value),
                    None => *interval == Interval::closed(*lo, *hi),
                }
            }
            // Not reached: a cover is parsed with the domain that it is used with.
            (_, Domain::Taxonomy(_)) => false,
        }
    }
}

/// Why the labels of a column are not a cut.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CutError {
    /// A label that is not in the domain.
    #[error("column `{column}`: the label `{label}` is not in its domain")]
    UnknownLabel {
        /// The column's name.
        column: Box<str>,
        /// The label, as released.
        label: Box<str>,
    },
    /// A cell without a label.
    #[error("column `{column}`: a cell has no label")]
    NoLabel {
        /// The column's name.
        column: Box<str>,
    },
    /// Two labels that cover the same value of the domain.
    #[error("column `{column}`: the labels `{one}` and `{other}` overlap")]
    Overlap {
        /// The column's name.
        column: Box<str>,
        /// A label.
        one: Box<str>,
        /// Another.
        other: Box<str>,
    },
}

/// Checks that the labels that occur in a column belong to one cut of its domain (KDD'09,
/// Section 3.2): no label is an ancestor of another or overlaps it.
///
/// # Errors
/// [`CutError`] with the first error found.
pub fn check_single_cut(column: &ReleasedColumn, domain: &Domain) -> Result<(), CutError> {
    let name = || column.name.clone();
    let dictionary = &column.column.dictionary;
    let mut occurs = vec![false; dictionary.len()];
    for &code in &column.column.codes {
        let known = (code != NULL_CODE)
            .then(|| occurs.get_mut(code as usize))
            .flatten();
        *known.ok_or_else(|| CutError::NoLabel { column: name() })? = true;
    }
    let mut labels: Vec<&Box<str>> = dictionary
        .iter()
        .zip(&occurs)
        .filter(|(_, occurs)| **occurs)
        .map(|(label, _)| label)
        .collect();
    labels.sort_unstable();
    labels.dedup();
    let mut covers = Vec::with_capacity(labels.len());
    for label in labels {
        let cover = Cover::parse(label, domain).ok_or_else(|| CutError::UnknownLabel {
            column: name(),
            label: label.clone(),
        })?;
        covers.push((cover, label));
    }
    let overlap = |one: &str, other: &str| CutError::Overlap {
        column: name(),
        one: one.into(),
        other: other.into(),
    };
    if let Domain::Numeric { lo, hi, .. } = domain {
        let outermost = Cover::Numbers(Interval::closed(*lo, *hi));
        let whole = covers.iter().find(|(cover, _)| *cover == outermost);
        let missing = covers.iter().find(|(cover, _)| *cover == Cover::Missing);
        // `?` is a label of its own only after the outermost interval has been specialized.
        if let (Some((_, whole)), Some((_, missing))) = (whole, missing) {
            return Err(overlap(whole, missing));
        }
    }
    // In the order of their starts, if any covers overlap, then two adjacent ones do.
    covers.sort_by(|(one, _), (other, _)| start(one).total_cmp(&start(other)));
    for pair in covers.windows(2) {
        let apart = match (pair[0].0, pair[1].0) {
            (Cover::Leaves { end, .. }, Cover::Leaves { first, .. }) => end <= first,
            (Cover::Numbers(one), Cover::Numbers(other)) => {
                one.hi < other.lo || (one.hi == other.lo && !one.closed)
            }
            _ => true,
        };
        if !apart {
            return Err(overlap(pair[0].1, pair[1].1));
        }
    }
    Ok(())
}

fn start(cover: &Cover) -> f64 {
    match cover {
        Cover::Leaves { first, .. } => f64::from(*first),
        Cover::Numbers(interval) => interval.lo,
        Cover::Missing => f64::INFINITY,
    }
}
