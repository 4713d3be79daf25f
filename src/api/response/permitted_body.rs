//! A body that ends when its reader loses access.

use std::future::Future;
use std::io;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::unfold;
use tokio::time::Instant;

/// Time between two checks.
const INTERVAL: Duration = Duration::from_secs(2);

/// The same body, which ends once `is_permitted` returns `false`. It is called before a frame is sent, at most
/// once in two seconds. The connection is closed then, so that the client does not take an incomplete body for a
/// complete one.
pub(crate) fn while_permitted<F, P>(body: Body, is_permitted: F) -> Body
where
    F: Fn() -> P + Send + 'static,
    P: Future<Output = bool> + Send,
{
    checked_every(INTERVAL, body, is_permitted)
}

fn checked_every<F, P>(interval: Duration, body: Body, is_permitted: F) -> Body
where
    F: Fn() -> P + Send + 'static,
    P: Future<Output = bool> + Send,
{
    let start = Some((body.into_data_stream(), Instant::now(), is_permitted));
    let frames = unfold(start, move |state| async move {
        let (mut frames, mut checked, is_permitted) = state?;
        let frame: Result<Bytes, _> = frames.next().await?;
        if checked.elapsed() >= interval {
            if !is_permitted().await {
                let ended = io::Error::other("the reader may no longer read this");
                return Some((Err(ended), None));
            }
            checked = Instant::now();
        }
        let frame = frame.map_err(io::Error::other);
        let next = frame.is_ok().then_some((frames, checked, is_permitted));
        Some((frame, next))
    });
    // A layer that compresses asks for a frame once more after the last one.
    Body::from_stream(frames.fuse())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use axum::body::Body;
    use futures_util::{StreamExt, stream};

    use super::{checked_every, while_permitted};

    #[tokio::test]
    async fn nothing_is_sent_after_a_check_that_fails() {
        let numbers = stream::iter((0..10u8).map(|number| Ok::<_, std::io::Error>(vec![number])));
        let permitted = Arc::new(AtomicBool::new(true));
        let check = {
            let permitted = permitted.clone();
            move || std::future::ready(permitted.load(Ordering::Relaxed))
        };
        let body = checked_every(Duration::ZERO, Body::from_stream(numbers), check);
        let mut frames = body.into_data_stream();
        for number in 0..4 {
            assert_eq!(frames.next().await.unwrap().unwrap(), vec![number]);
        }
        permitted.store(false, Ordering::Relaxed);
        assert!(frames.next().await.unwrap().is_err());
        assert!(frames.next().await.is_none());
    }
    #[tokio::test]
    async fn a_body_that_has_ended_may_be_polled_again() {
        let body = Body::from_stream(stream::iter([Ok::<_, std::io::Error>("all")]));
        let mut frames = while_permitted(body, || std::future::ready(true)).into_data_stream();
        assert_eq!(frames.next().await.unwrap().unwrap(), "all");
        assert!(frames.next().await.is_none());
        assert!(frames.next().await.is_none());
    }
}
