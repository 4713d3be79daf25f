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
    /// An attribute of the [`NarrowCodes`] of an example, by its number there.
    Narrow(usize),
    Wide(Vec<u32>),
}

/// The codes of attributes with few of them, example beside example: a node counts all of them in one pass
/// over its examples, in one array of weights by attribute, code and class.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NarrowCodes {
    /// Where the weights of each attribute begin in the array.
    pub(super) starts: Vec<usize>,
    codes: Vec<u8>,
    /// The place of each code in the array, with the class of its example.
    places: Vec<u16>,
}

impl NarrowCodes {
    /// Most codes of an attribute.
    pub(super) const MOST_CODES: usize = 1 << u8::BITS;

    /// Most places of the array. An attribute that would need more is wide.
    pub(super) const MOST_PLACES: usize = 1 << u16::BITS;

    /// Those of an example.
    #[inline]
    pub(super) fn of(&self, example: u32) -> &[u8] {
        let width = self.starts.len();
        let start = example as usize * width;
        &self.codes[start..start + width]
    }

    /// The places of those of an example.
    #[inline]
    pub(super) fn places(&self, example: u32) -> &[u16] {
        let width = self.starts.len();
        let start = example as usize * width;
        &self.places[start..start + width]
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
        let mut starts = Vec::new();
        let mut end = 0;
        let numbers = columns.iter().map(|(domain, _)| {
            let codes = domain.code_count();
            let after = end + codes * class_count as usize;
            let is_narrow = codes <= NarrowCodes::MOST_CODES && after <= NarrowCodes::MOST_PLACES;
            is_narrow.then(|| {
                starts.push(std::mem::replace(&mut end, after));
                starts.len() - 1
            })
        });
        let numbers: Vec<Option<usize>> = numbers.collect();
        let width = starts.len();
        let mut narrow = NarrowCodes {
            codes: vec![0; width * classes.len()],
            places: vec![0; width * classes.len()],
            starts,
        };
        let attributes = columns
            .into_iter()
            .zip(numbers)
            .map(|((domain, codes), number)| {
                let Some(number) = number else {
                    let codes = AttributeCodes::Wide(codes.collect());
                    return Attribute { domain, codes };
                };
                let start = narrow.starts[number];
                let all = narrow.codes.chunks_exact_mut(width);
                let all = all.zip(narrow.places.chunks_exact_mut(width));
                for ((code, class), (of_codes, of_places)) in codes.zip(&classes).zip(all) {
                    of_codes[number] = code as u8;
                    of_places[number] = (start + (code * class_count + class) as usize) as u16;
                }
                let codes = AttributeCodes::Narrow(number);
                Attribute { domain, codes }
            });
        let attributes = attributes.collect();
        let mut examples = Self {
            attributes,
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
            AttributeCodes::Narrow(number) => self.narrow.of(example)[*number].into(),
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
