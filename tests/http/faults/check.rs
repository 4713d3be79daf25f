//! What must hold when everything works again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use uuid::Uuid;

use super::client::{Ending, Hospital, Known, Submission, made};
use super::cluster::Cluster;
use pais_test_support::poll::poll_async;

/// The time in which what was left open is decided: requests are repeated, jobs end.
const SETTLED: Duration = Duration::from_secs(90);

/// Statements that count what must not be: half of a thing, or a thing without another.
const NOTHING_HALF: [(&str, &str); 8] = [
    (
        "submissions whose chunks have not its rows",
        "SELECT count(*) FROM submissions s JOIN datasets d ON d.id = s.dataset_id
         WHERE d.deleted_at IS NULL AND (s.sealed_sha256 IS NULL OR s.rows IS DISTINCT FROM
             (SELECT sum(c.rows) FROM submission_chunks c WHERE c.submission_id = s.id))",
    ),
    (
        "datasets and submissions without a key",
        "SELECT count(*) FROM (
             SELECT id FROM datasets WHERE deleted_at IS NULL
             UNION ALL SELECT s.id FROM submissions s JOIN datasets d ON d.id = s.dataset_id
                       WHERE d.deleted_at IS NULL) owners
         WHERE id NOT IN (SELECT dataset_id FROM dataset_keys)",
    ),
    (
        "keys of nothing that will not be destroyed",
        "SELECT count(*) FROM dataset_keys
         WHERE dataset_id NOT IN (SELECT id FROM datasets WHERE deleted_at IS NULL)
           AND dataset_id NOT IN (SELECT id FROM submissions)
           AND dataset_id NOT IN (SELECT owner_id FROM keys_to_destroy)",
    ),
    (
        "releases whose table has not their rows, or no chunk",
        "SELECT count(*) FROM releases r
         WHERE NOT EXISTS (SELECT FROM release_tables t JOIN release_chunks c
                               ON c.release_id = t.release_id AND c.table_name = t.name
                           WHERE t.release_id = r.id AND t.rows = r.rows)",
    ),
    (
        "jobs that should have made a release and have not, or the reverse",
        "SELECT count(*) FROM jobs j
         WHERE (j.status = 'succeeded' AND coalesce((j.definition ->> 'release')::boolean, false))
               <> EXISTS (SELECT FROM releases r WHERE r.job_id = j.id AND r.by_job)",
    ),
    (
        "jobs that have not ended, or not once",
        "SELECT count(*) FROM jobs j
         WHERE j.ended_at IS NULL
            OR (SELECT count(*) FROM witness.job_events e WHERE e.job = j.id AND e.event = 'end') <> 1",
    ),
    (
        "releases of jobs that have not succeeded",
        "SELECT count(*) FROM releases r JOIN jobs j ON j.id = r.job_id
         WHERE j.status <> 'succeeded'",
    ),
    (
        "events that are in no place of a chain and wait for none",
        "SELECT count(*) FROM audit_events
         WHERE id NOT IN (SELECT event_id FROM audit_chain)
           AND id NOT IN (SELECT event_id FROM audit_pending)",
    ),
];

/// The database itself, after [`Hospital::settle`].
pub(super) async fn check_database(cluster: &Cluster) {
    let mut database = cluster.postgres.connect().await.unwrap();
    for (what, statement) in NOTHING_HALF {
        let count = sqlx::query_scalar(statement);
        let count: i64 = count.fetch_one(&mut database).await.unwrap();
        assert_eq!(count, 0, "{what}");
    }
    let verified = cluster.pais(&["audit", "verify"]).await;
    let said = String::from_utf8_lossy(&verified.stdout);
    let errors = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success(), "audit verify: {said}{errors}");
}

/// The submissions that each job of the database reads, by id.
async fn submissions_of_jobs(database: &mut PgConnection) -> BTreeMap<String, Vec<Uuid>> {
    let jobs = sqlx::query_as("SELECT id::text, submissions FROM jobs");
    let jobs: Vec<(String, Vec<Uuid>)> = jobs.fetch_all(database).await.unwrap();
    jobs.into_iter().collect()
}

/// What was checked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checked {
    pub(super) jobs: usize,
    pub(super) releases: usize,
}

