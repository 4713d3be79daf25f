//! A release of groups as random counting queries see it.

use pais_core::table::{Domain, EncodedTable};
use crate::utility::{QueryDimension, QuerySensitive, QueryTable};

use super::ranks::Ranks;
use super::release::Grouped;
use super::tables::covered;

/// The groups' rows in the codes that conditions are about; with the labels where these are
/// released in place of the values.
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
        // Queries ask for raw values, also where something else stands for them.
        let column = grouped.pre_generalization.raw(column);
        let floors = grouped.pre_generalization.floors(&column.name);
        let code = |&row: &u32| column.codes[row as usize];
        let labels = partition.groups().map(|group| {
            let codes = group.iter().map(code);
            match (floors, &column.domain) {
                (Some(floors), Domain::Taxonomy(tree)) => {
                    let floor = |leaf| tree.node(floors.of(leaf));
                    let ends = codes.map(floor).map(|it| [it.first_leaf, it.end_leaf - 1]);
                    covered(&column.domain, ends.flatten())
                }
                _ => covered(&column.domain, codes),
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
        let ranks = Ranks::of(spec, column);
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
