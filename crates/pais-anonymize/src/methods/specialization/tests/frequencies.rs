//! A search over frequency sets takes the steps of one over rows, whatever the sets distinguish and
//! however many records they may have.

use std::cell::Cell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::json;

use pais_core::model::PrivacyModel;
use pais_core::table::EncodedTable;
use pais_core::table::codes::{Codes, RowCodes};
use pais_core::with_codes;

use super::super::attribute::Histogram;
use super::super::frequencies::{CollapsedTable, Floor, FrequencySet, FrequencySets, Rounds};
use super::super::method::node_ncp;
use super::super::requirement::Requirement;
use super::super::search::{
    ATTEMPTS, SearchState, SpecializationSettings, SpecializationTask, search, search_over,
};
use super::super::sensitive::SensitiveSlots;
use super::random_tables::{SpecializationCase, case, table_of};
use super::suppression_properties::wide_case;
use crate::row_counter::CountError;
use crate::test_data::job_with_keys;
use crate::{Observer, RunError, StepRecord, Unobserved};

/// Records with their numbers of rows: by attribute the number of the range, and the slots.
type Records = BTreeMap<(Vec<u32>, Vec<u32>), u32>;

/// A source that counts row by row, distinguishes more than it is asked to, and may be wrong.
struct RowByRow<'a> {
    table: &'a EncodedTable,
    sensitive: &'a SensitiveSlots,
    /// Bits that decide which further ranges begin where; none do where it is 0.
    finer: u64,
    /// Added to the rows of one record of every set but the first.
    fault: i32,
    sets: Cell<usize>,
}

impl<'a> RowByRow<'a> {
    fn new(table: &'a EncodedTable, sensitive: &'a SensitiveSlots, finer: u64) -> Self {
        Self {
            table,
            sensitive,
            finer,
            fault: 0,
            sets: Cell::new(0),
        }
    }

    fn records(&self, floors: &[Floor]) -> Records {
        let mut records = Records::new();
        for row in 0..self.table.rows {
            let columns = self.table.quasi_identifiers.iter().zip(floors);
            let ranges = columns.map(|(column, Floor(starts))| {
                let before = starts
                    .iter()
                    .filter(|start| **start <= column.codes.at(row));
                before.count() as u32 - 1
            });
            let slots = self.sensitive.slots.iter();
            let slots = slots.map(|slots| with_codes!(&slots.codes, codes => codes.at(row)));
            *records
                .entry((ranges.collect(), slots.collect()))
                .or_default() += 1;
        }
        records
    }
}

impl FrequencySets for RowByRow<'_> {
    /// Any number: no step may depend on it.
    fn expected_records(&self, floors: &[Floor], _: &dyn Observer) -> Result<u64, CountError> {
        let ranges: usize = floors.iter().map(|floor| floor.0.len()).sum();
        Ok((ranges as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 300)
    }

    fn rows(&self) -> u64 {
        self.table.rows as u64
    }

    fn histograms(&self, by_class: bool, _: &dyn Observer) -> Result<Vec<Histogram>, CountError> {
        let columns = self.table.quasi_identifiers.iter();
        let histograms = columns.map(|column| {
            let codes = column.domain.code_count();
            let class = self.table.class.as_ref().filter(|_| by_class);
            let classes = class.map_or(0, |it| it.classes);
            let mut histogram = Histogram {
                rows: vec![0; codes],
                by_class: vec![0; codes * classes],
                classes,
            };
            for row in 0..self.table.rows {
                let code = column.codes.at(row);
                histogram.rows[code as usize] += 1;
                if let Some(class) = class {
                    histogram.by_class[code as usize * classes + class.codes.at(row) as usize] += 1;
                }
            }
            histogram
        });
        Ok(histograms.collect())
    }

    fn frequency_set(
        &self,
        floors: &[Floor],
        most: Option<usize>,
        _: &dyn Observer,
    ) -> Result<FrequencySet, CountError> {
        let columns = self.table.quasi_identifiers.iter();
        let finer = columns.clone().zip(floors).map(|(column, floor)| {
            let codes = 0..column.domain.code_count() as u32;
            let begins = |code: &u32| floor.0.contains(code) || self.finer >> (code % 64) & 1 == 1;
            Floor(codes.filter(begins).collect())
        });
        let finer: Vec<Floor> = finer.collect();
        let records = self.records(&finer);
        if most.is_some_and(|most| records.len() > most) {
            return Err(CountError::MoreThan);
        }
        let first = self.sets.replace(self.sets.get() + 1) == 0;
        let mut rows: Vec<u32> = records.values().copied().collect();
        if !first {
            rows[0] = rows[0].saturating_add_signed(self.fault);
        }
        let four = |codes: Vec<u32>| Codes::Four(codes.into());
        let codes = columns.enumerate().map(|(at, column)| {
            // The last code of each range, not the first one.
            let starts = &finer[at].0;
            let end = |range: u32| {
                let next = starts.get(range as usize + 1).copied();
                next.unwrap_or(column.domain.code_count() as u32)
            };
            four(
                records
                    .keys()
                    .map(|(ranges, _)| end(ranges[at]) - 1)
                    .collect(),
            )
        });
        let slots = (0..self.sensitive.slots.len())
            .map(|at| four(records.keys().map(|(_, slots)| slots[at]).collect()));
        Ok(FrequencySet {
            codes: codes.collect(),
            slots: slots.collect(),
            floors: finer,
            rows,
        })
    }
}

