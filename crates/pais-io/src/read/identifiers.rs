//! Counts the values of identifiers, although no identifier is stored: a file in which persons have several
//! rows should name them in a subject column.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};
use pais_core::definition::{ColumnKind, ColumnRole};
use pais_core::name_meaning::KeyName;
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::warning::{Warning, WarningCode};

/// Maximum number of digests that are kept of all identifier columns together. A hash table of this size takes
/// 19 MiB.
const MOST_DIGESTS: usize = 1_800_000;

/// Fewest distinct values by which a column can be a key.
const FEWEST_OF_KEY: u64 = 20;

/// Most rows that a value of a key has on average: a person has few, a ward or a physician has many.
const ROWS_OF_KEY: u64 = 20;

/// Most subjects that a value of a key has on average: a person has few stays.
const SUBJECTS_OF_KEY: u64 = 3;

/// The values of the identifier columns of a file, counted: how many there are, in how many rows one occurs
/// again, and, if there is a subject column, with how many subjects.
///
/// Cells are compared as 64-bit digests under a key that is random for each counter, and no longer
/// kept than the counter. Beyond 1.8 million digests further ones are not remembered,
/// and the numbers are lower bounds. Missing cells do not count.
#[derive(Debug)]
pub struct IdentifierRepeats {
    values: Digests,
    columns: Vec<IdentifierCounts>,
    /// The subject column.
    subject: Option<Box<str>>,
    /// Number of its values.
    subjects: u64,
}

/// What is counted of one identifier column.
#[derive(Debug)]
struct IdentifierCounts {
    column: Box<str>,
    /// What its name and kind say.
    name: KeyName,
    distinct: u64,
    /// Rows whose value occurred before.
    repeated: u64,
    /// Distinct pairs of a value and a subject.
    of_subjects: u64,
}

/// The subject column, and the number of its values.
#[derive(Clone, Copy)]
struct SubjectValues<'a> {
    name: &'a str,
    number: u64,
}

/// The digest of a cell.
#[derive(Clone, Copy, Debug)]
struct CellDigest {
    /// The index of its column in the counter.
    column: usize,
    value: u64,
}

/// Digests of values, up to a number.
#[derive(Debug)]
struct Digests {
    hasher: DefaultHashBuilder,
    known: HashTable<u64>,
    most: usize,
}

impl Digests {
    /// Adds a value. `Some(false)` if it is known; `None` if it is not and cannot be remembered.
    fn add(&mut self, value: impl Hash) -> Option<bool> {
        let digest = self.hasher.hash_one(value);
        if self.known.find(digest, |known| *known == digest).is_some() {
            return Some(false);
        }
        let is_added = self.known.len() < self.most;
        is_added.then(|| {
            self.known.insert_unique(digest, digest, |known| *known);
            true
        })
    }
}

impl IdentifierRepeats {
    /// A counter for the identifier columns of a schema; `None` if it has none.
    pub fn new(schema: &Schema) -> Option<Self> {
        let columns = schema.with_role(ColumnRole::Identifier);
        let columns = columns.map(|spec| IdentifierCounts {
            column: spec.name().into(),
            name: match spec.kind() {
                ColumnKind::Set | ColumnKind::Date | ColumnKind::Datetime => KeyName::Other,
                ColumnKind::Categorical | ColumnKind::Numeric => KeyName::of(spec.name()),
            },
            distinct: 0,
            repeated: 0,
            of_subjects: 0,
        });
        let columns: Vec<_> = columns.collect();
        let subject = schema.with_role(ColumnRole::Subject).next();
        (!columns.is_empty()).then(|| Self {
            values: Digests {
                hasher: DefaultHashBuilder::default(),
                known: HashTable::new(),
                most: MOST_DIGESTS,
            },
            columns,
            subject: subject.map(|spec| spec.name().into()),
            subjects: 0,
        })
    }

    /// The names of the identifier columns, each with the number of rows whose identifier occurred before.
    /// `None` with a subject column, which says which rows are of one person.
    pub fn counts(&self) -> Option<impl Iterator<Item = (&str, u64)>> {
        let counts = self.columns.iter();
        let counts = counts.map(|counted| (&*counted.column, counted.repeated));
        self.subject.is_none().then_some(counts)
    }

    /// The warnings about identifiers that may name persons with several rows, of which the file has `rows`; if
    /// there is a subject column, persons with several subjects.
    pub fn warnings(&self, rows: u64) -> impl Iterator<Item = Warning> {
        let subject = self.subject.as_deref();
        let subject = subject.map(|name| SubjectValues {
            name,
            number: self.subjects,
        });
        self.columns
            .iter()
            .filter_map(move |counted| counted.warning(rows, subject))
    }

