//! The privacy officer: what she reads, what she decides, and who decides without her.

use std::time::Duration;

use pais::ids::TokenId;
use pais::roles::Role;
use pais_test_support::poll::poll_async;
use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Answer, TestApp, send, text};
use crate::database::lock_waits;
use crate::hospital::{Hospital, TABLE, id, job_on};
use crate::packages::files;

/// A token that an administrator issues: its id and its secret.
async fn issued(app: &TestApp, body: &Value) -> (TokenId, String) {
    let admin = app.token("operators", Role::Admin).await;
    let made = app.post(&admin, "/v1/tokens", body).await.json(201);
    let token = text(&made["id"]).parse().unwrap();
    (token, text(&made["token"]).to_owned())
}

/// The officer of the hospital, with a label.
async fn officer(hospital: &Hospital) -> (TokenId, String) {
    let body = json!({ "organization": "hospital", "role": "officer", "label": "Dr. Baumann" });
    issued(&hospital.app, &body).await
}

async fn put_policy(app: &TestApp, token: &str, policy: &Value) -> Answer {
    let request = app.request(Method::PUT, "/v1/policy");
    send(request.bearer_auth(token).json(policy)).await
}

async fn revoke(app: &TestApp, token: TokenId) {
    let admin = app.token("operators", Role::Admin).await;
    let revoked = app.delete(&admin, &format!("/v1/tokens/{token}")).await;
    assert_eq!(revoked.status, 204, "{}", revoked.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_officer_reads_what_a_decision_needs_and_makes_nothing() {
    let hospital = Hospital::new().await;
    let app = &hospital.app;
    let tree = json!({ "name": "sexes", "root": { "label": "*", "children": [{ "label": "F" }] } });
    let tree = hospital.post("/v1/taxonomies", &tree).await;
    let tree = tree.header("location").to_owned();
    let release = hospital.release().await;
    let document = hospital.get(&release).await.json(200);
    let dataset = format!("/v1/datasets/{}", text(&document["dataset_id"]));
    let job = format!("/v1/jobs/{}", text(&document["job_id"]));
    app.token("bts", Role::Recipient).await;
    let (_, officer) = officer(&hospital).await;
    let other = app.token("other", Role::Officer).await;
    for path in [
        tree.clone(),
        dataset.clone(),
        format!("{dataset}/profile"),
        format!("{dataset}/risk?l=2"),
        job.clone(),
        format!("{job}/events"),
        format!("{job}/steps"),
        format!("{job}/sweep"),
        release.clone(),
        format!("{release}/data"),
        format!("{release}/tables/data"),
        format!("{release}/package"),
        format!("{release}/grants"),
        format!("{release}/composition?recipient=bts"),
    ] {
        let seen = app.get(&officer, &path).await;
        assert_eq!(seen.status, 200, "{path}: {}", seen.text);
        app.get(&other, &path).await.problem(404, "not_found");
    }
    for path in [
        "taxonomies",
        "datasets",
        "jobs",
        "releases",
        "policy",
        "approvals",
        "audit",
        "organization/tokens",
        "whoami",
    ] {
        let seen = app.get(&officer, &format!("/v1/{path}")).await;
        assert_eq!(seen.status, 200, "{path}: {}", seen.text);
    }
    // The report is the holder's, with the figures of raw rows.
    let report = format!("{release}/report");
    let of_officer = app.get(&officer, &report).await.json(200);
    assert_eq!(of_officer, hospital.get(&report).await.json(200));
    // The schema is, but not what was sent: a hash of a body confirms a guess of it.
    let schema = app.get(&officer, &dataset).await.json(200);
    let mut of_holder = hospital.get(&dataset).await.json(200);
    assert_eq!(of_holder["submissions"].as_array().unwrap().len(), 1);
    of_holder["submissions"] = json!([]);
    assert_eq!(schema, of_holder);

    let forbidden = [
        (Method::POST, "/v1/taxonomies".to_owned()),
        (Method::DELETE, tree),
        (Method::POST, "/v1/datasets".to_owned()),
        (Method::POST, "/v1/datasets/draft".to_owned()),
        (Method::PATCH, dataset.clone()),
        (Method::DELETE, dataset.clone()),
        (Method::GET, format!("{dataset}/submissions")),
        (Method::POST, format!("{dataset}/submissions")),
        (Method::POST, "/v1/jobs".to_owned()),
        (Method::DELETE, job.clone()),
        (Method::POST, "/v1/releases".to_owned()),
        (Method::GET, "/v1/tokens".to_owned()),
        (Method::POST, "/v1/tokens".to_owned()),
        (Method::GET, "/v1/organizations".to_owned()),
    ];
    for (method, path) in forbidden {
        let refused = send(app.request(method, &path).bearer_auth(&officer)).await;
        refused.problem(403, "forbidden");
    }
    let hold = format!("{dataset}/legal-hold");
    let placed = app.request(Method::PUT, &hold).bearer_auth(&officer);
    send(placed.json(&json!({ "reason": "an authority asks" })))
        .await
        .json(200);
    assert_eq!(app.delete(&officer, &hold).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_is_an_officer_she_alone_sets_the_policy_and_approves() {
    let hospital = Hospital::new().await;
    let app = &hospital.app;
    let release = hospital.release().await;
    let second = app.token("hospital", Role::Holder).await;
    let bts = app.token("bts", Role::Recipient).await;
    let (token, officer) = officer(&hospital).await;
    let policy = json!({ "require_approval": true });
    let refused = put_policy(app, &hospital.token, &policy).await;
    refused.problem(403, "officer_required");
    assert_eq!(put_policy(app, &officer, &policy).await.json(200), policy);
    let pending = app.get(&bts, "/v1/approvals").await;
    pending.problem(403, "forbidden");
    let pending = app.get(&officer, "/v1/approvals?status=pending").await;
    let document = hospital.get(&release).await.json(200);
    assert_eq!(document["approval"], json!({ "status": "pending" }));
    assert_eq!(
        pending.json(200)["items"],
        json!([{ "release_id": id(&release), "name": null, "dataset_id": document["dataset_id"],
                 "requested_at": document["created_at"], "status": "pending" }])
    );

    let page = async |token: &str| {
        let page = app.request(Method::GET, &format!("{release}/report"));
        let page = send(page.header("accept", "text/html").bearer_auth(token)).await;
        assert_eq!(page.status, 200, "{}", page.text);
        page.text
    };
    let waits = "waits for a decision; nobody can fetch it yet";
    assert!(page(&officer).await.contains(waits));

    let approval = format!("{release}/approval");
    let by_holder = app.post(&second, &approval, &json!({})).await;
    by_holder.problem(403, "officer_required");
    let body = json!({ "decision": "approved", "reason": " The board has seen it " });
    let made = app.post(&officer, &approval, &body).await.json(201);
    let by = json!({ "token_id": token, "label": "Dr. Baumann" });
    assert_eq!(
        made,
        json!({ "release_id": id(&release), "status": "approved", "by": by, "at": made["at"],
                "reason": "The board has seen it" })
    );
    let mut expected = made.clone();
    expected.as_object_mut().unwrap().remove("release_id");
    assert_eq!(hospital.get(&release).await.json(200)["approval"], expected);
    let listed = hospital
        .get("/v1/approvals?status=approved")
        .await
        .json(200);
    assert_eq!(listed["items"][0]["by"], by);
    let pending = hospital.get("/v1/approvals?status=pending").await.json(200);
    assert_eq!(pending["items"], json!([]));

    let grant = json!({ "recipient": "bts", "purpose": "blood usage" });
    let grants = format!("{release}/grants");
    let granted = app.post(&officer, &grants, &grant).await.json(201);
    // A recipient sees that it is approved and since when, but not by whom and why.
    let seen = app.get(&bts, &release).await.json(200);
    assert_eq!(
        seen["approval"],
        json!({ "status": "approved", "at": made["at"] })
    );
    let of_officer = page(&officer).await;
    assert!(of_officer.contains("approved by Dr. Baumann, "));
    assert!(of_officer.contains("The board has seen it"));
    let package = hospital.get(&format!("{release}/package")).await.bytes;
    let package = String::from_utf8(files(&package)["report.html"].clone()).unwrap();
    for other in [page(&bts).await, package] {
        assert!(other.contains("approved, "));
        assert!(!other.contains("Dr. Baumann") && !other.contains("The board"));
    }
    let path = format!("{release}/grants/{}", text(&granted["id"]));
    assert_eq!(app.delete(&officer, &path).await.status, 204);

    let events = app.get(&officer, "/v1/audit").await.json(200);
    let events: Vec<[&Value; 3]> = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| [&event["action"], &event["outcome"], &event["token_label"]])
        .collect();
    let label = json!("Dr. Baumann");
    for (action, outcome, label) in [
        ("policy.changed", "refused", &Value::Null),
        ("policy.changed", "done", &label),
        ("release.approved", "refused", &Value::Null),
        ("release.approved", "done", &label),
        ("grant.created", "done", &label),
        ("grant.deleted", "done", &label),
    ] {
        let event = [&json!(action), &json!(outcome), label];
        assert!(events.contains(&event), "{event:?} in {events:?}");
    }
    // Another organization has no officer, so its holders decide.
    let other = app.token("other", Role::Holder).await;
    put_policy(app, &other, &policy).await.json(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_release_reaches_nobody() {
    let hospital = Hospital::new().await;
    let app = &hospital.app;
    let early = hospital.release().await;
    let late = hospital.release().await;
    let bts = app.token("bts", Role::Recipient).await;
    let grant = json!({ "recipient": "bts", "purpose": "blood usage" });
    let grants = format!("{early}/grants");
    hospital.post(&grants, &grant).await.json(201);
    let fetch = async |release: &str| app.get(&bts, &format!("{release}/data")).await;
    assert_eq!(fetch(&early).await.status, 200);

    // Also where the policy requires no approval, and below the policy.
    let (_, officer) = officer(&hospital).await;
    put_policy(app, &officer, &json!({ "k_min": 50 }))
        .await
        .json(200);
    for release in [&early, &late] {
        let approval = format!("{release}/approval");
        let approved = app.post(&officer, &approval, &json!({})).await;
        approved.problem(422, "below_policy");
        let body = json!({ "decision": "rejected", "reason": "Too fine" });
        let rejected = app.post(&officer, &approval, &body).await.json(201);
        assert_eq!(rejected["status"], "rejected");
        let again = app.post(&officer, &approval, &json!({})).await;
        again.problem(409, "conflict");
        let document = hospital.get(release).await.json(200);
        assert_eq!(document["approval"]["status"], "rejected");
        assert_eq!(document["approval"]["reason"], "Too fine");
    }
    put_policy(app, &officer, &json!({})).await.json(200);
    fetch(&early).await.problem(404, "not_found");
    app.get(&bts, &early).await.problem(404, "not_found");
    let listed = app.get(&bts, "/v1/releases").await.json(200);
    assert_eq!(listed["items"], json!([]));
    let refused = hospital.post(&format!("{late}/grants"), &grant).await;
    refused.problem(409, "approval_required");

    let page = app.get(&officer, "/v1/approvals?status=rejected&limit=1");
    let page = page.await.json(200);
    assert_eq!(page["items"][0]["release_id"], id(&early));
    let cursor = text(&page["next_cursor"]);
    let path = format!("/v1/approvals?status=rejected&cursor={cursor}");
    let rest = app.get(&officer, &path).await.json(200);
    assert_eq!(rest["items"][0]["release_id"], id(&late));
    assert_eq!(rest["next_cursor"], Value::Null);
    for path in ["/v1/approvals?status=open", "/v1/approvals?limit=0"] {
        app.get(&officer, path)
            .await
            .problem(400, "invalid_parameter");
    }
    let log = app.get(&officer, "/v1/audit?action=release.rejected").await;
    assert_eq!(log.json(200)["items"][0]["detail"]["reason"], "Too fine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_of_its_documented_shape() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let (_, officer) = officer(&hospital).await;
    let approval = format!("{release}/approval");
    let decide = async |body: &Value| hospital.app.post(&officer, &approval, body).await;
    decide(&json!({ "decision": "maybe" }))
        .await
        .problem(400, "invalid_shape");
    decide(&json!({ "comment": "x" }))
        .await
        .problem(400, "invalid_shape");
    decide(&json!({ "reason": " " }))
        .await
        .problem(422, "invalid_value");
    let text = hospital
        .app
        .post_bytes(&officer, &approval, "text/plain", "yes");
    text.await.problem(415, "unsupported_media_type");
    // Nothing was decided; without a body the release is approved.
    let empty = hospital.app.request(Method::POST, &approval);
    let approved = send(empty.bearer_auth(&officer)).await.json(201);
    assert_eq!(approved["status"], "approved");
}

/// Without an officer whose token works, the holders decide as before.
#[tokio::test(flavor = "multi_thread")]
async fn an_officer_whose_token_has_ended_binds_nobody() {
    let hospital = Hospital::new().await;
    let app = &hospital.app;
    let policy = json!({ "k_min": 2 });
    let put = async || put_policy(app, &hospital.token, &policy).await;
    put().await.json(200);
    let (first, _) = officer(&hospital).await;
    let until = app.state.unscoped().db.now() + time::Duration::hours(1);
    app.token_until("hospital", Role::Officer, Some(until))
        .await;
    put().await.problem(403, "officer_required");
    revoke(app, first).await;
    put().await.problem(403, "officer_required");
    app.clock.advance(time::Duration::hours(2));
    put().await.json(200);
}

/// An enrolment code is no officer yet: nobody has the token.
#[tokio::test(flavor = "multi_thread")]
async fn an_officer_binds_once_her_code_is_redeemed() {
    let app = TestApp::builder()
        .without_workers()
        .limits(|limits| limits.enrolment = true)
        .start()
        .await;
    let hospital = Hospital::with_app(app).await;
    let app = &hospital.app;
    let admin = app.token("operators", Role::Admin).await;
    let body = json!({ "organization": "hospital", "role": "officer" });
    let made = app.post(&admin, "/v1/tokens", &body).await.json(201);
    put_policy(app, &hospital.token, &json!({})).await.json(200);
    let code = json!({ "code": made["enrolment_code"] });
    let redeemed = app.request(Method::POST, "/v1/enrolments").json(&code);
    let redeemed = send(redeemed).await.json(201);
    let refused = put_policy(app, &hospital.token, &json!({})).await;
    refused.problem(403, "officer_required");
    put_policy(app, text(&redeemed["token"]), &json!({}))
        .await
        .json(200);
}

/// Two tokens of one person are one person.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_approves_their_own_release_in_another_role() {
    let hospital = Hospital::new().await;
    let app = &hospital.app;
    let release = hospital.release().await;
    let (token, officer) = officer(&hospital).await;
    let owner = app.state.unscoped().db.owner();
    sqlx::query(
        "UPDATE tokens SET oidc_subject = 'anna'
         WHERE id = $1 OR id = (SELECT created_by FROM releases)",
    )
    .bind(token)
    .execute(owner)
    .await
    .unwrap();
    let approval = format!("{release}/approval");
    let own = app.post(&officer, &approval, &json!({})).await;
    own.problem(409, "conflict");
    sqlx::query("UPDATE tokens SET oidc_subject = 'berta' WHERE id = $1")
        .bind(token)
        .execute(owner)
        .await
        .unwrap();
    let approved = app.post(&officer, &approval, &json!({})).await.json(201);
    assert_eq!(approved["by"]["label"], "Dr. Baumann");
}

/// Holds up what is about to be committed: its event waits.
async fn held_up(app: &TestApp) -> sqlx::Transaction<'static, sqlx::Postgres> {
    let mut held = app.state.unscoped().db.owner().begin().await.unwrap();
    sqlx::query("LOCK TABLE audit_events IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *held)
        .await
        .unwrap();
    held
}

async fn wait_for(hospital: &Hospital, count: i64) {
    let waits = poll_async(Duration::from_secs(30), async || {
        (lock_waits(hospital.app.state.unscoped().db.owner()).await >= count).then_some(())
    });
    waits.await.expect("nothing waits");
}

/// A decision and the beginning or end of an officer are decided one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_waits_for_the_change_of_officers_that_is_under_way() {
    let hospital = Hospital::new().await;
    let app = &hospital.app;
    let admin = app.token("operators", Role::Admin).await;
    let spawn = |method: Method, path: &str, token: &str, body: Value| {
        let request = app.request(method, path).bearer_auth(token);
        tokio::spawn(send(request.json(&body)))
    };
    let put = || {
        let policy = json!({ "k_min": 2 });
        spawn(Method::PUT, "/v1/policy", &hospital.token, policy)
    };
    // An officer is being made.
    let held = held_up(app).await;
    let body = json!({ "organization": "hospital", "role": "officer" });
    let made = spawn(Method::POST, "/v1/tokens", &admin, body);
    wait_for(&hospital, 1).await;
    let decided = put();
    wait_for(&hospital, 2).await;
    held.rollback().await.unwrap();
    let made = made.await.unwrap().json(201);
    decided.await.unwrap().problem(403, "officer_required");

    // She is being revoked.
    let held = held_up(app).await;
    let path = format!("/v1/tokens/{}", text(&made["id"]));
    let revoked = spawn(Method::DELETE, &path, &admin, Value::Null);
    wait_for(&hospital, 1).await;
    let decided = put();
    wait_for(&hospital, 2).await;
    held.rollback().await.unwrap();
    assert_eq!(revoked.await.unwrap().status, 204);
    decided.await.unwrap().json(200);
}

/// What an officer decides while she is revoked is committed before the revocation, or not at all.
#[tokio::test(flavor = "multi_thread")]
async fn an_officer_who_is_revoked_meanwhile_decides_nothing() {
    let hospital = Hospital::new().await;
    let app = &hospital.app;
    let (token, secret) = officer(&hospital).await;
    let owner = app.state.unscoped().db.owner();
    // Her decision waits for the policy, and she is revoked meanwhile.
    let mut blocker = owner.begin().await.unwrap();
    sqlx::query("UPDATE tokens SET revoked_at = now() WHERE id = $1")
        .bind(token)
        .execute(&mut *blocker)
        .await
        .unwrap();
    let request = app.request(Method::PUT, "/v1/policy").bearer_auth(&secret);
    let decided = tokio::spawn(send(request.json(&json!({ "k_min": 9 }))));
    wait_for(&hospital, 1).await;
    blocker.commit().await.unwrap();
    decided.await.unwrap().problem(401, "unauthenticated");
    assert_eq!(hospital.get("/v1/policy").await.json(200), json!({}));
}

/// The guide's floor holds for models with a C; a model of diversity has its own, and one that bounds no
/// sensitive value is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_greatest_confidence_is_no_floor_of_a_model_without_one() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    hospital.submit(&dataset, TABLE).await.json(201);
    let policy = json!({ "k_min": 2, "l_min": 2, "c_max": 0.5 });
    put_policy(&hospital.app, &hospital.token, &policy)
        .await
        .json(200);
    let job = async |privacy: Value| {
        let mut body = job_on(&dataset);
        body["privacy"] = privacy;
        hospital.post("/v1/jobs", &body).await
    };
    for privacy in [
        json!({ "model": "l_diversity", "k": 2, "l": 2 }),
        json!({ "model": "distinct_l_diversity", "k": 2, "l": 2 }),
        json!({ "model": "entropy_l_diversity", "k": 2, "l": 2 }),
        json!({ "model": "t_closeness", "k": 2, "t": 0.5 }),
    ] {
        job(privacy).await.json(202);
    }
    let refused = [
        (json!({ "model": "k_anonymity", "k": 2 }), "/privacy/model"),
        (
            json!({ "model": "lkc", "l": 2, "k": 2, "c": 0.6 }),
            "/privacy/c",
        ),
        (
            json!({ "model": "t_closeness", "k": 2, "t": 1 }),
            "/privacy/t",
        ),
    ];
    for (privacy, pointer) in refused {
        let problem = job(privacy.clone()).await.problem(422, "below_policy");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{privacy}");
    }
}
