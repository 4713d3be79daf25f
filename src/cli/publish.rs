//! `pais publish`: sends files to the dataset of a publication, and waits until their rows are
//! published, wait for approval, or are refused. For hospitals without a job scheduler.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use pais::db::editions::EditionStatus;
use pais::db::publications::Trigger;
use pais::problem::ProblemDocument;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use super::output::{Failure, counted, note, print_line};
use super::sources::{ServiceAddress, TOKEN};
use super::table_file::TableFile;

/// Largest answer that is read, in bytes.
const LIMIT: u64 = 64 << 20;

/// Time between two questions for the editions.
const INTERVAL: Duration = Duration::from_millis(500);

/// The error for an answer of another form.
const UNDOCUMENTED: &str = "the answer is not of the documented form";

/// Time for an answer to a question.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of times that a file is sent.
const ATTEMPTS: u32 = 3;

/// Exit status where an edition waits for approval.
const WAITS: u8 = 3;

/// Arguments of `pais publish`.
#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// Name or id of the publication.
    #[arg(long, value_name = "NAME")]
    publication: String,
    /// The address of the service. A token of the holder is read from `PAIS_TOKEN`.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: ServiceAddress,
    /// The submission that the file replaces, by the id that an earlier call printed: its rows are left out
    /// from now on. Send all rows, not only the changed ones.
    #[arg(long, value_name = "ID")]
    replaces: Option<Uuid>,
    /// Send files even if the dataset has their rows already.
    #[arg(long)]
    allow_duplicate: bool,
    /// Files of rows: .csv, .tsv, .ndjson, each of them also with .gz or .zst, or .parquet.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct ListPage<T> {
    items: Vec<T>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct FoundPublication {
    id: String,
    name: String,
    dataset_id: String,
    trigger: Trigger,
    paused: bool,
}

#[derive(Deserialize)]
struct SentSubmission {
    id: String,
    rows: u64,
}

#[derive(Deserialize)]
struct FoundEdition {
    number: u32,
    status: EditionStatus,
    submissions: Vec<String>,
    release_id: Option<String>,
    rows: Option<u64>,
    held_back_rows: Option<u64>,
    error: Option<ProblemDocument>,
}

impl Publish {
    /// Sends the files, and waits for their editions. The exit status is 0 where all rows are in editions
    /// that are published, or wait behind one; 3 where an edition waits for approval; 1 where one is
    /// refused or has failed.
    ///
    /// # Errors
    /// For files and arguments that cannot be used, and where the service refuses a request.
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        if self.replaces.is_some() && self.files.len() > 1 {
            let why = "`--replaces` takes one file, with all rows that take the place of the submission's";
            return Err(Failure::Usage(why.to_owned()));
        }
        let files = self.files.iter().map(|path| Ok((path, sendable(path)?)));
        let files: Vec<(&PathBuf, TableFile)> = files.collect::<Result<_, Failure>>()?;
        let token = std::env::var(TOKEN)
            .map_err(|_| Failure::Usage(format!("put a token of the holder into {TOKEN}")))?;
        let service = Service::new(&self.url, token.trim());
        let publication = service.publication(&self.publication);
        let publication = publication.map_err(Failure::Service)?.ok_or_else(|| {
            Failure::Usage(format!("there is no publication `{}`", self.publication))
        })?;
        if publication.paused {
            return Err(Failure::Service(publication.is_paused("nothing was sent")));
        }
        let mut sent = BTreeSet::new();
        for (path, file) in files {
            let address = self.submissions_address(&publication);
            let submission = service.submit(&address, path, &file);
            let submission = submission.inspect_err(|_| {
                if !sent.is_empty() {
                    note(
                        "pais: the files before this one are sent; their edition is not waited for",
                    );
                }
            })?;
            print(format_args!(
                "{}: {} rows are sent, submission {}",
                path.display(),
                submission.rows,
                submission.id
            ));
            sent.insert(submission.id);
        }
        self.wait(&service, &publication, &sent)
            .map_err(Failure::Service)
    }

    /// Where files are sent to, below the address of the service.
    fn submissions_address(&self, publication: &FoundPublication) -> String {
        let allow = self.allow_duplicate;
        let address = format!(
            "/v1/datasets/{}/submissions?allow_duplicate={allow}",
            publication.dataset_id
        );
        match self.replaces {
            Some(replaced) => format!("{address}&replaces={replaced}"),
            None => address,
        }
    }

    /// Waits until each submission is in an edition that is published, or its latest one has ended.
    fn wait(
        &self,
        service: &Service,
        publication: &FoundPublication,
        sent: &BTreeSet<String>,
    ) -> anyhow::Result<ExitCode> {
        let mut reported = BTreeSet::new();
        loop {
            let editions = service.editions(publication)?;
            let of_sent = |it: &&FoundEdition| it.submissions.iter().any(|id| sent.contains(id));
            for edition in editions.iter().filter(of_sent) {
                if edition.is_ended() && reported.insert(edition.number) {
                    print(edition.summary(&publication.name));
                }
            }
            // Rows of an edition that has failed join the next one.
            let deciding = |id: &String| {
                let mut of_it = editions.iter().filter(|it| it.submissions.contains(id));
                let published = of_it
                    .clone()
                    .find(|it| it.status == EditionStatus::Published);
                published.or_else(|| of_it.next_back())
            };
            let deciding: Vec<Option<&FoundEdition>> = sent.iter().map(deciding).collect();
            let ended = deciding.iter().flatten().filter(|it| it.is_ended());
            let waiting = sent.len() - ended.clone().count();
            if waiting == 0 {
                let mut ended = ended;
                return Ok(if ended.all(|it| it.status == EditionStatus::Published) {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::FAILURE
                });
            }
            let open = editions.iter().find(|edition| !edition.is_ended());
            match open {
                Some(open) if open.status == EditionStatus::AwaitingApproval => {
                    print(open.summary(&publication.name));
                    return Ok(ExitCode::from(WAITS));
                }
                Some(_) => {}
                None if service.now(publication)?.paused => {
                    let files = counted(waiting as u64, "file");
                    let what = format!("the rows of {files} are sent and wait");
                    return Err(publication.is_paused(&what));
                }
                None if publication.trigger == Trigger::Manual => service.publish(publication)?,
                None => {}
            }
            std::thread::sleep(INTERVAL);
        }
    }
}

