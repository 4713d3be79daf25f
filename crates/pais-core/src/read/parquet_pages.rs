//! Measures the pages of a Parquet file before any of them is decoded.
//!
//! A page header states the decoded size of the page, and the decoders enforce that size. They do
//! not have a limit for it, so the headers of all pages are read first (Apache Thrift, compact
//! protocol). Gzip is the only codec whose decoder ignores the stated size; gzip pages are
//! decompressed once to count their bytes.

use std::io::{self, Read};
use std::ops::ControlFlow;

use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::ChunkReader;

/// Maximum size of a page header in bytes. Statistics can make a header long.
const HEADER_BYTES: u64 = 16 << 20;

/// Maximum nesting depth of structs in a page header; the format has three levels.
const DEPTH: usize = 16;

/// The number of the encoding `DELTA_BYTE_ARRAY` in the format.
const PREFIX_ENCODING: i64 = 7;

/// The sizes of the pages of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PageSizes {
    /// Decoded bytes of all pages. A value counts as at least one byte.
    pub(super) bytes: u64,
    /// Decoded bytes of the largest page.
    pub(super) largest: u64,
    /// Whether values are stored as a prefix of the previous value plus a rest, so that a small
    /// page can decode to many bytes.
    pub(super) prefixed: bool,
}

/// Measures the pages of the leaf columns for which `read` is true. Stops when they decode to more
/// than `limit` bytes.
///
/// # Errors
/// If a page header cannot be read.
pub(super) fn measure<R: ChunkReader>(
    source: &R,
    metadata: &ParquetMetaData,
    read: impl Fn(usize) -> bool,
    limit: u64,
) -> io::Result<PageSizes> {
    let mut pages = PageSizes::default();
    for group in metadata.row_groups() {
        for (leaf, column) in group.columns().iter().enumerate() {
            if read(leaf) && measure_column(source, column, limit, &mut pages)?.is_break() {
                return Ok(pages);
            }
        }
    }
    Ok(pages)
}

fn measure_column<R: ChunkReader>(
    source: &R,
    column: &ColumnChunkMetaData,
    limit: u64,
    pages: &mut PageSizes,
) -> io::Result<ControlFlow<()>> {
    let (mut at, length) = column.byte_range();
    let end = at.checked_add(length).ok_or_else(damaged)?;
    while at < end {
        let input = source.get_read(at).map_err(io::Error::other)?;
        let mut header = CompactReader {
            input: input.take(HEADER_BYTES),
        };
        let page = PageHeader::read(&mut header)?;
        let header_bytes = HEADER_BYTES - header.input.limit();
        let mut decoded = page.decoded;
        if page.compressed && matches!(column.compression(), Compression::GZIP(_)) {
            let mut body = header.input.into_inner().take(page.stored);
            io::copy(&mut body.by_ref().take(page.levels), &mut io::sink())?;
            let allowance = limit.saturating_sub(pages.bytes).saturating_add(1);
            let inflated = flate2::read::MultiGzDecoder::new(body).take(allowance);
            let inflated = io::copy(&mut { inflated }, &mut io::sink())?;
            decoded = decoded.max(inflated.saturating_add(page.levels));
        }
        pages.bytes = pages.bytes.saturating_add(decoded.max(page.values));
        pages.largest = pages.largest.max(decoded);
        pages.prefixed |= page.encoding == PREFIX_ENCODING;
        if pages.bytes > limit {
            return Ok(ControlFlow::Break(()));
        }
        at = at
            .checked_add(header_bytes)
            .and_then(|at| at.checked_add(page.stored))
            .ok_or_else(damaged)?;
    }
    Ok(ControlFlow::Continue(()))
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a page header is invalid")
}

/// The fields of a page header.
#[derive(Default)]
struct PageHeader {
    /// Decoded bytes.
    decoded: u64,
    /// Stored bytes.
    stored: u64,
    /// Number of values, including nulls.
    values: u64,
    encoding: i64,
    /// Bytes of the levels, which are before the compressed part.
    levels: u64,
    compressed: bool,
}

impl PageHeader {
    fn read<R: Read>(input: &mut CompactReader<R>) -> io::Result<Self> {
        let mut page = Self {
            compressed: true,
            ..Self::default()
        };
        let mut field = 0;
        while let Some(kind) = input.field(&mut field)? {
            match (field, kind) {
                (2, ThriftType::Integer) => page.decoded = input.size()?,
                (3, ThriftType::Integer) => page.stored = input.size()?,
                (5 | 8, ThriftType::Struct) => page.read_data_header(input, field == 8)?,
                _ => input.skip(kind, DEPTH)?,
            }
        }
        Ok(page)
    }

