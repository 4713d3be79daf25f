//! `pais backup`: a directory with a dump of the database, the wrapped keys of its datasets, and a manifest.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use pais::config::Settings;
use pais::db::backup::{self, Snapshot};
use pais::storage::directory_of;
use pais::storage::secret_file;
use pais_package::PackagedFile;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::io::{AsyncBufReadExt, AsyncReadExt};
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::JoinHandle;

use super::database::{Database, SettingsArgs, embedded, require_database};
use super::key_file::KeyPlace;
use super::output::{note, print_line};
use super::process::{self, handle_signals};
use super::{block_on, keys};

/// The manifest of a backup.
pub(super) const MANIFEST: &str = "manifest.json";

/// The dump, in the custom format of `pg_dump`.
pub(super) const DUMP: &str = "database.dump";

/// The directory of the wrapped keys.
pub(super) const KEYS: &str = "dataset-keys";

/// The key-encryption key, if it is in the backup.
pub(super) const KEY: &str = "key-encryption.key";

/// Maximum number of bytes of a manifest: two million files.
const MANIFEST_BYTES: u64 = 256 << 20;

/// How often the state of the database is taken again when datasets are deleted before their keys are
/// copied.
const ATTEMPTS: u32 = 20;

/// Bytes that are copied at a time.
const BLOCK: usize = 256 << 10;

/// Arguments of `pais backup`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BackupArgs {
    /// The directory to make; one that exists is not replaced
    #[arg(value_name = "OUT", required = true)]
    out: Option<PathBuf>,
    /// Put the key-encryption key into the backup: anyone who has the backup can then read every raw row
    #[arg(long)]
    with_key: bool,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(subcommand)]
    command: Option<BackupCommand>,
}

/// The subcommand of `pais backup`.
#[derive(clap::Subcommand)]
pub(crate) enum BackupCommand {
    /// Check a backup: exit status 0 if all its files are unchanged, 1 if not, 2 if it cannot
    /// be read
    Verify {
        /// The directory of the backup
        #[arg(value_name = "OUT")]
        backup: PathBuf,
    },
}

/// What a backup has.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BackupManifest {
    /// The version of the program that made it.
    pub version: String,
    /// When it was begun: it has what was stored by then.
    pub created_at: String,
    /// The fingerprint of the key-encryption key that opens it; absent where no service has started yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its files.
    pub files: Vec<PackagedFile>,
}

/// Runs `pais backup` or its subcommand.
///
/// # Errors
/// If the settings are invalid, or the backup cannot be made.
pub(crate) fn run(args: BackupArgs) -> anyhow::Result<ExitCode> {
    process::forbid_dumps();
    if let Some(BackupCommand::Verify { backup }) = args.command {
        return Ok(verify(&backup));
    }
    let out = args.out.context("name the directory to make")?;
    let settings = args.settings.start()?;
    block_on(back_up(&settings, &out, args.with_key))?;
    Ok(ExitCode::SUCCESS)
}

