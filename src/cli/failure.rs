//! How a command ends when it does not end well.

use std::path::Path;
use std::process::ExitCode;

use pais::problem::Problem;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The run failed: its problem document goes to standard error, exit status 1.
    Problem(Box<Problem>),
    /// What was to be checked cannot be read: its problem document goes to standard error, exit
    /// status 2.
    Unreadable(Box<Problem>),
    /// The arguments are off or a file cannot be read or written: exit status 2.
    Usage(String),
}

impl Failure {
    /// A file that cannot be read or written.
    pub fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::Usage(format!("{}: {error}", path.display()))
    }

    /// The same failure of a command that only checks, where a problem says that it could not.
    pub fn unreadable(self) -> Self {
        match self {
            Self::Problem(problem) => Self::Unreadable(problem),
            other => other,
        }
    }

    /// Prints the failure to standard error; its exit status.
    pub fn report(&self) -> ExitCode {
        match self {
            Self::Problem(problem) => {
                print(problem);
                ExitCode::from(1)
            }
            Self::Unreadable(problem) => {
                print(problem);
                ExitCode::from(2)
            }
            Self::Usage(detail) => {
                eprintln!("pais: {detail}");
                ExitCode::from(2)
            }
        }
    }
}

fn print(problem: &Problem) {
    match serde_json::to_string_pretty(&problem.document()) {
        Ok(document) => eprintln!("{document}"),
        Err(_) => eprintln!("pais: {problem}"),
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}
