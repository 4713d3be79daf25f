//! The job queue: leases, lost leases, and jobs whose worker has died.

use std::sync::Arc;
use std::time::Duration;

use pais::clock::SystemClock;
use pais::db::claims::{self, Claim, ClaimRules, Isolation};
use pais::db::jobs::AttemptCounts;
use pais::db::queue::{self, AttemptState, EndResult, LeaseRenewal, NewRunResults, RenewalReply};
use pais::db::{Store, instances};
use pais::jobs::end_exhausted;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::hospital::{Hospital, id};
use crate::replacements::wait_for;
use pais_test_support::poll::poll_async;

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(60);

const COUNTS: AttemptCounts = AttemptCounts {
    rows_read: 7,
    steps_done: 3,
};

async fn claim(store: &Store, lease: Duration) -> Option<Claim> {
    let rules = ClaimRules {
        lease,
        max_attempts: 3,
        running_per_organization: 0,
    };
    end_exhausted(store, 3).await.unwrap();
    match claims::claim(store, &rules, Isolation::Shared)
        .await
        .unwrap()
    {
        Some(claim) => Some(claim),
        None => claims::claim(store, &rules, Isolation::Exclusive)
            .await
            .unwrap(),
    }
}

async fn beat(store: &Store, claim: &Claim) -> RenewalReply {
    let state = AttemptState {
        progress: 0.5,
        phase: Some("searching"),
        counts: COUNTS,
        remaining: Some(Duration::from_millis(1_249)),
    };
    let (job, token) = (claim.job, claim.token);
    let renewals = [LeaseRenewal { job, token, state }];
    let replies = queue::renew_leases(store, LONG, &renewals).await.unwrap();
    replies[0]
}

/// Claims a job as soon as the lease of its former worker has expired.
async fn claim_expired(store: &Store, lease: Duration) -> Claim {
    let claimed = poll_async(Duration::from_secs(10), async || claim(store, lease).await);
    claimed.await.expect("the lease did not expire")
}

/// The same database, as another process uses it.
pub(crate) async fn another_process(store: &Store) -> Store {
    let options = (*store.owner().connect_options()).clone();
    let other = Store::new(options, 2, Arc::new(SystemClock));
    instances::register(&other, Uuid::new_v4()).await.unwrap();
    other
}

