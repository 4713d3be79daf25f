//! The key-encryption key: from the settings, else from a file in the data directory, which is
//! made at the first start. It is never logged.

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

/// The key ring of the service; sees to it that it opens the datasets there are.
pub async fn open(settings: &Settings, store: &Store) -> anyhow::Result<KeyRing> {
    let sealed = datasets::newest_key(store).await?;
    let encryption = &settings.encryption;
    let key = if let Some(text) = &encryption.key_base64 {
        from_base64(text.expose_secret().as_bytes())
            .context("encryption.key_base64 is not 32 bytes as base64")?
    } else if let Some(path) = &encryption.key_file {
        read(path)?.with_context(|| format!("there is no key file {}", path.display()))?
    } else {
        let path = settings.server.data_dir.join(FILE);
        match read(&path)? {
            Some(key) => key,
            None if sealed.is_some() => bail!(
                "the key file {} is gone, and the database has datasets sealed with it; put it back",
                path.display()
            ),
            None => make(&path)?,
        }
    };
    let ring = KeyRing::new(&key);
    if let Some((dataset, wrapped)) = sealed {
        ring.open(dataset, &wrapped)
            .context("the key-encryption key is not the one of this database")?;
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
            "the key file {} holds neither 32 bytes nor their base64",
            path.display()
        ),
    }
}

fn from_base64(text: &[u8]) -> Option<[u8; KEY_BYTES]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

/// Makes the file whole or not at all: a torn key would lose what is sealed with it.
fn make(path: &Path) -> anyhow::Result<[u8; KEY_BYTES]> {
    let failed = || format!("cannot make the key file {}", path.display());
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir).with_context(failed)?;
    let mut key = [0; KEY_BYTES];
    rand::rngs::SysRng
        .try_fill_bytes(&mut key)
        .context("the system has no random bytes to give")?;
    // Temporary files are made with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(dir).with_context(failed)?;
    file.write_all((STANDARD.encode(key) + "\n").as_bytes())
        .and_then(|()| file.as_file().sync_all())
        .with_context(failed)?;
    match file.persist_noclobber(path) {
        Ok(_) => {
            std::fs::File::open(dir)
                .and_then(|dir| dir.sync_all())
                .with_context(failed)?;
            tracing::info!(path = %path.display(), "made a key-encryption key; keep a copy of it apart from the database");
            Ok(key)
        }
        // Another process was quicker.
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
            read(path)?.with_context(failed)
        }
        Err(error) => Err(error.error).with_context(failed),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{FILE, make, read};

    #[test]
    fn a_key_is_made_once_and_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        assert_eq!(read(&path).unwrap(), None);
        let key = make(&path).unwrap();
        assert_eq!(read(&path).unwrap(), Some(key));
        assert_eq!(make(&path).unwrap(), key);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(&path, key).unwrap();
        assert_eq!(read(&path).unwrap(), Some(key));
        std::fs::write(&path, "short").unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(!message.contains("short"), "{message}");
    }
}