impl Hospital {
    /// Repeats what was left open, and waits for the ends of the jobs.
    pub(super) async fn settle(&mut self) {
        for index in 0..self.submissions.len() {
            let submission = &self.submissions[index];
            let dataset = &self.datasets[submission.dataset];
            let path = format!("/v1/datasets/{}/submissions", dataset.known.id().unwrap());
            if let (Known::Unknown, Some(key)) = (&submission.known, &submission.key) {
                let (body, key) = (submission.body.clone(), key.clone());
                let request = || {
                    let request = self.repeat(Method::POST, &path).body(body.clone());
                    request
                        .header("content-type", "text/csv")
                        .header("idempotency-key", &key)
                };
                let is_kept = dataset.removal == Ending::NotAsked;
                let decided = decided(request, 201, !is_kept).await;
                self.submissions[index].known = decided;
            }
            // That of a removed dataset stays open: it is gone in either case.
            if self.submissions[index].removal == Ending::Unknown
                && self.datasets[self.submissions[index].dataset].removal == Ending::NotAsked
            {
                self.remove_again(&self.submission_path(index)).await;
                self.submissions[index].removal = Ending::Done;
            }
        }
        for index in 0..self.jobs.len() {
            let job = &self.jobs[index];
            if let (Known::Unknown, Some(key)) = (&job.known, &job.key) {
                let request = || {
                    let request = self.repeat(Method::POST, "/v1/jobs").json(&job.body);
                    request.header("idempotency-key", key)
                };
                let dataset = &self.datasets[job.dataset];
                // A dataset without rows takes no job.
                let is_kept = dataset.removal == Ending::NotAsked && !dataset.has_lost_rows;
                self.jobs[index].known = decided(request, 202, !is_kept).await;
            }
        }
        for index in 0..self.datasets.len() {
            let dataset = &self.datasets[index];
            if dataset.removal == Ending::Unknown {
                self.remove_again(&format!("/v1/datasets/{}", dataset.known.id().unwrap()))
                    .await;
                self.datasets[index].removal = Ending::Done;
            }
        }
        let ended = poll_async(SETTLED, async || {
            let jobs = self.list("/v1/jobs").await;
            jobs.iter()
                .all(|job| !job["ended_at"].is_null())
                .then_some(())
        });
        ended.await.expect("a job does not end");
    }

    /// Removes what may be removed already.
    async fn remove_again(&self, path: &str) {
        let removed = poll_async(SETTLED, async || {
            let answer = self.repeat(Method::DELETE, path).send().await.ok()?;
            [204, 404].contains(&answer.status().as_u16()).then_some(())
        });
        removed
            .await
            .unwrap_or_else(|| panic!("{path} cannot be removed"));
    }

    /// All items of a list.
    async fn list(&self, path: &str) -> Vec<Value> {
        self.list_as(path, &self.token).await
    }

    async fn list_as(&self, path: &str, token: &str) -> Vec<Value> {
        let path = format!("{path}?limit=1000");
        let mut page = success(self.repeat_as(token, Method::GET, &path)).await;
        assert!(page["next_cursor"].is_null(), "too many {path}");
        serde_json::from_value(page["items"].take()).unwrap()
    }

    /// Checks all that the hospital sees against what it was told, after [`Self::settle`]. With `error` a job
    /// may have failed.
    pub(super) async fn check(&mut self, cluster: &Cluster, error: Option<&str>) -> Checked {
        self.check_datasets().await;
        self.check_submissions().await;
        let jobs = self.check_jobs(error).await;
        let releases = self.check_releases(cluster, &jobs).await;
        self.check_grants(&releases).await;
        self.check_log(&releases).await;
        Checked {
            jobs: jobs.len(),
            releases: releases.len(),
        }
    }

    async fn check_datasets(&mut self) {
        let listed = self.list("/v1/datasets").await;
        let mut listed: BTreeMap<&str, &Value> = by(&listed, "name");
        for dataset in &mut self.datasets {
            let name = dataset.definition["name"].as_str().unwrap();
            let found = listed.remove(name).map(|found| text(&found["id"]));
            decide(
                &mut dataset.known,
                found.as_deref(),
                dataset.removal == Ending::Done,
                name,
            );
        }
        assert!(listed.is_empty(), "datasets of nobody: {listed:?}");
    }

