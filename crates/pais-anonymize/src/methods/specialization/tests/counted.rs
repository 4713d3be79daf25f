//! A run that asks an engine for counts takes the steps of one over rows, and refuses an engine that
//! loses, doubles or moves a row.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::json;

use pais_core::definition::JobErrorKind;
use pais_core::schema::Schema;
use pais_core::table::{NULL_CODE, Table};

use super::super::search::ATTEMPTS;
use super::frequencies::counted_case;
use super::random_tables::{SpecializationCase, table_of};
use crate::test_data::{job_with_keys, refusal};
use crate::{
    AnonymizationRun, ColumnParts, ColumnValues, CountError, CountedRun, DistinctValues, Observer,
    PartCounts, RowCounter, RunError, SearchOutcome, StepItem, Unobserved,
};

/// The values of a table, and its rows as their numbers.
fn numbered(table: &Table) -> (DistinctValues, Vec<Vec<u32>>) {
    let mut found = DistinctValues {
        columns: Vec::new(),
        rows: table.rows as u64,
        digest: [0; 32],
    };
    let mut rows = Vec::new();
    for column in &table.columns {
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        let mut values = ColumnValues::default();
        let number = |&code: &u32| {
            let next = numbers.len() as u32;
            let number = *numbers.entry(code).or_insert(next);
            if number == next {
                let text = (code != NULL_CODE).then(|| column.dictionary[code as usize].clone());
                values.values.push(text);
                values.rows.push(0);
            }
            values.rows[number as usize] += 1;
            number
        };
        rows.push(column.codes.iter().map(number).collect());
        found.columns.push(values);
    }
    (found, rows)
}

/// What an engine does wrong with one row.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Loses,
    Doubles,
    Moves,
    /// Counts another row in its place.
    Replaces,
}

/// Counts row by row.
struct ByHand {
    rows: Vec<Vec<u32>>,
    count: usize,
    /// The statement from which on answers are wrong, and how.
    fault: Option<(usize, Fault)>,
    /// Whether a statement is answered rightly when it is asked again.
    recovers: bool,
    statements: AtomicUsize,
}

impl ByHand {
    fn new(rows: Vec<Vec<u32>>, count: usize) -> Self {
        Self {
            rows,
            count,
            fault: None,
            recovers: false,
            statements: AtomicUsize::new(0),
        }
    }
}

impl RowCounter for ByHand {
    /// Any number: no step may depend on it.
    fn expected_combinations(
        &self,
        columns: &[ColumnParts],
        _: &dyn Observer,
    ) -> Result<u64, CountError> {
        let parts = columns.iter().map(|column| u64::from(column.parts));
        Ok(parts.sum::<u64>().wrapping_mul(0x9e37_79b9_7f4a_7c15) % 300)
    }

    fn count(
        &self,
        columns: &[ColumnParts],
        most: Option<usize>,
        observer: &dyn Observer,
    ) -> Result<PartCounts, CountError> {
        observer.check()?;
        let statement = self.statements.fetch_add(1, Ordering::Relaxed);
        let mut counts: BTreeMap<Vec<u32>, (u64, u64)> = BTreeMap::new();
        for row in 0..self.count {
            let part =
                |column: &ColumnParts| column.part_of[self.rows[column.column][row] as usize];
            let entry = counts.entry(columns.iter().map(part).collect());
            let (rows, ids) = entry.or_default();
            *rows += 1;
            *ids += row as u64;
        }
        if most.is_some_and(|most| counts.len() > most) {
            return Err(CountError::MoreThan);
        }
        let fault = self
            .fault
            .filter(|(from, _)| *from == statement || *from < statement && !self.recovers);
        if let Some((_, fault)) = fault {
            let id = (self.count - 1) as u64;
            let last: Vec<u32> = columns
                .iter()
                .map(|column| column.part_of[self.rows[column.column][self.count - 1] as usize])
                .collect();
            let remove = |counts: &mut BTreeMap<Vec<u32>, (u64, u64)>| {
                let (rows, ids) = counts.get_mut(&last).unwrap();
                (*rows, *ids) = (*rows - 1, *ids - id);
                if *rows == 0 {
                    counts.remove(&last);
                }
            };
            match fault {
                Fault::Loses => remove(&mut counts),
                Fault::Doubles => {
                    let (rows, ids) = counts.get_mut(&last).unwrap();
                    (*rows, *ids) = (*rows + 1, *ids + id);
                }
                Fault::Replaces => counts.get_mut(&last).unwrap().1 -= 1,
                Fault::Moves => {
                    let mut other = last.clone();
                    let place = columns.iter().position(|column| column.parts > 1);
                    match place {
                        Some(place) => {
                            other[place] = (other[place] + 1) % columns[place].parts;
                            remove(&mut counts);
                            let (rows, ids) = counts.entry(other).or_default();
                            (*rows, *ids) = (*rows + 1, *ids + id);
                        }
                        // One combination has all rows; there is nowhere else.
                        None => counts.get_mut(&last).unwrap().0 += 1,
                    }
                }
            }
        }
        Ok(PartCounts {
            parts: (0..columns.len())
                .map(|at| counts.keys().map(|parts| parts[at]).collect())
                .collect(),
            rows: counts.values().map(|(rows, _)| *rows).collect(),
            number_sums: counts.values().map(|(_, ids)| *ids).collect(),
        })
    }
}

