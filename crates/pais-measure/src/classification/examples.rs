//! Examples: codes of attributes and a class each, column by column.

use std::sync::Arc;

/// Most classes. A column with more is not one that rows are classified by.
pub(super) const MOST_CLASSES: u32 = 256;

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

/// Examples with a class each.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Examples {
    pub(super) attributes: Vec<Attribute>,
    pub(super) classes: Vec<u32>,
    pub(super) class_count: u32,
    pub(super) narrow: NarrowCodes,
}

impl Examples {
    /// As many codes of each attribute as classes, all of them inside their domains.
    pub(super) fn new(attributes: Vec<Attribute>, classes: Vec<u32>, class_count: u32) -> Self {
        Self {
            narrow: NarrowCodes::new(&attributes, classes.len()),
            attributes,
            classes,
            class_count,
        }
    }

    /// Number of examples.
    pub(super) fn len(&self) -> usize {
        self.classes.len()
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

/// The codes of the attributes with at most 256 of them, row beside row: a node counts all of them in one
/// pass over its rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NarrowCodes {
    /// By attribute, its place in a row; `None` for one with more codes.
    pub(super) places: Vec<Option<usize>>,
    /// Number of places of a row.
    pub(super) width: usize,
    pub(super) codes: Vec<u8>,
}

impl NarrowCodes {
    /// Most codes of an attribute.
    pub(super) const MOST_CODES: usize = 1 << u8::BITS;

    fn new(attributes: &[Attribute], rows: usize) -> Self {
        let mut width = 0;
        let mut places = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            let is_narrow = attribute.domain.code_count() <= Self::MOST_CODES;
            places.push(is_narrow.then_some(width));
            width += usize::from(is_narrow);
        }
        let mut codes = vec![0; width * rows];
        for (attribute, &place) in attributes.iter().zip(&places) {
            let Some(place) = place else { continue };
            let of_rows = codes.chunks_exact_mut(width).zip(&attribute.codes);
            of_rows.for_each(|(row, &code)| row[place] = code as u8);
        }
        Self {
            places,
            width,
            codes,
        }
    }
}

/// Rows as distinct examples, so that many rows of few records are few examples.
#[derive(Clone, Debug)]
pub(super) struct RowExamples {
    /// Different ones, but for those whose hashes are equal by chance.
    pub(super) distinct: Examples,
    /// The example of each row.
    of_row: Vec<u32>,
}

impl RowExamples {
    /// Of one example for each row.
    pub(super) fn new(rows: Examples) -> Self {
        let numbers = 0..rows.len() as u32;
        let mut hashed: Vec<(u64, u32)> = numbers.map(|row| (rows.hash(row), row)).collect();
        hashed.sort_unstable();
        let mut kept: Vec<u32> = Vec::new();
        let mut of_row = vec![0; rows.len()];
        let mut last_hash = None;
        for (hash, row) in hashed {
            let is_equal = last_hash == Some(hash)
                && kept.last().is_some_and(|&last| rows.are_equal(last, row));
            if !is_equal {
                kept.push(row);
            }
            last_hash = Some(hash);
            of_row[row as usize] = kept.len() as u32 - 1;
        }
        let of_column = |codes: &[u32]| kept.iter().map(|&row| codes[row as usize]).collect();
        let attributes = rows.attributes.iter().map(|attribute| Attribute {
            domain: attribute.domain.clone(),
            codes: of_column(&attribute.codes),
        });
        let classes = of_column(&rows.classes);
        Self {
            distinct: Examples::new(attributes.collect(), classes, rows.class_count),
            of_row,
        }
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.of_row.len()
    }

    /// How many of some rows each distinct example is; a row counts as often as it is named.
    pub(super) fn weights(&self, rows: &[u32]) -> Vec<u32> {
        let mut weights = vec![0; self.distinct.len()];
        for &row in rows {
            weights[self.of_row[row as usize] as usize] += 1;
        }
        weights
    }
}
