//! A body on its way in: decoded, measured and digested as it streams, never held whole.

use std::io;
use std::time::Duration;

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, unfold};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio_util::io::StreamReader;

use crate::problem::{Code, Problem};

use super::ApiError;

/// Longest silence of a client in the middle of its body.
pub const IDLE: Duration = Duration::from_secs(30);

/// Bytes handed on at once.
const FRAME_BYTES: usize = 64 << 10;

/// Frames decoded ahead of their reader.
const FRAMES_AHEAD: usize = 8;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Not at all.
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl Encoding {
    /// The `Content-Encoding` of a request.
    ///
    /// # Errors
    /// `unsupported_media_type` for any other.
    pub fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut named = headers.get_all(header::CONTENT_ENCODING).iter();
        let word = named.next().map(|value| value.to_str().unwrap_or_default());
        let word = word.map(|word| word.trim().to_ascii_lowercase());
        match (word.as_deref(), named.next()) {
            (None | Some("identity"), None) => Ok(Self::Identity),
            (Some("gzip" | "x-gzip"), None) => Ok(Self::Gzip),
            (Some("zstd"), None) => Ok(Self::Zstd),
            _ => Err(Problem::new(
                Code::UnsupportedMediaType,
                "`Content-Encoding` is gzip, zstd or none",
            )),
        }
    }
}

/// Why a body could not be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// More than the limit.
    #[error("the decoded body has more than {0} bytes (limits.upload_bytes)")]
    TooLarge(u64),
    /// Not of its encoding.
    #[error("the body does not decode by its `Content-Encoding`, or it is cut short")]
    Corrupt,
    /// The client went away.
    #[error("the body could not be read to its end")]
    Gone,
    /// The client fell silent.
    #[error("nothing of the body arrived for a while; send it again")]
    Stalled,
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        let code = match fault {
            Fault::TooLarge(_) => Code::TooLarge,
            Fault::Corrupt | Fault::Gone => Code::MalformedBody,
            Fault::Stalled => Code::RequestTimeout,
        };
        Self::new(code, fault.to_string())
    }
}

/// SHA-256 and size of a decoded body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// SHA-256.
    pub sha256: [u8; 32],
    /// Size.
    pub bytes: u64,
}

type Frames = StreamReader<BoxStream<'static, io::Result<Bytes>>, Bytes>;

/// A body that has not been read to its end.
pub struct Incoming {
    raw: Frames,
    limit: u64,
    /// The client waits for `100 Continue`, which reading would send.
    waits: bool,
    touched: bool,
}

impl Incoming {
    /// A body of at most `limit` bytes once decoded, from a client that is never silent for
    /// longer than `idle`.
    pub fn new(body: Body, headers: &HeaderMap, limit: u64, idle: Duration) -> Self {
        Self {
            raw: StreamReader::new(watched(body.into_data_stream(), idle)),
            limit,
            waits: headers.contains_key(header::EXPECT),
            touched: false,
        }
    }

    /// The most bytes it may have once decoded.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Decodes the body and hands its bytes to `out`. `None` when the receiver wanted no more.
    ///
    /// # Errors
    /// The fault that ended it; `out` then gets an error, so that no half body passes for whole.
    pub async fn pump(
        &mut self,
        encoding: Encoding,
        out: Option<mpsc::Sender<io::Result<Bytes>>>,
    ) -> Result<Option<Measure>, Fault> {
        self.touched = true;
        let limit = self.limit;
        let mut decoded: Box<dyn AsyncRead + Send + Unpin + '_> = match encoding {
            Encoding::Identity => Box::new(&mut self.raw),
            Encoding::Gzip => {
                let mut decoder = GzipDecoder::new(&mut self.raw);
                decoder.multiple_members(true);
                Box::new(decoder)
            }
            Encoding::Zstd => {
                let mut decoder = ZstdDecoder::new(&mut self.raw);
                decoder.multiple_members(true);
                Box::new(decoder)
            }
        };
        let outcome = measure(&mut decoded, limit, out.as_ref()).await;
        if let (Err(fault), Some(out)) = (&outcome, &out) {
            let _ = out.send(Err(io::Error::other(*fault))).await;
        }
        outcome
    }

    /// Reads on, within bounds, after a refusal: many clients look at the answer only when they
    /// have sent all.
    pub async fn drain(&mut self) {
        if self.waits && !self.touched {
            return;
        }
        let mut scratch = BytesMut::with_capacity(FRAME_BYTES);
        let mut left = self.limit;
        while left > 0 {
            scratch.clear();
            match self.raw.read_buf(&mut scratch).await {
                Ok(0) | Err(_) => return,
                Ok(read) => left = left.saturating_sub(read as u64),
            }
        }
    }
}

