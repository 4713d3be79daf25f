//! Measures of the groups of equal generalized records: discernibility and sizes.

use pais_verify::{SIZE_BUCKETS, size_bucket, sizes_of_bucket};
use serde::{Deserialize, Serialize};

/// Measures of a table's groups; *G* is the set of its distinct records over all quasi-
/// identifiers, *|G|* the records of one, *|T|* those of the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GroupMetrics {
    /// *DR = Σ|G|² / |T|²*, discernibility ratio, from 0 to 1, lower is better (KDD'09, Section
    /// 5.1); 0 for an empty table.
    pub dr: f64,
    /// *Σ|G|²*, discernibility cost, in pairs of records (KDD'09, Section 3.2).
    pub discernibility: u64,
    /// Number of groups.
    pub groups: u64,
    /// Records of the smallest group of equal records over **all** quasi-identifiers; 0 for an
    /// empty table.
    pub smallest_group: u64,
    /// *|T| / groups*, the mean number of records per group; 0 for an empty table.
    pub average_group: f64,
    /// *Σ|G|² / |T|*, the mean group size over the records; 0 for an empty table.
    pub average_group_per_record: f64,
    /// The number of groups by size, smallest size first; empty size ranges are
    /// left out.
    pub group_sizes: Vec<SizeBucket>,
}

/// The groups with `from` to `to` records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SizeBucket {
    /// Minimum number of records, inclusive.
    pub from: u64,
    /// Maximum number of records, inclusive.
    pub to: u64,
    /// Number of groups.
    pub groups: u64,
    /// Number of records in them.
    pub rows: u64,
}

impl GroupMetrics {
    /// The measures of groups of these sizes, in records.
    ///
    /// There are fewer than 2³² records in a table, so the sum of squares fits 64 bits.
    pub(crate) fn from_sizes(sizes: &[u32]) -> Self {
        let rows: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
        let discernibility: u64 = sizes.iter().map(|&size| u64::from(size).pow(2)).sum();
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let (total, groups) = (rows as f64, sizes.len() as u64);
        Self {
            dr: ratio(discernibility as f64, total * total),
            discernibility,
            groups,
            smallest_group: sizes.iter().copied().min().map_or(0, u64::from),
            average_group: ratio(total, groups as f64),
            average_group_per_record: ratio(discernibility as f64, total),
            group_sizes: buckets(sizes),
        }
    }
}

/// The non-empty buckets of sizes.
fn buckets(sizes: &[u32]) -> Vec<SizeBucket> {
    let bucket = |bucket| {
        let (from, to) = sizes_of_bucket(bucket);
        SizeBucket {
            from,
            to,
            groups: 0,
            rows: 0,
        }
    };
    let mut buckets: Vec<SizeBucket> = (0..SIZE_BUCKETS).map(bucket).collect();
    for &size in sizes {
        let bucket = &mut buckets[size_bucket(size)];
        bucket.groups += 1;
        bucket.rows += u64::from(size);
    }
    buckets.retain(|bucket| bucket.groups > 0);
    buckets
}

#[cfg(test)]
mod tests {
    use super::{GroupMetrics, SizeBucket};

    #[test]
    fn discernibility_weights_records_by_their_group_size() {
        let found = GroupMetrics::from_sizes(&[1, 4]);
        assert_eq!(
            (found.discernibility, found.groups, found.smallest_group),
            (17, 2, 1)
        );
        assert_eq!(
            (found.average_group, found.average_group_per_record),
            (2.5, 3.4)
        );
        assert_eq!(found.dr, 17.0 / 25.0);
    }

    #[test]
    fn an_empty_table_has_no_nan() {
        assert_eq!(GroupMetrics::from_sizes(&[]), GroupMetrics::default());
    }

    #[test]
    fn every_group_is_in_a_bucket() {
        let bucket = |from, to, groups, rows| SizeBucket {
            from,
            to,
            groups,
            rows,
        };
        assert_eq!(
            GroupMetrics::from_sizes(&[1, 4, 2, 5, 9, 10, 1]).group_sizes,
            [
                bucket(1, 1, 2, 2),
                bucket(2, 4, 2, 6),
                bucket(5, 9, 2, 14),
                bucket(10, 19, 1, 10)
            ]
        );
        let largest = &GroupMetrics::from_sizes(&[u32::MAX]).group_sizes;
        assert_eq!(
            largest,
            &[bucket(2_000_000_000, 4_999_999_999, 1, u64::from(u32::MAX))]
        );
    }
}
