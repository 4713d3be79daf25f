//! NDJSON submissions: one JSON object a line, its keys the declared columns in any order.
//!
//! Numbers are taken as they are written, so that 1.50 stays 1.50 and no digit is lost. Blank
//! lines are skipped. Lines in faults are numbers of records. Keys and values are never
//! repeated: a key may be a patient's, too.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::io::{BufRead, BufReader, Read};

use hashbrown::HashMap;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::definition::{ColumnKind, ColumnRole};
use crate::rejection::Fault;
use crate::read::{ReadError, ReadFailure};

use crate::read::cells::{Refusal, SetCell};
use crate::read::intake::{Intake, RECORD_BYTES, undecodable};
use crate::schema::{Schema, SchemaColumn};
use crate::table::Table;

/// Reads an NDJSON file and hands its rows on in chunks of the stored columns.
///
/// One pass over the bytes; a cell costs one hash look-up, a distinct value of a chunk one
/// check and one allocation. Memory is one chunk and one record.
///
/// # Errors
/// As [`ReadFailure`].
pub fn read<E>(
    schema: &Schema,
    source: impl Read,
    chunk: impl FnMut(Table) -> Result<(), E>,
) -> Result<u64, ReadFailure<E>> {
    let mut lines = Lines::new(source);
    let mut keys = Keys::new(schema);
    let mut intake = Intake::new(schema, chunk);
    while let Some((number, line)) = lines.next()? {
        let record = keys.parse(number, line)?;
        if !record.fits() {
            record
                .faults(number, &keys)
                .for_each(|fault| intake.fault(fault));
        } else {
            for (value, &slot) in record.values.iter().zip(&keys.slots) {
                // A record that fits has a value for each column.
                let value = value.map_or("null", RawValue::get);
                push(&mut intake, slot, value, number)?;
            }
        }
        if intake.is_refused() {
            break;
        }
        if record.fits() {
            intake.end_row()?;
        }
    }
    intake.finish("the file has no record; a submission needs at least one")
}

/// The keys of the first record, for a caller that must know a file's columns before it reads
/// them; empty where there is no record.
///
/// # Errors
/// As [`read`].
pub fn names(source: impl Read) -> Result<Vec<String>, ReadFailure<Infallible>> {
    let mut lines = Lines::new(source);
    let Some((number, line)) = lines.next()? else {
        return Ok(Vec::new());
    };
    let record: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(line).map_err(|error| malformed(number, &error))?;
    Ok(record.into_iter().map(|(key, _)| key).collect())
}

/// The lines that hold records, each with its record's number.
struct Lines<R> {
    source: BufReader<R>,
    line: Vec<u8>,
    records: u64,
    started: bool,
}

impl<R: Read> Lines<R> {
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
            Err(_) => Err(undecodable(number, None, "the record is no UTF-8").into()),
        }
    }
}

/// The declared columns, found by key.
struct Keys<'s> {
    names: Vec<&'s str>,
    slots: Vec<Option<usize>>,
    by_name: HashMap<&'s str, usize>,
    /// The columns of the last record's keys: the next record has most likely the same.
    order: Vec<usize>,
}

impl<'s> Keys<'s> {
    fn new(schema: &'s Schema) -> Self {
        let mut stored = 0..;
        let slots = schema.columns.iter().map(|column| match column.role {
            ColumnRole::Identifier => None,
            _ => stored.next(),
        });
        let names: Vec<&str> = schema.columns.iter().map(|column| &*column.name).collect();
        Self {
            slots: slots.collect(),
            by_name: names.iter().copied().zip(0..).collect(),
            order: Vec::new(),
            names,
        }
    }

    fn find(&mut self, position: usize, key: &str) -> Option<usize> {
        if let Some(&column) = self.order.get(position)
            && self.names[column] == key
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

    fn parse<'l>(&mut self, number: u64, line: &'l str) -> Result<Record<'l>, ReadError> {
        let mut deserializer = serde_json::Deserializer::from_str(line);
        let record = deserializer.deserialize_map(RecordVisitor(self));
        let record = record.and_then(|record| deserializer.end().map(|()| record));
        let record = record.map_err(|error| malformed(number, &error))?;
        if record.nul {
            return Err(undecodable(number, None, "a key holds the character NUL"));
        }
        Ok(record)
    }
}

fn malformed(number: u64, error: &serde_json::Error) -> ReadError {
    use serde_json::error::Category;
    let detail = match error.classify() {
        Category::Data => "the record is no JSON object; write one object a line".to_owned(),
        Category::Eof => {
            "the record ends too early; write each object on a line of its own".to_owned()
        }
        Category::Syntax | Category::Io => {
            format!(
                "the record is no JSON from its column {} on",
                error.column()
            )
        }
    };
    undecodable(number, None, &detail)
}

/// The values of a record, by column.
struct Record<'l> {
    values: Vec<Option<&'l RawValue>>,
    undeclared: usize,
    repeated: Vec<usize>,
    nul: bool,
}

