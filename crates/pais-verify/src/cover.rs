//! The part of a column's domain that a label covers.

use pais_core::table::{Domain, ReleasedColumn};
use pais_core::taxonomy::{Interval, MISSING_LABEL};

use super::original::OriginalQuasiIdentifier;

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
    /// Numbers in an interval.
    Numbers {
        /// The interval.
        interval: Interval,
        /// Whether it covers missing cells too.
        missing: bool,
    },
    /// Only missing cells, in a numeric column.
    Missing,
}

impl Cover {
    /// Parses a label of a column with this outermost interval; `None` if it is not a label of the
    /// domain.
    pub(super) fn parse(
        label: &str,
        raw: &OriginalQuasiIdentifier,
        outermost: Option<Interval>,
    ) -> Option<Self> {
        match raw.domain {
            Domain::Taxonomy(tree) => {
                let node = tree.node(tree.find(label)?);
                Some(Self::Leaves {
                    first: node.first_leaf,
                    end: node.end_leaf,
                })
            }
            Domain::Numeric { .. } if label == MISSING_LABEL => Some(Self::Missing),
            Domain::Numeric { lo, hi, scale, .. } => {
                let interval = Interval::parse_on(label, *scale)?;
                let is_within = Interval::closed(*lo, *hi).on(*scale).encloses(&interval);
                (is_within || !raw.declared_domain).then_some(Self::Numbers {
                    interval,
                    missing: outermost.is_some_and(|outermost| interval.encloses(&outermost)),
                })
            }
        }
    }

    /// Whether the label covers a cell with this code.
    pub(super) fn contains(&self, code: u32, domain: &Domain) -> bool {
        match (self, domain) {
            (Self::Leaves { first, end }, _) => (*first..*end).contains(&code),
            (Self::Missing, Domain::Numeric { values, .. }) => code as usize == values.len(),
            (Self::Numbers { interval, missing }, Domain::Numeric { values, .. }) => {
                match values.get(code as usize) {
                    Some(&value) => interval.contains(value),
                    None => *missing,
                }
            }
            // Not reached: a cover is parsed with the domain that it is used with.
            (_, Domain::Taxonomy(_)) => false,
        }
    }
}

/// The interval that covers missing cells in a numeric column that is released as `released`, if
/// the column has missing cells: the declared domain; without one, the closed interval between the
/// least and the greatest end of the released intervals. Only an interval that encloses it covers
/// missing cells.
pub(super) fn outermost(
    raw: &OriginalQuasiIdentifier,
    released: &ReleasedColumn,
) -> Option<Interval> {
    let Domain::Numeric {
        lo,
        hi,
        missing: true,
        scale,
        ..
    } = raw.domain
    else {
        return None;
    };
    if raw.declared_domain {
        return Some(Interval::closed(*lo, *hi).on(*scale));
    }
    // Labels that no row has are not released.
    let mut occurs = vec![false; released.column.dictionary.len()];
    for &code in &released.column.codes {
        if let Some(occurs) = occurs.get_mut(code as usize) {
            *occurs = true;
        }
    }
    let labels = released.column.dictionary.iter().zip(occurs);
    let intervals = labels
        .filter(|(_, occurs)| *occurs)
        .filter_map(|(label, _)| Interval::parse_on(label, *scale));
    intervals
        .reduce(|one, other| Interval::closed(one.lo.min(other.lo), one.hi.max(other.hi)))
        .map(|hull| Interval::closed(hull.lo, hull.hi).on(*scale))
}
