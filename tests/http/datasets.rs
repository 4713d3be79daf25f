//! Datasets: declaration, lookup, deletion, retention, and errors of their columns.

use pais::clock::Clock;
use pais::db::datasets;
use pais::db::{deletion, organizations};
use pais::ids::OrganizationId;
use pais::roles::Role;
use pais_core::definition::DatasetId;
use serde_json::{Value, json};
use time::Duration;

use crate::app::{TestApp, send, text};
use crate::hospital::{Hospital, TABLE};
use crate::publications::waits_for_lock;
use pais_test_support::poll::poll_async;

fn minimal(name: &str) -> Value {
    json!({"name": name, "columns": [{"name": "x", "role": "quasi_identifier"}]})
}

async fn taxonomy(app: &TestApp, holder: &str, name: &str) -> Value {
    let root = json!({"label": "ANY", "children": [{"label": "a"}, {"label": "b"}]});
    let body = json!({"name": name, "root": root});
    app.post(holder, "/v1/taxonomies", &body).await.json(201)["id"].clone()
}

async fn organization(app: &TestApp, name: &str) -> OrganizationId {
    let found = organizations::find(app.state.unscoped().db.owner(), name).await;
    found.unwrap().unwrap().id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_is_stored_as_declared() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let tree = taxonomy(&app, &holder, "t").await;
    let columns = json!([
        {"name": "id", "role": "identifier", "kind": "categorical"},
        {"name": "job", "role": "quasi_identifier", "kind": "categorical", "taxonomy": tree},
        {"name": "sex", "role": "quasi_identifier", "kind": "categorical",
         "taxonomy": {"label": "*", "children": [{"label": "M"}, {"label": "F"}]}},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0.0, 99.5]},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set", "separator": ";"},
        {"name": "ill", "role": "sensitive", "kind": "categorical", "missing": ["", "NA"]}]);
    let body = json!({"name": "visits", "description": "2026", "columns": columns,
        "retention_days": 30});
    let answer = app.post(&holder, "/v1/datasets", &body).await;
    let made = answer.json(201);
    assert_eq!(made["columns"], columns);
    assert_eq!(made["rows"], 0);
    assert_eq!(made["submissions"], json!([]));
    assert_eq!(
        app.get(&holder, answer.header("location")).await.json(200),
        made
    );
    let listed = app.get(&holder, "/v1/datasets").await.json(200);
    let item = &listed["items"][0];
    assert_eq!(
        (&item["id"], &item["name"]),
        (&made["id"], &json!("visits"))
    );
    assert_eq!(
        (&item["columns"], &item["submissions"]),
        (&json!(6), &json!(0))
    );
    assert_eq!(
        (&item["description"], &item["retention_days"]),
        (&json!("2026"), &json!(30))
    );

    let id: DatasetId = text(&made["id"]).parse().unwrap();
    let owner = organization(&app, "hospital").await;
    let stored = datasets::load(&app.state.unscoped().db, owner, id)
        .await
        .unwrap()
        .unwrap();
    let trees: Vec<_> = stored
        .schema
        .columns
        .iter()
        .map(|c| c.tree().is_some())
        .collect();
    assert_eq!(trees, [false, true, true, false, false, false]);
    app.state
        .unscoped()
        .keys
        .open(id, &stored.wrapped_key)
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_dataset_is_not_found_and_its_name_is_free() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let answer = app.post(&holder, "/v1/datasets", &minimal("d")).await;
    let path = answer.header("location");
    app.post(&holder, "/v1/datasets", &minimal("d"))
        .await
        .problem(409, "name_taken");
    let other = app.token("elsewhere", Role::Holder).await;
    app.get(&other, path).await.problem(404, "not_found");
    app.delete(&other, path).await.problem(404, "not_found");
    assert_eq!(app.delete(&holder, path).await.status, 204);
    app.get(&holder, path).await.problem(404, "not_found");
    app.delete(&holder, path).await.problem(404, "not_found");
    let listed = app.get(&holder, "/v1/datasets").await.json(200);
    assert_eq!(listed["items"], json!([]));
    app.post(&holder, "/v1/datasets", &minimal("d"))
        .await
        .json(201);

    let id: DatasetId = text(&answer.json(201)["id"]).parse().unwrap();
    let owner = organization(&app, "hospital").await;
    let found = datasets::load(&app.state.unscoped().db, owner, id).await;
    assert!(found.unwrap().is_none());

    let auditor = app.token("hospital", Role::Auditor).await;
    let events = app.get(&auditor, "/v1/audit").await.json(200);
    let items = events["items"].as_array().unwrap().iter();
    let actions: Vec<_> = items.map(|event| text(&event["action"])).collect();
    let newest = [
        "token.created",
        "dataset.created",
        "dataset.deleted",
        "dataset.created",
    ];
    assert_eq!(actions[..4], newest);
    let stranger = app.token("elsewhere", Role::Auditor).await;
    let events = app.get(&stranger, "/v1/audit").await;
    assert!(!events.text.contains("dataset."), "{}", events.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_is_deleted_after_its_retention_period() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let mut body = minimal("short");
    body["retention_days"] = json!(2);
    let made = app.post(&holder, "/v1/datasets", &body).await;
    app.post(&holder, "/v1/datasets", &minimal("long"))
        .await
        .json(201);
    app.clock.advance(Duration::days(2) - Duration::seconds(1));
    let store = &app.state.unscoped().db;
    assert_eq!(deletion::delete_expired(store).await.unwrap(), 0);
    app.clock.advance(Duration::seconds(1));
    assert_eq!(deletion::delete_expired(store).await.unwrap(), 1);
    app.get(&holder, made.header("location"))
        .await
        .problem(404, "not_found");
    assert!(store.now() >= app.clock.now() - Duration::seconds(1));
}

