//! The signals that stop the service, and the one that does not.

use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What the signals ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop {
    /// Cancelled by SIGTERM, SIGINT and SIGQUIT: no new work begins.
    pub(super) shutdown: CancellationToken,
    /// Cancelled by SIGQUIT, and by a second SIGTERM or SIGINT: running work is not waited for. Jobs
    /// return to the queue.
    pub(super) at_once: CancellationToken,
    /// Notified by SIGHUP: certificates are read again.
    pub(super) reload: Arc<Notify>,
}

/// Handles the signals from now on.
///
/// # Errors
/// When a signal cannot be handled.
pub(super) fn handle() -> std::io::Result<Stop> {
    let stop = Stop::default();
    let mut signals = Signals {
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
        quit: signal(SignalKind::quit())?,
        hangup: signal(SignalKind::hangup())?,
    };
    let asked = stop.clone();
    tokio::spawn(async move {
        loop {
            match signals.next().await {
                Asked::Reload => asked.reload.notify_one(),
                Asked::Stop if !asked.shutdown.is_cancelled() => {
                    tracing::info!("stopping; a second signal stops without waiting");
                    asked.shutdown.cancel();
                }
                Asked::Stop | Asked::StopAtOnce => {
                    tracing::info!("stopping at once");
                    asked.shutdown.cancel();
                    asked.at_once.cancel();
                }
            }
        }
    });
    Ok(stop)
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hangup: Signal,
}

enum Asked {
    Reload,
    Stop,
    StopAtOnce,
}

impl Signals {
    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.quit.recv() => Asked::StopAtOnce,
            _ = self.hangup.recv() => Asked::Reload,
        }
    }
}
