//! A decoded body: measured and digested as it streams, and passed on in frames.

use std::io;

use bytes::{Bytes, BytesMut};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

use crate::problem::{Code, Problem};
use crate::storage::object_stores::LocationError;

/// Size of a frame, in bytes.
const FRAME_BYTES: usize = 64 << 10;

/// Number of frames that wait for their reader.
const FRAMES_AHEAD: usize = 8;

/// Logarithm of the largest window of zstd: 8 MiB, as RFC 9659 requires of HTTP.
pub(crate) const ZSTD_WINDOW_LOG: u32 = 23;

/// Why a body could not be read to its end.
///
/// A reader of a body reports one of these as the inner error of its [`io::Error`]. Any other error
/// counts as [`BodyError::Corrupt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    /// The decoded body is larger than the limit, which is in bytes.
    #[error("the decoded body has more than {0} bytes (limits.upload_bytes)")]
    TooLarge(u64),
    /// The body does not decode.
    #[error(
        "the body cannot be decoded; check `Content-Encoding`, that the body is complete, and that \
         the window of zstd has at most {} MiB", (1 << ZSTD_WINDOW_LOG) >> 20
    )]
    Corrupt,
    /// The client disconnected.
    #[error("the body could not be read to its end")]
    Disconnected,
    /// The client sent nothing for too long.
    #[error("the client sent nothing for too long; send the body again")]
    Stalled,
    /// The client took longer than the limit, which is in seconds.
    #[error("the client took more than {0} s to send the body (limits.upload_seconds)")]
    TooLong(u64),
    /// The client was slower than the limit, which is in bytes per second.
    #[error("the client sent less than {0} bytes per second (limits.upload_bytes_per_second)")]
    TooSlow(u64),
    /// Much of a compressed body decodes to nothing.
    #[error(
        "the compressed body is larger than what it decodes to; leave out empty gzip members and \
         skippable zstd frames"
    )]
    Padded,
    /// An object at a location could not be read.
    #[error(transparent)]
    Location(LocationError),
}

impl BodyError {
    /// The error that a reader of a body reports.
    pub(crate) fn of(error: &io::Error) -> Self {
        let Some(inner) = error.get_ref() else {
            return Self::Corrupt;
        };
        let located = inner.downcast_ref().map(|error| Self::Location(*error));
        inner
            .downcast_ref()
            .copied()
            .or(located)
            .unwrap_or(Self::Corrupt)
    }
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        let code = match error {
            BodyError::TooLarge(_) => Code::TooLarge,
            BodyError::Corrupt | BodyError::Disconnected | BodyError::Padded => Code::MalformedBody,
            BodyError::Location(error) => return error.into(),
            BodyError::Stalled | BodyError::TooLong(_) | BodyError::TooSlow(_) => {
                Code::RequestTimeout
            }
        };
        Self::new(code, error.to_string())
    }
}

/// SHA-256 and size of a decoded body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyDigest {
    /// SHA-256.
    pub(crate) sha256: [u8; 32],
    /// Size, in bytes.
    pub(crate) bytes: u64,
}

/// The sending side of the frames of a body.
pub(crate) type FrameSender = mpsc::Sender<io::Result<Bytes>>;

/// Reads a decoded body of at most `limit` bytes to its end, and sends its frames to `out`.
///
/// # Errors
/// The error that ended the body. It is sent to `out` too, so that an incomplete body is never
/// taken for a complete one. If the receiver of the frames is dropped, reading stops and the
/// result is `None`.
pub(crate) async fn pump(
    body: &mut (dyn AsyncRead + Send + Unpin),
    limit: u64,
    out: Option<FrameSender>,
) -> Result<Option<BodyDigest>, BodyError> {
    let result = copy(body, limit, out.as_ref()).await;
    if let (Err(error), Some(out)) = (&result, &out) {
        // If the receiver is dropped, nobody takes the body for complete.
        let _ = out.send(Err(io::Error::other(*error))).await;
    }
    result
}

/// Reads a decoded body of at most `limit` bytes to its end.
///
/// # Errors
/// The error that ended the body.
pub(crate) async fn digest(
    body: &mut (dyn AsyncRead + Send + Unpin),
    limit: u64,
) -> Result<BodyDigest, BodyError> {
    // Without a receiver, only an error stops the reading early.
    let digest = copy(body, limit, None).await?;
    digest.ok_or(BodyError::Disconnected)
}

async fn copy(
    body: &mut (dyn AsyncRead + Send + Unpin),
    limit: u64,
    out: Option<&FrameSender>,
) -> Result<Option<BodyDigest>, BodyError> {
    let mut hasher = Sha256::new();
    let mut bytes = 0u64;
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(FRAME_BYTES);
        let read = body.read_buf(&mut buffer).await;
        let read = read.map_err(|error| BodyError::of(&error))?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        if bytes > limit {
            return Err(BodyError::TooLarge(limit));
        }
        let frame = buffer.split().freeze();
        hasher.update(&frame);
        if let Some(out) = out
            && out.send(Ok(frame)).await.is_err()
        {
            return Ok(None);
        }
    }
    Ok(Some(BodyDigest {
        sha256: hasher.finalize().into(),
        bytes,
    }))
}

/// A channel from [`pump`] to a blocking reader.
pub(crate) fn frames() -> (FrameSender, FrameReader) {
    let (sender, frames) = mpsc::channel(FRAMES_AHEAD);
    let reader = FrameReader {
        frames,
        rest: Bytes::new(),
    };
    (sender, reader)
}

/// The decoded body as a blocking reader.
pub(crate) struct FrameReader {
    frames: mpsc::Receiver<io::Result<Bytes>>,
    rest: Bytes,
}

impl io::Read for FrameReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.frames.blocking_recv() {
                None => return Ok(0),
                Some(frame) => self.rest = frame?,
            }
        }
        let length = buffer.len().min(self.rest.len());
        buffer[..length].copy_from_slice(&self.rest.split_to(length));
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use sha2::{Digest, Sha256};

    use super::{BodyError, digest, frames, pump};

    #[tokio::test]
    async fn a_body_is_digested_and_passed_on() {
        let text = b"a,b\n1,2\n".repeat(50_000);
        let (sender, mut reader) = frames();
        let read = tokio::task::spawn_blocking(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).map(|_| all)
        });
        let pumped = pump(&mut text.as_slice(), 1 << 30, Some(sender)).await;
        let pumped = pumped.unwrap().unwrap();
        assert_eq!(pumped.sha256, <[u8; 32]>::from(Sha256::digest(&text)));
        assert_eq!(pumped.bytes, text.len() as u64);
        assert_eq!(read.await.unwrap().unwrap(), text);
        assert_eq!(digest(&mut text.as_slice(), 1 << 30).await, Ok(pumped));
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_refused() {
        let text = b"0123456789".repeat(10_000);
        let (sender, mut reader) = frames();
        let read = tokio::task::spawn_blocking(move || reader.read_to_end(&mut Vec::new()));
        let pumped = pump(&mut text.as_slice(), 99_999, Some(sender)).await;
        assert_eq!(pumped, Err(BodyError::TooLarge(99_999)));
        assert!(read.await.unwrap().is_err());
        assert!(digest(&mut text.as_slice(), 100_000).await.is_ok());
    }
}
