//! Hierarchies as rows, one per leaf: `leaf;level1;...;top`, the file format of ARX.
//!
//! Fields are separated by `;`, or by `,` if the first row has no `;`, and may be quoted. A label repeated from
//! one level to the next is one node: such files write leaves at different depths this way. Labels are trimmed
//! and brought to Unicode NFC first.
//!
//! Rows may have different lengths. The last label of each is the top, so a shorter row is a leaf
//! nearer to it, as if the row began with its leaf again and again. Rows of different lengths that do
//! not end with the same label get the top `*`. Empty fields at the end of a row, as spreadsheets write them, are
//! left out. A row that is repeated counts once.
//!
//! The text format that Amnesia exports is read too.

mod amnesia;
mod builder;
mod rows;

use builder::{HierarchyBuilder, RowError, filled};
use csv::{ReaderBuilder, StringRecord};
use pais_core::definition::TaxonomyNode;
use pais_core::rejection::{Fault, Rejection};
use pais_core::taxonomy::TreeLimits;

pub use rows::write;

/// What is wrong with a hierarchy file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HierarchyErrorKind {
    /// It cannot be decoded.
    Malformed,
    /// Its rows do not make one tree within the limits.
    Tree,
}

/// Why a hierarchy file is refused, with the first faults by line.
pub type HierarchyError = Rejection<HierarchyErrorKind>;

/// Maximum number of faults that are named.
const FAULTS: usize = 20;

/// Reads a hierarchy and returns its tree. Children are in the order in which they first occur.
///
/// # Errors
/// [`HierarchyErrorKind::Malformed`] for what is not UTF-8, has a NUL byte or an open quote;
/// [`HierarchyErrorKind::Tree`], with the first 20 faults by line, for rows that do not make one
/// tree within the limits.
pub fn parse(bytes: &[u8], limits: TreeLimits) -> Result<TaxonomyNode, HierarchyError> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = line_at(bytes, error.valid_up_to());
        malformed(line, "the line is not UTF-8; save the file as UTF-8")
    })?;
    if let Some(at) = memchr::memchr(0, bytes) {
        return Err(malformed(
            line_at(bytes, at),
            "the line contains a NUL byte; remove it",
        ));
    }
    if amnesia::is_amnesia(text) {
        return amnesia::parse(text, limits);
    }
    let separator = separator(bytes);
    if let Some(at) = open_quote(bytes, separator) {
        return Err(malformed(
            line_at(bytes, at),
            "a quote is opened and never closed; close it",
        ));
    }
    let mut builder = HierarchyBuilder::new(lacks_top(text, separator));
    let mut faults = Vec::new();
    let mut lines = LineCounter {
        bytes,
        at: 0,
        line: 1,
    };
    let mut reader = rows_of(text, separator);
    let mut record = StringRecord::new();
    loop {
        let start = reader.position().byte();
        // Reading from memory cannot fail, and the text is UTF-8.
        let more = reader.read_record(&mut record);
        if !more.map_err(|error| malformed(lines.of(start), &error.to_string()))? {
            break;
        }
        let line = lines.of(start);
        match builder.add(&record, limits) {
            Ok(()) => continue,
            Err(RowError::Fault(detail)) => faults.push(Fault::record(line, detail)),
            Err(RowError::Limit(error)) => {
                let fault = Fault::record(line, error.to_string());
                return Err(HierarchyError::with(
                    HierarchyErrorKind::Tree,
                    error.to_string(),
                    vec![fault],
                ));
            }
        }
        if faults.len() == FAULTS {
            break;
        }
    }
    if !faults.is_empty() {
        return Err(refused(faults));
    }
    builder.into_root().ok_or_else(|| {
        let detail = "the hierarchy has no rows; write one row per leaf: `leaf;level1;...;top`";
        HierarchyError::new(HierarchyErrorKind::Tree, detail)
    })
}

/// The error of rows that do not form a tree, with these faults.
fn refused(faults: Vec<Fault>) -> HierarchyError {
    let mut detail = "the rows do not form a tree".to_owned();
    if let Some(first) = faults.first() {
        let line = first.line().unwrap_or_default();
        detail += &format!(": line {line}: {}", first.detail);
    }
    HierarchyError::with(HierarchyErrorKind::Tree, detail, faults)
}

