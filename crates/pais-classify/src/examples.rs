//! Examples: codes of attributes, a class and a weight each, column by column.

use std::sync::Arc;

/// Why examples are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExamplesError {
    /// A column has another number of rows than the classes.
    #[error("attribute {attribute} has {rows} rows, the classes have {expected}")]
    Length {
        /// Position of the attribute.
        attribute: usize,
        /// Its number of rows.
        rows: usize,
        /// The number of classes given.
        expected: usize,
    },
    /// A code is outside the domain of its attribute.
    #[error("attribute {attribute} has a code outside its domain")]
    Code {
        /// Position of the attribute.
        attribute: usize,
    },
    /// The values of an ordered attribute do not ascend.
    #[error("the values of attribute {attribute} do not ascend")]
    Order {
        /// Position of the attribute.
        attribute: usize,
    },
    /// A class is not below the number of classes.
    #[error("a class is outside the {classes} classes")]
    Class {
        /// Number of classes.
        classes: u32,
    },
    /// There are more rows than 32-bit numbers.
    #[error("there are more than 2³² - 1 examples")]
    TooMany,
}

/// What the codes of an attribute mean.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// Codes are values without an order, from 0 to this number less 1.
    Nominal(u32),
    /// Codes are ranks of these values, which ascend; the code after the last means missing.
    Ordered(Arc<[f64]>),
}

impl Domain {
    /// Number of codes, including that of missing.
    pub(crate) fn code_count(&self) -> usize {
        match self {
            Self::Nominal(values) => *values as usize,
            Self::Ordered(values) => values.len() + 1,
        }
    }
}

/// An attribute of all examples.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// What the codes mean.
    pub domain: Domain,
    /// One code per row.
    pub codes: Vec<u32>,
}

impl Attribute {
    /// An attribute of `values` values without an order.
    pub fn nominal(values: u32, codes: Vec<u32>) -> Self {
        Self {
            domain: Domain::Nominal(values),
            codes,
        }
    }

    /// An attribute whose codes are ranks of ascending values; `values.len()` means missing.
    pub fn ordered(values: Vec<f64>, codes: Vec<u32>) -> Self {
        Self {
            domain: Domain::Ordered(values.into()),
            codes,
        }
    }
}

/// Examples with a class each. Equal examples can be one with a weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Examples {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) classes: Vec<u32>,
    pub(crate) class_count: u32,
    pub(crate) weights: Vec<u32>,
}

impl Examples {
    /// Examples of weight 1.
    ///
    /// # Errors
    /// [`ExamplesError`] for columns of different lengths and codes outside their domain.
    pub fn new(
        attributes: Vec<Attribute>,
        classes: Vec<u32>,
        class_count: u32,
    ) -> Result<Self, ExamplesError> {
        let rows = classes.len();
        if u32::try_from(rows).is_err() {
            return Err(ExamplesError::TooMany);
        }
        if classes.iter().any(|class| *class >= class_count) {
            return Err(ExamplesError::Class {
                classes: class_count,
            });
        }
        for (position, attribute) in attributes.iter().enumerate() {
            check(position, attribute, rows)?;
        }
        Ok(Self {
            attributes,
            classes,
            class_count,
            weights: vec![1; rows],
        })
    }

    /// Number of examples, without their weights.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Whether there is no example.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// The weights of all examples together: the number of rows they are of.
    pub(crate) fn weight(&self) -> u64 {
        self.weights.iter().copied().map(u64::from).sum()
    }

    /// Some of the examples, each as often as it is named; equal ones become one with their weights
    /// added up. So many rows of few distinct records are few examples.
    pub(crate) fn collapsed(&self, rows: &[u32]) -> Self {
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

fn check(position: usize, attribute: &Attribute, rows: usize) -> Result<(), ExamplesError> {
    if attribute.codes.len() != rows {
        return Err(ExamplesError::Length {
            attribute: position,
            rows: attribute.codes.len(),
            expected: rows,
        });
    }
    if let Domain::Ordered(values) = &attribute.domain
        && !values.windows(2).all(|pair| pair[0] < pair[1])
    {
        return Err(ExamplesError::Order {
            attribute: position,
        });
    }
    let count = attribute.domain.code_count();
    if attribute.codes.iter().all(|&code| (code as usize) < count) {
        Ok(())
    } else {
        Err(ExamplesError::Code {
            attribute: position,
        })
    }
}
