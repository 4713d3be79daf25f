//! The end of a token or a grant reaches work that is under way.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use pais::db::organizations;
use pais::roles::Role;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use sqlx::{PgConnection, Row};

use crate::app::{Answer, TestApp, send, text};
use crate::database::lock_waits;
use crate::hospital::{Hospital, TABLE, id};
use crate::publications::{JOB, publication};
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
    let request = hospital.app.request(Method::POST, &path);
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
    let body = json!({ "job_id": id(&job) });
    let request = hospital.app.request(Method::POST, "/v1/releases");
    let request = request.bearer_auth(&secret).json(&body);
    let end = "UPDATE tokens SET expires_at = '2020-01-01' WHERE expires_at IS NOT NULL";
    let release = held_up(&hospital, request, async |blocker| {
        execute(blocker, end).await
    });
    release.await.problem(401, "unauthenticated");
    assert_eq!(count(&hospital, "releases").await, 0);
}

/// Sends a request whose effect waits for its token, which `meanwhile` has locked; returns the answer that it gets
/// after that.
async fn held_up(
    hospital: &Hospital,
    request: RequestBuilder,
    meanwhile: impl AsyncFnOnce(&mut PgConnection),
) -> Answer {
    let pool = hospital.app.state.unscoped().db.owner().clone();
    let mut blocker = pool.begin().await.unwrap();
    execute(&mut blocker, "SELECT FROM tokens FOR NO KEY UPDATE").await;
    let answer = tokio::spawn(send(request));
    let waiting = poll_async(Duration::from_secs(10), async || {
        (lock_waits(&pool).await > 0).then_some(())
    });
    if waiting.await.is_none() {
        panic!(
            "the request does not wait for its token: {:?}",
            answer.await
        );
    }
    meanwhile(&mut blocker).await;
    blocker.commit().await.unwrap();
    answer.await.unwrap()
}

async fn execute(connection: &mut PgConnection, sql: &'static str) {
    sqlx::query(sql).execute(connection).await.unwrap();
}

/// The body of a request can take half a minute. An administrator who was taken for a thief has no second token
/// after that.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_has_an_effect_after_the_end_of_its_token() {
    let hospital = Hospital::new().await;
    let app = &hospital.app;
    let dataset = hospital.filled_dataset().await;
    let job = hospital.job(&dataset, json!({})).await;
    let (other, _) = app.token_with_id("bts", Role::Recipient).await;
    let bts = organizations::find_or_create(&app.state.unscoped().db, "bts")
        .await
        .unwrap();
    let bts = format!("/v1/organizations/{}", bts.id);
    let publication = publication(&hospital, &dataset, "manual", JOB()).await;
    let leaf = json!({ "name": "t", "root": { "label": "a", "children": [{ "label": "b" }] } });
    let taxonomy = hospital.post("/v1/taxonomies", &leaf).await.json(201);
    let taxonomy = format!("/v1/taxonomies/{}", text(&taxonomy["id"]));
    let (holder, admin) = (Role::Holder, Role::Admin);
    let requests = [
        (
            admin,
            Method::POST,
            "/v1/tokens".to_owned(),
            json!({ "organization": "ops", "role": "admin" }),
        ),
        (
            admin,
            Method::DELETE,
            format!("/v1/tokens/{other}"),
            Value::Null,
        ),
        (
            admin,
            Method::POST,
            "/v1/organizations".to_owned(),
            json!({ "name": "new" }),
        ),
        (admin, Method::PATCH, bts, json!({ "disabled": true })),
        (
            holder,
            Method::PUT,
            format!("{dataset}/legal-hold"),
            json!({ "reason": "a trial" }),
        ),
        (holder, Method::DELETE, job.clone(), Value::Null),
        (
            holder,
            Method::POST,
            format!("{publication}/editions"),
            Value::Null,
        ),
        (holder, Method::DELETE, publication.clone(), Value::Null),
        (holder, Method::DELETE, taxonomy.clone(), Value::Null),
        (holder, Method::DELETE, dataset.clone(), Value::Null),
    ];
    for (role, method, path, body) in requests {
        let organization = if role == admin { "ops" } else { "hospital" };
        let secret = app.token(organization, role).await;
        let mut request = app.request(method.clone(), &path).bearer_auth(secret);
        if !body.is_null() {
            request = request.json(&body);
        }
        let revoke = "UPDATE tokens SET revoked_at = now() WHERE id = (SELECT max(id::text)::uuid FROM tokens)";
        let answer = held_up(&hospital, request, async |blocker| {
            execute(blocker, revoke).await
        });
        let answer = answer.await;
        assert_eq!(answer.status, 401, "{method} {path}: {}", answer.text);
        answer.problem(401, "unauthenticated");
    }
    for path in [&dataset, &publication, &taxonomy] {
        hospital.get(path).await.json(200);
    }
    assert_eq!(hospital.get(&job).await.json(200)["status"], "queued");
    assert_eq!(count(&hospital, "editions").await, 0);
    assert_eq!(count(&hospital, "organizations").await, 3);
    let count_of = async |condition: &str| count(&hospital, condition).await;
    assert_eq!(
        count_of("organizations WHERE disabled_at IS NOT NULL").await,
        0
    );
    assert_eq!(
        count_of("datasets WHERE legal_hold_since IS NOT NULL").await,
        0
    );
    // One of each request, all revoked, and those of the hospital and of the recipient.
    assert_eq!(count_of("tokens WHERE revoked_at IS NULL").await, 2);
}

