//! Columns that would be released unchanged although they are keys of the rows.

use hashbrown::DefaultHashBuilder;

use super::value_counter::{CountedColumn, MOST_OF_ALL, MOST_VALUES};
use super::{EncodedTable, Table, ValueCounts};
use crate::definition::json::escape;
use crate::definition::{ColumnKind, Job, JobError, JobErrorKind};
use crate::rejection::Fault;
use crate::schema::{Schema, SchemaColumn};

/// Refuses a job whose release would have a key of the encoded rows unchanged, unless the job says
/// why. `schema` is under the roles of the job.
///
/// # Errors
/// [`JobErrorKind::UnchangedKey`] with a fault for each such column.
pub fn refuse_keys(schema: &Schema, table: &EncodedTable, job: &Job) -> Result<(), JobError> {
    let stored: Vec<&SchemaColumn> = schema.stored().collect();
    let columns = table.untouched.iter();
    let columns = columns.filter_map(|(position, column)| {
        let spec = *stored.get(*position)?;
        let is_counted = !job.acknowledged.contains_key(spec.name());
        is_counted.then(|| (spec, ValueCounts::of(spec, column)))
    });
    refusal(columns)
}

/// Finds the keys of rows that are read chunk by chunk, before a job is accepted.
///
/// A column is no longer counted once too many of its values have repeated for a key, which most
/// columns are after a tenth of the rows. Memory and precision are those of
/// [`super::ValueCounters`].
#[derive(Debug)]
pub struct KeyCounter<'s> {
    columns: Vec<Candidate<'s>>,
    hasher: DefaultHashBuilder,
    /// Number of all rows, and of those read.
    rows: u64,
    read: u64,
}

#[derive(Debug)]
struct Candidate<'s> {
    spec: &'s SchemaColumn,
    position: usize,
    counted: CountedColumn,
}

impl<'s> KeyCounter<'s> {
    /// For this many rows. `schema` is under the roles of the job; columns that the job gives a
    /// reason for are not counted.
    pub fn new(schema: &'s Schema, job: &Job, rows: u64) -> Self {
        let stored = schema.stored().enumerate();
        let candidates = stored
            .filter(|(_, spec)| spec.is_unchanged() && !job.acknowledged.contains_key(spec.name()));
        let columns = candidates.map(|(position, spec)| Candidate {
            spec,
            position,
            counted: CountedColumn::new(spec),
        });
        Self {
            columns: columns.collect(),
            hasher: DefaultHashBuilder::default(),
            rows,
            read: 0,
        }
    }

    /// Bytes of memory that it takes at most.
    pub fn bytes_needed(&self) -> u64 {
        /// A hash in a table that is half full.
        const VALUE_BYTES: u64 = 35;
        let columns = self.columns.len() as u64;
        let values = self.rows.saturating_mul(columns).min(MOST_OF_ALL as u64);
        values * VALUE_BYTES
    }

    /// Whether no column that is left can be a key, so that no further row has to be read.
    pub fn is_decided(&self) -> bool {
        self.columns.is_empty()
    }

    /// Counts the rows of a chunk, which has the stored columns.
    pub fn push(&mut self, chunk: &Table) {
        self.read += chunk.rows as u64;
        let most_values = MOST_VALUES.min(MOST_OF_ALL / self.columns.len().max(1));
        for candidate in &mut self.columns {
            if let Some(column) = chunk.columns.get(candidate.position) {
                let (spec, hasher) = (candidate.spec, &self.hasher);
                candidate.counted.push(spec, column, hasher, most_values);
            }
        }
        let (rows, read) = (self.rows, self.read);
        self.columns.retain(|it| it.counted.can_be_key(rows, read));
    }

    /// The decision, after the last row or once it is decided.
    ///
    /// # Errors
    /// As [`refuse_keys`].
    pub fn finish(self) -> Result<(), JobError> {
        let columns = self.columns.iter();
        refusal(columns.map(|it| (it.spec, it.counted.counts())))
    }
}

/// Refuses the columns that are keys.
fn refusal<'s>(
    columns: impl Iterator<Item = (&'s SchemaColumn, ValueCounts)>,
) -> Result<(), JobError> {
    let keys = columns.filter(|(_, counts)| counts.is_key());
    let faults: Vec<Fault> = keys.map(|(spec, counts)| fault(spec, counts)).collect();
    let detail = match faults.as_slice() {
        [] => return Ok(()),
        [one] => one.detail.clone(),
        [first, others @ ..] => format!("{} columns are keys: {}", others.len() + 1, first.detail),
    };
    Err(JobError::with(JobErrorKind::UnchangedKey, detail, faults))
}

