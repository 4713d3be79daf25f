//! `pais publish`: sends files to the dataset of a publication, and waits until their rows are
//! published, wait for approval, or are refused. For those without a scheduler of their own.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use pais::problem::ProblemDocument;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::output::{Failure, print_line};
use super::sources::TOKEN;
use super::table_file::TableFile;

/// Largest answer that is read, in bytes.
const LIMIT: u64 = 64 << 20;

/// Time between two questions for the editions.
const INTERVAL: Duration = Duration::from_millis(500);

/// Time for an answer to a question.
const TIMEOUT: Duration = Duration::from_secs(60);

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
    url: String,
    /// Files of rows: .csv, .tsv, .ndjson, each of them also with .gz or .zst, or .parquet.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct Page<T> {
    items: Vec<T>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Publication {
    id: String,
    name: String,
    dataset_id: String,
    trigger: String,
    paused: bool,
}

#[derive(Deserialize)]
struct Submission {
    id: String,
    rows: u64,
}

#[derive(Deserialize)]
struct Edition {
    number: u32,
    status: String,
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
        let files = self
            .files
            .iter()
            .map(|path| Ok((path, TableFile::of(path)?)));
        let files: Vec<(&PathBuf, TableFile)> = files.collect::<Result<_, Failure>>()?;
        let token = std::env::var(TOKEN)
            .map_err(|_| Failure::Usage(format!("put a token of the holder into {TOKEN}")))?;
        let service = Service::new(&self.url, token.trim());
        let publication = service
            .publication(&self.publication)
            .map_err(Failure::Service)?;
        if publication.paused {
            let error = anyhow!("the publication `{}` is paused", publication.name);
            return Err(Failure::Service(error));
        }
        let mut sent = BTreeSet::new();
        for (path, file) in files {
            let opened = File::open(path).map_err(|error| Failure::file(path, error))?;
            let submission = service.submit(&publication, path, &file, opened);
            let submission = submission.map_err(Failure::Service)?;
            print(format_args!(
                "{}: {} rows are sent",
                path.display(),
                submission.rows
            ));
            sent.insert(submission.id);
        }
        self.wait(&service, &publication, &sent)
            .map_err(Failure::Service)
    }

    /// Waits until each submission is in an edition that has ended.
    fn wait(
        &self,
        service: &Service,
        publication: &Publication,
        sent: &BTreeSet<String>,
    ) -> anyhow::Result<ExitCode> {
        let mut told = BTreeSet::new();
        loop {
            let editions = service.editions(publication)?;
            let mut ended: BTreeSet<&String> = BTreeSet::new();
            let mut failed = false;
            let of_sent =
                |edition: &&Edition| edition.submissions.iter().any(|id| sent.contains(id));
            for edition in editions.iter().filter(of_sent) {
                let is_ended = !["queued", "running"].contains(&edition.status.as_str());
                if is_ended && told.insert(edition.number) {
                    print(edition.summary(&publication.name));
                }
                match edition.status.as_str() {
                    "awaiting_approval" => return Ok(ExitCode::from(WAITS)),
                    "published" => {}
                    "refused" | "failed" => failed = true,
                    _ => continue,
                }
                ended.extend(&edition.submissions);
            }
            if failed {
                return Ok(ExitCode::FAILURE);
            }
            if sent.iter().all(|id| ended.contains(id)) {
                return Ok(ExitCode::SUCCESS);
            }
            let is_open = |edition: &Edition| {
                ["queued", "running", "awaiting_approval"].contains(&edition.status.as_str())
            };
            match editions.iter().find(|edition| is_open(edition)) {
                Some(open) if open.status == "awaiting_approval" => {
                    print(open.summary(&publication.name));
                    return Ok(ExitCode::from(WAITS));
                }
                Some(_) => std::thread::sleep(INTERVAL),
                None if publication.trigger == "manual" => service.publish(publication)?,
                None => std::thread::sleep(INTERVAL),
            }
        }
    }
}