    async fn check_submissions(&mut self) {
        for (index, dataset) in self.datasets.iter().enumerate() {
            let Some(id) = dataset
                .known
                .id()
                .filter(|_| dataset.removal == Ending::NotAsked)
            else {
                continue;
            };
            let listed = self.list(&format!("/v1/datasets/{id}/submissions")).await;
            let count = listed.len();
            let mut found = by(&listed, "sha256");
            assert_eq!(found.len(), count, "one submission twice: {listed:?}");
            let mut rows = 0;
            let sent = self
                .submissions
                .iter_mut()
                .filter(|sent| sent.dataset == index);
            for submission in sent {
                let found = found.remove(&*submission.sha256);
                if let Some(found) = found {
                    assert_eq!(found["rows"], submission.rows, "{found}");
                    assert_eq!(found["bytes"], submission.body.len(), "{found}");
                    rows += submission.rows;
                }
                let found = found.map(|found| text(&found["id"]));
                let is_removed = submission.removal == Ending::Done;
                decide(
                    &mut submission.known,
                    found.as_deref(),
                    is_removed,
                    &submission.mark,
                );
            }
            assert!(found.is_empty(), "submissions of nobody: {found:?}");
            let shown = success(self.repeat(Method::GET, &format!("/v1/datasets/{id}"))).await;
            assert_eq!(shown["rows"], rows, "{shown}");
        }
    }

    /// Returns the jobs that are there.
    async fn check_jobs(&mut self, error: Option<&str>) -> Vec<Value> {
        let listed = self.list("/v1/jobs").await;
        let has_failed = |job: &Value| error.is_some_and(|error| job["error"]["code"] == error);
        let mut found = by(&listed, "id");
        for job in &self.jobs {
            let Some(id) = job.known.id() else { continue };
            let found = found.remove(id);
            let found = found.unwrap_or_else(|| panic!("job {id} is lost"));
            let dataset = &self.datasets[job.dataset];
            let may_end_early = dataset.has_lost_rows || dataset.removal == Ending::Done;
            let expected: &[&str] = match job.cancelled {
                Ending::Done => &["cancelled"],
                Ending::NotAsked if !may_end_early => &["succeeded"],
                _ => &["cancelled", "succeeded"],
            };
            let status = found["status"].as_str().unwrap();
            let is_expected = expected.contains(&status) || has_failed(found);
            assert!(is_expected, "not {expected:?}: {found}");
        }
        // Their requests were not answered, and nobody can cancel them.
        let unknown = self.jobs.iter().filter(|job| job.known == Known::Unknown);
        assert!(found.len() <= unknown.count(), "jobs of nobody: {found:?}");
        for job in found.values() {
            assert!(
                ["succeeded", "cancelled"].contains(&&*text(&job["status"])),
                "{job}"
            );
        }
        listed
    }

    /// Returns the releases that are there.
    async fn check_releases(&mut self, cluster: &Cluster, jobs: &[Value]) -> Vec<Value> {
        let listed = self.list("/v1/releases").await;
        let jobs: BTreeMap<&str, &Value> = by(jobs, "id");
        let named = listed.iter().filter(|release| !release["name"].is_null());
        let named: Vec<Value> = named.cloned().collect();
        let mut found = by(&named, "name");
        assert_eq!(found.len(), named.len(), "one release twice: {named:?}");
        for release in &mut self.releases {
            let found = found.remove(&*release.name).map(|found| text(&found["id"]));
            decide(&mut release.known, found.as_deref(), false, &release.name);
        }
        assert!(found.is_empty(), "releases of nobody: {found:?}");
        let mut database = cluster.postgres.connect().await.unwrap();
        let submissions = submissions_of_jobs(&mut database).await;
        let mut of_jobs = BTreeSet::new();
        for release in &listed {
            let job = text(&release["job_id"]);
            if release["name"].is_null() {
                assert!(
                    of_jobs.insert(job.clone()),
                    "two releases of one job: {release}"
                );
                assert_eq!(jobs[&*job]["release_id"], release["id"]);
            }
            self.check_release(cluster, release, &submissions[&job])
                .await;
        }
        listed
    }

