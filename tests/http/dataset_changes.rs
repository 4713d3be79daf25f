//! Changes of datasets: what needs no new reading of the rows changes, the rest is a conflict.

use futures_util::{StreamExt, stream};
use pais::roles::Role;
use reqwest::{Body, Method};
use serde_json::{Value, json};
use time::Duration;
use tokio::sync::oneshot;

use crate::app::{Answer, TestApp, send, text};
use pais_test_support::poll::poll_async;

async fn patch(app: &TestApp, token: &str, path: &str, body: &Value) -> Answer {
    send(
        app.request(Method::PATCH, path)
            .bearer_auth(token)
            .json(body),
    )
    .await
}

/// A dataset with rows; its path.
async fn dataset(app: &TestApp, holder: &str) -> String {
    let body = json!({"name": "visits", "description": "old", "columns": [
        {"name": "id", "role": "identifier"},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]},
        {"name": "job", "role": "insensitive"},
        {"name": "ill", "role": "sensitive"}]});
    let made = app.post(holder, "/v1/datasets", &body).await.json(201);
    let path = format!("/v1/datasets/{}", text(&made["id"]));
    let rows = "id,age,job,ill\n1,20,Cook,flu\n2,30,Cook,hiv\n3,40,Nurse,flu\n4,50,Nurse,flu\n";
    let to = format!("{path}/submissions");
    app.post_bytes(holder, &to, "text/csv", rows)
        .await
        .json(201);
    path
}

