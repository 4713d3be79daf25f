//! Objects outside the service's own storage: Parquet files below prefixes that the operator has granted to
//! organizations, in directories and in buckets.
//!
//! No error and no log line contains a response of a store: a response can quote a credential.

mod http_client;
mod location;
mod url;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::RetryConfig;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::ids::OrganizationId;
use crate::problem::{Code, Problem};
use crate::secret;

use http_client::Connector;
pub(crate) use location::{LocatedObject, Location};
use url::{LocationUrl, Scheme};

/// Why objects cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LocationError {
    /// The URL is invalid, or not below a granted prefix.
    #[error(
        "the URL is not below a prefix that the service's operator has granted to the organization \
         (object_stores); it is file:///… or s3://…, and its parts have letters, digits and -_.=+, only"
    )]
    NotGranted,
    /// The objects are not those that were read.
    #[error(
        "the objects at the location are not those that were read when the dataset was declared; declare \
         another dataset of them"
    )]
    Changed,
    /// A file of a release is not the one that was written.
    #[error("the file at the location is not the one that was released; ask its holder")]
    FileChanged,
    /// The store failed.
    #[error(
        "the store of the location could not be read or written; the service's log has the kind of the \
         error"
    )]
    Unavailable,
    /// There is nothing to read.
    #[error("there is no Parquet file at the location")]
    Empty,
    /// There are more files than are read.
    #[error("there are more than {0} files at the location (limits.location_files)")]
    TooManyFiles(usize),
    /// The files are larger than what is read.
    #[error("the files at the location have more than {0} bytes (limits.location_bytes)")]
    TooManyBytes(u64),
    /// The files have more rows than are read.
    #[error("the files at the location have more than {0} rows (limits.location_rows)")]
    TooManyRows(u64),
}

impl From<LocationError> for Problem {
    fn from(error: LocationError) -> Self {
        let code = match error {
            LocationError::NotGranted => Code::LocationNotGranted,
            LocationError::Changed | LocationError::FileChanged => Code::LocationChanged,
            LocationError::Unavailable => Code::LocationUnavailable,
            LocationError::Empty => Code::EmptySubmission,
            LocationError::TooManyFiles(_)
            | LocationError::TooManyBytes(_)
            | LocationError::TooManyRows(_) => Code::LimitExceeded,
        };
        Self::new(code, error.to_string())
    }
}

impl LocationError {
    /// The problem with a pointer to the URL.
    pub(crate) fn at(self, pointer: &str) -> Problem {
        let problem = Problem::from(self);
        Problem::at(problem.code, pointer, problem.detail)
    }

    /// Logs the kind of an error of a store, and nothing from the store's response.
    fn of_store(error: &object_store::Error) -> Self {
        let kind = match error {
            object_store::Error::NotFound { .. } | object_store::Error::Precondition { .. } => {
                return Self::Changed;
            }
            object_store::Error::PermissionDenied { .. } => "permission denied",
            object_store::Error::Unauthenticated { .. } => "not authenticated",
            object_store::Error::InvalidPath { .. } => "invalid path",
            object_store::Error::Generic { .. } => "no answer, or an unexpected one",
            _ => "other",
        };
        tracing::warn!(kind, "an object store could not be used");
        Self::Unavailable
    }
}

/// The limits on the objects of a dataset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocationLimits {
    /// Number of files.
    pub files: usize,
    /// Size of all files, and of each one decoded, in bytes.
    pub bytes: u64,
    /// Number of rows of all files.
    pub rows: u64,
}

/// A section `object_stores.<name>` of the settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectStoreOptions {
    /// `file:///folder` or `s3://bucket/folder`.
    pub url: String,
    /// Names or ids of the organizations that may use what is below it.
    pub organizations: Vec<String>,
    /// The region of the bucket.
    pub region: Option<String>,
    /// The URL of a server that is not that of Amazon.
    pub endpoint: Option<String>,
    /// The id of the access key.
    pub access_key_id: Option<String>,
    /// The access key.
    #[serde(default, deserialize_with = "secret::optional")]
    pub secret_access_key: Option<SecretString>,
    /// The token of a session.
    #[serde(default, deserialize_with = "secret::optional")]
    pub session_token: Option<SecretString>,
}

/// A granted prefix with its store.
#[derive(Debug)]
pub(crate) struct ObjectStorePrefix {
    url: LocationUrl,
    organizations: Vec<String>,
    store: Arc<dyn ObjectStore>,
    /// The directory of the prefix; `None` for a bucket.
    directory: Option<PathBuf>,
}

