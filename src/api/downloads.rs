//! Files of a release that are downloaded: conditional requests, ranges, the record of the fetch, and the end
//! of a download whose reader loses access.

use std::future::Future;
use std::path::PathBuf;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use headers::{ETag, HeaderMapExt};

use crate::db::{StoreError, releases, token_validity};
use crate::ids::ReleaseId;

use super::error::{ApiError, internal_error};
use super::releases::{record_fetch, viewer};
use super::response::permitted_body::while_permitted;
use super::response::served_file::{is_cached, requested_range, serve_file, unservable};
use super::state::CallerApp;

/// Maximum number of attempts to write a file that is removed before it can be opened.
const ATTEMPTS: usize = 3;

/// A file of one or more releases.
pub(super) struct Download {
    /// The releases.
    pub releases: Vec<ReleaseId>,
    /// The name under which the audit log records that it was fetched.
    pub part: String,
    /// Its entity tag, without quotes.
    pub tag: String,
    /// Its media type.
    pub content_type: &'static str,
    /// Its name without ending. Characters that are not valid in every file system are replaced.
    pub stem: String,
    /// Its ending.
    pub ending: &'static str,
    /// Whether its format may depend on `Accept`.
    pub is_negotiated: bool,
}

impl Download {
    /// The response to a request for the file, which `write` writes if it does not exist.
    ///
    /// # Errors
    /// Those of `write`; `unavailable` if the file cannot be read.
    pub(super) async fn answer<F>(
        self,
        app: &CallerApp,
        request: &Parts,
        write: impl Fn() -> F,
    ) -> Result<Response, ApiError>
    where
        F: Future<Output = Result<PathBuf, ApiError>>,
    {
        let etag: ETag = format!("\"{}\"", self.tag).parse().map_err(|_| {
            tracing::error!(tag = self.tag, "an entity tag is invalid");
            internal_error()
        })?;
        if is_cached(&request.headers, &etag) {
            let mut response = StatusCode::NOT_MODIFIED.into_response();
            self.describe(response.headers_mut(), etag);
            return Ok(response);
        }
        let is_get = request.method == Method::GET;
        // Ranges are defined for `GET` only (RFC 9110, 14.2).
        let range = requested_range(&request.headers, &etag).filter(|_| is_get);
        for _ in 0..ATTEMPTS {
            let path = write().await?;
            let served = serve_file(path, &request.method, range.clone());
            let Some(mut response) = served.await? else {
                continue;
            };
            if !response.status().is_success() {
                return Ok(response);
            }
            self.describe(response.headers_mut(), etag);
            if is_get {
                record_fetch(app, &self.releases, &self.part).await?;
            }
            let (app, ids) = (app.clone(), self.releases);
            return Ok(response.map(|body| {
                while_permitted(body, move || {
                    let (app, ids) = (app.clone(), ids.clone());
                    async move { may_still_read(&app, &ids).await }
                })
            }));
        }
        Err(unservable())
    }

    /// Sets the headers that describe the file.
    fn describe(&self, headers: &mut HeaderMap, etag: ETag) {
        // The modification time of a written file is not that of the release.
        headers.remove(header::LAST_MODIFIED);
        headers.typed_insert(etag);
        let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
        set(header::CONTENT_TYPE, self.content_type);
        set(header::ACCEPT_RANGES, "bytes");
        set(header::CACHE_CONTROL, "private, no-cache");
        if self.is_negotiated {
            set(header::VARY, "accept");
        }
        let safe = |char: char| match char {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => char,
            _ => '_',
        };
        let stem: String = self.stem.chars().take(100).map(safe).collect();
        let disposition = format!("attachment; filename=\"{stem}.{}\"", self.ending);
        if let Ok(disposition) = HeaderValue::try_from(disposition) {
            headers.insert(header::CONTENT_DISPOSITION, disposition);
        }
    }
}

/// Whether a caller who has begun to read releases may still read them: its token is valid, a
/// recipient still has a grant for each, and none is withdrawn. `false` if the database fails.
async fn may_still_read(app: &CallerApp, ids: &[ReleaseId]) -> bool {
    let permitted = async {
        Ok::<_, StoreError>(
            token_validity::is_valid(&app.db, app.caller.token).await?
                && releases::are_readable(&app.db, viewer(app.caller), ids).await?,
        )
    };
    permitted.await.unwrap_or_else(|error| {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "a download ends because its permission could not be checked"
        );
        false
    })
}
