//! The log, lines on standard error as text or as JSON; and traces, for a collector.

pub mod otlp;
pub mod traces;

use std::io::{IsTerminal, stderr};

use anyhow::{Context as _, anyhow};
use opentelemetry::Context;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{LogFormat, LogSettings};

/// Sets up the log of this process, on standard error.
///
/// # Errors
/// If the filter is invalid, or the log is already set up.
pub fn init(settings: &LogSettings) -> anyhow::Result<()> {
    let filter = settings
        .targets()
        .map_err(|reason| anyhow!("log.filter {reason}"))?;
    let lines = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(stderr)
        // A line that cannot be written (full disk, closed pipe) is lost. Reporting the error on
        // standard error would panic, and the hook below would log the panic and end the process.
        .log_internal_errors(false)
        .with_ansi(stderr().is_terminal());
    let started = match settings.format {
        LogFormat::Text => lines.finish().with(filter).try_init(),
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true);
            lines.finish().with(filter).try_init()
        }
    };
    started.context("the log of this process is already set up; set it up once, at the start")?;
    // A panic's message may quote a value, so only the location of the panic is logged.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        if pais_io::read::parquet::is_decoding() {
            tracing::debug!(place, "the decoder of Parquet ended at a damaged file");
            return;
        }
        tracing::error!(place, "the program panicked; this is a bug in pais");
    }));
    Ok(())
}

/// Work for another thread, which logs and traces there as a part of the work of this one.
pub fn carry<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let (log, trace) = (tracing::Span::current(), Context::current());
    move || {
        let _attached = trace.attach();
        log.in_scope(work)
    }
}
