//! `pais audit`.

use std::process::ExitCode;

use pais::config::{Flags, Settings};
use pais::store::Store;
use pais::store::audit_chain;
use pais::telemetry;

use super::database::Database;
use super::settings::SettingsArgs;
use super::streams::{note, print_line};
use super::{block_on, hardening, keys};

/// The subcommands of `pais audit`.
#[derive(clap::Subcommand)]
pub(crate) enum AuditCommand {
    /// Check the audit logs: exit status 0 if no event was changed, removed, moved or added, 1 if one
    /// was, 2 if the logs cannot be read
    Verify(SettingsArgs),
}

/// Runs a subcommand of `pais audit`.
///
/// # Errors
/// If the settings are invalid.
pub(crate) fn run(command: AuditCommand) -> anyhow::Result<ExitCode> {
    hardening::forbid_dumps();
    let AuditCommand::Verify(args) = command;
    let settings = args.load(Flags::default())?;
    telemetry::init(&settings.log)?;
    let verified = block_on(async {
        let database = Database::open_for_command(&settings).await?;
        let result = verify(&settings, &database.store).await;
        database.close().await?;
        result
    });
    Ok(verified.unwrap_or_else(|error| {
        note(format_args!("pais: {error:#}"));
        ExitCode::from(2)
    }))
}

async fn verify(settings: &Settings, store: &Store) -> anyhow::Result<ExitCode> {
    let ring = keys::open(settings, store).await?;
    let check = audit_chain::verify(store, &ring).await?;
    for fault in &check.faults {
        print_line(format_args!("{fault}"))?;
    }
    let verdict = match check.faults.as_slice() {
        [] => "every one is in its place",
        _ => "the log was changed",
    };
    print_line(format_args!(
        "{} events in {} logs: {verdict}",
        check.events, check.logs
    ))?;
    Ok(ExitCode::from(u8::from(!check.faults.is_empty())))
}
