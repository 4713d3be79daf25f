//! Reads the footer of a Parquet file, with bounds.
//!
//! The parquet crate reads a footer recursively, and allocates for the numbers that it claims; a
//! small file could end the process. So the crate never sees the footer: it is read here, and the
//! crate gets the metadata that decoding rows needs. Statistics, indexes, bloom filters and
//! key-value metadata are skipped.

use std::io::{self, Read};
use std::sync::Arc;

use parquet::basic::CompressionCodec;
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, RowGroupMetaData,
};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::{ColumnDescPtr, SchemaDescPtr};

use crate::read::parquet_schema::{self, SchemaElement};
use crate::read::parquet_thrift::{CompactReader, ThriftType};
use crate::read::{ReadError, ReadErrorKind};

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
                (2, ThriftType::List) => footer.elements = parquet_schema::elements(input)?,
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
        let schema = Arc::new(parquet_schema::descriptor(self.elements)?);
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
        let codec = codecs.find(|codec| **codec as i32 == self.codec);
        let data_offset = self.data_offset.ok_or_else(invalid)?;
        // Some writers give 0 where there is no dictionary.
        let dictionary_offset = self.dictionary_offset.filter(|&offset| offset > 0);
        let column = ColumnChunkMetaData::builder(leaf.clone())
            .set_compression_codec(*codec.ok_or_else(invalid)?)
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

fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn encrypted() -> io::Error {
    let detail = "the Parquet file is encrypted; write it without encryption";
    refusal(ReadErrorKind::Malformed, detail)
}