async fn back_up(settings: &Settings, out: &Path, with_key: bool) -> anyhow::Result<()> {
    if out.exists() {
        bail!("{} exists; choose another name", out.display());
    }
    require_database(settings)?;
    let parent = directory_of(out);
    // An incomplete backup never has the name of a complete one.
    let work = tempfile::Builder::new()
        .prefix(".pais-backup-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(parent)
        .with_context(|| format!("cannot make a directory in {}", parent.display()))?;
    let stop = handle_signals()?;
    let database = Database::open_unmigrated(settings).await?;
    let written = tokio::select! {
        written = write(settings, &database, work.path(), with_key) => written,
        () = stop.shutdown.cancelled() => Err(anyhow::anyhow!("stopped; there is no backup")),
    };
    let closed = database.close().await;
    let manifest = written?;
    closed?;
    File::open(work.path())?.sync_all()?;
    fs::rename(work.path(), out)
        .with_context(|| format!("cannot give the backup its name {}", out.display()))?;
    // It has another name now, and is not removed.
    let _ = work.keep();
    File::open(parent)?.sync_all()?;
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    print_line(format_args!(
        "{}: files {}, {:.1} MiB, as of {}",
        out.display(),
        manifest.files.len(),
        bytes as f64 / f64::from(1 << 20),
        manifest.created_at
    ))?;
    match (&manifest.key, with_key) {
        (_, true) => note(
            "it has the key: whoever has this backup can read every raw row; keep it like the data",
        ),
        (Some(key), false) => note(format_args!(
            "it does not have the key {key}, without which no raw row can be read; keep a copy of that \
             elsewhere"
        )),
        (None, false) => {}
    }
    Ok(())
}

/// Writes the files of the backup into a new directory.
async fn write(
    settings: &Settings,
    database: &Database,
    directory: &Path,
    with_key: bool,
) -> anyhow::Result<BackupManifest> {
    let created_at = OffsetDateTime::now_utc().truncate_to_second();
    let created_at = created_at.format(&Rfc3339)?;
    let snapshot = snapshot_with_keys(database, &directory.join(KEYS)).await?;
    let mut files = Vec::new();
    let dump = dump(settings, database, &snapshot, &directory.join(DUMP)).await;
    files.push(dump.context("cannot dump the database")?);
    for entry in fs::read_dir(directory.join(KEYS))? {
        let name = entry?.file_name();
        files.push(digest(
            directory,
            &format!("{KEYS}/{}", name.to_string_lossy()),
        )?);
    }
    if with_key {
        copy_key(settings, database, directory).await?;
        files.push(digest(directory, KEY)?);
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let manifest = BackupManifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        created_at,
        key: snapshot.key.map(|key| key.to_string()),
        files,
    };
    let text = serde_json::to_string_pretty(&manifest)?;
    secret_file::create_file(&directory.join(MANIFEST), text.as_bytes())?;
    Ok(manifest)
}

/// A state of the database, and the keys of its datasets in a new directory. Where a dataset was deleted
/// since the state was taken, a later one is taken: its key must not be in the backup. Keys are not rotated
/// meanwhile, because the state has the service's key as it is wrapped now.
async fn snapshot_with_keys(database: &Database, directory: &Path) -> anyhow::Result<Snapshot> {
    let store = &database.store;
    for _ in 0..ATTEMPTS {
        DirBuilder::new().mode(0o700).create(directory)?;
        let rotation = backup::hold_rotation(store).await?;
        let snapshot = Snapshot::export(store).await?;
        let keys = store.data_keys();
        let is_complete = keys.copy(&snapshot.key_owners, directory).await?;
        drop(rotation);
        if is_complete
            && backup::key_owners(store)
                .await?
                .is_superset(&snapshot.key_owners)
        {
            return Ok(snapshot);
        }
        fs::remove_dir_all(directory)?;
    }
    bail!(
        "the key of a dataset or a submission is missing; `pais keys check` names it. Where datasets are \
         being deleted, try again"
    )
}

/// Writes the dump of a state of the database.
async fn dump(
    settings: &Settings,
    database: &Database,
    snapshot: &Snapshot,
    path: &Path,
) -> anyhow::Result<PackagedFile> {
    let mut command = client("pg_dump", settings, database).await?;
    command
        .args(["--format", "custom", "--no-owner", "--snapshot"])
        .arg(&snapshot.name)
        .stdout(Stdio::piped());
    let mut program = ClientProgram::spawn(&mut command)?;
    let source = program.child.stdout.take();
    let mut source = source.context("the dump has no output")?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path)?;
    let bar = ProgressBar::no_length();
    bar.set_style(ProgressStyle::with_template(
        "dumping the database: {bytes}, {elapsed}",
    )?);
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut block = vec![0; BLOCK];
    loop {
        let read = source.read(&mut block).await?;
        if read == 0 {
            break;
        }
        hash.update(&block[..read]);
        file.write_all(&block[..read])?;
        bytes += read as u64;
        bar.set_position(bytes);
    }
    bar.finish_and_clear();
    file.sync_all()?;
    program.ended().await?;
    Ok(PackagedFile {
        bytes,
        name: DUMP.to_owned(),
        sha256: hex::encode(hash.finalize()),
    })
}

/// Puts the keys of the service into the backup: two while they are being rotated.
async fn copy_key(
    settings: &Settings,
    database: &Database,
    directory: &Path,
) -> anyhow::Result<()> {
    // Fails where the key is not that of the database.
    keys::open(settings, &database.store).await?;
    let keys = KeyPlace::of(settings)?.keys()?;
    super::key_file::write(&directory.join(KEY), &keys)?;
    Ok(())
}

/// A client program of PostgreSQL that connects to the database as its owner. The password is in its
/// environment, where other users do not see it.
pub(super) async fn client(
    name: &str,
    settings: &Settings,
    database: &Database,
) -> anyhow::Result<Command> {
    let options = database.store.owner().connect_options();
    let cluster_of = match settings.database.url {
        Some(_) => None,
        None => Some(settings.server.data_dir.as_path()),
    };
    let mut command = pais_postgres::client(name, cluster_of, &embedded(settings)).await?;
    command.envs(environment(&options));
    Ok(command)
}

