//! Hierarchies as rows, one per leaf: `leaf;level1;...;top`, the file format of ARX.
//!
//! Fields are separated by `;`, or by `,` if the first row has no `;`, and may be quoted. A label
//! repeated from one level to the next is one node: such files use this to write leaves at
//! different depths. Labels are trimmed and brought to Unicode NFC first.
//!
//! Rows may have different lengths. The last label of each is the top, so a shorter row is a leaf
//! nearer to it, as if the row began with its leaf again and again. Rows that do not end with the
//! same label get the top `*`. Empty fields at the end of a row, as spreadsheets write them, are
//! left out. A row that is repeated counts once.
//!
//! The text format that Amnesia exports is read too.

mod amnesia;
mod rows;

use std::borrow::Cow;

use csv::{ReaderBuilder, StringRecord};
use hashbrown::HashMap;

use crate::canonical_text::canonical_text;
use crate::definition::TaxonomyNode;
use crate::rejection::{Fault, Rejection};

use super::{MISSING_LABEL, TreeError, TreeLimits};

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

/// Most faults that are named.
const FAULTS: usize = 20;

/// The top of rows that have no common one.
const TOP: &str = "*";

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
    let mut builder = HierarchyBuilder {
        adds_top: !has_common_top(text, separator),
        ..HierarchyBuilder::default()
    };
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
    if let Some(first) = faults.first() {
        let line = first.line().unwrap_or_default();
        let detail = format!("the rows do not form a tree: line {line}: {}", first.detail);
        return Err(HierarchyError::with(
            HierarchyErrorKind::Tree,
            detail,
            faults,
        ));
    }
    builder.into_root().ok_or_else(|| {
        let detail = "the hierarchy has no rows; write one row per leaf: `leaf;level1;...;top`";
        HierarchyError::new(HierarchyErrorKind::Tree, detail)
    })
}

fn rows_of(text: &str, separator: u8) -> csv::Reader<&[u8]> {
    ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes())
}

/// The labels of a row without the empty fields at its end; all fields of a row that has no label.
fn filled<'r>(row: &'r StringRecord) -> impl DoubleEndedIterator<Item = Cow<'r, str>> {
    let has_label = |&field: &usize| !row[field].trim().is_empty();
    let last = (0..row.len()).rev().find(has_label);
    let length = last.map_or(row.len(), |last| last + 1);
    (0..length).map(|field| canonical_text(&row[field]))
}

