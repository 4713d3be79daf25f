//! Reads Parquet submissions. Columns are found by name; cells become the text that they would have
//! in CSV.
//!
//! Line numbers in faults are record numbers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::file::reader::ChunkReader;

use crate::definition::ColumnKind;
use crate::read::{ReadError, ReadErrorKind, ReadFailure};
use crate::rejection::Fault;
use crate::rejection::Place;

use crate::read::chunk_builder::{CHUNK_ROWS, ChunkBuilder};
use crate::read::header;
use crate::read::parquet_cells::{is_scalar, push};
use crate::read::parquet_pages::{PageSizes, measure};
use crate::schema::Schema;
use crate::table::Table;

/// Maximum decoded bytes of a batch if values are stored as a prefix of the previous value.
const PREFIXED_BATCH_BYTES: u64 = 64 << 20;

/// Reads a Parquet file and passes its rows to `chunk`, in chunks of the stored columns. Returns
/// the number of rows.
///
/// Memory is a page of each column, a batch and a chunk. `limit` bounds the decoded bytes of the
/// file. It is checked twice: against the sizes in the page headers before anything is decoded, and
/// against the cells as text. Identifiers are not decoded.
///
/// # Errors
/// As [`ReadFailure`]; [`ReadErrorKind::TooLarge`] beyond the limit.
pub fn read<E, R: ChunkReader + 'static>(
    schema: &Schema,
    source: R,
    limit: u64,
    chunk: impl FnMut(Table) -> Result<(), E>,
) -> Result<u64, ReadFailure<E>> {
    let (opened, slots) = guarded(|| open(schema, &source))??;
    let projected = slots.iter().enumerate().filter(|(_, slot)| slot.is_some());
    let roots: Vec<usize> = projected.map(|(root, _)| root).collect();
    let mask = ProjectionMask::roots(opened.parquet_schema(), roots);
    let pages = guarded(|| {
        let read = |leaf| mask.leaf_included(leaf);
        measure(&source, opened.metadata(), read, limit).map_err(|_| damaged())
    })??;
    if pages.bytes > limit {
        return Err(too_large(limit).into());
    }
    let rows = opened.metadata().file_metadata().num_rows();
    if slots.iter().all(Option::is_none) {
        // All columns are identifiers: nothing is stored, so nothing is decoded.
        let mut builder = ChunkBuilder::new(schema, chunk);
        builder.end_rows(usize::try_from(rows).map_err(|_| damaged())?)?;
        return builder.finish(NO_ROWS);
    }
    let mut reader = guarded(|| {
        ParquetRecordBatchReaderBuilder::new_with_metadata(source, opened)
            .with_projection(mask)
            .with_batch_size(batch_rows(&pages))
            .build()
            .map_err(|_| damaged())
    })??;
    let slots: Vec<usize> = slots.into_iter().flatten().collect();
    let mut builder = ChunkBuilder::new(schema, chunk);
    let (mut first, mut bytes) = (1, 0u64);
    while let Some(batch) = guarded(|| reader.next())? {
        let batch: RecordBatch = batch.map_err(|_| damaged())?;
        for (array, &slot) in batch.columns().iter().zip(&slots) {
            bytes = bytes.saturating_add(push(&mut builder, slot, array, first)?);
        }
        if bytes > limit {
            return Err(too_large(limit).into());
        }
        if builder.has_max_faults() {
            break;
        }
        first += batch.num_rows() as u64;
        builder.end_rows(batch.num_rows())?;
    }
    builder.finish(NO_ROWS)
}

const NO_ROWS: &str = "the file has no rows; a submission needs at least one";

/// The names of a file's columns.
///
/// # Errors
/// [`ReadErrorKind::Malformed`] if the source is not a Parquet file.
pub fn names(source: &impl ChunkReader) -> Result<Vec<String>, ReadError> {
    guarded(|| {
        let opened = ArrowReaderMetadata::load(source, ArrowReaderOptions::new());
        let opened = opened.map_err(|_| damaged())?;
        let fields = opened.schema().fields().iter();
        Ok(fields.map(|field| field.name().clone()).collect())
    })?
}

