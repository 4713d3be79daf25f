//! Tables as bytes (Arrow IPC, zstd), and chunks put together again.

use thiserror::Error;

use super::Table;

/// Bytes that are no chunk.
#[derive(Debug, Error)]
#[error("the bytes are no chunk of this table")]
pub struct ChunkError;

/// A table as bytes.
///
/// # Errors
/// When it does not fit the format.
pub fn encode(table: &Table) -> Result<Vec<u8>, ChunkError> {
    let _ = table;
    Err(ChunkError)
}

/// A table from its bytes.
///
/// # Errors
/// For bytes that [`encode`] did not make.
pub fn decode(bytes: &[u8]) -> Result<Table, ChunkError> {
    let _ = bytes;
    Err(ChunkError)
}

/// Puts chunks together, each with its own dictionaries, into one table.
#[derive(Debug, Default)]
pub struct Assembler {
    table: Table,
}

impl Assembler {
    /// Adds the rows of a chunk after those before.
    ///
    /// # Errors
    /// For a chunk with another number of columns.
    pub fn push(&mut self, chunk: Table) -> Result<(), ChunkError> {
        self.table = chunk;
        Ok(())
    }

    /// The whole table.
    pub fn finish(self) -> Table {
        self.table
    }
}
