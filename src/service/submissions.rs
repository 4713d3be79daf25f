//! Submissions: rows are stored completely or not at all.

use std::sync::Arc;

use pais_core::definition::{DatasetId, SubmissionId};
use pais_core::read::{IdentifierRepeats, ReadLimits};
use tokio::io::AsyncRead;

use crate::db::datasets::StoredDataset;
use crate::db::idempotency::IdempotentAnswer;
use crate::db::submission_deletion;
use crate::db::submissions::{Duplicates, Submission, SubmissionResult, SubmissionTotals};
use crate::jobs::load_rows;
use crate::memory::MemoryUse;
use crate::problem::Code;
use crate::roles::Caller;

use super::idempotency::{KeyedRequest, RequestKey, abandon, key_in_use};
use super::ingest::body;
use super::ingest::pipeline::{IngestSettings, ingest};
use super::table_format::ReceivedFormat;
use super::{ApiError, App};
use crate::api::legal_holds::deleted;

/// Memory of an upload, in bytes. The frames and the decoder need 10 MiB, most of it the window of
/// zstd. A chunk has 16 MiB of text while it is built, and as much again in each of its later forms:
/// encoded, compressed, sealed and waiting, and on its way to the database.
pub(super) const UPLOAD_BYTES: u64 = 96 << 20;

/// Memory for the digests of identifiers, in bytes: their hash table while it grows for the last time.
const IDENTIFIER_BYTES: u64 = 28 << 20;

/// Rows that are sent to a dataset.
pub struct SubmissionRequest<'a> {
    /// The dataset, from [`App::load_dataset`].
    pub dataset: &'a StoredDataset,
    /// The format of the decoded body.
    pub format: ReceivedFormat,
    /// Whether rows that the dataset has already are stored again.
    pub duplicates: Duplicates,
    /// The idempotency key, if the request has one.
    pub key: Option<RequestKey>,
    /// The decoded body. Its errors are those of [`body::BodyError`].
    pub body: &'a mut (dyn AsyncRead + Send + Unpin),
}

impl App {
    /// Deletes a submission with its rows. Queued and running jobs that read it are cancelled;
    /// releases stay.
    ///
    /// # Errors
    /// `not_found`; when the database or the key fails.
    pub async fn delete_submission(
        &self,
        caller: Caller,
        dataset: DatasetId,
        id: SubmissionId,
    ) -> Result<(), ApiError> {
        deleted(submission_deletion::delete(&self.db, caller, dataset, id).await?)?;
        self.wake.notify_waiters();
        Ok(())
    }

    /// Stores the rows of a submission. `answer` writes the answer, which is stored under the key
    /// of the request. A repeated request gets the stored answer. Waits for a place and for memory;
    /// so the first part of the body should have been received.
    ///
    /// # Errors
    /// `busy` if neither is free in time; a body that cannot be read to its end, has invalid cells or has no rows; an idempotency key
    /// that is in use or was used with another body; `duplicate_submission` for rows that the dataset
    /// has already; when the database fails.
    pub async fn create_submission(
        &self,
        caller: Caller,
        request: SubmissionRequest<'_>,
        answer: impl FnOnce(&Submission) -> Result<IdempotentAnswer, serde_json::Error>,
    ) -> Result<IdempotentAnswer, ApiError> {
        let SubmissionRequest {
            dataset,
            format,
            duplicates,
            key,
            body,
        } = request;
        self.storage.check()?;
        let limit = self.limits.upload_bytes;
        let _place = self.uploads.acquire(caller.organization).await?;
        // A small budget admits one upload at a time.
        let needed = match IdentifierRepeats::new(&dataset.schema) {
            Some(_) => UPLOAD_BYTES + IDENTIFIER_BYTES,
            None => UPLOAD_BYTES,
        };
        let needed = needed.min(self.memory.limit(MemoryUse::Requests));
        let _memory = self.memory.reserve(MemoryUse::Requests, needed).await?;
        let reservation = match self.reserve(caller, key.as_ref()).await? {
            KeyedRequest::New(reservation) => reservation,
            KeyedRequest::Repeated(stored) => {
                let digest = body::digest(body, limit).await?;
                return Ok(stored.replay(&digest.sha256)?);
            }
        };
        let space = self
            .limits
            .quotas
            .check_space(&self.db, caller.organization);
        if let Err(exceeded) = space.await? {
            abandon(reservation).await?;
            return Err(exceeded.into());
        }
        let settings = IngestSettings {
            format,
            key: load_rows::open_key(&self.keys, dataset)?,
            storage: Arc::clone(&self.storage),
            limits: ReadLimits {
                cell_bytes: self.limits.cell_bytes,
                total_bytes: limit,
            },
        };
        match ingest(&self.db, dataset, settings, body).await {
            Ok((writer, totals)) => {
                let key = load_rows::open_key(&self.keys, dataset)?;
                let quotas = &self.limits.quotas;
                let commit = writer.commit(
                    &key,
                    caller,
                    (&totals, duplicates),
                    quotas,
                    reservation,
                    answer,
                );
                committed(&totals, commit.await?)
            }
            Err(error) => {
                abandon(reservation).await?;
                Err(error)
            }
        }
    }
}

fn committed(
    totals: &SubmissionTotals,
    result: SubmissionResult,
) -> Result<IdempotentAnswer, ApiError> {
    match result {
        SubmissionResult::Stored(answer) => {
            metrics::counter!("pais_submitted_rows_total").increment(totals.rows);
            Ok(answer)
        }
        SubmissionResult::TokenEnded => Err(ApiError::unauthenticated()),
        SubmissionResult::NoDataset => Err(ApiError::not_found()),
        SubmissionResult::KeyTaken => Err(key_in_use()),
        SubmissionResult::Refused(exceeded) => Err(exceeded.into()),
        SubmissionResult::Duplicate(earlier) => Err(ApiError::new(
            Code::DuplicateSubmission,
            format!(
                "the rows are those of submission {earlier}, in whatever order, and nothing was \
                 stored; if they are further rows, send them with `?allow_duplicate=true`"
            ),
        )),
    }
}