/// A submission is deleted by age, whatever happens to others, and not while its dataset has a legal
/// hold; nor is the dataset.
#[tokio::test(flavor = "multi_thread")]
async fn submissions_are_deleted_after_their_retention_unless_they_are_held() {
    let hospital = Hospital::new().await;
    let app = &hospital.app;
    let store = &app.state.unscoped().db;
    let dataset = hospital.filled_dataset().await;
    let days = json!({ "submission_retention_days": 10, "retention_days": 100 });
    let patch = app.request(reqwest::Method::PATCH, &dataset);
    let patched = send(patch.bearer_auth(&hospital.token).json(&days)).await;
    assert_eq!(patched.json(200)["submission_retention_days"], 10);
    app.clock.advance(Duration::days(5));
    let second = hospital.submit(&dataset, TABLE).await.json(201);
    app.clock.advance(Duration::days(5));

    let hold = format!("{dataset}/legal-hold");
    let place = async |reason: &str| {
        let put = app.request(reqwest::Method::PUT, &hold);
        let body = json!({ "reason": reason });
        send(put.bearer_auth(&hospital.token).json(&body)).await
    };
    place(" ").await.problem(422, "invalid_value");
    let bare = app.request(reqwest::Method::PUT, &hold);
    let bare = send(bare.bearer_auth(&hospital.token)).await.json(200);
    assert_eq!(bare["reason"], "no reason was given");
    let placed = place("The court asked for it").await.json(200);
    let again = place("Two courts asked for it").await.json(200);
    assert_eq!(again["since"], placed["since"]);
    let shown = hospital.get(&dataset).await.json(200);
    assert_eq!(shown["legal_hold"], again);
    assert_eq!(deletion::delete_expired(store).await.unwrap(), 0);
    let submission = format!("{dataset}/submissions/{}", text(&second["id"]));
    for path in [&submission, &dataset] {
        let refused = app.delete(&hospital.token, path).await;
        refused.problem(409, "legal_hold");
    }

    assert_eq!(app.delete(&hospital.token, &hold).await.status, 204);
    let none = app.delete(&hospital.token, &hold).await;
    none.problem(404, "not_found");
    assert_eq!(deletion::delete_expired(store).await.unwrap(), 1);
    let left = hospital.get(&dataset).await.json(200);
    assert_eq!(left["submissions"].as_array().unwrap().len(), 1);
    assert_eq!(left["submissions"][0]["id"], second["id"]);

    let auditor = app.token("hospital", Role::Auditor).await;
    let path = "/v1/audit?action=submission.deleted";
    let deleted = app.get(&auditor, path).await.json(200);
    assert_eq!(deleted["items"][0]["detail"]["reason"], "retention");
    assert!(deleted["items"][0]["token_id"].is_null());
    for action in ["legal_hold.placed", "legal_hold.lifted"] {
        let path = format!("/v1/audit?action={action}");
        let events = app.get(&auditor, &path).await.json(200);
        assert!(!events["items"].as_array().unwrap().is_empty(), "{action}");
    }
}

/// The attack: each request for the name of a dataset that was being located took a connection to the database until
/// its rows were read.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_being_taken_is_refused_at_once() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let store = &app.state.unscoped().db;
    let mut taking = store.begin().await.unwrap();
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1::text || '/patients', 19))")
        .bind(organization(&app, "hospital").await)
        .execute(&mut *taking)
        .await
        .unwrap();
    let refused = app
        .post(&holder, "/v1/datasets", &minimal("patients"))
        .await;
    refused.problem(409, "name_taken");
    taking.rollback().await.unwrap();
    let made = app
        .post(&holder, "/v1/datasets", &minimal("patients"))
        .await;
    made.json(201);
}

