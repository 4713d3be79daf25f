//! What a command writes: standard output and standard error, of which a reader such as `head` may close
//! its end without an error, and JSON files.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::Path;

use serde::Serialize;

use super::failure::Failure;

/// How errors and summaries are written to standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A few lines for a person.
    Lines,
    /// One JSON document for a program.
    Json,
}

impl Style {
    /// JSON if it is asked for, or if standard error is not a terminal.
    pub(crate) fn of_errors(json: bool) -> Self {
        if json || !io::stderr().is_terminal() {
            Self::Json
        } else {
            Self::Lines
        }
    }
}

/// Writes to standard output. A closed pipe is no error: its reader has what it wants.
///
/// # Errors
/// If standard output cannot be written for another reason.
pub(crate) fn print(
    write: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>,
) -> Result<(), Failure> {
    try_print(write).map_err(|error| Failure::file(Path::new("standard output"), &error))
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

/// Writes a line to standard error. There is no place to report that this fails.
pub(crate) fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes a document to standard error as indented JSON.
pub(crate) fn note_json(document: &impl serde::Serialize) {
    // Serializing cannot fail: the documents have no maps whose keys are not strings.
    if let Ok(text) = serde_json::to_string_pretty(document) {
        note(text);
    }
}

/// Writes a document to a file as indented JSON.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::file(path, &error);
    let mut out = BufWriter::new(File::create(path).map_err(failed)?);
    serde_json::to_writer_pretty(&mut out, value).map_err(|error| failed(error.into()))?;
    out.write_all(b"\n")
        .and_then(|()| out.flush())
        .map_err(failed)
}
