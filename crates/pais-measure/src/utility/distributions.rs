//! Raw and released shares of the values of a column, side by side, for the holder.

use std::cmp::Ordering;

use pais_core::schema::Schema;
use pais_core::table::{Domain, SubjectCounter, Subjects};
use pais_core::taxonomy::{Interval, MISSING_LABEL};
use serde::{Deserialize, Serialize};

use super::distorted_column::DistortedColumn;
use super::holder_only::rounded;

/// Maximum number of labels of a side; all others are pooled.
const LABELS: usize = 20;

/// Minimum number of persons of a raw value that is shown by itself, also where *K* is lower.
const FEWEST: u64 = 5;

/// What pooled values are called.
const OTHER: &str = "other";

/// Bytes that the distributions of a table of this many rows need: of each column that is measured at a time the
/// person of each row, and the last count that saw each person.
pub fn distribution_bytes(schema: &Schema, rows: u64) -> u64 {
    if schema.subject().is_none() {
        return 0;
    }
    let columns = rayon::current_num_threads() as u64;
    rows.saturating_mul(columns * (4 + 4))
}

/// The shares of the values of a generalized column. The raw numbers of a column without a taxonomy are
/// shown in bins of equal width. Its released intervals are shown as they are; where there are more
/// than 20, in the same bins, to which they give a share by the width in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ColumnDistribution {
    /// The name, as declared.
    pub column: String,
    /// Of released rows.
    pub released: Vec<LabelShare>,
    /// Of raw rows. Values of fewer than *K* persons, at least 5, are pooled.
    pub raw: Vec<LabelShare>,
}

/// The share of a label, a raw value or a bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LabelShare {
    /// The label; `other` for values that are pooled.
    pub label: String,
    /// Its share of the rows, from 0 to 1, with two significant digits.
    pub share: f64,
}

impl ColumnDistribution {
    pub(super) fn new(column: &DistortedColumn, subjects: Option<&Subjects>, k: u64) -> Self {
        let fewest = k.max(FEWEST);
        let mut persons = PersonsOfCodes::new(column, subjects);
        let name = column.spec.name().to_owned();
        let Some(bins) = column.bins() else {
            let released = column.labels().map(|(_, label, rows)| LabelledRows {
                label: label.to_owned(),
                rows,
                codes: Vec::new(),
            });
            let rows = |labels: &[LabelledRows]| labels.iter().map(|it| it.rows).sum();
            return Self {
                column: name,
                released: pooled(released.collect(), fewest, rows),
                raw: pooled(raw_values(column), fewest, |values| persons.count(values)),
            };
        };
        let label = |bin: usize| {
            if bin == bins.missing() {
                Some(MISSING_LABEL.to_owned())
            } else {
                bins.label(bin)
            }
        };
        let mut of_bin: Vec<LabelledRows> = (0..bins.len())
            .map(|bin| LabelledRows {
                label: label(bin).unwrap_or_default(),
                rows: 0,
                codes: Vec::new(),
            })
            .collect();
        for (code, &rows) in column.raw_counts.iter().enumerate() {
            let bin = &mut of_bin[column.bin(&bins, code)];
            bin.rows += rows;
            bin.codes.push(code);
        }
        let (mut shown, rare): (Vec<_>, Vec<_>) = of_bin.into_iter().partition(|bin| {
            !bin.label.is_empty() && persons.count(std::slice::from_ref(bin)) >= fewest
        });
        shown.extend(pool(&rare, fewest, |values| persons.count(values)));
        let total = column.raw_counts.iter().sum::<u64>().max(1) as f64;
        let raw = shown.into_iter();
        let raw = raw.map(|bin| (bin.label, bin.rows as f64 / total));
        let released = intervals(column).unwrap_or_else(|| {
            let shares = column.released_bins(&bins).into_iter().enumerate();
            let shares = shares.filter_map(|(bin, share)| Some((label(bin)?, share)));
            shares.filter(|(_, share)| *share > 0.0).collect()
        });
        Self {
            column: name,
            released: rounded_shares(released.into_iter()),
            raw: rounded_shares(raw),
        }
    }
}

/// The released labels of a column of grown intervals with their shares, ascending; `None` where there
/// are too many.
fn intervals(column: &DistortedColumn) -> Option<Vec<(String, f64)>> {
    let Domain::Numeric { scale, .. } = &column.raw.domain else {
        return None;
    };
    let place = |label: &str| {
        let interval = Interval::parse_on(label, *scale);
        interval.map_or((f64::INFINITY, 0.0), |it| (it.lo, it.hi))
    };
    let rows = column.rows.max(1) as f64;
    let labels = column.labels();
    let shares = labels.map(|(_, label, count)| (label.to_owned(), count as f64 / rows));
    let mut shares: Vec<(String, f64)> = shares.collect();
    shares.sort_by(|(one, _), (other, _)| {
        place(one)
            .partial_cmp(&place(other))
            .unwrap_or(Ordering::Equal)
    });
    (shares.len() <= LABELS).then_some(shares)
}

/// A label of a side.
struct LabelledRows {
    label: String,
    /// Number of rows that have it.
    rows: u64,
    /// The raw codes under it; none of a released label.
    codes: Vec<usize>,
}

