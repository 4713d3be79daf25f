//! Reads NDJSON submissions: one JSON object per line. Its keys are the declared columns, in any
//! order.
//!
//! Numbers are read as text, so that no digit is lost: a JSON number in a column of text stays as it
//! is written. Blank lines are skipped. Line numbers in faults are record numbers. Messages never contain keys or values: a
//! key can also be a patient's data.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::io::{BufRead, BufReader, Read};

use hashbrown::HashMap;
use pais_core::definition::{ColumnKind, ColumnRole};
use pais_core::rejection::Fault;
use pais_core::schema::{Schema, SchemaColumn, no_subject};
use pais_core::table::{MAX_FAULTS, ReadError, Table};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::read::cells::{Refusal, SetCell, oversized};
use crate::read::chunk_builder::{ChunkBuilder, RECORD_BYTES, undecodable};
use crate::read::failure::{ChunkSink, read_into};
use crate::read::header::{self, ExpectedColumn, Target};
use crate::read::identifiers::IdentifierCells;
use crate::read::set_columns::SetColumns;
use crate::read::{IdentifierRepeats, ReadFailure, ReadLimits};

/// Reads an NDJSON file and passes its rows to `chunk`, in chunks of the stored columns. Returns
/// the number of rows.
///
/// One pass over the bytes. A cell costs one hash look-up, or two in a spelling that is not
/// canonical; a distinct spelling of a chunk costs one check and one allocation. Memory is one chunk and one record.
///
/// # Errors
/// As [`ReadFailure`].
pub fn read<E>(
    schema: &Schema,
    source: impl Read,
    limits: ReadLimits,
    chunk: impl FnMut(Table) -> Result<(), E>,
) -> Result<u64, ReadFailure<E>> {
    read_counting(schema, source, limits, None, chunk)
}

/// As [`read`], and counts the rows whose identifiers occurred before.
///
/// # Errors
/// As [`read`].
pub fn read_counting<E>(
    schema: &Schema,
    mut source: impl Read,
    limits: ReadLimits,
    repeats: Option<&mut IdentifierRepeats>,
    chunk: impl FnMut(Table) -> Result<(), E>,
) -> Result<u64, ReadFailure<E>> {
    read_into(chunk, |chunk| {
        read_chunks(schema, &mut source, limits, repeats, chunk)
    })
}

fn read_chunks<'s>(
    schema: &'s Schema,
    source: &mut dyn Read,
    limits: ReadLimits,
    repeats: Option<&'s mut IdentifierRepeats>,
    chunk: &'s mut ChunkSink<'s>,
) -> Result<u64, ReadFailure<Infallible>> {
    let mut lines = RecordLines::new(source);
    let mut keys = KeyIndex::new(schema);
    let names: Vec<&[u8]> = keys.columns.iter().map(|it| it.name.as_bytes()).collect();
    let mut builder = ChunkBuilder::new(schema, limits, chunk);
    builder.count_identifiers(repeats.map(|it| IdentifierCells::new(it, schema, &names)));
    let mut sets = SetColumns::new(schema);
    while let Some((number, line)) = lines.next()? {
        let record = keys.parse(number, line)?;
        if !record.is_valid() {
            record
                .faults(number, &keys)
                .for_each(|fault| builder.add_fault(fault));
        } else {
            for (value, column) in record.values.iter().zip(&keys.columns) {
                // A valid record has a value for each column.
                let value = value.map_or("null", RawValue::get);
                match column.target {
                    Target::Cell(slot) => push(&mut builder, slot, value, number)?,
                    Target::Item(item) => put(&mut sets, item, value, limits.cell_bytes),
                }
            }
            sets.end_row(&mut builder, || number)?;
            builder.end_row()?;
        }
    }
    builder.finish("the file has no records; a submission needs at least one")
}

/// The keys of the first record, for a caller that needs the columns of a file before it reads the
/// rows. Empty if there is no record.
///
/// # Errors
/// As [`read`].
pub fn names(source: impl Read) -> Result<Vec<String>, ReadFailure<Infallible>> {
    let mut lines = RecordLines::new(source);
    let Some((number, line)) = lines.next()? else {
        return Ok(Vec::new());
    };
    let record: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(line).map_err(|error| malformed(number, &error))?;
    Ok(record.into_iter().map(|(key, _)| key).collect())
}

/// The lines that contain records, each with its record number.
struct RecordLines<R> {
    source: BufReader<R>,
    line: Vec<u8>,
    records: u64,
    started: bool,
}

impl<R: Read> RecordLines<R> {
    fn new(source: R) -> Self {
        Self {
            source: BufReader::with_capacity(128 << 10, source),
            line: Vec::new(),
            records: 0,
            started: false,
        }
    }

