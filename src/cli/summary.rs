//! What `pais anonymize` says about a finished run, on standard error.

use std::fmt::Write;

use pais_anonymize::VerifiedRelease;
use pais_core::warning::Warning;
use serde::Serialize;

use super::streams::{self, Style};

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
    groups: Option<u64>,
    /// The fewest rows, or persons, that an adversary of the model is left with.
    smallest_group: Option<u64>,
    /// Mean normalized certainty penalty, from 0 to 1.
    ncp: Option<f64>,
    /// Discernibility ratio, from 0 to 1.
    dr: Option<f64>,
    /// What the holder should know.
    warnings: Vec<Warning>,
}

impl Summary {
    /// Of a release, with the warnings about its job. A warning is listed once.
    pub(crate) fn new(
        release: &VerifiedRelease,
        of_job: impl IntoIterator<Item = Warning>,
    ) -> Self {
        let of_release = release.warnings.iter().cloned();
        let mut warnings: Vec<Warning> = Vec::new();
        for warning in of_job.into_iter().chain(of_release) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        let utility = &release.report["utility"];
        Self {
            rows: release.rows,
            suppressed_rows: release.suppressed_rows,
            subjects: release.report["subjects"].as_u64(),
            groups: utility["groups"].as_u64(),
            smallest_group: release.verification["smallest_group"]
                .as_u64()
                .or_else(|| utility["smallest_group"].as_u64()),
            ncp: utility["ncp"].as_f64(),
            dr: utility["dr"].as_f64(),
            warnings,
        }
    }

    /// Writes it to standard error.
    pub(crate) fn write(&self, style: Style) {
        match style {
            Style::Json => streams::note_json(self),
            Style::Lines => streams::note(self.lines().trim_end()),
        }
    }

    fn lines(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let mut line = |name: &str, value: &dyn std::fmt::Display| {
            let _ = writeln!(text, "{name:<15} {value}");
        };
        let rows = match self.suppressed_rows {
            0 => self.rows.to_string(),
            suppressed => format!("{}, {suppressed} suppressed", self.rows),
        };
        line("rows", &rows);
        if let Some(subjects) = self.subjects {
            line("persons", &subjects);
        }
        if let Some(groups) = self.groups {
            line("groups", &groups);
        }
        if let Some(smallest) = self.smallest_group {
            line("smallest group", &smallest);
        }
        for (name, share) in [("NCP", self.ncp), ("DR", self.dr)] {
            if let Some(share) = share {
                line(name, &format_args!("{share:.4}"));
            }
        }
        for warning in &self.warnings {
            line("warning", &warning.detail);
        }
        text
    }
}

/// Writes how many combinations of a sweep have a result to standard error.
pub(crate) fn write_sweep(combinations: usize, succeeded: usize, style: Style) {
    match style {
        Style::Json => streams::note_json(&serde_json::json!({
            "combinations": combinations,
            "succeeded": succeeded,
        })),
        Style::Lines => streams::note(format_args!(
            "{combinations} combinations, {succeeded} with a result"
        )),
    }
}
