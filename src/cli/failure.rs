//! How a failed command reports its error and sets its exit status.

use std::path::Path;
use std::process::ExitCode;

use pais::problem::Problem;

use super::problem_text;
use super::streams::{Style, note, note_json};

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The run failed. The problem is printed to standard error; the exit status is 1.
    Problem(Box<Problem>),
    /// The table to check cannot be read. The problem is printed to standard error; the exit
    /// status is 2.
    Unreadable(Box<Problem>),
    /// The arguments are invalid, or a file cannot be read or written. The exit status is 2.
    Usage(String),
}

impl Failure {
    /// A file that cannot be read or written.
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::Usage(format!("{}: {error}", path.display()))
    }

    /// Turns a [`Self::Problem`] into [`Self::Unreadable`], for a command that only checks: there a
    /// problem means that the check could not be made.
    pub(crate) fn unreadable(self) -> Self {
        match self {
            Self::Problem(problem) => Self::Unreadable(problem),
            other => other,
        }
    }

    /// Prints the failure to standard error and returns its exit status.
    pub(crate) fn report(&self, style: Style) -> ExitCode {
        match self {
            Self::Problem(problem) => {
                print(problem, style);
                ExitCode::from(1)
            }
            Self::Unreadable(problem) => {
                print(problem, style);
                ExitCode::from(2)
            }
            Self::Usage(detail) => {
                note(format_args!("pais: {detail}"));
                ExitCode::from(2)
            }
        }
    }
}

/// Prints a problem to standard error.
pub(crate) fn print(problem: &Problem, style: Style) {
    match style {
        Style::Json => note_json(&problem.document()),
        Style::Lines => note(problem_text::lines(problem)),
    }
}

impl<E: Into<Problem>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Problem(Box::new(error.into()))
    }
}
