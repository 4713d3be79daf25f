//! How many rows of a Parquet file are decoded at once, and how a batch is divided, so that neither
//! takes much memory.

use std::io;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use pais_core::table::ReadErrorKind;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;

use crate::read::chunk_builder::CHUNK_ROWS;
use crate::read::parquet_bodies::most_items;
use crate::read::parquet_footer::refusal;
use crate::read::parquet_pages::{LeafSizes, PAGES_BYTES, PageSizes};

/// Memory that a batch takes as estimated from the pages, in bytes.
const BATCH_BYTES: u64 = 64 << 20;

/// Bytes that a value takes in addition to its text: a view and its levels.
const VALUE_BYTES: u64 = 24;

/// If the lists of a row group have more items than this beyond one for each row, the items of each
/// row are counted.
const UNCOUNTED_ITEMS: u64 = 65_536;

/// Maximum text of the rows that are added to a chunk at once, in bytes.
const PIECE_BYTES: u64 = 16 << 20;

/// The number of rows that are decoded at once.
///
/// # Errors
/// If a page is damaged, or a row may take too much memory.
pub(super) fn batch_rows<R: ChunkReader + 'static>(
    source: &Arc<R>,
    metadata: &ParquetMetaData,
    pages: &PageSizes,
) -> io::Result<usize> {
    let mut row = 0u64;
    let mut uncounted = 0u64;
    for (leaf, sizes) in &pages.leaves {
        let value = value_bytes(metadata, *leaf, sizes);
        let items = Items::of(source, metadata, *leaf, pages)?;
        row = row.saturating_add(value.saturating_mul(items.most));
        uncounted = uncounted.saturating_add(value.saturating_mul(items.uncounted));
    }
    if row > PAGES_BYTES {
        let detail = format!(
            "a row of the Parquet file may take more than {} MiB when it is decoded; write shorter \
             lists and values, and not with the encoding DELTA_BYTE_ARRAY",
            PAGES_BYTES >> 20
        );
        return Err(refusal(ReadErrorKind::TooLarge, detail));
    }
    let rows = BATCH_BYTES.saturating_sub(uncounted) / row.max(1);
    Ok(rows.clamp(1, CHUNK_ROWS as u64) as usize)
}

/// Memory that a value of a column takes at most, on average over a page.
fn value_bytes(metadata: &ParquetMetaData, leaf: usize, sizes: &LeafSizes) -> u64 {
    let column = metadata.file_metadata().schema_descr().column(leaf);
    let fixed = u64::try_from(column.type_length()).unwrap_or(0);
    VALUE_BYTES + fixed + sizes.value_bytes.max(sizes.prefixed)
}

/// The items of the lists of a column. A column without lists has one in each row.
struct Items {
    /// Maximum number of items of a row whose items were counted.
    most: u64,
    /// Items of a row group that were not counted, beyond one for each row.
    uncounted: u64,
}

impl Items {
    fn of<R: ChunkReader + 'static>(
        source: &Arc<R>,
        metadata: &ParquetMetaData,
        leaf: usize,
        pages: &PageSizes,
    ) -> io::Result<Self> {
        let column = metadata.file_metadata().schema_descr().column(leaf);
        let mut items = Self {
            most: 1,
            uncounted: 0,
        };
        for (number, group) in metadata.row_groups().iter().enumerate() {
            let values = group.column(leaf).num_values().max(0).cast_unsigned();
            let excess = values.saturating_sub(group.num_rows().max(0).cast_unsigned());
            let has_lists = column.max_rep_level() > 0;
            let is_counted = has_lists && excess > UNCOUNTED_ITEMS;
            if is_counted || pages.encoded_lengths.contains(&(number, leaf)) {
                items.most = items.most.max(most_items(source, group, leaf)?);
            }
            if has_lists && !is_counted {
                items.uncounted = items.uncounted.max(excess);
            }
        }
        Ok(items)
    }
}

/// Divides a batch so that the text of no part is larger than 16 MiB, unless it is a single row.
pub(super) fn pieces(batch: RecordBatch) -> Vec<RecordBatch> {
    let mut pieces = Vec::new();
    let mut open = vec![batch];
    while let Some(batch) = open.pop() {
        let text: u64 = batch.columns().iter().map(|array| text_bytes(array)).sum();
        let rows = batch.num_rows();
        if text <= PIECE_BYTES || rows <= 1 {
            pieces.push(batch);
        } else {
            let half = rows / 2;
            open.push(batch.slice(half, rows - half));
            open.push(batch.slice(0, half));
        }
    }
    pieces
}

/// The text of all cells of a column, in bytes. Numbers and dates are short.
fn text_bytes(array: &dyn Array) -> u64 {
    if let Some(texts) = array.as_string_view_opt() {
        // The length is in the lowest bits of a view.
        let lengths = texts.views().iter().map(|view| u64::from(*view as u32));
        return lengths.sum();
    }
    if let Some(lists) = array.as_list_opt::<i32>() {
        let offsets = lists.value_offsets();
        let (start, end) = (offsets[0] as usize, offsets[lists.len()] as usize);
        return text_bytes(&lists.values().slice(start, end - start)) + (end - start) as u64;
    }
    0
}