/// Frames between a body's decoding and a blocking reader.
pub fn channel() -> (mpsc::Sender<io::Result<Bytes>>, FrameReader) {
    let (send, frames) = mpsc::channel(FRAMES_AHEAD);
    let reader = FrameReader {
        frames,
        rest: Bytes::new(),
    };
    (send, reader)
}

/// The decoded body as a blocking reader.
pub struct FrameReader {
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

fn watched(stream: BodyDataStream, idle: Duration) -> BoxStream<'static, io::Result<Bytes>> {
    unfold(Some(stream), move |stream| async move {
        let mut stream = stream?;
        match tokio::time::timeout(idle, stream.next()).await {
            Ok(None) => None,
            Ok(Some(Ok(frame))) => Some((Ok(frame), Some(stream))),
            Ok(Some(Err(_))) => Some((Err(io::Error::other(Fault::Gone)), None)),
            Err(_) => Some((Err(io::Error::other(Fault::Stalled)), None)),
        }
    })
    .boxed()
}

async fn measure(
    decoded: &mut (dyn AsyncRead + Send + Unpin),
    limit: u64,
    out: Option<&mpsc::Sender<io::Result<Bytes>>>,
) -> Result<Option<Measure>, Fault> {
    let mut hasher = Sha256::new();
    let mut bytes = 0u64;
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(FRAME_BYTES);
        let read = decoded.read_buf(&mut buffer).await.map_err(|error| {
            let fault = error.get_ref().and_then(|inner| inner.downcast_ref());
            fault.copied().unwrap_or(Fault::Corrupt)
        })?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        if bytes > limit {
            return Err(Fault::TooLarge(limit));
        }
        let frame = buffer.split().freeze();
        hasher.update(&frame);
        if let Some(out) = out
            && out.send(Ok(frame)).await.is_err()
        {
            return Ok(None);
        }
    }
    Ok(Some(Measure {
        sha256: hasher.finalize().into(),
        bytes,
    }))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::time::Duration;

    use axum::body::Body;
    use axum::http::HeaderMap;
    use futures_util::{StreamExt, stream};
    use sha2::{Digest, Sha256};

    use super::{Encoding, Fault, Incoming, channel};

    fn incoming(body: Vec<u8>, limit: u64) -> Incoming {
        let idle = Duration::from_millis(50);
        Incoming::new(Body::from(body), &HeaderMap::new(), limit, idle)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn the_digest_is_that_of_the_decoded_body() {
        let text = b"a,b\n1,2\n".repeat(50_000);
        let zstd = zstd::encode_all(text.as_slice(), 1).unwrap();
        for (encoding, body) in [
            (Encoding::Identity, text.clone()),
            (Encoding::Gzip, gzip(&text)),
            (Encoding::Zstd, zstd),
        ] {
            let (send, mut reader) = channel();
            let read = tokio::task::spawn_blocking(move || {
                let mut all = Vec::new();
                reader.read_to_end(&mut all).map(|_| all)
            });
            let measure = incoming(body, 1 << 30).pump(encoding, Some(send)).await;
            let measure = measure.unwrap().unwrap();
            assert_eq!(measure.sha256, <[u8; 32]>::from(Sha256::digest(&text)));
            assert_eq!(measure.bytes, text.len() as u64);
            assert_eq!(read.await.unwrap().unwrap(), text);
        }
    }

    #[tokio::test]
    async fn what_is_cut_short_or_too_large_is_refused() {
        let text = b"0123456789".repeat(10_000);
        let mut cut = gzip(&text);
        cut.truncate(cut.len() / 2);
        let outcome = incoming(cut, 1 << 30).pump(Encoding::Gzip, None).await;
        assert_eq!(outcome, Err(Fault::Corrupt));
        let outcome = incoming(b"no gzip".to_vec(), 9)
            .pump(Encoding::Gzip, None)
            .await;
        assert_eq!(outcome, Err(Fault::Corrupt));
        let outcome = incoming(gzip(&text), 99_999)
            .pump(Encoding::Gzip, None)
            .await;
        assert_eq!(outcome, Err(Fault::TooLarge(99_999)));
        let outcome = incoming(text, 100_000).pump(Encoding::Identity, None).await;
        assert!(outcome.is_ok());
    }

    #[tokio::test]
    async fn a_client_that_falls_silent_is_cut_off() {
        let first = stream::iter([Ok::<_, std::io::Error>("a,b\n")]);
        let body = Body::from_stream(first.chain(stream::pending()));
        let idle = Duration::from_millis(20);
        let mut incoming = Incoming::new(body, &HeaderMap::new(), 100, idle);
        let (send, mut reader) = channel();
        let read = tokio::task::spawn_blocking(move || reader.read_to_end(&mut Vec::new()));
        let outcome = incoming.pump(Encoding::Identity, Some(send)).await;
        assert_eq!(outcome, Err(Fault::Stalled));
        assert!(read.await.unwrap().is_err());
    }
}
