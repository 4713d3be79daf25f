//! The console's files, and who the caller is.

use pais::oidc::SignIn;
use pais::roles::Role;
use reqwest::{Method, header};
use time::{Duration, OffsetDateTime};

use crate::app::{Answer, TestApp, send, text};

/// The `Accept` of browsers.
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

async fn get(app: &TestApp, path: &str) -> Answer {
    send(app.request(Method::GET, path)).await
}

/// The addresses of the scripts and styles of a page.
fn assets(page: &str) -> Vec<&str> {
    let parts = page.split('"');
    parts
        .filter(|part| part.starts_with("/console/assets/"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_is_files_of_this_origin_alone() {
    let app = TestApp::new().await;
    let page = get(&app, "/console/").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(page.header("cache-control"), "no-cache");
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(!page.text.contains("://"), "{}", page.text);
    let assets = assets(&page.text);
    assert!(assets.len() >= 2, "{}", page.text);
    for asset in assets {
        let file = get(&app, asset).await;
        assert_eq!(file.status, 200, "{asset}");
        assert!(file.header("cache-control").contains("immutable"));
    }
    let compressed = app.request(Method::GET, "/console/");
    let compressed = compressed.header(header::ACCEPT_ENCODING, "gzip");
    assert_eq!(send(compressed).await.header("content-encoding"), "gzip");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_files_are_not_served() {
    let app = TestApp::new().await;
    for path in [
        "/console/nothing",
        "/console/assets",
        "/console/..%2f..%2fCargo.toml",
        "/console/%2e%2e/Cargo.toml",
        "/console//etc/passwd",
    ] {
        assert_eq!(get(&app, path).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_root_leads_browsers_to_the_console_and_other_clients_to_the_documents() {
    let app = TestApp::new().await;
    for (accept, page) in [(BROWSER, "id=\"app\""), ("text/html", "id=\"app\"")] {
        let request = app.request(Method::GET, "/").header(header::ACCEPT, accept);
        assert!(send(request).await.text.contains(page), "{accept}");
    }
    for accept in ["*/*", "application/json"] {
        let request = app.request(Method::GET, "/").header(header::ACCEPT, accept);
        let answer = send(request).await;
        assert!(answer.text.contains("swagger"), "{accept}");
    }
    assert!(get(&app, "/console").await.text.contains("id=\"app\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_learns_where_people_sign_in_and_may_ask_there() {
    let app = TestApp::new().await;
    assert_eq!(get(&app, "/console/config.json").await.text, "{}");
    let sign_in = SignIn {
        issuer: "https://login.example.org/realms/hospital".to_owned(),
        client_id: "pais-console".to_owned(),
    };
    let app = TestApp::builder().sign_in(sign_in).start().await;
    let config = get(&app, "/console/config.json").await.json(200);
    assert_eq!(
        config["oidc"]["issuer"],
        "https://login.example.org/realms/hospital"
    );
    assert_eq!(config["oidc"]["client_id"], "pais-console");
    let page = get(&app, "/console/").await;
    let policy = page.header("content-security-policy");
    assert!(policy.contains("connect-src 'self' https://login.example.org;"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_caller_learns_who_it_is_and_nothing_of_others() {
    let app = TestApp::new().await;
    for role in Role::ALL {
        let (id, token) = app.token_with_id("golden", role).await;
        let caller = app.get(&token, "/v1/whoami").await.json(200);
        assert_eq!(caller["organization"]["name"], "golden");
        assert_eq!(caller["role"], role.as_str());
        assert_eq!(text(&caller["token_id"]), id.0.to_string());
        assert!(caller["expires_at"].is_null());
    }
    let until = OffsetDateTime::now_utc() + Duration::days(2);
    let (_, token) = app.token_until("golden", Role::Holder, Some(until)).await;
    let caller = app.get(&token, "/v1/whoami").await.json(200);
    assert!(caller["expires_at"].is_string());
    let answer = send(app.request(Method::GET, "/v1/whoami")).await;
    answer.problem(401, "unauthenticated");
}
