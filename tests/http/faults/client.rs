//! A hospital that works while something goes wrong, and what it knows of each thing that it asked for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use reqwest::{Body, Method, RequestBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::fault::milliseconds;
use crate::process::call;
use pais_test_support::poll::pace;
use pais_test_support::split_mix::SplitMix64;

/// Longest time that a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Requests of a hospital, at least.
const REQUESTS: usize = 25;

/// The statuses of what the service cannot do now: too slow, without its database, without space.
const UNABLE: [u16; 3] = [408, 503, 507];

/// Rows of a submission that the service stores in several chunks.
const MANY_ROWS: usize = 70_000;

/// What a client knows of a thing that it asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// The service has said that it is there. Its id.
    Made(String),
    /// The service has refused it, or never got all of the request.
    NotMade,
    /// No answer has come, or one that leaves it open.
    Unknown,
}

impl Known {
    /// The id of a thing that is there.
    pub(super) fn id(&self) -> Option<&str> {
        match self {
            Self::Made(id) => Some(id),
            _ => None,
        }
    }
}

/// What a client knows of an end that it asked for: of a dataset, a submission or a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    NotAsked,
    Done,
    Unknown,
}

pub(super) struct Dataset {
    pub(super) definition: Value,
    pub(super) known: Known,
    pub(super) removal: Ending,
    /// Whether the removal of one of its submissions was asked for.
    pub(super) has_lost_rows: bool,
}

impl Dataset {
    /// Whether it is there for certain.
    fn is_open(&self) -> bool {
        self.known.id().is_some() && self.removal == Ending::NotAsked
    }
}

pub(super) struct Submission {
    /// Index of its dataset.
    pub(super) dataset: usize,
    /// The value that all its rows have, and no others.
    pub(super) mark: String,
    pub(super) rows: usize,
    pub(super) body: Bytes,
    pub(super) sha256: String,
    pub(super) key: Option<String>,
    pub(super) known: Known,
    pub(super) removal: Ending,
}

pub(super) struct Job {
    pub(super) dataset: usize,
    pub(super) body: Value,
    pub(super) key: Option<String>,
    pub(super) known: Known,
    pub(super) cancelled: Ending,
}

/// A release that was asked for, rather than made by its job.
pub(super) struct Release {
    pub(super) name: String,
    pub(super) known: Known,
}

pub(super) struct Grant {
    pub(super) release: String,
    pub(super) known: Known,
}

/// How requests of a hospital were answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answers {
    pub(super) good: usize,
    /// Refused for a reason that the request has.
    pub(super) refused: usize,
    /// Refused because the service cannot do it now.
    pub(super) unable: usize,
    /// Without an answer, or without all of it.
    pub(super) none: usize,
}

/// The answer to a request; `None` if none came, or not all of it.
type Heard = Option<(u16, Bytes)>;

/// A hospital, and its recipient.
pub(super) struct Hospital {
    pub(super) name: String,
    pub(super) token: String,
    pub(super) auditor: String,
    pub(super) recipient: String,
    pub(super) datasets: Vec<Dataset>,
    pub(super) submissions: Vec<Submission>,
    pub(super) jobs: Vec<Job>,
    pub(super) releases: Vec<Release>,
    pub(super) grants: Vec<Grant>,
    pub(super) answers: Answers,
    http: reqwest::Client,
    urls: [String; 2],
    random: SplitMix64,
}

/// The names and the token with which hospitals join.
pub(super) struct Admission<'a> {
    pub(super) urls: &'a [String; 2],
    pub(super) administrator: &'a str,
}

impl Hospital {
    pub(super) async fn join(admission: &Admission<'_>, name: String, seed: u64) -> Self {
        let http = reqwest::Client::new();
        let post = async |path: &str, body: &Value| {
            let request = http.post(format!("{}{path}", admission.urls[0]));
            call(request.json(body), admission.administrator).await
        };
        let recipient = format!("{name}-bts");
        for name in [&name, &recipient] {
            post("/v1/organizations", &json!({ "name": name })).await;
        }
        let token = async |organization: &str, role: &str| {
            let body = json!({ "organization": organization, "role": role });
            let made = post("/v1/tokens", &body).await;
            made["token"].as_str().unwrap().to_owned()
        };
        Self {
            token: token(&name, "holder").await,
            auditor: token(&name, "auditor").await,
            recipient: token(&recipient, "recipient").await,
            name,
            datasets: Vec::new(),
            submissions: Vec::new(),
            jobs: Vec::new(),
            releases: Vec::new(),
            grants: Vec::new(),
            answers: Answers::default(),
            urls: admission.urls.clone(),
            random: SplitMix64(seed),
            http,
        }
    }

