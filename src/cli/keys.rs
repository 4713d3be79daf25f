//! The keys at the start of the service, and `pais keys`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use pais::config::Settings;
use pais::db::Store;
use pais::db::key_ring::KeyRing;
use pais::db::open_ring::{KeyMismatch, open_ring};
use pais::db::service_keys;
use pais::storage::secret_file;
use pais_seal::random_key;

use super::database::{SettingsArgs, require_database, with_database};
use super::key_file::{self, KeyPlace};
use super::output::{note, print_line};
use super::process;

/// The subcommands of `pais keys`.
#[derive(clap::Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key-encryption key in a new file with mode 0600
    Generate {
        /// The file to make
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Wrap the keys of all datasets under a new key-encryption key; services may run meanwhile
    Rotate(SettingsArgs),
    /// Check that the key of every dataset can be opened: exit status 0 if so, 1 if not, 2 if the keys or the
    /// database cannot be read
    Check(SettingsArgs),
}

/// Runs a subcommand of `pais keys`.
///
/// # Errors
/// If the settings are invalid, or a key or the database cannot be used.
pub(crate) fn run(command: KeysCommand) -> anyhow::Result<ExitCode> {
    process::forbid_dumps();
    match command {
        KeysCommand::Generate { file } => {
            if file.exists() {
                bail!("{} exists; choose another name", file.display());
            }
            key_file::create(&file)?;
            Ok(ExitCode::SUCCESS)
        }
        KeysCommand::Rotate(args) => {
            let settings = args.start()?;
            require_database(&settings)?;
            with_database(&settings, async |store| rotate(&settings, store).await)
        }
        KeysCommand::Check(args) => {
            let settings = args.start()?;
            let checked = require_database(&settings).and_then(|()| {
                with_database(&settings, async |store| check(&settings, store).await)
            });
            Ok(checked.unwrap_or_else(|error| {
                note(format_args!("pais: {error:#}"));
                ExitCode::from(if error.is::<KeyMismatch>() { 1 } else { 2 })
            }))
        }
    }
}

/// Opens the key ring of the service.
///
/// # Errors
/// If the key cannot be read or created, or is not the one of the database.
pub(crate) async fn open(settings: &Settings, store: &Store) -> anyhow::Result<KeyRing> {
    let place = KeyPlace::of(settings)?;
    let keys = if service_keys::is_new(store).await? {
        place.keys_or_new()?
    } else {
        place.keys()?
    };
    Ok(open_ring(store, &keys, place.source()).await?)
}

async fn check(settings: &Settings, store: &Store) -> anyhow::Result<ExitCode> {
    let ring = open(settings, store).await?;
    let checked = service_keys::check(store, &ring).await?;
    for dataset in &checked.bad {
        let dataset = dataset.0;
        print_line(format_args!(
            "dataset {dataset}: its key, or that of a submission, is missing or does not open"
        ))?;
    }
    let (good, bad) = (checked.good, checked.bad.len());
    print_line(format_args!(
        "key {}: {good} keys of datasets open, {bad} do not",
        ring.current()
    ))?;
    Ok(ExitCode::from(u8::from(bad > 0)))
}

/// Rotates the key in the key file: makes a new key beside the old one, wraps all keys under it, and
/// removes the old key. If it is interrupted, the next call continues.
async fn rotate(settings: &Settings, store: &Store) -> anyhow::Result<ExitCode> {
    let KeyPlace::File { path, .. } = KeyPlace::of(settings)? else {
        bail!(
            "the key is in encryption.key_base64, which this command cannot change; put it into a file \
             (encryption.key_file), and rotate that"
        );
    };
    // Before the file is read: another rotation would write the key that it has made over this one's.
    let Some(_alone) = service_keys::lock_rotation(store).await? else {
        bail!("another rotation is running; wait for its end");
    };
    // One that was killed may have left the key that is to be removed.
    secret_file::remove_unfinished_of(&path)?;
    let mut keys = key_file::read(&path)?
        .with_context(|| format!("there is no key file {}", path.display()))?;
    // Checks that these are the keys of the database, before anything changes.
    open_ring(store, &keys, None).await?;
    if let [_] = keys.as_slice() {
        keys.insert(0, random_key()?);
        key_file::replace(&path, &keys)?;
    }
    let ring = open_ring(store, &keys, None).await?;
    let datasets = service_keys::rewrap_all(store, &ring).await?;
    key_file::replace(&path, &keys[..1])?;
    print_line(format_args!(
        "the keys of all datasets ({datasets}) are wrapped under the key {}; copy {} to where its backup is. \
         Backups of the database from before need the old key",
        ring.current(),
        path.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
