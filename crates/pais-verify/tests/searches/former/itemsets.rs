//! k^m-anonymity over set-valued columns, decided by enumeration.
//!
//! Rows that agree on every quasi-identifier that is not set-valued are a group, which must have
//! at least k rows. Within a group, each set of at most m items of the set-valued columns must be
//! contained in no row or in at least k rows. Sets are extended item by item over the rows that
//! contain them, so only sets that occur in the table are enumerated. An item that all rows of a
//! branch have does not divide them, so the branch is not extended by it. Where rows are not
//! persons, k is asked of the distinct persons of the rows.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use pais_core::cancellation::Cancellation;
use pais_core::model::{KmAnonymity, MissingSensitive};
use pais_core::table::Form;

use super::classes::{Classes, Values};
use super::counted_table::CountedTable;
use super::persons::{ClassPersons, PersonCounter, Persons};
use super::sensitive::ConfidenceMeter;
use super::sets::items;
use super::verification::{
    ColumnValue, VIOLATION_CAP, Verification, VerifyError, WORST_GROUPS, WorstGroup,
};

/// Most look-ups of an item in a row. Beyond it the enumeration fails.
const BUDGET: u64 = 1 << 33;

/// Number of look-ups between two checks of whether to stop.
const STRIDE: u64 = 1 << 20;

/// Decides k^m-anonymity over `quasi_identifiers`; those released as sets are the set-valued
/// ones. Stops once `cancellation` is requested. In the result, `smallest_group` is the fewest rows
/// of a group that contain a set of at most m items, including the empty set, and `subsets` is the
/// number of sets that were enumerated. The confidence in the values of the columns `sensitive`
/// is measured over the same rows. Where the table has subjects, k is asked of the distinct persons
/// of these rows, and `smallest_group` is the fewest persons.
///
/// # Errors
/// [`VerifyError`] for a table that lacks a column or is malformed, if there are too many sets to
/// enumerate, and when stopped.
pub(crate) fn verify_km<'t>(
    table: impl Into<CountedTable<'t>>,
    quasi_identifiers: &[Box<str>],
    sensitive: &[Box<str>],
    model: KmAnonymity,
    cancellation: &Cancellation,
) -> Result<Verification, VerifyError> {
    let stopped = &|| cancellation.is_cancelled();
    let counted = table.into();
    let table = counted.table;
    let persons = Persons::new(counted)?;
    let values = quasi_identifiers
        .iter()
        .map(|name| Values::new(table, name));
    let values = values.collect::<Result<Vec<_>, _>>()?;
    let classes = Classes::new(table.rows, &values)?;
    let is_set = |values: &Values| matches!(values.column.form, Form::Set { .. });
    let (sets, relational): (Vec<Values>, Vec<Values>) = values.into_iter().partition(is_set);
    let groups = Classes::new(table.rows, &relational)?;
    let lists = ItemLists::new(table.rows, &sets);
    let mut of_group: Vec<Vec<u32>> = vec![Vec::new(); groups.sizes.len()];
    for (row, &group) in groups.of_row.iter().enumerate() {
        of_group[group as usize].push(row as u32);
    }
    let mut search = ItemsetSearch {
        lists: &lists,
        persons: persons
            .as_ref()
            .map(|persons| (persons, PersonCounter::new(persons.count()))),
        k: model.k.get(),
        m: model.m.get(),
        confidence: ConfidenceMeter::new(table, sensitive)?,
        stopped,
        lookups: 0,
        smallest: u64::MAX,
        subsets: 0,
        violations: 0,
        worst: Vec::new(),
    };
    for (group, rows) in of_group.iter().enumerate() {
        let known = KnownItems {
            group,
            items: Vec::new(),
        };
        search.note(rows, &known);
        search.extend(rows, 0, known)?;
    }
    let worst_group = |found: &ItemsetViolation| WorstGroup {
        quasi_identifiers: relational
            .iter()
            .map(|values| {
                let row = groups.row[found.known.group] as usize;
                ColumnValue {
                    column: values.column.name.to_string(),
                    value: values.text(values.at(row)).map(str::to_owned),
                }
            })
            .chain(found.known.items.iter().map(|&item| lists.name(item)))
            .collect(),
        size: found.size,
        sensitive: None,
        confidence: 0.0,
    };
    let worst: Vec<WorstGroup> = search.worst.iter().map(worst_group).collect();
    Ok(Verification {
        holds: search.violations == 0,
        rows: table.rows as u64,
        groups: classes.sizes.len() as u64,
        smallest_group: if table.rows == 0 { 0 } else { search.smallest },
        smallest_equivalence_class: match &persons {
            Some(persons) => ClassPersons::new(&classes, persons).smallest(),
            None => classes.smallest(),
        },
        greatest_confidence: search.confidence.greatest(),
        greatest_bounded_confidence: None,
        missing_sensitive: MissingSensitive::Excluded,
        subsets: search.subsets,
        violations: search.violations.min(VIOLATION_CAP),
        worst,
    })
}

