//! `pais verify`: checks a finished table, from any source, against a privacy model.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use pais::problem::{Code, Problem};
use pais_core::cancellation::Cancellation;
use pais_core::codebook::ReleaseTerms;
use pais_core::definition::{Job, JobDefinition, OneOrMany, PrivacyDefinition, Recoding};
use pais_core::reimport;
use pais_core::rejection::Fault;
use pais_core::schema::Schema;
use pais_core::table::{ReadError, ReleasedTable, UnchangedRisk};
use pais_core::warning::Warning;
use pais_io::read::TextParameters;
use pais_verify::{
    FoundRecoding, PrivacyFinding, RawFinding, ReleaseError, ReleaseTables, ReleaseVerification,
    StreamedVerification, verify_release,
};
use serde::Serialize;

use super::definitions::{self, DeclaredDataset, LIMITS, OptionalSchemaArgs};
use super::directory::{Directory, read_anatomized};
use super::finished_table::FinishedTable;
use super::output::{self, Failure, in_file};
use super::sources::{DocumentSource, load_release};
use super::table_file::{InputFormat, TableFile};
use super::verify_text;

/// Arguments of `pais verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    schema: OptionalSchemaArgs,
    /// The job: the body of `POST /v1/jobs`, or the answer of `GET /v1/jobs/{id}`; a file, or the
    /// address of the job in a service.
    #[arg(long, value_name = "J.json")]
    job: Option<DocumentSource>,
    /// Replaces --schema and --job, for recipients: the response of `GET /v1/releases/{id}`; a
    /// file, or the address of the release in a service.
    #[arg(long = "release", value_name = "R.json")]
    document: Option<DocumentSource>,
    /// The finished table, by its ending: .csv, .tsv, .ndjson (also .gz, .zst) or .parquet; a
    /// directory with its parts, data-00000.parquet and so on; or that of an anatomized release.
    #[arg(value_name = "RELEASE")]
    release: PathBuf,
    /// The raw table; with it, truthfulness and lost records are also checked. It is required for an anatomized release
    /// and to check K over the persons of a subject column. `-` for standard
    /// input.
    #[arg(long, value_name = "INPUT")]
    raw: Option<PathBuf>,
    #[command(flatten)]
    format: InputFormat,
    /// Prints the result as one JSON document.
    #[arg(long)]
    pub(super) json: bool,
}

