//! Reads the footer of a Parquet file, with bounds.
//!
//! The parquet crate reads a footer recursively, and allocates for the numbers that it claims; a
//! small file could end the process. So the crate never sees the footer: it is read here, and the
//! crate gets the metadata that decoding rows needs. Statistics, indexes, bloom filters and
//! key-value metadata are skipped.

use std::io::{self, Read};
use std::sync::Arc;

use pais_core::table::{ReadError, ReadErrorKind};
use parquet::basic::{
    CompressionCodec, ConvertedType, LogicalType, Repetition, TimeUnit, Type as PhysicalType,
};
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, RowGroupMetaData,
};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::{ColumnDescPtr, SchemaDescPtr, SchemaDescriptor, Type, TypePtr};

use crate::read::parquet_thrift::{CompactReader, ThriftType, invalid};

/// The bytes after the footer: its length and the magic number.
const TAIL_BYTES: u64 = 8;

/// Maximum size of a footer, in bytes. Statistics are the larger part of a footer.
const FOOTER_BYTES: u64 = 16 << 20;

/// Maximum number of row groups.
const ROW_GROUPS: u64 = 16_384;

/// Maximum number of column chunks of all row groups. The parquet crate takes some 400 bytes for
/// each.
const COLUMN_CHUNKS: u64 = 131_072;

/// Reads the footer.
///
/// # Errors
/// If it is damaged, encrypted, or beyond a bound.
pub(super) fn read(source: &impl ChunkReader) -> Result<ParquetMetaData, ReadError> {
    read_bounded(source).map_err(|error| match error.downcast::<ReadError>() {
        Ok(error) => error,
        Err(_) => damaged(),
    })
}

/// The error of a file that cannot be decoded.
pub(super) fn damaged() -> ReadError {
    ReadError::new(
        ReadErrorKind::Malformed,
        "the file cannot be decoded: it is not a Parquet file, or it is damaged",
    )
}

/// An error that says what is wrong.
pub(super) fn refusal(kind: ReadErrorKind, detail: impl Into<String>) -> io::Error {
    io::Error::other(ReadError::new(kind, detail))
}

fn read_bounded(source: &impl ChunkReader) -> io::Result<ParquetMetaData> {
    let length = source.len();
    let tail_at = length.checked_sub(TAIL_BYTES).ok_or_else(invalid)?;
    let mut tail = [0; TAIL_BYTES as usize];
    let mut input = source.get_read(tail_at).map_err(io::Error::other)?;
    input.read_exact(&mut tail)?;
    let [a, b, c, d, magic @ ..] = tail;
    match &magic {
        b"PAR1" => {}
        b"PARE" => return Err(encrypted()),
        _ => return Err(invalid()),
    }
    let footer_bytes = u64::from(u32::from_le_bytes([a, b, c, d]));
    let footer_at = tail_at.checked_sub(footer_bytes).ok_or_else(invalid)?;
    if footer_bytes > FOOTER_BYTES {
        let detail = format!(
            "the footer of the Parquet file has {footer_bytes} bytes, more than {} MiB; write the \
             file with fewer row groups, or without statistics",
            FOOTER_BYTES >> 20
        );
        return Err(refusal(ReadErrorKind::TooLarge, detail));
    }
    let mut footer = Vec::new();
    let input = source.get_read(footer_at).map_err(io::Error::other)?;
    input.take(footer_bytes).read_to_end(&mut footer)?;
    let mut thrift = CompactReader::new(&*footer, footer_bytes);
    Footer::read(&mut thrift)?.metadata(tail_at)
}

/// What is used of the metadata of a file.
#[derive(Default)]
struct Footer {
    elements: Vec<SchemaElement>,
    rows: i64,
    groups: Vec<RowGroup>,
}

#[derive(Default)]
struct RowGroup {
    columns: Vec<ColumnChunk>,
    rows: i64,
}

/// A column of a row group. Offsets and sizes are in bytes.
#[derive(Default)]
struct ColumnChunk {
    codec: i32,
    values: i64,
    decoded: i64,
    stored: i64,
    data_offset: Option<i64>,
    dictionary_offset: Option<i64>,
}

