//! Output of a command: standard output and standard error, whose reader (such as `head`) may close
//! its end without an error; and its failure, as a few lines for a person or as JSON.

use std::fmt::{Display, Write as _};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::Path;
use std::process::ExitCode;

use pais::config::ConfigError;
use pais::problem::Problem;
use pais::storage::directory_of;
use pais_core::rejection::Place;
use rustix::fs::{Access, access};
use serde::Serialize;
use serde_json::json;

/// How errors and summaries are written to standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A few lines for a person.
    Lines,
    /// One JSON document for a program; a line for what is wrong with arguments, files and settings.
    Json,
    /// One JSON document, whatever is wrong.
    AlwaysJson,
}

impl Style {
    /// Always JSON if it is requested, JSON if standard error is not a terminal.
    pub(crate) fn of_errors(json: bool) -> Self {
        if json {
            Self::AlwaysJson
        } else if io::stderr().is_terminal() {
            Self::Lines
        } else {
            Self::Json
        }
    }
}

/// Writes to standard output. A closed pipe is not an error.
///
/// # Errors
/// If standard output cannot be written for another reason.
pub(crate) fn print(
    write: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>,
) -> Result<(), Failure> {
    try_print(write).map_err(|error| Failure::file(Path::new("standard output"), error))
}

/// Writes a line to standard output, as [`print`].
///
/// # Errors
/// Those of the operating system, but for a closed pipe.
pub(crate) fn print_line(line: impl Display) -> io::Result<()> {
    try_print(|out| writeln!(out, "{line}"))
}

fn try_print(
    write: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = write(&mut out).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            // What is left in the buffer has no reader; dropping the writer would try to write it.
            let _ = out.into_parts();
            Ok(())
        }
        written => written,
    }
}

/// Writes a document to standard output as indented JSON, as [`print`].
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    print(|out| write_pretty(out, document))
}

/// Writes a line to standard error. There is no place to report that this fails.
pub(crate) fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes a document to standard error as indented JSON.
pub(crate) fn note_json(document: &impl Serialize) {
    // Serializing cannot fail: the documents have no maps whose keys are not strings.
    if let Ok(text) = serde_json::to_string_pretty(document) {
        note(text);
    }
}

/// Refuses the path of a file that could not be written: before the work, not after it.
///
/// # Errors
/// Where the directory is not there, the path is one, or the file may not be written.
pub(crate) fn refuse_unwritable(path: &Path) -> Result<(), Failure> {
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    if directory.is_some_and(|directory| !directory.is_dir()) {
        return Err(Failure::file(path, "its directory does not exist"));
    }
    if path.is_dir() {
        return Err(Failure::file(path, "it is a directory"));
    }
    refuse_read_only(if path.exists() {
        path
    } else {
        directory_of(path)
    })
}

/// Refuses a file that may not be written, or a directory in which no file may be made.
///
/// # Errors
/// For one, and for a directory that is none.
pub(crate) fn refuse_read_only(path: &Path) -> Result<(), Failure> {
    access(path, Access::WRITE_OK).map_err(|error| Failure::file(path, std::io::Error::from(error)))
}

/// A number of things, such as `1 violation`.
pub(super) fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// Writes a document as indented JSON.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write_pretty(mut out: impl Write, document: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, document)?;
    writeln!(out)
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The problem is printed to standard error. The exit status is 1, or 2 where what is to be checked
    /// cannot be read.
    Problem {
        problem: Box<Problem>,
        is_unreadable: bool,
    },
    /// The arguments are invalid, or a file cannot be read or written. The exit status is 2.
    Usage(String),
    /// A command on the service or its database failed. The exit status is 2 for invalid settings, else 1.
    Service(anyhow::Error),
}

impl Failure {
    /// A file or directory that cannot be used, and why.
    pub(crate) fn file(path: &Path, why: impl Display) -> Self {
        Self::Usage(format!("{}: {why}", path.display()))
    }

    /// The failure of a command that only checks: there a problem means that the check could not be
    /// made.
    pub(crate) fn unreadable(mut self) -> Self {
        if let Self::Problem { is_unreadable, .. } = &mut self {
            *is_unreadable = true;
        }
        self
    }

