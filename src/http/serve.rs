//! Listening, and a graceful stop.

use std::future::IntoFuture;
use std::io;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::metrics_recorder;

/// How often the samples of the metrics are put into their buckets if nobody scrapes them.
const METRICS_UPKEEP_INTERVAL: Duration = Duration::from_secs(30);

/// Serves until `shutdown` is cancelled. Then it accepts no more connections, and waits up to
/// `grace` for the running requests to end.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
    grace: Duration,
) -> io::Result<()> {
    let upkeep = async {
        loop {
            tokio::time::sleep(METRICS_UPKEEP_INTERVAL).await;
            metrics_recorder::install().run_upkeep();
        }
    };
    let overdue = async {
        shutdown.cancelled().await;
        tokio::time::sleep(grace).await;
    };
    let server = axum::serve(listener, router)
        .with_graceful_shutdown(shutdown.clone().cancelled_owned())
        .into_future();
    tokio::select! {
        ended = server => ended,
        () = upkeep => Ok(()),
        () = overdue => {
            tracing::warn!("some requests were still running at the end of the grace period");
            Ok(())
        }
    }
}
