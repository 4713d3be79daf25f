//! `/console/`: the web application for people, whose built files are part of the program. It is a client
//! of the API like any other.

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use include_dir::{Dir, include_dir};
use serde::Serialize;

use crate::oidc::SignIn;
use crate::problem::Code;

use super::error::ApiError;
use super::extract::headers::best;
use super::state::AppState;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/console/dist");

/// What the console needs to know before anybody has signed in.
#[derive(Clone, Serialize)]
struct ConsoleConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    oidc: Option<SignIn>,
}

/// The parameters for serving the files.
struct Console {
    config: ConsoleConfig,
    policy: HeaderValue,
}

/// The files of the console, and `/`, which leads browsers to it.
pub(super) fn routes(sign_in: Option<SignIn>) -> Router<AppState> {
    let console = Arc::new(Console {
        policy: policy(sign_in.as_ref()),
        config: ConsoleConfig { oidc: sign_in },
    });
    Router::new()
        .route("/", get(root))
        .route("/console", get(async || Redirect::permanent("/console/")))
        .merge(
            Router::new()
                .route("/console/", get(index))
                .route("/console/config.json", get(config))
                .route("/console/{*path}", get(file))
                .with_state(console),
        )
}

/// The content security policy: scripts and styles are files of this service, and requests go to it or to
/// the issuer.
fn policy(sign_in: Option<&SignIn>) -> HeaderValue {
    let issuer = sign_in.map_or("", |sign_in| origin(&sign_in.issuer));
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src 'self' {issuer}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    // An issuer that is not a valid header value cannot be reached either.
    HeaderValue::try_from(policy).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"))
}

/// The scheme, host and port of a URL.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find('/').map_or(url.len(), |at| host + at);
    &url[..end]
}

async fn root(headers: HeaderMap) -> Redirect {
    if best(&headers, &["application/json", "text/html"]).is_ok_and(|at| at == 1) {
        Redirect::to("/console/")
    } else {
        Redirect::temporary("/docs")
    }
}

async fn index(State(console): State<Arc<Console>>) -> Result<Response, ApiError> {
    respond(&console, "index.html")
}

async fn file(
    State(console): State<Arc<Console>>,
    Path(path): Path<String>,
) -> Result<Response, ApiError> {
    respond(&console, &path)
}

async fn config(State(console): State<Arc<Console>>) -> Response {
    let no_cache = [(header::CACHE_CONTROL, "no-cache")];
    (no_cache, Json(console.config.clone())).into_response()
}

fn respond(console: &Console, path: &str) -> Result<Response, ApiError> {
    let file = FILES.get_file(path);
    let (file, media_type) = file.zip(media_type(path)).ok_or_else(|| {
        let detail = "the console has no such file; it begins at /console/";
        ApiError::new(Code::NotFound, detail)
    })?;
    // The names of assets contain a hash of their content.
    let caching = if path.starts_with("assets/") {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static(caching)),
        (header::CONTENT_SECURITY_POLICY, console.policy.clone()),
    ];
    Ok((StatusCode::OK, headers, file.contents()).into_response())
}

/// The media type of a file of the console; `None` for a file that is not served.
fn media_type(path: &str) -> Option<&'static str> {
    let (_, ending) = path.rsplit_once('.')?;
    Some(match ending {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_may_go_to_the_origin_of_the_issuer_alone() {
        let sign_in = SignIn {
            issuer: "https://login.example.org:8443/realms/hospital".to_owned(),
            client_id: "console".to_owned(),
        };
        let with_issuer = policy(Some(&sign_in));
        let with_issuer = with_issuer.to_str().unwrap();
        assert!(with_issuer.contains("connect-src 'self' https://login.example.org:8443;"));
        assert!(!with_issuer.contains("unsafe"));
        assert!(
            policy(None)
                .to_str()
                .unwrap()
                .contains("connect-src 'self' ;")
        );
    }
}