/// The parameters of a connection as the variables of PostgreSQL's own programs.
fn environment(options: &PgConnectOptions) -> Vec<(&'static str, OsString)> {
    let host = match options.get_socket() {
        Some(socket) => socket.clone().into_os_string(),
        None => options.get_host().into(),
    };
    let mut variables = vec![
        ("PGHOST", host),
        ("PGPORT", options.get_port().to_string().into()),
        ("PGUSER", options.get_username().into()),
    ];
    let database = options
        .get_database()
        .unwrap_or_else(|| options.get_username());
    variables.push(("PGDATABASE", database.into()));
    let url = options.to_url_lossy();
    if let Some(password) = url.password() {
        let password = percent_decode_str(password).decode_utf8_lossy();
        variables.push(("PGPASSWORD", password.into_owned().into()));
    }
    for (name, value) in url.query_pairs() {
        let variable = match name.as_ref() {
            "sslmode" => "PGSSLMODE",
            "sslrootcert" => "PGSSLROOTCERT",
            "sslcert" => "PGSSLCERT",
            "sslkey" => "PGSSLKEY",
            _ => continue,
        };
        variables.push((variable, value.into_owned().into()));
    }
    variables
}

/// A running client program of PostgreSQL.
pub(super) struct ClientProgram {
    pub(super) child: Child,
    /// The first errors among its messages, which are read while it runs: a program whose messages nobody reads
    /// stops.
    errors: JoinHandle<Vec<String>>,
}

impl ClientProgram {
    /// Starts a program.
    pub(super) fn spawn(command: &mut Command) -> anyhow::Result<Self> {
        let program = command.as_std().get_program().to_owned();
        let child = command.stderr(Stdio::piped()).spawn();
        let mut child = child.with_context(|| {
            format!(
                "cannot run {}; install the client programs of PostgreSQL (Debian: postgresql-client)",
                program.display()
            )
        })?;
        let messages = child.stderr.take().context("the program has no messages")?;
        let errors = tokio::spawn(first_errors(messages));
        Ok(Self { child, errors })
    }

    /// Waits for its end.
    pub(super) async fn ended(mut self) -> anyhow::Result<()> {
        let status = self.child.wait().await?;
        if status.success() {
            return Ok(());
        }
        bail!("{status}: {}", self.errors.await?.join("; "))
    }
}

/// Reads the messages of a program to their end. Only lines of errors are returned: others may quote rows.
async fn first_errors(messages: ChildStderr) -> Vec<String> {
    const MOST: usize = 3;
    let mut lines = tokio::io::BufReader::new(messages).split(b'\n');
    let mut errors: Vec<String> = Vec::new();
    while let Ok(Some(line)) = lines.next_segment().await {
        let line = String::from_utf8_lossy(&line);
        if line.contains("error:") && errors.len() < MOST {
            errors.push(line.into_owned());
        }
    }
    errors
}

/// The entry of a file of a backup in its manifest.
fn digest(directory: &Path, name: &str) -> io::Result<PackagedFile> {
    let mut file = BufReader::with_capacity(BLOCK, File::open(directory.join(name))?);
    let mut hash = Sha256::new();
    let mut bytes = 0;
    let mut block = vec![0; BLOCK];
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            break;
        }
        hash.update(&block[..read]);
        bytes += read as u64;
    }
    Ok(PackagedFile {
        bytes,
        name: name.to_owned(),
        sha256: hex::encode(hash.finalize()),
    })
}

/// `pais backup verify`.
fn verify(backup: &Path) -> ExitCode {
    match faults(backup) {
        Ok((manifest, faults)) if faults.is_empty() => {
            let done = print_line(format_args!(
                "{}: files {}, all as they were written at {}{}",
                backup.display(),
                manifest.files.len(),
                manifest.created_at,
                if manifest.has_key() {
                    ", the key among them"
                } else {
                    ", without the key"
                }
            ));
            ExitCode::from(u8::from(done.is_err()))
        }
        Ok((_, faults)) => {
            for fault in faults {
                note(format_args!("{}: {fault}", backup.display()));
            }
            ExitCode::from(1)
        }
        Err(error) => {
            note(format_args!("pais: {error:#}"));
            ExitCode::from(2)
        }
    }
}

impl BackupManifest {
    /// Reads the manifest of a backup.
    ///
    /// # Errors
    /// When there is none, or it is none.
    pub(super) fn read(backup: &Path) -> anyhow::Result<Self> {
        let path = backup.join(MANIFEST);
        let failed = || format!("{} is no manifest of a backup", path.display());
        let file = File::open(&path).with_context(failed)?;
        let manifest: Self = serde_json::from_reader(BufReader::new(file.take(MANIFEST_BYTES)))
            .with_context(failed)?;
        for file in &manifest.files {
            let mut parts = Path::new(&file.name).components();
            if file.name.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
                bail!("{}: a file is not inside the backup", path.display());
            }
        }
        Ok(manifest)
    }

    /// Whether the backup has the key-encryption key.
    pub(super) fn has_key(&self) -> bool {
        self.files.iter().any(|file| file.name == KEY)
    }
}

