//! Columns that would be released unchanged although they are keys of the rows.

use hashbrown::{DefaultHashBuilder, HashSet};

use super::unchanged_column::{KeyCounts, KeyOf};
use super::value_counter::hashed_values;
use super::{Table, UnchangedColumn, VALUE_BYTES};
use crate::definition::json::escape;
use crate::definition::{ColumnKind, Job, JobError, JobErrorKind};
use crate::rejection::Fault;
use crate::schema::{Schema, SchemaColumn};

/// Refuses a job whose release would have one of these columns unchanged although it is a key of
/// their rows, unless the job says why.
///
/// # Errors
/// [`JobErrorKind::UnchangedKey`] with a fault for each such column.
pub fn refuse_keys<'s>(
    columns: impl IntoIterator<Item = UnchangedColumn<'s>>,
    job: &Job,
) -> Result<(), JobError> {
    let columns = columns.into_iter();
    let counted = columns.filter(|it| !job.acknowledged.contains_key(it.spec.name()));
    refusal(counted.filter_map(|it| Some((it.spec, it.counts.key()?))))
}

/// Finds the keys of rows that are read chunk by chunk, before a job is accepted: those that
/// [`refuse_keys`] finds in the whole table as keys of its rows. Those of its persons are found by the run.
///
/// The distinct values of a column are kept until too many have repeated for a key, which most
/// columns do after a tenth of the rows. They are kept as 64-bit hashes under a key that is random for
/// each counter. In ten million rows two values have one hash with a probability of 3 in a million;
/// they count as one then, and the run, which counts texts, refuses what that hides.
#[derive(Debug)]
pub struct KeyCounter<'s> {
    columns: Vec<Candidate<'s>>,
    hasher: DefaultHashBuilder,
    /// Number of all rows, and of those read.
    rows: u64,
    read: u64,
}

/// A column that can still be a key.
#[derive(Debug)]
struct Candidate<'s> {
    spec: &'s SchemaColumn,
    position: usize,
    /// Rows with a value.
    rows: u64,
    values: HashSet<u64>,
}

impl Candidate<'_> {
    /// Whether the column can be a key of `all` rows, of which `read` were counted. A repeated value stays
    /// repeated, and a row that was found missing cannot have a value.
    fn can_be_key(&self, all: u64, read: u64) -> bool {
        let repeated = self.rows - self.values.len() as u64;
        let missing = read - self.rows;
        u128::from(repeated) * 10 <= u128::from(all.saturating_sub(missing))
    }
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
            rows: 0,
            values: HashSet::new(),
        });
        Self {
            columns: columns.collect(),
            hasher: DefaultHashBuilder::default(),
            rows,
            read: 0,
        }
    }

    /// Bytes of memory that it takes at most for rows whose distinct values the chunks hold in
    /// `text_bytes`, as counted by [`Table::text_bytes`]; always less than these.
    pub fn bytes_needed(&self, text_bytes: u64) -> u64 {
        /// A hash in a table that is 7/8 full, and in one of twice the size that it moves to.
        const HASH_BYTES: u64 = 31;
        let values = self.rows.saturating_mul(self.columns.len() as u64);
        values.min(text_bytes / VALUE_BYTES) * HASH_BYTES
    }

    /// Whether no remaining column can be a key, so that no further row has to be read.
    pub fn is_decided(&self) -> bool {
        self.columns.is_empty()
    }

    /// Counts the rows of a chunk, which has the stored columns.
    pub fn push(&mut self, chunk: &Table) {
        self.read += chunk.rows as u64;
        let (all, read) = (self.rows, self.read);
        let hasher = &self.hasher;
        self.columns.retain_mut(|candidate| {
            if let Some(column) = chunk.columns.get(candidate.position) {
                for value in hashed_values(candidate.spec, column, hasher) {
                    candidate.rows += value.rows;
                    candidate.values.insert(value.hash);
                }
            }
            candidate.can_be_key(all, read)
        });
    }

    /// The decision, after the last row or once it is decided.
    ///
    /// # Errors
    /// As [`refuse_keys`].
    pub fn finish(self) -> Result<(), JobError> {
        let columns = self.columns.iter();
        refusal(columns.filter_map(|it| {
            let counts = KeyCounts {
                having: it.rows,
                distinct: it.values.len() as u64,
                of: KeyOf::Rows,
            };
            counts.is_key().then_some((it.spec, counts))
        }))
    }
}

