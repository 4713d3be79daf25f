//! Which job is next: organizations take turns, and a job that was interrupted by the end of its process
//! runs alone.

use std::time::{Duration, Instant};

use pais::db::claims::{self, Claim, ClaimRules, Claimable, Isolation};
use pais::db::jobs::AttemptCounts;
use pais::db::queue::{self, AttemptState, EndResult, LeaseRenewal, RenewalReply};
use pais::db::{Store, instances};
use pais::ids::JobId;
use pais::jobs::end_exhausted;
use pais::roles::Role;
use serde_json::{Value, json};

use crate::hospital::{Hospital, TABLE, definition, id, job_on};
use crate::queue::another_process;
use pais_test_support::poll::poll_async;

const RULES: ClaimRules = ClaimRules {
    lease: Duration::from_secs(60),
    max_attempts: 3,
    running_per_organization: 0,
};

async fn claim(store: &Store, isolation: Isolation) -> Option<Claim> {
    end_exhausted(store, RULES.max_attempts).await.unwrap();
    claims::claim(store, &RULES, isolation).await.unwrap()
}

async fn claimable(store: &Store) -> Claimable {
    claims::claimable(store, &RULES).await.unwrap()
}

fn job_id(path: &str) -> JobId {
    JobId(id(path).parse().unwrap())
}

async fn execute(store: &Store, sql: &'static str) {
    sqlx::query(sql).execute(store.owner()).await.unwrap();
}

