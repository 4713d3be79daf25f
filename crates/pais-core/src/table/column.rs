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
        code_counts(&self.codes, self.dictionary.len())
    }

    /// Cells with a dictionary of only the values that occur in them, so that no file format contains a value
    /// that only omitted rows have.
    pub fn of_cells(dictionary: &[Box<str>], cells: impl Iterator<Item = u32>) -> Self {
        let mut new_codes = vec![NULL_CODE; dictionary.len()];
        let mut kept = Vec::new();
        let codes = cells.map(|code| {
            let Some(new) = new_codes.get_mut(code as usize) else {
                return NULL_CODE;
            };
            if *new == NULL_CODE {
                *new = kept.len() as u32;
                kept.push(dictionary[code as usize].clone());
            }
            *new
        });
        let codes = codes.collect();
        Self {
            dictionary: kept,
            codes,
        }
    }
}

/// Maximum number of codes that are counted in several tables.
const FEW_CODES: usize = 1 << 12;

/// How often each code below `count` occurs among fewer than 2^32 codes; others are not counted.
///
/// Most cells of a released column have one of few codes, and an addition waits for the previous one at the
/// same place. So four tables take turns if they are small.
pub fn code_counts<C: Copy + Into<u32>>(codes: &[C], count: usize) -> Vec<u64> {
    // The last place is for all other codes.
    let places = count + 1;
    let (tables, distance) = if places <= FEW_CODES {
        (4, places)
    } else {
        (1, 0)
    };
    let mut found = vec![0u32; tables * places];
    let place = |code: u32| (code as usize).min(count);
    let (quadruples, rest) = codes.as_chunks::<4>();
    for quadruple in quadruples {
        for (table, &code) in quadruple.iter().enumerate() {
            found[table * distance + place(code.into())] += 1;
        }
    }
    rest.iter().for_each(|&code| found[place(code.into())] += 1);
    let sum = |code| {
        found[code..]
            .iter()
            .step_by(places)
            .map(|&n| u64::from(n))
            .sum()
    };
    (0..count).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Column, FEW_CODES, NULL_CODE, code_counts};

    #[test]
    fn a_part_has_only_the_values_of_its_rows() {
        let dictionary = ["a", "b", "c"].map(Into::into);
        let part = Column::of_cells(&dictionary, [2, NULL_CODE, 2].into_iter());
        assert_eq!(part.dictionary, ["c".into()]);
        assert_eq!(part.codes, [0, NULL_CODE, 0]);
    }

    proptest! {
        #[test]
        fn codes_are_counted_in_few_and_in_many_places(
            codes in prop::collection::vec(prop_oneof![0..9u32, Just(NULL_CODE)], 0..40),
            count in prop_oneof![0..12usize, FEW_CODES - 2..FEW_CODES + 2],
        ) {
            let found = code_counts(&codes, count);
            prop_assert_eq!(found.len(), count);
            for (code, rows) in (0u32..).zip(found).take(12) {
                prop_assert_eq!(rows as usize, codes.iter().filter(|it| **it == code).count());
            }
        }
    }
}

/// Bytes that a distinct value takes in memory in addition to its text, on average over the copies of a run:
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
    /// Some rows, in this order. Dictionaries have only the values of these rows, so that no label depends on a
    /// value of another row.
    pub fn of_rows(&self, rows: &[u32]) -> Self {
        let columns = self.columns.iter().map(|column| {
            let cells = rows.iter().map(|&row| column.codes[row as usize]);
            Column::of_cells(&column.dictionary, cells)
        });
        Self {
            rows: rows.len(),
            columns: columns.collect(),
        }
    }

    /// Memory of the distinct values of all columns, in bytes.
    pub fn text_bytes(&self) -> u64 {
        let texts = self.columns.iter().flat_map(|column| &column.dictionary);
        texts.map(|text| text.len() as u64 + VALUE_BYTES).sum()
    }
}
