//! Datasets whose rows are in Parquet files at a location, and releases that are written there.

use std::io::{self, Cursor};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use pais_anonymize::{Observer, RunError};
use pais_core::table::ReleasedTable;
use pais_io::read::parquet::{self, ChunkReader, Length, SourceResult};
use pais_io::write::{ParquetFile, parquet_files};
use sha2::{Digest, Sha256};
use tokio::io::AsyncRead;
use tokio::runtime::Handle;
use tokio_util::io::StreamReader;

use crate::db::claims::Claim;
use crate::db::datasets::StoredDataset;
use crate::db::release_files::{self, ReleaseFile, ReleaseFolder};
use crate::db::releases::NewReleaseFile;
use crate::db::{RowScope, Store, StoreError, located_objects, organizations};
use crate::ids::{OrganizationId, ReleaseId};
use crate::problem::Problem;
use crate::storage::Storage;
use crate::storage::object_stores::{Grantee, LocatedObject, Location, LocationError};

use super::{WorkError, on_thread};

/// Rows of a file of a release; the last file has the remaining ones.
const FILE_ROWS: usize = 1 << 20;

/// Maximum number of bytes that are read of a file to find its footer.
const FOOTER_BYTES: u64 = (16 << 20) + 8;

/// The location of this URL, if it is granted to an organization. `pointer` is to the URL.
///
/// # Errors
/// `location_not_granted`; when the database fails.
pub(crate) async fn granted(
    store: &Store,
    storage: &Storage,
    organization: OrganizationId,
    url: &str,
    pointer: &str,
) -> Result<Location, WorkError> {
    let mut connection = store.within(RowScope::Service).connection().await?;
    let found = organizations::find(&mut *connection, &organization.to_string()).await?;
    let found = found.ok_or(StoreError::Damaged("an organization"))?;
    let grantee = Grantee {
        id: found.id,
        name: &found.name,
    };
    let granted = storage.object_stores.granted(&grantee, url);
    granted.map_err(|error| error.at(pointer).into())
}

/// Checks objects and their numbers of rows, by their footers.
///
/// # Errors
/// `malformed_body` and `too_large` for an object that is not a Parquet file, with its name; `limit_exceeded`;
/// when the store fails.
pub(crate) async fn check_rows(
    location: &Location,
    objects: &[LocatedObject],
) -> Result<(), WorkError> {
    let (location, objects) = (location.clone(), objects.to_vec());
    let runtime = Handle::current();
    on_thread(move || {
        let most = location.limits().rows;
        let mut rows = 0u64;
        for object in objects {
            let name = object.name().to_owned();
            let footer = ObjectFooter {
                location: &location,
                object,
                runtime: &runtime,
                failure: OnceLock::new(),
            };
            let counted = parquet::rows(&footer);
            if let Some(failure) = footer.failure.get() {
                return Err((*failure).into());
            }
            let counted = counted.map_err(|error| {
                let problem = Problem::from(error);
                Problem::new(problem.code, format!("{name}: {}", problem.detail))
            })?;
            rows = rows.saturating_add(counted);
            if rows > most {
                return Err(LocationError::TooManyRows(most).into());
            }
        }
        Ok(())
    })
    .await
}

/// The end of an object, which is read by its ranges.
struct ObjectFooter<'a> {
    location: &'a Location,
    object: LocatedObject,
    runtime: &'a Handle,
    /// Why the store could not be read, which the reader of the footer reports as a damaged file.
    failure: OnceLock<LocationError>,
}

impl Length for ObjectFooter<'_> {
    fn len(&self) -> u64 {
        self.object.bytes
    }
}

