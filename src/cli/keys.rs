//! The key-encryption key. It comes from the settings, or else from a file in the data directory,
//! which is created at the first start. The key is never logged.

use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pais::config::Settings;
use pais::store::seal::KeyRing;
use pais::store::{Store, datasets};
use rand::TryRng;
use secrecy::ExposeSecret;

const FILE: &str = "key-encryption.key";
const KEY_BYTES: usize = 32;

/// Opens the key ring of the service.
///
/// # Errors
/// If the key cannot be read or created, or does not open the data key of the newest dataset.
pub(crate) async fn open(settings: &Settings, store: &Store) -> anyhow::Result<KeyRing> {
    let sealed = datasets::newest_key(store).await?;
    let encryption = &settings.encryption;
    let key = if let Some(text) = &encryption.key_base64 {
        from_base64(text.expose_secret().as_bytes())
            .context("encryption.key_base64 is invalid; expected 32 bytes as base64")?
    } else if let Some(path) = &encryption.key_file {
        read(path)?.with_context(|| {
            format!(
                "the key file {} (encryption.key_file) does not exist",
                path.display()
            )
        })?
    } else {
        let path = settings.server.data_dir.join(FILE);
        match read(&path)? {
            Some(key) => key,
            None if sealed.is_some() => bail!(
                "the key file {} is missing, but datasets are sealed with it; restore it",
                path.display()
            ),
            None => create(&path)?,
        }
    };
    let ring = KeyRing::new(&key);
    if let Some((dataset, wrapped)) = sealed {
        ring.open(dataset, &wrapped)
            .context("the key-encryption key is not the one of this database; restore that key")?;
    }
    Ok(ring)
}

fn read(path: &Path) -> anyhow::Result<Option<[u8; KEY_BYTES]>> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(error)
                .with_context(|| format!("cannot read the key file {}", path.display()));
        }
    };
    let key = <[u8; KEY_BYTES]>::try_from(bytes.as_slice())
        .ok()
        .or_else(|| from_base64(bytes.trim_ascii()));
    match key {
        Some(key) => Ok(Some(key)),
        None => bail!(
            "the key file {} is invalid; expected 32 bytes, raw or as base64",
            path.display()
        ),
    }
}

fn from_base64(text: &[u8]) -> Option<[u8; KEY_BYTES]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

/// Creates the key file atomically: with a partly written key, the data sealed with it is lost.
fn create(path: &Path) -> anyhow::Result<[u8; KEY_BYTES]> {
    let failed = || format!("cannot create the key file {}", path.display());
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir).with_context(failed)?;
    let mut key = [0; KEY_BYTES];
    rand::rngs::SysRng
        .try_fill_bytes(&mut key)
        .context("the operating system returned no random bytes")?;
    // The tempfile crate creates files with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(dir).with_context(failed)?;
    file.write_all((STANDARD.encode(key) + "\n").as_bytes())
        .and_then(|()| file.as_file().sync_all())
        .with_context(failed)?;
    match file.persist_noclobber(path) {
        Ok(_) => {
            std::fs::File::open(dir)
                .and_then(|dir| dir.sync_all())
                .with_context(failed)?;
            tracing::info!(path = %path.display(), "created a key-encryption key; keep a copy apart from the database");
            Ok(key)
        }
        // Another process created the file first; use its key.
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
            read(path)?.with_context(failed)
        }
        Err(error) => Err(error.error).with_context(failed),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{FILE, create, read};

    #[test]
    fn a_key_is_created_once_and_only_its_owner_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        assert_eq!(read(&path).unwrap(), None);
        let key = create(&path).unwrap();
        assert_eq!(read(&path).unwrap(), Some(key));
        assert_eq!(create(&path).unwrap(), key);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(&path, key).unwrap();
        assert_eq!(read(&path).unwrap(), Some(key));
        std::fs::write(&path, "short").unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(!message.contains("short"), "{message}");
    }
}
