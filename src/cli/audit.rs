//! `pais audit`.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use pais::config::Settings;
use pais::db::audit_archive::{self, ArchiveError, ArchivedLogs};
use pais::db::{Store, StoreError, audit_chain};
use pais::storage::directory_of;
use pais::storage::secret_file::sync_directory;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::database::{SettingsArgs, require_database, with_database};
use super::output::{counted, note, print_line};
use super::{keys, process};

/// The subcommands of `pais audit`.
#[derive(clap::Subcommand)]
pub(crate) enum AuditCommand {
    /// Check the audit logs: exit status 0 if no event was changed, removed, moved or added, 1 if one
    /// was, 2 if the logs cannot be read
    Verify(VerifyArgs),
    /// Write the oldest events of all audit logs to a file, and remove them from the database
    Archive(ArchiveArgs),
}

/// The arguments of `pais audit verify`.
#[derive(clap::Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// An archive of older events, to be checked too; the oldest first if there are several
    #[arg(long = "archive", value_name = "FILE")]
    archives: Vec<PathBuf>,
}

/// The arguments of `pais audit archive`.
#[derive(clap::Args)]
pub(crate) struct ArchiveArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// Archive the events before this time, such as 2026-01-01T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    before: OffsetDateTime,
    /// The file to create; an existing one is not replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

fn parse_time(text: &str) -> Result<OffsetDateTime, String> {
    OffsetDateTime::parse(text, &Rfc3339)
        .map_err(|_| "expected a time such as 2026-01-01T00:00:00Z".to_owned())
}

/// Runs a subcommand of `pais audit`.
///
/// # Errors
/// If the settings are invalid.
pub(crate) fn run(command: AuditCommand) -> anyhow::Result<ExitCode> {
    process::forbid_dumps();
    let (AuditCommand::Verify(VerifyArgs { settings, .. })
    | AuditCommand::Archive(ArchiveArgs { settings, .. })) = &command;
    let settings = settings.start()?;
    let done = require_database(&settings).and_then(|()| {
        with_database(&settings, async |store| match &command {
            AuditCommand::Verify(args) => verify(&settings, store, &args.archives).await,
            AuditCommand::Archive(args) => archive(&settings, store, args).await,
        })
    });
    Ok(done.unwrap_or_else(|error| {
        note(format_args!("pais: {error:#}"));
        ExitCode::from(2)
    }))
}

async fn verify(
    settings: &Settings,
    store: &Store,
    archives: &[PathBuf],
) -> anyhow::Result<ExitCode> {
    let ring = keys::open(settings, store).await?;
    match audit_chain::extend(store, &ring).await {
        // The check says what was changed.
        Err(StoreError::Damaged(_)) => {}
        chained => drop(chained?),
    }
    let check = audit_chain::verify(store, &ring).await?;
    for fault in &check.faults {
        print_line(format_args!("{fault}"))?;
    }
    let mut is_good = check.faults.is_empty();
    if !archives.is_empty() {
        let mut archived = ArchivedLogs::default();
        let mut are_read = true;
        for path in archives {
            let named = || format!("cannot check {}", path.display());
            let file = File::open(path).with_context(named)?;
            if let Some(fault) = archived.read(BufReader::new(file)).with_context(named)? {
                print_line(format_args!("{}: {fault}", path.display()))?;
                are_read = false;
            }
        }
        // After a fault the ends are not those of the files.
        if are_read {
            for fault in archived.check_ends(store, &ring).await? {
                print_line(format_args!("{fault}"))?;
                are_read = false;
            }
        }
        is_good &= are_read;
        let events = counted(archived.events, "event");
        print_line(format_args!("{events} in archives"))?;
    }
    let verdict = if is_good {
        "every one is in its place"
    } else {
        "the log was changed"
    };
    let pending = match check.pending {
        0 => String::new(),
        pending => format!(
            "; not protected yet: {}",
            counted(pending.unsigned_abs(), "event")
        ),
    };
    let events = counted(check.events, "event");
    let logs = counted(check.logs as u64, "log");
    print_line(format_args!("{events} in {logs}: {verdict}{pending}"))?;
    Ok(ExitCode::from(u8::from(!is_good)))
}

async fn archive(
    settings: &Settings,
    store: &Store,
    args: &ArchiveArgs,
) -> anyhow::Result<ExitCode> {
    let ring = keys::open(settings, store).await?;
    let path = &args.output;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot create {}", path.display()))?;
    let written = BufWriter::new(file);
    let done = audit_archive::archive(store, &ring, args.before, written, |file| {
        file.into_inner()
            .map_err(std::io::IntoInnerError::into_error)?
            .sync_all()?;
        sync_directory(directory_of(path))
    });
    match done.await {
        Ok(archived) => {
            print_line(format_args!(
                "{} events of {} logs are in {} and no longer in the database",
                archived.events,
                archived.logs,
                path.display()
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error @ ArchiveError::Unconfirmed(_)) => Err(error.into()),
        Err(error) => {
            // Nothing was removed from the database, so the file is of no use.
            let _ = std::fs::remove_file(path);
            Err(error.into())
        }
    }
}
