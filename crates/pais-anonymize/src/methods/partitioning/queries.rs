//! The input of the random counting queries that measure the error of a group release.

use pais_core::table::{Domain, EncodedTable};
use crate::utility::{QueryDimension, QuerySensitive, QueryTable};

use super::ranks::ValueRanks;
use super::release::Grouped;
use super::tables::covered_codes;

/// The rows group by group, in the codes that query conditions use. With `generalized` the ranges
/// of codes under the released labels are included, because labels are released instead of values.
pub(super) fn table(grouped: &Grouped, generalized: bool) -> QueryTable {
    let Grouped {
        schema,
        table,
        partition,
        ..
    } = grouped;
    let EncodedTable {
        quasi_identifiers,
        untouched,
        ..
    } = table;
    let dimensions = quasi_identifiers.iter().map(|column| {
        // Queries are about raw values, also where pre-generalization replaces them.
        let column = grouped.pre_generalization.raw(column);
        let floors = grouped.pre_generalization.floors(&column.name);
        let code = |&row: &u32| column.codes[row as usize];
        let labels = partition.groups().map(|group| {
            let codes = group.iter().map(code);
            match (floors, &column.domain) {
                (Some(floors), Domain::Taxonomy(tree)) => {
                    let floor = |leaf| tree.node(floors.of(leaf));
                    let ends = codes.map(floor).map(|it| [it.first_leaf, it.end_leaf - 1]);
                    covered_codes(&column.domain, ends.flatten())
                }
                _ => covered_codes(&column.domain, codes),
            }
        });
        let dimension = QueryDimension {
            codes: partition.rows.iter().map(code).collect(),
            labels: generalized.then(|| labels.collect()),
        };
        (dimension, column.domain.code_count() as u32)
    });
    let stored: Vec<_> = schema.stored().collect();
    let sensitive = untouched.iter().filter_map(|(position, column)| {
        let spec = stored.get(*position)?;
        if !grouped.plan.sensitive.contains(&spec.name) {
            return None;
        }
        let ranks = ValueRanks::new(spec, column);
        let rank = |&row: &u32| {
            ranks
                .known_rank(column.codes[row as usize])
                .unwrap_or(u32::MAX)
        };
        Some(QuerySensitive {
            ranks: partition.rows.iter().map(rank).collect(),
            count: ranks.known(),
        })
    });
    QueryTable {
        sizes: partition.sizes.clone(),
        dimensions: dimensions.collect(),
        sensitive: sensitive.collect(),
    }
}
