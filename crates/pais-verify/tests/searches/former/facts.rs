//! LKC-privacy over set-valued columns, decided by enumeration of what an adversary may know.
//!
//! A fact about a record is its value in one column that is not set-valued, or one item of a
//! set-valued column. An adversary knows at most L facts. Each combination of at most L facts that
//! some row has must be shared by at least K rows, and no bounded sensitive value may be inferred
//! from it with more than C. Combinations are extended fact by fact over the rows that have them,
//! so only those that occur are enumerated. Rows have different numbers of facts, so combinations
//! of every size are decided, not those of the greatest size alone. A fact that all rows of a
//! branch have does not divide them, so the branch is not extended by it.

use hashbrown::HashMap;

use pais_core::cancellation::Cancellation;
use pais_core::model::{Confidence, Lkc, MissingSensitive};
use pais_core::table::{Form, ReleasedTable};

use super::LkcRequirement;
use super::classes::{Classes, Values};
use super::counted_table::CountedTable;
use super::lkc::verify_lkc;
use super::persons::{ClassPersons, PersonCounter, Persons};
use super::sensitive::SensitiveColumn;
use super::sets::items;
use super::verification::{
    ColumnValue, VIOLATION_CAP, Verification, VerifyError, WORST_GROUPS, WorstGroup,
};

/// Most look-ups of a fact in a row. Beyond it the enumeration fails.
const BUDGET: u64 = 1 << 33;

/// Number of look-ups between two checks of whether to stop.
const STRIDE: u64 = 1 << 20;

/// Decides the LKC model of a job over `quasi_identifiers`. Where the model has an *L* and a column
/// is released as a set, *L* bounds the number of facts: values of columns that are not set-valued,
/// and single items of sets. Elsewhere a value is known as a whole, as by [`verify_lkc`].
///
/// In the result `subsets` is then the number of combinations of facts that were enumerated, and
/// `violations` how many of them violate the model.
///
/// # Errors
/// [`VerifyError`] for a table that lacks a column or is malformed, if there are too many
/// combinations to enumerate, and when stopped.
pub(crate) fn verify_lkc_model<'t>(
    table: impl Into<CountedTable<'t>>,
    quasi_identifiers: &[Box<str>],
    sensitive: &[Box<str>],
    model: &Lkc,
    cancellation: &Cancellation,
) -> Result<Verification, VerifyError> {
    let counted = table.into();
    let requirement = LkcRequirement::from_model(model, quasi_identifiers.len(), sensitive);
    let is_set = |name: &str| {
        let mut columns = counted.table.columns.iter();
        let column = columns.find(|column| *column.name == *name);
        column.is_some_and(|column| matches!(column.form, Form::Set { .. }))
    };
    match model.l {
        Some(l) if quasi_identifiers.iter().any(|name| is_set(name)) => {
            let columns = (quasi_identifiers, sensitive);
            verify_facts(counted, columns, &requirement, l.get(), cancellation)
        }
        _ => verify_lkc(
            counted,
            quasi_identifiers,
            sensitive,
            &requirement,
            cancellation,
        ),
    }
}

fn verify_facts(
    counted: CountedTable,
    (quasi_identifiers, sensitive): (&[Box<str>], &[Box<str>]),
    requirement: &LkcRequirement,
    l: u32,
    cancellation: &Cancellation,
) -> Result<Verification, VerifyError> {
    let table = counted.table;
    let persons = Persons::new(counted)?;
    let values = Values::new_all(table, quasi_identifiers)?;
    let classes = Classes::new(table.rows, &values)?;
    let facts = FactLists::new(table.rows, &values);
    let bounds_some = !requirement.c.is_unbounded() && !requirement.sensitive.is_empty();
    let mut search = FactSearch {
        facts: &facts,
        persons: persons
            .as_ref()
            .map(|persons| (persons, PersonCounter::new(persons.count()))),
        k: requirement.k,
        l,
        c: requirement.c,
        meters: meters(table, sensitive, requirement)?,
        reading: requirement.missing_sensitive,
        cancellation,
        lookups: 0,
        smallest: u64::MAX,
        greatest: 0.0,
        greatest_bounded: 0.0,
        subsets: 0,
        violations: 0,
        worst: Vec::new(),
    };
    if table.rows > 0 {
        let rows: Vec<u32> = (0..table.rows as u32).collect();
        search.note(&rows, &[]);
        search.extend(&rows, 0, &mut Vec::new())?;
    }
    Ok(Verification {
        holds: search.violations == 0,
        rows: table.rows as u64,
        groups: classes.sizes.len() as u64,
        smallest_group: if table.rows == 0 { 0 } else { search.smallest },
        smallest_equivalence_class: match &persons {
            Some(persons) => ClassPersons::new(&classes, persons).smallest(),
            None => classes.smallest(),
        },
        greatest_confidence: search.greatest,
        greatest_bounded_confidence: bounds_some.then_some(search.greatest_bounded),
        missing_sensitive: requirement.missing_sensitive,
        subsets: search.subsets,
        violations: search.violations.min(VIOLATION_CAP),
        worst: search.worst,
    })
}