fn fault(spec: &SchemaColumn, counts: ValueCounts) -> Fault {
    let name = spec.name();
    let detail = format!(
        "the {} column `{name}` is released unchanged and has {} distinct values in {} rows, so that \
         each finds a row",
        spec.role().as_str(),
        counts.distinct,
        counts.rows
    );
    let round = match spec.kind() {
        ColumnKind::Numeric => "declare a `round` for it, ",
        ColumnKind::Categorical | ColumnKind::Set | ColumnKind::Date | ColumnKind::Datetime => "",
    };
    let fix = format!(
        "give it the role `quasi_identifier` in `roles`, {round}declare it an `identifier`, which is \
         not stored, or say in `acknowledge_unchanged` why it must be released"
    );
    let pointer = format!("/acknowledge_unchanged/{}", escape(name));
    Fault::at(pointer, detail).fix(fix)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{KeyCounter, refuse_keys};
    use crate::definition::{Job, JobError, JobErrorKind};
    use crate::model::Lkc;
    use crate::schema::Schema;
    use crate::table::{Column, EncodedTable, NULL_CODE, Table};

    fn schema(columns: Value) -> Schema {
        let definition = json!({"name": "t", "columns": columns});
        Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap()
    }

    fn job(acknowledged: &[&str]) -> Job {
        let reasons = acknowledged
            .iter()
            .map(|name| ((*name).to_owned(), "known".to_owned()));
        Job {
            acknowledged: BTreeMap::from_iter(reasons),
            ..Job::new(Lkc::k_anonymity(2).unwrap())
        }
    }

    /// A table with the same cells in each column; `None` is null.
    fn table(columns: usize, cells: &[Option<u32>]) -> Table {
        let mut column = Column::default();
        for cell in cells {
            let Some(value) = cell else {
                column.codes.push(NULL_CODE);
                continue;
            };
            let text = value.to_string();
            let known = column.dictionary.iter().position(|known| **known == *text);
            let code = known.unwrap_or_else(|| {
                column.dictionary.push(text.into());
                column.dictionary.len() - 1
            });
            column.codes.push(code as u32);
        }
        Table {
            rows: cells.len(),
            columns: vec![column; columns],
        }
    }

    /// The refused columns: by chunks of `size` rows, and by the whole table.
    fn refused(schema: &Schema, job: &Job, cells: &[Option<u32>], size: usize) -> [Vec<String>; 2] {
        let columns = schema.stored().count();
        let mut counter = KeyCounter::new(schema, job, cells.len() as u64);
        for chunk in cells.chunks(size) {
            if counter.is_decided() {
                break;
            }
            counter.push(&table(columns, chunk));
        }
        let whole = EncodedTable::new(schema, table(columns, cells));
        [counter.finish(), refuse_keys(schema, &whole, job)].map(names)
    }

    fn names(found: Result<(), JobError>) -> Vec<String> {
        let Err(error) = found else { return Vec::new() };
        assert_eq!(error.kind, JobErrorKind::UnchangedKey);
        let faults = error.faults.iter().map(|fault| {
            let column = fault
                .pointer()
                .unwrap()
                .strip_prefix("/acknowledge_unchanged/")
                .unwrap();
            assert!(
                fault.detail.contains(&format!("`{column}`")),
                "{}",
                fault.detail
            );
            column.to_owned()
        });
        faults.collect()
    }

    /// `rows` cells with `distinct` values, and then `missing` ones.
    fn cells(rows: u32, distinct: u32, missing: usize) -> Vec<Option<u32>> {
        let values = (0..rows).map(|row| Some(row.min(distinct - 1)));
        values.chain(vec![None; missing]).collect()
    }

    #[test]
    fn keys_of_all_unchanged_roles_are_refused_and_of_no_other() {
        let roles = [
            "subject",
            "quasi_identifier",
            "insensitive",
            "sensitive",
            "class",
        ];
        let columns = roles.map(|role| json!({"name": role, "role": role}));
        let schema = schema(json!(columns));
        let all = ["insensitive", "sensitive", "class"];
        for size in [1, 7, 100] {
            let key = cells(20, 18, 0);
            assert_eq!(refused(&schema, &job(&[]), &key, size), [all, all]);
            let known = job(&["sensitive", "class"]);
            assert_eq!(refused(&schema, &known, &key, size), [["insensitive"]; 2]);
            for none in [cells(20, 17, 0), cells(19, 19, 0), cells(19, 19, 50)] {
                let nothing: [Vec<String>; 2] = Default::default();
                assert_eq!(refused(&schema, &job(&[]), &none, size), nothing);
            }
            // Half of the rows have no value; the others are found by theirs.
            let sparse = cells(20, 20, 20);
            assert_eq!(refused(&schema, &job(&[]), &sparse, size), [all, all]);
        }
    }

    #[test]
    fn a_rounded_column_counts_as_it_is_released() {
        let cost = |round: Value| {
            schema(
                json!([{"name": "cost", "role": "insensitive", "kind": "numeric", "round": round}]),
            )
        };
        let key = cells(100, 100, 0);
        assert_eq!(
            refused(&cost(json!(null)), &job(&[]), &key, 30),
            [["cost"]; 2]
        );
        let nothing: [Vec<String>; 2] = Default::default();
        assert_eq!(refused(&cost(json!(5)), &job(&[]), &key, 30), nothing);
    }

    proptest! {
        #[test]
        fn reading_ends_early_only_where_the_whole_table_decides_the_same(
            cells in prop::collection::vec(
                prop_oneof![6 => (0u32..400).prop_map(Some), 1 => Just(None)], 0..80),
            size in 1usize..30,
        ) {
            let schema = schema(json!([{"name": "a", "role": "insensitive"}]));
            let [by_chunks, by_table] = refused(&schema, &job(&[]), &cells, size);
            prop_assert_eq!(by_chunks, by_table);
        }
    }
}
