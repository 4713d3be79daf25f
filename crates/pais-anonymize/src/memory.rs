//! Memory that every run needs, whatever its method.

use pais_core::schema::Schema;
use pais_core::table::UnchangedRisk;
use pais_measure::{distribution_bytes, sample_bytes};
use pais_verify::adversary_bytes;

use crate::job_checks::is_set;

/// Number of copies of the distinct text that are in memory at most, in addition to the chunk that is decoded:
/// sensitive values as released unchanged, as their column, in the released table and in the table that the
/// verifier reads; or the values of a flat tree as read, in its nodes, in its index, and as labels of the
/// released table. Measured: 2.9 copies of insensitive text, 3.9 of sensitive text (200,000 distinct values of
/// 512 bytes).
pub(crate) const TEXT_COPIES: u64 = 4;

/// The same for anatomized output, which keeps the quasi-identifiers as they were read, and has
/// sensitive values in a table of their own. Measured: 4.9 copies.
pub(crate) const ANATOMIZED_TEXT_COPIES: u64 = 5;

/// Bytes for each row that a set-valued quasi-identifier needs in addition to its released cells: its number,
/// where its items begin, and 16 items of 4 bytes as read, as they are disclosed, and once more while a class
/// is divided.
const SET_BYTES: u64 = 8 + 3 * 16 * 4;

/// Bytes of the equivalence classes for each row: its class, and where each row has one of its own the first
/// row of the class and its size.
const CLASS_BYTES: u64 = 4 + 2 * 4;

/// Bytes for each row of the classes by all columns: its class, its class in the part of one thread, and the
/// numbers of the classes with their table.
const UNIQUE_ROW_BYTES: u64 = 4 + 4 + 2 * 8 + 24;

/// Bytes of the codes of one row.
pub(crate) fn code_bytes(schema: &Schema) -> u64 {
    4 * schema.stored().count() as u64
}

/// Maximum bytes of a table without the text while it is read and profiled, or searched and released: the codes
/// as read or encoded, a copy of them, the codes of columns that are being built, and for each row its place in
/// the order of the search and in the shuffled order. The number of items of a set-valued quasi-identifier is
/// not known beforehand; it is assumed to be more than most prescriptions have on average.
pub(crate) fn table_codes(schema: &Schema, rows: u64) -> u64 {
    let codes = code_bytes(schema);
    let sets = schema.stored().filter(|column| is_set(column)).count() as u64;
    let in_the_making = codes / 2;
    rows.saturating_mul(2 * codes + in_the_making + 16 + sets * SET_BYTES)
}

/// Bytes that a release needs at most without the text and the classifiers: until it is made ([`table_codes`]),
/// or while its risk is measured after that: the codes as read and released, the raw row of each row, the
/// equivalence classes that the verifier has found, at most `classes`, the sample, and what the measures work
/// in. Their memory for each distinct value is that of the copy of the text that the verifier no longer has.
pub(crate) fn release_codes(schema: &Schema, rows: u64, classes: u64) -> u64 {
    let kept = rows.saturating_mul(2 * code_bytes(schema) + 8 + CLASS_BYTES);
    // Adversaries are measured after the unchanged columns, beside the rows that are alone.
    let adversaries = adversary_bytes(schema, rows, classes);
    let adversaries = adversaries.saturating_add(rows.saturating_mul(UNIQUE_ROW_BYTES));
    let measured = kept.saturating_add(UnchangedRisk::bytes_needed(schema, rows).max(adversaries));
    let measured = measured.saturating_add(sample_bytes(schema, rows));
    let measured = measured.saturating_add(distribution_bytes(schema, rows));
    measured.max(table_codes(schema, rows))
}
