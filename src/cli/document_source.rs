//! Where a JSON document of the command line comes from: a file, or a running service.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::failure::Failure;
use super::service_address::ServiceAddress;

/// A file, or a resource of a service.
#[derive(Clone, Debug)]
pub(crate) enum DocumentSource {
    /// A file.
    File(PathBuf),
    /// An `http` or `https` address.
    Service(ServiceAddress),
}

impl FromStr for DocumentSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.starts_with("http://") || text.starts_with("https://") {
            true => text.parse().map(Self::Service),
            false => Ok(Self::File(PathBuf::from(text))),
        }
    }
}

impl fmt::Display for DocumentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Service(address) => address.fmt(f),
        }
    }
}

impl DocumentSource {
    /// The bytes of the document.
    ///
    /// # Errors
    /// If the file cannot be read, or the service does not answer with a document.
    pub(crate) fn read(&self) -> Result<Vec<u8>, Failure> {
        match self {
            Self::File(path) => std::fs::read(path).map_err(|error| Failure::file(path, &error)),
            Self::Service(address) => address.get(),
        }
    }

    /// The bytes of a document that needs no token.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn read_public(&self) -> Result<Vec<u8>, Failure> {
        match self {
            Self::File(_) => self.read(),
            Self::Service(address) => address.get_public(),
        }
    }
}