    /// Works until the fault is over, and for some requests.
    pub(super) async fn work(mut self, is_over: &AtomicBool) -> Self {
        for number in 0.. {
            if number >= REQUESTS && is_over.load(Ordering::Relaxed) {
                break;
            }
            self.act().await;
        }
        self
    }

    async fn act(&mut self) {
        let Some(dataset) = self.any_dataset() else {
            return self.declare().await;
        };
        match self.random.below(100) {
            0..6 => self.declare().await,
            6..40 => self.submit(dataset).await,
            40..62 => self.start_job(dataset).await,
            62..68 => self.cancel().await,
            68..75 => self.release().await,
            75..82 => self.grant().await,
            82..88 => self.fetch().await,
            88..92 => self.remove_submission().await,
            92..94 => self.remove_dataset(dataset).await,
            _ => self.look(dataset).await,
        }
    }

    /// Sends a request as the hospital. The answer must be one of the statuses, or say that the service
    /// cannot do it now.
    async fn ask(&mut self, request: RequestBuilder, statuses: &[u16]) -> Heard {
        let request = request.bearer_auth(&self.token).timeout(PATIENCE);
        self.hear(request, statuses).await
    }

    async fn hear(&mut self, request: RequestBuilder, statuses: &[u16]) -> Heard {
        let (client, request) = request.build_split();
        let request = request.unwrap();
        let what = format!("{} {}", request.method(), request.url().path());
        let heard = async {
            let answer = client.execute(request).await.ok()?;
            Some((answer.status().as_u16(), answer.bytes().await.ok()?))
        };
        let heard = heard.await;
        match &heard {
            Some((200..300, _)) => self.answers.good += 1,
            Some((status, _)) if UNABLE.contains(status) => self.answers.unable += 1,
            Some(_) => self.answers.refused += 1,
            None => self.answers.none += 1,
        }
        if let Some((status, body)) = &heard {
            let is_expected = statuses.contains(status) || UNABLE.contains(status);
            let body = String::from_utf8_lossy(body);
            assert!(is_expected, "{what}: {status} {body}");
        }
        heard
    }

    /// A request to one of the services.
    fn request(&mut self, method: Method, path: &str) -> RequestBuilder {
        let url = &self.urls[self.random.below(2)];
        self.http.request(method, format!("{url}{path}"))
    }

    fn any_dataset(&mut self) -> Option<usize> {
        let open = (0..self.datasets.len()).filter(|&index| self.datasets[index].is_open());
        any(&mut self.random, open.collect())
    }

    async fn declare(&mut self) {
        let definition = json!({
            "name": format!("patients {}", self.datasets.len()),
            "columns": [
                { "name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99] },
                { "name": "sex", "role": "quasi_identifier" },
                { "name": "disease", "role": "sensitive" },
                { "name": "mark", "role": "insensitive" },
            ],
        });
        let request = self.request(Method::POST, "/v1/datasets").json(&definition);
        let known = made(&self.ask(request, &[201]).await, 201);
        self.datasets.push(Dataset {
            definition,
            known,
            removal: Ending::NotAsked,
            has_lost_rows: false,
        });
    }

    fn upload(
        &mut self,
        dataset: usize,
        key: Option<&str>,
        body: impl Into<Body>,
    ) -> RequestBuilder {
        let id = self.datasets[dataset].known.id().unwrap();
        let path = format!("/v1/datasets/{id}/submissions");
        let request = self.request(Method::POST, &path).body(body);
        let request = request.header("content-type", "text/csv");
        match key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        }
    }