/// The facts of each row, ascending, numbered across the columns.
struct FactLists<'a> {
    of_row: Vec<Vec<u32>>,
    /// Column and value, or item, of each fact.
    names: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> FactLists<'a> {
    fn new(rows: usize, columns: &'a [Values<'a>]) -> Self {
        let mut lists = Self {
            of_row: vec![Vec::new(); rows],
            names: Vec::new(),
        };
        for values in columns {
            let of_value = lists.number(values);
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

    /// Numbers the facts of a column; those of each of its values.
    fn number(&mut self, values: &'a Values<'a>) -> Vec<Vec<u32>> {
        let name: &'a str = &values.column.name;
        let mut numbers: HashMap<Option<&'a str>, u32> = HashMap::new();
        let names = &mut self.names;
        let mut number = |value: Option<&'a str>| {
            *numbers.entry(value).or_insert_with(|| {
                names.push((name, value));
                names.len() as u32 - 1
            })
        };
        let all = 0..values.count() as u32;
        // In the order of their texts, as the present search numbers them.
        let mut texts: Vec<Option<&'a str>> = Vec::new();
        for value in all.clone() {
            match values.column.form {
                Form::Set { separator } => {
                    let cell = values.text(value).unwrap_or_default();
                    texts.extend(items(cell, separator).map(Some));
                }
                _ => texts.push(values.text(value)),
            }
        }
        texts.sort_unstable();
        for text in texts {
            number(text);
        }
        let facts = all.map(|value| match values.column.form {
            Form::Set { separator } => {
                let cell = values.text(value).unwrap_or_default();
                items(cell, separator)
                    .map(|item| number(Some(item)))
                    .collect()
            }
            _ => vec![number(values.text(value))],
        });
        facts.collect()
    }

    fn name(&self, fact: u32) -> ColumnValue {
        let (column, value) = self.names[fact as usize];
        ColumnValue {
            column: column.to_owned(),
            value: value.map(str::to_owned),
        }
    }
}

/// A sensitive column whose confidences are measured.
struct Meter<'a> {
    column: SensitiveColumn<'a>,
    name: &'a str,
    /// Whether C bounds the confidence in its values.
    is_bounded: bool,
    /// By value, the number of rows; 0 between calls.
    counts: Vec<u32>,
}

/// The columns that the requirement names, and the declared ones that it does not.
fn meters<'a>(
    table: &'a ReleasedTable,
    declared: &'a [Box<str>],
    requirement: &'a LkcRequirement,
) -> Result<Vec<Meter<'a>>, VerifyError> {
    let meter = |name: &'a str, column: SensitiveColumn<'a>, is_bounded| Meter {
        counts: vec![0; column.value_count()],
        column,
        name,
        is_bounded,
    };
    let mut meters = Vec::new();
    for named in &requirement.sensitive {
        let column = SensitiveColumn::new(table, named)?;
        meters.push(meter(&named.column, column, !requirement.c.is_unbounded()));
    }
    for name in declared {
        if !requirement.sensitive.iter().any(|it| it.column == *name) {
            let column = SensitiveColumn::every_value(table, name)?;
            meters.push(meter(name, column, false));
        }
    }
    Ok(meters)
}

/// The sensitive value of a column that most rows of a group have.
struct Most {
    value: u32,
    rows: u32,
    of: u32,
}

impl Meter<'_> {
    /// The most frequent sensitive value of these rows; `None` if no row has any.
    fn most(&mut self, rows: &[u32], reading: MissingSensitive) -> Option<Most> {
        let mut present = 0;
        let mut most: Option<(u32, u32)> = None;
        for &row in rows {
            let Some(value) = self.column.present(row as usize) else {
                continue;
            };
            present += 1;
            if !self.column.is_sensitive(value) {
                continue;
            }
            let count = &mut self.counts[value as usize];
            *count += 1;
            if most.is_none_or(|(_, rows)| *count > rows) {
                most = Some((value, *count));
            }
        }
        for &row in rows {
            if let Some(value) = self.column.present(row as usize) {
                self.counts[value as usize] = 0;
            }
        }
        let of = match reading {
            MissingSensitive::Excluded => present,
            MissingSensitive::Counted => rows.len() as u32,
        };
        most.map(|(value, rows)| Most { value, rows, of })
    }
}

