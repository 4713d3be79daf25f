//! A release with labels as random counting queries need it, whatever method made it.

use chacha20::ChaCha12Rng;
use pais_core::cancellation::Cancellation;
use pais_core::definition::ColumnRole;
use pais_core::table::codes::CodeRange;
use pais_core::table::{Form, NULL_CODE};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rustc_hash::FxHashMap;

use super::QueryError;
use super::label_cover::{above_missing, covered};
use super::query_table::{GroupLabels, QueryDimension, QuerySensitive, QueryTable};
use super::value_ranks::ValueRanks;
use crate::release::{MeasuredRelease, MethodGroups};
use crate::sample::{RawSample, SAMPLED_ROWS, first_rows};

/// The error of counting queries, rounded. Groups are those of the method, or the rows with equal
/// labels. Queries are about raw values, also where pre-generalization replaces them. `None` when
/// stopped.
pub(crate) fn query_error(
    release: &MeasuredRelease,
    groups: Option<&MethodGroups>,
    sample: &RawSample,
) -> Option<QueryError> {
    let queries = match groups {
        Some(groups) => of_groups(release, groups),
        None => of_labels(release, sample)?,
    };
    if release.cancellation.is_cancelled() {
        return None;
    }
    let error = queries.error(release.cancellation)?;
    Some(error.rounded())
}

/// Seed of the sample of groups.
const SEED: u64 = 2010;

/// The rows of each group that a method formed; of many rows, those of a sample of whole groups.
fn of_groups(release: &MeasuredRelease, groups: &MethodGroups) -> QueryTable {
    let is_sample = groups.rows.len() > SAMPLED_ROWS;
    let drawn = if is_sample {
        drawn_groups(groups.sizes)
    } else {
        (0..groups.sizes.len() as u32).collect()
    };
    let ends = groups.sizes.iter().scan(0, |end, &size| {
        *end += size as usize;
        Some(*end)
    });
    let ends: Vec<usize> = ends.collect();
    let of_group = |&group: &u32| {
        let end = ends[group as usize];
        &groups.rows[end - groups.sizes[group as usize] as usize..end]
    };
    let rows: Vec<u32> = drawn.iter().flat_map(of_group).copied().collect();
    let columns = release.quasi_identifiers.iter().enumerate();
    let dimensions = columns.map(|(index, column)| {
        let labels = groups.labels.as_ref().and_then(|labels| {
            let labels: Vec<_> = labels[index].iter().copied().map(Some).collect();
            GroupLabels::new(&labels, &drawn)
        });
        QueryDimension {
            codes: column.codes.of_rows(&rows),
            count: column.domain.code_count() as u32,
            labels,
        }
    });
    let codes = |untouched: usize| release.raw.untouched[untouched].column.codes.as_slice();
    let sensitive = sensitive_of_rows(release, codes, &rows);
    let sizes = drawn
        .iter()
        .map(|&group| groups.sizes[group as usize])
        .collect();
    let table = QueryTable::new(sizes, dimensions.collect(), sensitive);
    if is_sample { table.sampled() } else { table }
}

/// Random groups with at least [`SAMPLED_ROWS`] rows, drawn until this number is reached; in ascending order.
fn drawn_groups(sizes: &[u32]) -> Vec<u32> {
    let mut groups: Vec<u32> = (0..sizes.len() as u32).collect();
    groups.shuffle(&mut ChaCha12Rng::seed_from_u64(SEED));
    let mut rows = 0;
    let is_wanted = |group: &u32| {
        let is_wanted = rows < SAMPLED_ROWS;
        rows += sizes[*group as usize] as usize;
        is_wanted
    };
    let mut drawn: Vec<u32> = groups.into_iter().take_while(is_wanted).collect();
    drawn.sort_unstable();
    drawn
}

/// The rows of a released table, or of a sample, by their labels. `None` where no quasi-identifier has one value in
/// a cell, or a cell has no label of its domain.
fn of_labels(release: &MeasuredRelease, sample: &RawSample) -> Option<QueryTable> {
    let (table, rows) = (release.table, first_rows(release.rows));
    let mut released = Vec::with_capacity(release.quasi_identifiers.len());
    for (&column, sampled) in release
        .quasi_identifiers
        .iter()
        .zip(&sample.quasi_identifiers)
    {
        let labels = table.column(&column.name)?;
        if labels.form != Form::Generalized {
            return None;
        }
        let spec = release.schema.stored_at(column.position)?;
        let above = above_missing(column, spec, labels, sampled);
        released.push((column, sampled, &labels.column, above));
    }
    if released.is_empty() {
        return None;
    }
    let of_rows = released.iter().map(|(raw, _, labels, above)| {
        let domain = &raw.domain;
        let ends = |text: &str| {
            let (first, end, covers_missing) = covered(domain, text, *above)?;
            let end = if covers_missing {
                domain.code_count()
            } else {
                end
            };
            (first < end).then(|| CodeRange::new(first as u32, end as u32 - 1))
        };
        let ends: Vec<Option<CodeRange>> = labels.dictionary.iter().map(|it| ends(it)).collect();
        GroupLabels::new(&ends, &labels.codes[..rows.len()])
    });
    let of_rows: Vec<GroupLabels> = of_rows.collect::<Option<_>>()?;
    let groups = LabelGroups::new(rows.len(), &of_rows, release.cancellation)?;
    let dimensions = released.iter().zip(of_rows);
    let dimensions = dimensions.map(|((raw, sampled, ..), labels)| {
        let codes = groups.order.iter();
        let of_group = groups.first_rows.iter();
        QueryDimension {
            codes: codes.map(|&place| sampled[place as usize]).collect(),
            count: raw.domain.code_count() as u32,
            labels: Some(GroupLabels {
                of_group: of_group.map(|&row| labels.of_group[row as usize]).collect(),
                ranges: labels.ranges,
            }),
        }
    });
    let dimensions = dimensions.collect();
    let codes = |untouched: usize| sample.untouched[untouched].as_slice();
    let sensitive = sensitive_of_rows(release, codes, &groups.order);
    let table = QueryTable::new(groups.sizes, dimensions, sensitive);
    let is_sample = rows.len() < release.rows.len();
    Some(if is_sample { table.sampled() } else { table })
}

