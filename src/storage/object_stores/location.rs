//! Operations on the objects at a location.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path as ObjectPath;
use object_store::{
    GetOptions, GetRange, GetResult, GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt,
};

use super::url::{LocationUrl, Scheme};
use super::{LocationError, LocationLimits, ObjectStorePrefix};

/// Longest time between two parts of an object that is read.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// The ending of the files that are read.
const ENDING: &str = ".parquet";

/// Maximum number of objects listed per file that is read: other objects may be next to them.
const LISTED_PER_FILE: usize = 10;

/// A granted place: a file, or a folder.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    prefix: Arc<ObjectStorePrefix>,
    path: ObjectPath,
    limits: LocationLimits,
}

/// An object, as it was when it was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocatedObject {
    /// Its path in its bucket or on its machine.
    pub(crate) path: String,
    /// Its size, in bytes.
    pub(crate) bytes: u64,
    /// Its entity tag. That of a file has its inode, its size and the time of its last change.
    pub(crate) etag: String,
}

impl Location {
    pub(super) fn new(
        prefix: Arc<ObjectStorePrefix>,
        url: &LocationUrl,
        limits: LocationLimits,
    ) -> Self {
        let parts = match url.scheme {
            Scheme::File => &url.parts[..],
            Scheme::S3 => &url.parts[1..],
        };
        Self {
            prefix,
            path: parts.iter().map(String::as_str).collect(),
            limits,
        }
    }

    /// The limits on the objects of a dataset.
    pub(crate) fn limits(&self) -> LocationLimits {
        self.limits
    }

    /// The place of this name below it. The name has characters of a URL's part only.
    pub(crate) fn below(&self, name: &str) -> Self {
        Self {
            prefix: Arc::clone(&self.prefix),
            path: self.path.clone().join(name),
            limits: self.limits,
        }
    }

    /// The Parquet file at the location, or the Parquet files below it in the order of their paths. Those whose
    /// name or folder begins with `_` or `.` are left out, as other programs do: they are not finished.
    ///
    /// # Errors
    /// [`LocationError::Empty`]; [`LocationError::TooManyFiles`]; [`LocationError::TooManyBytes`]; when the
    /// store cannot be used.
    pub(crate) async fn objects(&self) -> Result<Vec<LocatedObject>, LocationError> {
        let limits = self.limits;
        self.check_within().await?;
        self.check_openable(&self.path).await?;
        let file = match self.prefix.store.head(&self.path).await {
            // A HEAD request succeeds for a bucket, too.
            Ok(found) if !self.path.is_root() => Some(LocatedObject::of(found)?),
            Ok(_) | Err(object_store::Error::NotFound { .. }) => None,
            Err(error) => return Err(LocationError::of_store(&error)),
        };
        let mut objects = match file {
            Some(file) => vec![file],
            None => self.listed(limits.files).await?,
        };
        if objects.is_empty() {
            return Err(LocationError::Empty);
        }
        let bytes = objects
            .iter()
            .try_fold(0u64, |sum, object| sum.checked_add(object.bytes));
        if bytes.is_none_or(|bytes| bytes > limits.bytes) {
            return Err(LocationError::TooManyBytes(limits.bytes));
        }
        objects.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(objects)
    }

    /// Checks that the objects are these.
    ///
    /// # Errors
    /// [`LocationError::Changed`]; when the store cannot be used.
    pub(crate) async fn check_objects(&self, read: &[LocatedObject]) -> Result<(), LocationError> {
        match self.objects().await {
            Ok(found) if found == read => Ok(()),
            Err(error @ (LocationError::NotGranted | LocationError::Unavailable)) => Err(error),
            Ok(_) | Err(_) => Err(LocationError::Changed),
        }
    }

    async fn listed(&self, most: usize) -> Result<Vec<LocatedObject>, LocationError> {
        let mut objects = Vec::new();
        let mut listed = self.prefix.store.list(Some(&self.path));
        let mut left = most.saturating_mul(LISTED_PER_FILE);
        while let Some(found) = listed.next().await {
            let found = found.map_err(|error| LocationError::of_store(&error))?;
            if self.is_read(&found.location) {
                objects.push(LocatedObject::of(found)?);
            }
            if objects.len() > most || left == 0 {
                return Err(LocationError::TooManyFiles(most));
            }
            left -= 1;
        }
        Ok(objects)
    }

    /// Whether an object below the location is one that is read.
    fn is_read(&self, path: &ObjectPath) -> bool {
        let Some(below) = path.prefix_match(&self.path) else {
            return false;
        };
        let mut below = below;
        below.all(|part| !part.as_ref().starts_with(['_', '.'])) && path.as_ref().ends_with(ENDING)
    }