/// The manifest of a backup, and where the files differ from it.
///
/// # Errors
/// When there is no manifest, or a file cannot be read.
pub(super) fn faults(backup: &Path) -> anyhow::Result<(BackupManifest, Vec<String>)> {
    let manifest = BackupManifest::read(backup)?;
    let mut faults = Vec::new();
    for file in &manifest.files {
        match digest(backup, &file.name) {
            Ok(found) if found == *file => {}
            Ok(_) => faults.push(format!("{} was changed", file.name)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                faults.push(format!("{} is missing", file.name));
            }
            Err(error) => {
                let path = backup.join(&file.name);
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        }
    }
    for name in names(backup)? {
        if name != MANIFEST && !manifest.files.iter().any(|file| file.name == name) {
            faults.push(format!("{name} is not in the manifest"));
        }
    }
    if !manifest.files.iter().any(|file| file.name == DUMP) {
        faults.push(format!("there is no {DUMP}"));
    }
    Ok((manifest, faults))
}

/// The names of the files in a backup, and in its directory of keys.
fn names(backup: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(backup)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != KEYS || !entry.file_type()?.is_dir() {
            names.push(name);
            continue;
        }
        for key in fs::read_dir(entry.path())? {
            names.push(format!("{KEYS}/{}", key?.file_name().to_string_lossy()));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use std::process::Stdio;

    use tokio::io::AsyncReadExt;
    use tokio::process::Command;

    use super::{BackupManifest, ClientProgram, DUMP, MANIFEST, digest, environment, faults};

    #[test]
    fn a_changed_a_missing_and_an_added_file_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let backup = dir.path();
        fs::create_dir(backup.join("dataset-keys")).unwrap();
        fs::write(backup.join(DUMP), "dump").unwrap();
        fs::write(backup.join("dataset-keys/a.key"), "key").unwrap();
        let manifest = BackupManifest {
            version: "1".to_owned(),
            created_at: "now".to_owned(),
            key: None,
            files: vec![
                digest(backup, DUMP).unwrap(),
                digest(backup, "dataset-keys/a.key").unwrap(),
            ],
        };
        let text = serde_json::to_string(&manifest).unwrap();
        fs::write(backup.join(MANIFEST), &text).unwrap();
        assert!(faults(backup).unwrap().1.is_empty());
        fs::write(backup.join(DUMP), "dumP").unwrap();
        fs::rename(
            backup.join("dataset-keys/a.key"),
            backup.join("dataset-keys/b.key"),
        )
        .unwrap();
        assert_eq!(
            faults(backup).unwrap().1,
            [
                "database.dump was changed",
                "dataset-keys/a.key is missing",
                "dataset-keys/b.key is not in the manifest"
            ]
        );
        fs::write(backup.join(MANIFEST), text.replace(DUMP, "../etc/passwd")).unwrap();
        assert!(faults(backup).is_err());
    }

    #[test]
    fn a_connection_is_that_of_its_url() {
        let url = "postgres://ann:p%40ss%2Fword@db.example:5433/pais?sslmode=require";
        let variables = environment(&url.parse().unwrap());
        let of = |name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.unwrap().1.to_str().unwrap().to_owned()
        };
        assert_eq!(of("PGHOST"), "db.example");
        assert_eq!(of("PGPORT"), "5433");
        assert_eq!(of("PGUSER"), "ann");
        assert_eq!(of("PGDATABASE"), "pais");
        assert_eq!(of("PGPASSWORD"), "p@ss/word");
        assert_eq!(of("PGSSLMODE"), "require");
    }
    #[tokio::test]
    async fn a_program_with_many_messages_does_not_wait_for_its_reader() {
        let mut command = Command::new("sh");
        let script = "head -c 1000000 /dev/zero | tr '\\0' '\\n' >&2; echo row; echo row secret >&2; \
                      echo pg_dump: error: broken >&2; exit 3";
        command.args(["-c", script]).stdout(Stdio::piped());
        let mut program = ClientProgram::spawn(&mut command).unwrap();
        let mut output = String::new();
        let mut source = program.child.stdout.take().unwrap();
        source.read_to_string(&mut output).await.unwrap();
        assert_eq!(output, "row\n");
        let error = program.ended().await.unwrap_err();
        assert_eq!(error.to_string(), "exit status: 3: pg_dump: error: broken");
    }
}