/// The items of each row, sorted and numbered across the set-valued columns.
struct ItemLists<'a> {
    of_row: Vec<Vec<u32>>,
    /// Column and label of each item.
    names: Vec<(&'a str, &'a str)>,
}

impl<'a> ItemLists<'a> {
    fn new(rows: usize, sets: &'a [Values<'a>]) -> Self {
        let mut lists = Self {
            of_row: vec![Vec::new(); rows],
            names: Vec::new(),
        };
        for values in sets {
            let Form::Set { separator } = values.column.form else {
                continue;
            };
            let cells = (0..values.count() as u32).map(|it| values.text(it).unwrap_or_default());
            // In the order of their texts, as the present search numbers them.
            let texts: BTreeSet<&str> = cells.flat_map(|cell| items(cell, separator)).collect();
            let mut numbers: HashMap<&str, u32> = HashMap::new();
            for item in texts {
                numbers.insert(item, lists.names.len() as u32);
                lists.names.push((&values.column.name, item));
            }
            let mut of_value: Vec<Vec<u32>> = Vec::with_capacity(values.count());
            for value in 0..values.count() as u32 {
                let cell = values.text(value).unwrap_or_default();
                let list = items(cell, separator);
                of_value.push(list.map(|item| numbers[item]).collect());
            }
            for (row, list) in lists.of_row.iter_mut().enumerate() {
                list.extend_from_slice(&of_value[values.at(row) as usize]);
            }
        }
        for list in &mut lists.of_row {
            list.sort_unstable();
            list.dedup();
        }
        lists
    }

    fn name(&self, item: u32) -> ColumnValue {
        let (column, item) = self.names[item as usize];
        ColumnValue {
            column: column.to_owned(),
            value: Some(item.to_owned()),
        }
    }
}

/// What an adversary knows: a group, and some items.
#[derive(Clone)]
struct KnownItems {
    group: usize,
    items: Vec<u32>,
}

/// A set of items that fewer than k rows, or persons, of a group have.
struct ItemsetViolation {
    known: KnownItems,
    size: u64,
}

/// The enumeration of sets of items, with the result so far.
struct ItemsetSearch<'a> {
    lists: &'a ItemLists<'a>,
    /// The persons of the rows, where k is asked of them.
    persons: Option<(&'a Persons, PersonCounter)>,
    k: u64,
    m: u32,
    confidence: ConfidenceMeter<'a>,
    stopped: &'a (dyn Fn() -> bool + Sync),
    /// Number of look-ups so far.
    lookups: u64,
    smallest: u64,
    subsets: u64,
    violations: u64,
    worst: Vec<ItemsetViolation>,
}

impl ItemsetSearch<'_> {
    /// Records the number of rows, or of their persons, that contain a set of items, and the
    /// confidence in their sensitive values.
    fn note(&mut self, rows: &[u32], known: &KnownItems) {
        self.confidence.measure(rows);
        let size = match &mut self.persons {
            None => rows.len() as u64,
            Some((persons, counter)) => {
                // With so many the set neither violates nor is the smallest.
                let limit = self.smallest.max(self.k);
                let of_rows = rows.iter().map(|&row| persons.of_row[row as usize]);
                counter.count_up_to(limit, of_rows)
            }
        };
        self.subsets += 1;
        self.smallest = self.smallest.min(size);
        if size >= self.k {
            return;
        }
        self.violations += 1;
        let position = self.worst.partition_point(|found| found.size <= size);
        if position < WORST_GROUPS {
            let known = known.clone();
            self.worst
                .insert(position, ItemsetViolation { known, size });
            self.worst.truncate(WORST_GROUPS);
        }
    }

    /// Extends the set of items that `rows` have in common by items from number `from` on.
    fn extend(&mut self, rows: &[u32], from: u32, known: KnownItems) -> Result<(), VerifyError> {
        if known.items.len() as u32 >= self.m {
            return Ok(());
        }
        let mut holding: HashMap<u32, Vec<u32>> = HashMap::new();
        for &row in rows {
            let list = &self.lists.of_row[row as usize];
            let after = &list[list.partition_point(|&item| item < from)..];
            let before = self.lookups / STRIDE;
            self.lookups += after.len() as u64 + 1;
            if self.lookups > BUDGET {
                return Err(VerifyError::TooManyItemsets { m: self.m });
            }
            if self.lookups / STRIDE > before && (self.stopped)() {
                return Err(VerifyError::Stopped);
            }
            for &item in after {
                holding.entry(item).or_default().push(row);
            }
        }
        // In a fixed order, so that the same table always gives the same sets.
        let mut holding: Vec<(u32, Vec<u32>)> = holding.into_iter().collect();
        holding.sort_unstable_by_key(|(item, _)| *item);
        for (item, rows_with_item) in holding {
            let mut known = known.clone();
            known.items.push(item);
            self.note(&rows_with_item, &known);
            // Sets with an item that all rows have are contained in the same rows as those without.
            if rows_with_item.len() < rows.len() {
                self.extend(&rows_with_item, item + 1, known)?;
            }
        }
        Ok(())
    }
}