    /// Adds the cells of a row.
    fn push(&mut self, cells: &[CellDigest], subject: Option<u64>) {
        if let Some(subject) = subject {
            // No column has this index.
            let is_new = self.values.add((usize::MAX, subject)) == Some(true);
            self.subjects += u64::from(is_new);
        }
        for &CellDigest { column, value } in cells {
            let counted = &mut self.columns[column];
            match self.values.add((column, value)) {
                Some(true) => counted.distinct += 1,
                Some(false) => counted.repeated += 1,
                None => {}
            }
            if let Some(subject) = subject
                && self.values.add((column, value, subject)) == Some(true)
            {
                counted.of_subjects += 1;
            }
        }
    }
}

impl IdentifierCounts {
    fn warning(&self, rows: u64, subject: Option<SubjectValues<'_>>) -> Option<Warning> {
        let Self {
            column,
            name,
            distinct,
            repeated,
            of_subjects,
        } = self;
        let (of, most) = match subject {
            None => (rows, ROWS_OF_KEY),
            Some(_) => (*of_subjects, SUBJECTS_OF_KEY),
        };
        // A stay is of one person; a diagnosis or a length of stay is another one in each row of a person.
        let is_one_of_each = subject.is_none_or(|it| *of_subjects <= it.number + it.number / 20);
        let is_key = match name {
            KeyName::Person => true,
            KeyName::Unknown => {
                *distinct >= FEWEST_OF_KEY && distinct.saturating_mul(most) >= of && is_one_of_each
            }
            KeyName::Other => false,
        };
        let detail = match subject {
            None if *repeated > 0 => format!(
                "in {repeated} of {rows} rows the identifier `{column}` occurred before in the file; \
                 if it names the person a row is about, declare it as `subject`: a person's rows then \
                 count as one toward K"
            ),
            // A few persons can have a second number.
            Some(SubjectValues { name: subject, .. })
                if of_subjects.saturating_sub(*distinct) > distinct / 20 =>
            {
                format!(
                    "the {distinct} values of the identifier `{column}` occur with several values of the subject column \
                 `{subject}`, in {of_subjects} pairs; only if `{column}` is the key of the person a row is about, \
                 declare it as `subject` instead: else what is counted as a person is, for example, one stay"
                )
            }
            _ => return None,
        };
        let code = WarningCode::RepeatedIdentifier;
        is_key.then(|| Warning::new(code, detail).of_columns([&**column]))
    }
}

