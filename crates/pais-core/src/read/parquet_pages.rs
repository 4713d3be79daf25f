//! The pages of a Parquet file, measured before one of them is decoded.
//!
//! A page states how many bytes it decodes to, and the decoders hold it to that; what they hold
//! it against, a limit, they do not know. So the headers of all pages are read first (Apache
//! Thrift, compact protocol). Gzip is the one codec that pays no heed to the stated size; such
//! pages are decoded once to count.

use std::io::{self, Read};
use std::ops::ControlFlow;

use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::ChunkReader;

/// Bytes that the header of a page may take; statistics make it longer than a few.
const HEADER_BYTES: u64 = 16 << 20;

/// Structs inside structs that a page header may have; the format has three.
const DEPTH: usize = 16;

/// `DELTA_BYTE_ARRAY` of the format's encodings.
const PREFIX_ENCODING: i64 = 7;

/// What the pages of a file come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pages {
    /// Bytes of all pages, decoded; a value counts for one byte at least.
    pub(super) bytes: u64,
    /// Bytes of the largest page, decoded.
    pub(super) largest: u64,
    /// Whether values stand as a prefix of the one before and a rest, so that a page of few
    /// bytes decodes to many.
    pub(super) prefixed: bool,
}

/// Measures the pages of some leaf columns until they come to more than `limit` bytes.
///
/// # Errors
/// For headers that cannot be read.
pub(super) fn measure<R: ChunkReader>(
    source: &R,
    metadata: &ParquetMetaData,
    read: impl Fn(usize) -> bool,
    limit: u64,
) -> io::Result<Pages> {
    let mut pages = Pages::default();
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
    pages: &mut Pages,
) -> io::Result<ControlFlow<()>> {
    let (mut at, length) = column.byte_range();
    let end = at.checked_add(length).ok_or_else(damaged)?;
    while at < end {
        let input = source.get_read(at).map_err(io::Error::other)?;
        let mut header = Compact {
            input: input.take(HEADER_BYTES),
        };
        let page = Page::read(&mut header)?;
        let header_bytes = HEADER_BYTES - header.input.limit();
        let mut decoded = page.decoded;
        if page.compressed && matches!(column.compression(), Compression::GZIP(_)) {
            let mut body = header.input.into_inner().take(page.stored);
            io::copy(&mut body.by_ref().take(page.levels), &mut io::sink())?;
            let room = limit.saturating_sub(pages.bytes).saturating_add(1);
            let inflated = flate2::read::MultiGzDecoder::new(body).take(room);
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
    io::Error::new(io::ErrorKind::InvalidData, "a page header cannot be read")
}

/// What the header of a page tells.
#[derive(Default)]
struct Page {
    /// Bytes as decoded.
    decoded: u64,
    /// Bytes as stored.
    stored: u64,
    /// Values, nulls included.
    values: u64,
    encoding: i64,
    /// Bytes of the levels that stand before the compressed part.
    levels: u64,
    compressed: bool,
}

impl Page {
    fn read<R: Read>(input: &mut Compact<R>) -> io::Result<Self> {
        let mut page = Self {
            compressed: true,
            ..Self::default()
        };
        let mut field = 0;
        while let Some(kind) = input.field(&mut field)? {
            match (field, kind) {
                (2, Kind::Integer) => page.decoded = input.size()?,
                (3, Kind::Integer) => page.stored = input.size()?,
                (5 | 8, Kind::Struct) => page.read_data_header(input, field == 8)?,
                _ => input.skip(kind, DEPTH)?,
            }
        }
        Ok(page)
    }

    fn read_data_header<R: Read>(
        &mut self,
        input: &mut Compact<R>,
        second_version: bool,
    ) -> io::Result<()> {
        let mut field = 0;
        while let Some(kind) = input.field(&mut field)? {
            match (field, kind, second_version) {
                (1, Kind::Integer, _) => self.values = input.size()?,
                (2, Kind::Integer, false) | (4, Kind::Integer, true) => {
                    self.encoding = input.integer()?;
                }
                (5 | 6, Kind::Integer, true) => self.levels += input.size()?,
                (7, Kind::Boolean(compressed), true) => self.compressed = compressed,
                _ => input.skip(kind, DEPTH)?,
            }
        }
        Ok(())
    }
}

/// Kinds of a value in Thrift's compact protocol.
#[derive(Clone, Copy)]
enum Kind {
    /// Its value is part of the kind where it is a field.
    Boolean(bool),
    Byte,
    /// Of any width.
    Integer,
    Double,
    Binary,
    /// A list or a set.
    List,
    Map,
    Struct,
}

impl Kind {
    fn of(code: u8) -> io::Result<Self> {
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
struct Compact<R> {
    input: io::Take<R>,
}

impl<R: Read> Compact<R> {
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

    /// The kind of a struct's next field, whose number replaces that of the one before.
    fn field(&mut self, number: &mut i64) -> io::Result<Option<Kind>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        *number = match byte >> 4 {
            0 => self.integer()?,
            delta => number.checked_add(i64::from(delta)).ok_or_else(damaged)?,
        };
        Kind::of(byte & 0x0f).map(Some)
    }

    fn skip(&mut self, kind: Kind, depth: usize) -> io::Result<()> {
        let depth = depth.checked_sub(1).ok_or_else(damaged)?;
        match kind {
            Kind::Boolean(_) => Ok(()),
            Kind::Byte => self.byte().map(drop),
            Kind::Integer => self.varint().map(drop),
            Kind::Double => self.pass(8),
            Kind::Binary => {
                let bytes = self.varint()?;
                self.pass(bytes)
            }
            Kind::List => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.varint()?,
                    count => u64::from(count),
                };
                let kind = Kind::of(head & 0x0f)?;
                (0..count).try_for_each(|_| self.skip_element(kind, depth))
            }
            Kind::Map => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                let (key, value) = (Kind::of(kinds >> 4)?, Kind::of(kinds & 0x0f)?);
                (0..count).try_for_each(|_| {
                    self.skip_element(key, depth)?;
                    self.skip_element(value, depth)
                })
            }
            Kind::Struct => {
                let mut field = 0;
                while let Some(kind) = self.field(&mut field)? {
                    self.skip(kind, depth)?;
                }
                Ok(())
            }
        }
    }

    /// An element of a list is as a field, but a boolean takes a byte.
    fn skip_element(&mut self, kind: Kind, depth: usize) -> io::Result<()> {
        match kind {
            Kind::Boolean(_) => self.byte().map(drop),
            kind => self.skip(kind, depth),
        }
    }

    fn pass(&mut self, bytes: u64) -> io::Result<()> {
        let passed = io::copy(&mut self.input.by_ref().take(bytes), &mut io::sink())?;
        if passed == bytes {
            Ok(())
        } else {
            Err(damaged())
        }
    }
}