/// Whether all rows end with the same label.
fn has_common_top(text: &str, separator: u8) -> bool {
    let mut reader = rows_of(text, separator);
    let mut record = StringRecord::new();
    let mut common: Option<String> = None;
    // What cannot be read is reported when the rows are added.
    while let Ok(true) = reader.read_record(&mut record) {
        let top = filled(&record).next_back().unwrap_or_default();
        match &common {
            Some(common) if **common != *top => return false,
            Some(_) => {}
            None => common = Some(top.into_owned()),
        }
    }
    true
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

/// Why a row was not added.
enum RowError {
    /// What is wrong with the row; reading continues with the next row.
    Fault(String),
    /// A limit of the tree is exceeded; reading stops.
    Limit(TreeError),
}

struct HierarchyNode {
    label: Box<str>,
    /// Index of the parent, which comes before its children; `None` for the top.
    parent: Option<usize>,
    /// Number of levels from the top to the node, both included.
    depth: usize,
    leaf: bool,
}

/// The tree while its rows are read.
#[derive(Default)]
struct HierarchyBuilder {
    entries: Vec<HierarchyNode>,
    by_label: HashMap<Box<str>, usize>,
    leaves: usize,
    /// Whether [`TOP`] is above rows that do not end with it.
    adds_top: bool,
}

impl HierarchyBuilder {
    /// Adds a row of labels, with the leaf first.
    fn add(&mut self, row: &StringRecord, limits: TreeLimits) -> Result<(), RowError> {
        let fault = |detail: String| Err(RowError::Fault(detail));
        let labels: Vec<Cow<'_, str>> = filled(row).rev().collect();
        let mut path: Vec<&str> = labels.iter().map(AsRef::as_ref).collect();
        if self.adds_top {
            path.insert(0, TOP);
        }
        if path.contains(&"") {
            return fault("a label is empty; every level needs one".to_owned());
        }
        path.dedup();
        // A record has at least one field.
        let [.., leaf] = path[..] else { return Ok(()) };
        if path.len() == 1 {
            return fault(format!(
                "the row has only the label `{leaf}`; a row needs at least a leaf and a top"
            ));
        }
        if path.contains(&MISSING_LABEL) && !(path.len() == 2 && leaf == MISSING_LABEL) {
            return fault(
                "`?` means missing and can only be a leaf right below the top".to_owned(),
            );
        }
        let mut parent = None;
        for (level, &label) in path.iter().enumerate() {
            let last = level + 1 == path.len();
            parent = Some(match self.by_label.get(label) {
                Some(&known) => {
                    self.check_known(known, parent, last)
                        .map_err(RowError::Fault)?;
                    known
                }
                None => self.push(label, parent, last, limits)?,
            });
        }
        Ok(())
    }

    fn check_known(&self, known: usize, parent: Option<usize>, last: bool) -> Result<(), String> {
        let HierarchyNode {
            label,
            parent: before,
            leaf,
            ..
        } = &self.entries[known];
        let name = |node: Option<usize>| match node {
            Some(node) => format!("below `{}`", self.entries[node].label),
            None => "at the top".to_owned(),
        };
        if *before != parent {
            let (here, before) = (name(parent), name(*before));
            return Err(format!(
                "`{label}` is {here}, but {before} in an earlier row"
            ));
        }
        match (last, leaf) {
            // The same row again.
            (true, true) => Ok(()),
            (true, false) => Err(format!("`{label}` is a leaf, but not in an earlier row")),
            (false, true) => Err(format!(
                "`{label}` is not a leaf, but it is one in an earlier row"
            )),
            (false, false) => Ok(()),
        }
    }

    fn push(
        &mut self,
        label: &str,
        parent: Option<usize>,
        leaf: bool,
        limits: TreeLimits,
    ) -> Result<usize, RowError> {
        if parent.is_none()
            && let Some(top) = self.entries.first()
        {
            let top = &top.label;
            return Err(RowError::Fault(format!(
                "the top is `{label}`, but `{top}` in the first row; give all rows the same top"
            )));
        }
        let depth = parent.map_or(1, |parent| self.entries[parent].depth + 1);
        if depth > limits.depth {
            return Err(RowError::Limit(TreeError::TooDeep {
                limit: limits.depth,
            }));
        }
        self.leaves += usize::from(leaf);
        if self.leaves > limits.leaves {
            return Err(RowError::Limit(TreeError::TooManyLeaves {
                limit: limits.leaves,
            }));
        }
        let index = self.entries.len();
        self.by_label.insert(label.into(), index);
        self.entries.push(HierarchyNode {
            label: label.into(),
            parent,
            depth,
            leaf,
        });
        Ok(index)
    }

    /// The tree; `None` if there are no rows.
    fn into_root(self) -> Option<TaxonomyNode> {
        let mut children: Vec<Vec<TaxonomyNode>> = Vec::new();
        children.resize_with(self.entries.len(), Vec::new);
        // From last to first, so that a node has all its children before it is moved to its parent.
        for (index, entry) in self.entries.into_iter().enumerate().rev() {
            let mut below = std::mem::take(&mut children[index]);
            below.reverse();
            let node = TaxonomyNode {
                label: entry.label.into(),
                children: below,
            };
            match entry.parent {
                Some(parent) => children[parent].push(node),
                None => return Some(node),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