    /// Prints the failure to standard error and returns its exit status.
    pub(crate) fn report(&self, style: Style) -> ExitCode {
        match self {
            Self::Problem {
                problem,
                is_unreadable,
            } => {
                print_problem(problem, style);
                ExitCode::from(1 + u8::from(*is_unreadable))
            }
            Self::Usage(detail) => {
                print_detail(detail, style);
                ExitCode::from(2)
            }
            Self::Service(error) => {
                match error.downcast_ref::<Problem>() {
                    Some(problem) => print_problem(problem, style),
                    None => print_detail(&format!("{error:#}"), style),
                }
                ExitCode::from(if error.is::<ConfigError>() { 2 } else { 1 })
            }
        }
    }
}

/// Prints a problem to standard error.
fn print_problem(problem: &Problem, style: Style) {
    match style {
        Style::Json | Style::AlwaysJson => note_json(&problem.document()),
        Style::Lines => note(problem_lines(problem)),
    }
}

/// Prints what is wrong with arguments, a file or the settings to standard error.
fn print_detail(detail: &str, style: Style) {
    match style {
        // RFC 9457, Section 4.2.1: a problem that needs no type of its own.
        Style::AlwaysJson => note_json(&json!({
            "type": "about:blank", "title": "The command failed", "detail": detail,
        })),
        Style::Lines | Style::Json => note(format_args!("pais: {detail}")),
    }
}

/// An error as a problem, with the name of the file in front of its detail.
pub(crate) fn in_file(file: impl Display, error: impl Into<Problem>) -> Problem {
    let problem = error.into();
    Problem {
        detail: format!("{file}: {}", problem.detail),
        ..problem
    }
}

impl<E: Into<Problem>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Problem {
            problem: Box::new(error.into()),
            is_unreadable: false,
        }
    }
}

/// Maximum number of faults that are printed.
const FAULTS: usize = 10;

/// The lines of a problem: what happened, where, and what would fix it.
fn problem_lines(problem: &Problem) -> String {
    let mut text = format!("pais: {}", problem.detail);
    for fault in problem.errors.iter().take(FAULTS) {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {}", place(&fault.place));
        if !problem.detail.ends_with(&fault.detail) {
            let _ = write!(text, ": {}", fault.detail);
        }
        if let Some(fix) = &fault.suggested_fix {
            let _ = write!(text, "\n    fix: {fix}");
        }
    }
    if problem.errors.len() > FAULTS {
        let _ = write!(
            text,
            "\n  and {} more places",
            problem.errors.len() - FAULTS
        );
    }
    if !problem.errors_by_column.is_empty() {
        let columns = problem.errors_by_column.iter();
        let columns: Vec<String> = columns
            .map(|(column, faults)| format!("{column} {faults}"))
            .collect();
        let _ = write!(text, "\n  faults by column: {}", columns.join(", "));
    }
    text
}

fn place(place: &Place) -> String {
    match place {
        Place::Pointer(pointer) if pointer.is_empty() => "the whole document".to_owned(),
        Place::Pointer(pointer) => format!("at {pointer}"),
        Place::Record { line } => format!("line {line}"),
        Place::Cell { line, column } => format!("line {line}, column `{column}`"),
        Place::Column { column } => format!("column `{column}`"),
        Place::Whole => "the whole file".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use pais::problem::{Code, Problem};
    use pais_core::rejection::Fault;

    use super::{FAULTS, problem_lines};

    fn fault(line: u64, detail: &str) -> Fault {
        Fault::cell(line, "age", detail)
    }

    #[test]
    fn each_fault_has_its_place_and_its_fix() {
        let mut problem = Problem::with(
            Code::InvalidCells,
            "r.csv: 2 cells do not fit",
            vec![
                fault(3, "no number"),
                fault(9, "no number").fix("declare `thousands`"),
            ],
        );
        problem.errors_by_column.insert("age".to_owned(), 2);
        assert_eq!(
            problem_lines(&problem),
            "pais: r.csv: 2 cells do not fit\n  line 3, column `age`: no number\n  \
             line 9, column `age`: no number\n    fix: declare `thousands`\n  \
             faults by column: age 2"
        );
    }

    #[test]
    fn a_sentence_is_not_printed_twice() {
        let problem = Problem::at(Code::InvalidJob, "/privacy/k", "raise `k`");
        assert_eq!(problem_lines(&problem), "pais: raise `k`\n  at /privacy/k");
    }

    #[test]
    fn a_long_list_is_cut() {
        let faults = (0..FAULTS as u64 + 5).map(|line| fault(line, "no number"));
        let problem = Problem::with(Code::InvalidCells, "cells do not fit", faults.collect());
        let text = problem_lines(&problem);
        assert!(text.ends_with("\n  and 5 more places"), "{text}");
        assert_eq!(text.lines().count(), FAULTS + 2);
    }
}