/// Tables for which a search asks for sets: no row may be suppressed, and a person has one row.
pub(super) fn counted_case() -> impl Strategy<Value = SpecializationCase> {
    prop_oneof![case(), wide_case()].prop_map(|mut case| {
        case.job["suppression_limit"] = json!(0.0);
        case.job["suppression_for"] = json!("size");
        for (row, cells) in case.rows.iter_mut().enumerate() {
            *cells.last_mut().unwrap() = format!("p{row}");
        }
        case
    })
}

/// Calls `test` with the search of a case; `None` where the topmost table is not valid.
fn with_task<T>(
    case: &SpecializationCase,
    test: impl FnOnce(SpecializationTask<'_>, &SensitiveSlots) -> T,
) -> Option<T> {
    let (schema, table) = table_of(case);
    let job = job_with_keys(case.job.clone(), &schema).unwrap();
    let PrivacyModel::Lkc(model) = job.model.clone() else {
        panic!("the model is LKC-privacy");
    };
    let table = EncodedTable::new(&schema, table);
    let requirement = Requirement::of_model(&model, &table);
    let task = SpecializationTask {
        table: &table,
        requirement: &requirement,
        settings: SpecializationSettings {
            objective: job.objective.unwrap(),
            split: job.split.unwrap_or_default(),
            suppression_limit: job.suppression_limit,
            suppression_for: job.suppression_for(),
        },
        node_ncp: &node_ncp(&schema, &table),
        above_first_cut: &[],
        observer: &Unobserved::default(),
    };
    search(task, None).ok()?;
    let sensitive = SensitiveSlots::new(&requirement, table.rows);
    Some(test(task, &sensitive))
}

fn over_rows(task: SpecializationTask<'_>) -> Vec<StepRecord> {
    let sensitive = SensitiveSlots::new(task.requirement, task.table.rows);
    let state = SearchState::over_rows(task, sensitive, &[]);
    state.run(Vec::new(), None).unwrap()
}

fn over_sets(
    task: SpecializationTask<'_>,
    source: &RowByRow<'_>,
    budget: usize,
) -> Result<Vec<StepRecord>, RunError> {
    search_over(task, source.sensitive, Rounds { source, budget })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_sets_lead_to_the_steps_of_the_rows(
        case in counted_case(),
        finer in prop_oneof![Just(0), any::<u64>(), Just(u64::MAX)],
        budget in prop_oneof![1..5usize, 1..200usize],
    ) {
        let outcome = with_task(&case, |task, sensitive| {
            let expected = over_rows(task);
            let source = RowByRow::new(task.table, sensitive, finer);
            prop_assert_eq!(&over_sets(task, &source, budget).unwrap(), &expected);
            // A table that collapses is counted in one set.
            prop_assert_eq!(&search(task, None).unwrap(), &expected);
            Ok(())
        });
        outcome.unwrap_or(Ok(()))?;
    }

    #[test]
    fn a_collapsed_table_is_counted_as_row_by_row(
        case in counted_case(),
        begins in any::<u64>(),
        most in 1..100usize,
    ) {
        let outcome = with_task(&case, |task, sensitive| {
            let Some(source) = CollapsedTable::new(task.table, sensitive) else {
                return Ok(());
            };
            let floors: Vec<Floor> = task.table.quasi_identifiers.iter().map(|column| {
                let codes = 0..column.domain.code_count() as u32;
                Floor(codes.filter(|code| *code == 0 || begins >> (code % 64) & 1 == 1).collect())
            }).collect();
            let row_by_row = RowByRow::new(task.table, sensitive, 0);
            let observer = task.observer;
            for by_class in [false, true] {
                let expected = row_by_row.histograms(by_class, observer);
                prop_assert_eq!(source.histograms(by_class, observer), expected);
            }
            let set = source.frequency_set(&floors, None, observer).unwrap();
            let expected = row_by_row.records(&floors);
            let records = set.rows.iter().enumerate().map(|(record, rows)| {
                let at = |codes: &Codes<'_>| with_codes!(codes, codes => codes.at(record));
                let range = |(codes, Floor(starts)): (&Codes<'_>, &Floor)| {
                    starts.binary_search(&at(codes)).unwrap() as u32
                };
                let ranges = set.codes.iter().zip(&floors).map(range).collect();
                ((ranges, set.slots.iter().map(at).collect()), *rows)
            });
            prop_assert_eq!(set.rows.len(), expected.len());
            prop_assert_eq!(&records.collect::<Records>(), &expected);
            let limited = source.frequency_set(&floors, Some(most), observer).map(|_| ());
            let fits = expected.len() <= most;
            prop_assert_eq!(limited, fits.then_some(()).ok_or(CountError::MoreThan));
            Ok(())
        });
        outcome.unwrap_or(Ok(()))?;
    }

    #[test]
    fn a_set_with_a_row_more_or_less_is_refused(
        case in counted_case(),
        fault in prop::sample::select(vec![-1, 1]),
    ) {
        let outcome = with_task(&case, |task, sensitive| {
            let source = RowByRow { fault, ..RowByRow::new(task.table, sensitive, 0) };
            let found = over_sets(task, &source, 1);
            match source.sets.get() {
                0 | 1 => prop_assert!(found.is_ok()),
                sets => {
                    // The second set is counted again until the run gives up.
                    prop_assert_eq!(sets, 1 + ATTEMPTS);
                    let is_refused = matches!(found, Err(RunError::NotCounted { .. }));
                    prop_assert!(is_refused);
                }
            }
            Ok(())
        });
        outcome.unwrap_or(Ok(()))?;
    }
}

/// The comparisons above say nothing unless searches need several sets, and tables collapse.
#[test]
fn many_of_the_compared_searches_take_several_rounds_and_many_tables_collapse() {
    let mut runner = TestRunner::deterministic();
    let (mut several, mut one, mut collapsed, mut not_collapsed) = (0, 0, 0, 0);
    for _ in 0..100 {
        let case = counted_case().new_tree(&mut runner).unwrap().current();
        with_task(&case, |task, sensitive| {
            let sets = |budget: usize| {
                let source = RowByRow::new(task.table, sensitive, 0);
                over_sets(task, &source, budget).unwrap();
                source.sets.get()
            };
            several += usize::from(sets(8) >= 3);
            one += usize::from(sets(usize::MAX) == 1);
            match CollapsedTable::new(task.table, sensitive) {
                Some(_) => collapsed += 1,
                None => not_collapsed += 1,
            }
        });
    }
    let found = (several, one, collapsed, not_collapsed);
    let many = several >= 20 && one >= 20 && collapsed >= 10 && not_collapsed >= 10;
    assert!(many, "{found:?} of 100");
}
