//! The body of an upload: decoded as it streams, with limits on how slowly it arrives and on how much of it
//! decodes to nothing.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, unfold};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::io::{InspectReader, StreamReader};

use crate::engine::ingest::body::{BodyError, ZSTD_WINDOW_LOG};
use crate::problem::{Code, Problem};

use super::pace::{ClientTime, UploadPace};

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentEncoding {
    /// Not compressed.
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl ContentEncoding {
    /// The encoding that a request declares.
    ///
    /// # Errors
    /// `unsupported_media_type` for any other, and for several encodings.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
        let name = values.next().map(|value| value.to_str().unwrap_or(""));
        let name = name.map(|name| name.trim().to_ascii_lowercase());
        match (name.as_deref(), values.next()) {
            (None | Some("identity"), None) => Ok(Self::Identity),
            (Some("gzip" | "x-gzip"), None) => Ok(Self::Gzip),
            (Some("zstd"), None) => Ok(Self::Zstd),
            _ => Err(Problem::new(
                Code::UnsupportedMediaType,
                "`Content-Encoding` must be gzip, zstd or absent",
            )),
        }
    }
}

/// Size of the part of a body that is received before the upload gets a slot, in bytes.
const FIRST_BYTES: usize = 64 << 10;

/// Size of the buffer that the rest of a refused body is read into, in bytes.
const DRAIN_BYTES: usize = 64 << 10;

/// By how many bytes, plus a hundredth, a compressed body may be larger than its decoded form.
const MAX_PADDING: u64 = 1 << 20;

type RawBody = StreamReader<BoxStream<'static, io::Result<Bytes>>, Bytes>;

/// The body of an upload that has not been read to its end.
pub(crate) struct IncomingBody {
    raw: RawBody,
    /// What was received before the upload had a slot.
    first: BytesMut,
    /// Whether the client waits for `100 Continue`, which is sent when the body is first read.
    expects_continue: bool,
    progress: Arc<ReadProgress>,
}

/// What is known about a body while it is read.
#[derive(Debug, Default)]
struct ReadProgress {
    /// Whether reading has begun.
    is_started: AtomicBool,
    /// Whether the body is being decoded from a compressed form.
    is_compressed: AtomicBool,
    /// Bytes that it has decoded to.
    decoded: AtomicU64,
}

impl ReadProgress {
    /// Whether too many of `received` bytes have decoded to nothing.
    fn is_padded(&self, received: u64) -> bool {
        let decoded = self.decoded.load(Ordering::Relaxed);
        self.is_compressed.load(Ordering::Relaxed)
            && received > decoded + decoded / 100 + MAX_PADDING
    }
}

impl IncomingBody {
    /// A body from a client that sends it at least at this pace.
    pub(crate) fn new(body: Body, headers: &HeaderMap, pace: UploadPace) -> Self {
        let progress = Arc::<ReadProgress>::default();
        let stream = watch(body.into_data_stream(), pace, progress.clone());
        Self {
            raw: StreamReader::new(stream),
            first: BytesMut::new(),
            expects_continue: headers.contains_key(header::EXPECT),
            progress,
        }
    }