/// The table file at a path, which can be read: before the first of several is sent.
fn sendable(path: &Path) -> Result<TableFile, Failure> {
    let file = TableFile::of(path)?;
    let metadata = path.metadata();
    let metadata = metadata.map_err(|error| Failure::file(path, error))?;
    if metadata.is_dir() {
        return Err(Failure::file(path, "it is a directory"));
    }
    // A pipe is opened once.
    if metadata.is_file() {
        File::open(path).map_err(|error| Failure::file(path, error))?;
    }
    Ok(file)
}

impl FoundPublication {
    /// The error of a publication that is paused.
    fn is_paused(&self, what: &str) -> anyhow::Error {
        anyhow!(
            "the publication `{}` is paused: {what}; it goes on with `PATCH /v1/publications/{}` and \
             `{{\"paused\": false}}`",
            self.name,
            self.id
        )
    }
}

/// Prints a line; where standard output is closed, the exit status still says the result.
fn print(line: impl std::fmt::Display) {
    let _ = print_line(line);
}

impl FoundEdition {
    fn is_ended(&self) -> bool {
        match self.status {
            EditionStatus::Published | EditionStatus::Refused | EditionStatus::Failed => true,
            EditionStatus::Queued | EditionStatus::Running | EditionStatus::AwaitingApproval => {
                false
            }
        }
    }

    fn summary(&self, publication: &str) -> String {
        let rows = |rows: Option<u64>| rows.map_or_else(|| "no".to_owned(), |it| it.to_string());
        let name = format!("edition {} of {publication}", self.number);
        let release = self.release_id.as_deref().unwrap_or_default();
        let why = || {
            let error = self.error.as_ref();
            error.map_or_else(String::new, |it| format!(": {}", it.detail))
        };
        match self.status {
            EditionStatus::Published => format!(
                "{name} is published: {} rows, {} wait for a later edition; release {release}",
                rows(self.rows),
                rows(self.held_back_rows)
            ),
            EditionStatus::AwaitingApproval => format!(
                "{name} waits for approval: {} rows, {} wait for a later edition; release {release}",
                rows(self.rows),
                rows(self.held_back_rows)
            ),
            EditionStatus::Failed => format!("{name} has failed{}", why()),
            EditionStatus::Refused => format!("{name} is refused{}", why()),
            EditionStatus::Queued => format!("{name} is queued"),
            EditionStatus::Running => format!("{name} is running"),
        }
    }
}

/// A service, and the token of a holder.
struct Service {
    agent: ureq::Agent,
    url: ServiceAddress,
    token: String,
}

impl Service {
    fn new(url: &ServiceAddress, token: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_recv_response(Some(TIMEOUT))
            .timeout_connect(Some(TIMEOUT));
        Self {
            agent: url.agent(config),
            url: url.clone(),
            token: format!("Bearer {token}"),
        }
    }

