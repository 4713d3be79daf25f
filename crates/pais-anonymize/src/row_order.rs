//! Random orders and draws, which must not disclose anything.
//!
//! Without a seed they come from the system's random bytes. With a seed they depend on a key, on the job and on
//! every row: equal input gives equal bytes, and any other input gives an unrelated order. So releases of
//! overlapping tables cannot be joined by position, and without the key a guessed seed reveals nothing. Only a
//! run of the command line has no key.

use chacha20::ChaCha20Rng;
use hmac::{Hmac, KeyInit, Mac};
use pais_core::cancellation::Cancellation;
use pais_core::definition::Job;
use pais_core::table::Table;
use rand::rand_core::{Rng, SeedableRng, TryRng};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::error::RunError;

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

/// What the random orders of a run depend on. It has a secret, so it is not printed.
#[derive(Clone)]
pub(crate) enum OrderSource {
    /// Random bytes of the system.
    System,
    /// The job's seed.
    Seeded(SeededOrder),
    /// Nothing: rows keep their order. For figures that are the same in any order.
    AsRead,
}

/// What a seeded order depends on.
#[derive(Clone)]
pub(crate) struct SeededOrder {
    /// The secret of the dataset; `None` on the command line.
    pub(crate) key: Option<Zeroizing<[u8; 32]>>,
    /// The digest of all rows.
    rows: [u8; 32],
    /// The job as JSON.
    parameters: Vec<u8>,
}

impl OrderSource {
    /// The source of a job's orders over a raw table. With a seed it makes one pass over the table.
    ///
    /// # Errors
    /// [`RunError::Internal`] for a job that cannot be written as JSON, and [`RunError::Cancelled`].
    pub(crate) fn new(
        job: &Job,
        table: &Table,
        cancellation: &Cancellation,
    ) -> Result<Self, RunError> {
        if job.seed.is_none() {
            return Ok(Self::System);
        }
        Ok(Self::Seeded(SeededOrder {
            key: None,
            rows: digest(table, cancellation).ok_or(RunError::Cancelled)?,
            parameters: parameters(job)?,
        }))
    }

    /// The source of a job's orders over a table whose rows have this digest.
    ///
    /// # Errors
    /// [`RunError::Internal`] for a job that cannot be written as JSON.
    pub(crate) fn of_digest(job: &Job, rows: [u8; 32]) -> Result<Self, RunError> {
        if job.seed.is_none() {
            return Ok(Self::System);
        }
        Ok(Self::Seeded(SeededOrder {
            key: None,
            rows,
            parameters: parameters(job)?,
        }))
    }

    /// The same source with the secret of the dataset.
    pub(crate) fn with_key(mut self, key: Zeroizing<[u8; 32]>) -> Self {
        if let Self::Seeded(seeded) = &mut self {
            seeded.key = Some(key);
        }
        self
    }

    /// The source of the orders of another job over the same rows, with the same seed.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn with_job(&self, job: &Job) -> Result<Self, RunError> {
        let mut source = self.clone();
        if let Self::Seeded(seeded) = &mut source {
            seeded.parameters = parameters(job)?;
        }
        Ok(source)
    }

    /// The items in the random order of a purpose.
    ///
    /// # Errors
    /// As [`RowDraw::new`].
    pub(crate) fn shuffled(
        &self,
        purpose: Purpose,
        mut items: Vec<u32>,
    ) -> Result<Vec<u32>, RunError> {
        if !matches!(self, Self::AsRead) {
            RowDraw::new(self, purpose)?.shuffle(&mut items);
        }
        Ok(items)
    }
}

fn parameters(job: &Job) -> Result<Vec<u8>, RunError> {
    match &job.written {
        Some(document) => Ok(document.clone().into_bytes()),
        None => serde_json::to_vec(job)
            .map_err(|_| RunError::internal("the job cannot be written as JSON")),
    }
}

/// The SHA-256 of a table: of each column its distinct values and the code of each row. `None` when
/// stopped.
fn digest(table: &Table, cancellation: &Cancellation) -> Option<[u8; 32]> {
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
            if cancellation.is_cancelled() {
                return None;
            }
            bytes.clear();
            bytes.extend(codes.iter().flat_map(|code| code.to_le_bytes()));
            digest.update(&bytes);
        }
    }
    Some(digest.finalize().into())
}

/// A source of random numbers for one purpose: the stream of ChaCha20, which stays the same in every version of
/// a library.
pub struct RowDraw(ChaCha20Rng);

impl RowDraw {
    /// The draws of a run for one purpose.
    ///
    /// # Errors
    /// [`RunError::Internal`] when the system has no random bytes: a fixed order would disclose
    /// rows.
    pub(crate) fn new(source: &OrderSource, purpose: Purpose) -> Result<Self, RunError> {
        let seed = match source {
            OrderSource::Seeded(seeded) => seeded.seed_of(purpose)?,
            OrderSource::System | OrderSource::AsRead => {
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
    /// Lemire's multiplication with rejection (ACM TOMACS 2019), written out, because the functions of a
    /// library may consume the stream in another way in its next version.
    pub fn below(&mut self, count: u64) -> u64 {
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
    pub fn shuffle(&mut self, items: &mut [u32]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

impl SeededOrder {
    /// The seed of a draw: a keyed hash of the job, the purpose and the digest of the rows.
    fn seed_of(&self, purpose: Purpose) -> Result<[u8; 32], RunError> {
        let (purpose, step) = match purpose {
            Purpose::Rows { step } => (b"rows", step),
            Purpose::Groups => (b"grps", 0),
            Purpose::Suppression => (b"supp", 0),
        };
        let key = self.key.clone().unwrap_or_default();
        let mut hash = Hmac::<Sha256>::new_from_slice(key.as_slice())
            .map_err(|_| RunError::internal("the key of the order of rows has a wrong length"))?;
        hash.update(b"pais: order of released rows");
        hash.update(purpose);
        hash.update(&step.to_le_bytes());
        hash.update(&self.rows);
        hash.update(&self.parameters);
        Ok(hash.finalize().into_bytes().into())
    }
}

#[cfg(test)]
mod tests;