    async fn submit(&mut self, dataset: usize) {
        let mark = format!("m{}", self.submissions.len());
        let kind = self.random.below(16);
        let rows = match kind {
            0 => MANY_ROWS,
            _ => 30 + self.random.below(90),
        };
        let mut body = String::from("age,sex,disease,mark\n");
        for _ in 0..rows {
            let age = self.random.below(100);
            let sex = ["F", "M"][self.random.below(2)];
            let disease = ["flu", "HIV", "none", "cancer"][self.random.below(4)];
            body.push_str(&format!("{age},{sex},{disease},{mark}\n"));
        }
        let is_bad = kind == 1;
        if is_bad {
            body.push_str("old,F,flu,m\n");
        }
        let body = Bytes::from(body);
        let key = (kind % 4 != 3).then(|| format!("submission-{mark}"));
        let key = key.as_deref();
        let known = match kind {
            1 => {
                let request = self.upload(dataset, key, body.clone());
                self.ask(request, &[422]).await;
                Known::NotMade
            }
            // Cut before its end, on which the service insists.
            2..5 => {
                let sent = 1 + self.random.below(body.len() - 1);
                let cut = self.pieces(&body.slice(..sent), true);
                let request = self.upload(dataset, key, cut);
                let answer = request
                    .bearer_auth(&self.token)
                    .timeout(PATIENCE)
                    .send()
                    .await;
                if let Ok(answer) = answer {
                    assert!(!answer.status().is_success(), "half a body was accepted");
                }
                Known::NotMade
            }
            5..8 => {
                let slow = self.pieces(&body, false);
                let request = self.upload(dataset, key, slow);
                made(&self.ask(request, &[201]).await, 201)
            }
            // At the same time to both services; without a key the second is refused as a duplicate.
            8 | 9 => self.submit_twice(dataset, &mark, &body).await,
            _ => {
                let request = self.upload(dataset, key, body.clone());
                made(&self.ask(request, &[201]).await, 201)
            }
        };
        let key = match kind {
            8 | 9 => Some(twice_key(&mark)),
            _ => key.map(str::to_owned),
        };
        self.submissions.push(Submission {
            dataset,
            sha256: hex::encode(Sha256::digest(&body)),
            mark,
            rows,
            body,
            key,
            known,
            removal: Ending::NotAsked,
        });
    }

    async fn submit_twice(&mut self, dataset: usize, mark: &str, body: &Bytes) -> Known {
        let key = twice_key(mark);
        let one = self.upload(dataset, Some(&key), body.clone());
        let other = self.upload(dataset, Some(&key), body.clone());
        let token = self.token.clone();
        let send = async |request: RequestBuilder| {
            let answer = request
                .bearer_auth(&token)
                .timeout(PATIENCE)
                .send()
                .await
                .ok()?;
            Some((answer.status().as_u16(), answer.bytes().await.ok()?))
        };
        let (one, other) = tokio::join!(send(one), send(other));
        for (status, body) in [&one, &other].into_iter().flatten() {
            let is_expected = [201, 409].contains(status) || UNABLE.contains(status);
            assert!(is_expected, "{status} {}", String::from_utf8_lossy(body));
        }
        match (made(&one, 201), made(&other, 201)) {
            (Known::Made(one), Known::Made(other)) => {
                assert_eq!(one, other, "one key has made two submissions");
                Known::Made(one)
            }
            (Known::Made(id), _) | (_, Known::Made(id)) => Known::Made(id),
            (Known::NotMade, Known::NotMade) => Known::NotMade,
            _ => Known::Unknown,
        }
    }

    /// A body that comes in some pieces, with pauses, and that may fail at its end.
    fn pieces(&mut self, body: &Bytes, is_cut: bool) -> Body {
        let number = 2 + self.random.below(6);
        let size = body.len().div_ceil(number);
        let pause = milliseconds(&mut self.random, 1, 60);
        let mut pieces: Vec<_> =
            (0..number)
                .map(|piece| {
                    Ok(body.slice(
                        (piece * size).min(body.len())..((piece + 1) * size).min(body.len()),
                    ))
                })
                .collect();
        if is_cut {
            pieces.push(Err(std::io::Error::other("the client is gone")));
        }
        Body::wrap_stream(
            stream::iter(pieces)
                .then(move |piece| async move {
                    pace(pause).await;
                    piece
                })
                .boxed(),
        )
    }

