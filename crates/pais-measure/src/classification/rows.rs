//! The rows that classifiers learn from and are tested on.
//!
//! Rows are put in the order of a hash of their contents, and divided at random by their place in this order.
//! So the division of a release depends on its rows and not on their order, and the same rows are tested as
//! released and as raw.

use pais_core::definition::ColumnRole;
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::codes::{Codes, RowCodes};
use pais_core::with_codes;
use rayon::prelude::*;

use super::counts::growth_bytes;
use super::examples::{Examples, MOST_CLASSES, RowExamples};
use super::features::{Encoding, Feature, RowAttribute};
use super::holdout::{Thirds, two_thirds};
use crate::sample::SAMPLED_ROWS;

/// Seed of the first division. It is public, as that of the queries.
const SEED: u64 = 2009;

/// Bytes for each row that classifiers are measured with: two hashes, the row's place in their
/// order, and its number twice.
const CLASSIFIED_ROW_BYTES: u64 = 2 * 8 + 24 + 2 * 4;

/// Divisions of at most [`FEW_ROWS`] released rows, and of more.
const REPEATS: u32 = 5;
const REPEATS_OF_MANY: u32 = 3;
const FEW_ROWS: u64 = 60_000;

/// Maximum number of trees that are learnt at a time: for each division one on the release and two on raw rows.
const MOST_TREES: u64 = 3 * REPEATS as u64;

/// Number of divisions of this many released rows.
pub(super) fn repeats(rows: u64) -> u32 {
    if rows <= FEW_ROWS {
        REPEATS
    } else {
        REPEATS_OF_MANY
    }
}

/// Copies of the rows that are learnt from and tested on as examples: as released, raw, and those without
/// quasi-identifiers.
const EXAMPLE_COPIES: u64 = 3;

/// Bytes of an example in addition to its codes: its hash and key, its class, its row twice, and the unused
/// rest of the last block of its places.
const EXAMPLE_BYTES: u64 = 8 + 16 + 4 + 2 * 4 + 16;

/// Maximum number of bytes of a code, by rows and by examples.
const CODE_BYTES: u64 = 2 * 4;

/// Bytes that measuring classifiers needs at most; 0 without a class column. A column of numbers or dates
/// counts twice, because intervals that overlap are two attributes.
pub fn classification_bytes(schema: &Schema, rows: u64) -> u64 {
    let mut columns = schema.stored();
    if !columns.any(|column| column.role() == ColumnRole::Class) {
        return 0;
    }
    let has_ends = |column: &SchemaColumn| u64::from(column.kind().scale().is_some());
    let attributes = schema
        .stored()
        .map(|column| 1 + has_ends(column))
        .sum::<u64>();
    // At most as many suppressed rows as released ones.
    let learnt = rows.min(2 * SAMPLED_ROWS as u64);
    let examples = learnt.saturating_mul(attributes * CODE_BYTES + EXAMPLE_BYTES);
    let trees = MOST_TREES.min(rayon::current_num_threads() as u64);
    rows.saturating_mul(CLASSIFIED_ROW_BYTES)
        .saturating_add(examples.saturating_mul(EXAMPLE_COPIES))
        .saturating_add(trees.saturating_mul(growth_bytes(learnt, attributes)))
}

/// Rows as examples: attributes and classes by code.
pub(super) struct ClassifiedRows<'a> {
    pub(super) features: Vec<Feature<'a>>,
    /// The cell of the class of each row.
    pub(super) class_cells: Codes<'a>,
    pub(super) classes: Encoding,
}

