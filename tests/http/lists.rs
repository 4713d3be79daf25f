//! Rules of the HTTP interface: lists, headers and the audit log.

use std::io::Read;
use std::time::Duration;

use pais::roles::Role;
use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{TestApp, send, text};
use crate::hospital::Hospital;
use pais_test_support::poll::poll_async;

fn tree(name: &str) -> Value {
    json!({"name": name, "root": {"label": "*", "children": [{"label": "a"}]}})
}

/// Lists take `?limit=` (default 100, at most 1000) and `?cursor=`, and answer
/// `{items, next_cursor}`. An item that is added between two requests is on a later page.
#[tokio::test(flavor = "multi_thread")]
async fn pages_are_stable_while_items_are_added() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    for number in 0..104 {
        let body = tree(&format!("t{number}"));
        app.post(&holder, "/v1/taxonomies", &body).await.json(201);
    }
    let first = app.get(&holder, "/v1/taxonomies").await.json(200);
    assert_eq!(first["items"].as_array().unwrap().len(), 100);
    let cursor = text(&first["next_cursor"]).to_owned();
    app.post(&holder, "/v1/taxonomies", &tree("late"))
        .await
        .json(201);
    let path = format!("/v1/taxonomies?limit=1000&cursor={cursor}");
    let rest = app.get(&holder, &path).await.json(200);
    let names = rest["items"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|item| text(&item["name"])).collect();
    assert_eq!(names, ["t100", "t101", "t102", "t103", "late"]);
    assert_eq!(rest["next_cursor"], Value::Null);
    let whole = app.get(&holder, "/v1/taxonomies?limit=105").await.json(200);
    assert_eq!(whole["next_cursor"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_list_takes_limit_and_cursor_and_refuses_invalid_ones() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let job = text(&hospital.get(&release).await.json(200)["job_id"]).to_owned();
    let admin = hospital.app.token("hospital", Role::Admin).await;
    let auditor = hospital.app.token("hospital", Role::Auditor).await;
    let lists = [
        (&admin, "/v1/organizations".to_owned()),
        (&admin, "/v1/tokens".to_owned()),
        (&hospital.token, "/v1/taxonomies".to_owned()),
        (&hospital.token, "/v1/datasets".to_owned()),
        (&hospital.token, "/v1/jobs".to_owned()),
        (&hospital.token, format!("/v1/jobs/{job}/steps")),
        (&hospital.token, format!("/v1/jobs/{job}/sweep")),
        (&hospital.token, "/v1/releases".to_owned()),
        (&hospital.token, format!("{release}/grants")),
        (&auditor, "/v1/audit".to_owned()),
    ];
    for (token, path) in lists {
        for query in ["", "?limit=1", "?limit=1000"] {
            let page = hospital.app.get(token, &format!("{path}{query}")).await;
            let page = page.json(200);
            let fields: Vec<_> = page.as_object().unwrap().keys().collect();
            assert_eq!(fields, ["items", "next_cursor"], "{path}{query}");
        }
        let range = "from 1 to 1000";
        for (query, name, expected) in [
            ("limit=0", "limit", range),
            ("limit=1001", "limit", range),
            ("limit=-1", "limit", range),
            ("limit=ten", "limit", range),
            ("limit=1.5", "limit", range),
            ("limit=1&limit=1", "limit", "give it once"),
            ("cursor=zzz", "cursor", "`next_cursor`"),
            ("limit=5&unknown=x", "unknown", "cursor"),
            ("Limit=5", "Limit", "limit"),
        ] {
            let refused = hospital.app.get(token, &format!("{path}?{query}")).await;
            let problem = refused.problem(400, "invalid_parameter");
            let detail = text(&problem["detail"]);
            let is_named = detail.contains(&format!("`{name}`"));
            assert!(
                is_named && detail.contains(expected),
                "{path}?{query}: {detail}"
            );
        }
    }
}

/// `GET /v1/audit` lists the newest event first, across pages.
#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_is_newest_first() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    for number in 0..3 {
        app.post(&holder, "/v1/taxonomies", &tree(&format!("t{number}")))
            .await
            .json(201);
    }
    let auditor = app.token("hospital", Role::Auditor).await;
    let mut times = Vec::new();
    let mut names = Vec::new();
    let mut path = "/v1/audit?limit=2".to_owned();
    loop {
        let page = app.get(&auditor, &path).await.json(200);
        for item in page["items"].as_array().unwrap() {
            times.push(text(&item["id"]).to_owned());
            names.extend(item["detail"]["name"].as_str().map(str::to_owned));
        }
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/v1/audit?limit=2&cursor={cursor}");
    }
    assert!(
        times.is_sorted_by(|newer, older| newer > older),
        "{times:?}"
    );
    let taxonomies: Vec<_> = names.iter().filter(|name| name.starts_with('t')).collect();
    assert_eq!(taxonomies, ["t2", "t1", "t0"]);
}

/// Answers are compressed if the client accepts it, with the same content.
#[tokio::test(flavor = "multi_thread")]
async fn answers_are_compressed_by_gzip_and_zstd() {
    let app = TestApp::new().await;
    let plain = send(app.request(Method::GET, "/openapi.json")).await;
    assert!(plain.headers.get("content-encoding").is_none());
    for encoding in ["gzip", "zstd"] {
        let request = app.request(Method::GET, "/openapi.json");
        let answer = send(request.header("accept-encoding", encoding)).await;
        assert_eq!(answer.header("content-encoding"), encoding);
        let decoded = match encoding {
            "gzip" => {
                let mut decoded = Vec::new();
                let mut decoder = flate2::read::GzDecoder::new(&answer.bytes[..]);
                decoder.read_to_end(&mut decoded).unwrap();
                decoded
            }
            _ => zstd::decode_all(&answer.bytes[..]).unwrap(),
        };
        assert_eq!(decoded, plain.bytes);
    }
}