    fn next<E>(&mut self) -> Result<Option<(u64, &str)>, ReadFailure<E>> {
        let number = self.records + 1;
        loop {
            self.line.clear();
            let read = (&mut self.source)
                .take(RECORD_BYTES + 1)
                .read_until(b'\n', &mut self.line)
                .map_err(ReadFailure::source)?;
            if read == 0 {
                return Ok(None);
            }
            if read as u64 > RECORD_BYTES {
                let detail = format!("a record is longer than {} MiB", RECORD_BYTES >> 20);
                return Err(undecodable(number, None, &detail).into());
            }
            if !std::mem::replace(&mut self.started, true)
                && self.line.starts_with("\u{feff}".as_bytes())
            {
                self.line.drain(.."\u{feff}".len());
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        self.records = number;
        match std::str::from_utf8(&self.line) {
            Ok(line) => Ok(Some((number, line))),
            Err(_) => Err(undecodable(number, None, "the record is not UTF-8").into()),
        }
    }
}

/// The declared columns, found by key.
struct KeyIndex<'s> {
    columns: Vec<ExpectedColumn<'s>>,
    by_name: HashMap<&'s str, usize>,
    /// The columns of the last record's keys, in order. The next record most likely has the same
    /// order, which avoids the look-up.
    order: Vec<usize>,
}

impl<'s> KeyIndex<'s> {
    fn new(schema: &'s Schema) -> Self {
        let columns = header::expected(schema);
        Self {
            by_name: columns.iter().map(|it| it.name).zip(0..).collect(),
            order: Vec::new(),
            columns,
        }
    }

    fn find(&mut self, position: usize, key: &str) -> Option<usize> {
        if let Some(&column) = self.order.get(position)
            && self.columns[column].name == key
        {
            return Some(column);
        }
        let column = self.by_name.get(key).copied()?;
        self.order.truncate(position);
        if self.order.len() == position {
            self.order.push(column);
        }
        Some(column)
    }

    fn parse<'l>(&mut self, number: u64, line: &'l str) -> Result<RawRecord<'l>, ReadError> {
        let mut deserializer = serde_json::Deserializer::from_str(line);
        let record = deserializer.deserialize_map(RecordVisitor(self));
        let record = record.and_then(|record| deserializer.end().map(|()| record));
        let record = record.map_err(|error| malformed(number, &error))?;
        if record.nul {
            return Err(undecodable(
                number,
                None,
                "a key contains the character NUL",
            ));
        }
        Ok(record)
    }
}

fn malformed(number: u64, error: &serde_json::Error) -> ReadError {
    use serde_json::error::Category;
    let detail = match error.classify() {
        Category::Data => "the record is not a JSON object; write one object per line".to_owned(),
        Category::Eof => "the record is incomplete; write each object on one line".to_owned(),
        Category::Syntax | Category::Io => {
            format!(
                "the record is not valid JSON at its column {}",
                error.column()
            )
        }
    };
    undecodable(number, None, &detail)
}

/// The values of a record, by column.
struct RawRecord<'l> {
    values: Vec<Option<&'l RawValue>>,
    undeclared: usize,
    repeated: Vec<usize>,
    nul: bool,
}

impl RawRecord<'_> {
    fn is_valid(&self) -> bool {
        self.undeclared == 0 && self.repeated.is_empty() && self.values.iter().all(Option::is_some)
    }

    fn faults<'k>(&'k self, number: u64, keys: &'k KeyIndex) -> impl Iterator<Item = Fault> + 'k {
        let undeclared = (self.undeclared > 0).then(|| {
            let detail = format!("{} keys of the record are not declared", self.undeclared);
            let one = "a key of the record is not declared".to_owned();
            Fault::record(number, if self.undeclared == 1 { one } else { detail })
                .fix("remove these keys, or declare them as columns")
        });
        let repeated = self.repeated.iter().take(MAX_FAULTS).map(move |&column| {
            let detail = "the record has this key more than once";
            Fault::cell(number, keys.columns[column].name, detail)
        });
        let values = self.values.iter().zip(&keys.columns);
        let absent = values.filter(|(value, _)| value.is_none());
        let absent = absent.take(MAX_FAULTS).map(move |(_, column)| {
            Fault::cell(
                number,
                column.name,
                "the record does not have this declared column",
            )
            .fix("write null if the value is unknown")
        });
        undeclared.into_iter().chain(repeated).chain(absent)
    }
}

struct RecordVisitor<'k, 's>(&'k mut KeyIndex<'s>);

impl<'l> Visitor<'l> for RecordVisitor<'_, '_> {
    type Value = RawRecord<'l>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<RawRecord<'l>, A::Error> {
        let mut record = RawRecord {
            values: vec![None; self.0.columns.len()],
            undeclared: 0,
            repeated: Vec::new(),
            nul: false,
        };
        let mut position = 0;
        while let Some(RecordKey(key)) = map.next_key::<RecordKey<'l>>()? {
            record.nul |= key.contains('\0');
            let column = self.0.find(position, &key);
            position += 1;
            let value: &'l RawValue = map.next_value()?;
            match column {
                None => record.undeclared += 1,
                Some(column) if record.values[column].is_some() => record.repeated.push(column),
                Some(column) => record.values[column] = Some(value),
            }
        }
        Ok(record)
    }
}

/// A key; borrowed unless it has escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct RecordKey<'l>(#[serde(borrow)] Cow<'l, str>);

