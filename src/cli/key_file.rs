//! The key-encryption key in a file or in the settings. It is never logged.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pais::config::Settings;
use pais::db::key_ring::KeySource;
use pais::storage::directory_of;
pub(crate) use pais::storage::secret_file::read_keys as read;
use pais::storage::secret_file::{KeyFileError, create_file, key_of_base64, replace_secret};
use pais_seal::{SecretKey, random_key};
use secrecy::ExposeSecret;
use zeroize::Zeroizing;

/// The file in the data directory, where no other is set.
const FILE: &str = "key-encryption.key";

/// Where the key-encryption key is.
pub(crate) enum KeyPlace {
    /// In a file, which exists or can be made.
    File {
        /// The file.
        path: PathBuf,
        /// Whether a missing file is made: only for an embedded database, which no other service uses.
        is_made: bool,
    },
    /// In the settings.
    Settings(SecretKey),
}

impl KeyPlace {
    /// The place that the settings name.
    ///
    /// # Errors
    /// When `encryption.key_base64` is not a key.
    pub(crate) fn of(settings: &Settings) -> anyhow::Result<Self> {
        let encryption = &settings.encryption;
        if let Some(text) = &encryption.key_base64 {
            let key = key_of_base64(text.expose_secret().as_bytes());
            let key =
                key.context("encryption.key_base64 is invalid; expected 32 bytes as base64")?;
            return Ok(Self::Settings(key));
        }
        Ok(match &encryption.key_file {
            Some(path) => Self::File {
                path: path.clone(),
                is_made: false,
            },
            None => Self::File {
                path: settings.server.data_dir.join(FILE),
                is_made: settings.database.url.is_none(),
            },
        })
    }

    /// The keys of a database that has some, the current one first: two while the keys are being rotated.
    ///
    /// # Errors
    /// When there is no key, or its file cannot be used.
    pub(crate) fn keys(&self) -> anyhow::Result<Vec<SecretKey>> {
        let (path, is_made) = match self {
            Self::Settings(key) => return Ok(vec![key.clone()]),
            Self::File { path, is_made } => (path, *is_made),
        };
        match read(path)? {
            Some(keys) => Ok(keys),
            None if is_made => bail!(
                "the key file {} is missing, but datasets are sealed with it; restore it",
                path.display()
            ),
            None => Err(not_made(path)),
        }
    }

    /// The keys of a database that has none yet: those that there are, or a new one.
    ///
    /// # Errors
    /// As [`Self::keys`], and when a new one cannot be written.
    pub(crate) fn keys_or_new(&self) -> anyhow::Result<Vec<SecretKey>> {
        match self {
            Self::File { path, is_made } if *is_made && self.keys_if_any()?.is_none() => {
                Ok(vec![create(path)?])
            }
            _ => self.keys(),
        }
    }

    /// Whether there are keys for a new database. If not, its first start makes one.
    ///
    /// # Errors
    /// When the file cannot be used, or is missing and is not made.
    pub(crate) fn has_keys_for_new(&self) -> anyhow::Result<bool> {
        match (self, self.keys_if_any()?) {
            (Self::File { path, is_made }, None) if !is_made => Err(not_made(path)),
            (_, keys) => Ok(keys.is_some()),
        }
    }

    /// The keys that there are, the current one first; none is made.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub(crate) fn keys_if_any(&self) -> anyhow::Result<Option<Vec<SecretKey>>> {
        match self {
            Self::Settings(key) => Ok(Some(vec![key.clone()])),
            Self::File { path, .. } => Ok(read(path)?),
        }
    }

    /// Reads the keys again, for a service that runs while they are rotated.
    pub(crate) fn source(self) -> Option<KeySource> {
        match self {
            Self::Settings(_) => None,
            Self::File { path, .. } => Some(Box::new(move || read(&path).ok().flatten())),
        }
    }
}

fn not_made(path: &Path) -> anyhow::Error {
    anyhow!(
        "the key file {} (encryption.key_file) does not exist. With an external database the \
         key is not made at the start, because every service that uses the database needs the \
         same one: make it once with `pais keys generate {}`, and copy it",
        path.display(),
        path.display()
    )
}

/// Makes a key file atomically: with a partly written key, what is sealed with it is lost. If another
/// process has made it first, returns that key.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn create(path: &Path) -> anyhow::Result<SecretKey> {
    let key = random_key()?;
    let text = lines(std::slice::from_ref(&key));
    let directory = directory_of(path);
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    match create_file(path, text.as_bytes()) {
        Ok(()) => {
            tracing::info!(path = %path.display(), "created a key-encryption key; keep a copy apart from the database");
            Ok(key)
        }
        Err(KeyFileError::Io { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {
            let keys = read(path)?.unwrap_or_default();
            keys.into_iter()
                .next()
                .context("the key file was removed while it was read")
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes the keys to a file that does not exist, with mode 0600.
///
/// # Errors
/// When the file exists or cannot be written.
pub(crate) fn write(path: &Path, keys: &[SecretKey]) -> Result<(), KeyFileError> {
    create_file(path, lines(keys).as_bytes())
}

/// Replaces the keys in a file; the old bytes are overwritten.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn replace(path: &Path, keys: &[SecretKey]) -> Result<(), KeyFileError> {
    replace_secret(path, lines(keys).as_bytes())
}

fn lines(keys: &[SecretKey]) -> Zeroizing<String> {
    let lines = keys
        .iter()
        .map(|key| STANDARD.encode(key.as_slice()) + "\n");
    Zeroizing::new(lines.collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::{FILE, create, read, replace};

    #[test]
    fn a_key_is_created_once_and_only_its_owner_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        assert_eq!(read(&path).unwrap(), None);
        let key = create(&path).unwrap();
        assert_eq!(read(&path).unwrap(), Some(vec![key.clone()]));
        assert_eq!(create(&path).unwrap(), key);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let other = super::random_key().unwrap();
        replace(&path, &[other.clone(), key.clone()]).unwrap();
        assert_eq!(read(&path).unwrap(), Some(vec![other, key.clone()]));
        fs::write(&path, key.as_slice()).unwrap();
        assert_eq!(read(&path).unwrap(), Some(vec![key]));
        fs::write(&path, "short").unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(!message.contains("short"), "{message}");
    }

    #[test]
    fn a_key_file_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        create(&path).unwrap();
        for mode in [0o640, 0o604, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let message = read(&path).unwrap_err().to_string();
            assert!(message.contains(&format!("{mode:04o}")), "{message}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(read(&path).is_ok());
    }
}
