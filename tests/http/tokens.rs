//! Tokens: secrets, expiry, revocation and rate limits.

use std::process::Stdio;

use pais::roles::Role;
use serde_json::json;
use time::Duration;
use time::format_description::well_known::Rfc3339;

use crate::app::{TestApp, text};
use crate::process::pais;
use pais::clock::Clock;

#[tokio::test(flavor = "multi_thread")]
async fn a_token_works_until_it_is_revoked() {
    let app = TestApp::new().await;
    let admin = app.token("ops", Role::Admin).await;
    let body = json!({"name": "hospital"});
    let made = app.post(&admin, "/v1/organizations", &body).await;
    let organization = made.json(201);
    for named in [&organization["name"], &organization["id"]] {
        let body = json!({"organization": named, "role": "holder", "label": "upload"});
        let answer = app.post(&admin, "/v1/tokens", &body).await;
        assert_eq!(answer.header("cache-control"), "no-store");
        let issued = answer.json(201);
        let secret = text(&issued["token"]);
        assert!(
            secret.starts_with("pais_") && secret.len() >= 48,
            "{secret}"
        );
        assert_eq!(issued["organization"], "hospital");
        app.get(secret, "/v1/datasets").await.json(200);
        let listed = app.get(&admin, "/v1/tokens").await;
        assert!(!listed.text.contains(secret));
        assert!(listed.text.contains(text(&issued["id"])));

        let path = format!("/v1/tokens/{}", text(&issued["id"]));
        for _ in 0..2 {
            assert_eq!(app.delete(&admin, &path).await.status, 204);
        }
        app.get(secret, "/v1/datasets")
            .await
            .problem(401, "unauthenticated");
    }
    app.delete(&admin, "/v1/tokens/01900000-0000-7000-8000-000000000000")
        .await
        .problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_expires() {
    let app = TestApp::new().await;
    let admin = app.token("ops", Role::Admin).await;
    let at = |hours| {
        let time = app.clock.now() + Duration::hours(hours);
        time.format(&Rfc3339).unwrap()
    };
    let body = json!({"organization": "ops", "role": "auditor", "expires_at": at(2)});
    let issued = app.post(&admin, "/v1/tokens", &body).await.json(201);
    let secret = text(&issued["token"]);
    app.get(secret, "/v1/audit").await.json(200);
    let past = json!({"organization": "ops", "role": "auditor", "expires_at": at(-1)});
    app.post(&admin, "/v1/tokens", &past)
        .await
        .problem(422, "invalid_value");
    app.clock.advance(Duration::hours(2));
    app.get(secret, "/v1/audit")
        .await
        .problem(401, "unauthenticated");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_a_request_have_different_codes() {
    let app = TestApp::new().await;
    let admin = app.token("ops", Role::Admin).await;
    let post = async |body| app.post(&admin, "/v1/tokens", &body).await;
    post(json!({"organization": "nowhere", "role": "holder"}))
        .await
        .problem(404, "not_found");
    let labelled =
        |label: &str| post(json!({"organization": "ops", "role": "holder", "label": label}));
    for label in [
        &*"ä".repeat(201),
        "a\nb",
        "\u{1b}[31mred",
        "\u{1}",
        "\u{85}",
    ] {
        let refused = labelled(label).await.problem(422, "invalid_value");
        assert_eq!(refused["errors"][0]["pointer"], "/label", "{label:?}");
    }
    labelled(&"ä".repeat(200)).await.json(201);
    post(json!({"organization": "ops", "role": "king"}))
        .await
        .problem(400, "invalid_shape");
    post(json!({"organization": "ops"}))
        .await
        .problem(400, "invalid_shape");
    // A year alone is a beginning of a time, and the answer is no parser's.
    for wrong in ["tomorrow", "2020"] {
        let body = json!({"organization": "ops", "role": "holder", "expires_at": wrong});
        let problem = post(body).await.problem(400, "invalid_shape");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("2030-01-31T00:00:00Z"), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rate_limit_is_per_token() {
    let app = TestApp::builder().requests_per_second(3).start().await;
    let busy = app.token("ops", Role::Admin).await;
    let calm = app.token("ops", Role::Admin).await;
    let mut refused = None;
    for _ in 0..20 {
        let answer = app.get(&busy, "/v1/tokens").await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("none of 20 requests was refused");
    refused.problem(429, "too_many_requests");
    assert_eq!(refused.header("retry-after"), "1");
    app.get(&calm, "/v1/tokens").await.json(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_a_token_is_refused_without_the_database() {
    let app = TestApp::new().await;
    app.state.unscoped().db.close().await;
    let hexadecimal = "0123456789abcdef".repeat(4);
    for token in [
        String::new(),
        "pais_".to_owned(),
        format!("pais_{}", &hexadecimal[1..]),
        format!("pais_{hexadecimal}0"),
        format!("pais_{}", hexadecimal.to_uppercase()),
        format!("PAIS_{hexadecimal}"),
        format!("{hexadecimal}01234"),
    ] {
        let answer = app.get(&token, "/v1/datasets").await;
        answer.problem(401, "unauthenticated");
    }
    let unknown = format!("pais_{hexadecimal}");
    app.get(&unknown, "/v1/datasets")
        .await
        .problem(503, "unavailable");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_with_many_refused_tokens_is_no_longer_answered_from_the_database() {
    let app = TestApp::builder()
        .refused_tokens_per_minute(3)
        .start()
        .await;
    let known = app.token("hospital", Role::Holder).await;
    let unused = app.token("clinic", Role::Holder).await;
    let unknown = |number: u32| format!("pais_{number:064x}");
    // Accepted tokens do not count, and tokens that cannot exist cost nothing.
    for _ in 0..10 {
        app.get(&known, "/v1/datasets").await.json(200);
        app.get("pais_x", "/v1/datasets").await.json(401);
    }
    let mut refused = 0;
    while app.get(&unknown(refused), "/v1/datasets").await.status == 401 {
        refused += 1;
        assert!(refused <= 4, "{refused} unknown tokens were checked");
    }
    let limited = app.get(&unknown(9), "/v1/datasets").await;
    let seconds: u64 = limited.header("retry-after").parse().unwrap();
    assert!((1..=20).contains(&seconds), "{seconds}");
    let problem = limited.problem(429, "too_many_requests");
    assert!(text(&problem["detail"]).contains("limits.refused_tokens_per_minute"));
    // A token that was accepted before still works, and one that was not has to wait.
    app.get(&known, "/v1/datasets").await.json(200);
    app.get(&unused, "/v1/datasets").await.json(429);
    let metrics = app.get(&known, "/metrics").await;
    for reason in ["malformed", "unknown", "limited"] {
        let line = format!("pais_refused_tokens_total{{reason=\"{reason}\"}}");
        assert!(metrics.text.contains(&line), "{}", metrics.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_redeems_a_code_once_and_the_administrator_never_has_the_secret() {
    let builder = TestApp::builder().without_workers();
    let app = builder
        .limits(|limits| limits.enrolment = true)
        .start()
        .await;
    let admin = app.token("ops", Role::Admin).await;
    let organization = json!({ "name": "hospital" });
    app.post(&admin, "/v1/organizations", &organization)
        .await
        .json(201);
    let asked = json!({ "organization": "hospital", "role": "holder" });
    let issue = async || app.post(&admin, "/v1/tokens", &asked).await.json(201);
    let issued = issue().await;
    assert!(issued.get("token").is_none());
    let code = issued["enrolment_code"].as_str().unwrap().to_owned();
    app.get(&code, "/v1/datasets")
        .await
        .problem(401, "unauthenticated");
    let redeem = async |code: &str| {
        let request = app.request(reqwest::Method::POST, "/v1/enrolments");
        crate::app::send(request.json(&json!({ "code": code }))).await
    };
    let redeemed = redeem(&code).await.json(201);
    assert_eq!(redeemed["id"], issued["id"]);
    assert!(redeemed["enrolment_expires_at"].is_null());
    let secret = redeemed["token"].as_str().unwrap();
    assert_eq!(app.get(secret, "/v1/datasets").await.status, 200);

    redeem(&code).await.problem(404, "not_found");
    redeem("paisenrol_0").await.problem(404, "not_found");
    let late = issue().await;
    app.clock.advance(time::Duration::days(8));
    let late = late["enrolment_code"].as_str().unwrap().to_owned();
    redeem(&late).await.problem(404, "not_found");
    let revoked = issue().await;
    let path = format!("/v1/tokens/{}", revoked["id"].as_str().unwrap());
    assert_eq!(app.delete(&admin, &path).await.status, 204);
    let revoked = revoked["enrolment_code"].as_str().unwrap().to_owned();
    redeem(&revoked).await.problem(404, "not_found");

    let auditor = app.token("hospital", Role::Auditor).await;
    let path = "/v1/audit?action=token.redeemed";
    let events = app.get(&auditor, path).await.json(200);
    assert_eq!(events["items"].as_array().unwrap().len(), 1);
}

/// All clients of a proxy have its address; the wrong codes of one of them do not lock out the others.
#[tokio::test(flavor = "multi_thread")]
async fn behind_a_proxy_wrong_codes_are_limited_by_the_forwarded_address() {
    let app = TestApp::builder()
        .without_workers()
        .behind_proxy()
        .refused_tokens_per_minute(2)
        .limits(|limits| limits.enrolment = true)
        .start()
        .await;
    let admin = app.token("ops", Role::Admin).await;
    app.token("hospital", Role::Auditor).await;
    let asked = json!({ "organization": "hospital", "role": "holder" });
    let issued = app.post(&admin, "/v1/tokens", &asked).await.json(201);
    let code = issued["enrolment_code"].as_str().unwrap();
    let redeem = async |client: &str, code: &str| {
        let request = app.request(reqwest::Method::POST, "/v1/enrolments");
        let request = request.header("x-forwarded-for", client);
        crate::app::send(request.json(&json!({ "code": code }))).await
    };
    let mut last = redeem("192.0.2.1", "paisenrol_0").await;
    for number in 1..10 {
        last = redeem("192.0.2.1", &format!("paisenrol_{number}")).await;
    }
    last.problem(429, "too_many_requests");
    redeem("192.0.2.2", code).await.json(201);
}

/// An organization sees all of its tokens, also those that an administrator has issued.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_and_an_auditor_see_the_tokens_of_their_organization() {
    let app = TestApp::builder().without_workers().start().await;
    let admin = app.token("ops", Role::Admin).await;
    let holder = app.token("hospital", Role::Holder).await;
    let auditor = app.token("hospital", Role::Auditor).await;
    app.token("elsewhere", Role::Holder).await;
    let asked = json!({ "organization": "hospital", "role": "recipient", "label": "unasked" });
    let issued = app.post(&admin, "/v1/tokens", &asked).await.json(201);
    for token in [&holder, &auditor] {
        let page = app.get(token, "/v1/organization/tokens").await.json(200);
        let items = page["items"].as_array().unwrap();
        assert_eq!(items.len(), 3, "{page}");
        assert!(items.iter().any(|item| item["id"] == issued["id"]));
        assert!(items.iter().all(|item| item["organization"] == "hospital"));
        let shown = page.to_string();
        assert!(!shown.contains("pais_") && !shown.contains("sha256"));
        let first = app.get(token, "/v1/organization/tokens?limit=1").await;
        assert!(first.json(200)["next_cursor"].is_string());
    }
    let events = app.get(&auditor, "/v1/audit?action=token.created").await;
    let events = events.json(200);
    let created = events["items"].as_array().unwrap();
    assert!(created.iter().any(|event| event["subject"] == issued["id"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_cannot_be_printed_is_revoked() {
    use sqlx::ConnectOptions;
    let options = crate::database::create().await;
    let folder = tempfile::tempdir().unwrap();
    let full = std::fs::File::options().write(true).open("/dev/full");
    let (_, without_reader) = std::io::pipe().unwrap();
    for output in [Stdio::from(full.unwrap()), Stdio::from(without_reader)] {
        let mut command = pais(folder.path());
        command.args(["token", "create", "--organization", "h", "--role", "holder"]);
        command.env("DATABASE_URL", options.to_url_lossy().as_str());
        command.stdout(output).stderr(Stdio::piped());
        let ran = tokio::task::spawn_blocking(move || command.spawn()?.wait_with_output());
        let ran = ran.await.unwrap().unwrap();
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{errors}");
        assert!(errors.contains("revoked again"), "{errors}");
    }
    let mut connection = options.connect().await.unwrap();
    let count: (i64, i64) = sqlx::query_as("SELECT count(*), count(revoked_at) FROM tokens")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(count, (2, 2));
    let revoked: i64 =
        sqlx::query_scalar("SELECT count(*) FROM audit_events WHERE action = 'token.revoked'")
            .fetch_one(&mut connection)
            .await
            .unwrap();
    assert_eq!(revoked, 2);
}
