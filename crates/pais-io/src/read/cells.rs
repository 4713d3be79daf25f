//! Checks and codes the cells of one column for a chunk. A distinct spelling is checked once, and
//! all spellings of a value have its code.

use std::borrow::Cow;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use pais_core::definition::{ColumnKind, ColumnRole};
use pais_core::rejection::{Fault, Place};
use pais_core::schema::{SchemaColumn, no_number};
use pais_core::table::{Column, NULL_CODE};
use pais_core::taxonomy::interval::number;

use crate::read::number_text::NumberText;
use crate::read::suggestions;
use crate::read::text_format::TextFormat;

/// Why a cell is refused. It never contains the cell's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The body cannot be decoded.
    Undecodable(&'static str),
    /// The cell is not UTF-8.
    NotUtf8,
    /// The cell is not valid for its column; the fault gets its place later.
    Unfit(Fault),
}

impl Refusal {
    /// The refusal of a cell that is not valid.
    pub(super) fn unfit(detail: impl Into<String>) -> Self {
        Self::Unfit(Fault::new(Place::Whole, detail))
    }

    /// The same refusal with what would fix the cell.
    pub(super) fn fix(self, fix: &str) -> Self {
        match self {
            Self::Unfit(fault) => Self::Unfit(fault.fix(fix)),
            other => other,
        }
    }
}

/// Bytes that a distinct spelling takes in addition to its text.
const SPELLING_BYTES: usize = 56;

/// Builds one column of a chunk from cells.
///
/// Each cell is stored in canonical form. A spelling is made canonical and checked once per chunk;
/// each further cell in it costs one or two hash look-ups. A short spelling is looked up as a number, which
/// is in the table itself: of a column with many values, the text would be a cache miss or two away.
pub(super) struct ColumnBuilder<'a> {
    spec: &'a SchemaColumn,
    /// How the text of the file is written; `None` for a file that is not text.
    format: Option<TextFormat>,
    /// How numbers are written, where they have to be converted.
    numbers: Option<NumberText>,
    hasher: DefaultHashBuilder,
    /// The codes of short spellings.
    short: HashTable<(ShortSpelling, u32)>,
    /// The codes of canonical texts.
    table: HashTable<u32>,
    /// The codes of other long spellings of these texts.
    aliases: HashTable<(Box<[u8]>, u32)>,
    column: Column,
}

impl<'a> ColumnBuilder<'a> {
    /// An empty column.
    pub(super) fn new(spec: &'a SchemaColumn) -> Self {
        Self {
            spec,
            format: None,
            numbers: None,
            hasher: DefaultHashBuilder::default(),
            short: HashTable::new(),
            table: HashTable::new(),
            aliases: HashTable::new(),
            column: Column::default(),
        }
    }

    /// The same column of a file whose text is written in this format.
    pub(super) fn written_as(mut self, format: TextFormat) -> Self {
        let numbers = NumberText::of(&format);
        let has_numbers =
            self.spec.kind() == ColumnKind::Numeric || self.spec.role() == ColumnRole::Subject;
        let is_converted = has_numbers && !numbers.is_plain();
        self.numbers = is_converted.then_some(numbers);
        self.format = Some(format);
        self
    }