impl ChunkReader for ObjectFooter<'_> {
    type T = Cursor<Bytes>;

    fn get_read(&self, start: u64) -> SourceResult<Self::T> {
        let end = self.object.bytes.min(start.saturating_add(FOOTER_BYTES));
        self.get_bytes(start, end.saturating_sub(start) as usize)
            .map(Cursor::new)
    }

    fn get_bytes(&self, start: u64, length: usize) -> SourceResult<Bytes> {
        let range = start..start.saturating_add(length as u64);
        let read = self.location.read(&self.object, range);
        let read = self.runtime.block_on(read).map_err(|error| {
            // The first failure is the cause of the following ones.
            let _ = self.failure.set(error);
            io::Error::other(error)
        });
        Ok(read?)
    }
}

/// The bytes of objects, one after the other. An error carries a [`LocationError`].
pub(crate) fn body(
    location: Location,
    objects: Vec<LocatedObject>,
) -> impl AsyncRead + Send + Unpin {
    let opened = stream::iter(objects).then(move |object| {
        let location = location.clone();
        async move { location.open(&object).await.map_err(io::Error::other) }
    });
    StreamReader::new(opened.try_flatten().boxed())
}

/// Checks that the objects of a located dataset are those that its rows were read from.
///
/// # Errors
/// `location_changed`; `location_not_granted` if the grant was taken back; when the store fails.
pub(crate) async fn check_unchanged(
    store: &Store,
    storage: &Storage,
    organization: OrganizationId,
    dataset: &StoredDataset,
) -> Result<(), WorkError> {
    let Some(declared) = &dataset.definition.location else {
        return Ok(());
    };
    let read = located_objects::of_dataset(store, dataset.id).await?;
    // Its rows are deleted, which is found when they are loaded.
    if read.is_empty() {
        return Ok(());
    }
    let location = granted(store, storage, organization, &declared.url, "").await?;
    Ok(location.check_objects(&read).await?)
}

/// The folder that the files of a release are written into.
#[derive(Clone, Debug)]
pub(crate) struct NewReleaseFolder {
    location: Location,
}

impl NewReleaseFolder {
    /// The folder of a release below a URL. It is recorded before the first file is written, so that the
    /// files of an attempt that ends without a release are found.
    ///
    /// # Errors
    /// `location_not_granted`; when the database fails.
    pub(crate) async fn announce(
        store: &Store,
        storage: &Storage,
        claim: &Claim,
        release: ReleaseId,
        url: &str,
    ) -> Result<Self, WorkError> {
        let pointer = "/release/location/url";
        let folder = granted(store, storage, claim.organization, url, pointer).await?;
        release_files::announce_files(store, claim, release, url).await?;
        Ok(Self {
            location: folder.below(&release.to_string()),
        })
    }

    /// Writes verified tables as files: on a thread that may block, inside of the runtime.
    ///
    /// # Errors
    /// `cancelled`; when the store fails, or a table cannot be written as Parquet.
    pub(crate) fn write(
        &self,
        tables: &[ReleasedTable],
        observer: &dyn Observer,
    ) -> Result<Vec<NewReleaseFile>, WorkError> {
        let mut files = Vec::new();
        for (position, table) in tables.iter().enumerate() {
            let parts = parquet_files(table, FILE_ROWS).map_err(not_encoded)?;
            for (number, part) in parts.enumerate() {
                if observer.must_stop() {
                    return Err(RunError::Cancelled.into());
                }
                let part = part.map_err(not_encoded)?;
                // The name of a table can have characters that a part of a URL cannot have.
                let name = if table
                    .name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                {
                    format!("{}-{number:05}.parquet", table.name)
                } else {
                    format!("table_{position}-{number:05}.parquet")
                };
                files.push(self.write_part(&table.name, name, part)?);
            }
        }
        Ok(files)
    }

    /// Writes the rows of a table as the file of this name: as [`Self::write`] does.
    ///
    /// # Errors
    /// When the store fails, or the rows cannot be written as Parquet.
    #[cfg(feature = "scale")]
    pub(crate) fn write_file(
        &self,
        name: String,
        rows: &ReleasedTable,
    ) -> Result<NewReleaseFile, WorkError> {
        let all = rows.rows.max(1);
        let mut parts = parquet_files(rows, all).map_err(not_encoded)?;
        let part = parts.next().ok_or(StoreError::Damaged(FINISHED_TABLE))?;
        self.write_part(&rows.name, name, part.map_err(not_encoded)?)
    }

