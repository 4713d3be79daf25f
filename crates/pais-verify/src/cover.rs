//! The part of a column's domain that a label covers.

use std::ops::Range;

use pais_core::table::{Domain, ReleasedColumn};
use pais_core::taxonomy::{Interval, MISSING_LABEL, SUPPRESSED_LABEL};

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
    /// domain. The interval may be wider than the domain.
    pub(super) fn parse(label: &str, domain: &Domain, outermost: Option<Interval>) -> Option<Self> {
        match domain {
            Domain::Taxonomy(tree) => {
                let node = tree.node(tree.find(label)?);
                Some(Self::Leaves {
                    first: node.first_leaf,
                    end: node.end_leaf,
                })
            }
            Domain::Numeric { .. } if label == MISSING_LABEL => Some(Self::Missing),
            Domain::Numeric { scale, .. } if label == SUPPRESSED_LABEL => Some(Self::Numbers {
                interval: Interval::closed(f64::NEG_INFINITY, f64::INFINITY).on(*scale),
                missing: true,
            }),
            Domain::Numeric { scale, .. } => {
                let interval = Interval::parse_on(label, *scale)?;
                Some(Self::Numbers {
                    interval,
                    missing: outermost.is_some_and(|outermost| interval.encloses(&outermost)),
                })
            }
        }
    }

    /// As [`Self::parse`], and `None` too for an interval that is wider than a declared domain.
    pub(super) fn within(
        label: &str,
        raw: &OriginalQuasiIdentifier,
        outermost: Option<Interval>,
    ) -> Option<Self> {
        let cover = Self::parse(label, raw.domain, outermost)?;
        let is_within = match (&cover, raw.domain) {
            (Self::Numbers { interval, .. }, Domain::Numeric { lo, hi, scale, .. }) => {
                !raw.declared_domain || Interval::closed(*lo, *hi).on(*scale).encloses(interval)
            }
            _ => true,
        };
        is_within.then_some(cover)
    }

    /// The raw codes of a domain that it covers.
    pub(super) fn span(&self, domain: &Domain) -> Span {
        let values = match domain {
            Domain::Numeric { values, .. } => values.as_slice(),
            Domain::Taxonomy(_) => &[],
        };
        let of_missing = Some(values.len() as u32);
        match self {
            Self::Leaves { first, end } => Span {
                codes: *first..*end,
                missing: None,
            },
            Self::Missing => Span {
                codes: 0..0,
                missing: of_missing,
            },
            Self::Numbers { interval, missing } => {
                let places = interval.places(values);
                Span {
                    codes: places.start as u32..places.end as u32,
                    missing: of_missing.filter(|_| *missing),
                }
            }
        }
    }
}

/// The raw codes that a label covers. In a numeric column, missing cells have a separate code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) codes: Range<u32>,
    pub(super) missing: Option<u32>,
}

impl Span {
    /// Whether the label covers a cell with this code.
    pub(super) fn contains(&self, code: u32) -> bool {
        self.codes.contains(&code) || self.missing == Some(code)
    }
}

/// The interval that covers missing cells in a numeric column that is released as `released`, if
/// the column has missing cells: the declared domain; without one, the closed interval between the
/// least and the greatest end of the released intervals. Only an interval that encloses it covers
/// missing cells; one number does not.
pub fn outermost_interval(
    domain: &Domain,
    declared_domain: bool,
    released: &ReleasedColumn,
) -> Option<Interval> {
    let Domain::Numeric {
        lo,
        hi,
        missing: true,
        scale,
        ..
    } = domain
    else {
        return None;
    };
    if declared_domain {
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
        .filter(|hull| hull.lo < hull.hi)
        .map(|hull| Interval::closed(hull.lo, hull.hi).on(*scale))
}