    fn read_data_header<R: Read>(
        &mut self,
        input: &mut CompactReader<R>,
        second_version: bool,
    ) -> io::Result<()> {
        let mut field = 0;
        while let Some(kind) = input.field(&mut field)? {
            match (field, kind, second_version) {
                (1, ThriftType::Integer, _) => self.values = input.size()?,
                (2, ThriftType::Integer, false) | (4, ThriftType::Integer, true) => {
                    self.encoding = input.integer()?;
                }
                (5 | 6, ThriftType::Integer, true) => self.levels += input.size()?,
                (7, ThriftType::Boolean(compressed), true) => self.compressed = compressed,
                _ => input.skip(kind, DEPTH)?,
            }
        }
        Ok(())
    }
}

/// The type of a value in Thrift's compact protocol.
#[derive(Clone, Copy)]
enum ThriftType {
    /// The value of a boolean field is part of its type code.
    Boolean(bool),
    Byte,
    /// An integer of any width.
    Integer,
    Double,
    Binary,
    /// A list or a set.
    List,
    Map,
    Struct,
}

impl ThriftType {
    fn from_code(code: u8) -> io::Result<Self> {
        Ok(match code {
            1 | 2 => Self::Boolean(code == 1),
            3 => Self::Byte,
            4..=6 => Self::Integer,
            7 => Self::Double,
            8 => Self::Binary,
            9 | 10 => Self::List,
            11 => Self::Map,
            12 => Self::Struct,
            _ => return Err(damaged()),
        })
    }
}

/// Reads Thrift's compact protocol.
struct CompactReader<R> {
    input: io::Take<R>,
}

impl<R: Read> CompactReader<R> {
    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.input.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(damaged())
    }

    fn integer(&mut self) -> io::Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn size(&mut self) -> io::Result<u64> {
        u64::try_from(self.integer()?).map_err(|_| damaged())
    }

    /// The type of a struct's next field; `None` at the end of the struct. `number` is the number
    /// of the previous field and is set to that of this field.
    fn field(&mut self, number: &mut i64) -> io::Result<Option<ThriftType>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        *number = match byte >> 4 {
            0 => self.integer()?,
            delta => number.checked_add(i64::from(delta)).ok_or_else(damaged)?,
        };
        ThriftType::from_code(byte & 0x0f).map(Some)
    }

    fn skip(&mut self, kind: ThriftType, depth: usize) -> io::Result<()> {
        let depth = depth.checked_sub(1).ok_or_else(damaged)?;
        match kind {
            ThriftType::Boolean(_) => Ok(()),
            ThriftType::Byte => self.byte().map(drop),
            ThriftType::Integer => self.varint().map(drop),
            ThriftType::Double => self.skip_bytes(8),
            ThriftType::Binary => {
                let bytes = self.varint()?;
                self.skip_bytes(bytes)
            }
            ThriftType::List => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.varint()?,
                    count => u64::from(count),
                };
                let kind = ThriftType::from_code(head & 0x0f)?;
                (0..count).try_for_each(|_| self.skip_element(kind, depth))
            }
            ThriftType::Map => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                let (key, value) = (
                    ThriftType::from_code(kinds >> 4)?,
                    ThriftType::from_code(kinds & 0x0f)?,
                );
                (0..count).try_for_each(|_| {
                    self.skip_element(key, depth)?;
                    self.skip_element(value, depth)
                })
            }
            ThriftType::Struct => {
                let mut field = 0;
                while let Some(kind) = self.field(&mut field)? {
                    self.skip(kind, depth)?;
                }
                Ok(())
            }
        }
    }

    /// Skips an element of a list or map. It is encoded as a field, except that a boolean takes one
    /// byte.
    fn skip_element(&mut self, kind: ThriftType, depth: usize) -> io::Result<()> {
        match kind {
            ThriftType::Boolean(_) => self.byte().map(drop),
            kind => self.skip(kind, depth),
        }
    }

    fn skip_bytes(&mut self, bytes: u64) -> io::Result<()> {
        let passed = io::copy(&mut self.input.by_ref().take(bytes), &mut io::sink())?;
        if passed == bytes {
            Ok(())
        } else {
            Err(damaged())
        }
    }
}