/// Refuses these columns, which are keys.
fn refusal<'s>(keys: impl Iterator<Item = (&'s SchemaColumn, KeyCounts)>) -> Result<(), JobError> {
    let faults: Vec<Fault> = keys.map(|(spec, counts)| fault(spec, counts)).collect();
    let detail = match faults.as_slice() {
        [] => return Ok(()),
        [one] => one.detail.clone(),
        [first, others @ ..] => format!("{} columns are keys: {}", others.len() + 1, first.detail),
    };
    Err(JobError::with(JobErrorKind::UnchangedKey, detail, faults))
}

fn fault(spec: &SchemaColumn, counts: KeyCounts) -> Fault {
    let name = spec.name();
    let detail = format!(
        "the {} column `{name}` is released unchanged and has {counts}, so that each finds a {}",
        spec.role().as_str(),
        counts.of.one()
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
    use crate::table::{Column, EncodedTable, NULL_CODE, Table, UnchangedColumn};

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
        let whole = UnchangedColumn::of(schema, &whole);
        [counter.finish(), refuse_keys(whole, job)].map(names)
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

    /// A chunk of the rows from `first` on, with one number in a row, and in all rows from `last` on.
    fn numbers(rows: std::ops::Range<u32>, last: u32) -> Column {
        let values = rows.clone().take_while(|row| *row <= last);
        let mut values: Vec<Box<str>> = values.map(|row| row.to_string().into()).collect();
        if values.is_empty() {
            values.push(last.to_string().into());
        }
        let most = values.len() as u32 - 1;
        Column {
            codes: (0..rows.len() as u32).map(|row| row.min(most)).collect(),
            dictionary: values,
        }
    }

    /// The decision is exact for any number of columns and of values, and no row is read unnecessarily.
    #[test]
    fn keys_of_a_wide_table_are_decided_exactly_and_others_early() {
        let columns: Vec<Value> = (0..500)
            .map(|column| json!({"name": format!("c{column}"), "role": "insensitive"}))
            .collect();
        let schema = schema(json!(columns));
        let chunk = |rows: std::ops::Range<u32>, distinct: [u32; 2]| {
            let [odd, even] = distinct.map(|distinct| numbers(rows.clone(), distinct - 1));
            let column = |at: usize| if at.is_multiple_of(2) { &even } else { &odd };
            Table {
                rows: rows.len(),
                columns: (0..500).map(|at| column(at).clone()).collect(),
            }
        };
        let mut counter = KeyCounter::new(&schema, &job(&[]), 10_000);
        let mut text_bytes = 0;
        for start in [0, 2_500, 5_000, 7_500] {
            let chunk = chunk(start..start + 2_500, [9_000, 8_999]);
            text_bytes += chunk.text_bytes();
            counter.push(&chunk);
        }
        let values: usize = counter.columns.iter().map(|it| it.values.capacity()).sum();
        // One more byte for each hash, and at most 7/8 are full.
        assert!(9 * 8 * values as u64 / 7 <= counter.bytes_needed(text_bytes));
        assert!(counter.bytes_needed(text_bytes) < text_bytes);
        let found = names(counter.finish());
        let odd: Vec<String> = (0..250).map(|at| format!("c{}", 2 * at + 1)).collect();
        assert_eq!(found, odd);

        let mut counter = KeyCounter::new(&schema, &job(&[]), 10_000);
        counter.push(&chunk(0..9_600, [8_500, 8_400]));
        assert!(counter.is_decided());
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
