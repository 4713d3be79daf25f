//! A column under global recoding: its labels form one cut of its domain.

use thiserror::Error;

use pais_core::table::{Domain, NULL_CODE, ReleasedColumn};
use pais_core::taxonomy::{Interval, MISSING_LABEL};

/// What a label of a released column covers of its domain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cover {
    /// Leaves `first..end` of the taxonomy, by number.
    Leaves {
        /// First leaf.
        first: u32,
        /// One past the last leaf.
        end: u32,
    },
    /// Numbers; missing cells too where it is the outermost interval.
    Numbers(Interval),
    /// Missing cells alone, in a numeric column.
    Missing,
}

impl Cover {
    /// Reads a label; `None` for one that is no label of the domain.
    pub(super) fn of(label: &str, domain: &Domain) -> Option<Self> {
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

    /// Whether the cell with this code may stand under the label.
    pub(super) fn holds(&self, code: u32, domain: &Domain) -> bool {
        match (self, domain) {
            (Self::Leaves { first, end }, _) => (*first..*end).contains(&code),
            (Self::Missing, Domain::Numeric { values, .. }) => code as usize == values.len(),
            (Self::Numbers(interval), Domain::Numeric { values, lo, hi, .. }) => {
                match values.get(code as usize) {
                    Some(&value) => interval.contains(value),
                    None => *interval == Interval::closed(*lo, *hi),
                }
            }
            // Covers are read off the domain they are asked about.
            (_, Domain::Taxonomy(_)) => false,
        }
    }
}

/// Why the labels of a column are no cut.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CutError {
    /// A label that is none of the domain's.
    #[error("column `{column}`: the label `{label}` is no value of its domain")]
    UnknownLabel {
        /// The column's name.
        column: Box<str>,
        /// The label, as released.
        label: Box<str>,
    },
    /// A cell without a label.
    #[error("column `{column}`: a cell holds no label")]
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

/// Checks that the labels which stand in a column belong to one cut of its domain (KDD'09,
/// Section 3.2): no label is an ancestor of another or overlaps it.
///
/// # Errors
/// [`CutError`] with the first fault found.
pub fn check_single_cut(column: &ReleasedColumn, domain: &Domain) -> Result<(), CutError> {
    let name = || column.name.clone();
    let dictionary = &column.column.dictionary;
    let mut stands = vec![false; dictionary.len()];
    for &code in &column.column.codes {
        let known = (code != NULL_CODE)
            .then(|| stands.get_mut(code as usize))
            .flatten();
        *known.ok_or_else(|| CutError::NoLabel { column: name() })? = true;
    }
    let mut labels: Vec<&Box<str>> = dictionary
        .iter()
        .zip(&stands)
        .filter(|(_, stands)| **stands)
        .map(|(label, _)| label)
        .collect();
    labels.sort_unstable();
    labels.dedup();
    let mut covers = Vec::with_capacity(labels.len());
    for label in labels {
        let cover = Cover::of(label, domain).ok_or_else(|| CutError::UnknownLabel {
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
        // Once `?` stands by itself the outermost interval has been specialized.
        if let (Some((_, whole)), Some((_, missing))) = (whole, missing) {
            return Err(overlap(whole, missing));
        }
    }
    // Sorted by where they begin, covers that overlap at all overlap somewhere side by side.
    covers.sort_by(|(one, _), (other, _)| begin(one).total_cmp(&begin(other)));
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

fn begin(cover: &Cover) -> f64 {
    match cover {
        Cover::Leaves { first, .. } => f64::from(*first),
        Cover::Numbers(interval) => interval.lo,
        Cover::Missing => f64::INFINITY,
    }
}