/// A job of another organization in the same service.
async fn job_of_another_organization(hospital: &Hospital) -> String {
    let app = &hospital.app;
    let clinic = app.token("clinic", Role::Holder).await;
    let theirs = definition("theirs");
    let made = app.post(&clinic, "/v1/datasets", &theirs).await.json(201);
    let dataset = format!("/v1/datasets/{}", made["id"].as_str().unwrap());
    let rows = format!("{dataset}/submissions");
    app.post_bytes(&clinic, &rows, "text/csv", TABLE)
        .await
        .json(201);
    let queued = app.post(&clinic, "/v1/jobs", &job_on(&dataset)).await;
    queued.header("location").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn organizations_take_turns() {
    let hospital = Hospital::new().await;
    let store = &hospital.app.state.unscoped().db;
    let dataset = hospital.filled_dataset().await;
    for _ in 0..4 {
        hospital.job(&dataset, json!({})).await;
    }
    let later = job_id(&job_of_another_organization(&hospital).await);
    let first = claim(store, Isolation::Shared).await.unwrap();
    assert_ne!(first.job, later);
    // The other organization has no running job, so it is next, before jobs that are older.
    let second = claim(store, Isolation::Shared).await.unwrap();
    assert_eq!(second.job, later);
    // With as many running jobs, the organization whose last claim is older is next.
    let counts = AttemptCounts::default();
    queue::cancelled(store, &first, counts).await.unwrap();
    queue::cancelled(store, &second, counts).await.unwrap();
    let again = job_id(&job_of_another_organization_again(&hospital).await);
    assert_ne!(claim(store, Isolation::Shared).await.unwrap().job, again);
    assert_eq!(claim(store, Isolation::Shared).await.unwrap().job, again);
}

async fn job_of_another_organization_again(hospital: &Hospital) -> String {
    let app = &hospital.app;
    let clinic = app.token("clinic", Role::Holder).await;
    let datasets = app.get(&clinic, "/v1/datasets").await.json(200);
    let dataset = datasets["items"][0]["id"].as_str().unwrap().to_owned();
    let job = job_on(&format!("/v1/datasets/{dataset}"));
    let queued = app.post(&clinic, "/v1/jobs", &job).await;
    queued.header("location").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_runs_no_more_jobs_than_it_may() {
    let hospital = Hospital::new().await;
    let store = &hospital.app.state.unscoped().db;
    let dataset = hospital.filled_dataset().await;
    for _ in 0..2 {
        hospital.job(&dataset, json!({})).await;
    }
    let rules = ClaimRules {
        running_per_organization: 1,
        ..RULES
    };
    let claim = async || {
        claims::claim(store, &rules, Isolation::Shared)
            .await
            .unwrap()
    };
    let first = claim().await.unwrap();
    assert!(claim().await.is_none());
    let none = claims::claimable(store, &rules).await.unwrap();
    assert_eq!(none, Claimable::default());
    let theirs = job_id(&job_of_another_organization(&hospital).await);
    assert_eq!(claim().await.unwrap().job, theirs);
    queue::cancelled(store, &first, AttemptCounts::default())
        .await
        .unwrap();
    assert!(claim().await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_fast_beside_ten_thousand_waiting_jobs() {
    let hospital = Hospital::new().await;
    let store = &hospital.app.state.unscoped().db;
    let dataset = hospital.filled_dataset().await;
    hospital.job(&dataset, json!({})).await;
    execute(
        store,
        "INSERT INTO jobs (id, organization_id, dataset_id, definition, submissions, created_at)
         SELECT gen_random_uuid(), organization_id, dataset_id, definition, submissions, created_at
         FROM jobs, generate_series(1, 10000)",
    )
    .await;
    execute(store, "ANALYZE jobs").await;
    let theirs = job_id(&job_of_another_organization(&hospital).await);
    let started = Instant::now();
    for _ in 0..10 {
        assert!(claimable(store).await.shared);
    }
    let asked = started.elapsed() / 10;
    let started = Instant::now();
    let claimed: Vec<_> = [
        claim(store, Isolation::Shared).await.unwrap().job,
        claim(store, Isolation::Shared).await.unwrap().job,
    ]
    .into();
    let claimed_in = started.elapsed() / 2;
    assert!(claimed.contains(&theirs));
    eprintln!("asked in {asked:?}, claimed in {claimed_in:?}");
    // About 2 ms each; a scan of the queue takes far longer.
    let limit = Duration::from_millis(100);
    assert!(
        asked < limit && claimed_in < limit,
        "{asked:?} {claimed_in:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_ends_its_process_fails_alone_and_its_neighbour_succeeds() {
    let hospital = Hospital::new().await;
    let store = &hospital.app.state.unscoped().db;
    let dataset = hospital.filled_dataset().await;
    let poison = hospital.job(&dataset, json!({})).await;
    let neighbour = hospital.job(&dataset, json!({})).await;
    let first = another_process(store).await;
    assert!(claim(&first, Isolation::Shared).await.is_some());
    assert!(claim(&first, Isolation::Shared).await.is_some());
    let fresh = hospital.job(&dataset, json!({})).await;
    // The process dies, and its data directory is started again: nobody waits for the leases.
    instances::remove(&first).await.unwrap();
    for attempt in 2..=3 {
        let process = another_process(store).await;
        let both = Claimable {
            shared: true,
            exclusive: true,
        };
        assert_eq!(claimable(&process).await, both);
        let claimed = claim(&process, Isolation::Exclusive).await.unwrap();
        assert_eq!((claimed.job, claimed.attempt), (job_id(&poison), attempt));
        instances::remove(&process).await.unwrap();
    }
    let alone = claim(store, Isolation::Exclusive).await.unwrap();
    assert_eq!((alone.job, alone.attempt), (job_id(&neighbour), 2));
    let failed = hospital.get(&poison).await.json(200);
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["error"]["code"], "attempts_exhausted");
    // What never ran beside it has lost nothing.
    let fresh_claim = claim(store, Isolation::Shared).await.unwrap();
    assert_eq!((fresh_claim.job, fresh_claim.attempt), (job_id(&fresh), 1));
    // Back in the queue, the neighbour still runs alone.
    let ending = queue::requeue(store, &alone).await.unwrap();
    assert_eq!(ending, EndResult::Written);
    let (shared, exclusive) = (false, true);
    assert_eq!(claimable(store).await, Claimable { shared, exclusive });
}

/// A claim of another process whose lease has expired.
async fn expired_claim(process: &Store) -> Claim {
    let rules = ClaimRules {
        lease: Duration::from_millis(50),
        ..RULES
    };
    let claimed = claims::claim(process, &rules, Isolation::Shared).await;
    let claimed = claimed.unwrap().unwrap();
    let lapsed = poll_async(Duration::from_secs(10), async || {
        let lapsed: bool = sqlx::query_scalar(
            "SELECT lease_expires_at < clock_timestamp() FROM jobs WHERE id = $1",
        )
        .bind(claimed.job.0)
        .fetch_one(process.owner())
        .await
        .unwrap();
        lapsed.then_some(())
    });
    lapsed.await.expect("the lease expires");
    claimed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_lost_by_a_live_process_costs_no_attempt() {
    let hospital = Hospital::new().await;
    let store = &hospital.app.state.unscoped().db;
    let dataset = hospital.filled_dataset().await;
    let job = hospital.job(&dataset, json!({})).await;
    let busy = another_process(store).await;
    expired_claim(&busy).await;
    let mut connection = busy.owner().acquire().await.unwrap();
    instances::renew(&mut connection, busy.instance())
        .await
        .unwrap();
    let taken = claim(store, Isolation::Shared).await.unwrap();
    assert_eq!((taken.job, taken.attempt), (job_id(&job), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_was_stopped_takes_back_the_attempt() {
    let hospital = Hospital::new().await;
    let store = &hospital.app.state.unscoped().db;
    let dataset = hospital.filled_dataset().await;
    let job = hospital.job(&dataset, json!({})).await;
    let stopped = another_process(store).await;
    let lost = expired_claim(&stopped).await;
    // It may be dead, so the job runs alone, in its second attempt.
    let taken = claim(store, Isolation::Exclusive).await.unwrap();
    assert_eq!(taken.attempt, 2);
    // It goes on: it writes nothing more, and shows that the job had not ended it.
    let state = AttemptState::default();
    let (job_id, token) = (lost.job, lost.token);
    let renewals = [LeaseRenewal {
        job: job_id,
        token,
        state,
    }];
    let replies = queue::renew_leases(&stopped, RULES.lease, &renewals).await;
    assert_eq!(replies.unwrap(), [RenewalReply::Lost]);
    for _ in 0..2 {
        claims::take_back_attempt(&stopped, job_id, token)
            .await
            .unwrap();
        let document = hospital.get(&job).await.json(200);
        assert_eq!(document["attempt"], 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_left_by_an_older_version_waits_for_its_lease() {
    let hospital = Hospital::new().await;
    let store = &hospital.app.state.unscoped().db;
    let dataset = hospital.filled_dataset().await;
    hospital.job(&dataset, json!({})).await;
    let older = another_process(store).await;
    claim(&older, Isolation::Shared).await.unwrap();
    execute(store, "UPDATE jobs SET lease_instance = NULL").await;
    assert_eq!(claimable(store).await, Claimable::default());
    execute(
        store,
        "UPDATE jobs SET lease_expires_at = clock_timestamp()",
    )
    .await;
    assert_eq!(claim(store, Isolation::Exclusive).await.unwrap().attempt, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_does_not_wait_for_a_job_that_is_being_changed() {
    let hospital = Hospital::new().await;
    let store = &hospital.app.state.unscoped().db;
    let dataset = hospital.filled_dataset().await;
    let mut renewals = Vec::new();
    for _ in 0..2 {
        hospital.job(&dataset, json!({})).await;
        let Claim { job, token, .. } = claim(store, Isolation::Shared).await.unwrap();
        let state = AttemptState::default();
        renewals.push(LeaseRenewal { job, token, state });
    }
    let mut changing = store.begin().await.unwrap();
    sqlx::query("UPDATE jobs SET progress = 0.5 WHERE id = $1")
        .bind(renewals[0].job.0)
        .execute(&mut *changing)
        .await
        .unwrap();
    let beating = queue::renew_leases(store, RULES.lease, &renewals);
    let replies = tokio::time::timeout(Duration::from_secs(5), beating).await;
    let replies = replies.expect("the heartbeat waits").unwrap();
    assert_eq!(replies, [RenewalReply::NotRenewed, RenewalReply::Held]);
}

/// Blocks all threads of the runtime of this test for a while.
async fn block_all_threads(time: Duration) {
    let threads = tokio::runtime::Handle::current().metrics().num_workers();
    let blocked = (0..threads * 2).map(|_| {
        tokio::spawn(async move {
            let (_open, nothing_comes) = std::sync::mpsc::channel::<()>();
            nothing_comes.recv_timeout(time).unwrap_err();
        })
    });
    for task in blocked.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_runtime_loses_no_lease_and_a_job_waits_for_memory() {
    use pais::jobs::WorkerPoolSettings;
    use pais::memory::MemoryUse;

    let hospital = Hospital::new().await;
    let service = hospital.app.state.unscoped().clone();
    let dataset = hospital.filled_dataset().await;
    let jobs = [
        hospital.job(&dataset, json!({})).await,
        hospital.job(&dataset, json!({})).await,
    ];
    // The memory is in use, so the jobs wait for it under their leases.
    let all = service.memory.limit(MemoryUse::Tables);
    let used = service.memory.reserve(MemoryUse::Tables, all).await;
    let settings = WorkerPoolSettings {
        concurrency: 2,
        lease: Duration::from_millis(1000),
        ..crate::hospital::settings()
    };
    let workers = crate::app::start_workers(&service, settings);
    for job in &jobs {
        let waiting = poll_async(Duration::from_secs(10), async || {
            let document = hospital.get(job).await.json(200);
            (document["phase"] == "reading").then_some(document)
        });
        let waiting = waiting.await.expect("the job does not wait for memory");
        assert_eq!(waiting["status"], "running");
    }
    let other = tokio::task::spawn_blocking({
        let store = another_process(&service.db).await;
        let options = (*store.owner().connect_options()).clone();
        move || take_all_over(options, Duration::from_secs(4))
    });
    block_all_threads(Duration::from_secs(2)).await;
    assert_eq!(other.await.unwrap(), 0);
    // A job that waits can be cancelled.
    hospital.app.delete(&hospital.token, &jobs[0]).await;
    assert_eq!(hospital.ended(&jobs[0]).await["status"], "cancelled");
    drop(used);
    let ended = hospital.ended(&jobs[1]).await;
    workers.stop().await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    assert_eq!(ended["attempt"], 1);
}

/// Tries to claim for a while, on a runtime of its own; returns the number of claimed jobs.
fn take_all_over(options: sqlx::postgres::PgConnectOptions, time: Duration) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let clock = std::sync::Arc::new(pais::clock::SystemClock);
        let store = Store::new(options, 1, clock);
        let started = Instant::now();
        let mut claimed = 0;
        while started.elapsed() < time {
            for isolation in [Isolation::Shared, Isolation::Exclusive] {
                let claim = claims::claim(&store, &RULES, isolation).await.unwrap();
                claimed += usize::from(claim.is_some());
            }
            pais_test_support::poll::pace(Duration::from_millis(50)).await;
        }
        store.close().await;
        claimed
    })
}

/// The detail of a problem.
pub(crate) fn detail(problem: &Value) -> &str {
    problem["detail"].as_str().unwrap()
}
