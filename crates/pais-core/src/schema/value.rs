//! The one form of a value: equal values have equal text, however they were written.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::SchemaColumn;
use crate::definition::{ColumnKind, ColumnRole};
use crate::taxonomy::interval::canonical_number;

/// The items of a set's cell; an empty cell has none.
pub(crate) fn items(cell: &str, separator: char) -> impl Iterator<Item = &str> {
    cell.split(separator).filter(move |_| !cell.is_empty())
}

/// Text without white space around it and in Unicode NFC. Text that has this form is borrowed.
pub fn canonical_text(text: &str) -> Cow<'_, str> {
    let trimmed = text.trim();
    if trimmed.is_ascii() || is_nfc_quick(trimmed.chars()) == IsNormalized::Yes {
        return Cow::Borrowed(trimmed);
    }
    Cow::Owned(trimmed.nfc().collect())
}

impl SchemaColumn {
    /// The one form of a cell, or of a value that a job lists, of this column. A word for missing
    /// is returned as it is declared.
    ///
    /// - Numbers: the shortest decimal that reads back equal, whole ones without a fraction.
    /// - Text of quasi-identifiers, sensitive and class columns, and of columns with a taxonomy,
    ///   and the items of their sets: without white space around it and in Unicode NFC.
    /// - Other text: as it is, except for carriage returns at its end, which CSV cannot keep
    ///   apart from the end of a line.
    ///
    /// Text that is no value of the column is returned in some form that is none either.
    pub fn canonical<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.is_missing(text) {
            return Cow::Borrowed(text);
        }
        match self.kind {
            ColumnKind::Numeric => match canonical_number(text) {
                Some(number) if number != text => Cow::Owned(number),
                _ => Cow::Borrowed(text),
            },
            ColumnKind::Categorical | ColumnKind::Set if !self.is_compared() => {
                Cow::Borrowed(text.trim_end_matches('\r'))
            }
            ColumnKind::Categorical => canonical_text(text),
            ColumnKind::Set => self.canonical_set(text),
        }
    }

    /// Whether values of this column are compared with labels, or with one another.
    fn is_compared(&self) -> bool {
        self.tree.is_some()
            || !matches!(self.role, ColumnRole::Insensitive | ColumnRole::Identifier)
    }

    fn canonical_set<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let is_canonical = |item: &str| matches!(canonical_text(item), Cow::Borrowed(same) if same.len() == item.len());
        if items(text, self.separator).all(is_canonical) {
            return Cow::Borrowed(text);
        }
        let items: Vec<Cow<'_, str>> = items(text, self.separator).map(canonical_text).collect();
        Cow::Owned(items.join(self.separator.encode_utf8(&mut [0; 4])))
    }
}