/// Passes the cells of identifier columns on to their counter. Each row has a cell of each of them,
/// in the order of the file's columns.
pub(super) struct IdentifierCells<'s> {
    repeats: &'s mut IdentifierRepeats,
    /// The columns in the order of the file, each with its index in the counter.
    columns: Vec<(usize, &'s SchemaColumn)>,
    next: usize,
    /// The row's identifiers.
    row: Vec<CellDigest>,
    /// The digest of the row's subject.
    subject: Option<u64>,
    /// The slot of the subject column.
    pub(super) subject_slot: Option<usize>,
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
            row: Vec::new(),
            subject: None,
            subject_slot: schema.subject(),
        }
    }

    /// Adds the next identifier cell of the row; `None` is null.
    #[inline]
    pub(super) fn push(&mut self, cell: Option<&str>) {
        let Some(&(column, spec)) = self.columns.get(self.next) else {
            return;
        };
        self.next = (self.next + 1) % self.columns.len();
        if let Some(cell) = cell
            && !spec.is_missing(cell)
        {
            let value = self.repeats.values.hasher.hash_one(cell.trim());
            self.row.push(CellDigest { column, value });
        }
    }

    /// Adds the subject cell of the row.
    pub(super) fn push_subject(&mut self, cell: &[u8]) {
        let digest = self.repeats.values.hasher.hash_one(cell.trim_ascii());
        self.subject = Some(digest);
    }

    /// Counts the cells of the row.
    pub(super) fn end_row(&mut self) {
        self.repeats.push(&self.row, self.subject.take());
        self.row.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::convert::Infallible;

    use proptest::prelude::*;
    use serde_json::json;

    use super::{CellDigest, IdentifierRepeats};
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
        let counts = repeats.counts().unwrap();
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
    fn nothing_is_counted_without_identifiers() {
        let plain = schema(json!([{"name": "x", "role": "insensitive"}]));
        assert!(IdentifierRepeats::new(&plain).is_none());
    }

    /// The columns of the warnings about a file of `rows` rows, with the first of their texts.
    fn warned(
        columns: &[(&str, &str)],
        rows: u64,
        cell: impl Fn(u64, usize) -> String,
    ) -> (Vec<String>, String) {
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let columns = columns.iter();
        let columns = columns.map(|(name, role)| json!({"name": name, "role": role}));
        let schema = schema(columns.collect());
        let mut file = names.join(",") + "\n";
        for row in 0..rows {
            let cells: Vec<String> = (0..names.len()).map(|at| cell(row, at)).collect();
            file += &(cells.join(",") + "\n");
        }
        let mut repeats = IdentifierRepeats::new(&schema).unwrap();
        let (source, limits) = (file.as_bytes(), ReadLimits::default());
        let format = TextFormat::CSV;
        csv::read_as(&schema, source, format, limits, Some(&mut repeats), stored).unwrap();
        let found: Vec<_> = repeats.warnings(rows).collect();
        let detail = found.first().map(|it| it.detail.clone());
        let columns = found.into_iter().flat_map(|warning| warning.columns);
        (columns.collect(), detail.unwrap_or_default())
    }

    /// 600 stays of 200 patients, with what else a hospital leaves out.
    #[test]
    fn only_columns_that_can_be_keys_of_persons_are_warned_of() {
        let columns = [
            ("case", "identifier"),
            ("AHV", "identifier"),
            ("patient_id", "identifier"),
            ("age", "identifier"),
            ("birth_date", "identifier"),
            ("ward", "identifier"),
            ("physician", "identifier"),
            ("surname", "identifier"),
            ("zip", "identifier"),
            ("sex", "insensitive"),
        ];
        let of = [600, 200, 200, 90, 190, 12, 25, 150, 180, 2];
        let cell = |row: u64, at: usize| format!("v{}", row % of[at]);
        let (found, detail) = warned(&columns, 600, cell);
        assert_eq!(found, ["AHV", "patient_id"]);
        assert!(detail.starts_with("in 400 of 600 rows the identifier `AHV`"));
        // Few rows: only the name tells a key.
        let (found, _) = warned(&columns, 30, |row, at| cell(row % 15, at));
        assert_eq!(found, ["patient_id"]);
        let (found, _) = warned(&columns, 12, cell);
        assert_eq!(found, Vec::<String>::new());
    }

    /// 600 stays of 200 patients, where the wrong number is the subject, and where the right one is.
    #[test]
    fn a_subject_with_more_values_than_a_key_of_persons_is_warned_of() {
        for (position, subject, found) in [(1, "case", "patient"), (0, "case", "AHV")] {
            let mut columns = vec![(found, "identifier"), ("ward", "identifier")];
            columns.insert(position, (subject, "subject"));
            let of = |name: &str| match name {
                "case" => 600,
                "ward" => 12,
                _ => 200,
            };
            let cell = |row: u64, at: usize| format!("v{}", row % of(columns[at].0));
            let (names, detail) = warned(&columns, 600, cell);
            assert_eq!(names, [found]);
            let expected = format!(
                "the 200 values of the identifier `{found}` occur with several values of the subject column `case`, in \
                 600 pairs;"
            );
            assert!(detail.starts_with(&expected), "{detail}");
        }
        // A number of the person that many have not, one of the stay, a physician, and namesakes.
        let columns = [
            ("patient", "subject"),
            ("AHV", "identifier"),
            ("case", "identifier"),
            ("physician", "identifier"),
            ("surname", "identifier"),
        ];
        let (found, detail) = warned(&columns, 600, |row, at| match at {
            1 if row % 200 < 60 => String::new(),
            0 | 1 => format!("v{}", row % 200),
            2 => format!("v{row}"),
            3 => format!("v{}", row % 40),
            _ => format!("v{}", row % 200 % 150),
        });
        assert_eq!(found, Vec::<String>::new(), "{detail}");
    }

    /// Columns that are left out by this role, of 270 patients with 600 rows: each row of a patient has another value.
    #[test]
    fn values_that_a_person_has_several_of_are_no_keys() {
        let columns = [
            ("pid", "subject"),
            ("other_diagnoses", "identifier"),
            ("days", "identifier"),
        ];
        let (found, detail) = warned(&columns, 600, |row, at| match at {
            0 => format!("v{}", row % 270),
            1 => format!("v{}", row * 7 % 200),
            _ => format!("v{}", row * 11 % 230),
        });
        assert_eq!(found, Vec::<String>::new(), "{detail}");
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
            bounded.values.most = most;
            for cell in &cells {
                let row = [CellDigest { column: 0, value: u64::from(*cell) }];
                exact.push(&row, None);
                bounded.push(&row, None);
            }
            let distinct: std::collections::HashSet<_> = cells.iter().collect();
            let repeated = (cells.len() - distinct.len()) as u64;
            prop_assert_eq!(counted(&exact), expected(repeated, 0));
            prop_assert!(bounded.values.known.len() <= most);
            prop_assert!(counted(&bounded)["record"] <= repeated);
            if distinct.len() <= most {
                prop_assert_eq!(counted(&bounded), expected(repeated, 0));
            }
        }
    }
}
