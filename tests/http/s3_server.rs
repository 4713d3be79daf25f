//! A bucket on loopback: the part of S3 that is used, for requests that are signed with one key.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use pais_test_support::hex::hex;
use sha2::{Digest, Sha256};

/// The id of the key.
pub(crate) const ACCESS_KEY: &str = "AKIDPLANTEDEXAMPLE";

/// The key. What is signed with it is not checked.
pub(crate) const SECRET_KEY: &str = "plantedSecretAccessKeyThatIsNowhere0123456";

/// The bucket `lake`.
#[derive(Clone)]
pub(crate) struct Bucket {
    /// Its URL without the bucket.
    pub(crate) endpoint: String,
    objects: Arc<Mutex<BTreeMap<String, Bytes>>>,
    requests: Arc<AtomicUsize>,
}

impl Bucket {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let bucket = Self {
            endpoint: format!("http://{}", listener.local_addr().unwrap()),
            objects: Arc::default(),
            requests: Arc::default(),
        };
        let router = Router::new().fallback(answer).with_state(bucket.clone());
        let settings =
            hyper_util::server::conn::auto::Builder::new(hyper_util::rt::TokioExecutor::new());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (settings, router) = (settings.clone(), router.clone());
                tokio::spawn(async move {
                    let service = hyper_util::service::TowerToHyperService::new(router);
                    let io = hyper_util::rt::TokioIo::new(stream);
                    let _ = settings.serve_connection(io, service).await;
                });
            }
        });
        bucket
    }

    pub(crate) fn put(&self, name: &str, content: impl Into<Bytes>) {
        self.objects
            .lock()
            .unwrap()
            .insert(name.to_owned(), content.into());
    }

    pub(crate) fn get(&self, name: &str) -> Bytes {
        self.objects.lock().unwrap()[name].clone()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.objects.lock().unwrap().keys().cloned().collect()
    }

    /// Number of requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// The objects whose names begin with a prefix, as `ListObjectsV2` has them.
    fn list(&self, prefix: &str) -> Response {
        let mut list = "<ListBucketResult><IsTruncated>false</IsTruncated>".to_owned();
        let objects = self.objects.lock().unwrap();
        for (name, content) in objects.iter().filter(|(name, _)| name.starts_with(prefix)) {
            write!(
                list,
                "<Contents><Key>{name}</Key><LastModified>2026-11-26T00:00:00.000Z</LastModified>\
                 <ETag>{}</ETag><Size>{}</Size></Contents>",
                tag(content).replace('"', "&quot;"),
                content.len()
            )
            .unwrap();
        }
        list += "</ListBucketResult>";
        ([(header::CONTENT_TYPE, "application/xml")], list).into_response()
    }

    /// Removes the objects that a request of `DeleteObjects` names.
    fn delete(&self, body: &str) -> Response {
        let mut deleted = "<DeleteResult>".to_owned();
        let mut objects = self.objects.lock().unwrap();
        for part in body.split("<Key>").skip(1) {
            let name = part.split("</Key>").next().unwrap();
            objects.remove(name);
            write!(deleted, "<Deleted><Key>{name}</Key></Deleted>").unwrap();
        }
        (StatusCode::OK, deleted + "</DeleteResult>").into_response()
    }
}

fn tag(content: &[u8]) -> String {
    format!("\"{}\"", &hex(&Sha256::digest(content))[..32])
}

async fn answer(
    State(bucket): State<Bucket>,
    method: Method,
    uri: Uri,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    bucket.requests.fetch_add(1, Ordering::Relaxed);
    let signed = format!("AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/");
    let authorization = headers.get(header::AUTHORIZATION);
    let is_signed = authorization.is_some_and(|it| it.as_bytes().starts_with(signed.as_bytes()));
    let Some(name) = uri.path().strip_prefix("/lake").filter(|_| is_signed) else {
        let quoted = format!("<Error><Code>InvalidAccessKeyId</Code>{authorization:?}</Error>");
        return (StatusCode::FORBIDDEN, quoted).into_response();
    };
    let name = name.trim_start_matches('/');
    let query = query.unwrap_or_default();
    if name.is_empty() && method == Method::POST {
        return bucket.delete(std::str::from_utf8(&body).unwrap());
    }
    if name.is_empty() {
        let prefix = query
            .split('&')
            .find_map(|part| part.strip_prefix("prefix="));
        return bucket.list(&prefix.unwrap_or_default().replace("%2F", "/"));
    }
    if method == Method::PUT {
        bucket.put(name, body.clone());
        return [(header::ETAG, tag(&body))].into_response();
    }
    let found = bucket.objects.lock().unwrap().get(name).cloned();
    let Some(content) = found else {
        return (
            StatusCode::NOT_FOUND,
            "<Error><Code>NoSuchKey</Code></Error>",
        )
            .into_response();
    };
    let tag = tag(&content);
    let expected = headers.get(header::IF_MATCH);
    if expected.is_some_and(|expected| expected != tag.as_str()) {
        return StatusCode::PRECONDITION_FAILED.into_response();
    }
    let described = [
        (header::ETAG, tag),
        (
            header::LAST_MODIFIED,
            "Thu, 26 Nov 2026 00:00:00 GMT".to_owned(),
        ),
    ];
    if method == Method::HEAD {
        let length = [(header::CONTENT_LENGTH, content.len())];
        return (
            described,
            length.map(|(name, value)| (name, value.to_string())),
        )
            .into_response();
    }
    let range = headers
        .get(header::RANGE)
        .map(|range| range.to_str().unwrap());
    let Some(range) = range.and_then(|range| range.strip_prefix("bytes=")) else {
        return (described, content).into_response();
    };
    let (first, last) = range.split_once('-').unwrap();
    let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
    let last = last.min(content.len() - 1);
    let part = format!("bytes {first}-{last}/{}", content.len());
    let part = [(header::CONTENT_RANGE, part)];
    (
        StatusCode::PARTIAL_CONTENT,
        described,
        part,
        content.slice(first..=last),
    )
        .into_response()
}
