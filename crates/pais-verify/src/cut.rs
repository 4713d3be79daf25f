//! Check that the labels of a column form one cut of its domain (global recoding).

use thiserror::Error;

use pais_core::table::{Domain, NULL_CODE, ReleasedColumn};

use super::cover::{Cover, outermost_interval};
use super::original::OriginalQuasiIdentifier;

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
/// Section 3.2): no label is an ancestor of another or overlaps it. The domain of `raw` is that of
/// the cut, and `source_rows` are the raw rows of the released ones.
///
/// # Errors
/// [`CutError`] with the first error found.
pub fn check_single_cut(
    column: &ReleasedColumn,
    raw: &OriginalQuasiIdentifier,
    source_rows: &[u32],
) -> Result<(), CutError> {
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
    let outermost = outermost_interval(raw.domain, raw.declared_domain, column);
    let mut covers = Vec::with_capacity(labels.len());
    for label in labels {
        let cover = Cover::within(label, raw, outermost).ok_or_else(|| CutError::UnknownLabel {
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
    let covers_missing =
        |(cover, _): &&(Cover, _)| matches!(cover, Cover::Numbers { missing, .. } if *missing);
    let whole = covers.iter().find(covers_missing);
    let missing = covers.iter().find(|(cover, _)| *cover == Cover::Missing);
    // `?` is a label of its own only after the outermost interval has been specialized. One of the
    // parts of that interval can be the only one released, and then ends where it did.
    if let (Some((_, whole)), Some((_, missing))) = (whole, missing)
        && is_label_of_missing(whole, column, raw, source_rows)
    {
        return Err(overlap(whole, missing));
    }
    // In the order of their starts, if any covers overlap, then two adjacent ones do.
    covers.sort_by(|(one, _), (other, _)| start(one).total_cmp(&start(other)));
    for pair in covers.windows(2) {
        let apart = match (pair[0].0, pair[1].0) {
            (Cover::Leaves { end, .. }, Cover::Leaves { first, .. }) => end <= first,
            (
                Cover::Numbers { interval: one, .. },
                Cover::Numbers {
                    interval: other, ..
                },
            ) => one.hi < other.lo || (one.hi == other.lo && !one.closed),
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
        Cover::Numbers { interval, .. } => interval.lo,
        Cover::Missing => f64::INFINITY,
    }
}

/// Whether some row with this label has a missing cell in the raw column.
fn is_label_of_missing(
    label: &str,
    column: &ReleasedColumn,
    raw: &OriginalQuasiIdentifier,
    source_rows: &[u32],
) -> bool {
    let Domain::Numeric { values, .. } = raw.domain else {
        return false;
    };
    let dictionary = column.column.dictionary.iter();
    let is_label: Vec<bool> = dictionary.map(|text| **text == *label).collect();
    let mut rows = column.column.codes.iter().zip(source_rows);
    rows.any(|(&code, &source)| {
        is_label.get(code as usize) == Some(&true)
            && (source as usize) < raw.codes.rows()
            && raw.codes.at(source as usize) as usize == values.len()
    })
}