impl Footer {
    fn read(input: &mut CompactReader<&[u8]>) -> io::Result<Self> {
        let mut footer = Self::default();
        let mut chunks = 0;
        let mut field = 0;
        while let Some(kind) = input.field(&mut field)? {
            match (field, kind) {
                (2, ThriftType::List) => footer.elements = elements(input)?,
                (3, ThriftType::Integer) => footer.rows = size(input)?,
                (4, ThriftType::List) => footer.groups = row_groups(input, &mut chunks)?,
                (2..=4, _) => return Err(invalid()),
                (8 | 9, _) => return Err(encrypted()),
                _ => input.skip(kind)?,
            }
        }
        Ok(footer)
    }

    /// The metadata for the parquet crate. `end` is the offset at which the pages end at the
    /// latest.
    fn metadata(self, end: u64) -> io::Result<ParquetMetaData> {
        let schema = Arc::new(descriptor(self.elements)?);
        let mut groups = Vec::with_capacity(self.groups.len());
        let mut rows = 0i64;
        for group in self.groups {
            rows = rows.checked_add(group.rows).ok_or_else(invalid)?;
            groups.push(group.metadata(&schema, end)?);
        }
        if rows != self.rows {
            return Err(invalid());
        }
        let file = FileMetaData::new(2, rows, None, None, schema, None);
        Ok(ParquetMetaData::new(file, groups))
    }
}

/// Reads the row groups, and adds the number of their column chunks to `chunks`.
fn row_groups(input: &mut CompactReader<&[u8]>, chunks: &mut u64) -> io::Result<Vec<RowGroup>> {
    let count = input.structs()?;
    claimed(count, "row groups", input)?;
    if count > ROW_GROUPS {
        let detail = format!(
            "the Parquet file has {count} row groups, more than {ROW_GROUPS}; write larger row \
             groups"
        );
        return Err(refusal(ReadErrorKind::TooLarge, detail));
    }
    (0..count).map(|_| RowGroup::read(input, chunks)).collect()
}

impl RowGroup {
    fn read(input: &mut CompactReader<&[u8]>, chunks: &mut u64) -> io::Result<Self> {
        let mut group = Self::default();
        let mut field = 0;
        while let Some(kind) = input.field(&mut field)? {
            match (field, kind) {
                (1, ThriftType::List) => {
                    let count = input.structs()?;
                    claimed(count, "columns of a row group", input)?;
                    *chunks += count;
                    if *chunks > COLUMN_CHUNKS {
                        let detail = format!(
                            "the Parquet file has more than {COLUMN_CHUNKS} columns in all of its \
                             row groups; write larger row groups"
                        );
                        return Err(refusal(ReadErrorKind::TooLarge, detail));
                    }
                    let columns = (0..count).map(|_| ColumnChunk::read(input));
                    group.columns = columns.collect::<Result<_, _>>()?;
                }
                (3, ThriftType::Integer) => group.rows = size(input)?,
                (1 | 3, _) => return Err(invalid()),
                _ => input.skip(kind)?,
            }
        }
        Ok(group)
    }

    fn metadata(self, schema: &SchemaDescPtr, end: u64) -> io::Result<RowGroupMetaData> {
        if self.columns.len() != schema.num_columns() {
            return Err(invalid());
        }
        let columns = self.columns.into_iter().zip(schema.columns());
        let columns = columns
            .map(|(column, leaf)| column.metadata(leaf, end))
            .collect::<Result<_, _>>()?;
        RowGroupMetaData::builder(schema.clone())
            .set_num_rows(self.rows)
            .set_column_metadata(columns)
            .build()
            .map_err(io::Error::other)
    }
}

impl ColumnChunk {
    fn read(input: &mut CompactReader<&[u8]>) -> io::Result<Self> {
        let mut column = Self::default();
        let mut field = 0;
        while let Some(kind) = input.field(&mut field)? {
            match (field, kind) {
                // The pages are in another file.
                (1, _) => return Err(invalid()),
                (3, ThriftType::Struct) => column.read_metadata(input)?,
                (3, _) => return Err(invalid()),
                (8 | 9, _) => return Err(encrypted()),
                _ => input.skip(kind)?,
            }
        }
        Ok(column)
    }