    /// The publication with a name or id; `None` where there is none.
    fn publication(&self, name: &str) -> anyhow::Result<Option<FoundPublication>> {
        let mut cursor = String::new();
        loop {
            let path = format!("/v1/publications?limit=1000{cursor}");
            let page: ListPage<Value> = self.get(&path)?;
            let mut items = page.items.into_iter();
            if let Some(found) = items.find(|it| it["name"] == name || it["id"] == name) {
                // Other roles see less of it.
                if found["dataset_id"].is_null() {
                    bail!(
                        "the token in {TOKEN} is of a role that may not publish; put a token of the holder into it"
                    );
                }
                return serde_json::from_value(found)
                    .context(UNDOCUMENTED)
                    .map(Some);
            }
            let Some(next) = page.next_cursor else {
                return Ok(None);
            };
            cursor = format!("&cursor={next}");
        }
    }

    /// The publication as it is now.
    fn now(&self, publication: &FoundPublication) -> anyhow::Result<FoundPublication> {
        self.get(&format!("/v1/publications/{}", publication.id))
    }

    /// Sends a file to an address below that of the service. Where no answer comes, it is sent again under the same
    /// `Idempotency-Key`, except from a pipe, which has its rows once.
    fn submit(
        &self,
        address: &str,
        path: &Path,
        table: &TableFile,
    ) -> Result<SentSubmission, Failure> {
        let address = format!("{}{address}", self.url);
        let key = Uuid::new_v4().to_string();
        let mut attempt = 1;
        loop {
            let file = File::open(path).map_err(|error| Failure::file(path, error))?;
            let request = self.agent.post(&address).content_type(table.media_type());
            let request = request.header("authorization", &self.token);
            let mut request = request.header("idempotency-key", &key);
            if let Some(encoding) = table.content_encoding() {
                request = request.header("content-encoding", encoding);
            }
            // A pipe has no length before its end; as a file it would have the length 0.
            let sent = if table.is_read_once() {
                request.send(ureq::SendBody::from_owned_reader(file))
            } else {
                request.send(file)
            };
            let submission = self.answer(sent);
            let is_unanswered = |error: &anyhow::Error| {
                code_of(error).is_none_or(|code| code == "idempotency_key_in_use")
            };
            let is_repeatable = attempt < ATTEMPTS && !table.is_read_once();
            if submission.as_ref().is_err_and(is_unanswered) && is_repeatable {
                attempt += 1;
                std::thread::sleep(INTERVAL);
                continue;
            }
            let is_duplicate =
                |error: &anyhow::Error| code_of(error) == Some("duplicate_submission");
            let submission = if submission.as_ref().is_err_and(is_duplicate) {
                submission.context("--allow-duplicate sends rows that the dataset has already")
            } else {
                submission
            };
            let submission = submission.with_context(|| path.display().to_string());
            return submission.map_err(Failure::Service);
        }
    }

    fn editions(&self, publication: &FoundPublication) -> anyhow::Result<Vec<FoundEdition>> {
        let (mut editions, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!(
                "/v1/publications/{}/editions?limit=1000{cursor}",
                publication.id
            );
            let page: ListPage<FoundEdition> = self.get(&path)?;
            editions.extend(page.items);
            match page.next_cursor {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(editions),
            }
        }
    }

    /// Asks for an edition, unless another one was queued meanwhile.
    fn publish(&self, publication: &FoundPublication) -> anyhow::Result<()> {
        let address = format!("{}/v1/publications/{}/editions", self.url, publication.id);
        let request = self.agent.post(&address);
        let sent = request.header("authorization", &self.token).send_empty();
        match self.answer::<Value>(sent) {
            Err(error) if code_of(&error) == Some("edition_open") => Ok(()),
            answered => answered.map(|_| ()),
        }
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let request = self.agent.get(format!("{}{path}", self.url));
        self.answer(request.header("authorization", &self.token).call())
    }

    /// The document of an answer.
    fn answer<T: DeserializeOwned>(
        &self,
        sent: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> anyhow::Result<T> {
        let sent = sent.with_context(|| {
            format!(
                "{} does not answer; check --url, and that the service runs",
                self.url
            )
        });
        document(sent?)
    }
}

/// The document of an answer.
fn document<T: DeserializeOwned>(
    mut answer: ureq::http::Response<ureq::Body>,
) -> anyhow::Result<T> {
    let body = answer.body_mut().with_config().limit(LIMIT).read_to_vec()?;
    let status = answer.status();
    if status.is_success() {
        return serde_json::from_slice(&body).context(UNDOCUMENTED);
    }
    Err(match serde_json::from_slice(&body) {
        Ok(problem) => Refused { problem }.into(),
        Err(_) => anyhow!("{status}"),
    })
}

/// What the service has answered instead.
#[derive(Debug, thiserror::Error)]
#[error("{} {}: {}", problem.status, problem.code, problem.detail)]
struct Refused {
    problem: ProblemDocument,
}

fn code_of(error: &anyhow::Error) -> Option<&str> {
    let refused = error.downcast_ref::<Refused>();
    refused.map(|refused| refused.problem.code.as_str())
}