    /// Checks that a release is whole, has the rows of the submissions of its job, and verifies.
    async fn check_release(&self, cluster: &Cluster, release: &Value, submissions: &[Uuid]) {
        let id = text(&release["id"]);
        let get = async |path: &str| {
            let request = self.repeat(Method::GET, &format!("/v1/releases/{id}{path}"));
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), 200, "{path} of {release}");
            answer.bytes().await.unwrap()
        };
        let rows = get("/data").await;
        assert_eq!(release["sha256"], hex::encode(Sha256::digest(&rows)));
        let mut table = csv::Reader::from_reader(&rows[..]);
        let mark = table
            .headers()
            .unwrap()
            .iter()
            .position(|name| name == "mark");
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for row in table.records() {
            *found
                .entry(row.unwrap()[mark.unwrap()].to_owned())
                .or_default() += 1;
        }
        let read: BTreeSet<String> = submissions.iter().map(Uuid::to_string).collect();
        // Of a removed dataset nobody learns any more which rows arrived without an answer.
        let is_gone = |submission: &Submission| {
            submission.known == Known::Unknown
                && self.datasets[submission.dataset].removal != Ending::NotAsked
                && found.contains_key(&submission.mark)
        };
        let was_read = self
            .submissions
            .iter()
            .filter(|submission| match submission.known.id() {
                Some(id) => read.contains(id),
                None => is_gone(submission),
            });
        let expected: BTreeMap<String, usize> = was_read
            .map(|submission| (submission.mark.clone(), submission.rows))
            .collect();
        assert_eq!(
            expected.len(),
            read.len(),
            "a job has read rows of nobody: {release}"
        );
        assert_eq!(found, expected, "{release}");

        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let schema = serde_json::to_vec(&self.datasets[0].definition).unwrap();
        let job = success(self.repeat(
            Method::GET,
            &format!("/v1/jobs/{}", text(&release["job_id"])),
        ));
        let mut job = job.await["definition"].take();
        job.as_object_mut().unwrap().remove("dataset_id");
        let job = serde_json::to_vec(&job).unwrap();
        let (schema, job) = (write("schema.json", &schema), write("job.json", &job));
        let rows = write("rows.csv", &rows);
        let package = write("package.zip", &get("/package").await);
        for arguments in [
            &["verify", "--schema", &schema, "--job", &job, &rows][..],
            &["verify-package", &package],
        ] {
            let verified = cluster.pais(arguments).await;
            let said = String::from_utf8_lossy(&verified.stdout);
            let errors = String::from_utf8_lossy(&verified.stderr);
            assert!(
                verified.status.success(),
                "{arguments:?} of {release}: {said}{errors}"
            );
        }
    }

    /// Checks that a recipient has the releases that it was granted, and no others.
    async fn check_grants(&mut self, releases: &[Value]) {
        let mut granted = BTreeSet::new();
        for release in releases {
            let release = text(&release["id"]);
            let listed = self.list(&format!("/v1/releases/{release}/grants")).await;
            assert!(listed.len() <= 1, "one grant twice: {listed:?}");
            let found = listed.first().map(|grant| text(&grant["id"]));
            let asked = self
                .grants
                .iter_mut()
                .find(|grant| grant.release == release);
            match asked {
                Some(grant) => decide(&mut grant.known, found.as_deref(), false, &release),
                None => assert_eq!(found, None, "a grant of nobody"),
            }
            if found.is_some() {
                granted.insert(release);
            }
        }
        let seen = self.list_as("/v1/releases", &self.recipient).await;
        let seen: BTreeSet<String> = seen.iter().map(|release| text(&release["id"])).collect();
        assert_eq!(seen, granted);
    }

    /// Checks that the log has what was done, once, and nothing else.
    async fn check_log(&self, releases: &[Value]) {
        let request = self.repeat_as(&self.auditor, Method::GET, "/v1/audit?format=ndjson");
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let log = answer.text().await.unwrap();
        let mut events: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
        for line in log.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            if event["outcome"] == "done" {
                let subjects = events.entry(text(&event["action"])).or_default();
                *subjects.entry(text(&event["subject"])).or_default() += 1;
            }
        }
        // What has no answer and was removed since can be in the log, or not.
        let mut check = |action: &str, made: Vec<&str>, open: usize| {
            let mut events = events.remove(action).unwrap_or_default();
            for id in made {
                assert_eq!(events.remove(id), Some(1), "{action} of {id}");
            }
            assert!(events.len() <= open, "{action} of nobody: {events:?}");
        };
        fn ids<'a>(known: impl Iterator<Item = &'a Known>) -> (Vec<&'a str>, usize) {
            let known: Vec<&Known> = known.collect();
            let open = known
                .iter()
                .filter(|known| ***known == Known::Unknown)
                .count();
            (known.into_iter().filter_map(Known::id).collect(), open)
        }
        let (made, open) = ids(self.datasets.iter().map(|dataset| &dataset.known));
        check("dataset.created", made, open);
        let (made, open) = ids(self.submissions.iter().map(|submission| &submission.known));
        check("submission.created", made, open);
        let (made, open) = ids(self.jobs.iter().map(|job| &job.known));
        check("job.created", made, open);
        let (made, _) = ids(self.grants.iter().map(|grant| &grant.known));
        check("grant.created", made, 0);
        let made = releases
            .iter()
            .map(|release| release["id"].as_str().unwrap());
        check("release.created", made.collect(), 0);
        let removed = self
            .datasets
            .iter()
            .filter(|dataset| dataset.removal == Ending::Done);
        check(
            "dataset.deleted",
            removed.filter_map(|dataset| dataset.known.id()).collect(),
            0,
        );
        let removed = |asked: Ending| {
            let removed = self
                .submissions
                .iter()
                .filter(move |sent| sent.removal == asked);
            removed.filter_map(|sent| sent.known.id())
        };
        let open = removed(Ending::Unknown).count();
        check("submission.deleted", removed(Ending::Done).collect(), open);
    }
}

