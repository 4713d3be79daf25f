//! The signals that stop the service, and those that do not.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What the signals ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop {
    /// Cancelled by SIGTERM, SIGINT and SIGQUIT: no new work begins.
    pub(super) shutdown: CancellationToken,
    /// Cancelled by SIGQUIT, and by a second SIGTERM or SIGINT: running work is not waited for. Jobs
    /// return to the queue.
    pub(super) at_once: CancellationToken,
}

/// Handles the signals from now on. SIGHUP changes nothing: settings are read at the start only.
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
                Asked::Nothing => {
                    tracing::info!("SIGHUP: nothing is reloaded; restart to change settings");
                }
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
    Nothing,
    Stop,
    StopAtOnce,
}

impl Signals {
    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.quit.recv() => Asked::StopAtOnce,
            _ = self.hangup.recv() => Asked::Nothing,
        }
    }
}
