//! The table of combinations that `pais anonymize` writes for a job with lists of parameters.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use pais::jobs::records::{SweepItem, SweepStatus};
use pais_anonymize::SweepOutcome;
use serde::Serialize;
use serde_json::Value;

use super::documents;
use super::failure::Failure;
use super::streams;

/// Where the table of combinations is written.
pub(crate) enum SweepFile {
    /// CSV on standard output.
    StandardOutput,
    /// A CSV file.
    Csv(PathBuf),
    /// A JSON file in the form of `GET /v1/jobs/{id}/sweep`.
    Json(PathBuf),
}

/// The items of a sweep.
#[derive(Serialize)]
struct Items {
    items: Vec<SweepItem>,
}

impl SweepFile {
    /// The file at a path, by its file extension; standard output without a path.
    ///
    /// # Errors
    /// For another file extension than `.csv` and `.json`.
    pub(crate) fn of(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(Self::StandardOutput);
        };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Ok(Self::Csv(path.to_owned())),
            Some("json") => Ok(Self::Json(path.to_owned())),
            _ => Err(Failure::Usage(format!(
                "{}: a job with lists of parameters writes a table of its combinations; expected \
                 .csv or .json",
                path.display()
            ))),
        }
    }

    /// Writes one row for each combination.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&self, outcomes: &[SweepOutcome]) -> Result<(), Failure> {
        let items: Vec<SweepItem> = outcomes.iter().map(SweepItem::from).collect();
        let (path, written) = match self {
            Self::StandardOutput => return streams::print(|out| write_csv(&items, out)),
            Self::Csv(path) => {
                let file = File::create(path).map(BufWriter::new);
                (&**path, file.and_then(|file| write_csv(&items, file)))
            }
            Self::Json(path) => return documents::write(path, &Items { items }),
        };
        written.map_err(|error| Failure::file(path, &error))
    }
}

fn write_csv(items: &[SweepItem], out: impl Write) -> io::Result<()> {
    let mut out = csv::Writer::from_writer(out);
    out.write_record([
        "l",
        "k",
        "c",
        "recoding",
        "objective",
        "status",
        "steps",
        "groups",
        "smallest_group",
        "dr",
        "ncp",
        "suppressed_rows",
        "seconds",
        "error",
    ])?;
    for item in items {
        let status = match item.status {
            SweepStatus::Succeeded => "succeeded",
            SweepStatus::Failed => "failed",
        };
        let error = item.error.as_ref().map(|error| error.detail.clone());
        out.write_record([
            text(item.l.as_ref()),
            text(item.k),
            text(item.c),
            word(item.recoding)?,
            word(item.objective)?,
            status.to_owned(),
            text(item.steps),
            text(item.groups),
            text(item.smallest_group),
            text(item.dr),
            text(item.ncp),
            text(item.suppressed_rows),
            format!("{:.3}", item.seconds),
            error.unwrap_or_default(),
        ])?;
    }
    out.flush()
}

/// A word as it is in the job, or an empty cell.
fn word<T: Serialize>(word: Option<T>) -> io::Result<String> {
    let word = word.map(|word| serde_json::to_value(&word)).transpose()?;
    let text = word.as_ref().and_then(Value::as_str);
    Ok(text.unwrap_or_default().to_owned())
}

/// A figure, or an empty cell.
fn text<T: ToString>(figure: Option<T>) -> String {
    figure.map(|figure| figure.to_string()).unwrap_or_default()
}
