//! Examples: codes of attributes, a class and a weight each, column by column.

use std::sync::Arc;

/// What the codes of an attribute mean.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Domain {
    /// Codes are values without an order, from 0 to this number less 1.
    Nominal(u32),
    /// Codes are ranks of these values, which ascend; the code after the last means missing.
    Ordered(Arc<[f64]>),
}

impl Domain {
    /// Number of codes, including that of missing.
    pub(super) fn code_count(&self) -> usize {
        match self {
            Self::Nominal(values) => *values as usize,
            Self::Ordered(values) => values.len() + 1,
        }
    }
}

/// An attribute of all examples.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Attribute {
    /// What the codes mean.
    pub(super) domain: Domain,
    /// One code per row.
    pub(super) codes: Vec<u32>,
}

#[cfg(test)]
impl Attribute {
    /// An attribute of `values` values without an order.
    pub(super) fn nominal(values: u32, codes: Vec<u32>) -> Self {
        Self {
            domain: Domain::Nominal(values),
            codes,
        }
    }

    /// An attribute whose codes are ranks of ascending values; `values.len()` means missing.
    pub(super) fn ordered(values: Vec<f64>, codes: Vec<u32>) -> Self {
        Self {
            domain: Domain::Ordered(values.into()),
            codes,
        }
    }
}

/// Examples with a class each. Equal examples can be one with a weight.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Examples {
    pub(super) attributes: Vec<Attribute>,
    pub(super) classes: Vec<u32>,
    pub(super) class_count: u32,
    pub(super) weights: Vec<u32>,
}

impl Examples {
    /// Examples of weight 1: as many codes of each attribute as classes, all of them inside their
    /// domains.
    pub(super) fn new(attributes: Vec<Attribute>, classes: Vec<u32>, class_count: u32) -> Self {
        Self {
            weights: vec![1; classes.len()],
            attributes,
            classes,
            class_count,
        }
    }

    /// Number of examples, without their weights.
    pub(super) fn len(&self) -> usize {
        self.classes.len()
    }

    /// The weights of all examples together: the number of rows they are of.
    pub(super) fn weight(&self) -> u64 {
        self.weights.iter().copied().map(u64::from).sum()
    }

    /// Some of the examples, each as often as it is named; equal ones become one with their weights
    /// added up. So many rows of few distinct records are few examples.
    pub(super) fn collapsed(&self, rows: &[u32]) -> Self {
        let mut hashed: Vec<(u64, u32)> = rows.iter().map(|&row| (self.hash(row), row)).collect();
        hashed.sort_unstable();
        let mut kept: Vec<u32> = Vec::new();
        let mut weights: Vec<u32> = Vec::new();
        let mut last_hash = None;
        for (hash, row) in hashed {
            let weight = self.weights[row as usize];
            let is_equal = last_hash == Some(hash)
                && kept.last().is_some_and(|&last| self.are_equal(last, row));
            last_hash = Some(hash);
            let sum = weights.last().and_then(|sum| sum.checked_add(weight));
            match (is_equal, sum, weights.last_mut()) {
                (true, Some(sum), Some(last)) => *last = sum,
                _ => {
                    kept.push(row);
                    weights.push(weight);
                }
            }
        }
        let of_column = |codes: &[u32]| kept.iter().map(|&row| codes[row as usize]).collect();
        let attributes = self.attributes.iter().map(|attribute| Attribute {
            domain: attribute.domain.clone(),
            codes: of_column(&attribute.codes),
        });
        Self {
            attributes: attributes.collect(),
            classes: of_column(&self.classes),
            class_count: self.class_count,
            weights,
        }
    }

    /// A number that equal examples have in common.
    fn hash(&self, row: u32) -> u64 {
        let columns = self.attributes.iter().map(|attribute| &attribute.codes);
        let columns = columns.chain([&self.classes]);
        columns.fold(0, |hash: u64, codes| {
            // The finalizer of MurmurHash3, so that small codes differ in all bits.
            let mut mixed = hash ^ (u64::from(codes[row as usize]) + 1);
            mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
            mixed ^ (mixed >> 33)
        })
    }

    fn are_equal(&self, one: u32, other: u32) -> bool {
        let (one, other) = (one as usize, other as usize);
        let is_equal = |codes: &[u32]| codes[one] == codes[other];
        is_equal(&self.classes) && self.attributes.iter().all(|it| is_equal(&it.codes))
    }
}
