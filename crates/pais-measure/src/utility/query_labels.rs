//! A release with labels as random counting queries need it, whatever method made it.

use std::collections::hash_map::Entry;

use pais_core::cancellation::Cancellation;
use pais_core::definition::ColumnRole;
use pais_core::table::{Form, NULL_CODE};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rustc_hash::FxHashMap;

use super::QueryError;
use super::label_cover::covered;
use super::query_table::{QueryDimension, QuerySensitive, QueryTable};
use super::value_ranks::ValueRanks;
use crate::release::{MeasuredRelease, MethodGroups};
use crate::sample::{RawSample, SAMPLED_ROWS, first_rows};

/// Number of rows between two checks whether to stop.
const STRIDE: usize = 1 << 16;

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
    let error = queries.error(&|| release.cancellation.is_cancelled())?;
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
        (0..groups.sizes.len()).collect()
    };
    let ends = groups.sizes.iter().scan(0, |end, &size| {
        *end += size as usize;
        Some(*end)
    });
    let ends: Vec<usize> = ends.collect();
    let of_group = |&group: &usize| {
        let end = ends[group];
        &groups.rows[end - groups.sizes[group] as usize..end]
    };
    let rows: Vec<u32> = drawn.iter().flat_map(of_group).copied().collect();
    let columns = release.quasi_identifiers.iter().enumerate();
    let dimensions = columns.map(|(index, column)| {
        let code = |&row: &u32| column.codes[row as usize];
        let labels = groups.labels.as_ref().map(|labels| &labels[index]);
        let dimension = QueryDimension {
            codes: rows.iter().map(code).collect(),
            labels: labels.map(|labels| drawn.iter().map(|&group| labels[group]).collect()),
        };
        (dimension, column.domain.code_count() as u32)
    });
    let codes = |untouched: usize| release.raw.untouched[untouched].1.codes.as_slice();
    let sensitive = sensitive_of_rows(release, codes, &rows);
    let sizes = drawn.iter().map(|&group| groups.sizes[group]).collect();
    let table = QueryTable::new(sizes, dimensions.collect(), sensitive);
    if is_sample { table.sampled() } else { table }
}

/// Random groups with [`SAMPLED_ROWS`] rows or, by the last one drawn, more; in ascending order.
fn drawn_groups(sizes: &[u32]) -> Vec<usize> {
    let mut groups: Vec<usize> = (0..sizes.len()).collect();
    groups.shuffle(&mut StdRng::seed_from_u64(SEED));
    let mut rows = 0;
    let is_wanted = |group: &usize| {
        let is_wanted = rows < SAMPLED_ROWS;
        rows += sizes[*group] as usize;
        is_wanted
    };
    let mut drawn: Vec<usize> = groups.into_iter().take_while(is_wanted).collect();
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
        let mut columns = table.columns.iter();
        let labels = columns.find(|it| it.name == column.name)?;
        if labels.form != Form::Generalized {
            return None;
        }
        released.push((column, sampled, &labels.column));
    }
    if released.is_empty() {
        return None;
    }
    let codes = released.iter();
    let codes = codes.map(|(_, _, labels)| &labels.codes[..rows.len()]);
    let groups = LabelGroups::new(rows.len(), codes, release.cancellation)?;
    let dimensions = released.iter().map(|(raw, sampled, labels)| {
        if release.cancellation.is_cancelled() {
            return None;
        }
        let domain = &raw.domain;
        let ends = |text: &str| {
            let (first, end, covers_missing) = covered(domain, text)?;
            let end = if covers_missing {
                domain.code_count()
            } else {
                end
            };
            (first < end).then(|| (first as u32, end as u32 - 1))
        };
        let ends: Vec<Option<(u32, u32)>> = labels.dictionary.iter().map(|it| ends(it)).collect();
        let of_group = groups.first_rows.iter().map(|&row| {
            let label = labels.codes[row as usize];
            ends.get(label as usize).copied().flatten()
        });
        let dimension = QueryDimension {
            codes: groups
                .order
                .iter()
                .map(|&place| sampled[place as usize])
                .collect(),
            labels: Some(of_group.collect::<Option<_>>()?),
        };
        Some((dimension, domain.code_count() as u32))
    });
    let dimensions = dimensions.collect::<Option<_>>()?;
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
    let stored: Vec<_> = release.schema.stored().collect();
    let sensitive = release.raw.untouched.iter().enumerate();
    let sensitive = sensitive.filter_map(|(untouched, (position, column))| {
        let spec = stored.get(*position)?;
        if spec.role() != ColumnRole::Sensitive {
            return None;
        }
        let ranks = ValueRanks::new(spec, column);
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
    /// `None` when stopped.
    fn new<'a>(
        rows: usize,
        columns: impl Iterator<Item = &'a [u32]>,
        cancellation: &Cancellation,
    ) -> Option<Self> {
        let mut group_of = vec![0u32; rows];
        let mut count = 1;
        for codes in columns {
            let mut numbers: FxHashMap<(u32, u32), u32> = FxHashMap::default();
            for (row, (group, &code)) in group_of.iter_mut().zip(codes).enumerate() {
                if row % STRIDE == 0 && cancellation.is_cancelled() {
                    return None;
                }
                let fresh = numbers.len() as u32;
                *group = match numbers.entry((*group, code)) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => *new.insert(fresh),
                };
            }
            count = numbers.len();
        }
        let mut sizes = vec![0u32; if rows == 0 { 0 } else { count }];
        for &group in &group_of {
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
        for (row, &group) in (0u32..).zip(&group_of) {
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