/// The enumeration, with the result so far.
struct FactSearch<'a> {
    facts: &'a FactLists<'a>,
    /// The persons of the rows, where K is asked of them.
    persons: Option<(&'a Persons, PersonCounter)>,
    k: u64,
    l: u32,
    c: Confidence,
    meters: Vec<Meter<'a>>,
    reading: MissingSensitive,
    cancellation: &'a Cancellation,
    /// Number of look-ups so far.
    lookups: u64,
    smallest: u64,
    greatest: f64,
    greatest_bounded: f64,
    subsets: u64,
    violations: u64,
    worst: Vec<WorstGroup>,
}

impl FactSearch<'_> {
    /// Records the rows, or persons, that share the known facts, and what they reveal.
    fn note(&mut self, rows: &[u32], known: &[u32]) {
        let size = match &mut self.persons {
            None => rows.len() as u64,
            Some((persons, counter)) => {
                let limit = self.smallest.max(self.k);
                let of_rows = rows.iter().map(|&row| persons.of_row[row as usize]);
                counter.count_up_to(limit, of_rows)
            }
        };
        self.subsets += 1;
        self.smallest = self.smallest.min(size);
        let mut is_exceeded = false;
        let (mut confidence, mut best) = (0.0, None);
        for (index, meter) in self.meters.iter_mut().enumerate() {
            let Some(most) = meter.most(rows, self.reading) else {
                continue;
            };
            let share = f64::from(most.rows) / f64::from(most.of);
            self.greatest = self.greatest.max(share);
            if meter.is_bounded {
                self.greatest_bounded = self.greatest_bounded.max(share);
                is_exceeded |= self.c.is_exceeded_by(most.rows.into(), most.of.into());
                if share > confidence {
                    (confidence, best) = (share, Some((index, most.value)));
                }
            }
        }
        if size >= self.k && !is_exceeded {
            return;
        }
        self.violations += 1;
        let size = match &mut self.persons {
            // The count above stops where no more persons are needed.
            Some((persons, counter)) if size >= self.k => {
                let of_rows = rows.iter().map(|&row| persons.of_row[row as usize]);
                counter.count_up_to(u64::MAX, of_rows)
            }
            _ => size,
        };
        // Those below K come first, by size; then the others, by confidence.
        let order = |size: u64, confidence: f64| {
            if size < self.k {
                (size, 0.0)
            } else {
                (self.k, -confidence)
            }
        };
        let rank = order(size, confidence);
        let before = |found: &WorstGroup| order(found.size, found.confidence) <= rank;
        let position = self.worst.partition_point(before);
        if position < WORST_GROUPS {
            let found = WorstGroup {
                quasi_identifiers: known.iter().map(|&fact| self.facts.name(fact)).collect(),
                size,
                sensitive: best.map(|(index, value)| {
                    let meter = &self.meters[index];
                    ColumnValue {
                        column: meter.name.to_owned(),
                        value: meter.column.text(value).map(str::to_owned),
                    }
                }),
                confidence,
            };
            self.worst.insert(position, found);
            self.worst.truncate(WORST_GROUPS);
        }
    }

    /// Extends the facts that `rows` share by facts from number `from` on.
    fn extend(&mut self, rows: &[u32], from: u32, known: &mut Vec<u32>) -> Result<(), VerifyError> {
        if known.len() as u64 >= u64::from(self.l) {
            return Ok(());
        }
        let mut holding: HashMap<u32, Vec<u32>> = HashMap::new();
        for &row in rows {
            let list = &self.facts.of_row[row as usize];
            let after = &list[list.partition_point(|&fact| fact < from)..];
            let before = self.lookups / STRIDE;
            self.lookups += after.len() as u64 + 1;
            if self.lookups > BUDGET {
                return Err(VerifyError::TooManyFacts { l: self.l });
            }
            if self.lookups / STRIDE > before && self.cancellation.is_cancelled() {
                return Err(VerifyError::Stopped);
            }
            for &fact in after {
                holding.entry(fact).or_default().push(row);
            }
        }
        // In a fixed order, so that the same table always gives the same result.
        let mut holding: Vec<(u32, Vec<u32>)> = holding.into_iter().collect();
        holding.sort_unstable_by_key(|(fact, _)| *fact);
        for (fact, rows_with_fact) in holding {
            known.push(fact);
            self.note(&rows_with_fact, known);
            // Combinations with a fact that all rows have are shared by the same rows as those
            // without it.
            if rows_with_fact.len() < rows.len() {
                self.extend(&rows_with_fact, fact + 1, known)?;
            }
            known.pop();
        }
        Ok(())
    }
}
