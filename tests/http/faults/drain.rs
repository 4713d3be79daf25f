//! Many small jobs, run while processes are killed.

use std::time::Duration;

use futures_util::StreamExt;
use reqwest::{Client, Method};
use rustix::process::Signal;
use serde_json::{Value, json};
use uuid::Uuid;

use super::check::check_database;
use super::client::{Admission, Hospital};
use super::cluster::{Cluster, HEALED};
use super::fault::{any, kill, milliseconds, vanish};
use super::{first_seed, seeded, variable};
use crate::hospital::{TABLE, definition, job_on};
use crate::process::call;
use pais_test_support::poll::{pace, poll_async};
use pais_test_support::split_mix::SplitMix64;

/// Number of jobs, if `PAIS_FAULT_JOBS` is not set.
const JOBS: u64 = 40;

/// Number of jobs for each kill.
const JOBS_OF_A_KILL: u64 = 50;

/// Least number of kills.
const LEAST_KILLS: u64 = 3;

/// Jobs that run at the same time in all processes. A kill makes at most these run again.
const PLACES: u64 = 4;

/// Number of clients that send requests at the same time.
const CLIENTS: usize = 4;

/// Longest time until all jobs have ended.
const DRAINED: Duration = Duration::from_secs(900);

/// Starts jobs. It repeats each request until it is accepted.
struct Sender {
    urls: [String; 2],
    token: String,
    body: Value,
    round: &'static str,
}

impl Sender {
    async fn send(&self, number: usize) {
        let http = Client::new();
        let sent = poll_async(DRAINED, async || {
            let url = format!("{}/v1/jobs", self.urls[number % 2]);
            let request = http.post(url).bearer_auth(&self.token).json(&self.body);
            let request = request.timeout(Duration::from_secs(20));
            let key = format!("{} {number}", self.round).replace(' ', "-");
            let answer = request.header("idempotency-key", key).send().await.ok()?;
            let status = answer.status().as_u16();
            let body = answer.text().await.unwrap_or_default();
            let may_be_tried_again = status == 503 || body.contains("idempotency_key_in_use");
            assert!(status == 202 || may_be_tried_again, "{status} {body}");
            (status == 202).then_some(())
        });
        sent.await.expect("a request is never answered");
    }
}

/// Starts jobs with several clients, while other work runs.
async fn send_all(sender: &Sender, jobs: u64, beside: impl Future<Output = ()>) {
    let numbers = futures_util::stream::iter(0..jobs as usize);
    let sending = numbers.for_each_concurrent(CLIENTS, |number| sender.send(number));
    tokio::join!(sending, beside);
}

/// Kills processes at random moments. The first one ends by itself, because its database vanishes.
async fn kill_some(cluster: &mut Cluster, random: &mut SplitMix64, kills: u64) {
    for number in 1..=kills {
        pace(milliseconds(random, 100, 2500)).await;
        let before = instances(cluster).await;
        let name = if number > 1 && random.below(5) == 0 {
            cluster.postgres.kill(Signal::KILL);
            cluster.postgres.start_again().await;
            "postgres".to_owned()
        } else {
            let member = any(cluster, random);
            let name = if number == 1 {
                vanish(member).await
            } else {
                kill(member, random).await
            };
            member.ready().await;
            // A process that loses its database while it starts ends with an error.
            let registered = poll_async(HEALED, async || {
                let mut now = instances(cluster).await.into_iter();
                now.any(|id| !before.contains(&id)).then_some(())
            });
            registered.await.expect("a process does not start again");
            name
        };
        println!("    kill {number} of {kills}: {name}");
    }
}

/// The ids of the processes that have started.
async fn instances(cluster: &Cluster) -> Vec<Uuid> {
    let mut database = cluster.postgres.connect().await.unwrap();
    let ids = sqlx::query_scalar("SELECT id FROM instances");
    ids.fetch_all(&mut database).await.unwrap()
}