    fn read_metadata(&mut self, input: &mut CompactReader<&[u8]>) -> io::Result<()> {
        let mut field = 0;
        while let Some(kind) = input.field(&mut field)? {
            match (field, kind) {
                (4, ThriftType::Integer) => self.codec = input.integer32()?,
                (5, ThriftType::Integer) => self.values = size(input)?,
                (6, ThriftType::Integer) => self.decoded = size(input)?,
                (7, ThriftType::Integer) => self.stored = size(input)?,
                (9, ThriftType::Integer) => self.data_offset = Some(size(input)?),
                (11, ThriftType::Integer) => self.dictionary_offset = Some(size(input)?),
                (4..=7 | 9 | 11, _) => return Err(invalid()),
                _ => input.skip(kind)?,
            }
        }
        Ok(())
    }

    fn metadata(self, leaf: &ColumnDescPtr, end: u64) -> io::Result<ColumnChunkMetaData> {
        let mut codecs = CompressionCodec::VARIANTS.iter();
        let codec = *codecs
            .find(|codec| **codec as i32 == self.codec)
            .ok_or_else(invalid)?;
        if matches!(codec, CompressionCodec::LZO | CompressionCodec::BROTLI) {
            let detail = format!(
                "the file is compressed by {codec}, which is not read; write it with zstd, snappy, gzip, lz4 or \
                 without compression"
            );
            return Err(refusal(ReadErrorKind::Malformed, detail));
        }
        let data_offset = self.data_offset.ok_or_else(invalid)?;
        // Some writers give 0 where there is no dictionary.
        let dictionary_offset = self.dictionary_offset.filter(|&offset| offset > 0);
        let column = ColumnChunkMetaData::builder(leaf.clone())
            .set_compression_codec(codec)
            .set_num_values(self.values)
            .set_total_uncompressed_size(self.decoded)
            .set_total_compressed_size(self.stored)
            .set_data_page_offset(data_offset)
            .set_dictionary_page_offset(dictionary_offset)
            .build()
            .map_err(io::Error::other)?;
        let (start, length) = column.byte_range();
        match start.checked_add(length) {
            Some(pages_end) if pages_end <= end => Ok(column),
            _ => Err(invalid()),
        }
    }
}

/// An integer that is not negative, as the parquet crate takes it.
fn size(input: &mut CompactReader<&[u8]>) -> io::Result<i64> {
    Ok(input.size()?.cast_signed())
}

/// Checks a claimed number of structs against the bytes that are left, of which each takes one.
pub(super) fn claimed(count: u64, what: &str, input: &CompactReader<&[u8]>) -> io::Result<()> {
    if count <= input.remaining() {
        return Ok(());
    }
    let detail = format!(
        "the file cannot be decoded: its footer claims {count} {what} in {} bytes",
        input.remaining()
    );
    Err(refusal(ReadErrorKind::Malformed, detail))
}

fn encrypted() -> io::Error {
    let detail = "the Parquet file is encrypted; write it without encryption";
    refusal(ReadErrorKind::Malformed, detail)
}

/// Maximum number of columns and groups.
const ELEMENTS: u64 = 16_384;

/// Maximum number of groups in each other. A list has two.
const DEPTH: usize = 16;

/// Maximum bytes of a name.
const NAME_BYTES: u64 = 4096;

/// Maximum bytes of the paths of all columns: the names of a column's groups and its own.
const PATH_BYTES: usize = 16 << 20;

/// Maximum bytes of a value of fixed length.
const FIXED_BYTES: i32 = 4096;

/// A column or group of the schema. Groups come before their children.
#[derive(Default)]
pub(super) struct SchemaElement {
    physical: Option<PhysicalType>,
    length: Option<i32>,
    repetition: Option<Repetition>,
    name: String,
    children: u64,
    converted: Option<ConvertedType>,
    scale: Option<i32>,
    precision: Option<i32>,
    logical: Option<LogicalType>,
}

/// Reads the list of elements.
///
/// # Errors
/// If it is damaged or beyond a bound.
pub(super) fn elements(input: &mut CompactReader<&[u8]>) -> io::Result<Vec<SchemaElement>> {
    let count = input.structs()?;
    claimed(count, "columns", input)?;
    if count > ELEMENTS {
        let detail =
            format!("the Parquet file has {count} columns and groups, more than {ELEMENTS}");
        return Err(refusal(ReadErrorKind::TooLarge, detail));
    }
    (0..count).map(|_| SchemaElement::read(input)).collect()
}

