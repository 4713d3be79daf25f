//! Released tables as Parquet.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int64Array, PrimitiveArray, RecordBatch,
    RecordBatchOptions, StringArray,
};
use arrow_schema::{DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::taxonomy::interval::number;

use super::released::items;
use super::{Form, intake::CHUNK_ROWS};
use super::{ReleasedColumn, ReleasedTable};

/// zstd's level: the default of its own program.
const LEVEL: i32 = 3;

impl ReleasedTable {
    /// Writes the table as Parquet, compressed by zstd; equal tables give equal bytes.
    ///
    /// A distinct value is read once; memory is a row group.
    ///
    /// # Errors
    /// Those of `out`, and for what Parquet cannot hold, as a column of 2 GiB of distinct text.
    pub fn write_parquet(&self, out: impl Write + Send) -> io::Result<()> {
        let columns = self
            .columns
            .iter()
            .map(Typed::of)
            .collect::<io::Result<Vec<_>>>()?;
        let fields: Vec<Field> = self
            .columns
            .iter()
            .zip(&columns)
            .map(|(column, typed)| Field::new(&*column.name, typed.data_type(), true))
            .collect();
        let schema = Arc::new(arrow_schema::Schema::new(fields));
        let level = ZstdLevel::try_new(LEVEL).map_err(failed)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_created_by("pais".to_owned())
            .build();
        // Arrow's own copy of the schema would have readers take text for dictionaries.
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(true);
        let mut writer =
            ArrowWriter::try_new_with_options(out, schema.clone(), options).map_err(failed)?;
        for start in (0..self.rows).step_by(CHUNK_ROWS) {
            let rows = start..self.rows.min(start + CHUNK_ROWS);
            let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
            let arrays = self.columns.iter().zip(&columns);
            let arrays = arrays
                .map(|(column, typed)| typed.array(&column.column.codes[rows.clone()]))
                .collect::<io::Result<Vec<ArrayRef>>>()?;
            let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
                .map_err(io::Error::other)?;
            writer.write(&batch).map_err(failed)?;
        }
        writer.close().map_err(failed)?;
        Ok(())
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

/// The distinct values of a column as Parquet has them, by code; `None` where null is written.
enum Typed<'a> {
    Text {
        values: ArrayRef,
        stands: Vec<bool>,
    },
    Integers(Vec<Option<i64>>),
    Numbers(Vec<Option<f64>>),
    Sets {
        values: Vec<Option<&'a str>>,
        separator: char,
    },
}

impl<'a> Typed<'a> {
    fn of(column: &'a ReleasedColumn) -> io::Result<Self> {
        let texts: Vec<Option<&str>> = column
            .column
            .dictionary
            .iter()
            .map(|text| Some(&**text).filter(|text| !column.is_missing(text)))
            .collect();
        let whole = || {
            let parse = |text: &Option<&str>| text.map(str::parse::<i64>).transpose().ok();
            texts.iter().map(parse).collect::<Option<Vec<_>>>()
        };
        match column.form {
            Form::Set { separator } => {
                return Ok(Self::Sets {
                    values: texts,
                    separator,
                });
            }
            Form::Number | Form::Integer => {
                if let Some(values) = whole() {
                    return Ok(Self::Integers(values));
                }
                let parse = |text: &Option<&str>| match text {
                    None => Some(None),
                    Some(text) => number(text).map(Some),
                };
                if let Some(values) = texts.iter().map(parse).collect::<Option<Vec<_>>>() {
                    return Ok(Self::Numbers(values));
                }
            }
            Form::Generalized | Form::Text => {}
        }
        let bytes: usize = column.column.dictionary.iter().map(|text| text.len()).sum();
        if i32::try_from(bytes).is_err() {
            let detail = "a column has more than 2 GiB of distinct text, which no batch can hold";
            return Err(io::Error::other(detail));
        }
        Ok(Self::Text {
            stands: texts.iter().map(Option::is_some).collect(),
            values: Arc::new(StringArray::from_iter_values(
                column.column.dictionary.iter().map(AsRef::<str>::as_ref),
            )),
        })
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Text { .. } => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            Self::Integers(_) => DataType::Int64,
            Self::Numbers(_) => DataType::Float64,
            Self::Sets { .. } => DataType::List(item()),
        }
    }

    fn array(&self, codes: &[u32]) -> io::Result<ArrayRef> {
        let values = |code: &u32| *code as usize;
        Ok(match self {
            Self::Text {
                values: texts,
                stands,
            } => {
                let keys: PrimitiveArray<Int32Type> = codes
                    .iter()
                    .map(|&code| {
                        let stands = stands.get(code as usize) == Some(&true);
                        stands.then_some(code as i32)
                    })
                    .collect();
                let array = DictionaryArray::try_new(keys, texts.clone());
                Arc::new(array.map_err(io::Error::other)?)
            }
            Self::Integers(numbers) => {
                let at = |code| numbers.get(values(code)).copied().flatten();
                Arc::new(codes.iter().map(at).collect::<Int64Array>())
            }
            Self::Numbers(numbers) => {
                let at = |code| numbers.get(values(code)).copied().flatten();
                Arc::new(codes.iter().map(at).collect::<Float64Array>())
            }
            Self::Sets {
                values: sets,
                separator,
            } => {
                let mut lists = ListBuilder::new(StringBuilder::new()).with_field(item());
                for code in codes {
                    let set = sets.get(values(code)).copied().flatten();
                    for item in set.into_iter().flat_map(|set| items(set, *separator)) {
                        lists.values().append_value(item);
                    }
                    lists.append(set.is_some());
                }
                Arc::new(lists.finish())
            }
        })
    }
}

fn item() -> Arc<Field> {
    Arc::new(Field::new("element", DataType::Utf8, false))
}
