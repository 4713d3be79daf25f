//! Why an input is refused, and where: the errors of the libraries.

use std::collections::BTreeMap;
use std::fmt;

/// Where a fault is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An RFC 6901 pointer into a JSON document.
    Pointer(String),
    /// A record of a file: the physical line on which it starts, the header being line 1; the
    /// n-th record in NDJSON and Parquet.
    Record {
        /// Line or number of the record, from 1.
        line: u64,
    },
    /// A cell of a file.
    Cell {
        /// Line or number of the record, as in [`Place::Record`].
        line: u64,
        /// Name of the column.
        column: String,
    },
    /// A column of a file.
    Column {
        /// Its name.
        column: String,
    },
    /// The whole document or file.
    Whole,
}

/// One fault in a document or a file. It never quotes the value of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it is.
    pub place: Place,
    /// What is wrong.
    pub detail: String,
    /// What would fix it.
    pub suggested_fix: Option<String>,
}

impl Fault {
    /// A fault at a place of a JSON document.
    pub fn at(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Place::Pointer(pointer.into()), detail)
    }

    /// A fault at a cell of a file.
    pub fn cell(line: u64, column: impl Into<String>, detail: impl Into<String>) -> Self {
        let column = column.into();
        Self::new(Place::Cell { line, column }, detail)
    }

    /// A fault of a whole record.
    pub fn record(line: u64, detail: impl Into<String>) -> Self {
        Self::new(Place::Record { line }, detail)
    }

    /// A fault at a place.
    pub fn new(place: Place, detail: impl Into<String>) -> Self {
        Self {
            place,
            detail: detail.into(),
            suggested_fix: None,
        }
    }

    /// The fault with a suggested fix.
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.suggested_fix = Some(fix.into());
        self
    }

    /// The pointer, if the fault is in a JSON document.
    pub fn pointer(&self) -> Option<&str> {
        match &self.place {
            Place::Pointer(pointer) => Some(pointer),
            _ => None,
        }
    }

    /// The line or number of the record, if the fault is in a file.
    pub fn line(&self) -> Option<u64> {
        match self.place {
            Place::Record { line } | Place::Cell { line, .. } => Some(line),
            _ => None,
        }
    }

    /// The column, if the fault is in a cell or a column.
    pub fn column(&self) -> Option<&str> {
        match &self.place {
            Place::Cell { column, .. } | Place::Column { column } => Some(column),
            _ => None,
        }
    }
}

/// Why an input is refused: a kind that a program can match, a sentence that says what is wrong
/// and what to do, and the faults behind it.
///
/// Each module has an enum of kinds, such as [`crate::table::ReadErrorKind`], and names its
/// rejection by an alias, such as [`crate::table::ReadError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection<K> {
    /// What kind of error it is.
    pub kind: K,
    /// What is wrong and what to do.
    pub detail: String,
    /// The faults, in input order; empty if the rejection is about the whole input.
    pub faults: Vec<Fault>,
    /// Number of all faults of a file, by column; columns without faults have no entry.
    pub faults_by_column: BTreeMap<String, u64>,
}

impl<K> Rejection<K> {
    /// A rejection without places.
    pub fn new(kind: K, detail: impl Into<String>) -> Self {
        Self::with(kind, detail, Vec::new())
    }

    /// A rejection because of one place of a JSON document.
    pub fn at(kind: K, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let fault = Fault::at(pointer, detail.clone());
        Self::with(kind, detail, vec![fault])
    }

    /// A rejection with the faults behind it.
    pub fn with(kind: K, detail: impl Into<String>, faults: Vec<Fault>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            faults,
            faults_by_column: BTreeMap::new(),
        }
    }
}

impl<K> fmt::Display for Rejection<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl<K: fmt::Debug> std::error::Error for Rejection<K> {}