fn rows_of(text: &str, separator: u8) -> csv::Reader<&[u8]> {
    ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes())
}

/// Whether ragged rows have no common top. Rows of one length that end with different labels have
/// several tops, which is refused when they are added.
fn lacks_top(text: &str, separator: u8) -> bool {
    let mut reader = rows_of(text, separator);
    let mut record = StringRecord::new();
    let mut first: Option<(usize, String)> = None;
    let (mut is_ragged, mut is_common) = (false, true);
    // What cannot be read is reported when the rows are added.
    while let Ok(true) = reader.read_record(&mut record) {
        let length = filled(&record).count();
        let top = filled(&record).next_back().unwrap_or_default();
        match &first {
            Some((levels, label)) => {
                is_ragged |= *levels != length;
                is_common &= **label == *top;
            }
            None => first = Some((length, top.into_owned())),
        }
    }
    is_ragged && !is_common
}

fn malformed(line: u64, detail: &str) -> HierarchyError {
    let fault = Fault::record(line, detail);
    HierarchyError::with(
        HierarchyErrorKind::Malformed,
        format!("line {line}: {detail}"),
        vec![fault],
    )
}

fn line_at(bytes: &[u8], at: usize) -> u64 {
    1 + memchr::memchr_iter(b'\n', &bytes[..at]).count() as u64
}

/// Converts ascending byte offsets to line numbers, in one pass.
struct LineCounter<'b> {
    bytes: &'b [u8],
    at: usize,
    line: u64,
}

impl LineCounter<'_> {
    /// The line on which the record at or after byte `start` begins. The reader's position can be
    /// before line ends that it is about to skip, so they are skipped here too.
    fn of(&mut self, start: u64) -> u64 {
        let start = usize::try_from(start)
            .unwrap_or(usize::MAX)
            .clamp(self.at, self.bytes.len());
        let skipped = self.bytes[start..]
            .iter()
            .take_while(|byte| matches!(byte, b'\r' | b'\n'));
        let start = start + skipped.count();
        self.line += memchr::memchr_iter(b'\n', &self.bytes[self.at..start]).count() as u64;
        self.at = start;
        self.line
    }
}

/// `;` if the first non-empty row has one outside quotes, else `,`.
fn separator(bytes: &[u8]) -> u8 {
    let mut quoted = false;
    let rows = bytes
        .iter()
        .skip_while(|byte| matches!(byte, b'\r' | b'\n'));
    for &byte in rows {
        match byte {
            b'"' => quoted = !quoted,
            b';' if !quoted => return b';',
            b'\n' if !quoted => break,
            _ => {}
        }
    }
    b','
}

/// The byte offset of a quote that is never closed. The reader would take the rest of the file as
/// one field.
fn open_quote(bytes: &[u8], separator: u8) -> Option<usize> {
    enum QuoteState {
        FieldStart,
        Plain,
        Quoted(usize),
        /// After a quote that either closes the field or, if another quote follows, is escaped.
        Closed(usize),
    }
    let mut state = QuoteState::FieldStart;
    for (at, &byte) in bytes.iter().enumerate() {
        let ends = byte == separator || byte == b'\n' || byte == b'\r';
        state = match state {
            QuoteState::FieldStart if byte == b'"' => QuoteState::Quoted(at),
            QuoteState::Quoted(opened) if byte == b'"' => QuoteState::Closed(opened),
            QuoteState::Quoted(opened) => QuoteState::Quoted(opened),
            QuoteState::Closed(opened) if byte == b'"' => QuoteState::Quoted(opened),
            QuoteState::FieldStart | QuoteState::Plain | QuoteState::Closed(_) if ends => {
                QuoteState::FieldStart
            }
            QuoteState::FieldStart | QuoteState::Plain | QuoteState::Closed(_) => QuoteState::Plain,
        };
    }
    if let QuoteState::Quoted(opened) = state {
        Some(opened)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