/// Repeats a request with its key until it is decided. `may_be_refused`: its dataset, or rows of it, were to be
/// removed meanwhile.
async fn decided(
    request: impl Fn() -> reqwest::RequestBuilder,
    status: u16,
    may_be_refused: bool,
) -> Known {
    let last = std::cell::RefCell::new(String::new());
    let known = poll_async(SETTLED, async || {
        let answer = request().send().await.ok()?;
        let answered = answer.status().as_u16();
        let body = answer.bytes().await.ok()?;
        last.replace(format!("{answered} {}", String::from_utf8_lossy(&body)));
        match made(&Some((answered, body)), status) {
            Known::Made(id) => Some(Known::Made(id)),
            // What it refers to may be gone, and whether the first request has made it is not known.
            Known::NotMade if may_be_refused => Some(Known::Unknown),
            _ => None,
        }
    });
    known
        .await
        .unwrap_or_else(|| panic!("a repeated request has no answer: {}", last.borrow()))
}

/// Compares what is known with what is there, which decides what was not known.
fn decide(known: &mut Known, found: Option<&str>, is_removed: bool, what: &str) {
    match (&*known, found) {
        (Known::Made(id), Some(found)) => {
            assert_eq!(id, found, "{what} is another one");
            assert!(!is_removed, "{what} was removed and is there");
        }
        (Known::Made(id), None) => assert!(is_removed, "{what} is lost: {id}"),
        (Known::NotMade, Some(found)) => panic!("{what} was not made and is there: {found}"),
        (Known::Unknown, Some(found)) => *known = Known::Made(found.to_owned()),
        (Known::Unknown, None) => *known = Known::NotMade,
        (Known::NotMade, None) => {}
    }
}

/// The items by a field, which is a text.
fn by<'a>(items: &'a [Value], field: &str) -> BTreeMap<&'a str, &'a Value> {
    items
        .iter()
        .map(|item| (item[field].as_str().unwrap(), item))
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The JSON of an answer, which must be 200.
async fn success(request: reqwest::RequestBuilder) -> Value {
    let answer = request.send().await.unwrap();
    let (status, url) = (answer.status(), answer.url().clone());
    let text = answer.text().await.unwrap();
    assert_eq!(status, 200, "{url}: {text}");
    serde_json::from_str(&text).unwrap()
}
