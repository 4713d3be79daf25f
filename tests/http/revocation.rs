//! The end of a token or a grant reaches work that is under way.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use pais::roles::Role;
use serde_json::{Value, json};
use sqlx::Row;

use crate::app::{TestApp, send, text};
use crate::hospital::{Hospital, TABLE, id};
use pais_test_support::poll::{pace, poll_async};

/// Number of rows of a table.
async fn count(hospital: &Hospital, table: &str) -> i64 {
    let query = format!("SELECT count(*) FROM {table}");
    let pool = hospital.app.state.unscoped().db.owner();
    let row = sqlx::query(sqlx::AssertSqlSafe(query)).fetch_one(pool);
    row.await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_whose_token_is_revoked_before_its_end_stores_nothing() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let (token, secret) = hospital.app.token_with_id("hospital", Role::Holder).await;
    let admin = hospital.app.token("ops", Role::Admin).await;
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    // An upload takes its place when its first 64 KiB have come.
    let (_, rows) = TABLE.split_once('\n').unwrap();
    let first = format!("{TABLE}{}", rows.repeat(1000));
    assert!(first.len() > 64 << 10);
    let first = stream::iter([Ok::<_, std::io::Error>(first)]);
    let second = stream::once(async move {
        ended.await.unwrap();
        Ok(rows.to_owned())
    });
    let body = reqwest::Body::wrap_stream(first.chain(second));
    let path = format!("{dataset}/submissions");
    let request = hospital.app.request(reqwest::Method::POST, &path);
    let upload = tokio::spawn(send(
        request
            .bearer_auth(secret)
            .header("content-type", "text/csv")
            .body(body),
    ));
    let service = hospital.app.state.unscoped();
    let free = service.limits.concurrent_uploads - 1;
    let begun = poll_async(Duration::from_secs(10), async || {
        (service.free_uploads() == free).then_some(())
    });
    begun.await.expect("the upload begins");
    let revoked = hospital
        .app
        .delete(&admin, &format!("/v1/tokens/{token}"))
        .await;
    assert_eq!(revoked.status, 204);
    end.send(()).unwrap();
    upload.await.unwrap().problem(401, "unauthenticated");
    assert_eq!(count(&hospital, "submissions").await, 0);
    assert_eq!(count(&hospital, "submission_chunks").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_whose_token_expires_before_its_commit_is_not_stored() {
    let hospital = Hospital::new().await;
    let job = hospital.done(json!({})).await;
    let until = hospital.app.state.unscoped().db.now() + time::Duration::hours(1);
    let (_, secret) = hospital
        .app
        .token_until("hospital", Role::Holder, Some(until))
        .await;
    // A lock on the token holds the release up when it is about to be stored.
    let pool = hospital.app.state.unscoped().db.owner().clone();
    let mut blocker = pool.begin().await.unwrap();
    sqlx::query("UPDATE tokens SET label = 'locked'")
        .execute(&mut *blocker)
        .await
        .unwrap();
    let body = json!({ "job_id": id(&job) });
    let request = hospital.app.request(reqwest::Method::POST, "/v1/releases");
    let release = tokio::spawn(send(request.bearer_auth(&secret).json(&body)));
    let waiting = poll_async(Duration::from_secs(10), async || {
        let waiting: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'",
        )
        .fetch_one(&pool)
        .await
        .unwrap();
        (waiting > 0).then_some(())
    });
    waiting.await.expect("the release waits for its token");
    sqlx::query("UPDATE tokens SET expires_at = '2020-01-01' WHERE expires_at IS NOT NULL")
        .execute(&mut *blocker)
        .await
        .unwrap();
    blocker.commit().await.unwrap();
    release.await.unwrap().problem(401, "unauthenticated");
    assert_eq!(count(&hospital, "releases").await, 0);
}

/// A client that reads slowly gets no more than what was sent before the grant ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_download_ends_when_its_grant_is_withdrawn() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let (header, rows) = TABLE.split_once('\n').unwrap();
    let many = format!("{header}\n{}", rows.repeat(60_000));
    hospital.submit(&dataset, many).await.json(201);
    let job = hospital.job(&dataset, json!({ "release": true })).await;
    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    workers.stop().await;
    let release = format!("/v1/releases/{}", text(&ended["release_id"]));
    let recipient = hospital.app.token("bts", Role::Recipient).await;
    let grant = json!({ "recipient": "bts", "purpose": "research" });
    let grant = hospital.post(&format!("{release}/grants"), &grant).await;
    let grant = text(&grant.json(201)["id"]).to_owned();
    let data = format!("{release}/data");
    let whole = hospital.app.get(&recipient, &data).await;
    assert!(whole.bytes.len() > 8 << 20, "{}", whole.bytes.len());

    let address = hospital.app.address().to_owned();
    let mut client = TcpStream::connect(address).unwrap();
    let request =
        format!("GET {data} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {recipient}\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    let mut start = [0; 1000];
    client.read_exact(&mut start).unwrap();
    assert!(start.starts_with(b"HTTP/1.1 200"));
    let path = format!("{release}/grants/{grant}");
    let withdrawn = hospital.app.delete(&hospital.token, &path).await;
    assert_eq!(withdrawn.status, 204);
    // The service asks for the grant again every two seconds of a download.
    pace(Duration::from_millis(2100)).await;
    let rest = tokio::task::spawn_blocking(move || {
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest);
        rest.len()
    });
    // What was in the buffers of the two sockets.
    let got = start.len() + rest.await.unwrap();
    assert!(got < whole.bytes.len() - (1 << 20), "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_uses_of_a_token_are_recorded_once_a_minute() {
    let app = TestApp::new().await;
    let admin = app.token("ops", Role::Admin).await;
    let auditor = app.token("hospital", Role::Auditor).await;
    let (token, secret) = app.token_with_id("hospital", Role::Holder).await;
    let path = format!("/v1/tokens/{token}");
    assert_eq!(app.delete(&admin, &path).await.status, 204);
    let refused = async || {
        for _ in 0..5 {
            let answer = app.get(&secret, "/v1/datasets").await;
            answer.problem(401, "unauthenticated");
        }
        let log = app.get(&auditor, "/v1/audit").await.json(200);
        let events = log["items"].as_array().unwrap().iter();
        let refused = events.filter(|event| event["action"] == "token.refused");
        refused.cloned().collect::<Vec<Value>>()
    };
    let first = refused().await;
    assert_eq!(first.len(), 1);
    assert_eq!(first[0]["detail"], json!({ "reason": "revoked" }));
    assert_eq!(text(&first[0]["token_id"]), token.to_string());
    app.clock.advance(time::Duration::minutes(2));
    assert_eq!(refused().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_lives_no_longer_than_the_configuration_allows() {
    let days = pais::api::limits::TokenLifetime::of_days(30);
    let builder = TestApp::builder().limits(|limits| limits.token_lifetime = days);
    let app = builder.start().await;
    let admin = app.token("ops", Role::Admin).await;
    let body = json!({ "organization": "ops", "role": "auditor" });
    let issued = app.post(&admin, "/v1/tokens", &body).await.json(201);
    assert!(!issued["expires_at"].is_null());
    let late = json!({ "organization": "ops", "role": "auditor",
                       "expires_at": "2999-01-01T00:00:00Z" });
    let refused = app.post(&admin, "/v1/tokens", &late).await;
    let refused = refused.problem(422, "invalid_value");
    assert_eq!(refused["errors"][0]["pointer"], "/expires_at");
    assert!(text(&refused["detail"]).contains("security.token_max_days"));
}
