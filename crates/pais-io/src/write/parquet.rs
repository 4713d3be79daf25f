//! Writes released tables as Parquet.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, DictionaryArray, Float64Array, Int32Array,
    Int64Array, StringArray, TimestampMillisecondArray, UInt32Array,
};
use arrow_schema::{DataType, Field, FieldRef};
use arrow_select::take::take;
use pais_core::calendar::{read_day, read_moment};
use pais_core::schema::items;
use pais_core::table::{Form, ReleasedColumn, ReleasedTable};
use pais_core::taxonomy::interval::{canonical_number, number, whole_and_power};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowWriterOptions, compute_leaves,
};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::read::CHUNK_ROWS;
use crate::write::ordered_parallel::ordered_parallel;

/// The zstd level: the default of the program `zstd`.
const LEVEL: i32 = 3;

/// Maximum number of digits of a decimal.
const DECIMAL_DIGITS: u8 = 38;

/// 2⁵³: up to it, 64-bit floating-point numbers keep every whole number.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Number of rows of a row group.
const GROUP_ROWS: usize = 16 * CHUNK_ROWS;

/// Writes the table as Parquet, compressed by zstd. Equal tables give equal bytes for every
/// number of threads.
///
/// A distinct value is read once. Several threads encode columns; the calling thread writes to
/// `out`. Memory is one row group.
///
/// # Errors
/// Those of `out`, and for data that Parquet cannot store, such as a column with more than
/// 2 GiB of distinct text.
pub fn parquet(table: &ReleasedTable, out: impl Write + Send) -> io::Result<()> {
    write_in_groups(table, GROUP_ROWS, CHUNK_ROWS, out)
}

/// A file with a part of a table.
#[derive(Clone, Debug)]
pub struct ParquetFile {
    /// Number of rows.
    pub rows: usize,
    /// The file.
    pub bytes: Vec<u8>,
}

/// The table as Parquet files with the same types of columns: each has the next `rows` rows, the last one the
/// remaining rows, as one row group. A table without rows is one file.
///
/// # Errors
/// As [`parquet()`].
pub fn parquet_files(
    table: &ReleasedTable,
    rows: usize,
) -> io::Result<impl Iterator<Item = io::Result<ParquetFile>>> {
    let columns = encoded_columns(table)?;
    let starts = (0..table.rows.max(1)).step_by(rows);
    Ok(starts.map(move |start| {
        let part = start..table.rows.min(start + rows);
        let mut bytes = Vec::new();
        write_rows(&columns, part.clone(), rows, CHUNK_ROWS, &mut bytes)?;
        let rows = part.len();
        Ok(ParquetFile { rows, bytes })
    }))
}

/// As [`parquet`], with row groups of `group` rows, encoded `batch` rows at a time.
pub(super) fn write_in_groups(
    table: &ReleasedTable,
    group: usize,
    batch: usize,
    out: impl Write + Send,
) -> io::Result<()> {
    write_rows(&encoded_columns(table)?, 0..table.rows, group, batch, out)
}

fn encoded_columns(table: &ReleasedTable) -> io::Result<Vec<EncodedColumn<'_>>> {
    table.columns.iter().map(EncodedColumn::new).collect()
}

/// Writes these rows of a table.
fn write_rows(
    columns: &[EncodedColumn<'_>],
    rows: Range<usize>,
    group: usize,
    batch: usize,
    out: impl Write + Send,
) -> io::Result<()> {
    let fields: Vec<FieldRef> = columns.iter().map(|it| it.field.clone()).collect();
    let schema = Arc::new(arrow_schema::Schema::new(fields));
    let writer = ArrowWriter::try_new_with_options(out, schema, options(group)?).map_err(failed)?;
    let (mut writer, factory) = writer.into_serialized_writer().map_err(failed)?;
    // One job per column and row group. The writers of a row group are created with its first
    // job.
    let starts = rows.clone().step_by(group).enumerate();
    let jobs = starts.clone().flat_map(|(index, start)| {
        let rows = start..rows.end.min(start + group);
        let writers = match factory.create_column_writers(index) {
            Ok(writers) => writers.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(failed(error))],
        };
        let jobs = columns.iter().zip(writers);
        jobs.map(move |(column, writer)| (column, writer, rows.clone()))
    });
    // For a single batch a helper thread costs more than it saves.
    let ahead = if rows.len() > batch { columns.len() } else { 0 };
    ordered_parallel(
        jobs,
        ahead,
        |(column, writer, rows)| column.encode(writer?, rows, batch),
        |chunks| -> io::Result<()> {
            for _ in starts {
                let mut group = writer.next_row_group().map_err(failed)?;
                for chunk in (&mut *chunks).take(columns.len()) {
                    chunk?.append_to_row_group(&mut group).map_err(failed)?;
                }
                group.close().map_err(failed)?;
            }
            Ok(())
        },
    )?;
    writer.close().map_err(failed)?;
    Ok(())
}

