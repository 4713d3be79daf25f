//! `pais restore`: a backup in a new data directory.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use pais::config::Settings;
use pais::db::key_ring::KeyRing;
use pais::db::{backup, data_keys, service_keys};
use pais::storage::secret_file;
use pais_seal::SecretKey;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::backup::{BackupManifest, ClientProgram, DUMP, KEY, KEYS, client, faults};
use super::data_dir::{self, Home};
use super::database::{Database, SettingsArgs};
use super::key_file::{self, KeyPlace};
use super::output::print_line;
use super::process::{self, handle_signals};
use super::{block_on, keys};

/// The directory of an embedded database in its data directory.
const DATABASE: &str = "postgres";

/// Bytes that are read at a time.
const BLOCK: usize = 256 << 10;

/// Arguments of `pais restore`.
#[derive(clap::Args)]
pub(crate) struct RestoreArgs {
    /// The directory of the backup
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// The key-encryption key, if it is not in the backup
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingsArgs,
}

/// Restores a backup into a data directory that is new or empty, with an embedded database.
///
/// Everything is made and checked in a directory of its own inside the data directory, and then moved to its
/// final place. So the restore removes only files that it has created itself.
///
/// # Errors
/// If the backup is damaged, its key is not there, or the data directory or its database cannot be used.
/// Then the data directory is as it was.
pub(crate) fn run(args: &RestoreArgs) -> anyhow::Result<()> {
    process::forbid_dumps();
    let settings = args.settings.start()?;
    if settings.database.url.is_some() {
        bail!(
            "`pais restore` makes an embedded database, but database.url (or DATABASE_URL) names another \
             one; unset it, or restore {DUMP} there with pg_restore"
        );
    }
    let data_dir = &settings.server.data_dir;
    refuse_used(data_dir, "--data-dir")?;
    if let Some(directory) = &settings.encryption.data_key_dir {
        refuse_used(directory, "encryption.data_key_dir")?;
    }
    let (manifest, faults) = faults(&args.backup)?;
    if !faults.is_empty() {
        bail!(
            "the backup {} is damaged: {}",
            args.backup.display(),
            faults.join("; ")
        );
    }
    let backup_keys = backup_keys(&settings, args, &manifest)?;
    let is_new = !data_dir.exists();
    let home = Home::of_service(data_dir)?;
    let restored = refuse_used(data_dir, "--data-dir")
        .and_then(|()| restore_inside(&settings, args, &backup_keys));
    if restored.is_err() && is_new {
        home.remove();
    }
    let datasets = restored?;
    Ok(print_line(format_args!(
        "{}: the backup of {}, datasets {datasets}, whose keys open; start it: \
         pais serve --data-dir {}",
        data_dir.display(),
        manifest.created_at,
        data_dir.display()
    ))?)
}

/// Refuses a directory that has anything but the lock of a process that has ended.
fn refuse_used(directory: &Path, setting: &str) -> anyhow::Result<()> {
    let mut entries = fs::read_dir(directory).into_iter().flatten();
    if entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != data_dir::FILE)) {
        bail!(
            "{} is not empty; name a new directory with {setting}",
            directory.display()
        );
    }
    Ok(())
}