async fn count(store: &Store, table: &str) -> i64 {
    let query = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
    let counted = sqlx::query_scalar(query).fetch_one(store.owner()).await;
    counted.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_claimed_once_and_oldest_first() {
    let hospital = Hospital::new().await;
    let store = &hospital.app.state.unscoped().db;
    let dataset = hospital.filled_dataset().await;
    let first = hospital.job(&dataset, json!({})).await;
    let second = hospital.job(&dataset, json!({})).await;
    let (one, two) = tokio::join!(claim(store, LONG), claim(store, LONG));
    let mut claimed = [one.unwrap(), two.unwrap()].map(|claim| format!("/v1/jobs/{}", claim.job));
    claimed.sort();
    assert_eq!(claimed, [first, second]);
    assert!(claim(store, LONG).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_lease_is_taken_over_and_its_worker_is_refused() {
    let hospital = Hospital::new().await;
    let store = &hospital.app.state.unscoped().db;
    let dataset = hospital.filled_dataset().await;
    let job = hospital.job(&dataset, json!({ "release": true })).await;
    // The process of this claim gives no sign of life after it.
    let dead = claim(&another_process(store).await, SHORT).await.unwrap();
    assert!(claim(store, LONG).await.is_none());

    // A worker takes the job when the lease has expired.
    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    workers.stop().await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    assert_eq!(ended["attempt"], 2);
    let steps = count(store, "job_steps").await;

    // The former worker still runs: everything that it writes is refused.
    assert_eq!(beat(store, &dead).await, RenewalReply::Lost);
    let ending = queue::succeed(store, &dead, COUNTS, NewRunResults::default())
        .await
        .unwrap();
    assert_eq!(ending, EndResult::Lost);
    let late = json!({ "code": "internal" });
    let ending = queue::fail(store, &dead, COUNTS, &late).await.unwrap();
    assert_eq!(ending, EndResult::Lost);
    assert_eq!(queue::requeue(store, &dead).await.unwrap(), EndResult::Lost);
    assert_eq!(
        queue::cancelled(store, &dead, COUNTS).await.unwrap(),
        EndResult::Lost
    );
    assert_eq!(hospital.get(&job).await.json(200), ended);
    assert_eq!(count(store, "job_steps").await, steps);
    assert_eq!(count(store, "releases").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_workers_die_fails_after_three_attempts() {
    let hospital = Hospital::new().await;
    let store = &hospital.app.state.unscoped().db;
    let dataset = hospital.filled_dataset().await;
    let job = hospital.job(&dataset, json!({})).await;
    for attempt in 1..=3 {
        assert_eq!(claim_expired(store, SHORT).await.attempt, attempt);
    }
    let failed = poll_async(Duration::from_secs(10), async || {
        assert!(claim(store, SHORT).await.is_none());
        let document = hospital.get(&job).await.json(200);
        (document["status"] == "failed").then_some(document)
    });
    let document = failed.await.expect("the job did not fail");
    assert_eq!(document["error"]["code"], "attempts_exhausted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_job_is_cancelled_through_its_worker() {
    let hospital = Hospital::new().await;
    let store = &hospital.app.state.unscoped().db;
    let dataset = hospital.filled_dataset().await;
    let job = hospital.job(&dataset, json!({ "release": true })).await;
    let claim = claim(store, LONG).await.unwrap();
    assert_eq!(beat(store, &claim).await, RenewalReply::Held);
    let running = hospital.app.delete(&hospital.token, &job).await.json(202);
    assert_eq!(running["status"], "running");
    assert_eq!(running["progress"], 0.5);
    assert_eq!(running["rows"], 11);
    assert_eq!(running["rows_read"], 7);
    assert_eq!(running["steps_done"], 3);
    assert_eq!(running["remaining_seconds"], 1.2);
    assert_eq!(beat(store, &claim).await, RenewalReply::CancelRequested);
    // A run that has just succeeded is discarded too.
    let ending = queue::succeed(
        store,
        &claim,
        AttemptCounts::default(),
        NewRunResults::default(),
    )
    .await
    .unwrap();
    assert_eq!(ending, EndResult::Cancelled);
    let document = hospital.get(&job).await.json(200);
    assert_eq!(document["status"], "cancelled");
    assert_eq!(document["phase"], Value::Null);
    let again = hospital.app.delete(&hospital.token, &job).await;
    again.problem(409, "job_ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_returned_to_the_queue_keeps_its_attempts() {
    let hospital = Hospital::new().await;
    let store = &hospital.app.state.unscoped().db;
    let dataset = hospital.filled_dataset().await;
    let job = hospital.job(&dataset, json!({})).await;
    let claimed = claim(store, LONG).await.unwrap();
    assert_eq!(claimed.progress, 0.0);
    beat(store, &claimed).await;
    let ending = queue::requeue(store, &claimed).await.unwrap();
    assert_eq!(ending, EndResult::Written);
    let document = hospital.get(&job).await.json(200);
    assert_eq!(document["status"], "queued");
    assert_eq!(document["remaining_seconds"], Value::Null);
    let again = claim(store, LONG).await.unwrap();
    assert_eq!((again.attempt, again.progress), (1, 0.5));
    // The progress is kept, the counts are reset.
    let document = hospital.get(&job).await.json(200);
    assert_eq!(document["progress"], 0.5);
    assert_eq!(
        (&document["rows_read"], &document["steps_done"]),
        (&json!(0), &json!(0))
    );
}

/// They waited for one another, and one of them failed: a claim locks a job and then its organization, whose turn it is;
/// a deletion waits for the job, and a new job, which locks the organization of its caller, for the deletion.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_a_new_job_and_the_claim_of_a_job_do_not_wait_for_one_another() {
    let hospital = Arc::new(Hospital::new().await);
    let dataset = hospital.filled_dataset().await;
    hospital.job(&dataset, json!({})).await;
    let owner = hospital.app.state.unscoped().db.owner();
    let mut claim = owner.begin().await.unwrap();
    let run = async |connection: &mut PgConnection, statement: &'static str| {
        sqlx::raw_sql(statement).execute(connection).await.unwrap();
    };
    run(&mut claim, "SELECT FROM jobs FOR NO KEY UPDATE").await;
    let deletion = {
        let (hospital, dataset) = (hospital.clone(), dataset.clone());
        tokio::spawn(async move { hospital.app.delete(&hospital.token, &dataset).await })
    };
    wait_for(&hospital, 1).await;
    let job = {
        let (hospital, body) = (
            hospital.clone(),
            json!({ "dataset_id": id(&dataset), "privacy": { "model": "k_anonymity", "k": 2 } }),
        );
        tokio::spawn(async move { hospital.post("/v1/jobs", &body).await })
    };
    wait_for(&hospital, 2).await;
    run(
        &mut claim,
        "UPDATE organizations SET job_claimed_at = clock_timestamp()",
    )
    .await;
    claim.commit().await.unwrap();
    assert_eq!(deletion.await.unwrap().status, 204);
    assert!([404, 409].contains(&job.await.unwrap().status.as_u16()));
}