    /// The column as declared.
    pub(super) fn spec(&self) -> &'a SchemaColumn {
        self.spec
    }

    /// Adds a row's cell. A refused cell is added as null, so that all columns keep the same length. Returns
    /// the bytes that are needed for it in addition to its code: 0 in a known spelling.
    ///
    /// # Errors
    /// If the cell is not valid for the column.
    #[inline]
    pub(super) fn push(&mut self, cell: &[u8]) -> Result<usize, Refusal> {
        let known = match ShortSpelling::of(cell) {
            Some(short) => {
                let is_it = |(spelling, _): &(ShortSpelling, u32)| *spelling == short;
                let hash = self.hasher.hash_one(short);
                self.short.find(hash, is_it).map(|(_, code)| *code)
            }
            None => self.find_long(cell),
        };
        let (code, added) = match known {
            Some(code) => (code, 0),
            None => match self.add(cell) {
                Ok(code) => (code, cell.len() + SPELLING_BYTES),
                Err(refusal) => {
                    self.column.codes.push(NULL_CODE);
                    return Err(refusal);
                }
            },
        };
        self.column.codes.push(code);
        Ok(added)
    }

    fn find_long(&self, cell: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(cell);
        // A spelling that is converted can be the canonical text of another number.
        let canonical = match self.numbers {
            None => self.find(hash, cell),
            Some(_) => None,
        };
        canonical.or_else(|| {
            let is_it = |(spelling, _): &(Box<[u8]>, u32)| **spelling == *cell;
            self.aliases.find(hash, is_it).map(|(_, code)| *code)
        })
    }

    fn find(&self, hash: u64, text: &[u8]) -> Option<u32> {
        let dictionary = &self.column.dictionary;
        let is_text = |&code: &u32| dictionary[code as usize].as_bytes() == text;
        self.table.find(hash, is_text).copied()
    }

    /// Adds a new spelling, of a known or of a new value.
    #[cold]
    fn add(&mut self, cell: &[u8]) -> Result<u32, Refusal> {
        let plain = self.plain(check_text(cell)?)?;
        let text = self.spec.canonical(&plain);
        if let Err(mut fault) = self.spec.check(&text) {
            if self.spec.kind() == ColumnKind::Numeric && number(&text).is_none() {
                fault.suggested_fix = Some(suggestions::number(&text, self.format.as_ref()));
            }
            return Err(Refusal::Unfit(fault));
        }
        let is_canonical = self.numbers.is_none() && text.as_bytes() == cell;
        let hash = self.hasher.hash_one(text.as_bytes());
        let code = match self.find(hash, text.as_bytes()) {
            Some(known) => known,
            None => self.insert(hash, text.into()),
        };
        let hasher = &self.hasher;
        if let Some(short) = ShortSpelling::of(cell) {
            let rehash = |(spelling, _): &(ShortSpelling, u32)| hasher.hash_one(spelling);
            let hash = hasher.hash_one(short);
            self.short.insert_unique(hash, (short, code), rehash);
        } else if !is_canonical {
            let rehash = |(spelling, _): &(Box<[u8]>, u32)| hasher.hash_one(&**spelling);
            let hash = hasher.hash_one(cell);
            self.aliases
                .insert_unique(hash, (cell.into(), code), rehash);
        }
        Ok(code)
    }

    /// The cell with its number in plain spelling.
    fn plain<'t>(&self, cell: &'t str) -> Result<Cow<'t, str>, Refusal> {
        let Some(numbers) = self.numbers else {
            return Ok(Cow::Borrowed(cell));
        };
        match numbers.plain(cell) {
            Some(plain) => Ok(plain),
            // An id can be any text.
            None if self.spec.role() == ColumnRole::Subject => Ok(Cow::Borrowed(cell)),
            None if self.spec.missing().iter().any(|word| **word == *cell) => {
                Ok(Cow::Borrowed(cell))
            }
            None => Err(self.no_number(cell)),
        }
    }

    fn no_number(&self, cell: &str) -> Refusal {
        let fix = suggestions::number(cell, self.format.as_ref());
        Refusal::Unfit(no_number().fix(fix))
    }

    fn insert(&mut self, hash: u64, text: Box<str>) -> u32 {
        let code = self.column.dictionary.len() as u32;
        self.column.dictionary.push(text);
        let (dictionary, hasher) = (&self.column.dictionary, &self.hasher);
        self.table.insert_unique(hash, code, |&code| {
            hasher.hash_one(dictionary[code as usize].as_bytes())
        });
        code
    }

    /// Adds a row whose cell is null. It is stored as a word for missing where CSV does not show
    /// null as missing.
    pub(super) fn push_null(&mut self) {
        match self.spec.null_word() {
            None => self.column.codes.push(NULL_CODE),
            // A word for missing is never refused; a refused cell would be null.
            Some(word) => drop(self.push(word.as_bytes())),
        }
    }

    /// Returns the column built so far and leaves the builder empty.
    pub(super) fn take(&mut self) -> Column {
        self.short.clear();
        self.table.clear();
        self.aliases.clear();
        std::mem::take(&mut self.column)
    }
}