/// Restores in a directory inside the data directory, and moves what is there to its place. Returns the
/// number of datasets.
fn restore_inside(
    settings: &Settings,
    args: &RestoreArgs,
    backup_keys: &[SecretKey],
) -> anyhow::Result<usize> {
    let data_dir = &settings.server.data_dir;
    let staging = tempfile::Builder::new()
        .prefix(".restore-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(data_dir)
        .with_context(|| format!("cannot make a directory in {}", data_dir.display()))?;
    let mut staged = settings.clone();
    staged.server.data_dir = staging.path().to_owned();
    staged.encryption.data_key_dir = None;
    staged.encryption.key_file = None;
    let datasets = block_on(restore(&staged, args, backup_keys))?;
    let mut made = Vec::new();
    if let Err(error) = place(settings, staging.path(), backup_keys, &mut made) {
        for file in made {
            fs::remove_file(file)?;
        }
        return Err(error);
    }
    fs::File::open(data_dir)?.sync_all()?;
    Ok(datasets)
}

/// Moves what was restored to the places that the settings name, the database last: a database without its keys is
/// not left behind. The files in `made` are useless if it fails.
fn place(
    settings: &Settings,
    staging: &Path,
    backup_keys: &[SecretKey],
    made: &mut Vec<PathBuf>,
) -> anyhow::Result<()> {
    let data_dir = &settings.server.data_dir;
    if !backup_keys.is_empty()
        && let KeyPlace::File { path, .. } = KeyPlace::of(settings)?
        && !path.exists()
    {
        key_file::write(&path, backup_keys)?;
        made.push(path);
    }
    if let Some(directory) = &settings.encryption.data_key_dir {
        data_keys::DataKeys::directory(directory)?;
        for entry in fs::read_dir(staging.join(KEYS))? {
            let entry = entry?;
            let target = directory.join(entry.file_name());
            secret_file::create_file(&target, &fs::read(entry.path())?)?;
            made.push(target);
        }
    }
    let has_keys = settings.encryption.data_key_dir.is_none();
    let (staged_keys, keys) = (staging.join(KEYS), data_dir.join(KEYS));
    let is_used = || {
        let directory = data_dir.display();
        format!("cannot move what was restored to {directory}; another command uses this directory")
    };
    // Each fails where another command has made one meanwhile.
    if has_keys {
        fs::rename(&staged_keys, &keys).with_context(is_used)?;
    }
    let moved = fs::rename(staging.join(DATABASE), data_dir.join(DATABASE)).with_context(is_used);
    if moved.is_err() && has_keys {
        fs::rename(&keys, &staged_keys)?;
    }
    moved
}

/// The keys that open the backup, the current one first.
fn backup_keys(
    settings: &Settings,
    args: &RestoreArgs,
    manifest: &BackupManifest,
) -> anyhow::Result<Vec<SecretKey>> {
    let Some(fingerprint) = &manifest.key else {
        return Ok(Vec::new());
    };
    let in_place = KeyPlace::of(settings)?.keys_if_any()?.unwrap_or_default();
    let keys = if let Some(path) = &args.key {
        let keys = key_file::read(path)?;
        keys.with_context(|| format!("there is no key file {}", path.display()))?
    } else if manifest.has_key() {
        key_file::read(&args.backup.join(KEY))?.unwrap_or_default()
    } else {
        in_place.clone()
    };
    if keys.is_empty() {
        bail!(
            "the backup does not have its key, without which no raw row can be read; name the file of the \
             key with the fingerprint {fingerprint}: --key FILE"
        );
    }
    let mut of_backup: Vec<SecretKey> = keys;
    let is_of_backup = |key: &SecretKey| KeyRing::new(key).current().to_string() == *fingerprint;
    if !in_place.is_empty() && !in_place.iter().any(is_of_backup) {
        bail!(
            "the settings name another key than that of the backup, which has the fingerprint \
             {fingerprint}; unset encryption.key_file or encryption.key_base64, or name a file there that \
             does not exist"
        );
    }
    let Some(current) = of_backup.iter().position(is_of_backup) else {
        let found = KeyRing::new(&of_backup[0]).current();
        bail!(
            "the key is not that of the backup: the backup has the key with the fingerprint \
             {fingerprint}, this is {found}"
        );
    };
    of_backup.swap(0, current);
    Ok(of_backup)
}

/// Returns the number of datasets.
async fn restore(
    settings: &Settings,
    args: &RestoreArgs,
    backup_keys: &[SecretKey],
) -> anyhow::Result<usize> {
    let stop = handle_signals()?;
    let database = Database::open_unmigrated(settings).await?;
    let loaded = tokio::select! {
        loaded = load(settings, &database, &args.backup) => loaded,
        () = stop.shutdown.cancelled() => Err(anyhow::anyhow!("stopped; nothing is restored")),
    };
    if let Err(error) = loaded {
        database.close().await?;
        return Err(error);
    }
    // Applies the migrations that are newer than the backup.
    let database = database.migrated().await?;
    let opened = open(settings, &database, &args.backup, backup_keys).await;
    database.close().await?;
    opened
}

/// Loads the dump into the new database.
async fn load(settings: &Settings, database: &Database, backup: &Path) -> anyhow::Result<()> {
    let mut command = client("pg_restore", settings, database).await?;
    command
        .args(["--no-owner", "--exit-on-error", "--single-transaction"])
        .arg("--dbname")
        .arg("")
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut program = ClientProgram::spawn(&mut command)?;
    let sink = program.child.stdin.take();
    let mut sink = sink.context("pg_restore has no input")?;
    let mut file = File::open(backup.join(DUMP)).await?;
    let bar = ProgressBar::new(file.metadata().await?.len());
    bar.set_style(ProgressStyle::with_template(
        "restoring the database [{bar:24}] {bytes} of {total_bytes}, {elapsed}",
    )?);
    let mut block = vec![0; BLOCK];
    let mut copied = Ok(());
    loop {
        let read = file.read(&mut block).await?;
        if read == 0 {
            break;
        }
        copied = sink.write_all(&block[..read]).await;
        if copied.is_err() {
            // The end of the program says why.
            break;
        }
        bar.inc(read as u64);
    }
    drop(sink);
    bar.finish_and_clear();
    let ended = program.ended().await;
    ended.context("cannot restore the database")?;
    Ok(copied?)
}

/// Puts the keys into their places, and opens every one.
async fn open(
    settings: &Settings,
    database: &Database,
    backup: &Path,
    backup_keys: &[SecretKey],
) -> anyhow::Result<usize> {
    let store = &database.store;
    if let data_keys::DataKeys::Directory(to) = store.data_keys() {
        data_keys::DataKeys::directory(to)?;
        for entry in fs::read_dir(backup.join(KEYS))? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            secret_file::create_file(&target, &fs::read(entry.path())?)?;
        }
    }
    backup::adopt(store).await?;
    if backup_keys.is_empty() {
        return Ok(0);
    }
    if let KeyPlace::File { path, .. } = KeyPlace::of(settings)? {
        key_file::write(&path, backup_keys)?;
    }
    let ring = keys::open(settings, store).await?;
    let checked = service_keys::check(store, &ring).await?;
    if let Some(dataset) = checked.bad.first() {
        bail!(
            "the keys of {} datasets do not open, such as that of {}",
            checked.bad.len(),
            dataset.0
        );
    }
    Ok(checked.good)
}