    /// Receives the first 64 KiB, or the whole body if it is shorter. A client that sends less occupies no
    /// slot.
    ///
    /// # Errors
    /// The error that ended the body.
    pub(crate) async fn receive_first(&mut self) -> Result<(), BodyError> {
        self.first.reserve(FIRST_BYTES);
        while self.first.len() < FIRST_BYTES {
            let read = self.raw.read_buf(&mut self.first).await;
            if read.map_err(|error| BodyError::of(&error))? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The decoded body. Its errors carry a [`BodyError`], except those of the decoder.
    pub(crate) fn decoded(
        &mut self,
        encoding: ContentEncoding,
    ) -> Box<dyn AsyncRead + Send + Unpin + '_> {
        let first = io::Cursor::new(self.first.split().freeze());
        let raw = first.chain(&mut self.raw);
        if encoding == ContentEncoding::Identity {
            return Box::new(raw);
        }
        self.progress.is_compressed.store(true, Ordering::Relaxed);
        let decoded = &self.progress.decoded;
        let count = |bytes: &[u8]| _ = decoded.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if encoding == ContentEncoding::Gzip {
            let mut decoder = GzipDecoder::new(raw);
            decoder.multiple_members(true);
            Box::new(InspectReader::new(decoder, count))
        } else {
            let window = DParameter::window_log_max(ZSTD_WINDOW_LOG);
            let mut decoder = ZstdDecoder::with_params(raw, &[window]);
            decoder.multiple_members(true);
            Box::new(InspectReader::new(decoder, count))
        }
    }

    /// Reads up to `limit` bytes of the rest of a body that was refused. Many clients read the
    /// response only after they have sent the whole body. A client that still waits for
    /// `100 Continue` sends none.
    pub(crate) async fn drain(&mut self, limit: u64) {
        if self.expects_continue && !self.progress.is_started.load(Ordering::Relaxed) {
            return;
        }
        self.progress.is_compressed.store(false, Ordering::Relaxed);
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

/// Ends the stream with an error if the client disconnects, is too slow, or sends too much that
/// decodes to nothing.
fn watch(
    stream: BodyDataStream,
    pace: UploadPace,
    progress: Arc<ReadProgress>,
) -> BoxStream<'static, io::Result<Bytes>> {
    let start = (stream, ClientTime::default(), 0u64);
    unfold(Some(start), move |state| {
        let progress = progress.clone();
        async move {
            let (mut stream, mut time, mut received) = state?;
            progress.is_started.store(true, Ordering::Relaxed);
            let max_wait = pace.max_wait(received, &time);
            let error = match time.wait(max_wait, stream.next()).await {
                None => pace.error(received, &time),
                Some(None) => return None,
                Some(Some(Err(_))) => BodyError::Disconnected,
                Some(Some(Ok(frame))) => {
                    received += frame.len() as u64;
                    if !progress.is_padded(received) {
                        return Some((Ok(frame), Some((stream, time, received))));
                    }
                    BodyError::Padded
                }
            };
            Some((Err(io::Error::other(error)), None))
        }
    })
    .fuse()
    .boxed()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Duration;

    use axum::body::Body;
    use axum::http::{HeaderMap, HeaderValue, header};
    use bytes::Bytes;
    use futures_util::{StreamExt, stream};
    use sha2::{Digest, Sha256};
    use tokio::io::AsyncReadExt;

    use crate::engine::ingest::body::{BodyDigest, BodyError, digest};

    use super::{ContentEncoding, IncomingBody, UploadPace};

    fn pace() -> UploadPace {
        UploadPace {
            max_silence: Duration::from_millis(50),
            ..UploadPace::default()
        }
    }

    async fn read(
        body: Vec<u8>,
        encoding: ContentEncoding,
        limit: u64,
    ) -> Result<BodyDigest, BodyError> {
        // In frames, as from a connection.
        let frames = body.chunks(64 << 10).map(Bytes::copy_from_slice);
        let frames: Vec<_> = frames.map(Ok::<_, std::io::Error>).collect();
        let body = Body::from_stream(stream::iter(frames));
        let mut incoming = IncomingBody::new(body, &HeaderMap::new(), pace());
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
        let mut incoming = IncomingBody::new(body, &HeaderMap::new(), pace());
        let mut decoded = incoming.decoded(ContentEncoding::Identity);
        let result = digest(&mut *decoded, 100).await;
        assert_eq!(result, Err(BodyError::Stalled));
    }

    #[tokio::test]
    async fn a_client_that_waits_for_100_continue_is_not_drained() {
        let mut headers = HeaderMap::new();
        headers.insert(header::EXPECT, HeaderValue::from_static("100-continue"));
        let body = Body::from("a,b\n");
        let mut incoming = IncomingBody::new(body, &headers, pace());
        drop(incoming.decoded(ContentEncoding::Identity));
        incoming.drain(100).await;
        let mut decoded = incoming.decoded(ContentEncoding::Identity);
        assert_eq!(digest(&mut *decoded, 100).await.unwrap().bytes, 4);
    }

    /// A body of one byte at a time, with a pause before each.
    fn slow(pause: Duration) -> Body {
        Body::from_stream(stream::repeat(()).then(move |()| async move {
            tokio::time::sleep(pause).await;
            Ok::<_, std::io::Error>("a")
        }))
    }

    #[tokio::test]
    async fn a_slow_client_is_disconnected() {
        let limit = Duration::from_millis(60);
        for (max_duration, start_up, expected) in [
            (limit, Duration::MAX, BodyError::TooLong(0)),
            (Duration::MAX, limit, BodyError::TooSlow(1000)),
        ] {
            let pace = UploadPace {
                max_silence: Duration::from_millis(50),
                max_duration,
                bytes_per_second: 1000,
                start_up,
            };
            let body = slow(Duration::from_millis(10));
            let mut incoming = IncomingBody::new(body, &HeaderMap::new(), pace);
            assert_eq!(incoming.receive_first().await, Err(expected));
        }
    }

    #[tokio::test]
    async fn time_in_which_the_client_waits_does_not_count() {
        let pace = UploadPace {
            max_duration: Duration::from_millis(50),
            ..pace()
        };
        let body = Body::from_stream(stream::iter(["a"; 5].map(Ok::<_, std::io::Error>)));
        let mut incoming = IncomingBody::new(body, &HeaderMap::new(), pace);
        let mut decoded = incoming.decoded(ContentEncoding::Identity);
        let mut byte = [0];
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert_eq!(decoded.read(&mut byte).await.unwrap(), 1);
        }
    }

    #[tokio::test]
    async fn the_first_part_is_part_of_the_decoded_body() {
        let text = b"0123456789".repeat(30_000);
        for length in [0, 10, 300_000] {
            let body = gzip(&text[..length]);
            let mut incoming = IncomingBody::new(Body::from(body), &HeaderMap::new(), pace());
            incoming.receive_first().await.unwrap();
            let mut decoded = incoming.decoded(ContentEncoding::Gzip);
            let digest = digest(&mut *decoded, 1 << 30).await.unwrap();
            assert_eq!(
                digest.sha256,
                <[u8; 32]>::from(Sha256::digest(&text[..length]))
            );
        }
    }

    #[tokio::test]
    async fn a_body_that_decodes_to_nothing_is_refused() {
        let empty = gzip(b"").repeat(100_000);
        let result = read(empty, ContentEncoding::Gzip, 1 << 30).await;
        assert_eq!(result, Err(BodyError::Padded));
        // A skippable frame of zstd (RFC 8878, 3.1.2) of 64 KiB.
        let mut skipped = vec![0x50, 0x2a, 0x4d, 0x18, 0, 0, 1, 0];
        skipped.resize(8 + (64 << 10), 0);
        let result = read(skipped.repeat(40), ContentEncoding::Zstd, 1 << 30).await;
        assert_eq!(result, Err(BodyError::Padded));
        // Random bytes do not get smaller, and are admitted.
        let mut state = 1u64;
        let random: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(8 << 20)
        .collect();
        let result = read(gzip(&random), ContentEncoding::Gzip, 1 << 30).await;
        assert_eq!(result.unwrap().bytes, 8 << 20);
    }

    #[tokio::test]
    async fn the_window_of_zstd_is_limited() {
        for (log, is_read) in [(23, true), (27, false)] {
            let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
            encoder.window_log(log).unwrap();
            encoder.write_all(&b"a,b\n1,2\n".repeat(100_000)).unwrap();
            let body = encoder.finish().unwrap();
            let result = read(body, ContentEncoding::Zstd, 1 << 30).await;
            assert_eq!(result.is_ok(), is_read, "{log}: {result:?}");
        }
    }
}