/// Counts of the jobs of an organization.
#[derive(Debug, sqlx::FromRow)]
struct Counts {
    jobs: i64,
    ended: i64,
    succeeded: i64,
    runs: i64,
    ends: i64,
}

impl Counts {
    async fn of(cluster: &Cluster, organization: &str) -> Result<Self, sqlx::Error> {
        let mut database = cluster.postgres.connect().await?;
        sqlx::query_as(
            "SELECT count(*) AS jobs, count(ended_at) AS ended,
                    count(*) FILTER (WHERE status = 'succeeded') AS succeeded,
                    coalesce(sum(runs), 0)::bigint AS runs, coalesce(sum(ends), 0)::bigint AS ends
             FROM jobs LEFT JOIN LATERAL (
                 SELECT count(*) FILTER (WHERE event = 'claim') AS runs,
                        count(*) FILTER (WHERE event = 'end') AS ends
                 FROM witness.job_events WHERE job = jobs.id) events ON true
             WHERE organization_id = (SELECT id FROM organizations WHERE name = $1)",
        )
        .bind(organization)
        .fetch_one(&mut database)
        .await
    }

    /// The counts when all jobs have ended.
    async fn drained(cluster: &Cluster, organization: &str) -> Self {
        let ended = poll_async(DRAINED, async || {
            pace(Duration::from_millis(200)).await;
            let counts = Self::of(cluster, organization).await.ok()?;
            (counts.jobs == counts.ended).then_some(counts)
        });
        ended.await.expect("the queue does not drain")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_run_once_and_none_is_lost_when_processes_are_killed() {
    let (seed, jobs) = (first_seed(), variable("PAIS_FAULT_JOBS").unwrap_or(JOBS));
    let kills = (jobs / JOBS_OF_A_KILL).max(LEAST_KILLS);
    println!("{jobs} jobs and {kills} kills: PAIS_FAULT_SEED={seed}");
    seeded(seed, drain(seed, jobs, kills)).await;
}

async fn drain(seed: u64, jobs: u64, kills: u64) {
    let mut random = SplitMix64(seed);
    let mut cluster = Cluster::start().await;
    let administrator = cluster.administrator().await;
    let urls = cluster.urls();
    for round in ["undisturbed", "killed"] {
        let admission = Admission {
            urls: &urls,
            administrator: &administrator,
        };
        let hospital = Hospital::join(&admission, round.to_owned(), seed).await;
        let declare = hospital.repeat(Method::POST, "/v1/datasets");
        let dataset = declare.json(&definition("patients")).send().await.unwrap();
        let dataset: Value = dataset.json().await.unwrap();
        let dataset = dataset["id"].as_str().unwrap();
        let path = format!("/v1/datasets/{dataset}/submissions");
        let rows = hospital
            .repeat(Method::POST, &path)
            .header("content-type", "text/csv");
        assert_eq!(rows.body(TABLE).send().await.unwrap().status(), 201);
        let mut body = job_on(dataset);
        body["release"] = json!(true);
        let sender = Sender {
            urls: urls.clone(),
            token: hospital.token.clone(),
            body,
            round,
        };
        let kills = if round == "killed" { kills } else { 0 };
        send_all(&sender, jobs, kill_some(&mut cluster, &mut random, kills)).await;
        let counts = Counts::drained(&cluster, round).await;
        println!("    {round}: {counts:?}");
        let jobs = jobs.cast_signed();
        let all = [counts.jobs, counts.succeeded, counts.ends];
        assert_eq!(all, [jobs; 3], "{counts:?}");
        let most = jobs + (kills * PLACES).cast_signed();
        assert!((jobs..=most).contains(&counts.runs), "{counts:?}");
        let request = Client::new().get(format!("{}/v1/releases?limit=1000", urls[0]));
        let releases = call(request, &hospital.token).await;
        assert_eq!(
            releases["items"].as_array().unwrap().len() as i64,
            jobs.min(1000)
        );
    }
    check_database(&cluster).await;
    cluster.stop().await;
}