/// The sensitive columns of some rows, in their order. `codes` are those of an untouched column.
fn sensitive_of_rows<'a>(
    release: &MeasuredRelease,
    codes: impl Fn(usize) -> &'a [u32],
    rows: &[u32],
) -> Vec<QuerySensitive> {
    let sensitive = release.raw.untouched.iter().enumerate();
    let sensitive = sensitive.filter_map(|(untouched, it)| {
        let spec = release.schema.stored_at(it.position)?;
        if spec.role() != ColumnRole::Sensitive {
            return None;
        }
        let ranks = ValueRanks::new(spec, &it.column);
        let codes = codes(untouched);
        let rank = |&row: &u32| {
            let rank = ranks.known_rank(codes[row as usize]);
            rank.unwrap_or(u32::MAX)
        };
        Some(QuerySensitive {
            ranks: rows.iter().map(rank).collect(),
            count: ranks.known(),
        })
    });
    sensitive.collect()
}

/// Replaces keys by the numbers of different ones, in their order, and returns how many there are.
fn number(keys: &mut [u64]) -> u64 {
    let mut numbers: FxHashMap<u64, u64> = FxHashMap::default();
    for key in keys {
        let fresh = numbers.len() as u64;
        *key = *numbers.entry(*key).or_insert(fresh);
    }
    numbers.len() as u64
}

/// Rows with equal labels.
struct LabelGroups {
    /// Rows of each group.
    sizes: Vec<u32>,
    /// The rows, group by group.
    order: Vec<u32>,
    /// The first row of each group.
    first_rows: Vec<u32>,
}

impl LabelGroups {
    /// Groups are in the order of their first rows. `None` when stopped.
    fn new(rows: usize, columns: &[GroupLabels], cancellation: &Cancellation) -> Option<Self> {
        let mut keys = vec![0u64; rows];
        let mut count = 1u64;
        for labels in columns {
            if cancellation.is_cancelled() {
                return None;
            }
            let ranges = labels.ranges.len() as u64;
            // Numbers of groups fit: there are no more than rows, and labels are no more than cells.
            let counted = count.checked_mul(ranges).unwrap_or_else(|| {
                count = number(&mut keys);
                count * ranges
            });
            let cells = keys.iter_mut().zip(&labels.of_group);
            cells.for_each(|(key, &label)| *key = *key * ranges + u64::from(label));
            count = counted;
        }
        let count = number(&mut keys);
        let mut sizes = vec![0u32; count as usize];
        for &group in &keys {
            sizes[group as usize] += 1;
        }
        let mut next = 0;
        let mut places: Vec<u32> = sizes
            .iter()
            .map(|&size| {
                let place = next;
                next += size;
                place
            })
            .collect();
        let mut order = vec![NULL_CODE; rows];
        let starts = places.clone();
        for (row, &group) in (0u32..).zip(&keys) {
            let place = &mut places[group as usize];
            order[*place as usize] = row;
            *place += 1;
        }
        let first_rows = starts.iter().map(|&start| order[start as usize]);
        Some(Self {
            first_rows: first_rows.collect(),
            sizes,
            order,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pais_core::cancellation::Cancellation;
    use proptest::prelude::*;

    use super::{CodeRange, LabelGroups};
    use crate::utility::query_table::GroupLabels;

    proptest! {
        /// Also where the numbers of labels of all columns multiply to more than a key holds.
        #[test]
        fn groups_are_the_rows_with_equal_labels_in_the_order_of_their_first_rows(
            rows in prop::collection::vec(prop::collection::vec(0u32..3, 6), 1..60),
            labels in prop_oneof![Just(3u32), Just(5_000)],
        ) {
            let columns = (0..6).map(|column| GroupLabels {
                ranges: (0..labels).map(|code| CodeRange::new(code, code)).collect(),
                of_group: rows.iter().map(|row| labels - 1 - row[column]).collect(),
            });
            let columns: Vec<GroupLabels> = columns.collect();
            let found = LabelGroups::new(rows.len(), &columns, &Cancellation::default()).unwrap();
            let mut expected: BTreeMap<&Vec<u32>, Vec<u32>> = BTreeMap::new();
            for (number, row) in (0..).zip(&rows) {
                expected.entry(row).or_default().push(number);
            }
            let mut expected: Vec<Vec<u32>> = expected.into_values().collect();
            expected.sort();
            let sizes: Vec<u32> = expected.iter().map(|group| group.len() as u32).collect();
            let first_rows: Vec<u32> = expected.iter().map(|group| group[0]).collect();
            prop_assert_eq!((found.sizes, found.first_rows), (sizes, first_rows));
            prop_assert_eq!(found.order, expected.concat());
        }
    }
}