fn columns(columns: Value) -> Value {
    json!({"columns": columns})
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_taxonomies_and_texts_change_and_the_change_is_in_the_audit_log() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let path = dataset(&app, &holder).await;
    let tree = json!({"label": "ANY", "children": [{"label": "Cook"}, {"label": "Nurse"}]});
    let body = json!({"description": null, "retention_days": 30, "columns": [
        {"name": "job", "role": "quasi_identifier", "taxonomy": tree},
        {"name": "age", "domain": null, "round_range": true}]});
    let changed = patch(&app, &holder, &path, &body).await.json(200);
    assert_eq!(changed["description"], Value::Null);
    assert_eq!(changed["retention_days"], 30);
    assert_eq!(changed["columns"][2]["taxonomy"], tree);
    assert_eq!(changed["columns"][1].get("domain"), None);
    assert_eq!(changed["rows"], 4);
    assert_eq!(app.get(&holder, &path).await.json(200), changed);

    let auditor = app.token("hospital", Role::Auditor).await;
    let events = app.get(&auditor, "/v1/audit?action=dataset.changed").await;
    let events = match events.status.as_u16() {
        200 => events.json(200),
        _ => app.get(&auditor, "/v1/audit").await.json(200),
    };
    let event = events["items"].as_array().unwrap().iter();
    let event = event
        .clone()
        .find(|event| event["action"] == "dataset.changed")
        .unwrap();
    let mut names: Vec<&str> = event["detail"]["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["age", "job"]);
    assert!(!event.to_string().contains("Cook"));

    // The whole list, without a change, is accepted too.
    let same = columns(changed["columns"].clone());
    assert_eq!(patch(&app, &holder, &path, &same).await.json(200), changed);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_a_new_reading_of_the_rows_is_a_conflict() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let path = dataset(&app, &holder).await;
    let before = app.get(&holder, &path).await.json(200);
    let tree = json!({"label": "ANY", "children": [{"label": "Cook"}]});
    for (change, pointer) in [
        (
            json!({"name": "age", "kind": "categorical", "domain": null}),
            "/columns/0/kind",
        ),
        (
            json!({"name": "job", "from": ["a", "b"]}),
            "/columns/0/from",
        ),
        (
            json!({"name": "job", "separator": ";"}),
            "/columns/0/separator",
        ),
        (
            json!({"name": "job", "format": "%d.%m.%Y"}),
            "/columns/0/format",
        ),
        (
            json!({"name": "job", "role": "identifier"}),
            "/columns/0/role",
        ),
        (json!({"name": "job", "role": "subject"}), "/columns/0/role"),
        (
            json!({"name": "id", "role": "insensitive"}),
            "/columns/0/role",
        ),
        (
            json!({"name": "work", "role": "insensitive"}),
            "/columns/0/name",
        ),
        (json!({"name": "age", "domain": [0, 45]}), "/columns/0"),
        (json!({"name": "job", "taxonomy": tree}), "/columns/0"),
    ] {
        let answer = patch(&app, &holder, &path, &columns(json!([change]))).await;
        let problem = answer.problem(409, "conflict");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        assert!(!answer.text.contains("Nurse"), "{}", answer.text);
    }
    assert_eq!(app.get(&holder, &path).await.json(200), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_make_no_dataset_are_refused_with_a_pointer_into_the_patch() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let path = dataset(&app, &holder).await;
    for (body, status, code, pointer) in [
        (json!({"name": "b"}), 400, "invalid_shape", "/name"),
        (
            columns(json!([{"role": "class"}])),
            400,
            "invalid_shape",
            "/columns/0/name",
        ),
        (
            columns(json!([{"name": "job", "role": "no"}])),
            400,
            "invalid_shape",
            "/columns/0/role",
        ),
        (
            columns(json!([{"name": "job", "role": "class"}, {"name": "ill", "role": "class"}])),
            422,
            "invalid_schema",
            "/columns",
        ),
        (
            columns(json!([{"name": "age", "domain": [9, 0]}])),
            422,
            "invalid_schema",
            "/columns/0/domain",
        ),
        (
            json!({"retention_days": 0}),
            422,
            "invalid_value",
            "/retention_days",
        ),
    ] {
        let problem = patch(&app, &holder, &path, &body)
            .await
            .problem(status, code);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    app.clock.advance(Duration::days(10));
    let answer = patch(&app, &holder, &path, &json!({"retention_days": 5})).await;
    answer.problem(422, "invalid_value");
    let stranger = app.token("clinic", Role::Holder).await;
    let answer = patch(&app, &stranger, &path, &json!({"description": "x"})).await;
    answer.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_does_not_change_under_a_job() {
    let app = TestApp::builder().without_workers().start().await;
    let holder = app.token("hospital", Role::Holder).await;
    let path = dataset(&app, &holder).await;
    let job = json!({"dataset_id": path.rsplit('/').next(),
        "privacy": {"model": "k_anonymity", "k": 2}});
    let job = app.post(&holder, "/v1/jobs", &job).await.json(202);
    let body = json!({"description": "new"});
    patch(&app, &holder, &path, &body)
        .await
        .problem(409, "conflict");
    let job = format!("/v1/jobs/{}", text(&job["id"]));
    app.delete(&holder, &job).await.json(202);
    assert_eq!(
        patch(&app, &holder, &path, &body).await.json(200)["description"],
        "new"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_gives_columns_other_roles_for_itself() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let path = dataset(&app, &holder).await;
    let id = path.rsplit('/').next();
    let privacy = json!({"model": "k_anonymity", "k": 2});
    let job = json!({"dataset_id": id, "privacy": privacy, "release": true,
        "roles": {"job": "quasi_identifier", "age": "insensitive"}});
    let job = app.post(&holder, "/v1/jobs", &job).await.json(202);
    let job = format!("/v1/jobs/{}", text(&job["id"]));
    let ended = poll_async(std::time::Duration::from_secs(60), async || {
        let document = app.get(&holder, &job).await.json(200);
        (!document["ended_at"].is_null()).then_some(document)
    });
    let ended = ended.await.unwrap();
    assert_eq!(ended["status"], "succeeded", "{ended}");
    let release = format!("/v1/releases/{}", text(&ended["release_id"]));
    let release = app.get(&holder, &release).await.json(200);
    let cut = release["cut"].as_object().unwrap();
    assert_eq!(cut.keys().collect::<Vec<_>>(), ["job"]);
    assert_eq!(
        app.get(&holder, &path).await.json(200)["columns"][2]["role"],
        "insensitive"
    );
    for (roles, pointer) in [
        (json!({"none": "insensitive"}), "/roles/none"),
        (json!({"id": "insensitive"}), "/roles/id"),
        (json!({"job": "subject"}), "/roles/job"),
        (json!({"job": "class", "ill": "class"}), "/roles"),
    ] {
        let job = json!({"dataset_id": id, "privacy": privacy, "roles": roles});
        let problem = app
            .post(&holder, "/v1/jobs", &job)
            .await
            .problem(422, "invalid_job");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    let job = json!({"dataset_id": id, "privacy": privacy, "roles": {"job": "no"}});
    app.post(&holder, "/v1/jobs", &job)
        .await
        .problem(400, "invalid_shape");
}

/// The faults of fields that the column has from before say so.
#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_a_field_that_was_not_sent_says_that_it_is_from_before() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let body = json!({"name": "d", "columns": [
        {"name": "o", "role": "quasi_identifier", "order": ["low", "high"]},
        {"name": "n", "role": "quasi_identifier", "kind": "numeric", "round_range": true},
        {"name": "p", "role": "quasi_identifier", "taxonomy": {"generate": "prefix"}}]});
    let made = app.post(&holder, "/v1/datasets", &body).await.json(201);
    let path = format!("/v1/datasets/{}", text(&made["id"]));
    let ordered = json!({"generate": "ordered"});
    for (change, pointer, kept) in [
        (
            json!({"name": "o", "taxonomy": {"generate": "prefix"}}),
            "/columns/0/order",
            Some("order"),
        ),
        (
            json!({"name": "n", "domain": [0, 9]}),
            "/columns/0/round_range",
            Some("round_range"),
        ),
        (
            json!({"name": "p", "order": ["a", "b"]}),
            "/columns/0/order",
            None,
        ),
        (
            json!({"name": "p", "taxonomy": ordered}),
            "/columns/0/taxonomy",
            None,
        ),
        (
            json!({"name": "n", "order": ["a", "b"]}),
            "/columns/0/order",
            None,
        ),
    ] {
        let answer = patch(&app, &holder, &path, &columns(json!([change]))).await;
        let problem = answer.problem(422, "invalid_schema");
        let fault = &problem["errors"][0];
        assert_eq!(fault["pointer"], pointer, "{problem}");
        let fix = fault["suggested_fix"].as_str().unwrap_or_default();
        let of_kept = kept.map(|field| format!("the column has `{field}` from before"));
        let is_named = of_kept.is_some_and(|text| fix.starts_with(&text));
        assert_eq!(is_named, kept.is_some(), "{problem}");
    }
}

/// The steps of a job are those of the columns that it ran on: under others its table would be another one, or none.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_on_columns_that_changed_since_have_no_table() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let path = dataset(&app, &holder).await;
    let id = path.rsplit('/').next().unwrap();
    let job = json!({"dataset_id": id, "privacy": {"model": "k_anonymity", "k": 2}});
    let run = async || {
        let made = app.post(&holder, "/v1/jobs", &job).await.json(202);
        let job = format!("/v1/jobs/{}", text(&made["id"]));
        let ended = poll_async(std::time::Duration::from_secs(30), async || {
            let found = app.get(&holder, &job).await.json(200);
            (found["status"] == "succeeded").then_some(())
        });
        ended.await.expect("the job succeeds");
        job
    };
    let before = run().await;
    let release = async |job: &str| {
        let body = json!({"job_id": job.rsplit('/').next().unwrap()});
        app.post(&holder, "/v1/releases", &body).await
    };
    let same = json!({"description": "new"});
    patch(&app, &holder, &path, &same).await.json(200);
    release(&before).await.json(201);

    let body = columns(json!([{"name": "age", "domain": [-50, 199]}]));
    patch(&app, &holder, &path, &body).await.json(200);
    release(&before).await.problem(409, "conflict");
    app.get(&holder, &format!("{before}/report"))
        .await
        .problem(409, "conflict");
    release(&run().await).await.json(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_is_twice_in_a_patch_is_refused_whatever_its_first_change() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let path = dataset(&app, &holder).await;
    let body = columns(json!([
        {"name": "job", "role": "insensitive"}, {"name": "job", "role": "sensitive"}]));
    patch(&app, &holder, &path, &body)
        .await
        .problem(422, "invalid_schema");
}

/// Null is stored as the first word for missing, and would be a value without that word.
#[tokio::test(flavor = "multi_thread")]
async fn the_word_that_null_is_stored_as_goes_on_to_mean_missing() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let body = json!({"name": "d", "columns": [
        {"name": "q", "role": "quasi_identifier", "missing": ["NA", "x"]}]});
    let made = app.post(&holder, "/v1/datasets", &body).await.json(201);
    let path = format!("/v1/datasets/{}", text(&made["id"]));
    let words = |words: Value| columns(json!([{"name": "q", "missing": words}]));
    // Without rows any words do.
    let free = patch(&app, &holder, &path, &words(json!(["NA"]))).await;
    free.json(200);
    let to = format!("{path}/submissions");
    let rows = "{\"q\":null}\n{\"q\":\"b\"}\n";
    // CSV has no null.
    let csv = app.post_bytes(&holder, &to, "text/csv", "q\nNA\nc\n");
    csv.await.json(201);
    patch(&app, &holder, &path, &words(json!(["-"])))
        .await
        .json(200);
    patch(&app, &holder, &path, &words(json!(["NA"])))
        .await
        .json(200);
    let sent = app.post_bytes(&holder, &to, "application/x-ndjson", rows);
    sent.await.json(201);
    // Neither at once nor in two steps.
    for others in [json!(["-"]), json!(["-", "NA"]), json!(["", "NA"])] {
        let refused = patch(&app, &holder, &path, &words(others)).await;
        let problem = refused.problem(409, "conflict");
        assert_eq!(problem["errors"][0]["pointer"], "/columns/0/missing");
    }
    let more = patch(&app, &holder, &path, &words(json!(["NA", "-"]))).await;
    more.json(200);
    let profile = app.get(&holder, &format!("{path}/profile")).await.json(200);
    assert_eq!(profile["columns"][0]["missing"], 2, "{profile}");
}

/// A body whose second part is sent when the sender of the channel is dropped.
fn in_two_parts(first: &str, second: &str) -> (oneshot::Sender<()>, Body) {
    let (goes_on, waits) = oneshot::channel::<()>();
    let (first, second) = (first.to_owned(), second.to_owned());
    let rest = stream::once(async {
        let _ = waits.await;
        Ok(second)
    });
    let parts = stream::once(async { Ok::<_, std::io::Error>(first) }).chain(rest);
    (goes_on, Body::wrap_stream(parts.boxed()))
}

/// Time for a request to come to wait.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(30);

/// They would be read as the columns were, and released as values that they never had.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_under_way_while_the_columns_change_are_refused() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let path = dataset(&app, &holder).await;
    // An upload has a place when its first 64 KiB have come, and a share of the dataset at 8,192 rows.
    let rows = "5,500,Cook,flu\n".repeat(6_000);
    let first = format!("id,age,job,ill\n{rows}");
    let (goes_on, body) = in_two_parts(&first, "6,600,Cook,hiv\n");
    let widened = columns(json!([{"name": "age", "domain": null}]));
    patch(&app, &holder, &path, &widened).await.json(200);
    let request = app.request(Method::POST, &format!("{path}/submissions"));
    let request = request
        .bearer_auth(&holder)
        .header("content-type", "text/csv");
    let narrowed = columns(json!([{"name": "age", "domain": [0, 99]}]));
    let (sent, ()) = tokio::join!(send(request.body(body)), async {
        let has_place = poll_async(LIMIT, async || {
            (app.state.unscoped().free_uploads() < 2).then_some(())
        });
        has_place.await.expect("the upload is under way");
        patch(&app, &holder, &path, &narrowed).await.json(200);
        drop(goes_on);
    });
    sent.problem(409, "conflict");
    let shown = app.get(&holder, &path).await.json(200);
    assert_eq!(
        (&shown["rows"], &shown["submissions_total"]),
        (&json!(4), &json!(1))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_changes_at_the_same_time_none_takes_another_one_back() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let path = dataset(&app, &holder).await;
    let mut conflicts = 0;
    for round in 0..10 {
        let role = ["sensitive", "insensitive"][round % 2];
        let roles = columns(json!([{"name": "job", "role": role}]));
        let text = json!({"description": format!("round {round}")});
        let days = json!({"retention_days": round + 1});
        let (by_role, by_text, by_days) = tokio::join!(
            patch(&app, &holder, &path, &roles),
            patch(&app, &holder, &path, &text),
            patch(&app, &holder, &path, &days)
        );
        let shown = app.get(&holder, &path).await.json(200);
        for (answer, found, expected) in [
            (by_role, &shown["columns"][2]["role"], json!(role)),
            (by_text, &shown["description"], text["description"].clone()),
            (by_days, &shown["retention_days"], json!(round + 1)),
        ] {
            if answer.status == 200 {
                assert_eq!(*found, expected, "{shown}");
            } else {
                answer.problem(409, "conflict");
                conflicts += 1;
            }
        }
    }
    assert!(conflicts < 30, "no change was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taxonomy_is_deleted_or_used_but_not_both() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let path = dataset(&app, &holder).await;
    for round in 0..10 {
        let root = json!({"label": "ANY", "children": [{"label": "Cook"}, {"label": "Nurse"}]});
        let tree = json!({"name": format!("jobs {round}"), "root": root});
        let made = app.post(&holder, "/v1/taxonomies", &tree).await.json(201);
        let id = text(&made["id"]).to_owned();
        let use_it = columns(json!([{"name": "job", "role": "quasi_identifier", "taxonomy": id}]));
        let taxonomy = format!("/v1/taxonomies/{id}");
        let (used, deleted) = tokio::join!(
            patch(&app, &holder, &path, &use_it),
            app.delete(&holder, &taxonomy)
        );
        match (used.status.as_u16(), deleted.status.as_u16()) {
            (200, 409) | (404, 204) | (409, 204) => {}
            both => panic!("{both:?}"),
        }
    }
}

/// Rows that are deleted while they are read are no missing dataset.
#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_is_read_while_submissions_of_it_are_deleted() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    // Persons are counted by submission, and so submissions are listed before they are read.
    let body = json!({"name": "persons", "columns": [
        {"name": "id", "role": "subject"}, {"name": "age", "role": "quasi_identifier"},
        {"name": "job", "role": "insensitive"}, {"name": "ill", "role": "sensitive"}]});
    let made = app.post(&holder, "/v1/datasets", &body).await.json(201);
    let path = format!("/v1/datasets/{}", text(&made["id"]));
    let to = format!("{path}/submissions?allow_duplicate=true");
    let rows: String = (0..1000)
        .map(|row| format!("{row},20,Cook,flu\n"))
        .collect();
    for _ in 0..8 {
        let sent = async || {
            let body = format!("id,age,job,ill\n{rows}");
            let sent = app
                .post_bytes(&holder, &to, "text/csv", body)
                .await
                .json(201);
            format!("{path}/submissions/{}", text(&sent["id"]))
        };
        let (one, other) = (sent().await, sent().await);
        let role = columns(json!([{"name": "job", "role": "class"}]));
        let profile = format!("{path}/profile");
        let (changed, profiled, first, second) = tokio::join!(
            patch(&app, &holder, &path, &role),
            app.get(&holder, &profile),
            app.delete(&holder, &one),
            app.delete(&holder, &other)
        );
        assert!(
            [200, 409].contains(&changed.status.as_u16()),
            "{}",
            changed.text
        );
        assert_eq!(profiled.status, 200, "{}", profiled.text);
        assert_eq!((first.status.as_u16(), second.status.as_u16()), (204, 204));
    }
}

/// What a request asks for while its token is revoked is not done.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_token_is_revoked_while_it_is_made_is_not_made() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let path = dataset(&app, &holder).await;
    let (token, secret) = app.token_with_id("hospital", Role::Holder).await;
    let owner = app.state.unscoped().db.owner();
    let mut revocation = owner.begin().await.unwrap();
    sqlx::query("UPDATE tokens SET revoked_at = now() WHERE id = $1")
        .bind(token)
        .execute(&mut *revocation)
        .await
        .unwrap();
    let body = json!({"description": "by a revoked token"});
    let (sent, ()) = tokio::join!(patch(&app, &secret, &path, &body), async {
        let waits = poll_async(LIMIT, async || {
            let waiting: bool = sqlx::query_scalar(
                "SELECT EXISTS (SELECT FROM pg_stat_activity
                                WHERE wait_event_type = 'Lock' AND query LIKE '%FOR SHARE OF t FOR KEY SHARE OF o%')",
            )
            .fetch_one(owner)
            .await
            .unwrap();
            waiting.then_some(())
        });
        waits.await.expect("the change waits for the revocation");
        revocation.commit().await.unwrap();
    });
    sent.problem(401, "unauthenticated");
    assert_eq!(
        app.get(&holder, &path).await.json(200)["description"],
        "old"
    );
}
