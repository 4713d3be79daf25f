//! The deletion of single submissions.

use std::time::Duration;

use pais::db::seal::SealedItem;
use pais::roles::Role;
use pais_core::definition::{DatasetId, SubmissionId};
use pais_test_support::poll::poll_async;
use serde_json::json;
use sqlx::{ConnectOptions, Connection, Row};
use uuid::Uuid;

use crate::app::text;
use crate::hospital::{Hospital, TABLE, id};
use crate::publications::{JOB, month, publication, published, settled, visits};

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_submission_is_gone_and_releases_stay() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let second = hospital.submit(&dataset, TABLE).await.json(201);
    let job = hospital.job(&dataset, json!({ "release": true })).await;
    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    workers.stop().await;
    let release = format!("/v1/releases/{}", text(&ended["release_id"]));
    let queued = hospital.job(&dataset, json!({})).await;

    let path = format!("{dataset}/submissions/{}", text(&second["id"]));
    let deleted = hospital.app.delete(&hospital.token, &path).await;
    assert_eq!(deleted.status, 204);
    let again = hospital.app.delete(&hospital.token, &path).await;
    again.problem(404, "not_found");
    let left = hospital.get(&dataset).await.json(200);
    assert_eq!(left["rows"], 11);
    assert_eq!(hospital.ended(&queued).await["status"], "cancelled");

    // What was released stays, and no further step of the run is.
    assert_eq!(hospital.get(&format!("{release}/data")).await.status, 200);
    let body = json!({ "job_id": id(&job) });
    let refused = hospital.post("/v1/releases", &body).await;
    refused.problem(409, "dataset_deleted");
    // The rows that are left are read as before.
    let job = hospital.job(&dataset, json!({})).await;
    let workers = hospital.work();
    assert_eq!(hospital.ended(&job).await["status"], "succeeded");
    workers.stop().await;

    let auditor = hospital.app.token("hospital", Role::Auditor).await;
    let events = "/v1/audit?action=submission.deleted";
    let events = hospital.app.get(&auditor, events).await.json(200);
    assert_eq!(events["items"][0]["subject"], second["id"]);
    assert_eq!(events["items"][0]["detail"]["rows"], 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_deleted_submission_is_not_opened_by_any_key_that_is_left() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let sent = hospital.submit(&dataset, TABLE).await.json(201);
    let submission = SubmissionId(text(&sent["id"]).parse::<Uuid>().unwrap());
    let dataset_id = DatasetId(id(&dataset).parse::<Uuid>().unwrap());
    let store = &hospital.app.state.unscoped().db;
    let sealed: Vec<u8> =
        sqlx::query("SELECT sealed FROM submission_chunks WHERE submission_id = $1")
            .bind(submission.0)
            .fetch_one(store.owner())
            .await
            .unwrap()
            .get(0);
    let keys = &hospital.app.state.unscoped().keys;
    let organization: Uuid =
        sqlx::query_scalar("SELECT organization_id FROM datasets WHERE id = $1")
            .bind(dataset_id.0)
            .fetch_one(store.owner())
            .await
            .unwrap();
    let organization = pais::ids::OrganizationId(organization);
    let loaded = pais::db::datasets::load(store, organization, dataset_id).await;
    let key = loaded.unwrap().unwrap().open_key(keys).unwrap();
    let place = SealedItem::Chunk {
        submission,
        index: 0,
    };
    let wrapped = store.data_keys().read(store.owner(), submission).await;
    let own = key.open_submission_key(submission, &wrapped.unwrap().unwrap());
    assert!(own.unwrap().open(place, &sealed).is_ok());

    let path = format!("{dataset}/submissions/{}", submission.0);
    let deleted = hospital.app.delete(&hospital.token, &path).await;
    assert_eq!(deleted.status, 204);
    assert!(key.open(place, &sealed).is_err());
    let destroyed = store.data_keys().read(store.owner(), submission).await;
    assert!(destroyed.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_is_deleted_by_its_holder_below_its_dataset() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let other_dataset = hospital.filled_dataset().await;
    let sent = hospital.submit(&dataset, TABLE).await.json(201);
    let submission = text(&sent["id"]).to_owned();
    let other = hospital.app.token("other", Role::Holder).await;
    let path = format!("{dataset}/submissions/{submission}");
    let foreign = hospital.app.delete(&other, &path).await;
    foreign.problem(404, "not_found");
    let elsewhere = format!("{other_dataset}/submissions/{submission}");
    let elsewhere = hospital.app.delete(&hospital.token, &elsewhere).await;
    elsewhere.problem(404, "not_found");
    assert_eq!(hospital.get(&dataset).await.json(200)["rows"], 11);
}

/// Rows are removed after the deletion, which a crash can come between.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_deleted_submission_are_removed_later_if_the_service_stops_before() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let kept = hospital.submit(&dataset, TABLE).await.json(201);
    let lost = hospital.submit(&dataset, TABLE).await.json(201);
    let empty = hospital.dataset().await;
    let owner = hospital.app.state.unscoped().db.owner();
    let left = async || -> Vec<Uuid> {
        let left = "SELECT submission_id FROM submission_chunks";
        sqlx::query_scalar(left).fetch_all(owner).await.unwrap()
    };
    assert_eq!(left().await.len(), 2);
    sqlx::query("DELETE FROM submissions WHERE id = $1")
        .bind(text(&lost["id"]).parse::<Uuid>().unwrap())
        .execute(owner)
        .await
        .unwrap();
    assert_eq!(left().await.len(), 2);
    let deleted = hospital.app.delete(&hospital.token, &empty).await;
    assert_eq!(deleted.status, 204);
    let removed = poll_async(Duration::from_secs(60), async || {
        (left().await.len() == 1).then_some(())
    });
    removed.await.expect("the rows are not removed after 60 s");
    assert_eq!(left().await[0].to_string(), text(&kept["id"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_were_never_committed_are_looked_for_after_a_crash() {
    let hospital = Hospital::new().await;
    hospital.filled_dataset().await;
    let empty = hospital.dataset().await;
    let owner = hospital.app.state.unscoped().db.owner();
    // A server that crashes loses its statistics, and knows of no dead row.
    let superuser = (*owner.connect_options()).clone().username("postgres");
    let mut superuser = superuser.connect().await.unwrap();
    sqlx::raw_sql("SELECT pg_stat_reset()")
        .execute(&mut superuser)
        .await
        .unwrap();
    superuser.close().await.unwrap();
    let is_vacuumed = async || -> bool {
        let at = "SELECT pg_stat_get_last_vacuum_time('submission_chunks'::regclass) IS NOT NULL";
        sqlx::query_scalar(at).fetch_one(owner).await.unwrap()
    };
    assert!(!is_vacuumed().await);
    let deleted = hospital.app.delete(&hospital.token, &empty).await;
    assert_eq!(deleted.status, 204);
    let vacuumed = poll_async(Duration::from_secs(60), async || {
        is_vacuumed().await.then_some(())
    });
    vacuumed
        .await
        .expect("the rows of a cut upload take space for good");
}

/// The deletion of a file cancels the job of an edition that reads it. Nobody has cancelled the edition: the rows of
/// its other files are published.
#[tokio::test(flavor = "multi_thread")]
async fn an_edition_is_queued_again_where_one_of_its_files_is_deleted_meanwhile() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "manual", JOB()).await;
    let first = hospital.submit(&dataset, month(0)).await.json(201);
    hospital.submit(&dataset, month(100)).await.json(201);
    let queue = async || {
        let path = format!("{publication}/editions");
        let queued = hospital.post(&path, &json!({})).await.json(202);
        format!("/v1/jobs/{}", text(&queued["job_id"]))
    };
    let job = queue().await;
    let path = format!("{dataset}/submissions/{}", text(&first["id"]));
    let deleted = hospital.app.delete(&hospital.token, &path).await;
    assert_eq!(deleted.status, 204, "{}", deleted.text);
    assert_eq!(hospital.get(&job).await.json(200)["status"], "cancelled");
    let workers = hospital.work();
    let edition = published(&hospital, &publication, 1).await;
    assert_eq!(edition["rows"], 16, "{edition}");
    workers.stop().await;

    hospital.submit(&dataset, month(200)).await.json(201);
    let job = queue().await;
    hospital.app.delete(&hospital.token, &job).await;
    let workers = hospital.work();
    let ended = settled(&hospital, &publication, 2).await;
    assert_eq!(ended["error"]["code"], "cancelled", "{ended}");
    workers.stop().await;
}