impl ObjectStoreOptions {
    /// Makes the client of the store. It connects when it is first used.
    ///
    /// # Errors
    /// What is wrong with which option, as the rest of a sentence. It has no credential.
    fn open(&self) -> Result<ObjectStorePrefix, String> {
        let url = LocationUrl::parse(&self.url);
        let url = url.ok_or(
            "url must be file:///folder or s3://bucket/folder, of letters, digits and -_.=+, only",
        )?;
        if self.organizations.is_empty() {
            return Err("organizations must name at least one organization".to_owned());
        }
        let (store, directory): (Arc<dyn ObjectStore>, _) = match url.scheme {
            Scheme::File => {
                let mut directory = PathBuf::from("/");
                directory.extend(&url.parts);
                (Arc::new(LocalFileSystem::new()), Some(directory))
            }
            Scheme::S3 => (Arc::new(self.bucket(&url.parts[0])?), None),
        };
        Ok(ObjectStorePrefix {
            url,
            organizations: self.organizations.clone(),
            store,
            directory,
        })
    }

    /// Options that are not configured come from the usual variables (`AWS_ACCESS_KEY_ID`, …), or from the role
    /// of the machine.
    fn bucket(&self, bucket: &str) -> Result<object_store::aws::AmazonS3, String> {
        let endpoint = self.endpoint.as_deref();
        let allow_http = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_http_connector(Connector)
            .with_allow_http(allow_http)
            .with_retry(RetryConfig {
                max_retries: 4,
                retry_timeout: std::time::Duration::from_secs(60),
                ..RetryConfig::default()
            });
        if let Some(region) = &self.region {
            builder = builder.with_region(region);
        }
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        match (&self.access_key_id, &self.secret_access_key) {
            (Some(id), Some(key)) => {
                builder = builder
                    .with_access_key_id(id)
                    .with_secret_access_key(key.expose_secret());
            }
            (None, None) => {}
            _ => {
                return Err("needs both access_key_id and secret_access_key, or neither".to_owned());
            }
        }
        if let Some(token) = &self.session_token {
            builder = builder.with_token(token.expose_secret());
        }
        // The error can quote an option.
        let opened = builder.build();
        opened.map_err(|_| {
            "cannot be opened: an option is not accepted, or this machine has no certificates of \
             authorities"
                .to_owned()
        })
    }
}

/// The prefixes of all organizations.
#[derive(Clone, Debug, Default)]
pub struct ObjectStores {
    prefixes: Vec<Arc<ObjectStorePrefix>>,
    limits: LocationLimits,
}

impl ObjectStores {
    /// Makes the clients of stores.
    ///
    /// # Errors
    /// What is wrong with which of them, by its name.
    pub fn open(
        options: &BTreeMap<String, ObjectStoreOptions>,
        limits: LocationLimits,
    ) -> Result<Self, String> {
        let opened = options.iter().map(|(name, options)| {
            let prefix = options.clone().open();
            prefix
                .map(Arc::new)
                .map_err(|reason| format!("object_stores.{name} {reason}"))
        });
        Ok(Self {
            prefixes: opened.collect::<Result<_, _>>()?,
            limits,
        })
    }

    /// The location with this URL, if it is below a prefix of the organization. Does not query the store.
    ///
    /// # Errors
    /// [`LocationError::NotGranted`].
    pub(crate) fn granted(
        &self,
        organization: &Grantee<'_>,
        url: &str,
    ) -> Result<Location, LocationError> {
        let url = LocationUrl::parse(url).ok_or(LocationError::NotGranted)?;
        let mut prefixes = self.prefixes.iter();
        let prefix = prefixes.find(|prefix| {
            url.is_within(&prefix.url) && organization.is_among(&prefix.organizations)
        });
        let prefix = prefix.ok_or(LocationError::NotGranted)?;
        Ok(Location::new(Arc::clone(prefix), &url, self.limits))
    }
}

/// An organization that uses a location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grantee<'o> {
    /// Its id.
    pub(crate) id: OrganizationId,
    /// Its name.
    pub(crate) name: &'o str,
}

impl Grantee<'_> {
    fn is_among(&self, organizations: &[String]) -> bool {
        let id = self.id.to_string();
        let mut organizations = organizations.iter();
        organizations.any(|granted| *granted == id || granted == self.name)
    }
}