/// The leaves of the column's taxonomy with their raw rows.
fn raw_values(column: &DistortedColumn) -> Vec<LabelledRows> {
    let Domain::Taxonomy(tree) = &column.raw.domain else {
        return Vec::new();
    };
    let leaves = (0u32..).zip(column.raw_counts);
    let leaves = leaves.filter(|(_, rows)| **rows > 0);
    let leaves = leaves.map(|(leaf, &rows)| LabelledRows {
        label: tree.node(tree.leaf(leaf)).label.to_string(),
        rows,
        codes: vec![leaf as usize],
    });
    leaves.collect()
}

/// The persons of the raw rows by code. A value that many rows have can be that of one person.
enum PersonsOfCodes {
    /// Each row is a person.
    Rows,
    Named {
        /// The person of each row, code after code.
        of_rows: Vec<u32>,
        /// Where the rows of each code end.
        ends: Vec<usize>,
        counter: SubjectCounter,
    },
}

impl PersonsOfCodes {
    fn new(column: &DistortedColumn, subjects: Option<&Subjects>) -> Self {
        let Some(subjects) = subjects else {
            return Self::Rows;
        };
        let mut end = 0;
        let starts = column.raw_counts.iter().map(|&rows| {
            let start = end;
            end += rows as usize;
            start
        });
        // Where the next row of each code goes.
        let mut ends: Vec<usize> = starts.collect();
        let mut of_rows = vec![0; end];
        for (row, &person) in subjects.of_row().iter().enumerate() {
            if let Some(next) = ends.get_mut(column.raw.codes.at(row) as usize) {
                of_rows[*next] = person;
                *next += 1;
            }
        }
        Self::Named {
            of_rows,
            ends,
            counter: SubjectCounter::new(subjects.codes()),
        }
    }

    /// Number of persons with a raw value under some labels.
    fn count(&mut self, labels: &[LabelledRows]) -> u64 {
        match self {
            Self::Rows => labels.iter().map(|it| it.rows).sum(),
            Self::Named {
                of_rows,
                ends,
                counter,
            } => {
                let codes = labels.iter().flat_map(|it| &it.codes);
                let persons = codes.flat_map(|&code| {
                    let start = code.checked_sub(1).map_or(0, |before| ends[before]);
                    of_rows[start..ends[code]].iter().copied()
                });
                counter.count_up_to(u64::MAX, persons)
            }
        }
    }
}

/// The most frequent values; values of few persons or beyond the number of labels are pooled.
fn pooled(
    values: Vec<LabelledRows>,
    fewest: u64,
    mut persons: impl FnMut(&[LabelledRows]) -> u64,
) -> Vec<LabelShare> {
    let total = values.iter().map(|it| it.rows).sum::<u64>().max(1) as f64;
    let is_long = values.len() > LABELS;
    let (mut shown, mut rare): (Vec<_>, Vec<_>) = values
        .into_iter()
        .partition(|it| persons(std::slice::from_ref(it)) >= fewest);
    shown.sort_by(|one, other| {
        let rows = other.rows.cmp(&one.rows);
        rows.then_with(|| one.label.cmp(&other.label))
    });
    if is_long {
        rare.extend(shown.split_off(shown.len().min(LABELS - 1)));
    }
    shown.extend(pool(&rare, fewest, persons));
    let shown = shown.into_iter();
    rounded_shares(shown.map(|it| (it.label, it.rows as f64 / total)))
}

/// Rare values together; `None` if they are rare together, too.
fn pool(
    rare: &[LabelledRows],
    fewest: u64,
    mut persons: impl FnMut(&[LabelledRows]) -> u64,
) -> Option<LabelledRows> {
    (persons(rare) >= fewest).then(|| LabelledRows {
        label: OTHER.to_owned(),
        rows: rare.iter().map(|it| it.rows).sum(),
        codes: Vec::new(),
    })
}

fn rounded_shares(shares: impl Iterator<Item = (String, f64)>) -> Vec<LabelShare> {
    let shares = shares.map(|(label, share)| LabelShare {
        label,
        share: rounded(share),
    });
    shares.collect()
}

#[cfg(test)]
mod tests {
    use super::{LabelledRows, pooled};

    fn rows(values: &[LabelledRows]) -> u64 {
        values.iter().map(|it| it.rows).sum()
    }

    #[test]
    fn rare_values_are_pooled_and_never_named() {
        let values = |most| {
            let values = [("a", 50), ("b", 44), ("c", 4), ("d", 2)];
            let values = values.into_iter().take(most);
            let values = values.map(|(label, rows)| LabelledRows {
                label: label.to_owned(),
                rows,
                codes: Vec::new(),
            });
            values.collect()
        };
        let shown = pooled(values(4), 5, rows);
        let shown: Vec<_> = shown.iter().map(|it| (&*it.label, it.share)).collect();
        assert_eq!(shown, [("a", 0.5), ("b", 0.44), ("other", 0.06)]);
        let alone = pooled(values(3), 5, rows);
        assert!(
            alone
                .iter()
                .all(|it| it.label != "other" && it.label != "c")
        );
    }

    #[test]
    fn at_most_twenty_labels_are_shown() {
        let values = (0..30).map(|value| LabelledRows {
            label: value.to_string(),
            rows: 10 + value,
            codes: Vec::new(),
        });
        let shown = pooled(values.collect(), 5, rows);
        assert_eq!(shown.len(), 20);
        assert_eq!((&*shown[0].label, &*shown[19].label), ("29", "other"));
    }
}
