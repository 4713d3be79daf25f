//! Reads Parquet submissions. Columns are found by name; cells become the text that they would have
//! in CSV.
//!
//! Line numbers in faults are record numbers.

use std::cell::Cell;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_schema::{DataType, Field, SchemaRef};
use pais_core::definition::ColumnKind;
use pais_core::rejection::{Fault, Place};
use pais_core::schema::Schema;
use pais_core::table::{ReadError, ReadErrorKind, Table};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};

use crate::draft::ColumnType;
use crate::read::chunk_builder::{CHUNK_ROWS, ChunkBuilder};
use crate::read::failure::{ChunkSink, read_into};
use crate::read::header::{self, Target};
use crate::read::parquet_batches::{batch_rows, pieces};
use crate::read::parquet_cells::{ItemCells, is_scalar, push, push_sets};
use crate::read::parquet_footer::{self, damaged};
use crate::read::parquet_pages::measure;
use crate::read::set_columns::SetColumns;
use crate::read::{ReadFailure, ReadLimits};

pub use parquet::errors::Result as SourceResult;
pub use parquet::file::reader::{ChunkReader, Length};

/// Reads a Parquet file and passes its rows to `chunk`, in chunks of the stored columns. Returns
/// the number of rows.
///
/// Memory is a page of each column, a batch and a chunk. `limits.total_bytes` bounds the decoded
/// bytes of the file. It is checked twice: against the sizes in the page headers before anything is
/// decoded, and against the cells as text. Identifiers are not decoded.
///
/// # Errors
/// As [`ReadFailure`]; [`ReadErrorKind::TooLarge`] beyond the limit.
pub fn read<E, R: ChunkReader + 'static>(
    schema: &Schema,
    source: R,
    limits: ReadLimits,
    chunk: impl FnMut(Table) -> Result<(), E>,
) -> Result<u64, ReadFailure<E>> {
    read_into(chunk, |chunk| read_chunks(schema, source, limits, chunk))
}

fn read_chunks<'s, R: ChunkReader + 'static>(
    schema: &'s Schema,
    source: R,
    limits: ReadLimits,
    chunk: &'s mut ChunkSink<'s>,
) -> Result<u64, ReadFailure<Infallible>> {
    let source = Arc::new(source);
    let limit = limits.total_bytes;
    let (opened, targets) = guarded(|| open(schema, &*source))?;
    let rows = opened.metadata().file_metadata().num_rows();
    let rows = u64::try_from(rows).map_err(|_| damaged())?;
    if rows > limit.min(MAX_ROWS) {
        return Err(too_large(limit).into());
    }
    let mut builder = ChunkBuilder::new(schema, limits, chunk);
    if !targets.iter().any(|target| target.is_stored()) {
        // All columns are identifiers: nothing is stored, so nothing is decoded.
        for start in (0..rows).step_by(CHUNK_ROWS) {
            builder.end_rows((rows - start).min(CHUNK_ROWS as u64) as usize)?;
        }
        return builder.finish(NO_ROWS);
    }
    let projected = targets.iter().enumerate().filter(|(_, it)| it.is_stored());
    let roots: Vec<usize> = projected.map(|(root, _)| root).collect();
    let mask = ProjectionMask::roots(opened.parquet_schema(), roots);
    let mut reader = guarded(|| {
        let metadata = opened.metadata().clone();
        let pages = measure(&*source, &metadata, |leaf| mask.leaf_included(leaf), limit);
        let pages = pages.map_err(refused)?;
        if pages.bytes > limit {
            return Err(too_large(limit));
        }
        let rows = batch_rows(&source, &metadata, &pages).map_err(refused)?;
        ParquetRecordBatchReaderBuilder::new_with_metadata(Shared(source), opened)
            .with_projection(mask)
            .with_batch_size(rows)
            .build()
            .map_err(|_| damaged())
    })?;
    let targets: Vec<Target> = targets.into_iter().filter(|it| it.is_stored()).collect();
    let mut sets = SetColumns::new(schema);
    let (mut first, mut bytes) = (1, 0u64);
    while let Some(batch) = guarded(|| reader.next().transpose().map_err(|_| damaged()))? {
        for piece in pieces(batch) {
            let mut items = Vec::new();
            for (array, target) in piece.columns().iter().zip(&targets) {
                match *target {
                    Target::Item(item) => items.push(ItemCells { item, cells: array }),
                    Target::Cell(Some(slot)) => {
                        bytes = bytes.saturating_add(push(&mut builder, slot, array, first)?);
                    }
                    Target::Cell(None) => {}
                }
            }
            if !items.is_empty() {
                let added = push_sets(&mut builder, &mut sets, &items, first)?;
                bytes = bytes.saturating_add(added);
            }
            if bytes > limit {
                return Err(too_large(limit).into());
            }
            first += piece.num_rows() as u64;
            builder.end_rows(piece.num_rows())?;
        }
    }
    builder.finish(NO_ROWS)
}

