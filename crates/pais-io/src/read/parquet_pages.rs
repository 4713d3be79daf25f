//! Measures the pages of a Parquet file before any of them is decoded.
//!
//! A page header states the decoded size of the page and its number of values, and the parquet
//! crate allocates by them without a limit. So the headers of all pages are read first, as strictly
//! as the crate does. The decoders enforce the stated size. Gzip is the only codec whose decoder
//! ignores it; gzip pages are decompressed once to count their bytes.

use std::io::{self, Read};
use std::ops::ControlFlow;

use pais_core::table::ReadErrorKind;
use parquet::basic::{Compression, Type as PhysicalType};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::ChunkReader;

use crate::read::parquet_footer::refusal;
use crate::read::parquet_thrift::{CompactReader, ThriftType, invalid};

/// Maximum size of a page header in bytes. Statistics can make a header long.
const HEADER_BYTES: u64 = 16 << 20;

/// Maximum number of pages of a file.
const PAGES: u64 = 1 << 20;

/// Maximum memory for the pages that are decoded at the same time: one of each column, and its
/// dictionary.
pub(super) const PAGES_BYTES: u64 = 256 << 20;

/// Bytes that the parquet crate takes at most for each value of a dictionary, in addition to the page.
const DICTIONARY_VALUE_BYTES: u64 = 40;

/// Bytes that the parquet crate takes for each value of a page with encoded lengths, in addition to the page.
const LENGTH_BYTES: u64 = 8;

/// The types of pages in the format.
const DATA_PAGE: i32 = 0;
const INDEX_PAGE: i32 = 1;
const DICTIONARY_PAGE: i32 = 2;
const DATA_PAGE_V2: i32 = 3;

/// The numbers of the encodings `DELTA_LENGTH_BYTE_ARRAY` and `DELTA_BYTE_ARRAY` in the format.
const LENGTHS_ENCODING: i32 = 6;
const PREFIX_ENCODING: i32 = 7;

/// The sizes of the pages of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct PageSizes {
    /// Decoded bytes of all pages. A value counts as at least one byte.
    pub(super) bytes: u64,
    /// The columns that are read, by their position among all leaves.
    pub(super) leaves: Vec<(usize, LeafSizes)>,
    /// The parts of the file whose pages must be examined: number of the row group, leaf.
    pub(super) encoded_lengths: Vec<(usize, usize)>,
    pages: u64,
}

/// The sizes of the pages of one column.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeafSizes {
    /// Memory for its largest page and its largest dictionary, in bytes.
    page: u64,
    dictionary: u64,
    /// Maximum number of decoded bytes for each value of a page, rounded up.
    pub(super) value_bytes: u64,
    /// Decoded bytes of the largest page in which values are stored as a prefix of the previous
    /// value plus a rest, so that a small page can decode to many bytes.
    pub(super) prefixed: u64,
}

/// Measures the pages of the leaf columns for which `read` is true. Stops when they decode to more
/// than `limit` bytes.
///
/// # Errors
/// If a page header is invalid, or a page is beyond a bound.
pub(super) fn measure<R: ChunkReader>(
    source: &R,
    metadata: &ParquetMetaData,
    read: impl Fn(usize) -> bool,
    limit: u64,
) -> io::Result<PageSizes> {
    let mut sizes = PageSizes::default();
    let leaves = 0..metadata.file_metadata().schema_descr().num_columns();
    for leaf in leaves.filter(|leaf| read(*leaf)) {
        let mut of_leaf = LeafSizes::default();
        for (number, group) in metadata.row_groups().iter().enumerate() {
            let column = group.column(leaf);
            let pages = ColumnPages {
                source,
                column,
                limit,
            };
            let (before, place) = (sizes.encoded_lengths.len(), (number, leaf));
            if pages.measure(place, &mut sizes, &mut of_leaf)?.is_break() {
                return Ok(sizes);
            }
            sizes.encoded_lengths.truncate(before + 1);
        }
        sizes.leaves.push((leaf, of_leaf));
    }
    let memory = |(_, of_leaf): &(usize, LeafSizes)| of_leaf.page + of_leaf.dictionary;
    let memory: u64 = sizes.leaves.iter().map(memory).sum();
    if memory > PAGES_BYTES {
        let detail = format!(
            "the largest pages of the Parquet file's columns take {} MiB together, more than {} \
             MiB; write the file with smaller pages or row groups",
            memory >> 20,
            PAGES_BYTES >> 20
        );
        return Err(refusal(ReadErrorKind::TooLarge, detail));
    }
    Ok(sizes)
}

