//! The log: lines on standard error, as text or as JSON.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogSettings};

/// Why the log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `log.filter` is invalid.
    #[error(
        "log.filter {filter:?} is not a log filter; expected a level such as info, or \
         info,pais::jobs=debug"
    )]
    Filter {
        /// The filter.
        filter: String,
        /// What is wrong with it.
        source: tracing_subscriber::filter::ParseError,
    },

    /// The log of this process is already set up.
    #[error("the log of this process is already set up; set it up once, at the start")]
    Repeated {
        /// The error of `tracing_subscriber`.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Sets up the log of this process, on standard error.
///
/// # Errors
/// If the filter is invalid, or the log is already set up.
pub fn init(settings: &LogSettings) -> Result<(), TelemetryError> {
    let filter = filter(&settings.filter)?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal());
    match settings.format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    }
    .map_err(|source| TelemetryError::Repeated { source })?;
    // A panic's message may quote a value, so only the location of the panic is logged.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "the program panicked; this is a bug in pais");
    }));
    Ok(())
}

fn filter(text: &str) -> Result<EnvFilter, TelemetryError> {
    EnvFilter::try_new(text).map_err(|source| TelemetryError::Filter {
        filter: text.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_filter_is_named_in_the_error() {
        assert!(filter("info,pais::jobs=debug").is_ok());
        let text = filter("pais=loud").unwrap_err().to_string();
        assert!(text.contains("log.filter \"pais=loud\""), "{text}");
    }
}
