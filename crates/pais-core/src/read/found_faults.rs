//! The faults of a file: the first ones with their places, and the number of all by column.

use std::collections::BTreeMap;

use crate::read::chunk_builder::{MAX_FAULTS, place};
use crate::read::error::{ReadError, ReadErrorKind};
use crate::rejection::Fault;

/// Number of faults that are kept before the later ones are dropped. Columns of a Parquet file are
/// read one after the other, so the first faults found need not be the first of the file.
const KEPT_FAULTS: usize = 50 * MAX_FAULTS;

/// The faults that were found so far. A fault that is not among the first [`MAX_FAULTS`] is counted
/// and dropped.
#[derive(Default)]
pub(super) struct FoundFaults {
    kept: Vec<Fault>,
    /// The greatest line of those kept.
    last_line: Option<u64>,
    number: u64,
    by_column: BTreeMap<String, u64>,
}

impl FoundFaults {
    /// Whether there are none.
    pub(super) fn are_none(&self) -> bool {
        self.number == 0
    }

    /// Adds the fault of a cell; without a column where it is an identifier's.
    pub(super) fn push_cell(
        &mut self,
        line: u64,
        column: Option<&str>,
        detail: String,
        fix: Option<String>,
    ) {
        self.count(column);
        if self.is_among_first(Some(line)) {
            self.keep(Fault {
                place: place(line, column.map(str::to_owned)),
                detail,
                suggested_fix: fix,
            });
        }
    }

    /// Adds a fault.
    pub(super) fn push(&mut self, fault: Fault) {
        self.count(fault.column());
        if self.is_among_first(fault.line()) {
            self.keep(fault);
        }
    }

    /// The error of the file; `None` without faults.
    pub(super) fn finish(&mut self) -> Option<ReadError> {
        self.keep_first();
        let first = self.kept.first()?;
        let verb = match self.number {
            1 => "cell does",
            _ => "cells do",
        };
        let number = match self.number {
            1 => "one".to_owned(),
            number => number.to_string(),
        };
        let which = match self.number {
            1 => "",
            _ => "; the first",
        };
        let detail = format!(
            "{number} {verb} not fit, and nothing was stored{which}: {}",
            first.detail
        );
        let mut error =
            ReadError::with(ReadErrorKind::Cells, detail, std::mem::take(&mut self.kept));
        error.faults_by_column = std::mem::take(&mut self.by_column);
        Some(error)
    }

    fn count(&mut self, column: Option<&str>) {
        self.number += 1;
        let Some(column) = column else { return };
        match self.by_column.get_mut(column) {
            Some(number) => *number += 1,
            None => drop(self.by_column.insert(column.to_owned(), 1)),
        }
    }

    /// Whether a fault can be one of the first. Of a line the faults found first are.
    fn is_among_first(&self, line: Option<u64>) -> bool {
        self.kept.len() < MAX_FAULTS || line < self.last_line
    }

    fn keep(&mut self, fault: Fault) {
        self.last_line = self.last_line.max(fault.line());
        self.kept.push(fault);
        if self.kept.len() > KEPT_FAULTS {
            self.keep_first();
            self.last_line = self.kept.last().and_then(Fault::line);
        }
    }

    fn keep_first(&mut self) {
        self.kept.sort_by_key(Fault::line);
        self.kept.truncate(MAX_FAULTS);
    }
}