impl SchemaElement {
    fn read(input: &mut CompactReader<&[u8]>) -> io::Result<Self> {
        let mut element = Self::default();
        let mut field = 0;
        while let Some(kind) = input.field(&mut field)? {
            match (field, kind) {
                (1, ThriftType::Integer) => {
                    element.physical =
                        Some(variant(PhysicalType::VARIANTS, |it| it as i32, input)?);
                }
                (2, ThriftType::Integer) => element.length = Some(input.integer32()?),
                (3, ThriftType::Integer) => {
                    element.repetition =
                        Some(variant(Repetition::VARIANTS, |it| it as i32, input)?);
                }
                (4, ThriftType::Binary) => element.name = input.text(NAME_BYTES)?,
                (5, ThriftType::Integer) => element.children = input.size32()?,
                (6, ThriftType::Integer) => {
                    element.converted =
                        Some(variant(ConvertedType::VARIANTS, |it| it as i32, input)?);
                }
                (7, ThriftType::Integer) => element.scale = Some(input.integer32()?),
                (8, ThriftType::Integer) => element.precision = Some(input.integer32()?),
                (10, ThriftType::Struct) => element.logical = logical_type(input)?,
                (1..=8 | 10, _) => return Err(invalid()),
                _ => input.skip(kind)?,
            }
        }
        Ok(element)
    }

    fn is_group(&self) -> bool {
        self.children > 0
    }

    fn column(self) -> io::Result<Type> {
        let (Some(physical), Some(repetition)) = (self.physical, self.repetition) else {
            return Err(invalid());
        };
        let length = self.length.unwrap_or(-1);
        if physical == PhysicalType::FIXED_LEN_BYTE_ARRAY && !(1..=FIXED_BYTES).contains(&length) {
            let detail = format!(
                "a column of the Parquet file has values of {length} bytes; at least 1 and at most \
                 {FIXED_BYTES} are accepted"
            );
            return Err(refusal(ReadErrorKind::Malformed, detail));
        }
        Type::primitive_type_builder(&self.name, physical)
            .with_repetition(repetition)
            .with_converted_type(self.converted.unwrap_or(ConvertedType::NONE))
            .with_logical_type(self.logical)
            .with_length(length)
            .with_precision(self.precision.unwrap_or(-1))
            .with_scale(self.scale.unwrap_or(-1))
            .build()
            .map_err(io::Error::other)
    }
}

/// A group whose children are not complete.
struct OpenGroup {
    element: SchemaElement,
    fields: Vec<TypePtr>,
    /// Bytes of the names from the first level below the root to this group.
    path_bytes: usize,
}

impl OpenGroup {
    fn close(self, is_root: bool) -> io::Result<Type> {
        let mut group = Type::group_type_builder(&self.element.name)
            .with_converted_type(self.element.converted.unwrap_or(ConvertedType::NONE))
            .with_logical_type(self.element.logical)
            .with_fields(self.fields);
        if !is_root {
            group = group.with_repetition(self.element.repetition.ok_or_else(invalid)?);
        }
        group.build().map_err(io::Error::other)
    }
}

/// The schema for the parquet crate, which reads it recursively.
///
/// # Errors
/// If groups are too deep, or the numbers of their children do not add up.
pub(super) fn descriptor(elements: Vec<SchemaElement>) -> io::Result<SchemaDescriptor> {
    let mut open: Vec<OpenGroup> = Vec::new();
    let mut path_bytes = 0;
    let count = elements.len();
    for (index, element) in elements.into_iter().enumerate() {
        let parent = open.last().map_or(0, |group| group.path_bytes);
        let own = if index == 0 { 0 } else { element.name.len() };
        let complete = if index == 0 || element.is_group() {
            if element.children >= (count - index) as u64 {
                let detail = format!(
                    "the file cannot be decoded: a group of its schema claims {} children, and {} \
                     columns and groups follow",
                    element.children,
                    count - index - 1
                );
                return Err(refusal(ReadErrorKind::Malformed, detail));
            }
            if open.len() == DEPTH {
                let detail = format!(
                    "the schema of the Parquet file has more than {DEPTH} groups in each other"
                );
                return Err(refusal(ReadErrorKind::Malformed, detail));
            }
            open.push(OpenGroup {
                element,
                fields: Vec::new(),
                path_bytes: parent + own,
            });
            None
        } else {
            path_bytes += parent + own;
            if path_bytes > PATH_BYTES {
                let detail = "the names of the Parquet file's columns are too long";
                return Err(refusal(ReadErrorKind::TooLarge, detail));
            }
            Some(element.column()?)
        };
        if let Some(root) = close_complete(&mut open, complete)? {
            if index + 1 < count {
                return Err(invalid());
            }
            return Ok(SchemaDescriptor::new(root));
        }
    }
    Err(invalid())
}

