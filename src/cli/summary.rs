//! What `pais anonymize` writes about a finished run: the summary on standard error, and the table of
//! combinations for a job with lists of parameters.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pais::engine::records::SweepItem;
use pais_anonymize::{SweepOutcome, VerifiedRelease};
use pais_core::table::{UnchangedRisk, Verdict};
use pais_core::warning::{Warning, by_code};
use serde::Serialize;
use serde_json::{Value, json};

use super::new_file::NewFile;
use super::output::{self, Failure, Style};
use super::verify_text::percent;

/// The result of a run in short.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    /// Rows released.
    rows: u64,
    /// Rows left out.
    suppressed_rows: u64,
    /// Persons released, where the table has a subject column.
    #[serde(skip_serializing_if = "Option::is_none")]
    subjects: Option<u64>,
    /// Groups of equal quasi-identifiers; records of sensitive tables share a group.
    groups: u64,
    /// The fewest rows, or persons, of a group, which are equal in all quasi-identifiers.
    smallest_group: u64,
    /// The fewest rows, or persons, that an adversary of the model is left with: what K bounds.
    smallest_known_group: u64,
    /// Mean normalized certainty penalty, from 0 to 1.
    ncp: f64,
    /// Discernibility ratio, from 0 to 1.
    dr: f64,
    /// The release at a glance.
    verdict: Verdict,
    /// What the columns that are released unchanged say of the rows.
    unchanged: UnchangedRisk,
    /// What the holder should know.
    warnings: Vec<Warning>,
}

impl Summary {
    /// Of a release, with the warnings about its job, one for each code.
    pub(crate) fn new(
        release: &VerifiedRelease,
        of_job: impl IntoIterator<Item = Warning>,
    ) -> Self {
        let of_release = release.warnings.iter().cloned();
        let warnings = by_code(of_job.into_iter().chain(of_release));
        let report = release.report();
        Self {
            rows: release.rows,
            suppressed_rows: release.suppressed_rows,
            subjects: report.subjects,
            groups: report.utility.groups.groups,
            smallest_group: report.utility.groups.smallest_group,
            smallest_known_group: report.utility.smallest_known_group,
            ncp: report.utility.ncp,
            dr: report.utility.groups.dr,
            verdict: report.verdict,
            unchanged: report.risk.unchanged.clone(),
            warnings,
        }
    }

    /// Writes it to standard error.
    pub(crate) fn write(&self, style: Style) {
        match style {
            Style::Json | Style::AlwaysJson => output::note_json(self),
            Style::Lines => output::note(self.lines().trim_end()),
        }
    }

    fn lines(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let mut line = |name: &str, value: &dyn std::fmt::Display| {
            let _ = writeln!(text, "{name:<20} {value}");
        };
        let rows = match self.suppressed_rows {
            0 => self.rows.to_string(),
            suppressed => format!("{}, {suppressed} suppressed", self.rows),
        };
        line("rows", &rows);
        if let Some(subjects) = self.subjects {
            line("persons", &subjects);
        }
        line("groups", &self.groups);
        line("smallest group", &self.smallest_group);
        line("smallest known group", &self.smallest_known_group);
        for (name, share) in [("NCP", self.ncp), ("DR", self.dr)] {
            line(name, &format_args!("{share:.4}"));
        }
        line("verdict", &self.verdict_words());
        for warning in &self.warnings {
            line("warning", &warning.detail);
        }
        text
    }
}

impl Summary {
    /// The verdict, with what is released unchanged.
    fn verdict_words(&self) -> String {
        let unchanged = &self.unchanged;
        let units = if self.subjects.is_some() {
            "persons"
        } else {
            "rows"
        };
        let holds = match self.verdict {
            Verdict::Holds => "holds",
            Verdict::HoldsButSinglesOut => {
                &format!("holds, but what is released unchanged singles out {units}")
            }
            Verdict::DoesNotHold => "does not hold",
        };
        if unchanged.columns.is_empty() {
            return holds.to_owned();
        }
        let all = percent(unchanged.singled_out_share);
        let telling = &unchanged.most_telling;
        let mut words = format!(
            "{holds}: {all} of the {units} by {} unchanged columns",
            unchanged.columns.len()
        );
        if telling.columns.len() < unchanged.columns.len() {
            let by_telling = percent(telling.singled_out_share);
            words += &format!(", {by_telling} by {}", telling.columns.join(", "));
        }
        words
    }
}

/// Writes how many combinations of a sweep have a result to standard error.
pub(crate) fn write_sweep(combinations: usize, succeeded: usize, style: Style) {
    match style {
        Style::Json | Style::AlwaysJson => output::note_json(&json!({
            "combinations": combinations,
            "succeeded": succeeded,
        })),
        Style::Lines => output::note(format_args!(
            "{combinations} combinations, {succeeded} with a result"
        )),
    }
}

/// Where the table of combinations is written.
pub(crate) enum SweepFile {
    /// CSV on standard output.
    StandardOutput,
    /// A CSV file.
    Csv(PathBuf),
    /// A JSON file in the form of `GET /v1/jobs/{id}/sweep`.
    Json(PathBuf),
}

impl SweepFile {
    /// The file at a path, by its file extension; standard output without a path.
    ///
    /// # Errors
    /// For another file extension than `.csv` and `.json`, and for a path that cannot be written.
    pub(crate) fn of(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(Self::StandardOutput);
        };
        output::refuse_unwritable(path)?;
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Ok(Self::Csv(path.to_owned())),
            Some("json") => Ok(Self::Json(path.to_owned())),
            _ => Err(Failure::file(
                path,
                "a job with lists of parameters writes a table of its combinations; expected .csv or \
                 .json",
            )),
        }
    }

    /// Writes one row for each combination.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&self, outcomes: &[SweepOutcome]) -> Result<(), Failure> {
        let items: Vec<SweepItem> = outcomes.iter().map(SweepItem::from).collect();
        let file = match self {
            Self::StandardOutput => return output::print(|out| write_csv(&items, out)),
            Self::Csv(path) => NewFile::write(path, |out| write_csv(&items, out)),
            Self::Json(path) => NewFile::json(path, &json!({ "items": items })),
        };
        file?.complete()
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
        "smallest_known_group",
        "dr",
        "ncp",
        "suppressed_rows",
        "seconds",
        "error",
    ])?;
    for item in items {
        let error = item.error.as_ref().map(|error| error.detail.clone());
        out.write_record([
            text(item.l.as_ref()),
            text(item.k),
            text(item.c),
            word(item.recoding)?,
            word(item.objective)?,
            word(Some(item.status))?,
            text(item.steps),
            text(item.groups),
            text(item.smallest_group),
            text(item.smallest_known_group),
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
