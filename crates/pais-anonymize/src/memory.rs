//! Memory that every run needs, whatever its method.

use pais_core::schema::Schema;

use crate::job_checks::is_set;

/// Bytes for each row that a set-valued quasi-identifier needs beside its released cells: its
/// number, where its items begin, and 16 items of 4 bytes as read, as they are disclosed, and
/// once more while a class is divided.
const SET_BYTES: u64 = 8 + 3 * 16 * 4;

/// Bytes of the codes of one row.
pub(crate) fn code_bytes(schema: &Schema) -> u64 {
    4 * schema.stored().count() as u64
}

/// Bytes that a release of this many rows needs at most, beside the text of distinct values: the
/// codes as read, those of the released table and narrowed ones beside them, and for each row the
/// order of the search and the shuffled one. The number of items of a set-valued quasi-identifier
/// is not known beforehand; it is taken to be what most prescriptions stay below on average.
pub fn release_bytes(schema: &Schema, rows: u64) -> u64 {
    let codes = code_bytes(schema);
    let sets = schema.stored().filter(|column| is_set(column)).count() as u64;
    let narrowed = codes / 2;
    rows.saturating_mul(2 * codes + narrowed + 16 + sets * SET_BYTES)
}