/// A spelling of at most seven bytes, with its length in the last byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ShortSpelling(u64);

impl ShortSpelling {
    /// `None` for a longer one.
    #[inline]
    fn of(cell: &[u8]) -> Option<Self> {
        let length = cell.len();
        // The first and the last bytes, which may be partly the same ones.
        let text = match (cell.first_chunk::<4>(), cell.last_chunk::<4>()) {
            (Some(first), Some(last)) if length < 8 => {
                let last = u64::from(u32::from_le_bytes(*last));
                u64::from(u32::from_le_bytes(*first)) | last << (8 * (length - 4))
            }
            (Some(_), Some(_)) => return None,
            _ => {
                let byte = |at: usize| cell.get(at).map_or(0, |byte| u64::from(*byte) << (8 * at));
                byte(0) | byte(1) | byte(2)
            }
        };
        Some(Self(text | (length as u64) << 56))
    }
}

/// The refusal of a cell that is larger than `limit` bytes.
pub(super) fn oversized(limit: usize) -> Refusal {
    let detail = format!("the cell has more than {limit} bytes (limits.cell_bytes)");
    Refusal::unfit(detail).fix("shorten the cell, or have the limit raised")
}

/// The text of a cell.
///
/// # Errors
/// If the cell is not UTF-8 or contains NUL, which PostgreSQL cannot store.
pub(super) fn check_text(cell: &[u8]) -> Result<&str, Refusal> {
    let text = std::str::from_utf8(cell).map_err(|_| Refusal::NotUtf8)?;
    if memchr::memchr(0, cell).is_some() {
        return Err(Refusal::Undecodable("a cell contains the character NUL"));
    }
    Ok(text)
}

/// Builds the cell of a set from a list of items, joined by the separator as in CSV.
pub(super) struct SetCell<'a> {
    spec: &'a SchemaColumn,
    limit: usize,
    text: String,
    items: usize,
}

impl<'a> SetCell<'a> {
    /// A set without items, for a cell of at most `limit` bytes.
    pub(super) fn new(spec: &'a SchemaColumn, limit: usize) -> Self {
        Self {
            spec,
            limit,
            text: String::new(),
            items: 0,
        }
    }

    /// Adds an item.
    ///
    /// # Errors
    /// For an item that contains the separator and would be read as several items, and for a cell
    /// that becomes too large.
    pub(super) fn add(&mut self, item: &str) -> Result<(), Refusal> {
        let separators = usize::from(self.items > 0);
        if self.text.len() + separators + item.len() > self.limit {
            return Err(oversized(self.limit));
        }
        let separator = self.spec.separator();
        if item.contains(separator) {
            let detail =
                format!("an item of the set contains the column's separator `{separator}`");
            return Err(Refusal::unfit(detail).fix("declare another `separator`"));
        }
        if self.items > 0 {
            self.text.push(separator);
        }
        self.text.push_str(item);
        self.items += 1;
        Ok(())
    }

    /// The joined items.
    ///
    /// # Errors
    /// For a single empty item, which would be read as the empty set.
    pub(super) fn text(&self) -> Result<&str, Refusal> {
        if self.items == 1 && self.text.is_empty() {
            let refusal = Refusal::unfit("the only item of the set is empty");
            return Err(refusal.fix("write the empty set as []"));
        }
        Ok(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::ShortSpelling;

    proptest! {
        #[test]
        fn short_spellings_are_equal_where_their_texts_are(
            one in prop::collection::vec(0..3u8, 0..10),
            other in prop::collection::vec(0..3u8, 0..10),
        ) {
            let (short, other_short) = (ShortSpelling::of(&one), ShortSpelling::of(&other));
            prop_assert_eq!(short.is_some(), one.len() <= 7);
            if let (Some(short), Some(other_short)) = (short, other_short) {
                prop_assert_eq!(short == other_short, one == other);
            }
        }
    }
}