    async fn start_job(&mut self, dataset: usize) {
        let has_rows = self.submissions.iter().any(|submission| {
            submission.dataset == dataset
                && submission.known.id().is_some()
                && submission.removal == Ending::NotAsked
        });
        if !has_rows {
            return self.submit(dataset).await;
        }
        let recoding = ["local", "global"][self.random.below(2)];
        let body = json!({
            "dataset_id": self.datasets[dataset].known.id(),
            "privacy": { "model": "k_anonymity", "k": 2 + self.random.below(8) },
            "recoding": recoding,
            "release": self.random.below(4) != 0,
        });
        let key = (self.random.below(2) == 0).then(|| format!("job-{}", self.jobs.len()));
        let mut request = self.request(Method::POST, "/v1/jobs").json(&body);
        if let Some(key) = &key {
            request = request.header("idempotency-key", key);
        }
        let known = made(&self.ask(request, &[202]).await, 202);
        self.jobs.push(Job {
            dataset,
            body,
            key,
            known,
            cancelled: Ending::NotAsked,
        });
    }

    fn any_job(&mut self) -> Option<usize> {
        let open = (0..self.jobs.len()).filter(|&index| {
            let job = &self.jobs[index];
            job.known.id().is_some() && job.cancelled == Ending::NotAsked
        });
        any(&mut self.random, open.collect())
    }

    async fn cancel(&mut self) {
        let Some(job) = self.any_job() else { return };
        let path = format!("/v1/jobs/{}", self.jobs[job].known.id().unwrap());
        let request = self.request(Method::DELETE, &path);
        self.jobs[job].cancelled = match self.ask(request, &[202, 409]).await {
            Some((202, _)) => Ending::Done,
            Some((409, _)) => Ending::NotAsked,
            _ => Ending::Unknown,
        };
    }

    /// Makes a release of a job, if that has succeeded.
    async fn release(&mut self) {
        let Some(job) = self.any_job() else { return };
        let id = self.jobs[job].known.id().unwrap().to_owned();
        let request = self.request(Method::GET, &format!("/v1/jobs/{id}"));
        let Some((200, shown)) = self.ask(request, &[200]).await else {
            return;
        };
        let shown: Value = serde_json::from_slice(&shown).unwrap();
        let has_ended = shown["status"] == "succeeded";
        if !has_ended || self.datasets[self.jobs[job].dataset].removal != Ending::NotAsked {
            return;
        }
        let name = format!("release {}", self.releases.len());
        let body = json!({ "job_id": id, "name": name });
        let request = self.request(Method::POST, "/v1/releases").json(&body);
        // 409: its rows were deleted since.
        let known = made(&self.ask(request, &[201, 409]).await, 201);
        self.releases.push(Release { name, known });
    }

    /// The id of a release, if there is one.
    async fn any_release(&mut self) -> Option<String> {
        let request = self.request(Method::GET, "/v1/releases");
        let (200, listed) = self.ask(request, &[200]).await? else {
            return None;
        };
        let listed: Value = serde_json::from_slice(&listed).unwrap();
        let ids = listed["items"].as_array().unwrap().iter();
        let ids = ids.map(|release| release["id"].as_str().unwrap().to_owned());
        any(&mut self.random, ids.collect())
    }

    async fn grant(&mut self) {
        let Some(release) = self.any_release().await else {
            return;
        };
        if self.grants.iter().any(|grant| grant.release == release) {
            return;
        }
        let body = json!({
            "recipient": format!("{}-bts", self.name),
            "purpose": "Planning the supply of blood",
            "acknowledge_composition_risk": "A test",
        });
        let path = format!("/v1/releases/{release}/grants");
        let request = self.request(Method::POST, &path).json(&body);
        let known = made(&self.ask(request, &[201]).await, 201);
        self.grants.push(Grant { release, known });
    }

