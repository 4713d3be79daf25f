//! A release with labels as random counting queries need it, whatever method made it.

use std::collections::hash_map::Entry;

use pais_core::definition::ColumnRole;
use pais_core::table::{EncodedTable, Form, NULL_CODE, ReleasedTable};
use rustc_hash::FxHashMap;

use super::label_cover::covered;
use super::query_table::{QueryDimension, QuerySensitive, QueryTable};
use super::report::Report;
use super::value_ranks::ValueRanks;
use crate::method::Candidate;
use crate::observer::Observer;
use crate::prepared::PreparedTable;

/// Adds the error of counting queries to a report that does not have it yet: of a release whose
/// method forms no groups. Its groups are the rows with equal labels.
pub(crate) fn add_query_error(
    report: &mut Report,
    input: &PreparedTable,
    candidate: &Candidate,
    observer: &dyn Observer,
) {
    if report.utility.query_error.is_some() {
        return;
    }
    let Some(table) = candidate.tables.first() else {
        return;
    };
    let queries = query_table(input, table, &candidate.rows);
    let error = queries.and_then(|queries| queries.error(&|| observer.must_stop()));
    report.utility.query_error = error.map(|error| error.rounded());
}

/// The rows of a released table by their labels, with the raw codes of `rows`, their raw rows.
/// `None` where no quasi-identifier has one value in a cell, or a cell has no label of its domain.
fn query_table(input: &PreparedTable, table: &ReleasedTable, rows: &[u32]) -> Option<QueryTable> {
    let EncodedTable {
        quasi_identifiers, ..
    } = &*input.table;
    let mut released = Vec::with_capacity(quasi_identifiers.len());
    for column in quasi_identifiers {
        let mut columns = table.columns.iter();
        let labels = columns.find(|it| it.name == column.name)?;
        if labels.form != Form::Generalized {
            return None;
        }
        // Queries are about raw values, also where pre-generalization replaces them.
        released.push((input.pre_generalization.raw(column), &labels.column));
    }
    if released.is_empty() {
        return None;
    }
    let groups = LabelGroups::new(
        table.rows,
        released.iter().map(|(_, labels)| &*labels.codes),
    );
    let in_order: Vec<u32> = groups.order.iter().map(|&row| rows[row as usize]).collect();
    let dimensions = released.iter().map(|(raw, labels)| {
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
            codes: in_order
                .iter()
                .map(|&row| raw.codes[row as usize])
                .collect(),
            labels: Some(of_group.collect::<Option<_>>()?),
        };
        Some((dimension, domain.code_count() as u32))
    });
    let dimensions = dimensions.collect::<Option<_>>()?;
    let sensitive = sensitive_of_rows(input, &in_order);
    Some(QueryTable::new(groups.sizes, dimensions, sensitive))
}

/// The sensitive columns of raw rows, in their order.
pub(crate) fn sensitive_of_rows(input: &PreparedTable, rows: &[u32]) -> Vec<QuerySensitive> {
    let stored: Vec<_> = input.schema.stored().collect();
    let sensitive = input.table.untouched.iter();
    let sensitive = sensitive.filter_map(|(position, column)| {
        let spec = stored.get(*position)?;
        if spec.role() != ColumnRole::Sensitive {
            return None;
        }
        let ranks = ValueRanks::new(spec, column);
        let rank = |&row: &u32| {
            let rank = ranks.known_rank(column.codes[row as usize]);
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
    fn new<'a>(rows: usize, columns: impl Iterator<Item = &'a [u32]>) -> Self {
        let mut group_of = vec![0u32; rows];
        let mut count = 1;
        for codes in columns {
            let mut numbers: FxHashMap<(u32, u32), u32> = FxHashMap::default();
            for (group, &code) in group_of.iter_mut().zip(codes) {
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
        Self {
            first_rows: first_rows.collect(),
            sizes,
            order,
        }
    }
}
