//! Examines the pages of a Parquet file whose headers do not bound what decoding allocates: pages with encoded
//! lengths, whose number is claimed separately, and rows of very many items.

use std::io;
use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;

use crate::read::parquet_thrift::{invalid, varint};

/// Examines the pages of a column of a row group. Returns the maximum number of items of a row; 1 if the column
/// is not one of lists.
///
/// # Errors
/// If a page does not decode, or claims more lengths than values.
pub(super) fn most_items<R: ChunkReader + 'static>(
    source: &Arc<R>,
    group: &RowGroupMetaData,
    leaf: usize,
) -> io::Result<u64> {
    let column = group.column(leaf);
    let rows = usize::try_from(group.num_rows()).map_err(|_| invalid())?;
    let pages = SerializedPageReader::new(source.clone(), column, rows, None);
    let mut pages = pages.map_err(io::Error::other)?;
    let descriptor = column.column_descr();
    let levels = Levels {
        repeated: descriptor.max_rep_level() > 0,
        definition: descriptor.max_def_level(),
    };
    if descriptor.max_rep_level() > 1 {
        return Err(invalid());
    }
    let mut items = ItemCounter::default();
    while let Some(page) = pages.get_next_page().map_err(io::Error::other)? {
        levels.look_into(&page, &mut items)?;
    }
    Ok(items.most.max(1))
}

/// The levels that a column has.
struct Levels {
    repeated: bool,
    definition: i16,
}

impl Levels {
    fn look_into(&self, page: &Page, items: &mut ItemCounter) -> io::Result<()> {
        let values = page.num_values();
        let (body, values_at) = match page {
            Page::DictionaryPage { .. } => return Ok(()),
            Page::DataPage {
                buf,
                rep_level_encoding,
                def_level_encoding,
                ..
            } => {
                let mut at = 0;
                if self.repeated {
                    if *rep_level_encoding != Encoding::RLE {
                        return Err(invalid());
                    }
                    items.count(prefixed(buf, &mut at)?, values)?;
                }
                match def_level_encoding {
                    _ if self.definition == 0 => {}
                    Encoding::RLE => drop(prefixed(buf, &mut at)?),
                    // The deprecated form: as many bits for each value as the highest level takes.
                    _ => {
                        let bits = u64::from(i16::BITS - self.definition.leading_zeros());
                        let bytes = (u64::from(values) * bits).div_ceil(8);
                        at = at.saturating_add(bytes as usize);
                    }
                }
                (buf, at)
            }
            Page::DataPageV2 {
                buf,
                rep_levels_byte_len,
                def_levels_byte_len,
                ..
            } => {
                let repetition = *rep_levels_byte_len as usize;
                if self.repeated {
                    items.count(buf.get(..repetition).ok_or_else(invalid)?, values)?;
                }
                (buf, repetition + *def_levels_byte_len as usize)
            }
        };
        let mut body = Varints {
            bytes: body.get(values_at..).ok_or_else(invalid)?,
        };
        match page.encoding() {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => body.skip_lengths(u64::from(values)),
            Encoding::DELTA_BYTE_ARRAY => {
                body.skip_lengths(u64::from(values))?;
                body.skip_lengths(u64::from(values))
            }
            _ => Ok(()),
        }
    }
}

/// The levels of a data page of the first version, which begin with their length.
fn prefixed<'b>(body: &'b [u8], at: &mut usize) -> io::Result<&'b [u8]> {
    let length = body.get(*at..).and_then(<[u8]>::first_chunk);
    let length = u32::from_le_bytes(*length.ok_or_else(invalid)?) as usize;
    let start = *at + size_of::<u32>();
    *at = start + length;
    body.get(start..*at).ok_or_else(invalid)
}

/// Counts the items of rows by the repetition levels of a column of lists, which are 0 for the
/// first item of a row and 1 for each further one.
#[derive(Default)]
struct ItemCounter {
    current: u64,
    most: u64,
}

impl ItemCounter {
    /// Counts the levels of a page: runs of one level and groups of eight single ones.
    fn count(&mut self, levels: &[u8], values: u32) -> io::Result<()> {
        let mut levels = Varints { bytes: levels };
        let mut left = u64::from(values);
        while left > 0 {
            let head = levels.varint()?;
            if head & 1 == 0 {
                let length = (head >> 1).min(left);
                let level = levels.take(1)?[0];
                left -= length;
                match level {
                    _ if length == 0 => return Err(invalid()),
                    0 => self.add(0),
                    _ => self.current += length,
                }
                self.most = self.most.max(self.current);
            } else {
                for &byte in levels.take(head >> 1)? {
                    for bit in 0..8.min(left) {
                        self.add(byte >> bit & 1);
                    }
                    left = left.saturating_sub(8);
                }
                if head == 1 {
                    return Err(invalid());
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, level: u8) {
        self.current = if level == 0 { 1 } else { self.current + 1 };
        self.most = self.most.max(self.current);
    }
}

/// Reads the integers and bytes of a page.
struct Varints<'b> {
    bytes: &'b [u8],
}

impl<'b> Varints<'b> {
    fn take(&mut self, count: u64) -> io::Result<&'b [u8]> {
        let count = usize::try_from(count).map_err(|_| invalid())?;
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or_else(invalid)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> io::Result<u64> {
        varint(|| Ok(self.take(1)?[0]))
    }

    /// Skips a list of lengths (`DELTA_BINARY_PACKED`) and checks that there are at most `most`.
    fn skip_lengths(&mut self, most: u64) -> io::Result<()> {
        let block = self.varint()?;
        let parts = self.varint()?;
        let count = self.varint()?;
        self.varint()?;
        if parts == 0 || block % parts != 0 || block / parts == 0 || count > most {
            return Err(invalid());
        }
        let values_of_part = block / parts;
        // The first length is in the header.
        let mut left = count.saturating_sub(1);
        while left > 0 {
            self.varint()?;
            for &bits in self.take(parts)? {
                if left == 0 {
                    break;
                }
                left = left.saturating_sub(values_of_part);
                let bits = u64::from(bits).checked_mul(values_of_part);
                self.take(bits.ok_or_else(invalid)? / 8)?;
            }
        }
        Ok(())
    }
}