/// Runs `work` and turns a panic into an error: the decoder can panic on a damaged file.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, ReadError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| damaged())
}

fn damaged() -> ReadError {
    ReadError::new(
        ReadErrorKind::Malformed,
        "the file cannot be decoded: it is not a Parquet file, or it is damaged",
    )
}

fn too_large(limit: u64) -> ReadError {
    ReadError::new(
        ReadErrorKind::TooLarge,
        format!("the file decodes to more than {limit} bytes; send the rows in several files"),
    )
}

fn batch_rows(pages: &PageSizes) -> usize {
    if !pages.prefixed {
        return CHUNK_ROWS;
    }
    let rows = PREFIXED_BATCH_BYTES / pages.largest.max(1);
    rows.clamp(1, CHUNK_ROWS as u64) as usize
}

/// Reads the footer. Returns how the columns are decoded, and for each column its slot among the
/// stored columns, `None` for an identifier.
fn open(
    schema: &Schema,
    source: &impl ChunkReader,
) -> Result<(ArrowReaderMetadata, Vec<Option<usize>>), ReadError> {
    let found = ArrowReaderMetadata::load(source, ArrowReaderOptions::new());
    let found = found.map_err(|_| damaged())?;
    let fields = found.schema().fields();
    let names: Vec<&[u8]> = fields.iter().map(|field| field.name().as_bytes()).collect();
    let slots = header::columns(schema, &names).map_err(without_lines)?;
    let stored: Vec<_> = schema.stored().collect();
    let mut faults = Vec::new();
    for (field, slot) in fields.iter().zip(&slots) {
        let Some(spec) = slot.map(|slot| stored[slot]) else {
            continue;
        };
        let scalar = match field.data_type() {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _)
                if spec.kind == ColumnKind::Set =>
            {
                item.data_type()
            }
            other => other,
        };
        if !is_scalar(&decoded_as(scalar)) {
            let column = spec.name.to_string();
            faults.push(Fault {
                place: Place::Column { column },
                detail: "the column's Parquet type has no text form; only a set takes a list"
                    .to_owned(),
                suggested_fix: Some(
                    "store it as strings, numbers, booleans, dates or timestamps".to_owned(),
                ),
            });
        }
    }
    if !faults.is_empty() {
        let detail = format!("nothing was stored: {}", faults[0].detail);
        return Err(ReadError::with(ReadErrorKind::Cells, detail, faults));
    }
    let arrow_schema_hint: SchemaRef = Arc::new(arrow_schema::Schema::new(
        fields
            .iter()
            .map(|field| retyped(field))
            .collect::<Vec<_>>(),
    ));
    let options = ArrowReaderOptions::new().with_schema(arrow_schema_hint);
    let opened = ArrowReaderMetadata::try_new(found.metadata().clone(), options);
    Ok((opened.map_err(|_| damaged())?, slots))
}

/// A Parquet file has no header line.
fn without_lines(mut error: ReadError) -> ReadError {
    for fault in &mut error.faults {
        fault.place = match fault.column() {
            Some(column) => Place::Column {
                column: column.to_owned(),
            },
            None => Place::Whole,
        };
    }
    error
}

fn retyped(field: &Field) -> Field {
    let item = |item: &Field| {
        let inner = decoded_as(item.data_type());
        Arc::new(item.clone().with_data_type(inner))
    };
    let data_type = match field.data_type() {
        DataType::List(inner) => DataType::List(item(inner)),
        DataType::LargeList(inner) => DataType::LargeList(item(inner)),
        DataType::FixedSizeList(inner, length) => DataType::FixedSizeList(item(inner), *length),
        other => decoded_as(other),
    };
    field.clone().with_data_type(data_type)
}

/// The Arrow type to decode to. Text is decoded as views into its pages, so that a repeated value
/// is stored once. Binary is decoded as text too, because older writers do not mark text as such.
fn decoded_as(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => DataType::Utf8View,
        DataType::Dictionary(_, value) => decoded_as(value),
        other => other.clone(),
    }
}
