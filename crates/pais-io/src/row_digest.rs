//! The digest of the rows of a table, which recognizes the same rows: in another order, with the columns in
//! another order, or in another file format.
//!
//! A row is the sum of the keyed hashes of its cells, made non-linear, and the table is the sum of its
//! rows. All sums are modulo 2^128.

use std::hash::Hasher;

use pais_core::schema::Schema;
use pais_core::table::Table;
use siphasher::sip128::{Hasher128, SipHasher24};

/// Adds up the rows of a table, chunk by chunk.
///
/// Each distinct cell of a chunk is hashed once, together with the name of its column; a further
/// cell costs one addition. The digest is stored, so the hash must stay the same in each version.
pub struct RowDigest {
    /// A hasher for each stored column, which has been fed the column's name.
    columns: Vec<SipHasher24>,
    /// Odd, so that multiplication by it is invertible.
    factors: [u128; 2],
    sum: u128,
    rows: u64,
    /// The sums of the chunk's rows; kept for the next chunk.
    row_sums: Vec<u128>,
}

impl RowDigest {
    /// For rows of this schema, under a key of their dataset.
    pub fn new(key: &[u8; 32], schema: &Schema) -> Self {
        let (of_cells, of_rows) = key.split_at(16);
        let mut cells = [0; 16];
        cells.copy_from_slice(of_cells);
        let mut rows = SipHasher24::new_with_key(&cells);
        rows.write(of_rows);
        let factor = |number: u8| {
            let mut rows = rows;
            rows.write(&[number]);
            rows.finish128().as_u128() | 1
        };
        let column = |name: &str| {
            let mut hasher = rows;
            hasher.write(&(name.len() as u64).to_be_bytes());
            hasher.write(name.as_bytes());
            hasher
        };
        Self {
            columns: schema.stored().map(|spec| column(spec.name())).collect(),
            factors: [factor(1), factor(2)],
            sum: 0,
            rows: 0,
            row_sums: Vec::new(),
        }
    }

    /// Adds the rows of a chunk, whose columns are the stored ones of the schema.
    pub fn push(&mut self, chunk: &Table) {
        self.row_sums.clear();
        self.row_sums.resize(chunk.rows, 0);
        for (hasher, column) in self.columns.iter().zip(&chunk.columns) {
            let hash = |text: &str| {
                let mut hasher = *hasher;
                hasher.write(text.as_bytes());
                hasher.finish128().as_u128()
            };
            let hashes: Vec<u128> = column.dictionary.iter().map(|text| hash(text)).collect();
            // Null is stored as such only where CSV shows it as the empty cell: they are one value.
            let null = hash("");
            for (sum, &code) in self.row_sums.iter_mut().zip(&column.codes) {
                let cell = hashes.get(code as usize).copied().unwrap_or(null);
                *sum = sum.wrapping_add(cell);
            }
        }
        self.rows += chunk.rows as u64;
        for &row in &self.row_sums {
            self.sum = self.sum.wrapping_add(self.mixed(row));
        }
    }

    /// A permutation of the sums of rows. If the sums were added unchanged, cells could move from row to row
    /// unnoticed.
    fn mixed(&self, row: u128) -> u128 {
        let folded = |value: u128| value ^ (value >> 64);
        let [first, second] = self.factors;
        let once = folded(folded(row).wrapping_mul(first));
        folded(once.wrapping_mul(second))
    }

    /// The sum, and the number of rows. `None` if no column is stored: such rows are all equal.
    pub fn total(&self) -> Option<(u128, u64)> {
        (!self.columns.is_empty()).then_some((self.sum, self.rows))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use pais_core::schema::Schema;
    use pais_core::table::{Column, NULL_CODE, Table};
    use proptest::prelude::*;
    use serde_json::json;

    use super::RowDigest;
    use crate::chunk::Assembler;
    use crate::read::{ReadLimits, csv, ndjson};

    const NAMES: [&str; 3] = ["a", "b", "c"];

    type Rows = Vec<[Option<String>; 3]>;

    fn schema(names: [&str; 3]) -> Schema {
        let columns = names.map(|name| json!({"name": name, "role": "quasi_identifier"}));
        let definition = json!({"name": "t", "columns": columns});
        Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap()
    }

    fn table(rows: &[[Option<String>; 3]]) -> Table {
        let column = |index: usize| {
            let mut column = Column::default();
            for row in rows {
                let code = row[index].as_ref().map(|cell| {
                    let known = column.dictionary.iter().position(|text| **text == **cell);
                    known.unwrap_or_else(|| {
                        column.dictionary.push(cell.as_str().into());
                        column.dictionary.len() - 1
                    })
                });
                let code = code.map_or(NULL_CODE, |code| code as u32);
                column.codes.push(code);
            }
            column
        };
        Table {
            rows: rows.len(),
            columns: (0..3).map(column).collect(),
        }
    }

    fn digest_of(names: [&str; 3], chunks: &[Rows]) -> Option<(u128, u64)> {
        let mut digest = RowDigest::new(&[7; 32], &schema(names));
        chunks.iter().for_each(|rows| digest.push(&table(rows)));
        digest.total()
    }

    fn digest(chunks: &[Rows]) -> Option<(u128, u64)> {
        digest_of(NAMES, chunks)
    }

    fn rows() -> impl Strategy<Value = Rows> {
        let cell = || prop::option::of("[a-c]{0,2}");
        let row = (cell(), cell(), cell()).prop_map(|(a, b, c)| [a, b, c]);
        prop::collection::vec(row, 1..12)
    }

    fn as_csv(rows: &Rows) -> Vec<Vec<String>> {
        let cells = |row: &[Option<String>; 3]| {
            row.iter()
                .map(|cell| cell.clone().unwrap_or_default())
                .collect()
        };
        let mut rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
        rows.sort();
        rows
    }

    proptest! {
        #[test]
        fn the_order_of_rows_columns_and_chunks_does_not_matter(
            (rows, shuffled) in rows().prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle())),
            split in any::<prop::sample::Index>(),
        ) {
            let whole = digest(std::slice::from_ref(&rows));
            prop_assert_eq!(digest(std::slice::from_ref(&shuffled)), whole);
            let (first, second) = shuffled.split_at(split.index(rows.len() + 1));
            prop_assert_eq!(digest(&[first.to_vec(), second.to_vec()]), whole);
            // Another declared order: a column is known by its name.
            let turned: Rows = rows.iter().cloned().map(|[a, b, c]| [c, a, b]).collect();
            prop_assert_eq!(digest_of(["c", "a", "b"], &[turned]), whole);
        }

