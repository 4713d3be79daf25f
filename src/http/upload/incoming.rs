//! The body of an upload: decoded as it streams, with a limit on the client's silence.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, unfold};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::io::StreamReader;

use crate::service::ingest::body::BodyError;

use super::encoding::ContentEncoding;

/// Longest time a client may send nothing in the middle of its body.
pub(crate) const MAX_SILENCE: Duration = Duration::from_secs(30);

/// Size of the buffer that the rest of a refused body is read into, in bytes.
const DRAIN_BYTES: usize = 64 << 10;

type RawBody = StreamReader<BoxStream<'static, io::Result<Bytes>>, Bytes>;

/// The body of an upload that has not been read to its end.
pub(crate) struct IncomingBody {
    raw: RawBody,
    /// Whether the client waits for `100 Continue`, which is sent when the body is first read.
    expects_continue: bool,
    /// Whether reading has begun.
    is_started: Arc<AtomicBool>,
}

impl IncomingBody {
    /// A body from a client that sends something at least every `max_silence`.
    pub(crate) fn new(body: Body, headers: &HeaderMap, max_silence: Duration) -> Self {
        let is_started = Arc::new(AtomicBool::new(false));
        let stream = watch(body.into_data_stream(), max_silence, is_started.clone());
        Self {
            raw: StreamReader::new(stream),
            expects_continue: headers.contains_key(header::EXPECT),
            is_started,
        }
    }

    /// The decoded body. Its errors carry a [`BodyError`], except those of the decoder.
    pub(crate) fn decoded(
        &mut self,
        encoding: ContentEncoding,
    ) -> Box<dyn AsyncRead + Send + Unpin + '_> {
        match encoding {
            ContentEncoding::Identity => Box::new(&mut self.raw),
            ContentEncoding::Gzip => {
                let mut decoder = GzipDecoder::new(&mut self.raw);
                decoder.multiple_members(true);
                Box::new(decoder)
            }
            ContentEncoding::Zstd => {
                let mut decoder = ZstdDecoder::new(&mut self.raw);
                decoder.multiple_members(true);
                Box::new(decoder)
            }
        }
    }

    /// Reads up to `limit` bytes of the rest of a body that was refused. Many clients read the
    /// response only after they have sent the whole body. A client that still waits for
    /// `100 Continue` sends none.
    pub(crate) async fn drain(&mut self, limit: u64) {
        if self.expects_continue && !self.is_started.load(Ordering::Relaxed) {
            return;
        }
        let mut scratch = BytesMut::with_capacity(DRAIN_BYTES);
        let mut left = limit;
        while left > 0 {
            scratch.clear();
            match self.raw.read_buf(&mut scratch).await {
                Ok(0) | Err(_) => return,
                Ok(read) => left = left.saturating_sub(read as u64),
            }
        }
    }
}

/// Ends the stream with an error if the client disconnects or is silent for too long. Sets
/// `is_started` when the stream is first read.
fn watch(
    stream: BodyDataStream,
    max_silence: Duration,
    is_started: Arc<AtomicBool>,
) -> BoxStream<'static, io::Result<Bytes>> {
    unfold(Some(stream), move |stream| {
        is_started.store(true, Ordering::Relaxed);
        async move {
            let mut stream = stream?;
            match tokio::time::timeout(max_silence, stream.next()).await {
                Ok(None) => None,
                Ok(Some(Ok(frame))) => Some((Ok(frame), Some(stream))),
                Ok(Some(Err(_))) => Some((Err(io::Error::other(BodyError::Disconnected)), None)),
                Err(_) => Some((Err(io::Error::other(BodyError::Stalled)), None)),
            }
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Duration;

    use axum::body::Body;
    use axum::http::{HeaderMap, HeaderValue, header};
    use futures_util::{StreamExt, stream};
    use sha2::{Digest, Sha256};

    use super::{ContentEncoding, IncomingBody};
    use crate::service::ingest::body::{BodyDigest, BodyError, digest};

    const MAX_SILENCE: Duration = Duration::from_millis(50);

    async fn read(
        body: Vec<u8>,
        encoding: ContentEncoding,
        limit: u64,
    ) -> Result<BodyDigest, BodyError> {
        let mut incoming = IncomingBody::new(Body::from(body), &HeaderMap::new(), MAX_SILENCE);
        digest(&mut *incoming.decoded(encoding), limit).await
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
            (ContentEncoding::Identity, text.clone()),
            (ContentEncoding::Gzip, gzip(&text)),
            (ContentEncoding::Zstd, zstd),
        ] {
            let digest = read(body, encoding, 1 << 30).await.unwrap();
            assert_eq!(digest.sha256, <[u8; 32]>::from(Sha256::digest(&text)));
            assert_eq!(digest.bytes, text.len() as u64);
        }
    }

    #[tokio::test]
    async fn a_truncated_or_too_large_body_is_refused() {
        let text = b"0123456789".repeat(10_000);
        let mut cut = gzip(&text);
        cut.truncate(cut.len() / 2);
        let result = read(cut, ContentEncoding::Gzip, 1 << 30).await;
        assert_eq!(result, Err(BodyError::Corrupt));
        let result = read(b"no gzip".to_vec(), ContentEncoding::Gzip, 9).await;
        assert_eq!(result, Err(BodyError::Corrupt));
        let result = read(gzip(&text), ContentEncoding::Gzip, 99_999).await;
        assert_eq!(result, Err(BodyError::TooLarge(99_999)));
        let result = read(text, ContentEncoding::Identity, 100_000).await;
        assert!(result.is_ok());
    }

    #[tokio::test]
    async fn a_silent_client_is_disconnected() {
        let first = stream::iter([Ok::<_, std::io::Error>("a,b\n")]);
        let body = Body::from_stream(first.chain(stream::pending()));
        let mut incoming = IncomingBody::new(body, &HeaderMap::new(), MAX_SILENCE);
        let mut decoded = incoming.decoded(ContentEncoding::Identity);
        let result = digest(&mut *decoded, 100).await;
        assert_eq!(result, Err(BodyError::Stalled));
    }

    #[tokio::test]
    async fn a_client_that_waits_for_100_continue_is_not_drained() {
        let mut headers = HeaderMap::new();
        headers.insert(header::EXPECT, HeaderValue::from_static("100-continue"));
        let body = Body::from("a,b\n");
        let mut incoming = IncomingBody::new(body, &headers, MAX_SILENCE);
        drop(incoming.decoded(ContentEncoding::Identity));
        incoming.drain(100).await;
        let mut decoded = incoming.decoded(ContentEncoding::Identity);
        assert_eq!(digest(&mut *decoded, 100).await.unwrap().bytes, 4);
    }
}
