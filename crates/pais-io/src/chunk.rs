//! Encodes tables as bytes (Arrow IPC, zstd), and joins chunks into one table.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, PrimitiveArray, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field};
use hashbrown::{DefaultHashBuilder, HashTable};
use pais_core::table::{Column, NULL_CODE, Table};
use thiserror::Error;

/// Why bytes are not a valid chunk.
#[derive(Debug, Error)]
pub enum ChunkError {
    /// They are not valid Arrow IPC.
    #[error("the bytes of a chunk are not valid Arrow IPC")]
    Format(#[from] ArrowError),
    /// They are valid Arrow IPC, but do not have the columns of the table.
    #[error("a chunk does not have the columns of its table")]
    Shape,
}

/// Encodes a table as bytes: one Arrow IPC stream with one batch of dictionary columns. Keys are as
/// narrow as the dictionary allows, and buffers are compressed by zstd.
///
/// # Errors
/// Those of Arrow, for example for more than 2 GiB of distinct text.
pub fn encode(table: &Table) -> Result<Vec<u8>, ChunkError> {
    let mut fields = Vec::with_capacity(table.columns.len());
    let mut arrays = Vec::with_capacity(table.columns.len());
    for (index, column) in table.columns.iter().enumerate() {
        let array = dictionary_array(column)?;
        fields.push(Field::new(
            index.to_string(),
            array.data_type().clone(),
            true,
        ));
        arrays.push(array);
    }
    let schema = Arc::new(arrow_schema::Schema::new(fields));
    let rows = arrow_array::RecordBatchOptions::new().with_row_count(Some(table.rows));
    let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &rows)?;
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD))?;
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options)?;
    writer.write(&batch)?;
    writer.finish()?;
    Ok(writer.into_inner()?)
}

fn dictionary_array(column: &Column) -> Result<ArrayRef, ChunkError> {
    let bytes = column.dictionary.iter().map(|text| text.len()).sum();
    let mut values = StringBuilder::with_capacity(column.dictionary.len(), bytes);
    for text in &column.dictionary {
        values.append_value(text);
    }
    let values: ArrayRef = Arc::new(values.finish());
    Ok(match column.dictionary.len() {
        0..=0xff => Arc::new(with_keys::<UInt8Type>(column, values, |code| code as u8)?),
        0x100..=0xffff => Arc::new(with_keys::<UInt16Type>(column, values, |code| code as u16)?),
        _ => Arc::new(with_keys::<UInt32Type>(column, values, |code| code)?),
    })
}

/// `narrow` loses no bits of a code below the dictionary's length: the caller chooses the key type
/// by that length.
fn with_keys<K: ArrowDictionaryKeyType>(
    column: &Column,
    values: ArrayRef,
    narrow: impl Fn(u32) -> K::Native,
) -> Result<DictionaryArray<K>, ArrowError> {
    let keys: PrimitiveArray<K> = if column.codes.contains(&NULL_CODE) {
        column
            .codes
            .iter()
            .map(|&code| (code != NULL_CODE).then(|| narrow(code)))
            .collect()
    } else {
        PrimitiveArray::from_iter_values(column.codes.iter().map(|&code| narrow(code)))
    };
    DictionaryArray::try_new(keys, values)
}

/// Decodes a table from the bytes of [`encode`].
///
/// # Errors
/// For bytes that are not from [`encode`].
pub fn decode(bytes: &[u8]) -> Result<Table, ChunkError> {
    let mut reader = StreamReader::try_new(bytes, None)?;
    let batch = reader.next().ok_or(ChunkError::Shape)??;
    let columns = batch
        .columns()
        .iter()
        .map(column_of)
        .collect::<Result<_, _>>()?;
    Ok(Table {
        rows: batch.num_rows(),
        columns,
    })
}

fn column_of(array: &ArrayRef) -> Result<Column, ChunkError> {
    let DataType::Dictionary(key, _) = array.data_type() else {
        return Err(ChunkError::Shape);
    };
    match **key {
        DataType::UInt8 => column_of_keys(array.as_dictionary::<UInt8Type>()),
        DataType::UInt16 => column_of_keys(array.as_dictionary::<UInt16Type>()),
        DataType::UInt32 => column_of_keys(array.as_dictionary::<UInt32Type>()),
        _ => Err(ChunkError::Shape),
    }
}

fn column_of_keys<K: ArrowDictionaryKeyType>(
    array: &DictionaryArray<K>,
) -> Result<Column, ChunkError>
where
    K::Native: Into<u32>,
{
    let values = array
        .values()
        .as_string_opt::<i32>()
        .ok_or(ChunkError::Shape)?;
    let dictionary = values
        .iter()
        .map(|text| text.unwrap_or_default().into())
        .collect();
    let keys = array.keys();
    let codes = if keys.null_count() == 0 {
        keys.values().iter().map(|&key| key.into()).collect()
    } else {
        keys.iter()
            .map(|key| key.map_or(NULL_CODE, Into::into))
            .collect()
    };
    Ok(Column { dictionary, codes })
}