    /// The bytes of an object.
    ///
    /// # Errors
    /// [`LocationError::Changed`] if it has changed; [`LocationError::NotGranted`] for a link
    /// to a file outside the prefix; when the store cannot be used. An error of a part carries a
    /// [`LocationError`].
    pub(crate) async fn open(
        &self,
        object: &LocatedObject,
    ) -> Result<BoxStream<'static, io::Result<Bytes>>, LocationError> {
        let found = self.get(object, None).await?;
        let parts = found
            .into_stream()
            .map_err(|error| io::Error::other(LocationError::of_store(&error)));
        // A store that sends nothing more must not block a request forever.
        let in_time = stream::unfold(parts.boxed(), async |mut parts| {
            let late = || io::Error::other(LocationError::Unavailable);
            let next = tokio::time::timeout(READ_TIMEOUT, parts.next()).await;
            let next = next.unwrap_or_else(|_| Some(Err(late())));
            next.map(|part| (part, parts))
        });
        Ok(in_time.boxed())
    }

    /// A part of an object.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) async fn read(
        &self,
        object: &LocatedObject,
        range: Range<u64>,
    ) -> Result<Bytes, LocationError> {
        let found = self.get(object, Some(GetRange::Bounded(range))).await?;
        let read = tokio::time::timeout(READ_TIMEOUT, found.bytes()).await;
        let read = read.map_err(|_| LocationError::Unavailable)?;
        read.map_err(|error| LocationError::of_store(&error))
    }

    async fn get(
        &self,
        object: &LocatedObject,
        range: Option<GetRange>,
    ) -> Result<GetResult, LocationError> {
        let options = GetOptions {
            if_match: Some(object.etag.clone()),
            range,
            ..GetOptions::default()
        };
        let path = ObjectPath::parse(&object.path).map_err(|_| LocationError::NotGranted)?;
        self.check_openable(&path).await?;
        let found = self.prefix.store.get_opts(&path, options).await;
        let found = found.map_err(|error| LocationError::of_store(&error))?;
        if let GetResultPayload::File(file, _) = &found.payload {
            self.check_opened(file)?;
        }
        if found.meta.size != object.bytes {
            return Err(LocationError::Changed);
        }
        Ok(found)
    }

    /// Writes an object below the location.
    ///
    /// # Errors
    /// When the store cannot be used, or a link leads out of the prefix.
    pub(crate) async fn write(&self, name: &str, content: Bytes) -> Result<(), LocationError> {
        self.check_within().await?;
        let path = self.path.clone().join(name);
        let written = self.prefix.store.put(&path, content.into()).await;
        written.map_err(|error| match LocationError::of_store(&error) {
            LocationError::Changed => LocationError::Unavailable,
            error => error,
        })?;
        Ok(())
    }

    /// An object below the location as it is now; `None` if there is none.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<LocatedObject>, LocationError> {
        self.check_within().await?;
        match self.prefix.store.head(&self.path.clone().join(name)).await {
            Ok(found) => LocatedObject::of(found).map(Some),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(LocationError::of_store(&error)),
        }
    }

    /// Removes everything below the location, and its directory.
    ///
    /// # Errors
    /// When the store cannot be used. What was removed stays removed.
    pub(crate) async fn remove(&self) -> Result<(), LocationError> {
        self.check_within().await?;
        if self.prefix.directory.is_some() {
            // Follows no link below the directory, which a walk of the store would, and knows unfinished files.
            return match tokio::fs::remove_dir_all(on_disk(&self.path)).await {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(LocationError::Unavailable)
                }
                _ => Ok(()),
            };
        }
        let listed = self.prefix.store.list(Some(&self.path));
        let paths = listed.map_ok(|found| found.location).boxed();
        let mut removed = self.prefix.store.delete_stream(paths);
        while let Some(result) = removed.next().await {
            match result {
                // Removed by another process.
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(LocationError::of_store(&error)),
            }
        }
        Ok(())
    }

    /// Checks that a path of this machine is not that of a pipe or a device, which would block.
    async fn check_openable(&self, path: &ObjectPath) -> Result<(), LocationError> {
        if self.prefix.directory.is_none() {
            return Ok(());
        }
        match tokio::fs::metadata(on_disk(path)).await {
            Ok(found) if !found.is_file() && !found.is_dir() => Err(LocationError::NotGranted),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Checks that no link leads out of the directory of the prefix.
    async fn check_within(&self) -> Result<(), LocationError> {
        let Some(directory) = &self.prefix.directory else {
            return Ok(());
        };
        let root = tokio::fs::canonicalize(directory).await;
        let root = root.map_err(|_| LocationError::Unavailable)?;
        let path = on_disk(&self.path);
        for existing in path.ancestors() {
            match tokio::fs::canonicalize(existing).await {
                Ok(real) if real.starts_with(&root) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Ok(_) | Err(_) => return Err(LocationError::NotGranted),
            }
        }
        Err(LocationError::NotGranted)
    }

    /// Checks that an open file is below the directory of the prefix, by whatever links its path led there.
    fn check_opened(&self, file: &File) -> Result<(), LocationError> {
        let Some(directory) = &self.prefix.directory else {
            return Ok(());
        };
        let real = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let root = directory.canonicalize();
        match (real, root) {
            (Ok(real), Ok(root)) if real.starts_with(&root) => Ok(()),
            _ => Err(LocationError::NotGranted),
        }
    }
}

/// A path of this machine.
fn on_disk(path: &ObjectPath) -> PathBuf {
    Path::new("/").join(path.as_ref())
}

impl LocatedObject {
    /// # Errors
    /// [`LocationError::Unavailable`] for an object without an entity tag: nobody could say whether it is
    /// still the same.
    fn of(found: ObjectMeta) -> Result<Self, LocationError> {
        Ok(Self {
            path: found.location.to_string(),
            bytes: found.size,
            etag: found.e_tag.ok_or(LocationError::Unavailable)?,
        })
    }

    /// The last part of its path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}