        #[test]
        fn a_digest_is_equal_only_for_equal_rows(one in rows(), other in rows()) {
            let is_equal = as_csv(&one) == as_csv(&other);
            prop_assert_eq!(digest(&[one]) == digest(&[other]), is_equal);
        }

        #[test]
        fn any_changed_or_moved_cell_changes_the_digest(
            rows in rows(),
            at in any::<prop::sample::Index>(),
            column in 0..3usize,
        ) {
            let whole = digest(std::slice::from_ref(&rows));
            let at = at.index(rows.len());
            let mut changed = rows.clone();
            changed[at][column] = Some("other".to_owned());
            prop_assert_ne!(digest(&[changed]), whole);
            // Cells that move between rows or columns leave the same cells in the table.
            let mut moved = rows.clone();
            let cell = moved[at][column].clone();
            moved[at][column] = std::mem::replace(&mut moved[0][column], cell);
            prop_assert_eq!(
                digest(std::slice::from_ref(&moved)) == whole,
                as_csv(&moved) == as_csv(&rows)
            );
            let mut turned = rows.clone();
            turned[at].rotate_left(1);
            prop_assert_eq!(
                digest(std::slice::from_ref(&turned)) == whole,
                as_csv(&turned) == as_csv(&rows)
            );
        }
    }

    #[test]
    fn one_row_more_changes_the_digest() {
        let row = || [Some("x".to_owned()), None, None];
        let counts = [1, 2, 3].map(|count| digest(&[vec![row(); count]]));
        assert_ne!(counts[0], counts[1]);
        assert_ne!(counts[1], counts[2]);
    }

    #[test]
    fn another_key_gives_another_digest() {
        let rows = table(&[[Some("x".to_owned()), None, None]]);
        let [one, other] = [[1; 32], [2; 32]].map(|key| {
            let mut digest = RowDigest::new(&key, &schema(NAMES));
            digest.push(&rows);
            digest.total()
        });
        assert_ne!(one, other);
    }

    /// It is stored, so an upgrade must not change it. Computed by another program from the definition.
    #[test]
    fn a_digest_stays_the_same_in_every_version() {
        let found = digest(&[vec![
            [Some("x".to_owned()), Some("y".to_owned()), None],
            [
                Some("x".to_owned()),
                Some(String::new()),
                Some("z".to_owned()),
            ],
        ]]);
        assert_eq!(found, Some((0x32d4_4b22_3927_ac51_618e_d9bd_345b_f31b, 2)));
    }

    #[test]
    fn the_format_of_the_file_does_not_matter() {
        let definition = json!({"name": "t", "columns": [
            {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
            {"name": "job", "role": "quasi_identifier"},
            {"name": "drugs", "role": "insensitive", "kind": "set"},
        ]});
        let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
        let of = |read: &dyn Fn(&mut Assembler)| {
            let mut table = Assembler::default();
            read(&mut table);
            let mut digest = RowDigest::new(&[7; 32], &schema);
            digest.push(&table.finish());
            digest.total()
        };
        let limits = ReadLimits::default();
        let of_csv = |file: &str| {
            of(&|table| {
                csv::read(&schema, file.as_bytes(), limits, |chunk| table.push(chunk)).unwrap();
            })
        };
        let first = of_csv("age,job,drugs\n34,Mover,a|b\n,,\n7,,a\n");
        assert_eq!(
            first,
            of_csv("drugs,age,job\na,07,\na|b,34.0, Mover \n,,\n")
        );
        assert_ne!(first, of_csv("age,job,drugs\n34,Mover,a|b\n,,\n7,,b\n"));
        let ndjson = "{\"job\":null,\"age\":7,\"drugs\":[\"a\"]}\n\
                      {\"age\":\"34\",\"job\":\"Mover\",\"drugs\":[\"a\",\"b\"]}\n\
                      {\"age\":null,\"job\":\"\",\"drugs\":null}\n";
        let of_ndjson = of(&|table| {
            let push = |chunk| {
                table.push(chunk).unwrap();
                Ok::<_, Infallible>(())
            };
            ndjson::read(&schema, ndjson.as_bytes(), limits, push).unwrap();
        });
        assert_eq!(first, of_ndjson);
    }
}
