//! Listening, and stopping in good order.

use std::future::IntoFuture;
use std::io;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::metrics;

/// How often the metrics' samples are put into their buckets when nobody scrapes them.
const UPKEEP: Duration = Duration::from_secs(30);

/// Serves until `shutdown` is cancelled; then takes no more connections and gives the requests
/// under way `grace` to end.
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
            tokio::time::sleep(UPKEEP).await;
            metrics::install().run_upkeep();
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
            tracing::warn!("requests were still under way at the end of the grace period");
            Ok(())
        }
    }
}
