//! Answers stored under idempotency keys.

use std::collections::BTreeMap;
use std::time::Duration;

use pais::db::idempotency::{
    IdempotentAnswer, KeyState, RETENTION, Reservation, begin, commit, delete_expired,
};
use pais::db::{Store, instances, organizations};
use pais::roles::Role;
use reqwest::Method;
use sqlx::ConnectOptions;
use uuid::Uuid;

use crate::app::{TestApp, send};
use crate::database::lock_waits;
use crate::hospital::{Hospital, TABLE, job_on};
use crate::link::{Condition, Far, Link};
use pais_test_support::poll::poll_async;

const ENDPOINT: &str = "POST /v1/jobs";

struct Keys {
    app: TestApp,
    organization: pais::ids::OrganizationId,
}

impl Keys {
    async fn new() -> Self {
        let app = TestApp::new().await;
        app.token("hospital", Role::Holder).await;
        let found = organizations::find(app.state.unscoped().db.owner(), "hospital").await;
        let organization = found.unwrap().unwrap().id;
        Self { app, organization }
    }

    async fn begin(&self, key: &str) -> KeyState {
        let service = &self.app.state.unscoped();
        begin(&service.db, &service.keys, self.organization, ENDPOINT, key)
            .await
            .unwrap()
    }

    async fn reserve(&self, key: &str) -> Reservation {
        match self.begin(key).await {
            KeyState::Reserved(reservation) => reservation,
            _ => panic!("the key is not free"),
        }
    }

    async fn finish(&self, reservation: Reservation, body: &[u8]) -> bool {
        let transaction = self.app.state.unscoped().db.begin().await.unwrap();
        commit(Some(reservation), transaction, body, &answer())
            .await
            .unwrap()
    }
}

/// The attack: a client that hung up while its key was being reserved could not repeat its request for an
/// hour.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_dropped_while_it_reserves_its_key_leaves_the_key_free() {
    let keys = Keys::new().await;
    let options = keys.app.state.unscoped().db.owner().connect_options();
    let superuser = (*options).clone().username("postgres");
    let mut locking = superuser.connect().await.unwrap();
    let lock = "BEGIN; LOCK TABLE idempotent_answers IN EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut locking).await.unwrap();
    let owner = keys.app.state.unscoped().db.owner();
    let is_waiting = async || (lock_waits(owner).await > 0).then_some(());
    tokio::select! {
        _ = keys.begin("key") => panic!("the key was reserved beside the lock"),
        waiting = poll_async(Duration::from_secs(60), is_waiting) => waiting.unwrap(),
    }
    sqlx::raw_sql("ROLLBACK")
        .execute(&mut locking)
        .await
        .unwrap();
    let reserved = poll_async(Duration::from_secs(60), async || {
        matches!(keys.begin("key").await, KeyState::Reserved(_)).then_some(())
    });
    reserved.await.expect("the key stays in use");
}

fn answer() -> IdempotentAnswer {
    IdempotentAnswer {
        status: 202,
        headers: BTreeMap::from([("location".to_owned(), "/v1/jobs/1".to_owned())]),
        body: b"{}".to_vec(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_answer_is_repeated_for_the_same_body() {
    let keys = Keys::new().await;
    let reservation = keys.reserve("a").await;
    assert!(matches!(keys.begin("a").await, KeyState::InUse));
    assert!(keys.finish(reservation, b"body").await);
    let kept = async || match keys.begin("a").await {
        KeyState::Answered(kept) => kept,
        _ => panic!("nothing is kept"),
    };
    assert_eq!(kept().await.replay(b"body").unwrap(), answer());
    assert_eq!(kept().await.replay(b"other"), None);
    keys.reserve("b").await.abandon().await.unwrap();

    keys.app
        .clock
        .advance(time::Duration::try_from(RETENTION).unwrap());
    assert_eq!(
        delete_expired(&keys.app.state.unscoped().db).await.unwrap(),
        1
    );
    keys.reserve("a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_free_again_when_its_request_has_failed() {
    let keys = Keys::new().await;
    keys.reserve("a").await.abandon().await.unwrap();
    drop(keys.reserve("a").await);
    let fresh = poll_async(Duration::from_secs(10), async || {
        match keys.begin("a").await {
            KeyState::Reserved(reservation) => Some(reservation),
            _ => None,
        }
    });
    let fresh = fresh.await.expect("a dropped reservation is still held");
    fresh.abandon().await.unwrap();
}

/// The attack: the key of some refused requests was released only after the answer, so that a retry at once was
/// refused with 409.
#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_refused_request_is_free_when_it_is_answered() {
    let app = TestApp::builder()
        .without_workers()
        .limits(|limits| limits.quotas.stored_rows = 1);
    let hospital = Hospital::with_app(app.start().await).await;
    let dataset = hospital.dataset().await;
    sqlx::raw_sql(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$;
         CREATE TRIGGER slow BEFORE DELETE ON idempotent_answers EXECUTE FUNCTION slow()",
    )
    .execute(hospital.app.state.unscoped().db.owner())
    .await
    .unwrap();
    let headers = [("content-type", "text/csv"), ("idempotency-key", "once")];
    for _ in 0..2 {
        let job = hospital.app.request(Method::POST, "/v1/jobs");
        let job = job.bearer_auth(&hospital.token);
        let job = job.header("idempotency-key", "once");
        let no_rows = send(job.json(&job_on(&dataset))).await;
        no_rows.problem(422, "invalid_job");
    }
    for _ in 0..2 {
        // Refused by the commit: its rows are counted there.
        let too_many = hospital.submit_with(&dataset, &headers, TABLE).await;
        too_many.problem(429, "quota_exceeded");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_reservation_is_taken_over_and_its_owner_is_refused() {
    let keys = Keys::new().await;
    let first = keys.reserve("a").await;
    keys.app.clock.advance(time::Duration::hours(1));
    let second = keys.reserve("a").await;
    assert!(!keys.finish(first, b"body").await);
    assert!(keys.finish(second, b"body").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_free_again_although_the_database_was_lost_at_its_release() {
    let keys = Keys::new().await;
    let options = keys.app.state.unscoped().db.owner().connect_options();
    let link = Link::to(Far::database(&options)).await;
    let direct = options.to_url_lossy();
    let (password, database) = (direct.password().unwrap(), options.get_database().unwrap());
    let url = format!(
        "postgres://pais:{password}@{}/{database}?sslmode=disable",
        link.address
    );
    let store = Store::from_url(&url, 2, keys.app.clock.clone()).unwrap();
    instances::register(&store, Uuid::new_v4()).await.unwrap();
    let ring = &keys.app.state.unscoped().keys;
    let reserve = async || {
        let state = begin(&store, ring, keys.organization, ENDPOINT, "key").await;
        match state {
            Ok(KeyState::Reserved(reservation)) => Some(reservation),
            _ => None,
        }
    };
    let reservation = reserve().await.unwrap();
    link.set(Condition::Cut);
    reservation.abandon().await.unwrap_err();
    link.set(Condition::Normal);
    let reserved = poll_async(Duration::from_secs(30), reserve).await;
    assert!(reserved.is_some(), "the key is not free again");
}