/// The pages of a column in a row group.
struct ColumnPages<'a, R> {
    source: &'a R,
    column: &'a ColumnChunkMetaData,
    limit: u64,
}

impl<R: ChunkReader> ColumnPages<'_, R> {
    fn measure(
        &self,
        place: (usize, usize),
        sizes: &mut PageSizes,
        leaf: &mut LeafSizes,
    ) -> io::Result<ControlFlow<()>> {
        let (mut at, length) = self.column.byte_range();
        let end = at.checked_add(length).ok_or_else(invalid)?;
        while at < end {
            let input = self.source.get_read(at).map_err(io::Error::other)?;
            let allowed = HEADER_BYTES.min(end - at);
            let mut header = CompactReader::new(input, allowed);
            let page = PageHeader::read(&mut header)?;
            let body = at + (allowed - header.remaining());
            at = body.checked_add(page.stored).ok_or_else(invalid)?;
            if at > end || page.levels > page.decoded.min(page.stored) {
                return Err(invalid());
            }
            let mut decoded = page.decoded;
            if page.compressed && matches!(self.column.compression(), Compression::GZIP(_)) {
                let left = self.limit.saturating_sub(sizes.bytes).saturating_add(1);
                decoded = decoded.max(page.inflated(header.into_inner(), left)?);
            }
            sizes.bytes = sizes.bytes.saturating_add(decoded.max(page.values));
            sizes.pages += 1;
            if sizes.pages > PAGES {
                let detail = format!(
                    "the Parquet file has more than {PAGES} pages; write it with larger pages"
                );
                return Err(refusal(ReadErrorKind::TooLarge, detail));
            }
            if sizes.bytes > self.limit {
                return Ok(ControlFlow::Break(()));
            }
            if self.add(&page, decoded, leaf)? {
                sizes.encoded_lengths.push(place);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Adds a page to the sizes of its column. Returns whether its body must be examined.
    fn add(&self, page: &PageHeader, decoded: u64, leaf: &mut LeafSizes) -> io::Result<bool> {
        match page.kind {
            INDEX_PAGE => Ok(false),
            DICTIONARY_PAGE => {
                // Values take at least a byte. Only booleans take less, and have no dictionaries.
                if page.values > decoded {
                    return Err(invalid());
                }
                let memory = decoded.saturating_add(page.values * DICTIONARY_VALUE_BYTES);
                leaf.dictionary = leaf.dictionary.max(memory);
                Ok(false)
            }
            _ => {
                let has_lengths = is_bytes(self.column.column_type())
                    && matches!(page.encoding, LENGTHS_ENCODING | PREFIX_ENCODING);
                let lengths = if has_lengths {
                    page.values * LENGTH_BYTES
                } else {
                    0
                };
                leaf.page = leaf.page.max(decoded.saturating_add(lengths));
                let value_bytes = decoded.div_ceil(page.values.max(1));
                leaf.value_bytes = leaf.value_bytes.max(value_bytes);
                if page.encoding == PREFIX_ENCODING {
                    leaf.prefixed = leaf.prefixed.max(decoded);
                }
                Ok(has_lengths)
            }
        }
    }
}

fn is_bytes(physical: PhysicalType) -> bool {
    matches!(
        physical,
        PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY
    )
}

/// The fields of a page header.
#[derive(Default)]
struct PageHeader {
    kind: i32,
    /// Decoded bytes.
    decoded: u64,
    /// Stored bytes.
    stored: u64,
    /// Number of values, including nulls.
    values: u64,
    encoding: i32,
    /// Bytes of the levels, which are before the compressed part.
    levels: u64,
    compressed: bool,
}

impl PageHeader {
    /// Reads a header. A known field of another type is damage, and so is a header of data that is
    /// not that of the page's type: the parquet crate would take other numbers than are measured.
    fn read<R: Read>(input: &mut CompactReader<R>) -> io::Result<Self> {
        let mut page = Self {
            kind: -1,
            compressed: true,
            ..Self::default()
        };
        let mut described = None;
        let mut field = 0;
        while let Some(kind) = input.field(&mut field)? {
            match (field, kind) {
                (1, ThriftType::Integer) => page.kind = input.integer32()?,
                (2, ThriftType::Integer) => page.decoded = input.size32()?,
                (3, ThriftType::Integer) => page.stored = input.size32()?,
                (4, ThriftType::Integer) => drop(input.integer32()?),
                (5 | 7 | 8, ThriftType::Struct) if described.is_none() => {
                    let of_type = match field {
                        5 => DATA_PAGE,
                        7 => DICTIONARY_PAGE,
                        _ => DATA_PAGE_V2,
                    };
                    described = Some(of_type);
                    page.read_description(of_type, input)?;
                }
                (6, ThriftType::Struct) => input.skip(kind)?,
                (1..=8, _) => return Err(invalid()),
                _ => input.skip(kind)?,
            }
        }
        let expected = (page.kind != INDEX_PAGE).then_some(page.kind);
        if described == expected {
            Ok(page)
        } else {
            Err(invalid())
        }
    }

    /// Reads the header of a page of one type.
    fn read_description<R: Read>(
        &mut self,
        of_type: i32,
        input: &mut CompactReader<R>,
    ) -> io::Result<()> {
        use ThriftType::{Boolean, Integer, Struct};
        let mut levels = [0; 2];
        let mut field = 0;
        while let Some(kind) = input.field(&mut field)? {
            match (of_type, field, kind) {
                (_, 1, Integer) => self.values = input.size32()?,
                (DATA_PAGE | DICTIONARY_PAGE, 2, Integer) | (DATA_PAGE_V2, 4, Integer) => {
                    self.encoding = input.integer32()?;
                }
                (DATA_PAGE, 3 | 4, Integer) => drop(input.integer32()?),
                (DATA_PAGE_V2, 2 | 3, Integer) => drop(input.size32()?),
                // If a field is repeated, the last one counts, as for the parquet crate.
                (DATA_PAGE_V2, 5 | 6, Integer) => {
                    levels[usize::from(field == 6)] = input.size32()?
                }
                (DATA_PAGE_V2, 7, Boolean(compressed)) => self.compressed = compressed,
                (DICTIONARY_PAGE, 3, Boolean(_)) => {}
                (DATA_PAGE, 5, Struct) | (DATA_PAGE_V2, 8, Struct) => input.skip(kind)?,
                (DATA_PAGE, 1..=5, _) | (DICTIONARY_PAGE, 1..=3, _) | (DATA_PAGE_V2, 1..=8, _) => {
                    return Err(invalid());
                }
                _ => input.skip(kind)?,
            }
        }
        self.levels = levels.iter().sum();
        Ok(())
    }

    /// The decoded size of a gzip page: at most `allowed` bytes are decompressed.
    fn inflated(&self, input: impl Read, allowed: u64) -> io::Result<u64> {
        let mut body = input.take(self.stored);
        io::copy(&mut body.by_ref().take(self.levels), &mut io::sink())?;
        let inflated = flate2::read::MultiGzDecoder::new(body).take(allowed);
        let inflated = io::copy(&mut { inflated }, &mut io::sink())?;
        Ok(inflated.saturating_add(self.levels))
    }
}
