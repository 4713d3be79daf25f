//! The canonical form of a value: equal values have equal text, however they were written.

use std::borrow::Cow;

use super::SchemaColumn;
use super::subject_id::canonical_subject;
use crate::canonical_text::canonical_text;
use crate::definition::{ColumnKind, ColumnRole};
use crate::taxonomy::Multiples;
use crate::taxonomy::interval::{canonical_number, is_plain_number, number};

/// The items of a set's cell; an empty cell has none.
pub fn items(cell: &str, separator: char) -> impl Iterator<Item = &str> {
    cell.split(separator).filter(move |_| !cell.is_empty())
}

impl SchemaColumn {
    /// Whether a cell means missing: the cell, or its canonical form, is a word for missing.
    pub fn is_missing(&self, cell: &str) -> bool {
        let is_word = |text: &str| self.missing.iter().any(|word| **word == *text);
        if is_word(cell) {
            return true;
        }
        // Only white space can have the empty word as its canonical form, and sets of nothing else.
        let is_set = self.kind == ColumnKind::Set;
        if !is_set && self.missing.iter().all(|word| word.is_empty()) && !cell.trim().is_empty() {
            return false;
        }
        let canonical = self.canonical(cell);
        *canonical != *cell && is_word(&canonical)
    }

    /// The canonical form of a cell, or of a value that a job lists, of this column.
    ///
    /// - Numbers: the shortest decimal that reads back equal, whole ones without a fraction.
    /// - Dates: ISO 8601 without an offset ([`crate::calendar`]).
    /// - Text of quasi-identifiers, sensitive and class columns, and of columns with a taxonomy,
    ///   and the items of their sets: without white space around it and in Unicode NFC.
    /// - Sets: each item once, in the order of their text, and no word for missing next to another item. The order in which items were written could identify a row, and no
    ///   figure about sets depends on it.
    /// - Ids of persons (`subject`): as such text, but plain decimal numbers by their exact value,
    ///   unless they have leading zeros.
    /// - Other text: unchanged, except for carriage returns at its end, which not every program that reads CSV
    ///   keeps apart from the end of a line.
    ///
    /// The cells of a finished table stay as they are written.
    ///
    /// Text that is no value of the column is returned in some form that is none either. The
    /// canonical form of a word for missing is a word for missing too.
    pub fn canonical<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.kind {
            _ if self.is_verbatim => Cow::Borrowed(text),
            ColumnKind::Numeric if is_plain_number(text) => Cow::Borrowed(text),
            ColumnKind::Numeric => match canonical_number(text) {
                Some(number) if number != text => Cow::Owned(number),
                _ => Cow::Borrowed(text),
            },
            ColumnKind::Categorical if !self.is_compared() => {
                Cow::Borrowed(text.trim_end_matches('\r'))
            }
            ColumnKind::Categorical if self.role == ColumnRole::Subject => canonical_subject(text),
            ColumnKind::Categorical => canonical_text(text),
            ColumnKind::Date | ColumnKind::Datetime => self.canonical_date(text),
            ColumnKind::Set => self.canonical_set(text),
        }
    }

    /// Whether the values of the column are released unchanged, except for rounding.
    pub fn is_unchanged(&self) -> bool {
        match self.role {
            ColumnRole::Sensitive | ColumnRole::Class | ColumnRole::Insensitive => true,
            ColumnRole::QuasiIdentifier | ColumnRole::Identifier | ColumnRole::Subject => false,
        }
    }

    /// The released form of a cell in canonical form if the column is released unchanged. For a number in a
    /// column with `round`, it is the nearest multiple (of two, the one further from 0); otherwise the cell. If
    /// that is a word for missing, it is the next larger multiple that is not one.
    pub fn rounded<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(round) = self.round.filter(|_| !self.is_missing(text)) else {
            return Cow::Borrowed(text);
        };
        let mut found = number(text).and_then(|value| round.nearest(value));
        while let Some(multiple) = found {
            let rounded = canonical_number(&multiple.to_string());
            match rounded {
                Some(rounded) if rounded == text => break,
                Some(rounded) if !self.is_missing(&rounded) => return Cow::Owned(rounded),
                _ => found = round.above(multiple),
            }
        }
        Cow::Borrowed(text)
    }

    /// The word for missing that a null cell is stored as: the first one, unless the empty cell, which CSV
    /// writes for null, means missing. `None` for a null cell that stays null.
    pub fn null_word(&self) -> Option<&str> {
        let has_empty_word = self.missing.iter().any(|word| word.is_empty());
        self.missing
            .first()
            .map(AsRef::as_ref)
            .filter(|_| !has_empty_word)
    }

    /// Whether the empty cell of an exact column is null: it is a word for missing, or not a value.
    pub(crate) fn is_empty_null(&self) -> bool {
        self.is_missing("") || !self.has_empty_value()
    }

    /// Whether the empty cell is a value of the column if it is not a word for missing.
    fn has_empty_value(&self) -> bool {
        match self.kind {
            ColumnKind::Numeric => false,
            ColumnKind::Date | ColumnKind::Datetime => false,
            ColumnKind::Categorical => self.tree.is_none(),
            ColumnKind::Set => true,
        }
    }

    /// Makes the column show values like a release with these words for missing and this rounding.
    pub(crate) fn show_as(&mut self, missing: Option<&[String]>, round: Option<f64>) {
        let default = [String::new()];
        self.missing = self.words_for_missing(missing.unwrap_or(&default));
        self.round = round.and_then(Multiples::of);
    }

    /// Whether two columns have the same words for missing and the same rounding.
    pub(crate) fn shows_as(&self, other: &Self) -> bool {
        self.missing == other.missing && self.round == other.round
    }

    /// The words for missing of this column: the canonical forms of the declared ones, then those
    /// declared in another form.
    ///
    /// A column that has no such word gets the empty one, if that would be a value: CSV cannot distinguish it
    /// from null.
    pub(super) fn words_for_missing(&self, declared: &[String]) -> Vec<Box<str>> {
        let mut words: Vec<Box<str>> = Vec::with_capacity(declared.len());
        let canonical = declared.iter().map(|word| self.canonical(word));
        let exact = declared.iter().map(|word| Cow::Borrowed(word.as_str()));
        for word in canonical.chain(exact) {
            if !words.iter().any(|known| **known == *word) {
                words.push(word.into());
            }
        }
        if words.is_empty() && self.role != ColumnRole::Identifier && self.has_empty_value() {
            words.push("".into());
        }
        words
    }

    /// Whether values of this column are compared with labels, or with one another.
    fn is_compared(&self) -> bool {
        self.tree.is_some()
            || !matches!(self.role, ColumnRole::Insensitive | ColumnRole::Identifier)
    }

    fn canonical_set<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let is_compared = self.is_compared();
        let canonical = |item: &'t str| {
            if is_compared {
                canonical_text(item)
            } else {
                Cow::Borrowed(item.trim_end_matches('\r'))
            }
        };
        let is_word = |item: &str| {
            (is_compared && item.is_empty()) || self.missing.iter().any(|word| **word == *item)
        };
        let written = || items(text, self.separator);
        let has_one_form = written().all(|item| *canonical(item) == *item)
            && written().is_sorted_by(|one, next| one < next)
            && (written().nth(1).is_none() || !written().any(is_word));
        if has_one_form {
            return Cow::Borrowed(text);
        }
        let written: Vec<Cow<'t, str>> = written().map(canonical).collect();
        let mut kept: Vec<&str> = written.iter().map(AsRef::as_ref).collect();
        // Where items are compared with labels, an empty item among others is a fault of the cell.
        let is_faulty = is_compared && kept.len() > 1 && kept.contains(&"");
        if !is_faulty {
            kept.sort_unstable();
            kept.dedup();
            let first = kept.first().copied();
            kept.retain(|item| !is_word(item));
            if kept.is_empty() {
                kept.extend(first);
            }
        }
        Cow::Owned(kept.join(self.separator.encode_utf8(&mut [0; 4])))
    }
}