/// A download can wait for memory, and be rendered for long. What is decided meanwhile knows nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_rendered_is_not_sent_once_it_may_not_be_read() {
    let hospital = Hospital::new().await;
    let app = &hospital.app;
    let release = hospital.release().await;
    let bts = app.token("bts", Role::Recipient).await;
    let body = json!({ "recipient": "bts", "purpose": "research" });
    let grants = format!("{release}/grants");
    let fetch = |part: &str| {
        app.request(Method::GET, &format!("{release}/{part}"))
            .bearer_auth(&bts)
    };
    for part in ["data?format=parquet", "package", "report"] {
        hospital.post(&grants, &body).await.json(201);
        let ended = async |_: &mut PgConnection| {
            let pool = app.state.unscoped().db.owner();
            sqlx::query("DELETE FROM grants")
                .execute(pool)
                .await
                .unwrap();
        };
        held_up(&hospital, fetch(part), ended)
            .await
            .problem(404, "not_found");
    }
    assert_eq!(count(&hospital, "release_readers").await, 0);
    hospital.post(&grants, &body).await.json(201);
    let withdrawn = async |_: &mut PgConnection| {
        let sql = "UPDATE releases SET withdrawn_at = now(), withdrawn_reason = 'x'";
        let pool = app.state.unscoped().db.owner();
        sqlx::query(sql).execute(pool).await.unwrap();
    };
    held_up(&hospital, fetch("data?format=ndjson"), withdrawn)
        .await
        .problem(410, "withdrawn");
    assert_eq!(count(&hospital, "release_readers").await, 0);
    let fetched = "audit_events WHERE action = 'release.fetched'";
    assert_eq!(count(&hospital, fetched).await, 0);
}

/// Rows that were deleted while a release of them is made are not in it: it would hold the dataset's later
/// compositions up, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_not_made_of_rows_that_are_deleted_meanwhile() {
    let hospital = Hospital::new().await;
    let job = hospital.done(json!({})).await;
    let body = json!({ "job_id": id(&job) });
    let request = hospital.app.request(Method::POST, "/v1/releases");
    let request = request.bearer_auth(&hospital.token).json(&body);
    let delete = "DELETE FROM submissions";
    let release = held_up(&hospital, request, async |blocker| {
        execute(blocker, delete).await
    });
    release.await.problem(409, "dataset_deleted");
    assert_eq!(count(&hospital, "releases").await, 0);
}

/// An export of the log ends with the token, and has no event that came after its start.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_of_the_log_ends_with_its_token() {
    let hospital = Hospital::new().await;
    let admin = hospital.app.token("ops", Role::Admin).await;
    let (token, auditor) = hospital.app.token_with_id("hospital", Role::Auditor).await;
    hospital.dataset().await;
    // As many as the buffers of two sockets do not take.
    let pool = hospital.app.state.unscoped().db.owner();
    let more = "INSERT INTO audit_events (id, organization_id, at, action, subject, token_id, detail, outcome)
                SELECT gen_random_uuid(), organization_id, at, action, subject, token_id,
                       jsonb_build_object('name', repeat('x', 8000)), outcome
                FROM audit_events, generate_series(1, 1600) WHERE action = 'dataset.created'";
    sqlx::query(more).execute(pool).await.unwrap();
    let whole = hospital.app.get(&auditor, "/v1/audit?format=ndjson").await;
    let request = hospital.app.request(Method::GET, "/v1/audit?format=ndjson");
    let compressed = request
        .bearer_auth(&auditor)
        .header("accept-encoding", "gzip");
    assert!(send(compressed).await.bytes.len() > 1 << 10);
    assert!(whole.bytes.len() > 12 << 20, "{}", whole.bytes.len());

    let mut client = TcpStream::connect(hospital.app.address()).unwrap();
    let request = format!(
        "GET /v1/audit?format=ndjson HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {auditor}\r\n\r\n"
    );
    client.write_all(request.as_bytes()).unwrap();
    let mut start = [0; 1000];
    client.read_exact(&mut start).unwrap();
    assert!(start.starts_with(b"HTTP/1.1 200"));
    let revoked = hospital
        .app
        .delete(&admin, &format!("/v1/tokens/{token}"))
        .await;
    assert_eq!(revoked.status, 204);
    pace(Duration::from_millis(2100)).await;
    let rest = tokio::task::spawn_blocking(move || {
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest);
        rest.len()
    });
    let got = start.len() + rest.await.unwrap();
    assert!(got < whole.bytes.len() - (1 << 20), "{got}");
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