/// Joins chunks, each with its own dictionaries, into one table.
///
/// Hashes each distinct value once per chunk, and writes 4 bytes per cell.
#[derive(Default)]
pub struct Assembler {
    table: Table,
    hasher: DefaultHashBuilder,
    known: Vec<HashTable<u32>>,
    /// Rows that are expected.
    capacity: usize,
}

impl Assembler {
    /// For this many rows, whose codes are then not moved while chunks are joined. Takes 4 bytes a cell with
    /// the first chunk.
    pub fn with_capacity(rows: usize) -> Self {
        Self {
            capacity: rows,
            ..Self::default()
        }
    }

    /// Appends the rows of a chunk.
    ///
    /// # Errors
    /// For a chunk with another number of columns.
    pub fn push(&mut self, chunk: Table) -> Result<(), ChunkError> {
        if self.known.is_empty() {
            let empty = || Column {
                dictionary: Vec::new(),
                codes: Vec::with_capacity(self.capacity),
            };
            let columns = chunk.columns.len();
            self.table.columns.resize_with(columns, empty);
            self.known.resize_with(chunk.columns.len(), HashTable::new);
        }
        if self.known.len() != chunk.columns.len() {
            return Err(ChunkError::Shape);
        }
        self.table.rows += chunk.rows;
        for ((whole, known), chunk_column) in self
            .table
            .columns
            .iter_mut()
            .zip(&mut self.known)
            .zip(chunk.columns)
        {
            let hasher = &self.hasher;
            let mut codes = Vec::with_capacity(chunk_column.dictionary.len());
            for text in chunk_column.dictionary {
                let hash = hasher.hash_one(&*text);
                let dictionary = &whole.dictionary;
                let found = known.find(hash, |&code| dictionary[code as usize] == text);
                codes.push(match found {
                    Some(&code) => code,
                    None => {
                        let code = whole.dictionary.len() as u32;
                        whole.dictionary.push(text);
                        let dictionary = &whole.dictionary;
                        known.insert_unique(hash, code, |&code| {
                            hasher.hash_one(&*dictionary[code as usize])
                        });
                        code
                    }
                });
            }
            let translated = chunk_column.codes.iter().map(|&code| match code {
                NULL_CODE => NULL_CODE,
                code => codes[code as usize],
            });
            whole.codes.extend(translated);
        }
        Ok(())
    }

    /// Returns the whole table.
    pub fn finish(self) -> Table {
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column(cells: &[Option<String>]) -> Column {
        let mut column = Column::default();
        for cell in cells {
            let code = cell.as_ref().map(|cell| {
                let known = column.dictionary.iter().position(|text| **text == **cell);
                known.unwrap_or_else(|| {
                    column.dictionary.push(cell.as_str().into());
                    column.dictionary.len() - 1
                })
            });
            column
                .codes
                .push(code.map_or(NULL_CODE, |code| code as u32));
        }
        column
    }

    fn texts(column: &Column) -> Vec<Option<String>> {
        (0..column.codes.len())
            .map(|row| column.text(row).map(str::to_owned))
            .collect()
    }

    proptest! {
        #[test]
        fn chunks_are_encoded_decoded_and_joined(
            chunks in prop::collection::vec(
                prop::collection::vec(prop::option::of("[a-c]{0,2}"), 0..40), 1..4),
            capacity in 0..100usize,
        ) {
            let mut assembler = Assembler::with_capacity(capacity);
            for cells in &chunks {
                let table = Table { rows: cells.len(), columns: vec![column(cells)] };
                let decoded = decode(&encode(&table).unwrap()).unwrap();
                prop_assert_eq!(&decoded, &table);
                assembler.push(decoded).unwrap();
            }
            let whole = assembler.finish();
            prop_assert_eq!(texts(&whole.columns[0]), chunks.concat());
        }
    }

    #[test]
    fn wide_dictionaries_take_wider_keys() {
        let cells: Vec<_> = (0..70_000).map(|value| Some(value.to_string())).collect();
        for rows in [300, 70_000] {
            let texts = cells[..rows].iter().flatten();
            let column = Column {
                dictionary: texts.map(|cell| cell.as_str().into()).collect(),
                codes: (0..rows as u32).collect(),
            };
            let table = Table {
                rows,
                columns: vec![column],
            };
            assert_eq!(decode(&encode(&table).unwrap()).unwrap(), table);
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        assert!(decode(b"").is_err());
        assert!(decode(b"not a chunk at all").is_err());
    }
}
