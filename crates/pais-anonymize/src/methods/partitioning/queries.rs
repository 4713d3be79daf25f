//! The rows of a release of groups as random counting queries need them.

use pais_core::table::Domain;

use super::split::GroupPartition;
use super::tables::covered_codes;
use crate::prepared::PreparedTable;
use crate::utility::{QueryDimension, QueryTable, sensitive_of_rows};

/// The rows of each group in the codes that query conditions use; with the labels where these are
/// released in place of the values.
pub(super) fn query_table(
    input: &PreparedTable,
    partition: &GroupPartition,
    generalized: bool,
) -> QueryTable {
    let dimensions = input.table.quasi_identifiers.iter().map(|column| {
        // Queries are about raw values, also where pre-generalization replaces them.
        let column = input.pre_generalization.raw(column);
        let minimum_levels = input.pre_generalization.minimum_levels(&column.name);
        let code = |&row: &u32| column.codes[row as usize];
        let labels = partition.groups().map(|group| {
            let codes = group.iter().map(code);
            match (minimum_levels, &column.domain) {
                (Some(minimum_levels), Domain::Taxonomy(tree)) => {
                    let floor = |leaf| tree.node(minimum_levels.level_of(leaf));
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
    let sensitive = sensitive_of_rows(input, &partition.rows);
    QueryTable::new(partition.sizes.clone(), dimensions.collect(), sensitive)
}