/// Maximum number of rows of a file; rows have numbers of 32 bits.
const MAX_ROWS: u64 = u32::MAX as u64 - 1;

const NO_ROWS: &str = "the file has no rows; a submission needs at least one";

/// The number of rows that the footer of a file names. Reads nothing else.
///
/// # Errors
/// [`ReadErrorKind::Malformed`] if the source is not a Parquet file.
pub fn rows(source: &impl ChunkReader) -> Result<u64, ReadError> {
    guarded(|| {
        let rows = parquet_footer::read(source)?.file_metadata().num_rows();
        u64::try_from(rows).map_err(|_| damaged())
    })
}

/// The names of a file's columns.
///
/// # Errors
/// [`ReadErrorKind::Malformed`] if the source is not a Parquet file.
pub fn names(source: &impl ChunkReader) -> Result<Vec<String>, ReadError> {
    guarded(|| {
        let opened = metadata(source)?;
        let fields = opened.schema().fields().iter();
        Ok(fields.map(|field| field.name().clone()).collect())
    })
}

/// The names of a file's columns, with what their types say.
///
/// # Errors
/// As [`names`].
pub(crate) fn column_types(
    source: &impl ChunkReader,
) -> Result<Vec<(String, Option<ColumnType>)>, ReadError> {
    guarded(|| {
        let opened = metadata(source)?;
        let fields = opened.schema().fields().iter();
        let columns = fields.map(|field| (field.name().clone(), column_type(field.data_type())));
        Ok(columns.collect())
    })
}

fn column_type(data_type: &DataType) -> Option<ColumnType> {
    Some(match data_type {
        DataType::Boolean => ColumnType::Boolean,
        DataType::Date32 | DataType::Date64 => ColumnType::Date,
        DataType::Timestamp(_, _) => ColumnType::Moment,
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _) => {
            ColumnType::List
        }
        DataType::Decimal32(_, _)
        | DataType::Decimal64(_, _)
        | DataType::Decimal128(_, _)
        | DataType::Decimal256(_, _) => ColumnType::Number,
        other if other.is_numeric() => ColumnType::Number,
        other => match decoded_as(other) {
            DataType::Utf8View => ColumnType::Text,
            _ => return None,
        },
    })
}

/// The source, which is read for its pages' headers and by the decoder.
struct Shared<R>(Arc<R>);

impl<R: ChunkReader> Length for Shared<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for Shared<R> {
    type T = R::T;

    fn get_read(&self, start: u64) -> parquet::errors::Result<R::T> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<bytes::Bytes> {
        self.0.get_bytes(start, length)
    }
}

thread_local! {
    static IS_DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread decodes a Parquet file: a panic is then a damaged file, and not a fault of the program.
pub fn is_decoding() -> bool {
    IS_DECODING.get()
}

/// Runs `work` and turns a panic into an error: the decoder can panic on a damaged file.
fn guarded<T>(work: impl FnOnce() -> Result<T, ReadError>) -> Result<T, ReadError> {
    let was_decoding = IS_DECODING.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(damaged()));
    IS_DECODING.set(was_decoding);
    done
}

/// The error behind one of the source.
fn refused(error: std::io::Error) -> ReadError {
    error.downcast().unwrap_or_else(|_| damaged())
}

fn too_large(limit: u64) -> ReadError {
    ReadError::new(
        ReadErrorKind::TooLarge,
        format!(
            "the file decodes to more than {limit} bytes (limits.upload_bytes); send the rows in several files"
        ),
    )
}

/// The metadata of a file. What writers say about Arrow types in the key-value metadata is not used: a column
/// has the type that the format itself gives it.
fn metadata(source: &impl ChunkReader) -> Result<ArrowReaderMetadata, ReadError> {
    let footer = Arc::new(parquet_footer::read(source)?);
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    ArrowReaderMetadata::try_new(footer, options).map_err(|_| damaged())
}

/// Reads the footer. Returns how the columns are decoded, and where the cells of each go.
fn open(
    schema: &Schema,
    source: &impl ChunkReader,
) -> Result<(ArrowReaderMetadata, Vec<Target>), ReadError> {
    let found = metadata(source)?;
    let fields = found.schema().fields();
    let names: Vec<&[u8]> = fields.iter().map(|field| field.name().as_bytes()).collect();
    let targets = header::columns(schema, &names, None).map_err(without_lines)?;
    let stored: Vec<_> = schema.stored().collect();
    let mut faults = Vec::new();
    for (field, target) in fields.iter().zip(&targets) {
        let takes_lists = match *target {
            Target::Cell(None) => continue,
            Target::Cell(Some(slot)) => stored[slot].kind() == ColumnKind::Set,
            Target::Item(_) => false,
        };
        let scalar = match field.data_type() {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _)
                if takes_lists =>
            {
                item.data_type()
            }
            other => other,
        };
        if !is_scalar(&decoded_as(scalar)) {
            let column = field.name().clone();
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
    Ok((opened.map_err(|_| damaged())?, targets))
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