impl Record<'_> {
    fn fits(&self) -> bool {
        self.undeclared == 0 && self.repeated.is_empty() && self.values.iter().all(Option::is_some)
    }

    fn faults<'k>(&'k self, number: u64, keys: &'k Keys) -> impl Iterator<Item = Fault> + 'k {
        let undeclared = (self.undeclared > 0).then(|| {
            let detail = format!("{} keys of the record are not declared", self.undeclared);
            let one = "a key of the record is not declared".to_owned();
            Fault::record(number, if self.undeclared == 1 { one } else { detail })
                .fix("remove what is not declared, or declare it")
        });
        let repeated = self.repeated.iter().map(move |&column| {
            let detail = "the record has this key more than once";
            Fault::cell(number, keys.names[column], detail)
        });
        let values = self.values.iter().zip(&keys.names);
        let lacking = values.filter(|(value, _)| value.is_none());
        let lacking = lacking.map(move |(_, name)| {
            Fault::cell(number, *name, "the record lacks this declared column")
                .fix("write null where nothing is known")
        });
        undeclared.into_iter().chain(repeated).chain(lacking)
    }
}

struct RecordVisitor<'k, 's>(&'k mut Keys<'s>);

impl<'l> Visitor<'l> for RecordVisitor<'_, '_> {
    type Value = Record<'l>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<Record<'l>, A::Error> {
        let mut record = Record {
            values: vec![None; self.0.names.len()],
            undeclared: 0,
            repeated: Vec::new(),
            nul: false,
        };
        let mut position = 0;
        while let Some(Key(key)) = map.next_key::<Key<'l>>()? {
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

/// A key, borrowed unless it has escapes.
struct Key<'l>(Cow<'l, str>);

impl<'l> serde::Deserialize<'l> for Key<'l> {
    fn deserialize<D: Deserializer<'l>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'l> Visitor<'l> for KeyVisitor {
            type Value = Key<'l>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, key: &'l str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(key)))
            }
            fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

fn push<E, F: FnMut(Table) -> Result<(), E>>(
    intake: &mut Intake<'_, F>,
    slot: Option<usize>,
    value: &str,
    number: u64,
) -> Result<bool, ReadError> {
    let spec = slot.map(|slot| intake.spec(slot));
    let refusal = match value.as_bytes() {
        [b'n', ..] => {
            intake.null(slot);
            return Ok(true);
        }
        [b'[' | b'{', ..] => match nested(spec, value) {
            Ok(cell) => return intake.cell(slot, cell.as_bytes(), || number),
            Err(refusal) => refusal,
        },
        _ => match scalar(value) {
            Err(refusal) => refusal,
            Ok(_) if is_unfit_boolean(spec, value) => unfit(
                "the value is true or false, and the column is not categorical",
                None,
            ),
            Ok(text) => return intake.cell(slot, text.as_bytes(), || number),
        },
    };
    intake.refuse_cell(slot, refusal, number)
}

fn unfit(detail: &str, fix: Option<&str>) -> Refusal {
    Refusal::Unfit {
        detail: detail.to_owned(),
        fix: fix.map(str::to_owned),
    }
}

fn is_unfit_boolean(spec: Option<&SchemaColumn>, value: &str) -> bool {
    matches!(value.as_bytes()[0], b't' | b'f')
        && spec.is_some_and(|spec| spec.kind != ColumnKind::Categorical)
}

/// The text of a string, or a number or boolean as it is written.
fn scalar(value: &str) -> Result<Cow<'_, str>, Refusal> {
    let Some(inner) = value.strip_prefix('"') else {
        return Ok(Cow::Borrowed(value));
    };
    match inner.strip_suffix('"') {
        Some(inner) if !inner.contains('\\') => Ok(Cow::Borrowed(inner)),
        // Escapes are only skipped over until here; half a surrogate pair is found now.
        _ => serde_json::from_str(value)
            .map(Cow::Owned)
            .map_err(|_| Refusal::Undecodable("a string has an escape that is no character")),
    }
}

/// The cell of an array; that of an identifier, which is dropped, whatever it is.
fn nested(spec: Option<&SchemaColumn>, value: &str) -> Result<String, Refusal> {
    decodable(value)?;
    let Some(spec) = spec else {
        return Ok(String::new());
    };
    if spec.kind != ColumnKind::Set || value.starts_with('{') {
        let detail = "the value is an array or object; only a set takes an array";
        return Err(unfit(detail, Some("write a string or a number")));
    }
    let items: Vec<&RawValue> =
        serde_json::from_str(value).map_err(|_| Refusal::Undecodable("an array cannot be read"))?;
    let mut cell = SetCell::new(spec);
    for item in items {
        let item = item.get();
        if matches!(item.as_bytes()[0], b'[' | b'{' | b'n') {
            let detail = "an item of the set is neither string, number nor boolean";
            return Err(unfit(detail, None));
        }
        cell.add(&scalar(item)?)?;
    }
    cell.text().map(str::to_owned)
}

/// Whether all strings in an array or object are text without NUL.
fn decodable(value: &str) -> Result<(), Refusal> {
    let holds_nul = memchr::memmem::find(value.as_bytes(), br"\u0000").is_some();
    let read: Result<serde_json::Value, _> = serde_json::from_str(value);
    match read {
        Err(_) => Err(Refusal::Undecodable(
            "a value is nested too deeply or has an escape that is no character",
        )),
        Ok(value) if holds_nul && has_nul(&value) => {
            Err(Refusal::Undecodable("a cell holds the character NUL"))
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
