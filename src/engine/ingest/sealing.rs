//! Seals the chunks of a submission: the second stage of an upload, on a thread of its own.

use pais_core::definition::SubmissionId;
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::similar_ids::SimilarIds;
use pais_core::table::{Table, ValueCounters};
use pais_io::{RowDigest, chunk};
use tokio::sync::mpsc;

use crate::db::StoreError;
use crate::db::seal::{DataKey, SealedItem, SubmissionKey};
use crate::db::submissions::SealedChunk;
use crate::engine::WorkError;
use crate::problem::{Code, Problem};

/// Seals chunks in the order of the file, and gathers the statistics of their rows.
pub(super) struct Sealing<'a> {
    /// Of the dataset, for digests.
    key: &'a DataKey,
    /// Of the submission, for its rows.
    rows_key: &'a SubmissionKey,
    schema: &'a Schema,
    submission: SubmissionId,
    out: &'a mpsc::Sender<SealedChunk>,
    digest: RowDigest,
    /// The distinct and the missing values of each column.
    pub(super) values: ValueCounters,
    /// The memory of the distinct values of each chunk, in bytes.
    pub(super) text_bytes: u64,
    similar_subjects: SimilarIds,
    index: u32,
}

impl<'a> Sealing<'a> {
    /// Seals for `submission` with its key, and passes the chunks on to `out`. `key` is that of the
    /// dataset.
    pub(super) fn new(
        key: &'a DataKey,
        rows_key: &'a SubmissionKey,
        schema: &'a Schema,
        submission: SubmissionId,
        out: &'a mpsc::Sender<SealedChunk>,
    ) -> Self {
        Self {
            key,
            rows_key,
            schema,
            submission,
            out,
            digest: RowDigest::new(&key.cells_key(), schema),
            values: ValueCounters::default(),
            text_bytes: 0,
            similar_subjects: SimilarIds::default(),
            index: 0,
        }
    }

    /// Seals the next chunk. Waits while the database is behind.
    ///
    /// # Errors
    /// When the chunk cannot be encoded or sealed, or the database takes no more.
    pub(super) fn push(&mut self, mut table: Table) -> Result<(), WorkError> {
        let subject = self.schema.subject();
        if let Some(subjects) = subject.and_then(|it| table.columns.get_mut(it)) {
            for id in &mut subjects.dictionary {
                self.similar_subjects.push(id);
                *id = self.key.subject(id).into();
            }
        }
        self.digest.push(&table);
        self.values.push(self.schema.stored().zip(&table.columns));
        self.text_bytes += table.text_bytes();
        let encoded =
            chunk::encode(&table).map_err(|_| StoreError::Damaged("a submission's chunk"))?;
        let (submission, index) = (self.submission, self.index);
        let place = SealedItem::Chunk { submission, index };
        let sealed = self.rows_key.seal(place, &encoded)?;
        let chunk = SealedChunk {
            submission,
            index,
            rows: table.rows as u32,
            sealed,
        };
        self.index += 1;
        // The receiver is dropped only after an error of the database, which is the one reported.
        self.out.blocking_send(chunk).map_err(|_| not_stored())
    }

    /// The subject column, if the file may spell the id of one person in two ways.
    pub(super) fn similar_subjects(&self) -> Option<&SchemaColumn> {
        let subject = self.schema.subject()?;
        let column = self.schema.stored().nth(subject);
        column.filter(|_| self.similar_subjects.is_found())
    }

    /// A digest of the rows in any order; `None` if they have no digest.
    pub(super) fn digest(&self) -> Option<[u8; 32]> {
        let digest = self.digest.total();
        digest.map(|(sum, rows)| self.key.rows_digest(sum, rows))
    }
}

/// The error of rows that could not be passed on to the database.
pub(super) fn not_stored() -> WorkError {
    Problem::new(Code::Internal, "the rows could not be stored").into()
}
