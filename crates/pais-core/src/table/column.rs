//! Tables of text in dictionary form.

/// The code of a null cell. A cell with a word for missing is not null; it has a code of its own.
pub const NULL_CODE: u32 = u32::MAX;

/// One column: `codes[row]` indexes `dictionary`, or is [`NULL_CODE`].
///
/// Takes 4 bytes per row, and the text of each distinct value once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Distinct values, in no particular order.
    pub dictionary: Vec<Box<str>>,
    /// One code per row.
    pub codes: Vec<u32>,
}

impl Column {
    /// The text of a row's cell; `None` for null.
    pub fn text(&self, row: usize) -> Option<&str> {
        self.dictionary
            .get(self.codes[row] as usize)
            .map(AsRef::as_ref)
    }

    /// The number of rows of each distinct value; null is none of them.
    pub fn row_counts(&self) -> Vec<u64> {
        let mut rows = vec![0; self.dictionary.len()];
        for &code in &self.codes {
            if let Some(rows) = rows.get_mut(code as usize) {
                *rows += 1;
            }
        }
        rows
    }
}

/// Bytes that a distinct value takes in memory beside its text, on average over the copies of a run:
/// the pointer and length, the allocation, and an entry of a hash table or a node of a tree.
pub(crate) const VALUE_BYTES: u64 = 72;

/// Columns of equal length, in the order of the schema's stored columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Number of rows.
    pub rows: usize,
    /// One for each stored column of the schema (identifiers are not stored).
    pub columns: Vec<Column>,
}

impl Table {
    /// What the distinct values of all columns take in memory, in bytes.
    pub fn text_bytes(&self) -> u64 {
        let texts = self.columns.iter().flat_map(|column| &column.dictionary);
        texts.map(|text| text.len() as u64 + VALUE_BYTES).sum()
    }
}
