//! Examples: codes of attributes and a class each, column by column.

use std::iter::repeat_n;
use std::sync::Arc;

/// Maximum number of classes. Rows are not classified by a column with more.
pub(super) const MOST_CLASSES: u32 = 256;

/// What the codes of an attribute mean.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Domain {
    /// Codes are values without an order, below this number.
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

    /// The code that means missing; none of a nominal attribute.
    pub(super) fn missing_code(&self) -> u32 {
        match self {
            Self::Nominal(_) => u32::MAX,
            Self::Ordered(values) => values.len() as u32,
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
    /// An attribute with few codes: its number among those of [`Examples::places`].
    Narrow(usize),
    Wide(Vec<u32>),
}

/// Maximum number of codes of a narrow attribute.
const MOST_CODES: usize = 1 << u8::BITS;

/// Maximum number of places of the array of weights of narrow attributes. An attribute that would need more is wide.
pub(super) const MOST_PLACES: usize = 1 << u16::BITS;

/// Places of some narrow codes of an example, and 0 after the last one. Moving whole blocks is faster than
/// moving the exact number of places.
pub(super) type PlaceBlock = [u16; 8];

/// Blocks of an example with this many narrow attributes; at least one.
fn blocks(narrow: usize) -> usize {
    narrow.div_ceil(PlaceBlock::default().len()).max(1)
}

/// A test of one attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) position: usize,
    /// The last code below the threshold of an ordered attribute; `None` where each value of a
    /// nominal one has a branch.
    pub(super) last_low: Option<u32>,
}

impl Test {
    /// The branch of a code: the code, or at a threshold 0 up to it, 1 above it, 2 for missing.
    pub(super) fn branch(self, code: u32, missing: u32) -> u32 {
        match self.last_low {
            None => code,
            Some(_) if code == missing => 2,
            Some(last_low) => u32::from(code > last_low),
        }
    }
}

/// Examples with a class each.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Examples {
    pub(super) attributes: Vec<Attribute>,
    /// Of each narrow attribute, where its weights begin in an array of weights by attribute, code and class: a node
    /// counts all narrow ones in one pass over its examples. They begin at multiples of 64.
    pub(super) starts: Vec<usize>,
    /// The places of the narrow codes in that array, example after example.
    places: Vec<PlaceBlock>,
    /// The code of each place.
    code_of_place: Vec<u8>,
    pub(super) classes: Vec<u32>,
    pub(super) class_count: u32,
    /// An attribute such that the examples are in ascending order of its codes and then of their classes: they
    /// need not be sorted by it.
    pub(super) ascending: Option<usize>,
}

impl Examples {
    /// Examples of these attributes, each with as many codes as there are classes, all of them inside its
    /// domain.
    pub(super) fn new<C: Iterator<Item = u32>>(
        attributes: impl IntoIterator<Item = (Domain, C)>,
        classes: Vec<u32>,
        class_count: u32,
    ) -> Self {
        let columns: Vec<(Domain, C)> = attributes.into_iter().collect();
        let mut starts: Vec<usize> = Vec::new();
        let mut end = 0usize;
        let numbers = columns.iter().map(|(domain, _)| {
            let codes = domain.code_count();
            let start = end.next_multiple_of(u64::BITS as usize);
            let after = start + codes * class_count as usize;
            let is_narrow = codes <= MOST_CODES && after <= MOST_PLACES;
            is_narrow.then(|| {
                starts.push(start);
                end = after;
                starts.len() - 1
            })
        });
        let numbers: Vec<Option<usize>> = numbers.collect();
        let blocks = blocks(starts.len());
        let mut places = vec![PlaceBlock::default(); blocks * classes.len()];
        let mut code_of_place = Vec::new();
        let attributes = columns.into_iter().zip(numbers);
        let attributes = attributes.map(|((domain, codes), number)| {
            let codes = match number {
                Some(number) => {
                    let start = starts[number];
                    let codes_of_places = (0..domain.code_count())
                        .flat_map(|code| repeat_n(code as u8, class_count as usize));
                    code_of_place.resize(start, 0);
                    code_of_place.extend(codes_of_places);
                    let all = places.chunks_exact_mut(blocks);
                    for ((code, class), of_example) in codes.zip(&classes).zip(all) {
                        of_example.as_flattened_mut()[number] =
                            (start + (code * class_count + class) as usize) as u16;
                    }
                    AttributeCodes::Narrow(number)
                }
                None => AttributeCodes::Wide(codes.collect()),
            };
            Attribute { domain, codes }
        });
        let mut examples = Self {
            attributes: attributes.collect(),
            starts,
            places,
            code_of_place,
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
            AttributeCodes::Narrow(number) => {
                self.code_at(self.places(example).as_flattened()[*number])
            }
            AttributeCodes::Wide(codes) => codes[example as usize],
        }
    }

    /// The places of the narrow codes of an example.
    #[inline]
    pub(super) fn places(&self, example: u32) -> &[PlaceBlock] {
        let blocks = self.blocks();
        &self.places[example as usize * blocks..][..blocks]
    }

    /// Blocks of an example.
    pub(super) fn blocks(&self) -> usize {
        blocks(self.starts.len())
    }

    /// The code of a narrow attribute at a place.
    #[inline]
    pub(super) fn code_at(&self, place: u16) -> u32 {
        self.code_of_place[usize::from(place)].into()
    }

    /// Number of places of all narrow attributes.
    pub(super) fn place_count(&self) -> usize {
        self.code_of_place.len()
    }
}

/// Rows as distinct examples, so that many rows of few records are few examples.
#[derive(Clone, Debug)]
pub(super) struct RowExamples {
    /// Distinct examples, except those whose hashes collide by chance.
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
