//! Drafts of datasets: a definition is proposed from rows, and nothing is stored.

use std::sync::Arc;

use pais_core::draft::{self, Draft, DraftFailure, DraftOptions};
use pais_core::read::{ReadFailure, ReadLimits, TextParameters};
use tokio::io::AsyncRead;

use crate::jobs::{WorkError, on_thread};
use crate::memory::MemoryUse;
use crate::problem::{Code, Problem};
use crate::roles::Caller;
use crate::storage::Storage;

use super::ingest::body::{FrameReader, frames, pump};
use super::ingest::reader;
use super::submissions::UPLOAD_BYTES;
use super::table_format::ReceivedFormat;
use super::{ApiError, App, text};

/// Rows from which a dataset is proposed.
pub struct DraftRequest<'a> {
    /// The name of the proposed dataset.
    pub name: String,
    /// The format of the decoded body.
    pub format: ReceivedFormat,
    /// What the client says of its text.
    pub text: TextParameters,
    /// The decoded body. Its errors are those of [`super::ingest::body::BodyError`].
    pub body: &'a mut (dyn AsyncRead + Send + Unpin),
}

impl App {
    /// Proposes a dataset. The body is read up to a bounded number of rows. Waits for a place and
    /// for memory like a submission.
    ///
    /// # Errors
    /// `busy` if neither is free in time; a name or a body that a dataset cannot have.
    pub async fn draft_dataset(
        &self,
        caller: Caller,
        request: DraftRequest<'_>,
    ) -> Result<Draft, ApiError> {
        let DraftRequest {
            name,
            format,
            text: given,
            body,
        } = request;
        let name = text::name(&name)?;
        let _place = self.uploads.acquire(caller.organization).await?;
        // A small budget admits one upload at a time.
        let needed = UPLOAD_BYTES.min(self.memory.limit(MemoryUse::Requests));
        let _memory = self.memory.reserve(MemoryUse::Requests, needed).await?;
        let limit = self.limits.upload_bytes;
        let limits = ReadLimits {
            cell_bytes: self.limits.cell_bytes,
            total_bytes: limit,
        };
        let columns = self.limits.columns;
        let storage = Arc::clone(&self.storage);
        let (sender, source) = frames();
        let reading = on_thread(move || {
            let options = DraftOptions {
                name: &name,
                limits,
                columns,
            };
            read(format, given, options, source, &storage)
        });
        let pumping = pump(body, limit, Some(sender));
        let (pumped, draft) = tokio::join!(pumping, reading);
        // What is wrong with the body is the cause of what is wrong with its rows.
        pumped?;
        Ok(draft?)
    }
}

fn read(
    format: ReceivedFormat,
    given: TextParameters,
    options: DraftOptions<'_>,
    source: FrameReader,
    storage: &Storage,
) -> Result<Draft, WorkError> {
    let draft = match format {
        ReceivedFormat::Text(_) => draft::csv(source, given, options),
        ReceivedFormat::Ndjson => draft::ndjson(source, options),
        ReceivedFormat::Parquet => match reader::copy_to_file(source, &storage.spool) {
            Ok(file) => draft::parquet(file, options),
            Err(ReadFailure::Refused(error)) => Err(DraftFailure::Refused(error)),
            Err(ReadFailure::Source(error)) => Err(DraftFailure::Source(error)),
            Err(ReadFailure::Sink(error)) => return Err(error),
        },
    };
    draft.map_err(|failure| match failure {
        DraftFailure::Refused(error) => error.into(),
        // The error of the body is the one reported.
        DraftFailure::Source(_) => {
            let detail = "the body could not be read to its end";
            Problem::new(Code::MalformedBody, detail).into()
        }
    })
}