fn options(group: usize) -> io::Result<ArrowWriterOptions> {
    let level = ZstdLevel::try_new(LEVEL).map_err(failed)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(group))
        .set_created_by("pais".to_owned())
        .build();
    // With Arrow's own copy of the schema, readers would read text columns as dictionaries.
    Ok(ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true))
}

/// A column whose distinct values have their Parquet type.
struct EncodedColumn<'a> {
    field: FieldRef,
    /// The distinct values by code; null where they are missing.
    values: ArrayRef,
    codes: &'a [u32],
}

impl<'a> EncodedColumn<'a> {
    fn new(column: &'a ReleasedColumn) -> io::Result<Self> {
        let values = typed_values(column)?;
        let data_type = match values.data_type() {
            DataType::Utf8 => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            other => other.clone(),
        };
        Ok(Self {
            field: Arc::new(Field::new(&*column.name, data_type, true)),
            values,
            codes: &column.column.codes,
        })
    }

    /// Encodes the column's part of a row group, `batch` rows at a time.
    fn encode(
        &self,
        mut writer: ArrowColumnWriter,
        rows: Range<usize>,
        batch: usize,
    ) -> io::Result<ArrowColumnChunk> {
        for codes in self.codes[rows].chunks(batch) {
            let array = self.array(codes)?;
            // There is one leaf: the only field of a list is its items.
            for leaf in compute_leaves(&self.field, &array).map_err(failed)? {
                writer.write(&leaf).map_err(failed)?;
            }
        }
        writer.close().map_err(failed)
    }

    /// The values of these codes.
    fn array(&self, codes: &[u32]) -> io::Result<ArrayRef> {
        let is_valid = |code: &u32| {
            let at = *code as usize;
            at < self.values.len() && self.values.is_valid(at)
        };
        let codes = codes.iter().map(|&code| Some(code).filter(is_valid));
        if *self.values.data_type() != DataType::Utf8 {
            let codes: UInt32Array = codes.collect();
            return take(&self.values, &codes, None).map_err(io::Error::other);
        }
        // Text stays in dictionary form: a distinct value is copied once.
        let keys: Int32Array = codes.map(|code| code.map(|code| code as i32)).collect();
        let array = DictionaryArray::try_new(keys, self.values.clone());
        Ok(Arc::new(array.map_err(io::Error::other)?))
    }
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(inner) => io::Error::other(inner),
        },
        error => io::Error::other(error),
    }
}

/// The distinct values of a column in their Parquet type, by code.
fn typed_values(column: &ReleasedColumn) -> io::Result<ArrayRef> {
    let dictionary = &column.column.dictionary;
    let texts = dictionary.iter().map(AsRef::<str>::as_ref);
    let texts = texts.map(|text| Some(text).filter(|text| !column.is_missing(text)));
    let texts: Vec<Option<&str>> = texts.collect();
    let bytes: usize = dictionary.iter().map(|text| text.len()).sum();
    if i32::try_from(bytes).is_err() {
        let detail = "a column has more than 2 GiB of distinct text, which Parquet cannot store";
        return Err(io::Error::other(detail));
    }
    let no_date = || io::Error::other("an end of an interval is no date");
    Ok(match column.form {
        Form::Set { separator } => {
            let mut lists = ListBuilder::new(StringBuilder::new()).with_field(item());
            for set in texts {
                for item in set.into_iter().flat_map(|set| items(set, separator)) {
                    lists.values().append_value(item);
                }
                lists.append(set.is_some());
            }
            Arc::new(lists.finish())
        }
        Form::Number | Form::Integer => {
            numbers(&texts).unwrap_or_else(|| Arc::new(StringArray::from(texts)))
        }
        Form::Day => {
            let read = |text: &str| i32::try_from(read_day(text).ok()?).ok();
            let days = all(&texts, read).ok_or_else(no_date)?;
            Arc::new(Date32Array::from(days))
        }
        Form::Moment => {
            let moments = all(&texts, |text| read_moment(text).ok()).ok_or_else(no_date)?;
            Arc::new(TimestampMillisecondArray::from(moments))
        }
        Form::Generalized | Form::Text => Arc::new(StringArray::from(texts)),
    })
}

/// Each text that is not missing, read; `None` where one is not of this type.
fn all<T>(texts: &[Option<&str>], read: impl Fn(&str) -> Option<T>) -> Option<Vec<Option<T>>> {
    let texts = texts.iter();
    texts
        .map(|text| match text {
            None => Some(None),
            Some(text) => read(text).map(Some),
        })
        .collect()
}

/// The numbers in the first type that keeps them all: whole, of 64-bit floating point, decimal.
fn numbers(texts: &[Option<&str>]) -> Option<ArrayRef> {
    if let Some(whole) = all(texts, |text| text.parse().ok()) {
        return Some(Arc::new(Int64Array::from(whole)));
    }
    match all(texts, floating_point) {
        Some(numbers) => Some(Arc::new(Float64Array::from(numbers))),
        None => decimals(texts),
    }
}

