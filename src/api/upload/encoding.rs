//! `Content-Encoding` of an upload.

use axum::http::{HeaderMap, header};

use crate::problem::{Code, Problem};

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentEncoding {
    /// Not compressed.
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl ContentEncoding {
    /// The encoding that a request declares.
    ///
    /// # Errors
    /// `unsupported_media_type` for any other, and for several encodings.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
        let name = values.next().map(|value| value.to_str().unwrap_or(""));
        let name = name.map(|name| name.trim().to_ascii_lowercase());
        match (name.as_deref(), values.next()) {
            (None | Some("identity"), None) => Ok(Self::Identity),
            (Some("gzip" | "x-gzip"), None) => Ok(Self::Gzip),
            (Some("zstd"), None) => Ok(Self::Zstd),
            _ => Err(Problem::new(
                Code::UnsupportedMediaType,
                "`Content-Encoding` must be gzip, zstd or absent",
            )),
        }
    }
}
