//! The body of a download, which ends early when its caller may no longer read the release.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::try_unfold;
use tokio::time::Instant;

use crate::ids::ReleaseId;
use crate::roles::Caller;
use crate::service::Service;

/// Time between two checks. A client that reads slowly gets what is in the buffers of the network
/// after the last one, and no more.
const INTERVAL: Duration = Duration::from_secs(1);

/// Why a download ended early. The client sees a body that is shorter than announced.
#[derive(Debug, thiserror::Error)]
enum DownloadError {
    /// The token was revoked or has expired, or the grant has ended.
    #[error("the release can no longer be read with this token")]
    Revoked,
    /// Whether it can still be read is not known.
    #[error("the right to read the release could not be checked")]
    Unchecked,
    /// The file could not be read.
    #[error("the table could not be read")]
    Body(#[source] axum::Error),
}

/// A part of a release on its way to a client.
struct Download {
    service: Service,
    caller: Caller,
    release: ReleaseId,
    frames: BodyDataStream,
    checked: Instant,
}

/// The same body, which ends with an error soon after `caller` has lost the right to read the release.
pub(in crate::http) fn checked(
    service: &Service,
    caller: Caller,
    release: ReleaseId,
    body: Body,
) -> Body {
    let download = Download {
        service: service.clone(),
        caller,
        release,
        frames: body.into_data_stream(),
        checked: Instant::now(),
    };
    Body::from_stream(try_unfold(download, Download::next))
}

impl Download {
    /// The next frame. It is not sent before the right to read is known to be no older than
    /// [`INTERVAL`].
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, DownloadError> {
        if self.checked.elapsed() >= INTERVAL {
            self.check().await?;
        }
        match self.frames.next().await {
            None => Ok(None),
            Some(Ok(frame)) => Ok(Some((frame, self))),
            Some(Err(error)) => Err(DownloadError::Body(error)),
        }
    }

    async fn check(&mut self) -> Result<(), DownloadError> {
        match self.service.may_read(self.caller, self.release).await {
            Ok(true) => {
                self.checked = Instant::now();
                Ok(())
            }
            Ok(false) => {
                tracing::info!(
                    release = %self.release,
                    "a download ended, because its token or grant did"
                );
                Err(DownloadError::Revoked)
            }
            Err(error) => {
                tracing::warn!(
                    release = %self.release,
                    error = &error as &dyn std::error::Error,
                    "a download ended, because its token could not be checked"
                );
                Err(DownloadError::Unchecked)
            }
        }
    }
}