/// A dataset that cannot be deleted does not prevent the deletion of others.
#[tokio::test(flavor = "multi_thread")]
async fn one_failure_does_not_stop_the_end_of_retention() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let mut paths = Vec::new();
    for name in ["first", "second", "third"] {
        let mut body = minimal(name);
        body["retention_days"] = json!(1);
        let made = app.post(&holder, "/v1/datasets", &body).await;
        paths.push(made.header("location").to_owned());
    }
    let store = &app.state.unscoped().db;
    sqlx::raw_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
         CREATE TRIGGER refuse BEFORE UPDATE ON datasets FOR EACH ROW
             WHEN (OLD.name = 'first') EXECUTE FUNCTION refuse()",
    )
    .execute(store.owner())
    .await
    .unwrap();
    app.clock.advance(Duration::days(1));
    assert_eq!(deletion::delete_expired(store).await.unwrap(), 2);
    assert_eq!(app.get(&holder, &paths[0]).await.status, 200);
    assert_eq!(app.get(&holder, &paths[2]).await.status, 404);
    sqlx::raw_sql("DROP TRIGGER refuse ON datasets")
        .execute(store.owner())
        .await
        .unwrap();
    assert_eq!(deletion::delete_expired(store).await.unwrap(), 1);
}

/// The attack: a dataset that was changed while it was read was shown with the trees that it had before.
#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_that_changes_while_it_is_read_is_shown_with_its_own_trees() {
    let hospital = Hospital::new().await;
    let mut body = minimal("d");
    let other = json!({"name": "y", "role": "quasi_identifier",
                       "taxonomy": {"label": "ANY", "children": [{"label": "a"}, {"label": "b"}]}});
    body["columns"].as_array_mut().unwrap().push(other);
    let made = hospital.post("/v1/datasets", &body).await;
    let path = made.header("location");
    let before = hospital.get(path).await.json(200);
    let owner = hospital.app.state.unscoped().db.owner();
    let mut change = owner.begin().await.unwrap();
    // The columns change their places.
    sqlx::raw_sql(
        "LOCK TABLE datasets;
         UPDATE datasets SET revision = revision + 1, definition = jsonb_set(
             definition, '{columns}',
             jsonb_build_array(definition #> '{columns,1}', definition #> '{columns,0}'));
         UPDATE dataset_trees SET position = 1 - position",
    )
    .execute(&mut *change)
    .await
    .unwrap();
    let changes = async {
        let waits = poll_async(std::time::Duration::from_secs(60), async || {
            waits_for_lock(&hospital).await.then_some(())
        });
        waits.await.expect("the dataset is not read");
        change.commit().await.unwrap();
    };
    let (found, ()) = tokio::join!(hospital.get(path), changes);
    let mut columns = found.json(200)["columns"].clone();
    if columns[0]["name"] == "y" {
        columns.as_array_mut().unwrap().reverse();
    }
    assert_eq!(columns, before["columns"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taxonomy_of_another_organization_is_as_if_it_did_not_exist() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let other = app.token("elsewhere", Role::Holder).await;
    let foreign = taxonomy(&app, &other, "t").await;
    let unknown = json!("01900000-0000-7000-8000-000000000000");
    let mut texts = Vec::new();
    for id in [foreign, unknown] {
        let mut body = minimal("d");
        body["columns"][0]["taxonomy"] = id;
        let answer = app.post(&holder, "/v1/datasets", &body).await;
        let document = answer.problem(404, "not_found");
        assert_eq!(document["errors"][0]["pointer"], "/columns/0/taxonomy");
        texts.push(answer.text);
    }
    assert_eq!(texts[0], texts[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_columns_are_reported_together() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let body = json!({"name": "d", "columns": [
        {"name": "a", "role": "class"},
        {"name": "a", "role": "class"},
        {"name": "b", "role": "sensitive", "kind": "set"},
        {"name": "c", "role": "quasi_identifier", "domain": [0, 1]},
        {"name": "e", "role": "quasi_identifier", "kind": "numeric", "domain": [2, 1]},
        {"name": "f", "role": "quasi_identifier", "kind": "set", "separator": "||"}]});
    let answer = app.post(&holder, "/v1/datasets", &body).await;
    insta::assert_json_snapshot!(answer.problem(422, "invalid_schema"));

    let cases = [
        (json!({"columns": []}), 422, "invalid_schema"),
        (json!({"name": " "}), 422, "invalid_name"),
        (json!({"retention_days": 0}), 422, "invalid_value"),
        (json!({"retention_days": 36_501}), 422, "invalid_value"),
        (json!({"retention_days": 1.5}), 400, "invalid_shape"),
        (json!({"colour": "red"}), 400, "invalid_shape"),
        (
            json!({"columns": [{"name": "x", "role": "king"}]}),
            400,
            "invalid_shape",
        ),
        (json!({"columns": [{"name": "x"}]}), 400, "invalid_shape"),
        (
            json!({"columns": [{"name": "x", "role": "class", "taxonomy": "x"}]}),
            400,
            "invalid_shape",
        ),
        (
            json!({"columns": [{"name": "x", "role": "class", "taxonomy": {"label": "x"}}]}),
            422,
            "invalid_taxonomy",
        ),
        (
            json!({"columns": (0..65)
                .map(|n| json!({"name": n.to_string(), "role": "insensitive"}))
                .collect::<Vec<_>>()}),
            422,
            "limit_exceeded",
        ),
    ];
    for (change, status, code) in cases {
        let mut body = minimal("d");
        for (key, value) in change.as_object().unwrap() {
            body[key] = value.clone();
        }
        app.post(&holder, "/v1/datasets", &body)
            .await
            .problem(status, code);
    }
}
