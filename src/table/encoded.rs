//! A table made ready for an engine: quasi-identifiers as codes in the order of their domains.

use std::sync::Arc;

use crate::taxonomy::Tree;

/// What the codes of a quasi-identifier stand for.
#[derive(Clone, Debug)]
pub enum Domain {
    /// Codes are numbers of leaves; the tree has the leaf `?` where cells are missing.
    Taxonomy(Arc<Tree>),
    /// Codes are ranks in `values`; the code `values.len()` is a missing cell.
    Numeric {
        /// Distinct values, ascending.
        values: Vec<f64>,
        /// Lower end of the outermost interval.
        lo: f64,
        /// Upper end of the outermost interval.
        hi: f64,
        /// Whether any cell is missing.
        missing: bool,
    },
}

impl Domain {
    /// Number of distinct codes, missing included.
    pub fn code_count(&self) -> usize {
        match self {
            Self::Taxonomy(tree) => tree.leaf_count(),
            Self::Numeric {
                values, missing, ..
            } => values.len() + usize::from(*missing),
        }
    }
}

/// A quasi-identifier, *D_i* of the KDD'09 paper.
#[derive(Clone, Debug)]
pub struct QuasiIdentifier {
    /// As in the header.
    pub name: Box<str>,
    /// Position among the stored columns of the schema.
    pub position: usize,
    /// What codes stand for.
    pub domain: Domain,
    /// One code a row.
    pub codes: Vec<u32>,
}

/// A sensitive column, *Sens* of the KDD'09 paper.
#[derive(Clone, Debug)]
pub struct SensitiveColumn {
    /// As in the header.
    pub name: Box<str>,
    /// Position among the stored columns of the schema.
    pub position: usize,
    /// Distinct values by code.
    pub values: Vec<Box<str>>,
    /// One code a row; [`crate::table::NULL_CODE`] for missing.
    pub codes: Vec<u32>,
}

/// A table made ready for an engine.
#[derive(Clone, Debug)]
pub struct EncodedTable {
    /// Number of rows.
    pub rows: usize,
    /// In the declared order.
    pub quasi_identifiers: Vec<QuasiIdentifier>,
    /// In the declared order.
    pub sensitive: Vec<SensitiveColumn>,
    /// The class column: number of classes and one code a row, missing being a class of its own.
    pub class: Option<(usize, Vec<u32>)>,
    /// The columns that stand in a release as they came (sensitive, class, insensitive), by
    /// position among the stored columns.
    pub untouched: Vec<(usize, super::Column)>,
}