/// The numbers as decimals: whole numbers beyond 2⁵³ in a column with fractions. `None` where 38
/// digits are too few for them.
fn decimals(texts: &[Option<&str>]) -> Option<ArrayRef> {
    let numbers = all(texts, whole_and_power)?;
    let powers = numbers.iter().flatten().map(|(_, power)| *power);
    let scale = i8::try_from(powers.min()?.checked_neg()?.max(0)).ok()?;
    let is_within = |value: &i128| value.unsigned_abs() < 10u128.pow(DECIMAL_DIGITS.into());
    let scaled = |(whole, power): (i128, i32)| {
        let factor = u32::try_from(power + i32::from(scale)).ok()?;
        let value = 10i128.checked_pow(factor)?.checked_mul(whole)?;
        Some(value).filter(is_within)
    };
    let values = numbers
        .into_iter()
        .map(|number| number.map_or(Some(None), |number| scaled(number).map(Some)))
        .collect::<Option<Vec<_>>>()?;
    let array = Decimal128Array::from(values).with_precision_and_scale(DECIMAL_DIGITS, scale);
    Some(Arc::new(array.ok()?))
}

/// A number as a 64-bit floating-point number; `None` if that does not read back as the number.
fn floating_point(text: &str) -> Option<f64> {
    let value = number(text)?;
    // Whole numbers below this are kept, and other numbers are equal if their 64-bit floating-point
    // numbers are.
    if value.abs() < LARGEST_WHOLE {
        return Some(value);
    }
    let read_back = canonical_number(&format!("{value:e}"));
    (read_back == canonical_number(text)).then_some(value)
}

fn item() -> Arc<Field> {
    Arc::new(Field::new("element", DataType::Utf8, false))
}

#[cfg(test)]
mod tests {
    use ::parquet::arrow::arrow_reader::ParquetRecordBatchReader;
    use arrow_array::RecordBatch;

    use super::super::tests::table;
    use super::*;

    /// The file that ArrowWriter writes from the same arrays.
    fn by_arrow(table: &ReleasedTable, group: usize, batch: usize) -> Vec<u8> {
        let columns: Vec<EncodedColumn> = table
            .columns
            .iter()
            .map(|column| EncodedColumn::new(column).unwrap())
            .collect();
        let fields: Vec<FieldRef> = columns.iter().map(|it| it.field.clone()).collect();
        let schema = Arc::new(arrow_schema::Schema::new(fields));
        let options = options(group).unwrap();
        let mut writer =
            ArrowWriter::try_new_with_options(Vec::new(), schema.clone(), options).unwrap();
        for start in (0..table.rows).step_by(batch) {
            let end = table.rows.min(start + batch);
            let arrays = columns
                .iter()
                .map(|column| column.array(&column.codes[start..end]).unwrap());
            let batch = RecordBatch::try_new(schema.clone(), arrays.collect()).unwrap();
            writer.write(&batch).unwrap();
        }
        writer.into_inner().unwrap()
    }

    /// The row groups of one file in as many files: with the same rows, in the same order and types.
    #[test]
    fn the_files_of_a_table_are_its_rows_in_order() {
        let batches = |file: Vec<u8>| -> Vec<RecordBatch> {
            let reader = ParquetRecordBatchReader::try_new(bytes::Bytes::from(file), 7).unwrap();
            reader.map(Result::unwrap).collect()
        };
        for (rows, of_file) in [(0, 4), (1, 4), (4, 4), (9, 4), (30, 1), (30, 31)] {
            let table = table(rows);
            let files = parquet_files(&table, of_file).unwrap();
            let files: Vec<ParquetFile> = files.map(Result::unwrap).collect();
            assert_eq!(files.len(), rows.div_ceil(of_file).max(1));
            let sizes: usize = files.iter().map(|file| file.rows).sum();
            assert_eq!(sizes, rows);
            let parts = files.into_iter().flat_map(|file| batches(file.bytes));
            let parts: Vec<RecordBatch> = parts.collect();
            let mut whole = Vec::new();
            parquet(&table, &mut whole).unwrap();
            let whole = batches(whole);
            let text = |batches: &[RecordBatch]| {
                let rows = batches.iter().flat_map(|batch| {
                    (0..batch.num_rows()).map(|row| format!("{:?}", batch.slice(row, 1)))
                });
                rows.collect::<Vec<_>>()
            };
            assert_eq!(text(&parts), text(&whole));
        }
    }

    #[test]
    fn files_equal_those_that_arrow_writes_column_by_column() {
        for (rows, group, batch) in [
            (0, GROUP_ROWS, CHUNK_ROWS),
            (1, GROUP_ROWS, CHUNK_ROWS),
            (CHUNK_ROWS + 1, GROUP_ROWS, CHUNK_ROWS),
            (1000, 16, 8),
            (1000, 1000, 100),
        ] {
            let table = table(rows);
            let mut file = Vec::new();
            super::write_in_groups(&table, group, batch, &mut file).unwrap();
            let expected = by_arrow(&table, group, batch);
            assert!(file == expected, "{rows} rows by {group} and {batch}");
        }
    }
}
