//! Links to reports: one report, a quarter of an hour, as long as who made the link may read it.

use pais::roles::Role;
use reqwest::Method;
use serde_json::json;
use time::Duration;

use crate::app::{Answer, send};
use crate::hospital::Hospital;

/// The link that a token gets for a release, as a path.
async fn link(hospital: &Hospital, token: &str, release: &str) -> String {
    let path = format!("{release}/report/link");
    let made = hospital.app.post(token, &path, &json!({})).await.json(201);
    let url = made["url"].as_str().unwrap().to_owned();
    let at = url.find("/reports/").unwrap();
    url[at..].to_owned()
}

async fn open(hospital: &Hospital, path: &str) -> Answer {
    send(hospital.app.request(Method::GET, path)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_opens_the_report_without_a_token_and_is_recorded() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let path = link(&hospital, &hospital.token, &release).await;
    let page = open(&hospital, &path).await;
    assert_eq!(page.status, 200);
    assert!(page.header("content-type").starts_with("text/html"));
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(page.text.contains("What is guaranteed"), "{}", page.text);

    let auditor = hospital.app.token("hospital", Role::Auditor).await;
    for action in ["report.linked", "release.fetched"] {
        let path = format!("/v1/audit?action={action}");
        let events = hospital.app.get(&auditor, &path).await.json(200);
        assert_eq!(events["items"].as_array().unwrap().len(), 1, "{action}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_gets_the_page_of_a_recipient() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let bts = hospital.app.token("bts", Role::Recipient).await;
    let refused = hospital
        .app
        .post(&bts, &format!("{release}/report/link"), &json!({}))
        .await;
    refused.problem(404, "not_found");
    let asked = json!({ "recipient": "bts", "purpose": "Planning the supply of blood" });
    let grant = hospital.post(&format!("{release}/grants"), &asked).await;
    let grant = grant.header("location").to_owned();
    let path = link(&hospital, &bts, &release).await;
    let page = open(&hospital, &path).await;
    assert!(page.text.contains("Planning the supply of blood"));
    // It names its recipient, and no other.
    assert!(page.text.contains("Granted to"), "{}", page.text);
    let holders = open(&hospital, &link(&hospital, &hospital.token, &release).await).await;
    assert!(holders.text.contains("Granted to"));

    hospital.app.delete(&hospital.token, &grant).await;
    assert_eq!(open(&hospital, &path).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_ends_and_cannot_be_changed() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let (id, token) = hospital.app.token_with_id("hospital", Role::Holder).await;
    let path = link(&hospital, &token, &release).await;
    assert_eq!(open(&hospital, &path).await.status, 200);

    let ended = open(&hospital, "/reports/x").await;
    assert_eq!(ended.status, 404);
    // Another character at each place, and a longer and a shorter link.
    let code = path.strip_prefix("/reports/").unwrap();
    for place in 0..code.len() {
        let mut changed = code.as_bytes().to_vec();
        changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
        let changed = format!("/reports/{}", String::from_utf8(changed).unwrap());
        let answer = open(&hospital, &changed).await;
        // The last character has bits that say nothing.
        let is_same = place + 1 == code.len() && answer.status == 200;
        assert!(
            answer.status == 404 && answer.text == ended.text || is_same,
            "{place}"
        );
    }
    for changed in [format!("{path}AA"), path[..path.len() - 2].to_owned()] {
        assert_eq!(open(&hospital, &changed).await.status, 404);
    }

    let other = link(&hospital, &hospital.token, &release).await;
    let admin = hospital.app.token("operator", Role::Admin).await;
    hospital
        .app
        .delete(&admin, &format!("/v1/tokens/{id}"))
        .await;
    let revoked = open(&hospital, &path).await;
    assert_eq!((revoked.status.as_u16(), &revoked.text), (404, &ended.text));

    assert_eq!(open(&hospital, &other).await.status, 200);
    hospital.app.clock.advance(Duration::minutes(15));
    let late = open(&hospital, &other).await;
    assert_eq!((late.status.as_u16(), &late.text), (404, &ended.text));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_a_withdrawn_release_opens_nothing() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let path = link(&hospital, &hospital.token, &release).await;
    let reason = json!({ "reason": "an error in the rows" });
    hospital
        .post(&format!("{release}/withdrawal"), &reason)
        .await
        .json(201);
    assert_eq!(open(&hospital, &path).await.status, 410);
    let again = hospital
        .post(&format!("{release}/report/link"), &json!({}))
        .await;
    again.problem(410, "withdrawn");
}

/// A link begins with what is configured, never with what a client sends, and no cache may keep what it
/// opens.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_has_no_foreign_host() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let path = format!("{release}/report/link");
    let made = hospital.app.request(Method::POST, &path);
    let made = made.bearer_auth(&hospital.token);
    let made = send(made.header("host", "evil.example").json(&json!({}))).await;
    assert_eq!(made.header("cache-control"), "no-store");
    let made = made.json(201);
    let url = made["url"].as_str().unwrap();
    assert!(url.starts_with("http://127.0.0.1/reports/"), "{url}");
    let opened = open(&hospital, url.strip_prefix("http://127.0.0.1").unwrap()).await;
    assert_eq!(opened.status, 200);
    assert_eq!(opened.header("cache-control"), "no-store");
    let ended = open(&hospital, "/reports/x").await;
    assert_eq!(ended.header("cache-control"), "no-store");
}