/// The steps over the rows of a case, and the run over its counts; `None` where the topmost table is not
/// valid.
fn runs(case: &mut SpecializationCase) -> Option<(Vec<StepItem>, CountedRun, ByHand)> {
    let columns = case.columns.as_array_mut().unwrap();
    columns.last_mut().unwrap()["role"] = "identifier".into();
    let (schema, table) = table_of(case);
    let job = job_with_keys(case.job.clone(), &schema).unwrap();
    let (values, rows) = numbered(&table);
    let counter = ByHand::new(rows, table.rows);
    let observer = Unobserved::default();
    let run = CountedRun::new(Arc::clone(&schema), job.clone(), &values, &observer).unwrap();
    let over_rows = AnonymizationRun::new(schema, job, table, &observer).unwrap();
    let expected = match over_rows.search(&observer) {
        Ok(found) => found,
        Err(error) => {
            assert_eq!(run.search(&counter, 10, &observer).err(), Some(error));
            return None;
        }
    };
    // What the values are released as is what the rows are released as.
    let verified = over_rows.verify(&expected, None, &observer).unwrap();
    let recoded = run.recode(&expected, &observer).unwrap();
    let last = expected.steps().last().unwrap();
    assert_eq!(recoded.step, last.item.step);
    assert_eq!(Some(&recoded.cut), verified.cut());
    for (released, of_values) in verified.tables()[0]
        .columns
        .iter()
        .zip(&recoded.table.columns)
    {
        assert_eq!(
            (&released.name, released.form),
            (&of_values.name, of_values.form)
        );
        let position = run
            .schema()
            .stored()
            .position(|spec| *spec.name() == *released.name);
        let numbers = &counter.rows[position.unwrap()];
        for (row, &raw) in verified.source_rows().iter().enumerate() {
            let number = numbers[raw as usize] as usize;
            assert_eq!(released.column.text(row), of_values.column.text(number));
        }
    }
    Some((items(&expected), run, counter))
}

fn items(found: &SearchOutcome) -> Vec<StepItem> {
    found
        .steps()
        .iter()
        .map(|record| record.item.clone())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn counts_lead_to_the_steps_and_labels_of_the_rows(
        mut case in counted_case(),
        budget in prop_oneof![1..5usize, 1..200usize],
    ) {
        if let Some((expected, run, counter)) = runs(&mut case) {
            let found = run.search(&counter, budget, &Unobserved::default()).unwrap();
            prop_assert_eq!(items(&found), expected);
        }
    }

    #[test]
    fn an_engine_that_errs_by_one_row_is_refused_or_asked_again(
        mut case in counted_case(),
        from in 0..4usize,
        fault in prop::sample::select(
            vec![Fault::Loses, Fault::Doubles, Fault::Moves, Fault::Replaces]),
        recovers in any::<bool>(),
    ) {
        if let Some((expected, run, counter)) = runs(&mut case) {
            let counter = ByHand { fault: Some((from, fault)), recovers, ..counter };
            let found = run.search(&counter, 3, &Unobserved::default());
            let statements = counter.statements.into_inner();
            match found {
                Ok(found) => {
                    prop_assert!(recovers || statements <= from);
                    prop_assert_eq!(items(&found), expected);
                }
                Err(error) => {
                    prop_assert!(!recovers, "{error}");
                    let is_not_counted = matches!(error, RunError::NotCounted { .. });
                    prop_assert!(is_not_counted, "{}", error);
                    prop_assert!(statements >= from + ATTEMPTS);
                }
            }
        }
    }
}

/// The property above says nothing unless runs have several statements.
#[test]
fn many_of_the_runs_have_several_statements() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let several = Cell::new(0);
    for _ in 0..60 {
        let mut case = counted_case().new_tree(&mut runner).unwrap().current();
        if let Some((_, run, counter)) = runs(&mut case) {
            run.search(&counter, 3, &Unobserved::default()).unwrap();
            let statements = counter.statements.into_inner();
            several.set(several.get() + usize::from(statements >= 3));
        }
    }
    assert!(several.get() >= 20, "{}", several.get());
}

#[test]
fn what_needs_rows_is_refused_by_name() {
    let flat = json!({"name": "age", "role": "quasi_identifier", "kind": "numeric"});
    let k = json!({"privacy": {"model": "k_anonymity", "k": 2}});
    let refused = |columns: serde_json::Value, changes: &[(&str, serde_json::Value)]| {
        let mut job = k.clone();
        for (name, value) in changes {
            job[name] = value.clone();
        }
        let schema: Arc<Schema> = crate::test_data::schema(columns);
        let job = crate::test_data::job_of(job).unwrap();
        let checked = CountedRun::check(&schema, &job);
        if let Err(error) = &checked {
            assert!(error.to_string().contains("`executor`"), "{error}");
        }
        refusal(checked)
    };
    let set = json!({"name": "codes", "role": "quasi_identifier", "kind": "set"});
    let person = json!({"name": "person", "role": "subject"});
    for (columns, change, pointer) in [
        (
            json!([flat]),
            ("suppression_limit", json!(0.1)),
            "/suppression_limit",
        ),
        (json!([flat]), ("recoding", json!("local")), "/recoding"),
        (json!([flat, set]), ("seed", json!(1)), "/dataset_id"),
        (json!([flat, person]), ("seed", json!(1)), "/dataset_id"),
    ] {
        let expected = (JobErrorKind::Unfit, pointer.to_owned());
        assert_eq!(refused(columns, &[change]), expected);
    }
}
