//! The rows that classifiers learn from and are tested on.
//!
//! Rows are put in the order of a hash of what they contain, and divided at random by their place
//! in it. So the division of a release depends on its rows and not on their order, and the same
//! rows are tested as released and as they were.

use pais_core::definition::ColumnRole;
use pais_core::schema::Schema;
use rayon::prelude::*;

use super::counts::growth_bytes;
use super::examples::{Attribute, Examples};
use super::features::{Encoding, Feature};
use super::holdout::two_thirds;

/// Most released rows that are learnt from and tested on, and most suppressed ones beside them: somewhat
/// more than the paper's experiments have.
pub(super) const CLASSIFIED_ROWS: usize = 50_000;

/// Seed of the first division. It is public, as that of the queries.
const SEED: u64 = 2009;

/// Bytes for each row that classifiers are measured with: two hashes, the row's place in their
/// order, and its number twice.
const CLASSIFIED_ROW_BYTES: u64 = 2 * 8 + 24 + 2 * 4;

/// Trees that are learnt at a time.
const TREES: u64 = 6;

/// Copies of the codes of the rows that are learnt from and tested on: as released, raw, and those
/// without quasi-identifiers, each by rows and as distinct examples.
const CLASSIFIED_COPIES: u64 = 2 * 3;

/// Bytes of a code in a copy: by itself, and beside the others of its row.
const CODE_BYTES: u64 = 4 + 1;

/// Bytes that measuring classifiers needs at most; 0 without a class column. Each column counts
/// twice, because intervals that overlap are two attributes.
pub fn classification_bytes(schema: &Schema, rows: u64) -> u64 {
    let mut columns = schema.stored();
    if !columns.any(|column| column.role() == ColumnRole::Class) {
        return 0;
    }
    let attributes = 2 * schema.stored().count() as u64;
    let learnt = rows.min(2 * CLASSIFIED_ROWS as u64);
    let examples = learnt.saturating_mul(attributes * CODE_BYTES * CLASSIFIED_COPIES);
    rows.saturating_mul(CLASSIFIED_ROW_BYTES)
        .saturating_add(examples)
        .saturating_add(TREES * growth_bytes(learnt, attributes))
}

/// Rows as examples: attributes and classes by code.
pub(super) struct ClassifiedRows<'a> {
    pub(super) features: Vec<Feature<'a>>,
    /// The cell of the class of each row.
    pub(super) class_cells: &'a [u32],
    pub(super) classes: Encoding,
}

impl ClassifiedRows<'_> {
    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.class_cells.len()
    }

    /// A number for each of these rows that equal rows have in common.
    pub(super) fn hashes(&self, rows: &[u32]) -> Vec<u64> {
        let mut hashes: Vec<u64> = vec![0; rows.len()];
        let mut mix = |cells: &[u32], encoding: &Encoding| {
            let hashed = hashes.par_iter_mut().zip(rows).with_min_len(1 << 14);
            hashed.for_each(|(hash, &row)| {
                let code = encoding.code(cells[row as usize]);
                let mixed = (*hash ^ u64::from(code)).wrapping_add(1);
                let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                *hash = mixed ^ (mixed >> 29);
            });
        };
        for feature in &self.features {
            for encoding in &feature.encodings {
                mix(feature.cells, encoding);
            }
        }
        mix(self.class_cells, &self.classes);
        hashes
    }

    /// Some rows as examples, with the features that are wanted.
    pub(super) fn examples(&self, rows: &[u32], is_wanted: impl Fn(usize) -> bool) -> Examples {
        let codes = |cells: &[u32], encoding: &Encoding| {
            let code = |&row: &u32| encoding.code(cells[row as usize]);
            rows.iter().map(code).collect::<Vec<u32>>()
        };
        let wanted = self.features.iter().enumerate();
        let wanted = wanted.filter(|(position, _)| is_wanted(*position));
        let attributes = wanted.flat_map(|(_, feature)| {
            let attribute = |encoding: &Encoding| Attribute {
                domain: encoding.domain.clone(),
                codes: codes(feature.cells, encoding),
            };
            feature.encodings.iter().map(attribute).collect::<Vec<_>>()
        });
        let classes = codes(self.class_cells, &self.classes);
        Examples::new(attributes.collect(), classes, self.classes.value_count())
    }
}

/// The place of a row in the order in which rows are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowKey {
    /// What equal rows have in common.
    pub(super) hash: u64,
    /// Orders rows with equal hashes.
    pub(super) tie: u64,
    pub(super) row: u32,
}

/// The rows in the order of their keys, at most `most` of them at equal distances.
pub(super) fn drawn(mut keys: Vec<RowKey>, most: usize) -> Vec<u32> {
    keys.par_sort_unstable();
    let count = keys.len();
    let drawn = most.min(count);
    let places = (0..drawn).map(|at| at * count / drawn);
    places.map(|place| keys[place].row).collect()
}

/// The places to learn from and to test on of a division: two thirds and the rest of the first
/// `released` places, and the same of the others. The first places of both are those below
/// `released`.
pub(super) struct Division {
    pub(super) released: (Vec<u32>, Vec<u32>),
    pub(super) all: (Vec<u32>, Vec<u32>),
}

impl Division {
    pub(super) fn new(released: usize, suppressed: usize, repeat: u32) -> Self {
        let seed = SEED + u64::from(repeat);
        let (learning, testing) = two_thirds(released as u32, seed);
        let (more_learning, more_testing) = two_thirds(suppressed as u32, seed);
        let joined = |first: &[u32], more: Vec<u32>| {
            let more = more.into_iter().map(|place| place + released as u32);
            first.iter().copied().chain(more).collect()
        };
        Self {
            all: (
                joined(&learning, more_learning),
                joined(&testing, more_testing),
            ),
            released: (learning, testing),
        }
    }
}
