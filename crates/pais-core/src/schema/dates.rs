//! What a declaration of dates needs beyond that of other columns, and how their cells are read.

use std::borrow::Cow;

use super::SchemaColumn;
use crate::calendar::{
    DateFormat, NotADate, is_canonical_day, is_canonical_moment, read_day, read_moment, write_day,
    write_moment,
};
use crate::canonical_text::canonical_text;
use crate::definition::{
    ColumnDefinition, ColumnKind, DomainBound, GeneratedHierarchy, TaxonomyReference,
};
use crate::rejection::Fault;
use crate::taxonomy::{MISSING_LABEL, Scale, Tree};

impl ColumnKind {
    /// The scale of the values of the kind, if their intervals can be grown during a run.
    pub fn scale(self) -> Option<Scale> {
        match self {
            Self::Numeric => Some(Scale::Number),
            Self::Date => Some(Scale::Day),
            Self::Datetime => Some(Scale::Moment),
            Self::Categorical | Self::Set => None,
        }
    }

    /// Whether its values are days or moments.
    pub(crate) fn is_of_dates(self) -> bool {
        matches!(self, Self::Date | Self::Datetime)
    }
}

/// Whether a column of dates asks for the intervals that are grown during the run.
pub(super) fn asks_for_grown_intervals(column: &ColumnDefinition) -> bool {
    let ranges = TaxonomyReference::Generated(GeneratedHierarchy::Ranges {
        start: None,
        widths: None,
        balance: false,
    });
    column.kind.is_of_dates() && column.taxonomy == Some(ranges)
}

/// The format of a column's dates. A fault is added for one that cannot be used.
pub(super) fn format(
    column: &ColumnDefinition,
    at: &dyn Fn(&str) -> String,
    faults: &mut Vec<Fault>,
) -> Option<DateFormat> {
    let format = column.format.as_deref()?;
    let read = match column.kind {
        ColumnKind::Date => DateFormat::of_days(format),
        ColumnKind::Datetime => DateFormat::of_moments(format),
        _ => {
            let detail = "only a date or datetime column has a format";
            let fix = "add \"kind\": \"date\", or leave `format` out";
            faults.push(Fault::at(at("format"), detail).fix(fix));
            return None;
        }
    };
    match read {
        Ok(format) => Some(format),
        Err(error) => {
            let fix = "write the words of strftime, such as %d.%m.%Y, or leave `format` out where \
                       the cells are ISO 8601";
            faults.push(Fault::at(at("format"), error.to_string()).fix(fix));
            None
        }
    }
}

/// The declared domain as numbers. Faults are added for ends that do not fit the column's kind.
pub(super) fn domain(
    column: &ColumnDefinition,
    at: &dyn Fn(&str) -> String,
    faults: &mut Vec<Fault>,
) -> Option<(f64, f64)> {
    let ends = column.domain.as_ref()?;
    let mut read = [0.0; 2];
    for (index, (end, read)) in ends.iter().zip(&mut read).enumerate() {
        let value = match (end, column.kind.scale()) {
            (DomainBound::Number(number), None | Some(Scale::Number)) => Some(*number),
            (DomainBound::Date(text), Some(scale @ (Scale::Day | Scale::Moment))) => {
                scale.value(text)
            }
            _ => None,
        };
        let Some(value) = value else {
            let pointer = at(&format!("domain/{index}"));
            let (detail, fix) = if column.kind.is_of_dates() {
                (
                    "an end of a domain of dates must be a date of ISO 8601",
                    "write [\"1900-01-01\", \"2020-12-31\"], for example",
                )
            } else {
                (
                    "an end of a domain must be a number; only a column of dates has dates",
                    "write a number, or add \"kind\": \"date\"",
                )
            };
            faults.push(Fault::at(pointer, detail).fix(fix));
            return None;
        };
        *read = value;
    }
    Some((read[0], read[1]))
}

/// Checks that the leaves of a taxonomy of dates are dates in canonical form.
pub(super) fn check_leaves(
    kind: ColumnKind,
    tree: &Tree,
    at: &dyn Fn(&str) -> String,
    faults: &mut Vec<Fault>,
) {
    let is_date = |label: &str| match kind {
        ColumnKind::Date => is_canonical_day(label),
        _ => is_canonical_moment(label),
    };
    let leaves = (0..tree.leaf_count() as u32).map(|leaf| tree.node(tree.leaf(leaf)));
    let mut leaves = leaves.filter(|leaf| &*leaf.label != MISSING_LABEL);
    if leaves.any(|leaf| !is_date(&leaf.label)) {
        let detail = "a leaf of the taxonomy is not a date of ISO 8601, and the column's cells are";
        let example = match kind {
            ColumnKind::Date => "1987-09-03",
            _ => "1987-09-03T10:15:00",
        };
        let fix = format!("write each leaf as {example}, or declare the column categorical");
        faults.push(Fault::at(at("taxonomy"), detail).fix(fix));
    }
}

impl SchemaColumn {
    /// Whether the intervals of the column, a quasi-identifier, are grown during the run.
    ///
    /// This is the one place that decides between a tree and grown intervals.
    pub fn has_grown_intervals(&self) -> bool {
        self.tree.is_none() && self.kind.scale().is_some()
    }

    /// The scale of the column's values; numbers if the kind has no order.
    pub fn scale(&self) -> Scale {
        self.kind.scale().unwrap_or_default()
    }

    /// Why a text is not a date of the column; `None` for a date.
    pub(crate) fn why_no_date(&self, text: &str) -> Option<NotADate> {
        self.date(text.trim()).err()
    }

    /// The canonical form of a cell of dates. Text that is not a date is trimmed.
    pub(super) fn canonical_date<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let trimmed = text.trim();
        let is_day = self.kind == ColumnKind::Date;
        let is_canonical = if is_day {
            is_canonical_day(trimmed)
        } else {
            is_canonical_moment(trimmed)
        };
        if is_canonical {
            return Cow::Borrowed(trimmed);
        }
        let Ok(number) = self.date(trimmed) else {
            return canonical_text(text);
        };
        let mut written = String::new();
        let result = if is_day {
            write_day(&mut written, number)
        } else {
            write_moment(&mut written, number)
        };
        match result {
            Ok(()) => Cow::Owned(written),
            // Not reached: text can always be added to a string.
            Err(_) => canonical_text(text),
        }
    }

    /// ISO 8601 is read in every column: dates are stored and released in this form.
    fn date(&self, text: &str) -> Result<i64, NotADate> {
        let is_day = self.kind == ColumnKind::Date;
        let iso = if is_day {
            read_day(text)
        } else {
            read_moment(text)
        };
        match (iso, &self.format) {
            (Err(NotADate::Form), Some(format)) if is_day => format.day(text),
            (Err(NotADate::Form), Some(format)) => format.moment(text),
            (iso, _) => iso,
        }
    }
}