/// More than `limits.requests_per_second` requests of a token are answered 429 with `Retry-After`.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_with_too_many_requests_gets_a_retry_after() {
    let app = TestApp::builder().requests_per_second(2).start().await;
    let holder = app.token("hospital", Role::Holder).await;
    for _ in 0..30 {
        let answer = app.get(&holder, "/v1/nothing").await;
        if answer.status == 429 {
            let seconds: u64 = answer.header("retry-after").parse().unwrap();
            assert!((1..=2).contains(&seconds));
            answer.problem(429, "too_many_requests");
            return;
        }
    }
    panic!("30 requests within a second were admitted");
}

/// 201 has a `Location`. Ids are UUIDs, times are RFC 3339 in UTC.
#[tokio::test(flavor = "multi_thread")]
async fn a_created_resource_has_a_location() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    hospital.app.token("bts", Role::Recipient).await;
    let admin = hospital.app.token("ops", Role::Admin).await;
    let job = text(&hospital.get(&release).await.json(200)["job_id"]).to_owned();
    let made = [
        (
            &admin,
            "/v1/organizations".to_owned(),
            json!({"name": "new"}),
        ),
        (&hospital.token, "/v1/taxonomies".to_owned(), tree("t")),
        (
            &hospital.token,
            "/v1/datasets".to_owned(),
            json!({"name": "d", "columns": [{"name": "x", "role": "insensitive"}]}),
        ),
        (
            &hospital.token,
            "/v1/releases".to_owned(),
            json!({ "job_id": job }),
        ),
    ];
    for (token, path, body) in made {
        let answer = hospital.app.post(token, &path, &body).await;
        let document = answer.json(201);
        let location = answer.header("location");
        assert_eq!(location, format!("{path}/{}", text(&document["id"])));
        assert!(text(&document["created_at"]).ends_with('Z'));
        uuid::Uuid::parse_str(text(&document["id"])).unwrap();
        let found = hospital.app.get(token, location).await.json(200);
        assert_eq!(found["id"], document["id"]);
    }
    let grants = format!("{release}/grants");
    let body = json!({"recipient": "bts", "purpose": "x"});
    let answer = hospital.post(&grants, &body).await;
    let id = answer.json(201)["id"].clone();
    assert_eq!(answer.header("location"), format!("{grants}/{}", text(&id)));
}

/// What grows with the labels of a release is in its own document only; a page of large documents ends
/// early.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_releases_is_short() {
    let hospital = Hospital::new().await;
    let listed: Vec<String> = (0..1_000).map(|number| format!("{number:01000}")).collect();
    let mut releases = Vec::new();
    for _ in 0..8 {
        releases.push(hospital.release().await);
    }
    let page = hospital.get("/v1/releases").await.json(200);
    assert_eq!(page["items"].as_array().unwrap().len(), 8);
    for item in page["items"].as_array().unwrap() {
        for field in ["cut", "verification", "report", "codebook"] {
            assert!(item.get(field).is_none(), "{field}");
        }
    }
    let shown = hospital.get(&releases[0]).await.json(200);
    assert!(shown["cut"].is_object() && shown["verification"].is_object());

    // A megabyte in each document, as a job that lists so many values would have.
    let pool = hospital.app.state.unscoped().db.owner();
    sqlx::query("UPDATE releases SET privacy = jsonb_set(privacy, '{sensitive_values}', $1)")
        .bind(json!({ "Surgery": listed }))
        .execute(pool)
        .await
        .unwrap();
    let (mut path, mut ids) = ("/v1/releases?limit=200".to_owned(), Vec::new());
    loop {
        let answer = hospital.get(&path).await;
        assert!(answer.text.len() < 6 << 20, "{}", answer.text.len());
        let page = answer.json(200);
        let items = page["items"].as_array().unwrap().iter();
        ids.extend(items.map(|item| format!("/v1/releases/{}", text(&item["id"]))));
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/v1/releases?limit=200&cursor={cursor}");
    }
    assert_eq!(ids, releases);
}

/// A large document is sent only while its memory is reserved.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_release_reserves_the_memory_of_its_answer() {
    let builder = TestApp::builder()
        .without_workers()
        .memory(64 << 20, Duration::from_millis(50));
    let hospital = Hospital::with_app(builder.start().await).await;
    let release = hospital.release().await;
    let small = hospital.get(&release).await.json(200);
    let pool = hospital.app.state.unscoped().db.owner();
    let enlarge = async |bytes: i32| {
        // What cannot be compressed, so that its size is known.
        sqlx::query(
            "UPDATE releases SET cut = jsonb_build_object('Job', (
                 SELECT jsonb_agg(md5(n::text)) FROM generate_series(1, $1 / 32) n))",
        )
        .bind(bytes)
        .execute(pool)
        .await
        .unwrap();
    };
    enlarge(1 << 20).await;
    let shown = hospital.get(&release).await;
    let length: usize = shown.header("content-length").parse().unwrap();
    assert_eq!(length, shown.text.len());
    let shown = shown.json(200);
    assert_eq!(shown["cut"]["Job"].as_array().unwrap().len(), 32_768);
    assert_eq!(shown["privacy"], small["privacy"]);
    let freed = poll_async(Duration::from_secs(30), async || {
        (hospital.app.state.unscoped().memory.used() == 0).then_some(())
    });
    freed.await.expect("the memory stays reserved");
    enlarge(4 << 20).await;
    let refused = hospital.get(&release).await;
    refused.problem(422, "limit_exceeded");
}