/// Prints a line; where standard output is closed, the exit status still says the result.
fn print(line: impl std::fmt::Display) {
    let _ = print_line(line);
}

impl Edition {
    fn summary(&self, publication: &str) -> String {
        let rows = |rows: Option<u64>| rows.map_or_else(|| "no".to_owned(), |it| it.to_string());
        let name = format!("edition {} of {publication}", self.number);
        let release = self.release_id.as_deref().unwrap_or_default();
        match (self.status.as_str(), &self.error) {
            ("published", _) => format!(
                "{name} is published: {} rows, {} wait for a later edition; release {release}",
                rows(self.rows),
                rows(self.held_back_rows)
            ),
            ("awaiting_approval", _) => format!(
                "{name} waits for approval: {} rows; release {release}",
                rows(self.rows)
            ),
            (status, Some(error)) => format!("{name} is {status}: {}", error.detail),
            (status, None) => format!("{name} is {status}"),
        }
    }
}

/// A service, and the token of a holder.
struct Service {
    agent: ureq::Agent,
    url: String,
    token: String,
}

impl Service {
    fn new(url: &str, token: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_recv_response(Some(TIMEOUT))
            .timeout_connect(Some(TIMEOUT));
        Self {
            agent: config.build().into(),
            url: url.trim_end_matches('/').to_owned(),
            token: format!("Bearer {token}"),
        }
    }

    /// The publication with a name or id.
    fn publication(&self, name: &str) -> anyhow::Result<Publication> {
        let mut cursor = String::new();
        loop {
            let path = format!("/v1/publications?limit=1000{cursor}");
            let page: Page<Publication> = self.get(&path)?;
            let mut items = page.items.into_iter();
            if let Some(found) = items.find(|it| it.name == name || it.id == name) {
                return Ok(found);
            }
            let next = page.next_cursor;
            let next = next.with_context(|| format!("there is no publication `{name}`"))?;
            cursor = format!("&cursor={next}");
        }
    }

    fn submit(
        &self,
        publication: &Publication,
        path: &Path,
        table: &TableFile,
        file: File,
    ) -> anyhow::Result<Submission> {
        let address = format!(
            "{}/v1/datasets/{}/submissions",
            self.url, publication.dataset_id
        );
        let mut request = self
            .agent
            .post(&address)
            .header("authorization", &self.token)
            .content_type(table.media_type());
        if let Some(encoding) = table.content_encoding() {
            request = request.header("content-encoding", encoding);
        }
        answer(request.send(file)).with_context(|| path.display().to_string())
    }

    fn editions(&self, publication: &Publication) -> anyhow::Result<Vec<Edition>> {
        let (mut editions, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!(
                "/v1/publications/{}/editions?limit=1000{cursor}",
                publication.id
            );
            let page: Page<Edition> = self.get(&path)?;
            editions.extend(page.items);
            match page.next_cursor {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(editions),
            }
        }
    }

    /// Asks for an edition.
    fn publish(&self, publication: &Publication) -> anyhow::Result<()> {
        let address = format!("{}/v1/publications/{}/editions", self.url, publication.id);
        let request = self.agent.post(&address);
        let sent = request.header("authorization", &self.token).send_empty();
        answer::<serde_json::Value>(sent).map(|_| ())
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let request = self.agent.get(format!("{}{path}", self.url));
        answer(request.header("authorization", &self.token).call())
    }
}

/// The document of an answer.
fn answer<T: DeserializeOwned>(
    sent: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
) -> anyhow::Result<T> {
    let mut answer = sent?;
    let body = answer.body_mut().with_config().limit(LIMIT).read_to_vec()?;
    let status = answer.status();
    if status.is_success() {
        return serde_json::from_slice(&body).context("the answer is not of the documented form");
    }
    Err(match serde_json::from_slice(&body) {
        Ok(ProblemDocument { detail, code, .. }) => anyhow!("{status} {code}: {detail}"),
        Err(_) => anyhow!("{status}"),
    })
}