/// Adds a complete column to its group, and closes the groups that are complete. Returns the root
/// once it is.
fn close_complete(
    open: &mut Vec<OpenGroup>,
    mut complete: Option<Type>,
) -> io::Result<Option<TypePtr>> {
    loop {
        let Some(mut group) = open.pop() else {
            return Ok(complete.map(Arc::new));
        };
        group.fields.extend(complete.take().map(Arc::new));
        if (group.fields.len() as u64) < group.element.children {
            open.push(group);
            return Ok(None);
        }
        complete = Some(group.close(open.is_empty())?);
    }
}

/// The logical type; `None` for one that gives no text form.
fn logical_type(input: &mut CompactReader<&[u8]>) -> io::Result<Option<LogicalType>> {
    let mut found = None;
    let mut field = 0;
    while let Some(kind) = input.field(&mut field)? {
        if kind != ThriftType::Struct {
            return Err(invalid());
        }
        let members = Members::read(input)?;
        found = match field {
            1 => Some(LogicalType::String),
            2 => Some(LogicalType::Map),
            3 => Some(LogicalType::List),
            4 => Some(LogicalType::Enum),
            5 => {
                let (scale, precision) = (members.first()?, members.second()?);
                Some(LogicalType::decimal(scale, precision))
            }
            6 => Some(LogicalType::Date),
            7 => Some(LogicalType::time(members.flag()?, members.unit()?)),
            8 => Some(LogicalType::timestamp(members.flag()?, members.unit()?)),
            10 => {
                let width = i8::try_from(members.first()?).map_err(|_| invalid())?;
                Some(LogicalType::integer(width, members.flag()?))
            }
            11 => Some(LogicalType::Unknown),
            12 => Some(LogicalType::Json),
            13 => Some(LogicalType::Bson),
            14 => Some(LogicalType::Uuid),
            15 => Some(LogicalType::Float16),
            _ => None,
        };
    }
    Ok(found)
}

/// The members of a logical type: numbers, a flag and a unit of time.
#[derive(Default)]
struct Members {
    first: Option<i32>,
    second: Option<i32>,
    flag: Option<bool>,
    unit: Option<TimeUnit>,
}

impl Members {
    fn read(input: &mut CompactReader<&[u8]>) -> io::Result<Self> {
        let mut members = Self::default();
        let mut field = 0;
        while let Some(kind) = input.field(&mut field)? {
            match (field, kind) {
                (1 | 2, ThriftType::Boolean(flag)) => members.flag = Some(flag),
                (1, ThriftType::Byte) => members.first = Some(i32::from(input.integer8()?)),
                (1, ThriftType::Integer) => members.first = Some(input.integer32()?),
                (2, ThriftType::Integer) => members.second = Some(input.integer32()?),
                (2, ThriftType::Struct) => members.unit = time_unit(input)?,
                _ => input.skip(kind)?,
            }
        }
        Ok(members)
    }

    fn first(&self) -> io::Result<i32> {
        self.first.ok_or_else(invalid)
    }

    fn second(&self) -> io::Result<i32> {
        self.second.ok_or_else(invalid)
    }

    fn flag(&self) -> io::Result<bool> {
        self.flag.ok_or_else(invalid)
    }

    fn unit(&self) -> io::Result<TimeUnit> {
        self.unit.ok_or_else(invalid)
    }
}

fn time_unit(input: &mut CompactReader<&[u8]>) -> io::Result<Option<TimeUnit>> {
    let mut unit = None;
    let mut field = 0;
    while let Some(kind) = input.field(&mut field)? {
        unit = match field {
            1 => Some(TimeUnit::MILLIS),
            2 => Some(TimeUnit::MICROS),
            3 => Some(TimeUnit::NANOS),
            _ => None,
        };
        input.skip(kind)?;
    }
    Ok(unit)
}

/// The variant of an enum by its number.
fn variant<T: Copy>(
    variants: &[T],
    number: impl Fn(T) -> i32,
    input: &mut CompactReader<&[u8]>,
) -> io::Result<T> {
    let wanted = input.integer32()?;
    let mut variants = variants.iter().copied();
    variants
        .find(|&it| number(it) == wanted)
        .ok_or_else(invalid)
}
