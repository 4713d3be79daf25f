//! Submissions: rows are stored completely or not at all.

use std::sync::Arc;

use tokio::io::AsyncRead;

use crate::roles::Caller;
use crate::store::datasets::StoredDataset;
use crate::store::idempotency::{IdempotentAnswer, Reservation};
use crate::store::seal::DataKey;
use crate::store::submissions::{Submission, SubmissionResult, SubmissionTotals, SubmissionWriter};
use crate::worker::load_rows;

use super::idempotency::{KeyedRequest, RequestKey, abandon, key_in_use};
use super::ingest::body;
use super::ingest::pipeline::{IngestSettings, ingest};
use super::table_format::TableFormat;
use super::{Service, ServiceError};

/// Rows that are sent to a dataset.
pub struct SubmissionRequest<'a> {
    /// The dataset, from [`Service::load_dataset`].
    pub dataset: &'a StoredDataset,
    /// The format of the decoded body.
    pub format: TableFormat,
    /// The idempotency key, if the request has one.
    pub key: Option<RequestKey>,
    /// The decoded body. Its errors are those of [`body::BodyError`].
    pub body: &'a mut (dyn AsyncRead + Send + Unpin),
}

impl Service {
    /// Stores the rows of a submission. `answer` writes the answer, which is stored under the key
    /// of the request. A repeated request gets the stored answer. Waits while
    /// [`super::ServiceLimits::concurrent_uploads`] other uploads are read.
    ///
    /// # Errors
    /// `storage_full`; a body that cannot be read to its end, has invalid cells or has no rows; an idempotency key
    /// that is in use or was used with another body; `unauthenticated` if the caller's token has
    /// expired or was revoked meanwhile; when the database fails.
    pub async fn create_submission(
        &self,
        caller: Caller,
        request: SubmissionRequest<'_>,
        answer: impl FnOnce(&Submission) -> Result<IdempotentAnswer, serde_json::Error>,
    ) -> Result<IdempotentAnswer, ServiceError> {
        let SubmissionRequest {
            dataset,
            format,
            key,
            body,
        } = request;
        self.storage.check()?;
        let limit = self.limits.upload_bytes;
        let permit = self.uploads.acquire().await;
        let _permit = permit.map_err(|_| ServiceError::stopping())?;
        let reservation = match self.reserve(caller, key.as_ref()).await? {
            KeyedRequest::New(reservation) => reservation,
            KeyedRequest::Repeated(stored) => {
                let digest = body::digest(body, limit).await?;
                return Ok(stored.replay(&digest.sha256)?);
            }
        };
        let settings = IngestSettings {
            format,
            key: load_rows::open_key(&self.keys, dataset)?,
            storage: Arc::clone(&self.storage),
            limit,
        };
        match ingest(&self.store, dataset, settings, body).await {
            Ok((writer, totals)) => {
                let key = load_rows::open_key(&self.keys, dataset)?;
                commit(caller, &key, writer, &totals, reservation, answer).await
            }
            Err(error) => {
                abandon(reservation).await?;
                Err(error)
            }
        }
    }
}

async fn commit(
    caller: Caller,
    key: &DataKey,
    writer: SubmissionWriter,
    totals: &SubmissionTotals,
    reservation: Option<Reservation>,
    answer: impl FnOnce(&Submission) -> Result<IdempotentAnswer, serde_json::Error>,
) -> Result<IdempotentAnswer, ServiceError> {
    let result = writer.commit(key, caller, totals, reservation, answer);
    match result.await? {
        SubmissionResult::Stored(answer) => {
            metrics::counter!("pais_submitted_rows_total").increment(totals.rows);
            Ok(answer)
        }
        SubmissionResult::NoDataset => Err(ServiceError::not_found()),
        SubmissionResult::NoToken => Err(ServiceError::unauthenticated()),
        SubmissionResult::KeyTaken => Err(key_in_use()),
    }
}
