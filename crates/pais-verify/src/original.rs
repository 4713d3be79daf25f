//! The raw table that a release is compared with.

use pais_core::schema::SchemaColumn;
use pais_core::table::codes::Codes;
use pais_core::table::{Column, Domain, EncodedTable};
use pais_core::taxonomy::MinimumLevels;

use super::sets::{OriginalSet, is_at_or_above};

/// The raw table that a release is compared with, restricted to what the release should contain.
#[derive(Clone, Debug)]
pub struct Original<'a> {
    /// Number of rows.
    pub rows: usize,
    /// The generalized columns.
    pub quasi_identifiers: Vec<OriginalQuasiIdentifier<'a>>,
    /// The set-valued columns.
    pub sets: Vec<OriginalSet<'a>>,
    /// The columns that are released unchanged.
    pub untouched: Vec<OriginalColumn<'a>>,
}

/// A column that is released unchanged.
#[derive(Clone, Copy, Debug)]
pub struct OriginalColumn<'a> {
    /// As declared.
    pub name: &'a str,
    /// Its cells.
    pub cells: &'a Column,
}

/// A column before its generalization.
#[derive(Clone, Debug)]
pub struct OriginalQuasiIdentifier<'a> {
    /// As declared.
    pub name: &'a str,
    /// The domain of its codes.
    pub domain: &'a Domain,
    /// Whether the bounds of a numeric domain are declared, and not those of the raw numbers. Then
    /// every label is within them, and the interval between them covers missing cells. Otherwise
    /// the outermost interval may be narrower, where rows are left out, or wider, where it is
    /// rounded: it is the released one that encloses all others.
    pub declared_domain: bool,
    /// One code for each row.
    pub codes: Codes<'a>,
    /// The node that each leaf of a taxonomy is pre-generalized to; `None` without
    /// pre-generalization. No released label may be below that node.
    pub minimum_levels: Option<&'a MinimumLevels>,
}

impl<'a> Original<'a> {
    /// All columns of an encoded table. `columns` are the stored columns of its schema, by
    /// position; returns `None` if there is none at a position.
    pub fn from_table(table: &'a EncodedTable, columns: &[&'a SchemaColumn]) -> Option<Self> {
        let quasi_identifiers = table.quasi_identifiers.iter().map(|column| {
            let spec = columns.get(column.position)?;
            Some(OriginalQuasiIdentifier {
                name: &column.name,
                domain: &column.domain,
                declared_domain: spec.domain().is_some(),
                codes: column.codes.borrowed(),
                minimum_levels: None,
            })
        });
        let sets = table.sets.iter().map(|column| OriginalSet {
            column,
            minimum_levels: None,
        });
        let untouched = table.untouched.iter().map(|it| {
            Some(OriginalColumn {
                name: columns.get(it.position)?.name(),
                cells: &it.column,
            })
        });
        Some(Self {
            rows: table.rows,
            quasi_identifiers: quasi_identifiers.collect::<Option<_>>()?,
            sets: sets.collect(),
            untouched: untouched.collect::<Option<_>>()?,
        })
    }
}

impl OriginalQuasiIdentifier<'_> {
    /// Whether a label is not below the node that a code is pre-generalized to.
    pub(super) fn admits(&self, label: &str, code: u32) -> bool {
        let (Some(minimum_levels), Domain::Taxonomy(tree)) = (self.minimum_levels, self.domain)
        else {
            return true;
        };
        let node = tree.find(label);
        node.is_some_and(|node| is_at_or_above(tree, node, minimum_levels.level_of(code)))
    }
}
