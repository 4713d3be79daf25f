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
    pub(super) codes: AttributeCodes,
}

/// Where the code of each example is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AttributeCodes {
    /// At most 256 codes: a place in the [`NarrowCodes`] of an example.
    Narrow(usize),
    Wide(Vec<u32>),
}

/// The codes of the attributes with at most 256 of them, example beside example: a node counts all of them
/// in one pass over its examples.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NarrowCodes {
    /// Number of codes of an example.
    pub(super) width: usize,
    pub(super) codes: Vec<u8>,
}

impl NarrowCodes {
    /// Most codes of an attribute.
    pub(super) const MOST_CODES: usize = 1 << u8::BITS;

    /// Those of an example.
    #[inline]
    pub(super) fn of(&self, example: u32) -> &[u8] {
        let start = example as usize * self.width;
        &self.codes[start..start + self.width]
    }
}

/// Examples with a class each.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Examples {
    pub(super) attributes: Vec<Attribute>,
    pub(super) narrow: NarrowCodes,
    pub(super) classes: Vec<u32>,
    pub(super) class_count: u32,
    /// An attribute by whose codes, and then by whose classes, the examples ascend: they need not be
    /// sorted by it.
    pub(super) ascending: Option<usize>,
}

impl Examples {
    /// Of these attributes, each with as many codes as there are classes, all of them inside its domain.
    pub(super) fn new<C: Iterator<Item = u32>>(
        attributes: impl IntoIterator<Item = (Domain, C)>,
        classes: Vec<u32>,
        class_count: u32,
    ) -> Self {
        let columns: Vec<(Domain, C)> = attributes.into_iter().collect();
        let is_narrow = |domain: &Domain| domain.code_count() <= NarrowCodes::MOST_CODES;
        let width = columns.iter().filter(|(it, _)| is_narrow(it)).count();
        let mut narrow = NarrowCodes {
            width,
            codes: vec![0; width * classes.len()],
        };
        let mut place = 0;
        let attributes = columns.into_iter().map(|(domain, codes)| {
            let codes = if is_narrow(&domain) {
                let of_examples = narrow.codes.chunks_exact_mut(width);
                let codes = of_examples.zip(codes);
                codes.for_each(|(example, code)| example[place] = code as u8);
                place += 1;
                AttributeCodes::Narrow(place - 1)
            } else {
                AttributeCodes::Wide(codes.collect())
            };
            Attribute { domain, codes }
        });
        let mut examples = Self {
            attributes: attributes.collect(),
            narrow,
            classes,
            class_count,
            ascending: None,
        };
        let positions = 0..examples.attributes.len();
        examples.ascending = positions.into_iter().find(|&position| {
            let of_example = |example: u32| {
                (
                    examples.code(position, example),
                    examples.classes[example as usize],
                )
            };
            (0..examples.len() as u32).is_sorted_by_key(of_example)
        });
        examples
    }

    /// Number of examples.
    pub(super) fn len(&self) -> usize {
        self.classes.len()
    }

    /// The code of an attribute of an example.
    #[inline]
    pub(super) fn code(&self, position: usize, example: u32) -> u32 {
        match &self.attributes[position].codes {
            AttributeCodes::Narrow(place) => self.narrow.of(example)[*place].into(),
            AttributeCodes::Wide(codes) => codes[example as usize],
        }
    }
}

/// Rows as distinct examples, so that many rows of few records are few examples.
#[derive(Clone, Debug)]
pub(super) struct RowExamples {
    /// Different ones, but for those whose hashes are equal by chance.
    pub(super) distinct: Examples,
    /// The example of each row.
    pub(super) of_row: Vec<u32>,
}

impl RowExamples {
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