    fn write_part(
        &self,
        table: &str,
        name: String,
        part: ParquetFile,
    ) -> Result<NewReleaseFile, WorkError> {
        let bytes = Bytes::from(part.bytes);
        let file = NewReleaseFile {
            table: table.to_owned(),
            rows: part.rows as u64,
            bytes: bytes.len() as u64,
            sha256: Sha256::digest(&bytes).into(),
            name,
        };
        Handle::current().block_on(self.location.write(&file.name, bytes))?;
        Ok(file)
    }

    /// Reads a file that was written: on a thread that may block, inside of the runtime.
    ///
    /// # Errors
    /// `location_changed` if it is missing or has changed; when the store fails.
    #[cfg(feature = "scale")]
    pub(crate) fn read(&self, file: &NewReleaseFile) -> Result<Bytes, WorkError> {
        let read = async {
            let object = self.location.find(&file.name).await?;
            let object = object.filter(|object| object.bytes == file.bytes);
            let object = object.ok_or(LocationError::FileChanged)?;
            self.location.read(&object, 0..file.bytes).await
        };
        let bytes = Handle::current().block_on(read)?;
        if Sha256::digest(&bytes).as_slice() == file.sha256 {
            Ok(bytes)
        } else {
            Err(LocationError::FileChanged.into())
        }
    }
}

/// What cannot be encoded.
const FINISHED_TABLE: &str = "a finished table";

fn not_encoded(_: io::Error) -> StoreError {
    StoreError::Damaged(FINISHED_TABLE)
}

/// The folder where the files of a release are.
///
/// # Errors
/// `location_not_granted` if the grant was taken back; when the database fails.
async fn folder(
    store: &Store,
    storage: &Storage,
    folder: &ReleaseFolder,
) -> Result<Location, WorkError> {
    let location = granted(store, storage, folder.organization, &folder.url, "").await?;
    Ok(location.below(&folder.release.to_string()))
}

/// The bytes of a file of a release. The caller has to check whether they are the bytes that were written.
///
/// # Errors
/// `location_changed` if the file does not exist; `location_unavailable` if the store cannot be used, also
/// because its grant was taken back.
pub(crate) async fn open_file(
    store: &Store,
    storage: &Arc<Storage>,
    release: ReleaseId,
    file: &ReleaseFile,
) -> Result<impl AsyncRead + Send + Unpin + use<>, WorkError> {
    let stored = release_files::folder(store, release).await?;
    let stored = stored.ok_or(StoreError::Damaged("the files of a release"))?;
    // A recipient is not told which prefixes the holder has.
    let location = folder(store, storage, &stored)
        .await
        .map_err(|error| match error {
            WorkError::Problem(_) => LocationError::Unavailable.into(),
            other => other,
        })?;
    let object = location
        .find(&file.name)
        .await?
        .ok_or(LocationError::FileChanged)?;
    if object.bytes != file.bytes {
        return Err(LocationError::FileChanged.into());
    }
    Ok(body(location, vec![object]))
}

/// Removes the files of attempts that ended without a release, and of withdrawn releases. Can be called at any
/// time, and by several processes. Files that cannot be removed are tried again by the next call.
///
/// # Errors
/// When the database fails.
pub async fn remove_files(store: &Store, storage: &Storage) -> Result<(), StoreError> {
    for stored in release_files::folders_to_remove(store).await? {
        let removed = async {
            let location = folder(store, storage, &stored).await?;
            location.remove().await?;
            release_files::record_removal(store, stored.release).await?;
            Ok::<_, WorkError>(())
        };
        if let Err(error) = removed.await {
            tracing::warn!(
                release = %stored.release,
                error = &error as &dyn std::error::Error,
                "the files of a release could not be removed; this is tried again"
            );
        }
    }
    Ok(())
}