/// Bytes of JSON for each byte of a cell, from which on a value is refused before it is decoded: a
/// character takes at most six as an escape, and an array has its quotes.
const ESCAPED_BYTES: usize = 8;

fn push(
    builder: &mut ChunkBuilder<'_>,
    slot: Option<usize>,
    value: &str,
    number: u64,
) -> Result<(), ReadError> {
    let spec = slot.map(|slot| builder.spec(slot));
    let limit = builder.cell_bytes();
    let refusal = match value.as_bytes() {
        _ if value.len() > limit.saturating_mul(ESCAPED_BYTES) => oversized(limit),
        [b'n', ..] if spec.is_some_and(|spec| spec.role() == ColumnRole::Subject) => {
            Refusal::Unfit(no_subject())
        }
        [b'n', ..] => {
            builder.push_null(slot);
            return Ok(());
        }
        [b'[' | b'{', ..] => match nested(spec, value, limit) {
            Ok(cell) => return builder.push_cell(slot, cell.as_bytes(), || number),
            Err(refusal) => refusal,
        },
        _ => match scalar(value) {
            Err(refusal) => refusal,
            Ok(_) if is_unfit_boolean(spec, value) => {
                Refusal::unfit("the value is true or false, and the column is not categorical")
            }
            Ok(text) => return builder.push_cell(slot, text.as_bytes(), || number),
        },
    };
    builder.refuse_cell(slot, refusal, number)
}

/// Puts a value into a set that is made of several columns.
fn put(sets: &mut SetColumns<'_>, item: usize, value: &str, limit: usize) {
    match value.as_bytes() {
        _ if value.len() > limit.saturating_mul(ESCAPED_BYTES) => {
            sets.refuse(item, oversized(limit));
        }
        [b'n', ..] => {}
        [b'[' | b'{', ..] => {
            let detail = "the value is an array or object; a column of a set has one item";
            let fix = "write a string or a number";
            sets.refuse(
                item,
                decodable(value)
                    .err()
                    .unwrap_or_else(|| Refusal::unfit(detail).fix(fix)),
            );
        }
        _ => match scalar(value) {
            Err(refusal) => sets.refuse(item, refusal),
            Ok(text) => sets.put(item, text.as_bytes(), limit),
        },
    }
}

fn is_unfit_boolean(spec: Option<&SchemaColumn>, value: &str) -> bool {
    matches!(value.as_bytes()[0], b't' | b'f')
        && spec.is_some_and(|spec| spec.kind() != ColumnKind::Categorical)
}

/// The text of a string, or a number or boolean as it is written.
fn scalar(value: &str) -> Result<Cow<'_, str>, Refusal> {
    let Some(inner) = value.strip_prefix('"') else {
        return Ok(Cow::Borrowed(value));
    };
    match inner.strip_suffix('"') {
        Some(inner) if !inner.contains('\\') => Ok(Cow::Borrowed(inner)),
        // Until here escapes were only skipped. Half of a surrogate pair is found now.
        _ => serde_json::from_str(value)
            .map(Cow::Owned)
            .map_err(|_| Refusal::Undecodable("a string has an escape that is not a character")),
    }
}

/// The cell of an array. For an identifier, which is not stored, any array or object is accepted.
fn nested(spec: Option<&SchemaColumn>, value: &str, limit: usize) -> Result<String, Refusal> {
    decodable(value)?;
    let Some(spec) = spec else {
        return Ok(String::new());
    };
    if spec.kind() != ColumnKind::Set || value.starts_with('{') {
        let detail = "the value is an array or object; only a set takes an array";
        return Err(Refusal::unfit(detail).fix("write a string or a number"));
    }
    let items: Vec<&RawValue> = serde_json::from_str(value)
        .map_err(|_| Refusal::Undecodable("an array cannot be decoded"))?;
    let mut cell = SetCell::new(spec, limit);
    for item in items {
        let item = item.get();
        // Missing among other items.
        if item == "null" {
            continue;
        }
        if matches!(item.as_bytes()[0], b'[' | b'{') {
            let detail = "an item of the set is not a string, a number or a boolean";
            return Err(Refusal::unfit(detail));
        }
        cell.add(&scalar(item)?)?;
    }
    cell.text().map(str::to_owned)
}

/// Checks that all strings in an array or object are valid text without NUL.
fn decodable(value: &str) -> Result<(), Refusal> {
    let has_nul_escape = memchr::memmem::find(value.as_bytes(), br"\u0000").is_some();
    let read: Result<serde_json::Value, _> = serde_json::from_str(value);
    match read {
        Err(_) => Err(Refusal::Undecodable(
            "a value is nested too deeply or has an escape that is not a character",
        )),
        Ok(value) if has_nul_escape && has_nul(&value) => {
            Err(Refusal::Undecodable("a cell contains the character NUL"))
        }
        Ok(_) => Ok(()),
    }
}

fn has_nul(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::String(text) => text.contains('\0'),
        serde_json::Value::Array(items) => items.iter().any(has_nul),
        serde_json::Value::Object(object) => object
            .iter()
            .any(|(key, value)| key.contains('\0') || has_nul(value)),
        _ => false,
    }
}