    /// Fetches a release, which must be whole.
    async fn fetch(&mut self) {
        let Some(release) = self.any_release().await else {
            return;
        };
        let is_granted = self
            .grants
            .iter()
            .any(|grant| grant.release == release && grant.known.id().is_some());
        let token = if is_granted {
            &self.recipient
        } else {
            &self.token
        }
        .clone();
        let mut answers = Vec::new();
        for path in ["", "/data"] {
            let request = self.request(Method::GET, &format!("/v1/releases/{release}{path}"));
            let request = request.bearer_auth(&token).timeout(PATIENCE);
            answers.push(self.hear(request, &[200]).await);
        }
        if let [Some((200, shown)), Some((200, rows))] = &answers[..] {
            let shown: Value = serde_json::from_slice(shown).unwrap();
            assert_eq!(shown["sha256"], hex::encode(Sha256::digest(rows)));
        }
    }

    async fn remove_submission(&mut self) {
        let open = (0..self.submissions.len()).filter(|&index| {
            let submission = &self.submissions[index];
            submission.known.id().is_some()
                && submission.removal == Ending::NotAsked
                && self.datasets[submission.dataset].is_open()
        });
        let open = open.collect();
        let Some(submission) = any(&mut self.random, open) else {
            return;
        };
        let dataset = self.submissions[submission].dataset;
        self.datasets[dataset].has_lost_rows = true;
        let path = self.submission_path(submission);
        self.submissions[submission].removal = self.remove(&path).await;
    }

    /// The path of a submission that is there.
    pub(super) fn submission_path(&self, submission: usize) -> String {
        let submission = &self.submissions[submission];
        let dataset = self.datasets[submission.dataset].known.id().unwrap();
        format!(
            "/v1/datasets/{dataset}/submissions/{}",
            submission.known.id().unwrap()
        )
    }

    async fn remove_dataset(&mut self, dataset: usize) {
        let path = format!(
            "/v1/datasets/{}",
            self.datasets[dataset].known.id().unwrap()
        );
        self.datasets[dataset].removal = self.remove(&path).await;
    }

    async fn remove(&mut self, path: &str) -> Ending {
        let request = self.request(Method::DELETE, path);
        match self.ask(request, &[204]).await {
            Some((204, _)) => Ending::Done,
            _ => Ending::Unknown,
        }
    }

    /// Looks, at either service, for all that was acknowledged.
    async fn look(&mut self, dataset: usize) {
        let id = self.datasets[dataset].known.id().unwrap();
        let path = format!("/v1/datasets/{id}/submissions?limit=1000");
        let request = self.request(Method::GET, &path);
        let Some((200, listed)) = self.ask(request, &[200]).await else {
            return;
        };
        let listed = String::from_utf8(listed.to_vec()).unwrap();
        let kept = self.submissions.iter().filter(|submission| {
            submission.dataset == dataset && submission.removal == Ending::NotAsked
        });
        for id in kept.filter_map(|submission| submission.known.id()) {
            assert!(listed.contains(id), "submission {id} is missing: {listed}");
        }
    }

    /// A request to a service that works again.
    pub(super) fn repeat(&self, method: Method, path: &str) -> RequestBuilder {
        self.repeat_as(&self.token, method, path)
    }

    pub(super) fn repeat_as(&self, token: &str, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.urls[0]));
        request.bearer_auth(token).timeout(PATIENCE)
    }
}

fn twice_key(mark: &str) -> String {
    format!("twice-{mark}")
}

/// What an answer says of a thing that was asked for.
pub(super) fn made(heard: &Heard, status: u16) -> Known {
    let Some((answered, body)) = heard else {
        return Known::Unknown;
    };
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    match answered {
        made if *made == status => Known::Made(document["id"].as_str().unwrap().to_owned()),
        // The database was lost, or the time was over, perhaps after the commit.
        408 | 503 if document["code"] != "busy" => Known::Unknown,
        // The other of two requests is under way.
        409 if document["code"] == "idempotency_key_in_use" => Known::Unknown,
        _ => Known::NotMade,
    }
}

fn any<T>(random: &mut SplitMix64, mut items: Vec<T>) -> Option<T> {
    (!items.is_empty()).then(|| items.swap_remove(random.below(items.len())))
}
