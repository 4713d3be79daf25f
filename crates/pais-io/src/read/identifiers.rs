//! Counts rows whose identifier occurred before, although no identifier is stored: a file in which
//! persons have several rows should name them in a subject column.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use pais_core::definition::ColumnRole;
use pais_core::schema::{Schema, SchemaColumn};

/// Maximum number of digests that are kept of all identifier columns together. A hash table of this size takes
/// 19 MiB.
const MOST_DIGESTS: usize = 1_800_000;

/// Number of rows of a file whose identifier occurred before in the file, for each identifier
/// column.
///
/// Cells are compared as 64-bit digests under a key that is random for each counter, and no longer
/// kept than the counter. Beyond 1.8 million distinct identifiers further ones are not remembered,
/// and the numbers are lower bounds. Missing cells do not count.
#[derive(Debug)]
pub struct IdentifierRepeats {
    hasher: DefaultHashBuilder,
    digests: HashTable<u64>,
    most_digests: usize,
    columns: Vec<(Box<str>, u64)>,
}

impl IdentifierRepeats {
    /// A counter for the identifier columns of a schema. `None` if it has none, and if it has a
    /// subject column, which names the persons.
    pub fn new(schema: &Schema) -> Option<Self> {
        let names: Vec<_> = schema
            .with_role(ColumnRole::Identifier)
            .map(|spec| (spec.name().into(), 0))
            .collect();
        if names.is_empty() || schema.subject().is_some() {
            return None;
        }
        Some(Self {
            hasher: DefaultHashBuilder::default(),
            digests: HashTable::new(),
            most_digests: MOST_DIGESTS,
            columns: names,
        })
    }

    /// The names of the identifier columns, each with its number of rows.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.columns.iter().map(|(name, rows)| (&**name, *rows))
    }

    fn push(&mut self, column: usize, cell: &str) {
        let digest = self.hasher.hash_one((column, cell));
        if self
            .digests
            .find(digest, |known| *known == digest)
            .is_some()
        {
            self.columns[column].1 += 1;
        } else if self.digests.len() < self.most_digests {
            self.digests.insert_unique(digest, digest, |known| *known);
        }
    }
}

/// Passes the cells of identifier columns on to their counter. Each row has a cell of each of them,
/// in the order of the file's columns.
pub(super) struct IdentifierCells<'s> {
    repeats: &'s mut IdentifierRepeats,
    /// The columns in the order of the file, each with its index in the counter.
    columns: Vec<(usize, &'s SchemaColumn)>,
    next: usize,
}

impl<'s> IdentifierCells<'s> {
    /// For a file whose columns have these names.
    pub(super) fn new(
        repeats: &'s mut IdentifierRepeats,
        schema: &'s Schema,
        names: &[&[u8]],
    ) -> Self {
        let of_file = names.iter().filter_map(|name| {
            let mut declared = schema.with_role(ColumnRole::Identifier).enumerate();
            declared.find(|(_, spec)| spec.name().as_bytes() == *name)
        });
        Self {
            columns: of_file.collect(),
            repeats,
            next: 0,
        }
    }

    /// Counts the next identifier cell; `None` is null.
    #[inline]
    pub(super) fn push(&mut self, cell: Option<&str>) {
        let Some((column, spec)) = self.columns.get(self.next) else {
            return;
        };
        self.next = (self.next + 1) % self.columns.len();
        if let Some(cell) = cell
            && !spec.is_missing(cell)
        {
            self.repeats.push(*column, cell.trim());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::convert::Infallible;

    use proptest::prelude::*;
    use serde_json::json;

    use super::IdentifierRepeats;
    use crate::read::tests::schema;
    use crate::read::{ReadLimits, TextFormat, csv, ndjson};
    use pais_core::schema::Schema;
    use pais_core::table::Table;

    fn two_identifiers() -> Schema {
        schema(json!([
            {"name": "record", "role": "identifier"},
            {"name": "job", "role": "insensitive"},
            {"name": "patient", "role": "identifier", "missing": ["", "none"]},
        ]))
    }

    fn stored(_: Table) -> Result<(), Infallible> {
        Ok(())
    }

    fn counted(repeats: &IdentifierRepeats) -> HashMap<String, u64> {
        let counts = repeats.counts();
        counts.map(|(name, rows)| (name.to_owned(), rows)).collect()
    }

    fn expected(record: u64, patient: u64) -> HashMap<String, u64> {
        [
            ("record".to_owned(), record),
            ("patient".to_owned(), patient),
        ]
        .into()
    }

    #[test]
    fn rows_whose_identifier_occurred_before_are_counted_by_column() {
        let schema = two_identifiers();
        // The columns of the file are in another order than the declared ones.
        let file = "patient,job,record\np1,x,1\np2,x,2\np1 ,y,3\nnone,y,4\n,y,5\n,y,1\np1,x,p2\n";
        let mut repeats = IdentifierRepeats::new(&schema).unwrap();
        let limits = ReadLimits::default();
        let (source, format) = (file.as_bytes(), TextFormat::CSV);
        csv::read_as(&schema, source, format, limits, Some(&mut repeats), stored).unwrap();
        assert_eq!(counted(&repeats), expected(1, 2));

        let file = "{\"job\":\"x\",\"patient\":\"p1\",\"record\":1}\n\
                    {\"patient\":null,\"job\":\"x\",\"record\":1}\n\
                    {\"patient\":null,\"job\":\"x\",\"record\":true}\n\
                    {\"record\":1,\"patient\":\"p1\",\"job\":null}\n";
        let mut repeats = IdentifierRepeats::new(&schema).unwrap();
        ndjson::read_counting(&schema, file.as_bytes(), limits, Some(&mut repeats), stored)
            .unwrap();
        assert_eq!(counted(&repeats), expected(2, 1));
    }

    #[test]
    fn nothing_is_counted_without_identifiers_or_with_a_subject() {
        let plain = schema(json!([{"name": "x", "role": "insensitive"}]));
        assert!(IdentifierRepeats::new(&plain).is_none());
        let subject = schema(json!([
            {"name": "id", "role": "identifier"},
            {"name": "x", "role": "subject"},
        ]));
        assert!(IdentifierRepeats::new(&subject).is_none());
    }

    proptest! {
        #[test]
        fn beyond_the_limit_the_numbers_are_lower_bounds(
            cells in prop::collection::vec(0..30u32, 0..60),
            most in 0..20usize,
        ) {
            let schema = two_identifiers();
            let mut exact = IdentifierRepeats::new(&schema).unwrap();
            let mut bounded = IdentifierRepeats::new(&schema).unwrap();
            bounded.most_digests = most;
            for cell in &cells {
                exact.push(0, &cell.to_string());
                bounded.push(0, &cell.to_string());
            }
            let distinct: std::collections::HashSet<_> = cells.iter().collect();
            let repeated = (cells.len() - distinct.len()) as u64;
            prop_assert_eq!(counted(&exact), expected(repeated, 0));
            prop_assert!(bounded.digests.len() <= most);
            prop_assert!(counted(&bounded)["record"] <= repeated);
            if distinct.len() <= most {
                prop_assert_eq!(counted(&bounded), expected(repeated, 0));
            }
        }
    }
}
