//! Random orders and draws, which must not disclose anything.
//!
//! Without a seed they come from the system's random bytes. With one they depend on a key, on the
//! job and on every row, so that equal input gives equal bytes, and any other input an unrelated
//! order: releases of overlapping tables cannot be joined by position, and without the key a
//! guessed seed restores nothing. Only a run of the command line has no key.

use std::sync::Arc;

use chacha20::ChaCha20Rng;
use hmac::{Hmac, KeyInit, Mac};
use pais_core::definition::JobDefinition;
use pais_core::table::Table;
use rand::rand_core::{Rng, SeedableRng, TryRng};
use sha2::{Digest, Sha256};

use crate::error::RunError;
use crate::prepared::PreparedTable;
use crate::step::StepRecord;

/// What is drawn. Draws for different purposes are unrelated, even with equal seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The order of the released rows after a step; 0 for a method without steps.
    Rows {
        /// The step.
        step: u32,
    },
    /// The numbers of the groups of an anatomized release.
    Groups,
    /// The rows that are suppressed in the topmost table.
    Suppression,
}

/// What a seeded order depends on beside the job.
#[derive(Clone, Debug, Default)]
pub(crate) struct OrderSource {
    /// The secret of the dataset; `None` on the command line.
    pub(crate) key: Option<[u8; 32]>,
    /// The digest of all rows, where the job has a seed.
    rows: Option<Arc<[u8; 32]>>,
}

impl OrderSource {
    /// The source of a job's orders over a raw table. With a seed it makes one pass over the table.
    pub(crate) fn new(job: &JobDefinition, table: &Table) -> Self {
        Self {
            key: None,
            rows: job.seed.map(|_| Arc::new(digest(table))),
        }
    }
}

/// The SHA-256 of a table: of each column its distinct values and the code of each row.
fn digest(table: &Table) -> [u8; 32] {
    let mut digest = Sha256::new();
    let mut bytes = Vec::new();
    for column in &table.columns {
        digest.update((column.dictionary.len() as u64).to_le_bytes());
        for text in &column.dictionary {
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text.as_bytes());
        }
        digest.update((column.codes.len() as u64).to_le_bytes());
        for codes in column.codes.chunks(1 << 12) {
            bytes.clear();
            bytes.extend(codes.iter().flat_map(|code| code.to_le_bytes()));
            digest.update(&bytes);
        }
    }
    digest.finalize().into()
}

/// A source of random numbers for one purpose: the stream of ChaCha20, which no version of a
/// library changes.
pub(crate) struct RowDraw(ChaCha20Rng);

impl RowDraw {
    /// The draws of a run for one purpose.
    ///
    /// # Errors
    /// [`RunError::Internal`] when the system has no random bytes: a fixed order would disclose
    /// rows.
    pub(crate) fn new(input: &PreparedTable, purpose: Purpose) -> Result<Self, RunError> {
        let seed = match &input.order.rows {
            Some(rows) => keyed(
                &input.job,
                input.order.key.unwrap_or_default(),
                rows,
                purpose,
            )?,
            None => {
                let mut seed = [0; 32];
                rand::rngs::SysRng.try_fill_bytes(&mut seed).map_err(|_| {
                    RunError::internal("the system has no random bytes to order rows by")
                })?;
                seed
            }
        };
        Ok(Self(ChaCha20Rng::from_seed(seed)))
    }

    /// A number below `count`, each with the same probability; 0 where `count` is 0.
    ///
    /// Lemire's multiplication with rejection (ACM TOMACS 2019), written out, because the methods
    /// of a library may consume the stream in another way in its next version.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        let rejected = count.wrapping_neg() % count;
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(count);
            if product as u64 >= rejected {
                return (product >> 64) as u64;
            }
        }
    }

    /// Puts the items into a random order (Fisher and Yates).
    pub(crate) fn shuffle(&mut self, items: &mut [u32]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

/// The seed of a draw: a keyed hash of the job, the purpose and the digest of the rows.
fn keyed(
    job: &JobDefinition,
    key: [u8; 32],
    rows: &[u8; 32],
    purpose: Purpose,
) -> Result<[u8; 32], RunError> {
    // The rows are in the digest, and the dataset is in the key.
    let parameters = JobDefinition {
        dataset_id: None,
        submissions: None,
        release: None,
        ..job.clone()
    };
    let parameters = serde_json::to_vec(&parameters).map_err(RunError::internal)?;
    let (purpose, step) = match purpose {
        Purpose::Rows { step } => (b"rows", step),
        Purpose::Groups => (b"grps", 0),
        Purpose::Suppression => (b"supp", 0),
    };
    let mut hash = Hmac::<Sha256>::new_from_slice(&key).map_err(RunError::internal)?;
    hash.update(b"pais: order of released rows");
    hash.update(purpose);
    hash.update(&step.to_le_bytes());
    hash.update(rows);
    hash.update(&parameters);
    Ok(hash.finalize().into_bytes().into())
}

/// The raw rows of a release in the order in which it has them: all that no step up to `step`
/// suppressed, shuffled.
///
/// # Errors
/// As [`RowDraw::new`].
pub(crate) fn released_rows(
    input: &PreparedTable,
    steps: &[StepRecord],
    step: u32,
) -> Result<Vec<u32>, RunError> {
    let mut kept = vec![true; input.table.rows];
    for record in steps.iter().filter(|record| record.item.step <= step) {
        for &row in &record.suppressed {
            kept[row as usize] = false;
        }
    }
    let rows = (0..input.table.rows as u32).filter(|&row| kept[row as usize]);
    shuffled(input, Purpose::Rows { step }, rows.collect())
}

/// The items in the random order of a purpose.
///
/// # Errors
/// As [`RowDraw::new`].
pub(crate) fn shuffled(
    input: &PreparedTable,
    purpose: Purpose,
    mut items: Vec<u32>,
) -> Result<Vec<u32>, RunError> {
    RowDraw::new(input, purpose)?.shuffle(&mut items);
    Ok(items)
}

#[cfg(test)]
mod tests;