impl ClassifiedRows<'_> {
    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.class_cells.rows()
    }

    /// A number for each of these rows that equal rows have in common.
    pub(super) fn hashes(&self, rows: &[u32]) -> Vec<u64> {
        let mut hashes: Vec<u64> = vec![0; rows.len()];
        let mut mix = |cells: &Codes<'_>, encoding: &Encoding| {
            let hashed = hashes.par_iter_mut().zip(rows).with_min_len(1 << 14);
            with_codes!(cells, cells => hashed.for_each(|(hash, &row)| {
                let code = encoding.code(cells.at(row as usize));
                let mixed = (*hash ^ u64::from(code)).wrapping_add(1);
                let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                *hash = mixed ^ (mixed >> 29);
            }));
        };
        for feature in &self.features {
            for encoding in &feature.encodings {
                mix(&feature.cells, encoding);
            }
        }
        mix(&self.class_cells, &self.classes);
        hashes
    }

    /// Some rows as examples, with the features that are wanted. Examples are in the order of the attribute
    /// with most codes and of their classes: a tree need not sort them by it.
    pub(super) fn examples(&self, rows: &[u32], is_wanted: impl Fn(usize) -> bool) -> RowExamples {
        let wanted = self.features.iter().enumerate();
        let wanted = wanted.filter(|(position, _)| is_wanted(*position));
        let attributes = wanted.flat_map(|(_, feature)| feature.attributes());
        let attributes: Vec<RowAttribute<'_>> = attributes.collect();
        let mut hashes: Vec<u64> = vec![0; rows.len()];
        // The codes of a column are read once, because the rows are scattered over it.
        let columns = attributes.iter().map(|attribute| {
            with_codes!(attribute.cells, cells => {
                let codes = hashes.iter_mut().zip(rows).map(|(hash, &row)| {
                    let code = attribute.encoding.code(cells.at(row as usize));
                    // The finalizer of MurmurHash3, so that small codes differ in all bits.
                    let mixed = *hash ^ (u64::from(code) + 1);
                    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
                    *hash = mixed ^ (mixed >> 33);
                    code
                });
                codes.collect()
            })
        });
        let columns: Vec<Vec<u32>> = columns.collect();
        let widest =
            (0..attributes.len()).max_by_key(|&at| attributes[at].encoding.domain.code_count());
        let places = hashes.iter().zip(rows).zip(0u32..);
        let keys = places.map(|((&hash, &row), place)| {
            let widest = widest.map_or(0, |at| columns[at][place as usize]);
            let class = self.classes.code(self.class_cells.at(row as usize));
            ExampleKey::new(widest, class, hash, place)
        });
        let mut keys: Vec<ExampleKey> = keys.collect();
        keys.par_sort_unstable();
        let are_equal = |one: u32, other: u32| {
            let mut columns = columns.iter();
            columns.all(|codes| codes[one as usize] == codes[other as usize])
        };
        let mut kept: Vec<u32> = Vec::with_capacity(rows.len());
        let mut of_classes = Vec::with_capacity(rows.len());
        let mut of_row = vec![0; rows.len()];
        let mut last = None;
        for key in keys {
            let is_equal = last == Some(key.packed)
                && kept.last().is_some_and(|&kept| are_equal(kept, key.place));
            if !is_equal {
                kept.push(key.place);
                of_classes.push(key.class());
            }
            last = Some(key.packed);
            of_row[key.place as usize] = kept.len() as u32 - 1;
        }
        let columns = attributes.iter().zip(&columns).map(|(attribute, codes)| {
            let codes = kept.iter().map(|&place| codes[place as usize]);
            (attribute.encoding.domain.clone(), codes)
        });
        let distinct = Examples::new(columns, of_classes, self.classes.value_count());
        RowExamples { distinct, of_row }
    }
}

/// The place of a row in the order of examples.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ExampleKey {
    /// The code of the attribute with most codes, the class, which has eight bits, and a part of what equal codes have
    /// in common.
    packed: u64,
    /// The place of the row.
    place: u32,
}

impl ExampleKey {
    fn new(widest: u32, class: u32, hash: u64, place: u32) -> Self {
        const { assert!(MOST_CLASSES <= 1 << u8::BITS, "a class has eight bits") };
        let packed = u64::from(widest) << 32 | u64::from(class) << 24 | hash >> 40;
        Self { packed, place }
    }

    fn class(self) -> u32 {
        (self.packed >> 24) as u32 % (1 << u8::BITS)
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

/// The places to learn from and to test on of a division: two thirds and the rest of the first `released`
/// places, and the same for the other places. The first places of both are those below `released`.
pub(super) struct Division {
    pub(super) released: Thirds,
    pub(super) all: Thirds,
}

impl Division {
    pub(super) fn new(released: usize, suppressed: usize, repeat: u32) -> Self {
        let seed = SEED + u64::from(repeat);
        let of_released = two_thirds(released as u32, seed);
        let more = two_thirds(suppressed as u32, seed);
        let joined = |first: &[u32], more: Vec<u32>| {
            let more = more.into_iter().map(|place| place + released as u32);
            first.iter().copied().chain(more).collect()
        };
        Self {
            all: Thirds {
                learning: joined(&of_released.learning, more.learning),
                testing: joined(&of_released.testing, more.testing),
            },
            released: of_released,
        }
    }
}
