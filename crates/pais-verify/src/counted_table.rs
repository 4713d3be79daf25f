//! A released table with the persons that its rows are about.

use pais_core::table::ReleasedTable;

/// A released table, and what its groups are counted by: rows, or the persons of its rows.
///
/// The column that names the person is never released, so the persons come from the raw table. A
/// table alone converts to one whose rows are counted:
///
/// ```
/// use pais_core::table::ReleasedTable;
/// use pais_verify::CountedTable;
///
/// let table = ReleasedTable { name: "data".into(), rows: 0, columns: Vec::new() };
/// assert_eq!(CountedTable::from(&table).subjects, None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CountedTable<'a> {
    /// The released table.
    pub table: &'a ReleasedTable,
    /// The person of each row, as any number; rows of one person have the same. `None` if each row
    /// is a person of its own.
    pub subjects: Option<&'a [u32]>,
}

impl<'a> From<&'a ReleasedTable> for CountedTable<'a> {
    fn from(table: &'a ReleasedTable) -> Self {
        Self {
            table,
            subjects: None,
        }
    }
}