impl Verify {
    /// Checks, and prints what was found to standard output; exit status 1 where something does
    /// not hold, else 0.
    ///
    /// # Errors
    /// For what cannot be read.
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        self.check().map_err(Failure::unreadable)?
    }

    /// Inside, the failure of a table that can be read, and is another one than its document describes.
    fn check(&self) -> Result<Result<ExitCode, Failure>, Failure> {
        let is_anatomized = self.release.is_dir() && !FinishedTable::is_in_parts(&self.release);
        if is_anatomized && self.raw.is_none() {
            let detail =
                "an anatomized release is checked against the raw table; give it with --raw";
            return Err(Failure::file(&self.release, detail));
        }
        if self.raw.is_none() && !self.format.is_empty() {
            return Err(Failure::Usage(
                "--format, --delimiter, --decimal, --thousands and --encoding are for the raw \
                 table; give it with --raw, or leave them out"
                    .to_owned(),
            ));
        }
        let Definitions {
            dataset: DeclaredDataset { schema, text },
            job,
            release,
        } = self.definitions()?;
        let mut described = DescribedTable::new(release);
        let asked = job.parse().map_err(|error| self.failure(error.into()))?;
        let raw = self.raw.as_deref();
        let raw = raw.map(|path| self.format.table(path, &text)).transpose()?;
        let found = if is_anatomized {
            let release = read_anatomized(&schema, &Directory::of(&self.release)?)?;
            match self.in_memory(&schema, &asked, release, raw.as_ref())? {
                Err(ReleaseError::NoAnatomy { row, detail }) => {
                    return Ok(Err(self.no_anatomy(row, &detail).into()));
                }
                found => found.map_err(|error| self.failure(error))?,
            }
        } else {
            let table = FinishedTable::of(&self.release)?;
            match self.streamed(&schema, &asked, &table, raw.as_ref(), &mut described)? {
                Some(found) => found,
                None => {
                    let release = table.read(&schema)?;
                    described.add(&release, table.first_line());
                    let release = ReleaseTables::Generalized(release);
                    let found = self.in_memory(&schema, &asked, release, raw.as_ref())?;
                    found.map_err(|error| self.failure(error))?
                }
            }
        };
        if let Some(problem) = described.difference(&found).filter(|_| !found.fails()) {
            return Ok(Err(in_file(self.release.display(), problem).into()));
        }
        if self.json {
            print_json(&found, &job)?
        } else {
            verify_text::print(&found, job.privacy.model, &schema)?;
        }
        Ok(Ok(ExitCode::from(u8::from(found.fails()))))
    }

    /// Verifies the release while its rows and the raw rows are read. `None` if all rows are needed
    /// at once: under other models and forms, and where the released rows are not the image of all raw
    /// rows, to say how many are not.
    fn streamed(
        &self,
        schema: &Schema,
        asked: &Job,
        table: &FinishedTable,
        raw: Option<&TableFile>,
        described: &mut DescribedTable,
    ) -> Result<Option<ReleaseVerification>, Failure> {
        let none = Cancellation::new();
        let failure = |error| self.failure(error);
        // The memory is the user's own.
        let verification = StreamedVerification::new(schema, asked, u64::MAX);
        let Some(mut verification) = self.unless_in_memory(verification)? else {
            return Ok(None);
        };
        if raw.is_some_and(|raw| raw.is_read_once() || verification.can_compare().is_err()) {
            return Ok(None);
        }
        table.read_chunks(schema, |rows, first_line| {
            described.add(rows, first_line);
            verification.add(rows, &none).map_err(failure)
        })?;
        let Some(raw) = raw else {
            return verification.finish(&none).map(Some).map_err(failure);
        };
        let Some(mut comparison) = self.unless_in_memory(verification.compare())? else {
            return Ok(None);
        };
        raw.read_chunks(schema, |rows| comparison.add(rows, &none).map_err(failure))?;
        comparison.finish(&none).map_err(failure)
    }

    /// `None` for what is verified with all rows in memory.
    fn unless_in_memory<T>(&self, found: Result<T, ReleaseError>) -> Result<Option<T>, Failure> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(ReleaseError::NeedsAllRows(_)) => Ok(None),
            Err(error) => Err(self.failure(error)),
        }
    }

    fn in_memory(
        &self,
        schema: &Schema,
        asked: &Job,
        release: ReleaseTables,
        raw: Option<&TableFile>,
    ) -> Result<Result<ReleaseVerification, ReleaseError>, Failure> {
        // The labels of hierarchies that are made from raw values are known to the verifier, which
        // draws them for this table.
        let raw = raw.map(|raw| raw.read(schema)).transpose()?;
        let none = Cancellation::new();
        Ok(verify_release(schema, asked, &release, raw, &none))
    }

    /// The problem of tables that can be read and are no anatomized release.
    fn no_anatomy(&self, row: usize, detail: &str) -> Problem {
        // The header is the first line.
        let fault = Fault::record(row as u64 + 2, detail);
        let problem = Problem::with(Code::InvalidValue, detail, vec![fault]);
        in_file(self.release.display(), problem)
    }

    fn definitions(&self) -> Result<Definitions, Failure> {
        match (self.schema.given(), &self.job, &self.document) {
            (Some(schema), Some(source), None) => {
                let DeclaredDataset { schema, text } = schema.load()?;
                let job = definitions::job_of_release(source)?;
                let schema = definitions::schema_of_job(schema, &job, source)?;
                Ok(Definitions {
                    dataset: DeclaredDataset { schema, text },
                    job,
                    release: None,
                })
            }
            (None, None, Some(source)) if self.raw.is_none() => {
                let release = load_release(source)?;
                let schema = release.codebook.schema(LIMITS);
                let schema = schema.map_err(|error| in_file(source, error))?;
                let mut job = release.terms.job();
                // A release with one cut names it.
                let is_local = release.terms.cut.is_none();
                job.recoding = is_local.then_some(OneOrMany::One(Recoding::Local));
                let text = TextParameters::default();
                Ok(Definitions {
                    dataset: DeclaredDataset { schema, text },
                    job,
                    release: Some(release.terms),
                })
            }
            (None, None, Some(_)) => Err(Failure::Usage(
                "the document of a release has no value below its cut, so raw rows are compared by \
                 --schema and --job; leave --release or --raw out"
                    .to_owned(),
            )),
            _ => Err(Failure::Usage(
                "give either --schema and --job, or --release".to_owned(),
            )),
        }
    }

    fn failure(&self, error: ReleaseError) -> Failure {
        match error {
            ReleaseError::Job(error) => match self.job.as_ref().or(self.document.as_ref()) {
                Some(source) => in_file(source, error).into(),
                None => error.into(),
            },
            error => {
                let problem = Problem::new(Code::InvalidHeader, error.to_string());
                in_file(self.release.display(), problem).into()
            }
        }
    }
}

