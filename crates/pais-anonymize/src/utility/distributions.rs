//! The values of a column, raw beside released, as the holder's report shows them.

use pais_core::table::Domain;
use serde::{Deserialize, Serialize};

use super::distortion::{DistortedColumn, shares};
use super::holder_only::rounded;

/// Most labels of a side; all others are pooled.
const LABELS: usize = 20;

/// Fewest raw rows of a value that is shown by itself, also where *K* is lower.
const FEWEST_ROWS: u64 = 5;

/// What pooled values are called.
const OTHER: &str = "other";

/// The shares of the values of a generalized column. A numeric column without a taxonomy is shown
/// in bins of equal width, the same on both sides, to which released intervals give a share by the
/// width in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ColumnDistribution {
    /// The name, as declared.
    pub column: String,
    /// Of released rows.
    pub released: Vec<LabelShare>,
    /// Of raw rows. Values of fewer than *K* rows, at least 5, are pooled.
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
    pub(super) fn new(column: &DistortedColumn, k: u64) -> Self {
        let fewest = k.max(FEWEST_ROWS);
        let name = column.spec.name.to_string();
        let Some(bins) = column.bins() else {
            let released = column
                .labels()
                .map(|(_, label, rows)| (label.to_owned(), rows));
            return Self {
                column: name,
                released: pooled(released.collect(), fewest),
                raw: pooled(raw_values(column), fewest),
            };
        };
        let label = |bin: usize| {
            if bin == bins.missing() {
                Some(pais_core::taxonomy::MISSING_LABEL.to_owned())
            } else {
                bins.label(bin)
            }
        };
        let released = column.released_bins(&bins);
        let counts = column.raw_bin_counts(&bins);
        let raw = counts.iter().zip(shares(&counts)).enumerate();
        let (mut shown, mut rest, mut pooled_rows) = (Vec::new(), 0.0, 0);
        for (bin, (&rows, share)) in raw {
            match label(bin) {
                Some(label) if rows >= fewest => shown.push((label, share)),
                _ => {
                    rest += share;
                    pooled_rows += rows;
                }
            }
        }
        if pooled_rows >= fewest {
            shown.push((OTHER.to_owned(), rest));
        }
        let released = released.into_iter().enumerate();
        let released = released.filter_map(|(bin, share)| Some((label(bin)?, share)));
        Self {
            column: name,
            released: rounded_shares(released.filter(|(_, share)| *share > 0.0)),
            raw: rounded_shares(shown.into_iter()),
        }
    }
}

/// The leaves of the column's taxonomy with their raw rows.
fn raw_values(column: &DistortedColumn) -> Vec<(String, u64)> {
    let Domain::Taxonomy(tree) = &column.raw.domain else {
        return Vec::new();
    };
    let leaves = (0u32..).zip(&column.raw_counts);
    let leaves = leaves.filter(|(_, rows)| **rows > 0);
    let leaves = leaves.map(|(leaf, &rows)| (tree.node(tree.leaf(leaf)).label.to_string(), rows));
    leaves.collect()
}

/// The most frequent values; those that are rare or beyond the number of labels are pooled. What is
/// pooled is left out where it is rare itself.
fn pooled(mut values: Vec<(String, u64)>, fewest: u64) -> Vec<LabelShare> {
    let total = values.iter().map(|(_, rows)| rows).sum::<u64>().max(1) as f64;
    values.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    let frequent = values.iter().filter(|(_, rows)| *rows >= fewest).count();
    let rare = values.split_off(if frequent > LABELS || values.len() > LABELS {
        frequent.min(LABELS - 1)
    } else {
        frequent
    });
    let rest: u64 = rare.iter().map(|(_, rows)| rows).sum();
    let rest = (rest >= fewest).then(|| (OTHER.to_owned(), rest));
    let shown = values.into_iter().chain(rest);
    rounded_shares(shown.map(|(label, rows)| (label, rows as f64 / total)))
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
    use super::pooled;

    #[test]
    fn rare_values_are_pooled_and_never_named() {
        let values = [("a", 50), ("b", 44), ("c", 4), ("d", 2)];
        let values = values
            .map(|(label, rows)| (label.to_owned(), rows))
            .to_vec();
        let shown = pooled(values.clone(), 5);
        let shown: Vec<_> = shown.iter().map(|it| (&*it.label, it.share)).collect();
        assert_eq!(shown, [("a", 0.5), ("b", 0.44), ("other", 0.06)]);
        let alone = pooled(values[..3].to_vec(), 5);
        assert!(
            alone
                .iter()
                .all(|it| it.label != "other" && it.label != "c")
        );
    }

    #[test]
    fn at_most_twenty_labels_are_shown() {
        let values = (0..30).map(|value| (value.to_string(), 10 + value));
        let shown = pooled(values.collect(), 5);
        assert_eq!(shown.len(), 20);
        assert_eq!((&*shown[0].label, &*shown[19].label), ("29", "other"));
    }
}