/// What a release is verified by.
struct Definitions {
    /// With the roles of the job.
    dataset: DeclaredDataset,
    job: JobDefinition,
    /// What the document of the release says of it, where that is all there is.
    release: Option<ReleaseTerms>,
}

/// What the document of a release says of its table, beside the table that is read.
#[derive(Default)]
struct DescribedTable {
    rows: Option<u64>,
    cut: BTreeMap<String, Vec<String>>,
    /// The first label that is not in the cut.
    other_label: Option<ReadError>,
}

impl DescribedTable {
    fn new(release: Option<ReleaseTerms>) -> Self {
        release.map_or_else(Self::default, |release| Self {
            rows: Some(release.rows),
            cut: release.cut.unwrap_or_default(),
            other_label: None,
        })
    }

    /// Looks at rows of the table, of which the first is on line `first_line`.
    fn add(&mut self, rows: &ReleasedTable, first_line: u64) {
        if self.other_label.is_none() {
            self.other_label = reimport::within_cut(rows, &self.cut, first_line).err();
        }
    }

    /// How the table that was read differs.
    fn difference(self, found: &ReleaseVerification) -> Option<Problem> {
        if let Some(error) = self.other_label {
            return Some(error.into());
        }
        let described = self.rows?;
        let rows = found.privacy.as_ref()?.rows();
        let detail = format!(
            "the table is another one than that of the release: it has {rows} rows instead of {described}"
        );
        (rows != described).then(|| Problem::new(Code::InvalidValue, detail))
    }
}

/// What was found, as JSON.
#[derive(Serialize)]
struct FindingDocument<'a> {
    /// Whether everything that was checked holds, and nothing is open.
    holds: bool,
    /// Whether something does not hold; the exit status is then 1.
    fails: bool,
    /// What could not be decided.
    undecided: Option<String>,
    /// The model, as the job asks for it.
    privacy: &'a PrivacyDefinition,
    /// Persons of the released rows, where these are counted.
    subjects: Option<u64>,
    /// Whether they are the same for each possible assignment of raw rows.
    has_known_subjects: Option<bool>,
    /// The figures of the model; null where they could not be found.
    verification: Option<&'a PrivacyFinding>,
    /// The comparison with the raw table; null without it.
    raw: Option<RawDocument>,
    /// What the columns that are released unchanged say of the rows, or of the persons if these are in `subjects`.
    unchanged: &'a UnchangedRisk,
    /// What is worth knowing.
    warnings: &'a [Warning],
}

#[derive(Serialize)]
struct RawDocument {
    holds: bool,
    rows: u64,
    made_up: u64,
    lost: u64,
    may_be_lost: u64,
    /// `global`, `local` or `anatomized`.
    recoding: &'static str,
    /// Whether the sensitive tables count the records of each group.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts_match: Option<bool>,
}

/// Prints what was found on standard output.
///
/// # Errors
/// If standard output cannot be written.
fn print_json(found: &ReleaseVerification, job: &JobDefinition) -> Result<(), Failure> {
    let document = FindingDocument {
        holds: found.holds(),
        fails: found.fails(),
        undecided: found.undecided.map(|undecided| undecided.to_string()),
        privacy: &job.privacy,
        subjects: found.subjects.map(|it| it.count),
        has_known_subjects: found.subjects.map(|it| it.are_known),
        verification: found.privacy.as_ref(),
        raw: found.raw.as_ref().map(RawDocument::from),
        unchanged: &found.unchanged,
        warnings: &found.warnings,
    };
    output::print_json(&document)
}

impl From<&RawFinding> for RawDocument {
    fn from(found: &RawFinding) -> Self {
        let (recoding, counts_match) = match found.recoding {
            FoundRecoding::Global => ("global", None),
            FoundRecoding::Local => ("local", None),
            FoundRecoding::Anatomized { counts_match } => ("anatomized", Some(counts_match)),
        };
        Self {
            holds: found.holds(),
            rows: found.rows,
            made_up: found.made_up,
            lost: found.lost,
            may_be_lost: found.may_be_lost,
            recoding,
            counts_match,
        }
    }
}
